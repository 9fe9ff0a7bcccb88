//! One JSON-RPC connection over the standard streams of a server: requests with a time limit and cancellation, and the
//! requests and notifications of the server.
//!
//! The connection ends as a whole: an error of the framing, a server that does not read its input, or the end of a stream
//! close it, and every request under way fails with that reason.

use crate::framing::{MessageReader, frame_message};
use crate::message::{RpcError, ServerMessage, parse_message};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Messages that wait to be written. A server that does not read its input fills this, and is given up.
const MAX_QUEUED_MESSAGES: usize = 1024;
/// The reason of a connection whose server closed its output.
pub(crate) const ENDED: &str = "it ended";

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// The connection is closed, for this reason.
    Closed(String),
    /// No answer within the time limit.
    TimedOut(Duration),
    /// The caller cancelled the request.
    Cancelled,
    /// The server answered with an error.
    Rejected(RpcError),
    /// The server answered with a result of another type.
    Invalid(String),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => f.write_str(reason),
            Self::TimedOut(limit) => write!(f, "it did not answer within {} s", limit.as_secs_f32()),
            Self::Cancelled => f.write_str("the request was cancelled"),
            Self::Rejected(error) => write!(f, "it answered with an error: {error}"),
            Self::Invalid(problem) => write!(f, "its answer is invalid: {problem}"),
        }
    }
}

/// Handles what a server sends by itself. Called on the task that reads, so it must not wait.
pub(crate) trait ServerMessageHandler: Send + Sync + 'static {
    /// Answers a request of the server.
    fn handle_request(&self, method: &str, params: Option<&RawValue>) -> Result<Value, RpcError>;

    /// Takes a notification.
    fn handle_notification(&self, method: &str, params: Option<&RawValue>);
}

/// The outcome of a request: the result as JSON text, or why there is none.
type PendingResult = Result<Box<RawValue>, RequestError>;

/// What the tasks of a connection share with its requests.
struct SharedConnection {
    /// The requests that wait for an answer, by id.
    pending: Mutex<HashMap<u64, oneshot::Sender<PendingResult>>>,
    /// The messages that wait to be written.
    outgoing: mpsc::Sender<Vec<u8>>,
    /// How many messages were received.
    received: AtomicU64,
    /// Why the connection is closed; set once.
    reason: OnceLock<String>,
    /// Cancelled when the connection is closed; ends both tasks, and with them the streams.
    closed: CancellationToken,
}

impl SharedConnection {
    /// The requests under way; a panic of another thread cannot leave them half changed.
    fn lock_pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<PendingResult>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection for this reason, unless it is closed, and fails every request under way.
    fn close(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
        self.closed.cancel();
        let pending = std::mem::take(&mut *self.lock_pending());
        for waiting in pending.into_values() {
            let _ = waiting.send(Err(self.closed_error()));
        }
    }

    /// The error of a request to a connection that is closed.
    fn closed_error(&self) -> RequestError {
        RequestError::Closed(self.reason.get().cloned().unwrap_or_else(|| "it was stopped".to_owned()))
    }

    /// Queues a message without waiting.
    fn queue(&self, message: &impl Serialize) -> Result<(), RequestError> {
        let body = serde_json::to_vec(message).map_err(|error| RequestError::Invalid(error.to_string()))?;
        match self.outgoing.try_send(frame_message(&body)) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.close("it does not read its input");
                Err(self.closed_error())
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(self.closed_error()),
        }
    }
}

/// A connection to a server. Dropping it closes it.
pub(crate) struct RpcConnection {
    /// What the two tasks share with the requests.
    shared: Arc<SharedConnection>,
    /// The id of the next request.
    next_id: AtomicU64,
}

impl RpcConnection {
    /// Starts the two tasks that read and write. Must be called inside a runtime.
    pub(crate) fn open(
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        handler: Arc<dyn ServerMessageHandler>,
    ) -> Self {
        let (outgoing, queued) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let shared = Arc::new(SharedConnection {
            pending: Mutex::default(),
            outgoing,
            received: AtomicU64::new(0),
            reason: OnceLock::new(),
            closed: CancellationToken::new(),
        });
        tokio::spawn(read_messages(MessageReader::new(output), handler, Arc::clone(&shared)));
        tokio::spawn(write_messages(input, queued, Arc::clone(&shared)));
        Self { shared, next_id: AtomicU64::new(1) }
    }

    /// Why the connection is closed; `None` while it is open.
    pub(crate) fn closed_reason(&self) -> Option<String> {
        self.shared.closed.is_cancelled().then(|| self.shared.closed_error().to_string())
    }

    /// How many messages were received so far.
    pub(crate) fn received_count(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// The error of a request to a connection that is closed.
    pub(crate) fn closed_error(&self) -> RequestError {
        self.shared.closed_error()
    }

    /// Waits until the connection is closed.
    pub(crate) async fn wait_closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// Closes it.
    pub(crate) fn close(&self, reason: &str) {
        self.shared.close(reason);
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), RequestError> {
        self.shared.queue(&OutgoingMessage { jsonrpc: "2.0", id: None, method, params })
    }

    /// Sends a request and waits for its answer. A request that is given up is cancelled at the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> PendingResult {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.shared.lock_pending().insert(id, sender);
        let mut guard = PendingGuard { shared: &self.shared, id, answered: false };
        if self.shared.closed.is_cancelled() {
            guard.answered = true;
            self.shared.lock_pending().remove(&id);
            return Err(self.shared.closed_error());
        }
        self.shared.queue(&OutgoingMessage { jsonrpc: "2.0", id: Some(id), method, params })?;
        tokio::select! {
            biased;
            answer = receiver => {
                guard.answered = true;
                answer.unwrap_or_else(|_| Err(self.shared.closed_error()))
            }
            () = cancel.cancelled() => Err(RequestError::Cancelled),
            () = tokio::time::sleep(limit) => Err(RequestError::TimedOut(limit)),
        }
    }
}

impl Drop for RpcConnection {
    fn drop(&mut self) {
        self.shared.close("it was stopped");
    }
}

/// Forgets a request that is given up, also by dropping its future, and notifies the server.
struct PendingGuard<'a> {
    /// The connection that holds the request.
    shared: &'a SharedConnection,
    /// The id of the request.
    id: u64,
    /// Set when the answer arrived, so that dropping the guard does nothing.
    answered: bool,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let was_pending = self.shared.lock_pending().remove(&self.id).is_some();
        if was_pending && !self.shared.closed.is_cancelled() {
            let params = json!({ "id": self.id });
            let cancel =
                OutgoingMessage { jsonrpc: "2.0", id: None, method: "$/cancelRequest", params: &params };
            let _ = self.shared.queue(&cancel);
        }
    }
}

/// A request, or a notification if it has no id.
#[derive(Serialize)]
struct OutgoingMessage<'a, P: Serialize> {
    /// The version of JSON-RPC, always `2.0`.
    jsonrpc: &'static str,
    /// The id of a request; a notification must not have the field at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// The method of the protocol.
    method: &'a str,
    /// The parameters, borrowed: a document is not copied before it is serialized.
    params: &'a P,
}

/// The answer to a request of the server.
#[derive(Serialize)]
struct OutgoingAnswer<'a> {
    /// The version of JSON-RPC, always `2.0`.
    jsonrpc: &'static str,
    /// The server's id as it was received: it may be a number or a string.
    id: &'a RawValue,
    /// The result; absent if there is an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// The error; absent if there is a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

/// Reads messages until the stream ends or one is invalid, and closes the connection then.
async fn read_messages<R: AsyncRead + Unpin>(
    mut reader: MessageReader<R>,
    handler: Arc<dyn ServerMessageHandler>,
    shared: Arc<SharedConnection>,
) {
    let reason = loop {
        let read = tokio::select! {
            biased;
            () = shared.closed.cancelled() => return,
            read = reader.read_message() => read,
        };
        let body = match read {
            Ok(Some(body)) => body,
            Ok(None) => break ENDED.to_owned(),
            Err(error) => break error.to_string(),
        };
        shared.received.fetch_add(1, Ordering::Relaxed);
        match parse_message(&body) {
            Ok(message) => dispatch_message(message, handler.as_ref(), &shared),
            Err(problem) => break format!("it sent a message that is not JSON-RPC: {problem}"),
        }
        // A server that floods must not keep a worker of the runtime to itself.
        tokio::task::consume_budget().await;
    };
    shared.close(reason);
}

/// Gives an answer to its request, and anything else to the handler.
fn dispatch_message(message: ServerMessage, handler: &dyn ServerMessageHandler, shared: &SharedConnection) {
    match message {
        ServerMessage::Response { id, result } => {
            // An answer to no request, or a second one, is dropped.
            let waiting = shared.lock_pending().remove(&id);
            if let Some(waiting) = waiting {
                let _ = waiting.send(result.map_err(RequestError::Rejected));
            }
        }
        ServerMessage::Request { id, method, params } => {
            let (result, error) = match handler.handle_request(&method, params.as_deref()) {
                Ok(result) => (Some(result), None),
                Err(error) => (None, Some(error)),
            };
            let _ = shared.queue(&OutgoingAnswer { jsonrpc: "2.0", id: &id, result, error });
        }
        ServerMessage::Notification { method, params } => {
            handler.handle_notification(&method, params.as_deref());
        }
        ServerMessage::Unrelated => {}
    }
}

/// Writes queued messages until the connection is closed.
async fn write_messages(
    mut input: impl AsyncWrite + Unpin,
    mut queued: mpsc::Receiver<Vec<u8>>,
    shared: Arc<SharedConnection>,
) {
    loop {
        let message = tokio::select! {
            biased;
            () = shared.closed.cancelled() => return,
            message = queued.recv() => message,
        };
        let Some(message) = message else { return };
        let written = tokio::select! {
            biased;
            () = shared.closed.cancelled() => return,
            written = input.write_all(&message) => written,
        };
        if let Err(error) = written {
            shared.close(format!("its input cannot be written: {error}"));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    struct SilentHandler;

    impl ServerMessageHandler for SilentHandler {
        fn handle_request(&self, method: &str, _: Option<&RawValue>) -> Result<Value, RpcError> {
            Ok(json!({ "asked": method }))
        }

        fn handle_notification(&self, _: &str, _: Option<&RawValue>) {}
    }

    /// A connection, and the server's ends of it.
    fn connect() -> (RpcConnection, tokio::io::DuplexStream, tokio::io::DuplexStream) {
        let (output, server_output) = tokio::io::duplex(1 << 16);
        let (input, server_input) = tokio::io::duplex(1 << 16);
        (RpcConnection::open(output, input, Arc::new(SilentHandler)), server_output, server_input)
    }

    #[tokio::test]
    async fn answers_reach_their_requests_whatever_the_order_and_whatever_else_is_sent() {
        let (connection, mut output, _input) = connect();
        let cancel = CancellationToken::new();
        let limit = Duration::from_secs(30);
        let params = Value::Null;
        let one = connection.request("a", &params, limit, &cancel);
        let two = connection.request("b", &params, limit, &cancel);
        let server = async {
            for body in [
                r#"{"id":77,"result":"unknown"}"#,
                r#"{"id":"1","result":"other type"}"#,
                r#"{"id":2,"result":"two"}"#,
                r#"{"id":2,"result":"again"}"#,
                r#"{"id":1,"error":{"code":1,"message":"first\nsecond"}}"#,
            ] {
                output.write_all(&frame_message(body.as_bytes())).await.unwrap();
            }
        };
        let (one, two, ()) = tokio::join!(one, two, server);
        assert_eq!(two.unwrap().get(), "\"two\"");
        assert_eq!(one.unwrap_err().to_string(), "it answered with an error: first (code 1)");
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_cancelled_at_the_server() {
        let (connection, _output, mut input) = connect();
        let cancel = CancellationToken::new();
        let params = Value::Null;
        let late = connection.request("slow", &params, Duration::from_millis(1), &cancel).await;
        assert_eq!(late.unwrap_err(), RequestError::TimedOut(Duration::from_millis(1)));
        let mut seen = String::new();
        while !seen.contains(r#""method":"$/cancelRequest","params":{"id":1}"#) {
            let mut bytes = [0; 512];
            let count = input.read(&mut bytes).await.unwrap();
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        assert!(connection.shared.lock_pending().is_empty());
    }

    #[tokio::test]
    async fn the_end_of_the_stream_fails_what_is_under_way_and_what_comes_later() {
        let (connection, output, _input) = connect();
        let cancel = CancellationToken::new();
        let params = Value::Null;
        let limit = Duration::from_secs(30);
        let (first, ()) =
            tokio::join!(connection.request("a", &params, limit, &cancel), async { drop(output) });
        let closed = RequestError::Closed("it ended".to_owned());
        assert_eq!(first.unwrap_err(), closed);
        assert_eq!(connection.request("b", &params, limit, &cancel).await.unwrap_err(), closed);
    }

    #[tokio::test]
    async fn a_server_that_does_not_read_is_given_up() {
        let (connection, _output, _input) = connect();
        let text = "x".repeat(1000);
        let refused = (0..MAX_QUEUED_MESSAGES * 4).find_map(|_| connection.notify("note", &text).err());
        assert_eq!(refused, Some(RequestError::Closed("it does not read its input".to_owned())));
    }
}
