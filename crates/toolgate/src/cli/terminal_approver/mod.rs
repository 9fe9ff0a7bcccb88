//! The approver at the terminal.
//!
//! It asks one question at a time; the others wait in a queue, and the prompt names them.
//! A key approves a call only if it was pressed after the question was displayed: type-ahead is discarded, keys count
//! after a short delay, Enter alone and pasted text have no effect, and there is no default answer.
//! When another approver answers first or the question times out, the prompt closes and the terminal mode is restored.

mod line_editor;
mod prompt;
mod question_menu;
mod question_prompt;
mod render;

use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolgate::host::TurnInterrupt;
use toolgate::{ApprovalAnswer, ApprovalRequest, Approver, QuestionOutcome, QuestionRequest};
use toolgate_gate::{QuestionCounter, QuestionPosition, QuestionTicket};
use toolgate_process::{ControllingTerminal, StandardStream, is_terminal};

/// Whether the user can be asked: a standard stream is a terminal, and the controlling terminal can be opened.
pub(crate) fn is_interactive() -> bool {
    [StandardStream::Stdin, StandardStream::Stdout, StandardStream::Stderr].into_iter().any(is_terminal)
        && ControllingTerminal::open().is_ok()
}

/// What Ctrl-C at a prompt ends.
#[derive(Debug)]
pub(crate) enum PromptInterrupt {
    /// The command.
    Command(CancellationToken),
    /// The turn under way: a conversation has many, and each can be interrupted.
    Turn(Arc<TurnInterrupt>),
}

impl PromptInterrupt {
    /// Ends it.
    fn fire(&self) {
        match self {
            Self::Command(token) => token.cancel(),
            Self::Turn(turn) => turn.interrupt(false),
        }
    }
}

impl From<CancellationToken> for PromptInterrupt {
    fn from(token: CancellationToken) -> Self {
        Self::Command(token)
    }
}

impl From<Arc<TurnInterrupt>> for PromptInterrupt {
    fn from(turn: Arc<TurnInterrupt>) -> Self {
        Self::Turn(turn)
    }
}

/// Asks the user at the controlling terminal, also while the standard streams are pipes.
#[derive(Debug)]
pub(crate) struct TerminalApprover {
    /// Whether the prompt uses colors.
    color: bool,
    /// What Ctrl-C at the prompt ends: in raw mode the terminal sends no SIGINT.
    interrupt: PromptInterrupt,
    /// Held while a question is displayed.
    prompt_lock: tokio::sync::Mutex<()>,
    /// Id and description of each open question, in order of arrival.
    queue: Mutex<Vec<(String, String)>>,
    /// How many of them are open.
    counter: Arc<QuestionCounter>,
    /// Notified when a question joins the queue.
    queue_changed: Notify,
}

impl TerminalApprover {
    /// An approver, if the program runs at a terminal.
    pub(crate) fn detect(color: bool, interrupt: impl Into<PromptInterrupt>) -> Option<Self> {
        is_interactive().then(|| Self {
            color,
            interrupt: interrupt.into(),
            prompt_lock: tokio::sync::Mutex::default(),
            queue: Mutex::default(),
            counter: Arc::default(),
            queue_changed: Notify::new(),
        })
    }

    /// Waits for the terminal and asks. Every failure is an answer that allows nothing.
    async fn prompt_user(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let _queued = PromptQueueGuard::enqueue(self, request);
        let _prompt = self.prompt_lock.lock().await;
        let terminal = match ControllingTerminal::open() {
            Ok(terminal) => terminal,
            Err(error) => {
                return ApprovalAnswer::Lost { why: format!("the terminal cannot be opened: {error}") };
            }
        };
        let queue_position = || self.queue_position(request);
        let options = prompt::PromptOptions {
            color: self.color,
            queue_position: &queue_position,
            queue_changed: &self.queue_changed,
        };
        match prompt::ask(terminal, request, &options).await {
            Ok(prompt::PromptOutcome::Answer(answer)) => answer,
            Ok(prompt::PromptOutcome::Interrupt) => {
                self.interrupt.fire();
                ApprovalAnswer::Lost { why: "the user pressed Ctrl-C".to_owned() }
            }
            Err(error) => ApprovalAnswer::Lost { why: format!("the terminal failed: {error}") },
        }
    }

    /// Waits for the terminal and puts the questions of a tool to the user.
    async fn put_questions(&self, request: &QuestionRequest) -> QuestionOutcome {
        let _prompt = self.prompt_lock.lock().await;
        let terminal = match ControllingTerminal::open() {
            Ok(terminal) => terminal,
            Err(error) => {
                return QuestionOutcome::Lost { why: format!("the terminal cannot be opened: {error}") };
            }
        };
        match question_prompt::ask_questions(terminal, request, self.color).await {
            Ok(question_prompt::QuestionPromptOutcome::Outcome(outcome)) => outcome,
            Ok(question_prompt::QuestionPromptOutcome::Interrupt) => {
                self.interrupt.fire();
                QuestionOutcome::Lost { why: "the user pressed Ctrl-C".to_owned() }
            }
            Err(error) => QuestionOutcome::Lost { why: format!("the terminal failed: {error}") },
        }
    }

    /// The place of a question among the open ones, and the description of the next, if it waits here. The questions of
    /// one session wait in the gate and come here one by one.
    fn queue_position(&self, request: &ApprovalRequest) -> (QuestionPosition, Option<String>) {
        let (here, session) = (self.counter.position(), request.queue.position());
        let position = if here.total > session.total { here } else { session };
        let queue = self.lock_queue();
        let next = queue.iter().find(|(other, _)| *other != request.id);
        (position, next.map(|(_, description)| description.clone()))
    }

    /// The queue; a panic of another thread cannot leave it inconsistent.
    fn lock_queue(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry in the queue, removed on drop: also when the question is cancelled while it waits.
struct PromptQueueGuard<'a> {
    /// The owner of the queue.
    approver: &'a TerminalApprover,
    /// The id of the question.
    id: String,
    /// Counts the question.
    _ticket: QuestionTicket,
}

impl<'a> PromptQueueGuard<'a> {
    /// Adds a question to the queue, and notifies the prompt that is open.
    fn enqueue(approver: &'a TerminalApprover, request: &ApprovalRequest) -> Self {
        let description = format!("{} ({})", request.card.action, request.card.tool);
        approver.lock_queue().push((request.id.clone(), description));
        let ticket = approver.counter.join();
        approver.queue_changed.notify_one();
        Self { approver, id: request.id.clone(), _ticket: ticket }
    }
}

impl Drop for PromptQueueGuard<'_> {
    fn drop(&mut self) {
        self.approver.lock_queue().retain(|(id, _)| *id != self.id);
    }
}

impl Approver for TerminalApprover {
    fn name(&self) -> &str {
        "terminal"
    }

    fn description(&self) -> &str {
        "the user at the terminal"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.prompt_user(request))
    }

    fn ask_questions<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(self.put_questions(request))
    }
}

/// A terminal approver with several owners.
#[derive(Debug, Clone)]
pub(crate) struct SharedTerminalApprover(pub(crate) Arc<TerminalApprover>);

impl Approver for SharedTerminalApprover {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.ask(request)
    }
}
