//! What a run wants of its agent.

use crate::project_instructions::LoadedInstructions;
use crate::provider::ThinkingMode;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How much effort a model can be asked to make. Which of them it knows depends on the model.
pub const EFFORT_LEVELS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The most tokens of an answer where the caller does not say.
const DEFAULT_MAX_TOKENS: u64 = 32_000;
/// The size of the context window where it is not known.
const DEFAULT_CONTEXT_TOKENS: u64 = 200_000;

/// How long a session waits for its user before hooks are notified, where the caller does not say.
const DEFAULT_IDLE_DELAY: Duration = Duration::from_secs(60);

/// What a run wants of its agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentSettings {
    /// The model.
    pub model: String,
    /// Models that have a shorter name, such as `sonnet`: the names that agents and skills use.
    pub model_aliases: BTreeMap<String, String>,
    /// The model to use when the first is overloaded.
    pub fallback_model: Option<String>,
    /// The system prompt, whole.
    pub system_prompt: String,
    /// Text that the model gets before the first prompt: the instructions of the project.
    pub first_context: Option<String>,
    /// The files that these instructions come from.
    pub instruction_files: Vec<LoadedInstructions>,
    /// The most requests of one turn.
    pub max_turns: Option<u32>,
    /// The most tokens of one answer.
    pub max_tokens: u64,
    /// Whether the model thinks.
    pub thinking: ThinkingMode,
    /// How its thinking is returned (`summarized`, `omitted`); only the Messages API can be told.
    pub thinking_display: Option<String>,
    /// How much effort it makes.
    pub effort: Option<String>,
    /// The budget in tokens that is announced to the model; only the Messages API has a field for it.
    pub task_budget: Option<u64>,
    /// The schema that the output of a turn must fit.
    pub output_schema: Option<Value>,
    /// How long a session waits for its user before hooks are notified.
    pub idle_delay: Duration,
    /// The size of the context window.
    pub context_tokens: u64,
    /// Whether the conversation is compacted when the window is nearly full.
    pub auto_compact: bool,
}

impl AgentSettings {
    /// Settings for a model, with the usual limits.
    pub fn new(model: impl Into<String>, system_prompt: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            model_aliases: BTreeMap::new(),
            fallback_model: None,
            system_prompt: system_prompt.into(),
            first_context: None,
            instruction_files: Vec::new(),
            max_turns: None,
            max_tokens: DEFAULT_MAX_TOKENS,
            thinking: ThinkingMode::default(),
            thinking_display: None,
            effort: None,
            task_budget: None,
            output_schema: None,
            idle_delay: DEFAULT_IDLE_DELAY,
            context_tokens: DEFAULT_CONTEXT_TOKENS,
            auto_compact: true,
        }
    }

    /// The model that a name means; none if it means the one of the session.
    pub fn resolve_model(&self, name: &str) -> Option<String> {
        match name.trim() {
            "" | "inherit" | "default" => None,
            name => Some(self.model_aliases.get(name).cloned().unwrap_or_else(|| name.to_owned())),
        }
    }
}
