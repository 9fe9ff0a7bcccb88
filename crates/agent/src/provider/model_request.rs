//! What is asked of a model, before a codec puts it into a provider's words.

use crate::conversation::ConversationMessage;
use toolgate_proto::ToolDefinition;

/// One request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model.
    pub model: String,
    /// The system prompt; empty means none.
    pub system: String,
    /// The conversation, well formed.
    pub messages: Vec<ConversationMessage>,
    /// The tools on offer.
    pub tools: Vec<ToolDefinition>,
    /// The most tokens that the answer may have; required by the Messages API.
    pub max_tokens: u64,
    /// Whether and how the model thinks before it answers.
    pub thinking: ThinkingMode,
    /// How the thinking is returned (`summarized`, `omitted`); only the Messages API can be told.
    pub thinking_display: Option<String>,
    /// How much effort the model makes (`low` … `max`).
    pub effort: Option<String>,
    /// The budget in tokens that is announced to the model; only the Messages API has a field for it.
    pub task_budget: Option<u64>,
}

impl ModelRequest {
    /// A request without a system prompt and tools. `max_tokens` limits the answer.
    pub fn new(model: impl Into<String>, messages: Vec<ConversationMessage>, max_tokens: u64) -> Self {
        Self {
            model: model.into(),
            system: String::new(),
            messages,
            tools: Vec::new(),
            max_tokens,
            thinking: ThinkingMode::default(),
            thinking_display: None,
            effort: None,
            task_budget: None,
        }
    }

    /// Sets the system prompt.
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = system.into();
        self
    }

    /// Sets the tools on offer.
    pub fn with_tools(mut self, tools: Vec<ToolDefinition>) -> Self {
        self.tools = tools;
        self
    }
}

/// Whether a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThinkingMode {
    /// As the model does by default.
    #[default]
    Unset,
    /// Not at all.
    Disabled,
    /// As much as the model finds useful.
    Adaptive,
    /// Up to this many tokens.
    Budget(u64),
}
