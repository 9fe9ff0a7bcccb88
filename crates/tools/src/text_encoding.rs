//! Text in files: how it is encoded, how its lines end, and how to give it back the same way.
//!
//! Inside, text is UTF-8 bytes.
//! A file that is nearly UTF-8 (one stray Latin-1 letter) stays bytes, so that an edit elsewhere in it changes
//! nothing but what it was asked to.

use std::borrow::Cow;

/// How a file's text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextEncoding {
    pub(crate) kind: TextEncodingKind,
    /// The file starts with a byte order mark.
    pub(crate) bom: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEncodingKind {
    Utf8,
    Utf16Le,
    Utf16Be,
}

/// Why bytes are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextDecodeError {
    /// Something else altogether.
    Binary,
    /// Said to be UTF-16, and is not.
    BrokenUtf16,
}

/// As much of a file as is looked at to tell what it is.
const ENCODING_PROBE_BYTES: usize = 8192;
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

impl TextEncoding {
    pub(crate) const UTF8: Self = Self { kind: TextEncodingKind::Utf8, bom: false };

    /// Tells from the start of a file how it is encoded. `None` where it is no text.
    pub(crate) fn detect(start: &[u8]) -> Option<Self> {
        if start.starts_with(UTF8_BOM) {
            return Some(Self { kind: TextEncodingKind::Utf8, bom: true });
        }
        if start.starts_with(b"\xff\xfe") && !start.starts_with(b"\xff\xfe\0\0") {
            return Some(Self { kind: TextEncodingKind::Utf16Le, bom: true });
        }
        if start.starts_with(b"\xfe\xff") {
            return Some(Self { kind: TextEncodingKind::Utf16Be, bom: true });
        }
        let probe = start.get(..ENCODING_PROBE_BYTES).unwrap_or(start);
        if memchr::memchr(0, probe).is_none() {
            return Some(Self::UTF8);
        }
        // UTF-16 without a mark: most letters have a zero in the same half.
        let zeros = |half: usize| probe.iter().skip(half).step_by(2).filter(|byte| **byte == 0).count();
        let (even, odd, pairs) = (zeros(0), zeros(1), probe.len() / 2);
        let mostly = |many: usize, few: usize| pairs >= 4 && many * 10 >= pairs * 7 && few == 0;
        if mostly(odd, even) {
            return Some(Self { kind: TextEncodingKind::Utf16Le, bom: false });
        }
        if mostly(even, odd) {
            return Some(Self { kind: TextEncodingKind::Utf16Be, bom: false });
        }
        None
    }

    /// How many bytes the mark has.
    pub(crate) fn bom_len(self) -> usize {
        match (self.bom, self.kind) {
            (false, _) => 0,
            (true, TextEncodingKind::Utf8) => 3,
            (true, TextEncodingKind::Utf16Le | TextEncodingKind::Utf16Be) => 2,
        }
    }

    /// Its name for people; nothing for plain UTF-8.
    pub(crate) fn name(self) -> Option<&'static str> {
        match (self.kind, self.bom) {
            (TextEncodingKind::Utf8, false) => None,
            (TextEncodingKind::Utf8, true) => Some("UTF-8 with a byte order mark"),
            (TextEncodingKind::Utf16Le, _) => Some("UTF-16 (little-endian)"),
            (TextEncodingKind::Utf16Be, _) => Some("UTF-16 (big-endian)"),
        }
    }

    /// The text of a file, without the mark. UTF-8 is not copied.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, TextDecodeError> {
        let body = bytes.get(self.bom_len()..).unwrap_or_default();
        match self.kind {
            TextEncodingKind::Utf8 => Ok(Cow::Borrowed(body)),
            TextEncodingKind::Utf16Le => decode_utf16(body, u16::from_le_bytes).map(Cow::Owned),
            TextEncodingKind::Utf16Be => decode_utf16(body, u16::from_be_bytes).map(Cow::Owned),
        }
    }

    /// The bytes of a file with this text.
    pub(crate) fn encode(self, text: Vec<u8>) -> Vec<u8> {
        let to_bytes = match self.kind {
            TextEncodingKind::Utf8 if self.bom => return [UTF8_BOM, &text].concat(),
            TextEncodingKind::Utf8 => return text,
            TextEncodingKind::Utf16Le => u16::to_le_bytes,
            TextEncodingKind::Utf16Be => u16::to_be_bytes,
        };
        let mark = self.bom.then_some(0xfeff);
        let text = String::from_utf8_lossy(&text);
        mark.into_iter().chain(text.encode_utf16()).flat_map(to_bytes).collect()
    }
}

/// The text of a whole file and how to give it back.
pub(crate) fn decode_text(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, TextEncoding), TextDecodeError> {
    let encoding = TextEncoding::detect(bytes).ok_or(TextDecodeError::Binary)?;
    Ok((encoding.decode(bytes)?, encoding))
}

fn decode_utf16(bytes: &[u8], to_unit: fn([u8; 2]) -> u16) -> Result<Vec<u8>, TextDecodeError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(TextDecodeError::BrokenUtf16);
    }
    let units = pairs.iter().map(|pair| to_unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.map(String::into_bytes).map_err(|_| TextDecodeError::BrokenUtf16)
}

/// How the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEndings {
    /// There is only one line, or each ends in a line feed.
    Lf,
    /// Each ends in carriage return and line feed.
    Crlf,
    /// Some so, some so.
    Mixed,
}

impl LineEndings {
    pub(crate) fn of(text: &[u8]) -> Self {
        let (mut crlf, mut lf) = (false, false);
        for end in memchr::memchr_iter(b'\n', text) {
            match end.checked_sub(1).and_then(|before| text.get(before)) {
                Some(b'\r') => crlf = true,
                _ => lf = true,
            }
            if crlf && lf {
                return Self::Mixed;
            }
        }
        if crlf { Self::Crlf } else { Self::Lf }
    }
}

/// The same text with every line ending in carriage return and line feed.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// How many lines a text has; the last need not end.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', text).count() as u64;
    ends + u64::from(!text.is_empty() && !text.ends_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], expected: Result<(&str, Option<&str>), TextDecodeError>) {
        let got = decode_text(bytes);
        let got =
            got.map(|(text, encoding)| (String::from_utf8(text.into_owned()).unwrap(), encoding.name()));
        assert_eq!(got, expected.map(|(text, name)| (text.to_owned(), name)));
    }

    #[test]
    fn files_are_what_they_look_like() {
        check(b"plain", Ok(("plain", None)));
        check(b"", Ok(("", None)));
        check(b"\xef\xbb\xbfmarked", Ok(("marked", Some("UTF-8 with a byte order mark"))));
        check(b"\xff\xfeh\0i\0", Ok(("hi", Some("UTF-16 (little-endian)"))));
        check(b"\xfe\xff\0h\0i", Ok(("hi", Some("UTF-16 (big-endian)"))));
        check(b"h\0e\0l\0l\0o\0", Ok(("hello", Some("UTF-16 (little-endian)"))));
        check(b"\xff\xfeh\0\0\xd8", Err(TextDecodeError::BrokenUtf16));
        check(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0", Err(TextDecodeError::Binary));
    }

    proptest! {
        #[test]
        fn a_text_survives_every_encoding(text in "\\PC{0,40}", bom in any::<bool>()) {
            for kind in [TextEncodingKind::Utf8, TextEncodingKind::Utf16Le, TextEncodingKind::Utf16Be] {
                let encoding = TextEncoding { kind, bom };
                let bytes = encoding.encode(text.clone().into_bytes());
                prop_assert_eq!(encoding.decode(&bytes).unwrap().into_owned(), text.clone().into_bytes());
            }
        }
    }
}
