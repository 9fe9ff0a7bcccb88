//! The debugging protocol of the browser: JSON messages, each ended by a zero byte, over two pipes.

use super::page_events::{PageEvents, PausedRequest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Bytes of one message: an image in base64, with room to spare.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Messages to the browser that wait to be written.
const MAX_QUEUED_MESSAGES: usize = 256;
/// Requests of a page for local files that wait for an answer.
const MAX_PAUSED_REQUESTS: usize = 256;

/// The answer to a command, or what the browser says about its failure.
type CommandAnswer = Result<Value, String>;
/// Commands without an answer so far, by their number.
type PendingCommands = Arc<Mutex<HashMap<u64, oneshot::Sender<CommandAnswer>>>>;

/// A connection to a browser. Dropping it closes both pipes.
pub(super) struct DebugPipe {
    /// Written by a task, so that the reader can answer events too.
    outgoing: mpsc::Sender<Vec<u8>>,
    /// Shared with the reader.
    pending: PendingCommands,
    /// The number of the next command.
    next_id: AtomicU64,
    /// What the page did, as the reader sees it.
    events: watch::Receiver<PageEvents>,
    /// The reader and the writer.
    tasks: [JoinHandle<()>; 2],
}

impl Drop for DebugPipe {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl DebugPipe {
    /// Starts to read and write. Must be called inside a runtime.
    pub(super) fn new(
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
    ) -> (Self, mpsc::Receiver<PausedRequest>) {
        let (outgoing, queued) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let (paused_sender, paused) = mpsc::channel(MAX_PAUSED_REQUESTS);
        let (events_sender, events) = watch::channel(PageEvents::default());
        let pending = PendingCommands::default();
        let reader = PipeReader {
            pending: Arc::clone(&pending),
            outgoing: outgoing.clone(),
            events: events_sender,
            paused: paused_sender,
        };
        let tasks = [tokio::spawn(reader.read(output)), tokio::spawn(write_messages(input, queued))];
        (Self { outgoing, pending, next_id: AtomicU64::new(1), events, tasks }, paused)
    }

    /// Sends a command and waits for its answer. The caller limits the time.
    pub(super) async fn call(&self, session: Option<&str>, method: &str, params: Value) -> CommandAnswer {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let message = frame_message(id, session, method, &params);
        let closed = || "the browser has ended".to_owned();
        self.outgoing.send(message).await.map_err(|_| closed())?;
        match answer.await {
            Ok(answer) => answer.map_err(|problem| format!("{method}: {problem}")),
            Err(_) => Err(closed()),
        }
    }

    /// What the page did so far, and notice of every change.
    pub(super) fn events(&self) -> watch::Receiver<PageEvents> {
        self.events.clone()
    }
}

/// One message with its end.
fn frame_message(id: u64, session: Option<&str>, method: &str, params: &Value) -> Vec<u8> {
    let mut message = json!({ "id": id, "method": method, "params": params });
    if let (Value::Object(fields), Some(session)) = (&mut message, session) {
        fields.insert("sessionId".to_owned(), json!(session));
    }
    let mut bytes = message.to_string().into_bytes();
    bytes.push(0);
    bytes
}

/// Writes until the pipe or the connection is closed.
async fn write_messages(mut input: impl AsyncWrite + Unpin, mut queued: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = queued.recv().await {
        if input.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// What the task that reads needs.
struct PipeReader {
    /// Commands that wait for an answer.
    pending: PendingCommands,
    /// For the answers to dialogs.
    outgoing: mpsc::Sender<Vec<u8>>,
    /// What the page did.
    events: watch::Sender<PageEvents>,
    /// Requests that toolgate answers itself.
    paused: mpsc::Sender<PausedRequest>,
}

impl PipeReader {
    /// Reads until the browser closes the pipe or sends a message that is too long. Every command that waits fails then.
    async fn read(self, mut output: impl AsyncRead + Unpin) {
        let mut buffer: Vec<u8> = Vec::new();
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match output.read(&mut chunk).await {
                Ok(count) if count > 0 => {
                    let mut rest = chunk.get(..count).unwrap_or_default();
                    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
                        let (message, after) = rest.split_at(end);
                        buffer.extend_from_slice(message);
                        self.take_message(&buffer);
                        buffer.clear();
                        rest = after.get(1..).unwrap_or_default();
                    }
                    buffer.extend_from_slice(rest);
                    if buffer.len() > MAX_MESSAGE_BYTES {
                        break;
                    }
                }
                Ok(_) | Err(_) => break,
            }
        }
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.events.send_modify(|events| events.has_ended = true);
    }

    /// Hands an answer to the command that waits for it, and applies an event.
    fn take_message(&self, bytes: &[u8]) {
        let Ok(Value::Object(mut message)) = serde_json::from_slice::<Value>(bytes) else { return };
        if let Some(id) = message.get("id").and_then(Value::as_u64) {
            let waiting = self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            let answer = match (message.remove("error"), message.remove("result")) {
                (Some(error), _) => {
                    Err(error.get("message").and_then(Value::as_str).unwrap_or("refused").to_owned())
                }
                (None, result) => Ok(result.unwrap_or_default()),
            };
            if let Some(waiting) = waiting {
                let _ = waiting.send(answer);
            }
            return;
        }
        let Some(method) = message.get("method").and_then(Value::as_str) else { return };
        let params = message.get("params").unwrap_or(&Value::Null);
        let session = message.get("sessionId").and_then(Value::as_str);
        match method {
            // A dialog stops the scripts of a page until it is answered.
            "Page.javascriptDialogOpening" => {
                let answer = frame_message(
                    0,
                    session,
                    "Page.handleJavaScriptDialog",
                    // Leaving a page must not be kept from happening by the page.
                    &json!({ "accept": params.get("type").and_then(Value::as_str) == Some("beforeunload") }),
                );
                let _ = self.outgoing.try_send(answer);
            }
            "Fetch.requestPaused" => {
                if let Some(request) = PausedRequest::from_event(params) {
                    let _ = self.paused.try_send(request);
                }
            }
            _ => {
                self.events.send_if_modified(|events| events.apply(method, params));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_find_their_commands_and_the_end_fails_the_rest() {
        let (ours, theirs) = tokio::io::duplex(64);
        let (output, input) = tokio::io::split(ours);
        let (pipe, _paused) = DebugPipe::new(output, input);
        let browser = tokio::spawn(async move {
            let (mut requests, mut answers) = tokio::io::split(theirs);
            let mut seen = Vec::new();
            // Three commands; the second is answered first, in pieces, and the third never.
            while seen.iter().filter(|&&byte| byte == 0).count() < 3 {
                seen.push(requests.read_u8().await.unwrap());
            }
            let messages: Vec<Value> = seen
                .split(|&byte| byte == 0)
                .filter(|part| !part.is_empty())
                .map(|part| serde_json::from_slice(part).unwrap())
                .collect();
            let id = |method: &str| {
                messages.iter().find(|message| message["method"] == method).unwrap()["id"].clone()
            };
            let text = format!(
                "{}\0not json\0{}\0",
                json!({ "id": id("b"), "error": { "message": "no such thing" } }),
                json!({ "id": id("a"), "result": { "long": "x".repeat(1_000) } })
            );
            answers.write_all(text.as_bytes()).await.unwrap();
        });
        let (a, b, c) = tokio::join!(
            pipe.call(None, "a", json!({})),
            pipe.call(Some("s"), "b", json!({})),
            pipe.call(None, "c", json!({}))
        );
        browser.await.unwrap();
        assert_eq!(a.unwrap()["long"].as_str().unwrap().len(), 1_000);
        assert_eq!(b.unwrap_err(), "b: no such thing");
        assert_eq!(c.unwrap_err(), "the browser has ended");
        assert!(pipe.events().borrow().has_ended);
    }
}
