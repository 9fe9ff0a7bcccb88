//! What one turn has done so far.

use crate::token_usage::TokenUsage;
use crate::turn_report::{DeniedCall, TurnEnding, TurnReport};
use serde_json::Value;
use std::time::{Duration, Instant};

/// What one turn has done so far.
pub(crate) struct TurnState {
    /// When it began.
    pub(crate) started: Instant,
    /// How many requests were made.
    pub(crate) num_turns: u32,
    /// The tokens of its answers.
    pub(crate) usage: TokenUsage,
    /// The text of the last answer.
    pub(crate) text: String,
    /// Why the model stopped last.
    pub(crate) stop_reason: Option<String>,
    /// The calls that were denied.
    pub(crate) denials: Vec<DeniedCall>,
    /// How many calls were made.
    pub(crate) tool_uses: u64,
    /// How many answers in a row were cut.
    pub(crate) cut_answers: u32,
    /// How often hooks kept it from ending.
    pub(crate) stop_blocks: u32,
    /// How often the conversation was compacted.
    pub(crate) compactions: u32,
    /// How often the output was asked for.
    pub(crate) output_requests: u32,
    /// The output that was handed over.
    pub(crate) structured_output: Option<Value>,
    /// How long the requests took.
    pub(crate) api_duration: Duration,
}

impl TurnState {
    /// A turn that begins now.
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            num_turns: 0,
            usage: TokenUsage::default(),
            text: String::new(),
            stop_reason: None,
            denials: Vec::new(),
            tool_uses: 0,
            cut_answers: 0,
            stop_blocks: 0,
            compactions: 0,
            output_requests: 0,
            structured_output: None,
            api_duration: Duration::ZERO,
        }
    }

    /// What the turn did, once its end is known.
    pub(crate) fn into_report(self, ending: TurnEnding) -> TurnReport {
        TurnReport {
            ending,
            text: self.text,
            num_turns: self.num_turns,
            stop_reason: self.stop_reason,
            duration: self.started.elapsed(),
            api_duration: self.api_duration,
            usage: self.usage,
            tool_uses: self.tool_uses,
            denials: self.denials,
            structured_output: self.structured_output,
        }
    }
}
