//! What a caller says about one call, and what it gets back.

use crate::call_context::CallPurpose;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_policy::LayerRules;
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
    /// Refuses the call where policy asks, without a question to an approver.
    pub never_asks: bool,
    /// Rules for this call alone, beside those of the gate. They pre-approve like rules of their layer: a deny or an ask
    /// of any other rule still counts.
    pub extra_rules: Option<LayerRules>,
    /// No further call of the session follows, so no rule is offered for the rest of it. In a batch that holds for the
    /// last question.
    pub is_last_call: bool,
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

    /// Refuses the call where policy asks, without a question to an approver.
    #[must_use]
    pub fn without_questions(self) -> Self {
        Self { never_asks: true, ..self }
    }

    /// Adds rules for this call alone.
    #[must_use]
    pub fn with_extra_rules(self, extra_rules: LayerRules) -> Self {
        Self { extra_rules: Some(extra_rules), ..self }
    }

    /// Says why the call is made.
    #[must_use]
    pub fn with_purpose(self, purpose: CallPurpose) -> Self {
        Self { purpose, ..self }
    }

    /// Says that no further call of the session follows.
    #[must_use]
    pub fn with_last_call(self, is_last_call: bool) -> Self {
        Self { is_last_call, ..self }
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
