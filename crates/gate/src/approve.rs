//! Asking somebody.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolgate_proto::{CallId, Question, SessionId};

/// A question that waits for an answer.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// A fresh id; an answer is for this request and no other.
    pub id: String,
    /// The call it is about.
    pub call: CallId,
    /// The session.
    pub session: SessionId,
    /// What is asked.
    pub question: Question,
    /// The input that would run.
    pub input: Map<String, Value>,
    /// SHA-256 of that input: an answer is bound to it.
    pub input_sha256: String,
    /// Ends when the question no longer matters.
    pub cancel: CancellationToken,
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Yes, this once.
    Once,
    /// Yes, and rules such as this for the rest of the session.
    Session {
        /// The allow rule to remember.
        rule: String,
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

    /// Asks.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer>;
}
