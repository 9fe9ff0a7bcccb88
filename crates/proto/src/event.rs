//! What happens, as it happens, for whoever watches.

use crate::{AbsPath, ApprovalQuestion, CallAnomaly, CallId, CallRecord, SessionId, Stage, ToolName};
use serde::{Deserialize, Serialize};

/// Something that happened at the boundary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A call arrived.
    Opened {
        /// The call.
        call: CallId,
        /// The session.
        session: SessionId,
        /// The name as the model spelled it.
        tool: ToolName,
    },
    /// A call passed a stage.
    Passed {
        /// The call.
        call: CallId,
        /// The stage it passed.
        stage: Stage,
    },
    /// A person is being asked.
    Asked {
        /// The call.
        call: CallId,
        /// What is asked.
        question: Box<ApprovalQuestion>,
    },
    /// A hook has a word for the person.
    HookSaid {
        /// The call.
        call: CallId,
        /// The hook.
        hook: String,
        /// The word.
        text: String,
    },
    /// A running tool tells how far it is.
    Progress {
        /// The call.
        call: CallId,
        /// New output, or a word on how far it is.
        text: String,
        /// Part done, from 0 to 1, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
    },
    /// The call is over, one way or the other.
    Closed {
        /// Its record.
        record: Box<CallRecord>,
    },
    /// Work that a call left going on, such as a command in the background, is over.
    TaskEnded {
        /// The call that started it; it was closed long ago, perhaps.
        call: CallId,
        /// The id of the task, as tools take it.
        task: String,
        /// One line on how it ended.
        summary: String,
        /// Where its output is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_file: Option<AbsPath>,
    },
    /// A command tried something that its judgement did not foresee, and the sandbox refused it.
    Anomaly {
        /// The call that runs it.
        call: CallId,
        /// What was tried.
        anomaly: CallAnomaly,
    },
    /// The set of visible tools changed.
    ToolsChanged,
}
