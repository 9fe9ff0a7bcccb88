//! JSON-RPC messages of a server.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// The method or parameter is not known.
pub(crate) const METHOD_NOT_FOUND_CODE: i64 = -32601;
/// The content changed while the server worked on the answer.
pub(crate) const CONTENT_MODIFIED_CODE: i64 = -32801;
/// The server gave up the request and asks to repeat it.
pub(crate) const SERVER_CANCELLED_CODE: i64 = -32802;
/// The longest error message that is kept: servers send stack traces.
const MAX_ERROR_CHARS: usize = 300;

/// An error that a server answers with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RpcError {
    /// The code of JSON-RPC or of the protocol.
    pub code: i64,
    /// The text of the server.
    #[serde(default)]
    pub message: String,
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.message.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(MAX_ERROR_CHARS).collect();
        write!(f, "{shown} (code {})", self.code)
    }
}

/// A message of a server.
#[derive(Debug)]
pub enum ServerMessage {
    /// The answer to a request of toolgate.
    Response {
        /// The id of the request.
        id: u64,
        /// The result as JSON text, or an error.
        result: Result<Box<RawValue>, RpcError>,
    },
    /// A request of the server, which must be answered.
    Request {
        /// Its id, as JSON text, to be sent back unchanged.
        id: Box<RawValue>,
        /// The method.
        method: String,
        /// Its parameters.
        params: Option<Box<RawValue>>,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// Its parameters.
        params: Option<Box<RawValue>>,
    },
    /// Valid JSON-RPC that answers no request of toolgate: an id of another type, or none.
    Unrelated,
}

/// All fields that a message may have; which are present decides its kind.
#[derive(Deserialize)]
struct RawMessage {
    /// The id as JSON text; absent in a notification.
    id: Option<Box<RawValue>>,
    /// The method of a request or notification; absent in an answer.
    method: Option<String>,
    /// The parameters, parsed later by the handler of the method.
    params: Option<Box<RawValue>>,
    /// The result of an answer; absent counts as `null`.
    result: Option<Box<RawValue>>,
    /// The error of an answer; it takes precedence over a result.
    error: Option<RpcError>,
}

/// Parses the body of a message. What is not a JSON object of JSON-RPC is an error.
pub fn parse_message(body: &[u8]) -> Result<ServerMessage, String> {
    let raw: RawMessage = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let id = raw.id.filter(|id| id.get() != "null");
    Ok(match (raw.method, id) {
        (Some(method), Some(id)) => ServerMessage::Request { id, method, params: raw.params },
        (Some(method), None) => ServerMessage::Notification { method, params: raw.params },
        (None, Some(id)) => match (id.get().parse(), raw.error) {
            (Ok(id), Some(error)) => ServerMessage::Response { id, result: Err(error) },
            (Ok(id), None) => ServerMessage::Response { id, result: Ok(raw.result.unwrap_or_else(null)) },
            (Err(_), _) => ServerMessage::Unrelated,
        },
        (None, None) => ServerMessage::Unrelated,
    })
}

/// The JSON value `null`.
pub(crate) fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_of_message_is_told_apart() {
        let parse = |text: &str| parse_message(text.as_bytes());
        assert!(matches!(
            parse(r#"{"id":1,"result":null}"#),
            Ok(ServerMessage::Response { id: 1, result: Ok(value) }) if value.get() == "null"
        ));
        assert!(matches!(
            parse(r#"{"id":2,"error":{"code":-32601}}"#),
            Ok(ServerMessage::Response { id: 2, result: Err(RpcError { code: METHOD_NOT_FOUND_CODE, .. }) })
        ));
        assert!(matches!(
            parse(r#"{"id":"x","method":"a","params":[]}"#),
            Ok(ServerMessage::Request { id, .. }) if id.get() == "\"x\""
        ));
        assert!(matches!(parse(r#"{"method":"a"}"#), Ok(ServerMessage::Notification { params: None, .. })));
        assert!(matches!(parse(r#"{"id":"x","result":1}"#), Ok(ServerMessage::Unrelated)));
        assert!(matches!(parse(r#"{"id":null,"result":1}"#), Ok(ServerMessage::Unrelated)));
        assert!(parse("[]").is_err() && parse("{").is_err() && parse(&"[".repeat(100_000)).is_err());
    }
}
