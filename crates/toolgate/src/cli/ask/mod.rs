//! Asking at the terminal.
//!
//! One question at a time; the others wait and are named.
//! A yes is only ever a key that was pressed after the question stood there: what was typed ahead is thrown away, the
//! keys are offered only after a moment, Enter alone and pasted text mean nothing, and there is no default.
//! When somebody else answers, or the time is up, the question goes away and the terminal is as it was.

mod card;
mod line;
mod prompt;

use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use toolgate::{Answer, ApprovalRequest, Approver};
use toolgate_os::{ControllingTerminal, Stream, is_terminal};

/// Whether a person seems to be there: a standard stream is a terminal, and the terminal opens.
pub(crate) fn is_interactive() -> bool {
    [Stream::Stdin, Stream::Stdout, Stream::Stderr].into_iter().any(is_terminal)
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
    news: Notify,
}

impl TerminalApprover {
    /// Somebody to ask, if there seems to be one.
    pub(crate) fn here(color: bool, interrupt: CancellationToken) -> Option<Self> {
        is_interactive().then(|| Self {
            color,
            interrupt,
            turn: tokio::sync::Mutex::default(),
            queue: Mutex::default(),
            news: Notify::new(),
        })
    }

    async fn put(&self, request: &ApprovalRequest) -> Answer {
        let _ticket = PromptQueueGuard::take(self, request);
        let _turn = self.turn.lock().await;
        let terminal = match ControllingTerminal::open() {
            Ok(terminal) => terminal,
            Err(error) => return Answer::Lost { why: format!("the terminal is gone: {error}") },
        };
        let others = || self.others(&request.id);
        let show = prompt::Show { color: self.color, others: &others, news: &self.news };
        match prompt::ask(terminal, request, &show).await {
            Ok(prompt::Said::Answer(answer)) => answer,
            Ok(prompt::Said::Interrupt) => {
                self.interrupt.cancel();
                Answer::Lost { why: "the person interrupted".to_owned() }
            }
            Err(error) => Answer::Lost { why: format!("the terminal failed: {error}") },
        }
    }

    fn others(&self, id: &str) -> Vec<String> {
        self.queue().iter().filter(|(other, _)| other != id).map(|(_, words)| words.clone()).collect()
    }

    fn queue(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue, given up when the question is over.
struct PromptQueueGuard<'a> {
    of: &'a TerminalApprover,
    id: String,
}

impl<'a> PromptQueueGuard<'a> {
    fn take(of: &'a TerminalApprover, request: &ApprovalRequest) -> Self {
        let words = format!("{} ({})", request.question.description, request.question.tool);
        of.queue().push((request.id.clone(), words));
        of.news.notify_one();
        Self { of, id: request.id.clone() }
    }
}

impl Drop for PromptQueueGuard<'_> {
    fn drop(&mut self) {
        self.of.queue().retain(|(id, _)| *id != self.id);
    }
}

impl Approver for TerminalApprover {
    fn name(&self) -> &str {
        "terminal"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        Box::pin(self.put(request))
    }
}

/// The same person, for several askers.
#[derive(Debug, Clone)]
pub(crate) struct Shared(pub(crate) Arc<TerminalApprover>);

impl Approver for Shared {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        self.0.ask(request)
    }
}
