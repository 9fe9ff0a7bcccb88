//! Character encodings and line endings of text files, so that an edit preserves both.
//!
//! Decoded text is UTF-8 in a byte vector and not a `String`.
//! A file that is almost UTF-8 (one Latin-1 letter in a comment) keeps its invalid bytes, so that an edit elsewhere in
//! it changes only what it was asked to; replacing them with U+FFFD would corrupt the file.

use std::borrow::Cow;

/// The encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextEncoding {
    /// Which encoding it is.
    pub(crate) kind: TextEncodingKind,
    /// Whether the file starts with a byte order mark, which an edit must write again.
    pub(crate) bom: bool,
}

/// The supported encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEncodingKind {
    /// UTF-8, also for files with some invalid bytes.
    Utf8,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
}

/// Why a file cannot be read as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextDecodeError {
    /// It contains NUL bytes and is not UTF-16.
    Binary,
    /// It looks like UTF-16, but has an odd length or an unpaired surrogate.
    BrokenUtf16,
}

/// The first bytes of a file from which its encoding is detected.
pub(crate) const ENCODING_PROBE_BYTES: usize = 8192;
/// The byte order mark of UTF-8, kept on writes if the file had one.
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

impl TextEncoding {
    /// UTF-8 without a byte order mark.
    pub(crate) const UTF8: Self = Self { kind: TextEncodingKind::Utf8, bom: false };

    /// Detects the encoding from the start of a file; `None` if it is binary.
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
        // UTF-16 without a byte order mark: ASCII letters have a zero byte in the same half of each pair.
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

    /// The length of the byte order mark; 0 if there is none.
    pub(crate) fn bom_len(self) -> usize {
        match (self.bom, self.kind) {
            (false, _) => 0,
            (true, TextEncodingKind::Utf8) => 3,
            (true, TextEncodingKind::Utf16Le | TextEncodingKind::Utf16Be) => 2,
        }
    }

    /// The name for messages; `None` for plain UTF-8, which needs no mention.
    pub(crate) fn name(self) -> Option<&'static str> {
        match (self.kind, self.bom) {
            (TextEncodingKind::Utf8, false) => None,
            (TextEncodingKind::Utf8, true) => Some("UTF-8 with a byte order mark"),
            (TextEncodingKind::Utf16Le, _) => Some("UTF-16 (little-endian)"),
            (TextEncodingKind::Utf16Be, _) => Some("UTF-16 (big-endian)"),
        }
    }

    /// Decodes a file to UTF-8 without the byte order mark. A UTF-8 file is not copied.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<Cow<'_, [u8]>, TextDecodeError> {
        let body = bytes.get(self.bom_len()..).unwrap_or_default();
        match self.kind {
            TextEncodingKind::Utf8 => Ok(Cow::Borrowed(body)),
            TextEncodingKind::Utf16Le => decode_utf16(body, u16::from_le_bytes).map(Cow::Owned),
            TextEncodingKind::Utf16Be => decode_utf16(body, u16::from_be_bytes).map(Cow::Owned),
        }
    }

    /// Encodes text for a file, with the byte order mark if the encoding has one.
    pub(crate) fn encode(self, text: Vec<u8>) -> Vec<u8> {
        let to_bytes = match self.kind {
            TextEncodingKind::Utf8 if self.bom => return [UTF8_BOM, &text].concat(),
            TextEncodingKind::Utf8 => return text,
            TextEncodingKind::Utf16Le => u16::to_le_bytes,
            TextEncodingKind::Utf16Be => u16::to_be_bytes,
        };
        let bom = self.bom.then_some(0xfeff);
        let text = String::from_utf8_lossy(&text);
        bom.into_iter().chain(text.encode_utf16()).flat_map(to_bytes).collect()
    }
}

/// Detects the encoding of a whole file and decodes it. Encoding with the returned value restores the file.
pub(crate) fn decode_text(bytes: &[u8]) -> Result<(Cow<'_, [u8]>, TextEncoding), TextDecodeError> {
    let encoding = TextEncoding::detect(bytes).ok_or(TextDecodeError::Binary)?;
    Ok((encoding.decode(bytes)?, encoding))
}

/// Strict decoding: an unpaired surrogate is an error, because encoding could not restore it.
fn decode_utf16(bytes: &[u8], to_unit: fn([u8; 2]) -> u16) -> Result<Vec<u8>, TextDecodeError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(TextDecodeError::BrokenUtf16);
    }
    let units = pairs.iter().map(|pair| to_unit(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.map(String::into_bytes).map_err(|_| TextDecodeError::BrokenUtf16)
}

/// The line endings of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEndings {
    /// Every line ends in a line feed, or there is only one line.
    Lf,
    /// Every line ends in carriage return and line feed.
    Crlf,
    /// Both occur.
    Mixed,
}

impl LineEndings {
    /// The line endings of a text.
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

/// The text with every line ending in CRLF.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The number of lines; a last line without a line end counts.
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
    fn the_encoding_is_detected_from_the_first_bytes() {
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
        fn decoding_restores_what_was_encoded(text in "\\PC{0,40}", bom in any::<bool>()) {
            for kind in [TextEncodingKind::Utf8, TextEncodingKind::Utf16Le, TextEncodingKind::Utf16Be] {
                let encoding = TextEncoding { kind, bom };
                let bytes = encoding.encode(text.clone().into_bytes());
                prop_assert_eq!(encoding.decode(&bytes).unwrap().into_owned(), text.clone().into_bytes());
            }
        }
    }
}
