//! Approvals: how a question reaches a user, and what counts as an answer.
//!
//! A question goes down a chain: PermissionRequest hooks, then each [`Approver`] in turn (a host program, a prompt
//! tool, a terminal), until one does not pass; where none is left, the answer is no.
//! An answer is for one request, bound to the input that would run, and counts once.
//! Silence until the deadline, a cancelled call, a lost channel and a crash are all "no", each with a code of its own.

mod ask;
mod bus;
mod grant_store;
mod question_counter;
mod questions;

pub use bus::{ApprovalBus, ApprovalReply, ApprovalReplyError, ApprovalRequestReceiver, ApprovalResponder};
pub use grant_store::GrantStore;
pub use question_counter::{QuestionCounter, QuestionPosition, QuestionTicket};
pub use questions::{QuestionAnswer, QuestionOption, QuestionOutcome, QuestionRequest, UserQuestion};

pub(crate) use ask::{ReceivedAnswer, ask};
pub(crate) use questions::QuestionChannels;

use crate::call_context::{CallContext, CallPurpose};
use crate::ledger::sha256_hex;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate_proto::{ApprovalCard, ApprovalQuestion, CallId};

/// A question to an approver.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// A fresh id; an answer is for this request and no other.
    pub id: String,
    /// The call it is about.
    pub call: CallId,
    /// Where the call happens.
    pub context: CallContext,
    /// What is asked.
    pub question: ApprovalQuestion,
    /// What to show: everything that matters about the call, once.
    pub card: ApprovalCard,
    /// How many questions of the session are open.
    pub queue: Arc<QuestionCounter>,
    /// The user must answer: no program may answer instead.
    pub requires_user: bool,
    /// The input that would run.
    pub input: Map<String, Value>,
    /// SHA-256 of that input: an answer is bound to it.
    pub input_sha256: String,
    /// The settings change that would make the question unnecessary.
    pub flip: Option<String>,
    /// Ends when the question no longer matters.
    pub cancel: CancellationToken,
}

impl ApprovalRequest {
    /// A request with a fresh id about a call with this input. No other question of the session is open, and any approver
    /// may answer.
    pub fn new(
        call: CallId,
        context: CallContext,
        question: ApprovalQuestion,
        card: ApprovalCard,
        input: Map<String, Value>,
    ) -> Self {
        let input_sha256 = sha256_hex(Value::Object(input.clone()).to_string().as_bytes());
        Self {
            id: toolgate_files::generate_id("ask_"),
            call,
            context,
            question,
            card,
            queue: Arc::default(),
            requires_user: false,
            input,
            input_sha256,
            flip: None,
            cancel: CancellationToken::new(),
        }
    }

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
    /// Yes, and remember these rules for the rest of the session.
    Session {
        /// The allow rules to remember, out of those that the card offers, in either width.
        rules: Vec<String>,
    },
    /// Yes, and remember these rules for good: the [`GrantStore`] writes them.
    Always {
        /// The allow rules to remember, out of those that the card offers, in either width.
        rules: Vec<String>,
    },
    /// Yes, with this input instead. It is validated and judged again.
    Revise {
        /// The input, whole.
        input: Map<String, Value>,
    },
    /// No.
    No {
        /// A message to the model.
        message: Option<String>,
    },
    /// Not now: the client has the question, and will make the call again with the answer.
    /// For protocols that cannot keep a call open. This call ends here.
    Later,
    /// The channel to the user broke: no.
    Lost {
        /// How.
        why: String,
    },
    /// This approver does not decide: ask the next.
    Pass,
}

/// A channel to a decision: a terminal, a host program, a prompt tool.
///
/// Approvers are asked in order; the first that does not pass decides.
/// Silence until the deadline, a lost channel and a panic are all "no".
pub trait Approver: Send + Sync {
    /// Its name, for records.
    fn name(&self) -> &str;

    /// Who answers, for messages, such as "the user at the terminal".
    fn description(&self) -> &str {
        self.name()
    }

    /// Asks. The future is dropped when the question no longer matters.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer>;

    /// Puts questions of a tool to the user. The answers are text for the model and approve nothing.
    fn ask_questions<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        let _ = request;
        questions::pass_questions()
    }
}
