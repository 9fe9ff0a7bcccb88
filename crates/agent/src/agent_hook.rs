//! Hooks for what happens around calls: prompts, the end of a turn, compaction.
//!
//! Hooks for calls themselves belong to the gate; these are the events that only a loop has.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// An event of an agent for which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentHookEvent {
    /// A session begins or is resumed.
    SessionStart,
    /// Before a prompt goes to the model.
    UserPromptSubmit,
    /// The main loop is about to end its turn.
    Stop,
    /// A subagent begins.
    SubagentStart,
    /// A subagent is about to end.
    SubagentStop,
    /// Before the conversation is compacted.
    PreCompact,
    /// After the conversation was compacted.
    PostCompact,
    /// A turn of the main loop ends because a request failed.
    StopFailure,
    /// Before a prompt of the form `/name arguments` is replaced by the text that it stands for.
    UserPromptExpansion,
    /// Before the model of the session is changed.
    PreModelSwitch,
    /// After the model of the session was changed.
    PostModelSwitch,
    /// A file with instructions goes to the model.
    InstructionsLoaded,
    /// The working directory of the session changed.
    CwdChanged,
    /// The user is waited for: a question is open, or nothing was typed for a while.
    Notification,
    /// The session ends.
    SessionEnd,
}

impl AgentHookEvent {
    /// Every event.
    pub const ALL: [Self; 15] = [
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::PostCompact,
        Self::StopFailure,
        Self::UserPromptExpansion,
        Self::PreModelSwitch,
        Self::PostModelSwitch,
        Self::InstructionsLoaded,
        Self::CwdChanged,
        Self::Notification,
        Self::SessionEnd,
    ];

    /// Its name in settings and in the input of hooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::StopFailure => "StopFailure",
            Self::UserPromptExpansion => "UserPromptExpansion",
            Self::PreModelSwitch => "PreModelSwitch",
            Self::PostModelSwitch => "PostModelSwitch",
            Self::InstructionsLoaded => "InstructionsLoaded",
            Self::CwdChanged => "CwdChanged",
            Self::Notification => "Notification",
            Self::SessionEnd => "SessionEnd",
        }
    }
}

/// What a hook answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentHookAnswer {
    /// Text for the model.
    pub context: Option<String>,
    /// The prompt, the end of the turn or the compaction is blocked, for this reason.
    pub block: Option<String>,
    /// The agent should stop altogether, for this reason.
    pub stop: Option<String>,
    /// A message for the user.
    pub message: Option<String>,
}

impl AgentHookAnswer {
    /// The answer in one line, for observers; empty where it has none.
    pub(crate) fn describe(&self) -> String {
        let parts = [&self.stop, &self.block, &self.context, &self.message];
        parts.into_iter().flatten().next().cloned().unwrap_or_default()
    }
}

/// A hook.
pub trait AgentHook: Send + Sync {
    /// What it is called in messages and for observers.
    fn name(&self) -> &str;

    /// Whether it runs for this event, which has these fields.
    fn handles(&self, event: AgentHookEvent, fields: &Map<String, Value>) -> bool;

    /// Whether observers learn that it ran. False for one that no user, plugin or host configured.
    fn is_reported(&self) -> bool {
        true
    }

    /// Runs it. `fields` are those that only this event has. An error is a failure that matters: an event that can be
    /// blocked is blocked.
    fn handle<'a>(
        &'a self,
        event: AgentHookEvent,
        fields: Map<String, Value>,
    ) -> BoxFuture<'a, Result<AgentHookAnswer, String>>;
}

/// Hooks of a type of agents.
#[derive(Clone, Default)]
pub struct AgentHookList(pub Vec<Arc<dyn AgentHook>>);

impl fmt::Debug for AgentHookList {
    /// Shows how many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentHookList({})", self.0.len())
    }
}

impl PartialEq for AgentHookList {
    /// The very same hooks.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl Eq for AgentHookList {}
