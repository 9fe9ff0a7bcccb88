//! Bytes of a page as text: byte order mark, then the header, then `<meta>`, then UTF-8 if it is valid, then a guess.

use encoding_rs::{Encoding, UTF_8};

/// Bytes at the start in which `<meta>` may name the encoding.
const META_PROBE_BYTES: usize = 1_024;

/// Decodes a body. Never fails: bytes that do not fit become the replacement character.
pub(super) fn decode_text(body: &[u8], content_type: Option<&str>, is_html: bool) -> String {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding.decode_with_bom_removal(body).0.into_owned();
    }
    let named =
        content_type.and_then(header_charset).or_else(|| if is_html { meta_charset(body) } else { None });
    let encoding = match named {
        Some(encoding) => encoding,
        None if std::str::from_utf8(body).is_ok() => UTF_8,
        None => {
            let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
            detector.feed(body, true);
            detector.guess(None, chardetng::Utf8Detection::Allow)
        }
    };
    encoding.decode_without_bom_handling(body).0.into_owned()
}

/// The encoding that a `Content-Type` names.
fn header_charset(content_type: &str) -> Option<&'static Encoding> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes()))?
    })
}

/// The encoding that a page names itself.
fn meta_charset(body: &[u8]) -> Option<&'static Encoding> {
    let start = body.get(..META_PROBE_BYTES.min(body.len()))?;
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once("charset") {
        rest = after;
        let Some(value) = after.trim_start().strip_prefix('=') else { continue };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
        let label = value.get(..end.unwrap_or(value.len())).unwrap_or(value);
        if let Some(encoding) = Encoding::for_label(label.as_bytes()) {
            // A page that was read so far cannot be UTF-16.
            let is_wide = encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
            return Some(if is_wide { UTF_8 } else { encoding });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_in_order() {
        let latin = b"na\xefve \x93x\x94";
        assert_eq!(decode_text(latin, Some("text/html; charset=iso-8859-1"), true), "naïve “x”");
        assert_eq!(decode_text(latin, Some("text/html; Charset=\"ISO-8859-1\""), true), "naïve “x”");
        assert_eq!(
            decode_text(b"\xef\xbb\xbfna\xc3\xafve", Some("text/html; charset=iso-8859-1"), true),
            "naïve"
        );
        let cyrillic = b"<meta http-equiv=x content='text/html; charset=windows-1251'>\xcf\xf0";
        assert!(decode_text(cyrillic, Some("text/html"), true).ends_with("Пр"));
        assert_eq!(decode_text("日本".as_bytes(), None, false), "日本");
        assert_eq!(decode_text(b"a\xff", Some("text/plain; charset=utf-8"), false), "a\u{fffd}");
        assert_eq!(decode_text(b"x", Some("Text/HTML;;charset=;x"), true), "x");
    }
}
