//! The approval bus: questions out, answers back, from anywhere.
//!
//! A host program watches [`ApprovalBus::requests`] and answers by [`ApprovalBus::reply`].
//! Requests wait side by side; each has its own id, and an answer reaches the one that it names or nobody.
//! A reply must also name the hash of the input it approves, so that what was shown is what runs.
//! A request that was answered, cancelled or timed out is gone: later replies are told so and change nothing.
//! Watchers cannot miss a request by being slow, because they read the waiting ones, not a queue that overflows.

use super::{Answer, ApprovalRequest, Approver};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The bus. Clones share it.
#[derive(Debug, Clone)]
pub struct ApprovalBus {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    board: Mutex<ApprovalBusQueue>,
    news: Notify,
}

/// What waits, in order of arrival.
#[derive(Debug, Default)]
struct ApprovalBusQueue {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    by_id: HashMap<String, u64>,
    watchers: usize,
}

#[derive(Debug)]
struct Waiting {
    request: Arc<ApprovalRequest>,
    answer: oneshot::Sender<Answer>,
}

/// An answer from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The request it is for.
    pub request: String,
    /// The hash of the input that it approves, as the request named it.
    pub input_sha256: String,
    /// The answer.
    pub answer: Answer,
    /// Who gives it.
    pub from: Answerer,
}

/// Who gives an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    /// A person.
    Person,
    /// A program that a person set up for this.
    Program,
    /// Another agent. Its consent counts for nothing: it may have been talked into it.
    Agent,
}

/// Why a reply changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyProblem {
    /// No such request waits: it never did, was answered, was cancelled or timed out.
    #[error("no such request waits for an answer")]
    NotWaiting,
    /// The reply approves another input than the one that would run.
    #[error("the reply is for another input than the one that would run")]
    OtherInput,
    /// An agent cannot consent for a person.
    #[error("an agent cannot answer for a person")]
    NotForAgents,
    /// The tool wants a person, and a program answered.
    #[error("the tool wants a person to answer")]
    NotForPrograms,
}

impl ApprovalBus {
    /// A bus; the name stands in records as the one who answered.
    pub fn new(name: impl Into<String>) -> Self {
        Self { inner: Arc::new(Inner { name: name.into(), board: Mutex::default(), news: Notify::new() }) }
    }

    /// Watches for requests. While nobody watches, the bus passes every question on to the next approver.
    pub fn requests(&self) -> Requests {
        self.inner.board().watchers += 1;
        Requests { inner: Arc::clone(&self.inner), seen: None }
    }

    /// The requests that wait now, oldest first.
    pub fn waiting(&self) -> Vec<Arc<ApprovalRequest>> {
        self.inner.board().waiting.values().map(|waiting| Arc::clone(&waiting.request)).collect()
    }

    /// Answers a request. A reply that cannot be taken leaves the request waiting.
    pub fn reply(&self, reply: Reply) -> Result<(), ReplyProblem> {
        let mut board = self.inner.board();
        let number = *board.by_id.get(&reply.request).ok_or(ReplyProblem::NotWaiting)?;
        let request = &board.waiting.get(&number).ok_or(ReplyProblem::NotWaiting)?.request;
        match reply.from {
            Answerer::Agent => return Err(ReplyProblem::NotForAgents),
            Answerer::Program if request.wants_a_person => return Err(ReplyProblem::NotForPrograms),
            Answerer::Person | Answerer::Program => {}
        }
        if request.input_sha256 != reply.input_sha256 {
            return Err(ReplyProblem::OtherInput);
        }
        if request.cancel.is_cancelled() {
            return Err(ReplyProblem::NotWaiting);
        }
        let waiting = board.remove(&reply.request).ok_or(ReplyProblem::NotWaiting)?;
        drop(board);
        // An error means that the asker has just gone: cancelled, or out of time.
        waiting.answer.send(reply.answer).map_err(|_| ReplyProblem::NotWaiting)
    }
}

impl Inner {
    fn board(&self) -> MutexGuard<'_, ApprovalBusQueue> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ApprovalBusQueue {
    fn remove(&mut self, id: &str) -> Option<Waiting> {
        self.waiting.remove(&self.by_id.remove(id)?)
    }
}

/// Takes a request off the board when its asker goes away.
struct PendingApprovalGuard<'a> {
    inner: &'a Inner,
    id: &'a str,
}

impl Drop for PendingApprovalGuard<'_> {
    fn drop(&mut self) {
        self.inner.board().remove(self.id);
    }
}

impl Approver for ApprovalBus {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            {
                let mut board = self.inner.board();
                if board.watchers == 0 {
                    return Answer::Pass;
                }
                let number = board.next;
                if board.by_id.contains_key(&request.id) {
                    return Answer::Lost { why: "a request of this id waits already".to_owned() };
                }
                board.next += 1;
                board.by_id.insert(request.id.clone(), number);
                board.waiting.insert(number, Waiting { request: Arc::new(request.clone()), answer });
            }
            let posted = PendingApprovalGuard { inner: &self.inner, id: &request.id };
            self.inner.news.notify_waiters();
            let answer = tokio::select! {
                biased;
                () = request.cancel.cancelled() => {
                    Answer::Lost { why: "the question was withdrawn".to_owned() }
                }
                answer = answered => answer.unwrap_or_else(|_| Answer::Lost {
                    why: format!("`{}` went away without an answer", self.inner.name),
                }),
            };
            drop(posted);
            answer
        })
    }
}

/// Hands out the requests that wait, each once, oldest first.
#[derive(Debug)]
pub struct Requests {
    inner: Arc<Inner>,
    seen: Option<u64>,
}

impl Requests {
    /// The next request that this watcher has not seen. Waits until there is one.
    pub async fn next(&mut self) -> Arc<ApprovalRequest> {
        let inner = Arc::clone(&self.inner);
        loop {
            let news = inner.news.notified();
            tokio::pin!(news);
            // Registered before looking, so that nothing posted in between is missed.
            news.as_mut().enable();
            if let Some(request) = self.look() {
                return request;
            }
            news.await;
        }
    }

    fn look(&mut self) -> Option<Arc<ApprovalRequest>> {
        let from = self.seen.map_or(0, |seen| seen.saturating_add(1));
        let board = self.inner.board();
        let (number, waiting) = board.waiting.range(from..).next()?;
        self.seen = Some(*number);
        Some(Arc::clone(&waiting.request))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let mut board = self.inner.board();
        board.watchers = board.watchers.saturating_sub(1);
        if board.watchers == 0 {
            // Nobody can answer any more: each asker hears of it now, not at its deadline.
            board.by_id.clear();
            board.waiting.clear();
        }
    }
}
