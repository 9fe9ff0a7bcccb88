//! Messages of language servers: any bytes are read or refused within the limits, and what is framed is read back.

use toolgate_lsp::{FrameScan, MAX_BODY_BYTES, frame_message, parse_message, scan_frame};

/// Checks a text as the output of a server.
pub(crate) fn check(text: &str) {
    let bytes = text.as_bytes();
    if let Ok(FrameScan::Found { body_start, body_end }) = scan_frame(bytes) {
        assert!(body_start <= bytes.len() && body_end - body_start <= MAX_BODY_BYTES);
        if let Some(body) = bytes.get(body_start..body_end) {
            let _ = parse_message(body);
        }
    }
    let _ = parse_message(bytes);
    let framed = frame_message(bytes);
    match scan_frame(&framed) {
        Ok(FrameScan::Found { body_start, body_end }) => assert_eq!(&framed[body_start..body_end], bytes),
        other => panic!("a framed message was not read back: {other:?}"),
    }
}
