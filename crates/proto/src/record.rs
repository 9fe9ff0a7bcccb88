//! The one record that every call leaves.

use crate::{
    CallId, Code, CommandRights, Effect, SessionId, SourceId, Stage, ToolCall, ToolName, VerdictReason,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All there is to know of one call afterwards. "Why did this run?" is answered by this value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The call.
    pub call: CallId,
    /// The session.
    pub session: SessionId,
    /// On whose behalf.
    pub principal: Principal,
    /// The name as the model spelled it.
    pub asked: ToolName,
    /// The canonical name, once resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// Who brought the tool, once resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceId>,
    /// When the call arrived: milliseconds since 1970, UTC.
    pub at: u64,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// SHA-256 of the input text as received.
    pub input_sha256: String,
    /// The effective input with secrets and long text replaced by hash and preview.
    pub input: Value,
    /// Who changed the input on the way (`hook: …`, `approver: …`), in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// The hooks that were told, in order, and what came of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRecord>,
    /// What the call would do, once known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// The stages passed, with the time each took.
    pub stages: Vec<StageRecord>,
    /// What policy said, once it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<VerdictRecord>,
    /// Who was asked and what they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord>,
    /// What a command of the call tried although its judgement did not foresee it; the sandbox refused each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anomalies: Vec<CallAnomaly>,
    /// How it ended.
    pub outcome: OutcomeRecord,
}

impl CallRecord {
    /// The record of a call of which nothing is known yet but its arrival. Until the outcome is set, the record says that
    /// the caller went away.
    pub fn new(
        session: SessionId,
        principal: Principal,
        call: &ToolCall,
        input_sha256: String,
        at: u64,
    ) -> Self {
        Self {
            call: call.id.clone(),
            session,
            principal,
            asked: call.name.clone(),
            tool: None,
            source: None,
            at,
            micros: 0,
            input_sha256,
            input: Value::Null,
            revisions: Vec::new(),
            hooks: Vec::new(),
            effects: Vec::new(),
            stages: Vec::with_capacity(Stage::ALL.len()),
            judged: None,
            approval: None,
            anomalies: Vec::new(),
            outcome: OutcomeRecord::Refused {
                code: Code::Cancelled,
                stage: Stage::Resolve,
                reason: "the caller went away".to_owned(),
            },
        }
    }
}

/// Something that a command tried although its judgement did not foresee it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallAnomaly {
    /// The code.
    pub code: Code,
    /// What was tried, by which program, on what.
    pub text: String,
}

impl CallAnomaly {
    /// An anomaly of this code.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// On whose behalf a call is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Principal {
    /// The edge through which the call came (`cli`, `mcp`, `sdk`, `agent`).
    pub edge: String,
    /// Who, as far as the edge knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Principal {
    /// A principal of whom only the edge is known.
    pub fn new(edge: impl Into<String>) -> Self {
        Self { edge: edge.into(), name: None }
    }

    /// The same, with the user's name.
    pub fn with_name(self, name: impl Into<String>) -> Self {
        self.with_optional_name(Some(name.into()))
    }

    /// The same, with the user's name where the edge knows it.
    pub fn with_optional_name(mut self, name: Option<String>) -> Self {
        self.name = name;
        self
    }
}

/// One stage passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StageRecord {
    /// The stage.
    pub stage: Stage,
    /// How long it took, in microseconds.
    pub micros: u64,
}

impl StageRecord {
    /// A stage that took this long, in microseconds.
    pub fn new(stage: Stage, micros: u64) -> Self {
        Self { stage, micros }
    }
}

/// One hook that was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// The hook.
    pub hook: String,
    /// At which moment (`PreToolUse`, …).
    pub moment: String,
    /// What came of it: `silent`, `allow`, `ask`, `defer`, `deny`, `rewrote` or `stopped`; or how it failed:
    /// `missing`, `not_started`, `crashed`, `timed_out`, `unreadable`, `unreachable` or `misconfigured`.
    pub ended: String,
    /// The particulars, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How long it took, in microseconds.
    pub micros: u64,
}

/// The decision, short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictRecord {
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    /// Why.
    pub reason: VerdictReason,
    /// What the kernel was to permit the commands of the call, where it ran any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<CommandRights>,
}

/// Who was asked, and what they said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    /// Which approver answered (`terminal`, `host`, `hook: …`).
    pub by: String,
    /// `once`, `session`, `always`, `revise` or `no`.
    pub answer: String,
    /// How long the answer took, in microseconds.
    pub micros: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutcomeRecord {
    /// The tool ran and succeeded.
    Done {
        /// Bytes of content for the model.
        bytes: u64,
        /// Where the whole result was put, if it was too large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spilled: Option<String>,
    },
    /// It did not run, or failed.
    Refused {
        /// The code.
        code: Code,
        /// The stage.
        stage: Stage,
        /// The reason.
        reason: String,
    },
}
