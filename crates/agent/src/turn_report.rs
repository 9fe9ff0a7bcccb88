//! How a turn ended.

use crate::provider::{ModelError, ModelErrorKind};
use crate::token_usage::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TurnEnding {
    /// The model is done, or refused.
    Completed,
    /// The model could not be reached, or refused the request.
    RequestFailed(ModelError),
    /// The limit of requests was reached.
    MaxTurns(u32),
    /// The budget was used up.
    MaxBudget(f64),
    /// The turn was interrupted.
    Interrupted {
        /// While calls were under way, and not while the model was writing.
        in_tools: bool,
    },
    /// The model gave no output of the wanted shape.
    StructuredOutputFailed,
    /// A hook ended it.
    HookStopped(String),
    /// The prompt stands for a text that could not be loaded.
    PromptRefused(String),
}

impl TurnEnding {
    /// Whether the turn failed.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Completed | Self::HookStopped(_) => false,
            Self::RequestFailed(_)
            | Self::MaxTurns(_)
            | Self::MaxBudget(_)
            | Self::Interrupted { .. }
            | Self::StructuredOutputFailed
            | Self::PromptRefused(_) => true,
        }
    }

    /// The subtype of the `result` frame that hosts know. A request that failed is a `success` with `is_error`.
    pub fn subtype(&self) -> &'static str {
        match self {
            Self::Completed | Self::RequestFailed(_) | Self::HookStopped(_) => "success",
            Self::MaxTurns(_) => "error_max_turns",
            Self::MaxBudget(_) => "error_max_budget_usd",
            Self::Interrupted { .. } | Self::PromptRefused(_) => "error_during_execution",
            Self::StructuredOutputFailed => "error_max_structured_output_retries",
        }
    }

    /// The reason in one word, for hosts.
    pub fn terminal_reason(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::RequestFailed(error) if error.kind == ModelErrorKind::ContextFull => "prompt_too_long",
            Self::RequestFailed(_) => "api_error",
            Self::MaxTurns(_) => "max_turns",
            Self::MaxBudget(_) => "max_budget_usd",
            Self::Interrupted { in_tools: true } => "aborted_tools",
            Self::Interrupted { in_tools: false } => "aborted_streaming",
            Self::StructuredOutputFailed => "structured_output_retries",
            Self::HookStopped(_) => "hook_stopped",
            Self::PromptRefused(_) => "prompt_refused",
        }
    }

    /// What to tell the user; none if all went well.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Completed => None,
            Self::RequestFailed(error) => Some(format!("API Error: {error}")),
            Self::MaxTurns(limit) => {
                Some(format!("the limit of {limit} turns was reached; raise --max-turns"))
            }
            Self::MaxBudget(budget) => {
                Some(format!("the budget of ${budget:.2} was used up; raise --max-budget-usd"))
            }
            Self::Interrupted { .. } => Some("the turn was interrupted".to_owned()),
            Self::StructuredOutputFailed => Some(
                "the model gave no output that fits the schema; check the schema or the prompt".to_owned(),
            ),
            Self::HookStopped(reason) | Self::PromptRefused(reason) => Some(reason.clone()),
        }
    }
}

/// A call that was denied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeniedCall {
    /// The tool.
    pub tool_name: String,
    /// The id of the call.
    pub tool_use_id: String,
    /// Its input.
    pub tool_input: Map<String, Value>,
}

/// What a turn did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TurnReport {
    /// How it ended.
    pub ending: TurnEnding,
    /// The text of the model's last answer.
    pub text: String,
    /// How many requests were made.
    pub num_turns: u32,
    /// Why the model stopped last, in the words of the Messages API.
    pub stop_reason: Option<String>,
    /// How long the turn took.
    pub duration: Duration,
    /// How long models took in it.
    pub api_duration: Duration,
    /// The tokens of the main loop in this turn.
    pub usage: TokenUsage,
    /// How many calls were made.
    pub tool_uses: u64,
    /// The calls that were denied.
    pub denials: Vec<DeniedCall>,
    /// The output in the shape that was asked for.
    pub structured_output: Option<Value>,
}

impl TurnReport {
    /// The report of a command that no model worked on. A failure of it is a turn that a hook could have ended: the
    /// session goes on.
    pub fn of_command(answer: Result<String, String>, duration: Duration) -> Self {
        let (ending, text) = match answer {
            Ok(text) => (TurnEnding::Completed, text),
            Err(problem) => (TurnEnding::HookStopped(problem), String::new()),
        };
        Self {
            ending,
            text,
            num_turns: 0,
            stop_reason: None,
            duration,
            api_duration: Duration::ZERO,
            usage: TokenUsage::default(),
            tool_uses: 0,
            denials: Vec::new(),
            structured_output: None,
        }
    }
}
