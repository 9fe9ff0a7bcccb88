//! What a model asked for.

use crate::{CallId, ToolName};
use serde::{Deserialize, Serialize};

/// One request of a model, as it arrived. Nothing in it is trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the result must carry.
    pub id: CallId,
    /// The name the model used; may be an alias, may be nonsense.
    pub name: ToolName,
    /// The input as the JSON text that was received. It stays text until the gate reads it strictly,
    /// because a lenient reader in front of the gate would hide duplicate keys from it.
    pub input: String,
}

impl ToolCall {
    /// A call with the given parts.
    pub fn new(id: impl Into<CallId>, name: impl Into<ToolName>, input: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), input: input.into() }
    }
}
