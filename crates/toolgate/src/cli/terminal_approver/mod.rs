//! Asking at the terminal.
//!
//! One question at a time; the others wait and are named.
//! A yes is only ever a key that was pressed after the question stood there: what was typed ahead is thrown away, the
//! keys are offered only after a moment, Enter alone and pasted text mean nothing, and there is no default.
//! When somebody else answers, or the time is up, the question goes away and the terminal is as it was.

mod line_editor;
mod prompt;
mod render;

use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolgate::{ApprovalAnswer, ApprovalRequest, Approver};
use toolgate_process::{ControllingTerminal, StandardStream, is_terminal};

/// Whether a person seems to be there: a standard stream is a terminal, and the terminal opens.
pub(crate) fn is_interactive() -> bool {
    [StandardStream::Stdin, StandardStream::Stdout, StandardStream::Stderr].into_iter().any(is_terminal)
        && ControllingTerminal::open().is_ok()
}

/// Somebody at the terminal.
#[derive(Debug)]
pub(crate) struct TerminalApprover {
    color: bool,
    /// Cancelled by Ctrl-C at the prompt, which the terminal does not turn into a signal there.
    interrupt: CancellationToken,
    /// Whose turn it is.
    turn: tokio::sync::Mutex<()>,
    /// What waits, in order of arrival.
    queue: Mutex<Vec<(String, String)>>,
    /// Told when another question joins the queue.
    queue_changed: Notify,
}

impl TerminalApprover {
    /// Somebody to ask, if there seems to be one.
    pub(crate) fn detect(color: bool, interrupt: CancellationToken) -> Option<Self> {
        is_interactive().then(|| Self {
            color,
            interrupt,
            turn: tokio::sync::Mutex::default(),
            queue: Mutex::default(),
            queue_changed: Notify::new(),
        })
    }

    async fn prompt_user(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let _ticket = PromptQueueGuard::enqueue(self, request);
        let _turn = self.turn.lock().await;
        let terminal = match ControllingTerminal::open() {
            Ok(terminal) => terminal,
            Err(error) => return ApprovalAnswer::Lost { why: format!("the terminal is gone: {error}") },
        };
        let others = || self.waiting_questions(&request.id);
        let show = prompt::PromptOptions {
            color: self.color,
            waiting_questions: &others,
            queue_changed: &self.queue_changed,
        };
        match prompt::ask(terminal, request, &show).await {
            Ok(prompt::PromptOutcome::Answer(answer)) => answer,
            Ok(prompt::PromptOutcome::Interrupt) => {
                self.interrupt.cancel();
                ApprovalAnswer::Lost { why: "the person interrupted".to_owned() }
            }
            Err(error) => ApprovalAnswer::Lost { why: format!("the terminal failed: {error}") },
        }
    }

    fn waiting_questions(&self, id: &str) -> Vec<String> {
        self.lock_queue().iter().filter(|(other, _)| other != id).map(|(_, words)| words.clone()).collect()
    }

    fn lock_queue(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue, given up when the question is over.
struct PromptQueueGuard<'a> {
    approver: &'a TerminalApprover,
    id: String,
}

impl<'a> PromptQueueGuard<'a> {
    fn enqueue(approver: &'a TerminalApprover, request: &ApprovalRequest) -> Self {
        let words = format!("{} ({})", request.question.description, request.question.tool);
        approver.lock_queue().push((request.id.clone(), words));
        approver.queue_changed.notify_one();
        Self { approver, id: request.id.clone() }
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

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.prompt_user(request))
    }
}

/// The same person, for several askers.
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
