//! The framing of the Language Server Protocol: a header with `Content-Length`, an empty line, a body of that length.
//!
//! A server is not trusted: the length of a header and of a body is limited, and no memory is reserved for a body that was
//! only announced.
//! Lines that are no header are skipped, because real servers print warnings to standard output before they serve; a
//! strict reader would end a server that works.

use std::fmt;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes before a body: the header, and the skipped lines before it that are not part of a header.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The most bytes of a body.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// How much is read at once.
const READ_CHUNK_BYTES: usize = 64 * 1024;
/// The name of the header that counts.
const LENGTH_HEADER: &[u8] = b"content-length";

/// Why the bytes of a server are no messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FramingError {
    /// No complete header within the limit.
    HeaderTooLong,
    /// `Content-Length` is not a number, or there are two that differ.
    InvalidLength(String),
    /// The announced body is larger than the limit.
    BodyTooLarge(u64),
    /// The stream ended inside a message.
    Truncated,
    /// The stream could not be read.
    Io(String),
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeaderTooLong => {
                write!(f, "it sent more than {} KiB without a message header", MAX_HEADER_BYTES / 1024)
            }
            Self::InvalidLength(text) => write!(f, "it sent the invalid message length `{text}`"),
            Self::BodyTooLarge(bytes) => {
                write!(
                    f,
                    "it announced a message of {bytes} bytes; the limit is {} MiB",
                    MAX_BODY_BYTES / (1024 * 1024)
                )
            }
            Self::Truncated => f.write_str("it closed its output in the middle of a message"),
            Self::Io(problem) => write!(f, "its output cannot be read: {problem}"),
        }
    }
}

/// What a buffer starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameScan {
    /// More bytes are needed to find the end of the header.
    Incomplete,
    /// A header, and where its body is; the buffer need not have all of it yet.
    Found {
        /// The offset of the body.
        body_start: usize,
        /// The offset after the body.
        body_end: usize,
    },
}

/// Looks for a message at the start of a buffer.
pub fn scan_frame(buffer: &[u8]) -> Result<FrameScan, FramingError> {
    let mut length: Option<usize> = None;
    let mut offset = 0;
    while let Some(rest) = buffer.get(offset..)
        && let Some(end) = rest.iter().take(MAX_HEADER_BYTES).position(|byte| *byte == b'\n')
    {
        let line = rest.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        offset += end + 1;
        if offset > MAX_HEADER_BYTES {
            return Err(FramingError::HeaderTooLong);
        }
        match (line.is_empty(), length) {
            (true, Some(length)) => {
                return Ok(FrameScan::Found { body_start: offset, body_end: offset + length });
            }
            (true, None) => {}
            (false, _) => match (parse_length(line)?, length) {
                (Some(new), Some(old)) if new != old => {
                    return Err(FramingError::InvalidLength(format!("{old}, then {new}")));
                }
                (Some(new), _) => length = Some(new),
                (None, _) => {}
            },
        }
    }
    if buffer.len() > MAX_HEADER_BYTES {
        return Err(FramingError::HeaderTooLong);
    }
    Ok(FrameScan::Incomplete)
}

/// The value of a line that is the length header; `None` for any other line.
fn parse_length(line: &[u8]) -> Result<Option<usize>, FramingError> {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return Ok(None) };
    let (name, value) = line.split_at(colon);
    if !name.trim_ascii().eq_ignore_ascii_case(LENGTH_HEADER) {
        return Ok(None);
    }
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    let invalid = || {
        let shown: String = String::from_utf8_lossy(value).chars().take(40).collect();
        FramingError::InvalidLength(shown)
    };
    // `parse` would take a sign.
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    let number: u64 =
        std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or_else(invalid)?;
    match usize::try_from(number) {
        Ok(length) if length <= MAX_BODY_BYTES => Ok(Some(length)),
        _ => Err(FramingError::BodyTooLarge(number)),
    }
}

/// Reads messages from the standard output of a server.
#[derive(Debug)]
pub struct MessageReader<R> {
    /// The standard output of the server.
    stream: R,
    /// The bytes that were read and not returned yet; they may start in the middle of a message.
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    /// A reader of this stream.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// The body of the next message; `None` at the end of the stream.
    pub async fn read_message(&mut self) -> Result<Option<Vec<u8>>, FramingError> {
        let (body_start, body_end) = loop {
            match scan_frame(&self.buffer)? {
                FrameScan::Found { body_start, body_end } => break (body_start, body_end),
                FrameScan::Incomplete => {
                    if self.fill().await? == 0 {
                        // Lines that are no header may end the stream: the last words of a program that crashed.
                        return Ok(None);
                    }
                }
            }
        };
        while self.buffer.len() < body_end {
            if self.fill().await? == 0 {
                return Err(FramingError::Truncated);
            }
        }
        let rest = self.buffer.split_off(body_end);
        let mut body = std::mem::replace(&mut self.buffer, rest);
        body.drain(..body_start);
        Ok(Some(body))
    }

    /// Reads one chunk and returns its size; 0 at the end of the stream.
    async fn fill(&mut self) -> Result<usize, FramingError> {
        self.buffer.reserve(READ_CHUNK_BYTES);
        let mut limited = (&mut self.stream).take(READ_CHUNK_BYTES as u64);
        limited.read_buf(&mut self.buffer).await.map_err(|error| FramingError::Io(error.to_string()))
    }
}

/// A message as it is sent.
pub fn frame_message(body: &[u8]) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn read_all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, FramingError> {
        let mut reader = MessageReader::new(bytes);
        let mut messages = Vec::new();
        while let Some(message) = reader.read_message().await? {
            messages.push(message);
        }
        Ok(messages)
    }

    proptest! {
        #[test]
        fn what_is_framed_is_read_back_whatever_lines_stand_between(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6),
            noise in "[a-z ]{0,20}",
        ) {
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend_from_slice(noise.as_bytes());
                stream.extend_from_slice(b"\n");
                stream.extend_from_slice(&frame_message(body));
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            prop_assert_eq!(runtime.block_on(read_all(&stream)).unwrap(), bodies);
        }

        #[test]
        fn any_bytes_end_without_a_panic_and_within_the_limits(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            if let Ok(FrameScan::Found { body_start, body_end }) = scan_frame(&bytes) {
                prop_assert!(body_start <= bytes.len() && body_end - body_start <= MAX_BODY_BYTES);
            }
        }
    }

    #[tokio::test]
    async fn hostile_headers_are_errors() {
        let endless = vec![b'x'; MAX_HEADER_BYTES + 2];
        assert_eq!(read_all(&endless).await, Err(FramingError::HeaderTooLong));
        let lines = b"noise\n".repeat(MAX_HEADER_BYTES / 6 + 2);
        assert_eq!(read_all(&lines).await, Err(FramingError::HeaderTooLong));
        for (header, error) in [
            ("Content-Length: -1\r\n\r\n", FramingError::InvalidLength("-1".to_owned())),
            ("Content-Length: +5\r\n\r\n", FramingError::InvalidLength("+5".to_owned())),
            ("Content-Length:\r\n\r\n", FramingError::InvalidLength(String::new())),
            ("Content-Length: 99999999999\r\n\r\n", FramingError::BodyTooLarge(99_999_999_999)),
            (
                "Content-Length: 1\r\ncontent-length: 2\r\n\r\n",
                FramingError::InvalidLength("1, then 2".to_owned()),
            ),
            ("Content-Length: 5\r\n\r\nab", FramingError::Truncated),
        ] {
            assert_eq!(read_all(header.as_bytes()).await, Err(error), "{header}");
        }
        assert_eq!(read_all(b"warning: old node\n").await, Ok(Vec::new()));
    }
}
