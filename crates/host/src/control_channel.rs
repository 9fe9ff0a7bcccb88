//! Requests to the host and their answers.
//!
//! A request that is dropped is withdrawn at the host. A host that goes away, or answers with an error, has not allowed anything:
//! every such end is an error here.

use crate::frame_writer::FrameWriter;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// The channel. Clones share it.
#[derive(Debug, Clone)]
pub struct ControlChannel {
    /// The state that clones share.
    inner: Arc<ControlChannelInner>,
}

/// What clones share.
#[derive(Debug)]
struct ControlChannelInner {
    /// The output to the host; requests and other frames share it.
    writer: FrameWriter,
    /// The requests that wait for an answer.
    state: Mutex<ControlChannelState>,
    /// How many requests wait for the user.
    open_questions: watch::Sender<usize>,
}

/// The open requests.
#[derive(Debug, Default)]
struct ControlChannelState {
    /// The number of the last request, from which its id is built.
    next: u64,
    /// The waiting side of each request, by id.
    waiting: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    /// Set when the host is gone; a later request fails at once instead of waiting for ever.
    is_closed: bool,
}

/// Why the host gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlError {
    /// The host answered with an error.
    Refused(String),
    /// The host is gone.
    Lost,
    /// The request is longer than a frame may be, so the host was not asked.
    TooLong,
}

impl std::fmt::Display for ControlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Lost => f.write_str("the host closed its side"),
            Self::TooLong => f.write_str(
                "the request is longer than a frame may be, so the host was not asked; split the call into smaller ones",
            ),
        }
    }
}

impl ControlChannel {
    /// A channel over a writer; answers are handed in by [`ControlChannel::accept_answer`].
    pub fn new(writer: FrameWriter) -> Self {
        let inner =
            ControlChannelInner { writer, state: Mutex::default(), open_questions: watch::Sender::new(0) };
        Self { inner: Arc::new(inner) }
    }

    /// The writer beneath.
    pub fn writer(&self) -> &FrameWriter {
        &self.inner.writer
    }

    /// Sends a request and waits for its answer. Dropping the future withdraws the request. One that does not fit into a
    /// frame is not sent: a host that decides about a part of a call, or returns a part of it as its input, would change
    /// what runs.
    pub async fn request(&self, request: Value) -> Result<Value, ControlError> {
        self.send(request, true).await
    }

    /// The same, for what has happened already: long texts are cut.
    pub async fn report(&self, request: Value) -> Result<Value, ControlError> {
        self.send(request, false).await
    }

    /// Sends a request, whole or cut, and waits for its answer.
    async fn send(&self, request: Value, is_whole: bool) -> Result<Value, ControlError> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut state = self.lock();
            if state.is_closed {
                return Err(ControlError::Lost);
            }
            state.next += 1;
            let id = format!("tg_{}", state.next);
            state.waiting.insert(id.clone(), answer);
            id
        };
        let mut open = OpenRequest { channel: self, id, is_answered: false };
        let frame = json!({ "type": "control_request", "request_id": open.id, "request": request });
        if !is_whole {
            self.inner.writer.write(frame);
        } else if !self.inner.writer.write_whole(&frame) {
            open.is_answered = true;
            self.lock().waiting.remove(&open.id);
            return Err(ControlError::TooLong);
        }
        let answer = answered.await;
        open.is_answered = true;
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(why)) => Err(ControlError::Refused(why)),
            Err(_) => Err(ControlError::Lost),
        }
    }

    /// The same, for a question that the user answers: the session's state says so meanwhile.
    pub async fn ask_user(&self, request: Value) -> Result<Value, ControlError> {
        self.inner.open_questions.send_modify(|count| *count += 1);
        let _open = OpenQuestion { channel: self };
        self.request(request).await
    }

    /// How many questions are open, and when that changes.
    pub fn open_questions(&self) -> watch::Receiver<usize> {
        self.inner.open_questions.subscribe()
    }

    /// Takes the `response` of a `control_response`.
    pub fn accept_answer(&self, response: &Value) {
        let text = |key: &str| response.get(key).and_then(Value::as_str).unwrap_or_default();
        // An answer to a request that is no longer open changes nothing.
        let Some(waiting) = self.lock().waiting.remove(text("request_id")) else { return };
        let answer = match text("subtype") {
            "success" => Ok(response.get("response").cloned().unwrap_or(Value::Null)),
            _ => Err(text("error").to_owned()),
        };
        let _ = waiting.send(answer);
    }

    /// The host withdraws its answer to a request.
    pub fn withdraw(&self, request_id: &str) {
        if let Some(waiting) = self.lock().waiting.remove(request_id) {
            let _ = waiting.send(Err("the host withdrew the question".to_owned()));
        }
    }

    /// The host is gone: every open request fails, and so does each later one.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.waiting.clear();
    }

    /// The open requests; a panic of another thread cannot leave one half registered.
    fn lock(&self) -> MutexGuard<'_, ControlChannelState> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is withdrawn when it is dropped without an answer.
struct OpenRequest<'a> {
    /// The channel that the request was sent on.
    channel: &'a ControlChannel,
    /// The id under which the host knows the request.
    id: String,
    /// Set when the wait is over, so that the request is not withdrawn.
    is_answered: bool,
}

impl Drop for OpenRequest<'_> {
    /// Withdraws a request that is still open.
    fn drop(&mut self) {
        if !self.is_answered && self.channel.lock().waiting.remove(&self.id).is_some() {
            let cancel = json!({ "type": "control_cancel_request", "request_id": self.id });
            self.channel.inner.writer.write(cancel);
        }
    }
}

/// Counts an open question.
struct OpenQuestion<'a> {
    /// The channel whose counter goes down when this is dropped.
    channel: &'a ControlChannel,
}

impl Drop for OpenQuestion<'_> {
    /// The question is answered or withdrawn.
    fn drop(&mut self) {
        self.channel.inner.open_questions.send_modify(|count| *count = count.saturating_sub(1));
    }
}
