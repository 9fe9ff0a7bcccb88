//! Events: what the gate reports about its calls while they run.

use crate::{
    AbsPath, ApprovalCard, ApprovalQuestion, CallAnomaly, CallId, CallRecord, CallResult, HookRecord,
    SessionId, Stage, ToolName,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Something that happened at the gate. Subscribers get events in order; an event that a slow subscriber misses does not
/// delay the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A call arrived.
    Opened {
        /// The id of the call.
        call: CallId,
        /// The session that made it.
        session: SessionId,
        /// The name of the tool, as the model spelled it.
        tool: ToolName,
    },
    /// A call passed a stage of the pipeline.
    Passed {
        /// The id of the call.
        call: CallId,
        /// The stage that it passed.
        stage: Stage,
    },
    /// A call waits for an answer of an approver.
    Asked {
        /// The id of the call.
        call: CallId,
        /// The question, as the approver gets it.
        question: Box<ApprovalQuestion>,
        /// What the approver is shown.
        card: Box<ApprovalCard>,
    },
    /// A hook starts. Its end follows as [`Event::HookEnded`] with the same `run`.
    HookStarted {
        /// The id of this run of the hook.
        run: String,
        /// The call that it runs for; absent for a batch of calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The name of the hook.
        hook: String,
        /// The event that it runs for, such as `PreToolUse`.
        #[serde(rename = "moment")]
        event: String,
    },
    /// A hook ended, or was given up because its call was cancelled (`cancelled`).
    HookEnded {
        /// The id of this run of the hook.
        run: String,
        /// The call that it ran for; absent for a batch of calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// How it ended.
        record: Box<HookRecord>,
    },
    /// A hook has a message for the user.
    HookSaid {
        /// The id of the call.
        call: CallId,
        /// The name of the hook.
        hook: String,
        /// The message.
        text: String,
    },
    /// A running tool reports progress.
    Progress {
        /// The id of the call.
        call: CallId,
        /// New output, or a status line.
        text: String,
        /// The part that is done, from 0 to 1, if the tool knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
    },
    /// A call ended, with success or a refusal.
    Closed {
        /// The record of the call, as sinks get it.
        record: Box<CallRecord>,
    },
    /// What a call was given and what it returned, whole. It follows [`Event::Closed`], and only sinks that accept results
    /// get it: unlike a record it has everything that the tool was told and has read, secrets included.
    Returned {
        /// The id of the call.
        call: CallId,
        /// The text of the input, as the model gave it.
        given: String,
        /// The input that counted, after hooks and approvers; absent where it never became valid.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Map<String, Value>>,
        /// The result, as the caller gets it.
        result: Box<CallResult>,
    },
    /// A background task, which outlives the call that started it, ended.
    TaskEnded {
        /// The call that started the task; it may have been closed long before.
        call: CallId,
        /// The id of the task, as tools accept it.
        task: String,
        /// One line about how it ended.
        summary: String,
        /// The file with its output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_file: Option<AbsPath>,
    },
    /// A command tried something that its judgement did not predict, and the sandbox refused it.
    Anomaly {
        /// The call that runs the command.
        call: CallId,
        /// What was tried.
        anomaly: CallAnomaly,
    },
    /// The set of visible tools changed: clients should list the tools again.
    ToolsChanged,
}
