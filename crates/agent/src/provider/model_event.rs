//! The one event type of all providers.

use crate::token_usage::TokenUsage;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// An event of a model's stream. Blocks and deltas have the shape of the Messages API, whatever the provider.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The answer begins.
    Started {
        /// The provider's id of the answer.
        id: String,
        /// The model that answers.
        model: String,
        /// The tokens of the input, if they are known by now.
        usage: TokenUsage,
    },
    /// A content block begins.
    BlockStarted {
        /// Its place in the answer.
        index: usize,
        /// The block, still empty.
        block: Value,
    },
    /// A piece of a block.
    BlockDelta {
        /// The block's place.
        index: usize,
        /// The piece.
        delta: BlockPiece,
    },
    /// A block is complete: nothing can be added to it any more.
    BlockFinished {
        /// Its place.
        index: usize,
        /// The block, whole.
        block: ModelBlock,
    },
    /// Why the model stopped, and all tokens of the answer.
    Stopped {
        /// The reason.
        reason: StopReason,
        /// The reason in the words of the Messages API.
        words: String,
        /// The tokens of the answer.
        usage: TokenUsage,
    },
    /// The answer is complete.
    Ended,
    /// The provider reports an error inside the stream.
    Failed {
        /// The provider's type of the error.
        kind: String,
        /// Its message.
        message: String,
    },
}

/// A piece of a block, in the shape of the Messages API. Typed, because a fast stream has thousands of them a second and a
/// tree of values for each costs several times as much.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum BlockPiece {
    /// Text.
    #[serde(rename = "text_delta")]
    Text {
        /// What is added.
        text: String,
    },
    /// Thinking.
    #[serde(rename = "thinking_delta")]
    Thinking {
        /// What is added.
        thinking: String,
    },
    /// The signature of thinking.
    #[serde(rename = "signature_delta")]
    Signature {
        /// What is added.
        signature: String,
    },
    /// The input of a call, as text.
    #[serde(rename = "input_json_delta")]
    Input {
        /// What is added.
        partial_json: String,
    },
    /// A piece of another kind, as it came.
    #[serde(untagged)]
    Other(Value),
}

impl BlockPiece {
    /// The text that it adds.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Other(delta) => delta.get("text").and_then(Value::as_str),
            _ => None,
        }
    }

    /// The thinking that it adds.
    pub fn thinking(&self) -> Option<&str> {
        match self {
            Self::Thinking { thinking } => Some(thinking),
            Self::Other(delta) => delta.get("thinking").and_then(Value::as_str),
            _ => None,
        }
    }
}

/// A complete block.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelBlock {
    /// Text, thinking and whatever else goes back to the provider as it is.
    Content(Value),
    /// A call of a tool.
    Call(ModelCall),
}

/// A call of a tool, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelCall {
    /// The id that its result must carry.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The input as text: the gate reads it strictly.
    pub input: String,
}

impl ModelCall {
    /// Creates a call with the provider's id of it, and the input as JSON text.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), input: input.into() }
    }
}

impl ModelBlock {
    /// The block as it is kept in the conversation.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Content(value) => value.clone(),
            Self::Call(call) => {
                // Providers accept only an object; what the model wrote instead is kept as text.
                let input = match serde_json::from_str::<Value>(&call.input) {
                    Ok(Value::Object(map)) => map,
                    Ok(_) | Err(_) if call.input.trim().is_empty() => Map::new(),
                    Ok(_) | Err(_) => Map::from_iter([("invalid_json".to_owned(), json!(call.input))]),
                };
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
            }
        }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It is done.
    Done,
    /// It wants the results of its calls.
    ToolUse,
    /// The answer reached its limit in tokens.
    MaxTokens,
    /// The conversation fills the context window.
    ContextFull,
    /// It pauses a long turn and wants it sent back unchanged.
    Pause,
    /// It refuses, or a filter stopped it.
    Refused,
}

impl StopReason {
    /// The reason in the words of the Messages API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::ContextFull => "model_context_window_exceeded",
            Self::Pause => "pause_turn",
            Self::Refused => "refusal",
        }
    }

    /// The event that ends an answer for this reason.
    pub(crate) fn stopped(self, usage: TokenUsage) -> ModelEvent {
        ModelEvent::Stopped { reason: self, words: self.as_str().to_owned(), usage }
    }
}

/// An event as the Messages API streams it.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagesEvent<'a> {
    /// The answer begins.
    MessageStart {
        /// The message, still empty.
        message: Value,
    },
    /// A block begins.
    ContentBlockStart {
        /// Its place.
        index: usize,
        /// The block, still empty.
        content_block: &'a Value,
    },
    /// A piece of a block.
    ContentBlockDelta {
        /// The block's place.
        index: usize,
        /// The piece.
        delta: &'a BlockPiece,
    },
    /// A block is complete.
    ContentBlockStop {
        /// Its place.
        index: usize,
    },
    /// Why the model stopped.
    MessageDelta {
        /// The reason.
        delta: Value,
        /// All tokens of the answer.
        usage: TokenUsage,
    },
    /// The answer is complete.
    MessageStop,
}

impl ModelEvent {
    /// The event as the Messages API streams it, for hosts that want raw events; none for an error.
    pub fn to_messages_event(&self) -> Option<MessagesEvent<'_>> {
        Some(match self {
            Self::Started { id, model, usage } => MessagesEvent::MessageStart {
                message: json!({
                    "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": usage,
                }),
            },
            Self::BlockStarted { index, block } => {
                MessagesEvent::ContentBlockStart { index: *index, content_block: block }
            }
            Self::BlockDelta { index, delta } => MessagesEvent::ContentBlockDelta { index: *index, delta },
            Self::BlockFinished { index, .. } => MessagesEvent::ContentBlockStop { index: *index },
            Self::Stopped { words, usage, .. } => MessagesEvent::MessageDelta {
                delta: json!({ "stop_reason": words, "stop_sequence": null }),
                usage: *usage,
            },
            Self::Ended => MessagesEvent::MessageStop,
            Self::Failed { .. } => return None,
        })
    }
}
