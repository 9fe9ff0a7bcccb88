//! The approval bus: questions out, answers back, from anywhere.
//!
//! A host program watches [`ApprovalBus::requests`] and answers by [`ApprovalBus::reply`].
//! Requests wait side by side; each has its own id, and an answer reaches the request that it names or none.
//! A reply must also name the hash of the input it approves, so that what was shown is what runs.
//! A request that was answered, cancelled or timed out is gone: later replies get an error and change nothing.
//! A slow receiver cannot miss a request, because it reads the pending ones, not a queue that overflows.

use super::{ApprovalAnswer, ApprovalRequest, Approver};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The bus. Clones share it.
#[derive(Debug, Clone)]
pub struct ApprovalBus {
    inner: Arc<ApprovalBusInner>,
}

#[derive(Debug)]
struct ApprovalBusInner {
    name: String,
    queue: Mutex<ApprovalBusQueue>,
    request_added: Notify,
}

/// The pending requests, in order of arrival.
#[derive(Debug, Default)]
struct ApprovalBusQueue {
    next: u64,
    waiting: BTreeMap<u64, PendingApproval>,
    by_id: HashMap<String, u64>,
    watchers: usize,
}

#[derive(Debug)]
struct PendingApproval {
    request: Arc<ApprovalRequest>,
    answer: oneshot::Sender<ApprovalAnswer>,
}

/// An answer from a host program.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalReply {
    /// The request it is for.
    pub request: String,
    /// The hash of the input that it approves, as in the request.
    pub input_sha256: String,
    /// The answer.
    pub answer: ApprovalAnswer,
    /// Who gives it.
    pub from: ApprovalResponder,
}

impl ApprovalReply {
    /// An answer to the request with this id, for the input with this hash.
    pub fn new(
        request: impl Into<String>,
        input_sha256: impl Into<String>,
        answer: ApprovalAnswer,
        from: ApprovalResponder,
    ) -> Self {
        Self { request: request.into(), input_sha256: input_sha256.into(), answer, from }
    }
}

/// Who gives an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalResponder {
    /// The user.
    User,
    /// A program that the user set up for this.
    Program,
    /// Another agent. Its consent does not count: it may be the victim of a prompt injection.
    Agent,
}

/// Why a reply changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalReplyError {
    /// No such request waits: it never did, was answered, was cancelled or timed out.
    #[error("no such request waits for an answer")]
    NotWaiting,
    /// The reply approves another input than the one that would run.
    #[error("the reply is for another input than the one that would run")]
    OtherInput,
    /// An agent cannot consent for the user.
    #[error("an agent cannot answer for the user")]
    NotForAgents,
    /// The tool requires the user, and a program answered.
    #[error("the tool requires an answer of the user")]
    NotForPrograms,
}

impl ApprovalBus {
    /// A bus; records name it as the approver that answered.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            inner: Arc::new(ApprovalBusInner {
                name: name.into(),
                queue: Mutex::default(),
                request_added: Notify::new(),
            }),
        }
    }

    /// Subscribes to requests. While there is no receiver, the bus passes every question on to the next approver.
    pub fn requests(&self) -> ApprovalRequestReceiver {
        self.inner.lock_queue().watchers += 1;
        ApprovalRequestReceiver { inner: Arc::clone(&self.inner), seen: None }
    }

    /// The pending requests, oldest first.
    pub fn pending_requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.inner.lock_queue().waiting.values().map(|waiting| Arc::clone(&waiting.request)).collect()
    }

    /// Answers a request. A reply with an error leaves the request pending.
    pub fn reply(&self, reply: ApprovalReply) -> Result<(), ApprovalReplyError> {
        let mut board = self.inner.lock_queue();
        let number = *board.by_id.get(&reply.request).ok_or(ApprovalReplyError::NotWaiting)?;
        let request = &board.waiting.get(&number).ok_or(ApprovalReplyError::NotWaiting)?.request;
        match reply.from {
            ApprovalResponder::Agent => return Err(ApprovalReplyError::NotForAgents),
            ApprovalResponder::Program if request.requires_user => {
                return Err(ApprovalReplyError::NotForPrograms);
            }
            ApprovalResponder::User | ApprovalResponder::Program => {}
        }
        if request.input_sha256 != reply.input_sha256 {
            return Err(ApprovalReplyError::OtherInput);
        }
        if request.cancel.is_cancelled() {
            return Err(ApprovalReplyError::NotWaiting);
        }
        let waiting = board.remove(&reply.request).ok_or(ApprovalReplyError::NotWaiting)?;
        drop(board);
        // An error means that the call has just ended: cancelled, or out of time.
        waiting.answer.send(reply.answer).map_err(|_| ApprovalReplyError::NotWaiting)
    }
}

impl ApprovalBusInner {
    fn lock_queue(&self) -> MutexGuard<'_, ApprovalBusQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ApprovalBusQueue {
    fn remove(&mut self, id: &str) -> Option<PendingApproval> {
        self.waiting.remove(&self.by_id.remove(id)?)
    }
}

/// Removes a request when its call ends.
struct PendingApprovalGuard<'a> {
    inner: &'a ApprovalBusInner,
    id: &'a str,
}

impl Drop for PendingApprovalGuard<'_> {
    fn drop(&mut self) {
        self.inner.lock_queue().remove(self.id);
    }
}

impl Approver for ApprovalBus {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            {
                let mut board = self.inner.lock_queue();
                if board.watchers == 0 {
                    return ApprovalAnswer::Pass;
                }
                let number = board.next;
                if board.by_id.contains_key(&request.id) {
                    return ApprovalAnswer::Lost { why: "a request of this id waits already".to_owned() };
                }
                board.next += 1;
                board.by_id.insert(request.id.clone(), number);
                board.waiting.insert(number, PendingApproval { request: Arc::new(request.clone()), answer });
            }
            let posted = PendingApprovalGuard { inner: &self.inner, id: &request.id };
            self.inner.request_added.notify_waiters();
            let answer = tokio::select! {
                biased;
                () = request.cancel.cancelled() => {
                    ApprovalAnswer::Lost { why: "the question was withdrawn".to_owned() }
                }
                answer = answered => answer.unwrap_or_else(|_| ApprovalAnswer::Lost {
                    why: format!("`{}` went away without an answer", self.inner.name),
                }),
            };
            drop(posted);
            answer
        })
    }
}

/// Receives pending requests, each once, oldest first.
#[derive(Debug)]
pub struct ApprovalRequestReceiver {
    inner: Arc<ApprovalBusInner>,
    seen: Option<u64>,
}

impl ApprovalRequestReceiver {
    /// The next request that this receiver has not seen. Waits until there is one.
    pub async fn next(&mut self) -> Arc<ApprovalRequest> {
        let inner = Arc::clone(&self.inner);
        loop {
            let news = inner.request_added.notified();
            tokio::pin!(news);
            // Registered before the queue is read, so that no request in between is missed.
            news.as_mut().enable();
            if let Some(request) = self.next_unseen() {
                return request;
            }
            news.await;
        }
    }

    fn next_unseen(&mut self) -> Option<Arc<ApprovalRequest>> {
        let from = self.seen.map_or(0, |seen| seen.saturating_add(1));
        let board = self.inner.lock_queue();
        let (number, waiting) = board.waiting.range(from..).next()?;
        self.seen = Some(*number);
        Some(Arc::clone(&waiting.request))
    }
}

impl Drop for ApprovalRequestReceiver {
    fn drop(&mut self) {
        let mut board = self.inner.lock_queue();
        board.watchers = board.watchers.saturating_sub(1);
        if board.watchers == 0 {
            // The last receiver is gone: each pending call learns that now, not at its deadline.
            board.by_id.clear();
            board.waiting.clear();
        }
    }
}
