//! A tool call, as it arrives from a model.

use crate::{CallId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields that say most about a call, in the order in which they are looked for.
const MAIN_FIELDS: &[&str] = &[
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "query",
    "description",
    "subject",
    "prompt",
];

/// One tool call of a model. Its content is untrusted until the gate has validated it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that the result has to carry, so that the provider can match the two.
    pub id: CallId,
    /// The name that the model used. It may be an alias, or the name of no tool.
    pub name: ToolName,
    /// The input, as the JSON text that was received. It stays text until the gate parses it strictly: a lenient parser
    /// in front of the gate would drop duplicate keys, and the gate could not see that there were any.
    pub input: String,
}

impl ToolCall {
    /// Creates a call from its id, the name of the tool, and the JSON text of the input.
    pub fn new(id: impl Into<CallId>, name: impl Into<ToolName>, input: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), input: input.into() }
    }
}

/// The argument of a call that says most about it, for titles and progress lines. What a call would do is its intent; no
/// decision is made on this.
///
/// ```
/// use toolgate_proto::main_argument;
///
/// let input = serde_json::json!({ "description": "builds", "command": "cargo build", "timeout": 5 });
/// assert_eq!(main_argument(input.as_object().unwrap()), Some("cargo build"));
/// ```
pub fn main_argument(input: &Map<String, Value>) -> Option<&str> {
    MAIN_FIELDS.iter().find_map(|field| input.get(*field).and_then(Value::as_str))
}
