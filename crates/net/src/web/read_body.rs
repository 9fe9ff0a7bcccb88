//! Reads the body of a response, part by part, within its limits.

use super::decode_body::{BodyDecoder, ContentCoding};
use super::fetch_error::FetchError;
use super::web_client::WebLimits;
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// A body that is cut at the limit after it was decoded to this many times its size is a decompression bomb: pages are
/// compressed five to twenty times.
const MAX_DECODED_RATIO: u64 = 100;
/// What is kept of a bomb, most of what one result shows. It has nothing to read, and a document made of more would cost
/// more memory than the bomb itself.
const MAX_BOMB_BYTES: usize = 64_000;

/// A body that was read.
#[derive(Debug)]
pub(super) struct ReadBody {
    /// The decoded bytes.
    pub(super) bytes: Vec<u8>,
    /// More would have come.
    pub(super) is_cut: bool,
    /// Bytes before decoding.
    pub(super) wire_bytes: u64,
}

/// Reads and decodes a body. It is cut at a limit of size, and an error at a limit of time: a part that happened to
/// arrive is not the page.
pub(super) async fn read_body(
    mut body: Incoming,
    coding: ContentCoding,
    limits: &WebLimits,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<ReadBody, FetchError> {
    let incomplete = |received: u64, problem: String| FetchError::Incomplete { received, problem };
    let mut decoder =
        BodyDecoder::new(coding, limits.body_bytes).map_err(|error| incomplete(0, error.to_string()))?;
    let mut wire_bytes = 0_u64;
    let mut is_cut = false;
    loop {
        let frame = tokio::time::timeout(limits.idle, body.frame())
            .await
            .map_err(|_| FetchError::TimedOut { what: "the rest of the page", after: limits.idle })?;
        let data = match frame {
            None => break,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                // Trailers: nothing in them is used.
                Err(_) => continue,
            },
            Some(Err(error)) => return Err(incomplete(wire_bytes, error.to_string())),
        };
        wire_bytes += data.len() as u64;
        progress(wire_bytes);
        let wants_more = decoder.push(&data).map_err(|problem| incomplete(wire_bytes, problem))?;
        if !wants_more || wire_bytes > limits.wire_bytes {
            is_cut = true;
            break;
        }
    }
    let (mut bytes, is_cut) = decoder.finish(is_cut).map_err(|problem| incomplete(wire_bytes, problem))?;
    if is_cut && bytes.len() as u64 / MAX_DECODED_RATIO > wire_bytes {
        bytes.truncate(MAX_BOMB_BYTES);
        bytes.shrink_to_fit();
    }
    Ok(ReadBody { bytes, is_cut, wire_bytes })
}
