//! Asking somebody.
//!
//! A question goes down a chain: PermissionRequest hooks, then each [`Approver`] in turn (a host program, a prompt
//! tool, a terminal), until one does not pass; where nobody is left, the answer is no.
//! An answer is for one request, bound to the input that would run, and counts once.
//! Silence until the deadline, a cancelled call, a lost channel and a crash are all "no", each with a code of its own.

mod bus;
mod chain;
mod grant_store;

pub use bus::{ApprovalBus, ApprovalReply, ApprovalReplyError, ApprovalRequestReceiver, ApprovalResponder};
pub use grant_store::GrantStore;

pub(crate) use chain::{ReceivedAnswer, ask};

use crate::call_context::{CallContext, CallPurpose};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolgate_proto::{ApprovalQuestion, CallId};

/// A question that waits for an answer.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// A fresh id; an answer is for this request and no other.
    pub id: String,
    /// The call it is about.
    pub call: CallId,
    /// Where the call happens.
    pub context: CallContext,
    /// What is asked.
    pub question: ApprovalQuestion,
    /// The tool wants a person: no program may answer in their place.
    pub wants_a_person: bool,
    /// The input that would run.
    pub input: Map<String, Value>,
    /// SHA-256 of that input: an answer is bound to it.
    pub input_sha256: String,
    /// What would change, as a unified diff, where the tool can say.
    pub diff: Option<String>,
    /// The simple commands of a command line, where it was taken apart.
    pub parts: Vec<String>,
    /// The settings change that would spare the question.
    pub flip: Option<String>,
    /// Ends when the question no longer matters.
    pub cancel: CancellationToken,
}

impl ApprovalRequest {
    /// The purpose of a call that the approver makes to ask a tool about this one.
    pub fn consultation(&self) -> CallPurpose {
        self.context.consultation(&self.call, 1, false)
    }
}

/// What an approver answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalAnswer {
    /// Yes, this once.
    Once,
    /// Yes, and so for the rest of the session.
    Session {
        /// The allow rules to remember, out of those that the question suggests.
        rules: Vec<String>,
    },
    /// Yes, and so from now on: the rules are kept by the [`GrantStore`].
    Always {
        /// The allow rules to remember, out of those that the question suggests.
        rules: Vec<String>,
    },
    /// Yes, if the input is this instead. It is checked and judged anew.
    Revise {
        /// The input, whole.
        input: Map<String, Value>,
    },
    /// No.
    No {
        /// A word to the model.
        message: Option<String>,
    },
    /// Not now: the question was handed out, and the call will be made again with the answer.
    /// For edges that cannot hold a call open. This call ends here.
    Later,
    /// The channel to the person broke: no.
    Lost {
        /// How.
        why: String,
    },
    /// Somebody else must be asked.
    Pass,
}

/// Somebody who can be asked: a terminal, a host program, a prompt tool.
///
/// Approvers are asked in order; the first that does not pass decides.
/// Silence until the deadline, a lost channel and a panic are all "no".
pub trait Approver: Send + Sync {
    /// Its name, for records.
    fn name(&self) -> &str;

    /// Asks. The future is dropped when the question no longer matters.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer>;
}
