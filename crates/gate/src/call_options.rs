//! What a caller says about one call, and what it gets back.

use crate::call_context::CallPurpose;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_proto::{CallRecord, CallResult};

/// Options of one call.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// Ends it after this long, all stages together.
    pub timeout: Option<Duration>,
    /// Why the call is made.
    pub purpose: CallPurpose,
}

impl CallOptions {
    /// Cancels the call when this token is cancelled.
    #[must_use]
    pub fn with_cancel(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }

    /// Ends the call after this long, all stages together.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// Says why the call is made.
    #[must_use]
    pub fn with_purpose(self, purpose: CallPurpose) -> Self {
        Self { purpose, ..self }
    }
}

/// A call that is over: its result, and its record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOutcome {
    /// What the model gets.
    pub result: CallResult,
    /// What is remembered.
    pub record: CallRecord,
    /// A hook wants the agent to stop altogether, for this reason.
    pub stop: Option<String>,
    /// Messages for the user, from hooks and about rules that were remembered.
    pub messages: Vec<String>,
    /// Commands that the call wants the host to run, where no batch has taken them over.
    pub(crate) queued_commands: Vec<String>,
}
