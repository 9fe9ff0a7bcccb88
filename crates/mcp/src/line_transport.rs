//! The line transport: JSON-RPC messages as lines, over any byte streams.
//!
//! Two things are done here that a stock line transport does not do.
//! Replies that are ready at the same time leave in one write, with backpressure when the client does not read: a client
//! with many calls in flight costs one system call for all of them.
//! The first sender that finds the stream idle writes; there is no task for that, because waking one costs more than
//! the write.
//! And the arguments of a call are kept as the text that arrived, because the gate reads that text strictly: a parser
//! in front of it would have dropped a duplicate key already.

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleClient, RoleServer};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use toolgate_gate::{CallReservation, CallScheduler};
use toolgate_process::{ByteSink, ByteSource};

/// Longer lines are refused: a line must be held whole.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Backpressure: a sender waits while more than this is queued for writing.
const MAX_QUEUED_BYTES: usize = 4 * 1024 * 1024;
/// The capacity reserved for each read: large enough for many small messages in one system call.
const READ_CHUNK_BYTES: usize = 64 * 1024;
/// Room for a list of the built-in tools, so that the buffer does not grow step by step with the first messages.
const INITIAL_QUEUE_BYTES: usize = 16 * 1024;

/// The arguments of a call as they arrived.
#[derive(Debug, Clone)]
pub(crate) struct RawArguments {
    /// The JSON text, unparsed, with duplicate keys still in it.
    pub(crate) text: String,
}

/// The place of a call among the others, taken when its line was read. Extensions must be `Clone`; the place is used once.
#[derive(Clone)]
pub(crate) struct ReservedPlace(Arc<Mutex<Option<CallReservation>>>);

impl ReservedPlace {
    /// Wraps a reservation, so that clones of the extension share it.
    fn new(reservation: CallReservation) -> Self {
        Self(Arc::new(Mutex::new(Some(reservation))))
    }

    /// Takes the reservation out, the first time.
    pub(crate) fn take(&self) -> Option<CallReservation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The JSON-RPC message of a line, or what to do instead.
pub(crate) enum ParsedMessageLine<R: ServiceRole> {
    /// A valid message, for the service.
    Message(Box<RxJsonRpcMessage<R>>),
    /// No message; this is to be sent back.
    Refused(Box<TxJsonRpcMessage<R>>),
    /// Nothing to answer.
    Ignored,
}

/// The server or client side of JSON-RPC, as far as reading lines goes.
pub(crate) trait LineTransportRole: ServiceRole {
    /// Parses one line. `opened` is set by the first request; `scheduler` reserves the place of a call in reading
    /// order.
    fn read_line(
        line: &[u8],
        opened: &mut bool,
        scheduler: Option<&CallScheduler>,
    ) -> ParsedMessageLine<Self>;
    /// Builds the reply to a line beyond the limit; `None` where the peer expects no such reply.
    fn line_too_long() -> Option<TxJsonRpcMessage<Self>>;
}

/// Lines in, lines out.
pub(crate) struct LineTransport<R: LineTransportRole> {
    /// The stream that is read.
    source: ByteSource,
    /// The bytes that were read and do not form a whole line yet.
    pending: Vec<u8>,
    /// How much of `pending` is known to hold no line end.
    searched: usize,
    /// The rest of a line that was too long is being skipped.
    skipping: bool,
    /// The parsed messages that wait for `receive`: one read may contain many.
    ready: VecDeque<RxJsonRpcMessage<R>>,
    /// Whether the first request has arrived; what a client sends before it is ignored.
    opened: bool,
    /// The queue that senders share.
    write_queue: Arc<LineWriteQueue>,
    /// Where calls get their place among the others.
    scheduler: Option<CallScheduler>,
}

impl<R: LineTransportRole> LineTransport<R> {
    /// A transport over two streams. Must be used inside a runtime.
    pub(crate) fn new(source: ByteSource, sink: ByteSink) -> Self {
        Self {
            source,
            pending: Vec::new(),
            searched: 0,
            skipping: false,
            ready: VecDeque::new(),
            opened: false,
            write_queue: Arc::new(LineWriteQueue::new(sink)),
            scheduler: None,
        }
    }

    /// Reserves a place with this scheduler for every call, in the order in which calls are read.
    pub(crate) fn with_scheduler(mut self, scheduler: CallScheduler) -> Self {
        self.scheduler = Some(scheduler);
        self
    }

    /// Takes every whole line out of what was read.
    fn take_lines(&mut self) {
        let mut start = 0;
        loop {
            let from = self.searched.max(start);
            let Some(found) =
                self.pending.get(from..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
            else {
                break;
            };
            let end = from + found;
            if std::mem::take(&mut self.skipping) {
                // The end of the line that was too long.
            } else if let Some(line) = self.pending.get(start..end) {
                match R::read_line(line, &mut self.opened, self.scheduler.as_ref()) {
                    ParsedMessageLine::Message(message) => self.ready.push_back(*message),
                    ParsedMessageLine::Refused(reply) => self.send_unasked(&reply),
                    ParsedMessageLine::Ignored => {}
                }
            }
            start = end + 1;
            self.searched = start;
        }
        self.pending.drain(..start);
        self.searched = self.pending.len();
        if self.pending.len() > MAX_LINE_BYTES {
            if !std::mem::replace(&mut self.skipping, true)
                && let Some(reply) = R::line_too_long()
            {
                self.send_unasked(&reply);
            }
            self.pending.clear();
            self.searched = 0;
        }
    }
}

impl<R: LineTransportRole> LineTransport<R> {
    /// Sends a reply of the transport itself. A task writes it, because the future that reads may be dropped at any
    /// time; an error will be seen by the next sender.
    fn send_unasked(&self, reply: &TxJsonRpcMessage<R>) {
        if self.write_queue.enqueue::<R>(reply).is_ok() {
            let write_queue = Arc::clone(&self.write_queue);
            tokio::spawn(async move { write_queue.write_out().await });
        }
    }
}

impl<R: LineTransportRole> Transport<R> for LineTransport<R> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<R>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let put = self.write_queue.enqueue::<R>(&item);
        let write_queue = Arc::clone(&self.write_queue);
        async move {
            put?;
            write_queue.write_out().await;
            write_queue.wait_for_room().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<R>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            // The state is kept in `self`, so nothing is lost when this future is dropped.
            self.pending.reserve(READ_CHUNK_BYTES);
            match self.source.read_buf(&mut self.pending).await {
                Ok(0) => return None,
                Ok(_) => {
                    self.take_lines();
                }
                Err(error) => {
                    tracing::debug!(%error, "the stream cannot be read");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write_queue.drain().await
    }
}

/// What waits to be written, and the stream that it goes to.
struct LineWriteQueue {
    /// The queued bytes, and who writes.
    state: Mutex<LineWriteQueueState>,
    /// The stream. Locked by the one sender that writes.
    sink: tokio::sync::Mutex<ByteSink>,
    /// Wakes senders that wait for room, and the closing side.
    written: Notify,
}

/// The part of the queue that all senders change.
#[derive(Default)]
struct LineWriteQueueState {
    /// The serialized messages of the next batch.
    waiting: Vec<u8>,
    /// The size of the batch being written; it counts towards the limit until it is flushed.
    writing: usize,
    /// A sender is writing, and will write what is added meanwhile.
    has_writer: bool,
    /// The error that ended the writing; every later send fails with it.
    broken: Option<io::ErrorKind>,
}

impl LineWriteQueue {
    /// An empty queue in front of a stream.
    fn new(sink: ByteSink) -> Self {
        let waiting = Vec::with_capacity(INITIAL_QUEUE_BYTES);
        let state = Mutex::new(LineWriteQueueState { waiting, ..LineWriteQueueState::default() });
        Self { state, sink: tokio::sync::Mutex::new(sink), written: Notify::new() }
    }

    /// Locks the state; no lock is held across an await.
    fn state(&self) -> std::sync::MutexGuard<'_, LineWriteQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serializes a message directly into the next batch, without an intermediate buffer. A message that fails to
    /// serialize leaves no partial line behind.
    fn enqueue<R: ServiceRole>(&self, message: &TxJsonRpcMessage<R>) -> io::Result<()> {
        let mut state = self.state();
        if let Some(kind) = state.broken {
            return Err(kind.into());
        }
        let before = state.waiting.len();
        if let Err(error) = serde_json::to_writer(&mut state.waiting, message) {
            state.waiting.truncate(before);
            return Err(error.into());
        }
        state.waiting.push(b'\n');
        Ok(())
    }

    /// Waits until there is room again.
    async fn wait_for_room(&self) -> io::Result<()> {
        self.wait_until(|state| state.waiting.len() + state.writing < MAX_QUEUED_BYTES).await
    }

    /// Writes what is left, and waits until all is out.
    async fn drain(&self) -> io::Result<()> {
        self.write_out().await;
        self.wait_until(|state| state.waiting.is_empty() && state.writing == 0).await
    }

    /// Waits until the state satisfies a condition. The waiter is registered before the check, because `notify_waiters`
    /// does not reach later waiters.
    async fn wait_until(&self, enough: impl Fn(&LineWriteQueueState) -> bool) -> io::Result<()> {
        loop {
            let written = self.written.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            {
                let state = self.state();
                if let Some(kind) = state.broken {
                    return Err(kind.into());
                }
                if enough(&state) {
                    return Ok(());
                }
            }
            written.await;
        }
    }

    /// Writes batches until the queue is empty or the stream fails, unless another sender is doing that already.
    async fn write_out(&self) {
        let Some(mut turn) = WriterTurn::take(self) else { return };
        let mut sink = self.sink.lock().await;
        let mut batch = Vec::new();
        while turn.take_batch(&mut batch) {
            let written = match sink.write_all(&batch).await {
                Ok(()) => sink.flush().await,
                Err(error) => Err(error),
            };
            turn.finish_batch(&written);
            if written.is_err() {
                return;
            }
        }
    }
}

/// The turn of one sender to write. A turn that is dropped in the middle of a batch breaks the queue: half a line may be
/// on the stream, and what follows it would be read as its end.
struct WriterTurn<'q> {
    /// The queue.
    queue: &'q LineWriteQueue,
    /// A batch was taken and is not written.
    is_writing: bool,
    /// The queue was found empty, and another sender may have the next turn.
    is_over: bool,
}

impl<'q> WriterTurn<'q> {
    /// Takes the turn. `None` where another sender has it.
    fn take(queue: &'q LineWriteQueue) -> Option<Self> {
        let has_writer = std::mem::replace(&mut queue.state().has_writer, true);
        if has_writer { None } else { Some(Self { queue, is_writing: false, is_over: false }) }
    }

    /// Takes everything that waits. False, and the end of the turn, where that is nothing.
    ///
    /// The buffers change places, so that both keep their capacity; a large one is freed, so that one big result does
    /// not occupy memory for the whole session.
    fn take_batch(&mut self, batch: &mut Vec<u8>) -> bool {
        batch.clear();
        if batch.capacity() > MAX_QUEUED_BYTES / 4 {
            *batch = Vec::new();
        }
        let mut state = self.queue.state();
        if state.waiting.is_empty() {
            if batch.capacity() > state.waiting.capacity() {
                std::mem::swap(&mut state.waiting, batch);
            }
            state.has_writer = false;
            self.is_over = true;
            return false;
        }
        std::mem::swap(&mut state.waiting, batch);
        state.writing = batch.len();
        self.is_writing = true;
        true
    }

    /// The batch is on the stream, or the stream failed.
    fn finish_batch(&mut self, written: &io::Result<()>) {
        let mut state = self.queue.state();
        state.writing = 0;
        state.broken = written.as_ref().err().map(io::Error::kind);
        self.is_writing = false;
        drop(state);
        self.queue.written.notify_waiters();
    }
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.queue.state();
        state.has_writer = false;
        if self.is_writing {
            state.writing = 0;
            state.broken = Some(io::ErrorKind::Interrupted);
        }
        drop(state);
        self.queue.written.notify_waiters();
    }
}

/// The keys of a call that count. Reading them by name refuses each that appears twice.
#[derive(Deserialize)]
struct CallEnvelope<'a> {
    /// Listed only so that a second `id` is an error.
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    /// Listed only so that a second `method` is an error.
    #[serde(default, rename = "method")]
    _method: IgnoredAny,
    /// The parameters, with the same check for duplicates.
    #[serde(borrow)]
    params: CallEnvelopeParams<'a>,
}

/// The parameters of a call, of which only the arguments are kept.
#[derive(Deserialize)]
struct CallEnvelopeParams<'a> {
    /// Listed only so that a second `name` is an error: the gate and the library could read different tools.
    #[serde(default, rename = "name")]
    _name: IgnoredAny,
    /// Listed only so that a second `_meta` is an error.
    #[serde(default, rename = "_meta")]
    _meta: IgnoredAny,
    /// Listed only so that a second `inputResponses` is an error.
    #[serde(default, rename = "inputResponses")]
    _responses: IgnoredAny,
    /// Listed only so that a second `requestState` is an error.
    #[serde(default, rename = "requestState")]
    _state: IgnoredAny,
    /// The arguments as they were sent; absent means an empty object.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The arguments of a `tools/call` as text; an error where the message can be read two ways.
pub(crate) fn parse_raw_arguments(message: &[u8]) -> Result<RawArguments, String> {
    let envelope: CallEnvelope<'_> = serde_json::from_slice(message).map_err(|error| error.to_string())?;
    let text = envelope.params.arguments.map_or("{}", RawValue::get).to_owned();
    Ok(RawArguments { text })
}

/// The id of an invalid JSON-RPC message, so that its sender gets an error.
fn parse_id(line: &[u8]) -> Option<RequestId> {
    /// The only field that is read from an invalid message.
    #[derive(Deserialize)]
    struct JsonRpcId {
        id: Option<RequestId>,
    }
    serde_json::from_slice::<JsonRpcId>(line).ok()?.id
}

impl LineTransportRole for RoleServer {
    fn read_line(
        line: &[u8],
        opened: &mut bool,
        scheduler: Option<&CallScheduler>,
    ) -> ParsedMessageLine<Self> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return ParsedMessageLine::Ignored;
        }
        let refused = |error, id| ParsedMessageLine::Refused(Box::new(JsonRpcMessage::error(error, id)));
        let mut message = match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
            Ok(message) => message,
            Err(error) if error.is_data() => {
                let text = format!("this is not a message of the protocol: {error}");
                return refused(ErrorData::invalid_request(text, None), parse_id(line));
            }
            Err(error) => {
                return refused(ErrorData::parse_error(format!("not valid JSON: {error}"), None), None);
            }
        };
        if let JsonRpcMessage::Request(request) = &mut message {
            *opened = true;
            let call = match &mut request.request {
                ClientRequest::CallToolRequest(call) => Some(Some(call)),
                // What has this name and not this shape is taken for something unknown by the library.
                ClientRequest::CustomRequest(custom) if custom.method == "tools/call" => Some(None),
                _ => None,
            };
            if let Some(call) = call {
                let problem = match (parse_raw_arguments(line), call) {
                    (Ok(raw), Some(call)) => {
                        call.extensions.insert(raw);
                        if let Some(scheduler) = scheduler {
                            call.extensions.insert(ReservedPlace::new(scheduler.reserve()));
                        }
                        None
                    }
                    (Ok(_), None) => Some("the parameters are not those of a call".to_owned()),
                    (Err(problem), _) => Some(problem),
                };
                if let Some(problem) = problem {
                    let error = ErrorData::invalid_request(problem, None);
                    return refused(error, Some(request.id.clone()));
                }
            }
        }
        // Before the first request nothing can be meant for us, and it must not end the connection.
        if *opened { ParsedMessageLine::Message(Box::new(message)) } else { ParsedMessageLine::Ignored }
    }

    fn line_too_long() -> Option<TxJsonRpcMessage<Self>> {
        let text = format!("the line is longer than the {MAX_LINE_BYTES} bytes allowed");
        Some(JsonRpcMessage::error(ErrorData::invalid_request(text, None), None))
    }
}

impl LineTransportRole for RoleClient {
    fn read_line(line: &[u8], _: &mut bool, _: Option<&CallScheduler>) -> ParsedMessageLine<Self> {
        match serde_json::from_slice(line) {
            Ok(message) => ParsedMessageLine::Message(Box::new(message)),
            // Servers that print to standard output are common; what they print is not for us.
            Err(error) => {
                tracing::debug!(%error, "a line from a server is not a message");
                ParsedMessageLine::Ignored
            }
        }
    }

    fn line_too_long() -> Option<TxJsonRpcMessage<Self>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_as_they_arrived() {
        for (message, expected) in [
            (
                r#"{"id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":2}}}"#,
                r#"{"a":1,"a":2}"#,
            ),
            (r#"{"params":{"name":"x"}}"#, "{}"),
            (r#"{"params":{"arguments":{"a":1},"arguments":{"a":2}}}"#, "!duplicate"),
            (r#"{"params":{"name":"x","name":"y"}}"#, "!duplicate"),
            (r#"{"params":{"name":"x"},"params":{"name":"y"}}"#, "!duplicate"),
        ] {
            match (parse_raw_arguments(message.as_bytes()), expected.strip_prefix('!')) {
                (Ok(raw), None) => assert_eq!(raw.text, expected),
                (Err(problem), Some(says)) => assert!(problem.contains(says), "{problem}"),
                (got, _) => panic!("{message}: {got:?}"),
            }
        }
    }
}
