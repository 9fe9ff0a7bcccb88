//! Frames from the host.

use serde_json::{Value, json};
use toolgate_proto::json::{JsonLimits, parse_object};

/// The longest line that a host may send.
pub(crate) const MAX_INPUT_BYTES: usize = 64 * 1024 * 1024;

/// A frame from the host.
#[derive(Debug, Clone, PartialEq)]
pub enum HostInput {
    /// A prompt.
    Prompt(HostPrompt),
    /// A request that wants an answer.
    Request {
        /// The id that the answer carries.
        id: String,
        /// The request.
        request: Value,
    },
    /// The answer to one of our requests.
    Answer(Value),
    /// The host withdraws a request.
    Cancel(String),
    /// A frame without a meaning for us.
    Ignored,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HostPrompt {
    /// Its id.
    pub id: String,
    /// Its content blocks.
    pub content: Vec<Value>,
    /// A program wrote it, so that a `/` at its start is not a command.
    pub is_composed: bool,
    /// It wants a turn; otherwise it goes to the model with the next prompt that wants one.
    pub wants_turn: bool,
    /// Before which others it runs.
    pub priority: PromptPriority,
}

/// When a prompt that waits gets its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum PromptPriority {
    /// Before all others.
    Now,
    /// In the order of arrival.
    #[default]
    Next,
    /// After all others.
    Later,
}

impl HostPrompt {
    /// A prompt of one text.
    pub fn text(text: &str) -> Self {
        let content = vec![json!({ "type": "text", "text": text })];
        Self {
            id: toolgate_files::generate_uuid(),
            content,
            is_composed: false,
            wants_turn: true,
            priority: PromptPriority::default(),
        }
    }
}

/// Reads one line.
pub fn parse_host_line(line: &str) -> Result<HostInput, String> {
    let limits = JsonLimits { bytes: MAX_INPUT_BYTES, ..JsonLimits::CALL };
    let frame = parse_object(line, limits).map_err(|problem| problem.to_string())?;
    let text = |key: &str| frame.get(key).and_then(Value::as_str).unwrap_or_default();
    Ok(match text("type") {
        "user" => HostInput::Prompt(read_prompt(&Value::Object(frame.clone()))?),
        "control_request" => HostInput::Request {
            id: text("request_id").to_owned(),
            request: frame.get("request").cloned().unwrap_or_default(),
        },
        "control_response" => HostInput::Answer(frame.get("response").cloned().unwrap_or_default()),
        "control_cancel_request" => HostInput::Cancel(text("request_id").to_owned()),
        _ => HostInput::Ignored,
    })
}

/// A prompt, as text or as blocks.
fn read_prompt(frame: &Value) -> Result<HostPrompt, String> {
    let content = match frame.pointer("/message/content") {
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => return Err("a user message has no `content`".to_owned()),
    };
    let id = frame.get("uuid").and_then(Value::as_str).filter(|id| !id.is_empty());
    Ok(HostPrompt {
        id: id.map_or_else(toolgate_files::generate_uuid, str::to_owned),
        content,
        is_composed: frame.get("client_composed") == Some(&Value::Bool(true)),
        wants_turn: frame.get("shouldQuery") != Some(&Value::Bool(false)),
        priority: match frame.get("priority").and_then(Value::as_str) {
            Some("now") => PromptPriority::Now,
            Some("later") => PromptPriority::Later,
            _ => PromptPriority::Next,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_is_read_and_a_broken_line_is_an_error() {
        let prompt =
            parse_host_line(r#"{"type":"user","message":{"role":"user","content":"hi"},"uuid":"u1"}"#);
        let wanted = HostPrompt { id: "u1".to_owned(), is_composed: false, ..HostPrompt::text("hi") };
        assert_eq!(prompt, Ok(HostInput::Prompt(wanted.clone())));
        let appended = parse_host_line(
            r#"{"type":"user","message":{"content":"hi"},"uuid":"u1","shouldQuery":false,"priority":"later"}"#,
        );
        let wanted = HostPrompt { wants_turn: false, priority: PromptPriority::Later, ..wanted };
        assert_eq!(appended, Ok(HostInput::Prompt(wanted)));
        assert_eq!(
            parse_host_line(
                r#"{"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}"#
            ),
            Ok(HostInput::Request { id: "r".to_owned(), request: json!({ "subtype": "interrupt" }) })
        );
        assert_eq!(
            parse_host_line(r#"{"type":"control_cancel_request","request_id":"r"}"#),
            Ok(HostInput::Cancel("r".to_owned()))
        );
        assert_eq!(parse_host_line(r#"{"type":"keep_alive"}"#), Ok(HostInput::Ignored));
        for broken in ["", "{", "[]", r#"{"type":"user"}"#, r#"{"type":"user","type":"user"}"#] {
            assert!(parse_host_line(broken).is_err(), "{broken}");
        }
    }
}
