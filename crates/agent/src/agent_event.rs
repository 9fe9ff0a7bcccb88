//! What an agent reports while it works.

use crate::conversation::ConversationMessage;
use crate::provider::{ModelError, ModelEvent};
use crate::token_usage::TokenUsage;
use serde_json::{Map, Value};
use std::time::Duration;
use toolgate_gate::CallOutcome;

/// Watches agents. Called in order, and must be quick: the agent waits.
pub trait AgentObserver: Send + Sync {
    /// Something happened.
    fn observe(&self, origin: &AgentOrigin, event: &AgentEvent);
}

/// Which agent an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AgentOrigin {
    /// The subagent; absent for the main loop.
    pub agent_id: Option<String>,
    /// The type of the subagent.
    pub agent_type: Option<String>,
    /// The call that started the subagent.
    pub parent_call: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A turn begins.
    TurnStarted,
    /// A message of the user, as the model gets it.
    Prompted {
        /// The id of the message, by which files can be rewound to it.
        id: String,
        /// The message.
        message: ConversationMessage,
    },
    /// Messages of other agents, as the model gets them.
    Messaged(ConversationMessage),
    /// A request is sent.
    Requested {
        /// The model.
        model: String,
    },
    /// Events of the model's stream that arrived together, in order. The end of a block is the last of its group.
    Streamed(Vec<ModelEvent>),
    /// The model completed a block.
    BlockFinished {
        /// The provider's id of the answer.
        message: String,
        /// The model.
        model: String,
        /// The block.
        block: Value,
        /// The tokens of the answer so far.
        usage: TokenUsage,
    },
    /// A call ended and its result goes to the model.
    CallFinished(Box<FinishedAgentCall>),
    /// A request failed and is repeated.
    Retrying(RetryNotice),
    /// A request failed for good.
    RequestFailed(ModelError),
    /// Something that the user should know.
    Noticed(String),
    /// A hook starts, for a call or around calls.
    HookStarted(HookRunNotice),
    /// A hook ended.
    HookEnded {
        /// Which one.
        hook: HookRunNotice,
        /// How it ended.
        outcome: HookRunOutcome,
        /// What it decided, or why it failed.
        detail: String,
    },
    /// The conversation was replaced by a summary of itself.
    Compacted {
        /// Why: `auto` or `manual`.
        trigger: &'static str,
        /// The tokens of the context before.
        tokens_before: u64,
        /// The conversation that replaces the old one.
        messages: Vec<ConversationMessage>,
    },
    /// A subagent began.
    TaskStarted(TaskNotice),
    /// A subagent used a tool.
    TaskProgressed {
        /// Which one.
        task: TaskNotice,
        /// The tool.
        last_tool: String,
        /// How many calls it has made.
        tool_uses: u64,
        /// Its tokens so far.
        usage: TokenUsage,
        /// How long it has run.
        duration: Duration,
    },
    /// A subagent ended.
    TaskEnded {
        /// Which one.
        task: TaskNotice,
        /// `completed`, `failed` or `stopped`.
        status: &'static str,
        /// What became of it, in one line.
        summary: String,
        /// How many calls it made.
        tool_uses: u64,
        /// Its tokens.
        usage: TokenUsage,
        /// How long it ran.
        duration: Duration,
    },
}

/// One run of a hook, for events about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookRunNotice {
    /// The id of the run: its start and its end have the same.
    pub run: String,
    /// The event that it runs for, such as `PreToolUse` or `Stop`.
    pub event: String,
    /// The name of the hook.
    pub name: String,
}

/// How a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookRunOutcome {
    /// It ran, whatever it decided.
    Success,
    /// It failed.
    Error,
    /// It was given up, because its call or its turn was interrupted.
    Cancelled,
}

impl HookRunOutcome {
    /// The word that hosts know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A subagent, for events about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskNotice {
    /// Its id.
    pub task_id: String,
    /// The call that started it.
    pub call: String,
    /// What it is for, in a few words.
    pub description: String,
    /// Its type.
    pub agent_type: String,
    /// Whether the parent does not wait for it.
    pub is_background: bool,
}

/// A call that ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinishedAgentCall {
    /// The id of the call.
    pub id: String,
    /// The tool, as the model named it.
    pub name: String,
    /// The input as the model wrote it, if it is an object.
    pub input: Map<String, Value>,
    /// The result and the record.
    pub outcome: CallOutcome,
    /// The result as a block of the conversation.
    pub block: Value,
}

/// A request that is about to be repeated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RetryNotice {
    /// How many attempts failed.
    pub attempt: u32,
    /// How many there are at most after the first.
    pub max_retries: u32,
    /// How long until the next.
    pub delay: Duration,
    /// Why the last one failed.
    pub error: ModelError,
}
