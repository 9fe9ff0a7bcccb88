//! Call records: what is stored about a call after it ended.

use crate::{
    AbsPath, CallId, Code, CommandRights, Effect, Refusal, SessionId, SourceId, Stage, ToolCall, ToolName,
    Verdict, VerdictReason,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Everything that is stored about one call. Every call leaves exactly one record, and it answers why the call ran or
/// did not. Sinks receive it; the ledger is a sink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The id of the call.
    pub call: CallId,
    /// The session that made the call.
    pub session: SessionId,
    /// The user or client on whose behalf the call was made.
    pub principal: Principal,
    /// The first root of the session's workspace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<AbsPath>,
    /// The call that started the agent which made this one, if it was a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CallId>,
    /// The name of the tool, as the model spelled it.
    pub asked: ToolName,
    /// The canonical name of the tool, if one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// The source of the tool, if one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceId>,
    /// When the call arrived, in milliseconds since 1970 (UTC).
    pub at: u64,
    /// How long the call took, in microseconds.
    pub micros: u64,
    /// The SHA-256 hash of the input text as it was received.
    pub input_sha256: String,
    /// The effective input, in which secrets are replaced by a hash, and long texts by a hash and a preview.
    pub input: Value,
    /// The input as the model gave it, in the same form, if a hook or an approver changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_input: Option<Value>,
    /// What changed the input (`hook: …`, `approver: …`), in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// The hooks that ran, in order, and their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRecord>,
    /// The effects of the intent, if the call came that far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// The stages that the call passed, and the time of each.
    pub stages: Vec<StageRecord>,
    /// The verdict of policy, if the call came that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<VerdictRecord>,
    /// The approver that was asked, and its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRecord>,
    /// What commands of the call tried although their judgement did not predict it. The sandbox refused each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anomalies: Vec<CallAnomaly>,
    /// The journal has every change of files that the commands of the call made, so that they can be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub journalled: bool,
    /// Files that the commands of the call changed although the journal could not keep them, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_journalled: Vec<UncoveredFile>,
    /// How the call ended.
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
            project: None,
            parent: None,
            asked: call.name.clone(),
            tool: None,
            source: None,
            at,
            micros: 0,
            input_sha256,
            input: Value::Null,
            original_input: None,
            revisions: Vec::new(),
            hooks: Vec::new(),
            effects: Vec::new(),
            stages: Vec::with_capacity(Stage::ALL.len()),
            judged: None,
            approval: None,
            anomalies: Vec::new(),
            journalled: false,
            not_journalled: Vec::new(),
            outcome: OutcomeRecord::Cancelled {
                code: Code::Cancelled,
                stage: Stage::Resolve,
                reason: "the caller went away".to_owned(),
            },
        }
    }
}

/// A file that a command changed, and whose change cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UncoveredFile {
    /// Its real path.
    pub path: AbsPath,
    /// Why its content was not kept.
    pub reason: String,
}

impl UncoveredFile {
    /// A file that was not kept for this reason.
    pub fn new(path: AbsPath, reason: impl Into<String>) -> Self {
        Self { path, reason: reason.into() }
    }
}

impl fmt::Display for UncoveredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.path, self.reason)
    }
}

/// An attempt of a command that its judgement did not predict, and that the sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallAnomaly {
    /// The code, `TG-604`.
    pub code: Code,
    /// Which program tried what on which file or address.
    pub text: String,
}

impl CallAnomaly {
    /// An anomaly of this code.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// The user or client on whose behalf a call is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Principal {
    /// The edge through which the call arrived (`cli`, `mcp`, `sdk`, `agent`).
    pub edge: String,
    /// The name of the user or client, if the edge knows it.
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

/// A stage that a call passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StageRecord {
    /// Which stage.
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

/// One run of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookRecord {
    /// The name of the hook.
    pub hook: String,
    /// The event for which it ran (`PreToolUse`, …).
    #[serde(rename = "moment")]
    pub event: String,
    /// The result: `silent`, `allow`, `ask`, `defer`, `deny`, `rewrote` or `stopped`; or how it failed:
    /// `missing`, `not_started`, `crashed`, `timed_out`, `unreadable`, `unreachable` or `misconfigured`.
    pub ended: String,
    /// The message of the hook, or the details of its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How long it took, in microseconds.
    pub micros: u64,
}

impl HookRecord {
    /// A run without a message, which ended like this and took this long, in microseconds.
    pub fn new(
        hook: impl Into<String>,
        event: impl Into<String>,
        ended: impl Into<String>,
        micros: u64,
    ) -> Self {
        Self { hook: hook.into(), event: event.into(), ended: ended.into(), detail: None, micros }
    }

    /// Adds the message of the hook, or the details of its failure.
    pub fn with_detail(mut self, detail: Option<String>) -> Self {
        self.detail = detail;
        self
    }
}

/// The verdict of policy, in short form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerdictRecord {
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    /// Why, with the rule that decided.
    pub reason: VerdictReason,
    /// The rights of the commands of the call, if it ran any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<CommandRights>,
}

impl VerdictRecord {
    /// The short form of a verdict of a call that runs no command.
    pub fn new(verdict: &Verdict) -> Self {
        Self { verdict: verdict.as_str().to_owned(), reason: verdict.reason().clone(), rights: None }
    }

    /// Adds the rights of the commands of the call.
    pub fn with_rights(mut self, rights: Option<CommandRights>) -> Self {
        self.rights = rights;
        self
    }
}

/// The approver that was asked, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRecord {
    /// The approver that answered (`terminal`, `host`, `hook: …`).
    pub by: String,
    /// The answer: `once`, `session`, `always`, `revise` or `no`.
    pub answer: String,
    /// The allow rules that the answer added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The file that they were written to. Without it they counted until the session ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_file: Option<String>,
    /// How long the answer took, in microseconds.
    pub micros: u64,
}

impl ApprovalRecord {
    /// An answer that added no rules and took this long, in microseconds.
    pub fn new(by: impl Into<String>, answer: impl Into<String>, micros: u64) -> Self {
        Self { by: by.into(), answer: answer.into(), rules: Vec::new(), rules_file: None, micros }
    }

    /// Adds the allow rules of the answer, and the file that they were written to.
    pub fn with_rules(mut self, rules: Vec<String>, rules_file: Option<String>) -> Self {
        self.rules = rules;
        self.rules_file = rules_file;
        self
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutcomeRecord {
    /// The tool ran and succeeded.
    Done {
        /// The size of the content for the model, in bytes.
        bytes: u64,
        /// The file with the whole result, if it was truncated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spilled: Option<String>,
    },
    /// The tool did not run.
    Refused {
        /// The code of the refusal.
        code: Code,
        /// The stage at which the call ended.
        stage: Stage,
        /// The reason of the refusal.
        reason: String,
    },
    /// The tool ran and failed, or ran out of time.
    Failed {
        /// The code of the failure.
        code: Code,
        /// The stage at which the call ended.
        stage: Stage,
        /// What failed.
        reason: String,
    },
    /// The call was cancelled, before its tool ran or while it did, or its caller went away.
    Cancelled {
        /// The code, `TG-801`.
        code: Code,
        /// The stage at which the call ended.
        stage: Stage,
        /// Who cancelled it, or what ended.
        reason: String,
    },
}

impl OutcomeRecord {
    /// The outcome of a call that has no result.
    pub fn of_refusal(refusal: &Refusal) -> Self {
        let (code, stage, reason) = (refusal.code, refusal.stage, refusal.reason.clone());
        match stage {
            _ if code == Code::Cancelled => Self::Cancelled { code, stage, reason },
            Stage::Run | Stage::Finish => Self::Failed { code, stage, reason },
            Stage::Resolve
            | Stage::Validate
            | Stage::Screen
            | Stage::Judge
            | Stage::Settle
            | Stage::Guard => Self::Refused { code, stage, reason },
        }
    }

    /// The name of the outcome in records: `done`, `refused`, `failed` or `cancelled`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::Refused { .. } => "refused",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// The code of a call that has no result.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Done { .. } => None,
            Self::Refused { code, .. } | Self::Failed { code, .. } | Self::Cancelled { code, .. } => {
                Some(*code)
            }
        }
    }
}
