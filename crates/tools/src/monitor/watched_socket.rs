//! A WebSocket whose messages become events.
//!
//! It is a task beside the commands of the session: `TaskOutput` shows its last messages, and `TaskStop` closes it.

use super::MAX_LINE_CHARS;
use super::monitor_events::MonitorEvents;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Session;
use toolgate_net::web::{SocketMessage, WebSocketReader};
use toolgate_proto::fit_line;

/// Messages that are kept for `TaskOutput`.
const MAX_KEPT_MESSAGES: usize = 500;
/// Sockets whose messages can be read after they were closed.
const MAX_ENDED_SOCKETS: usize = 20;

/// The sockets that a session watches, and watched. The end of the session closes them.
#[derive(Debug, Default)]
pub(crate) struct WatchedSockets {
    sockets: Mutex<BTreeMap<u64, Arc<WatchedSocket>>>,
}

/// A socket that is watched.
#[derive(Debug)]
pub(crate) struct WatchedSocket {
    /// The id that models use.
    pub(crate) id: String,
    /// Where it is.
    pub(crate) url: String,
    /// What it is for, in the model's words.
    description: String,
    /// Closes it.
    stop: CancellationToken,
    started: Instant,
    state: Mutex<SocketState>,
}

/// What is known of a socket.
#[derive(Debug, Default)]
struct SocketState {
    /// The last messages.
    messages: VecDeque<String>,
    /// How many came in all.
    count: usize,
    /// Why it ended.
    ending: Option<String>,
}

impl WatchedSockets {
    /// A panic while it was held leaves whole entries, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<WatchedSocket>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a socket; of those that have ended the oldest are forgotten.
    pub(super) fn add(&self, number: u64, url: &str, description: &str) -> Arc<WatchedSocket> {
        let socket = Arc::new(WatchedSocket {
            id: format!("task_{number}"),
            url: url.to_owned(),
            description: description.to_owned(),
            stop: CancellationToken::new(),
            started: Instant::now(),
            state: Mutex::default(),
        });
        let mut sockets = self.lock();
        sockets.insert(number, Arc::clone(&socket));
        let ended: Vec<u64> =
            sockets.iter().filter(|(_, socket)| !socket.is_live()).map(|(number, _)| *number).collect();
        for number in ended.iter().take(ended.len().saturating_sub(MAX_ENDED_SOCKETS)) {
            sockets.remove(number);
        }
        socket
    }

    /// How many are open.
    pub(super) fn live_count(&self) -> usize {
        self.lock().values().filter(|socket| socket.is_live()).count()
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<WatchedSocket>> {
        self.lock().values().cloned().collect()
    }
}

impl Drop for WatchedSockets {
    fn drop(&mut self) {
        for socket in self.lock().values() {
            socket.stop.cancel();
        }
    }
}

/// The socket of a session with this id.
pub(crate) fn find_socket(session: &Session, id: &str) -> Option<Arc<WatchedSocket>> {
    session.state::<WatchedSockets>().all().into_iter().find(|socket| socket.id == id)
}

impl WatchedSocket {
    /// A panic while it was held leaves whole messages, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, SocketState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is open.
    pub(crate) fn is_live(&self) -> bool {
        self.lock().ending.is_none()
    }

    /// Closes it.
    pub(crate) fn close(&self) {
        self.stop.cancel();
        self.end("it was stopped");
    }

    /// Notes the end; the first reason counts. False if it had ended before.
    fn end(&self, why: &str) -> bool {
        let mut state = self.lock();
        let is_first = state.ending.is_none();
        state.ending.get_or_insert_with(|| why.to_owned());
        is_first
    }

    /// One line: id, state, time, purpose.
    pub(crate) fn summary(&self) -> String {
        let state = self.lock();
        let status = state.ending.as_deref().unwrap_or("open");
        let (seconds, count) = (self.started.elapsed().as_secs(), state.count);
        format!("{}: {status}, {count} messages, {seconds} s: {}", self.id, self.description)
    }

    /// The last messages, and how many came before them.
    pub(crate) fn last_messages(&self) -> (Vec<String>, usize) {
        let state = self.lock();
        (state.messages.iter().cloned().collect(), state.count - state.messages.len())
    }

    /// Keeps a message, and renders it as one line.
    fn keep(&self, message: SocketMessage) -> String {
        let line = match message {
            SocketMessage::Text(text) => fit_line(&text, MAX_LINE_CHARS),
            SocketMessage::Binary(bytes) => format!("[{bytes} bytes that are not text]"),
        };
        let mut state = self.lock();
        state.count += 1;
        if state.messages.len() >= MAX_KEPT_MESSAGES {
            state.messages.pop_front();
        }
        state.messages.push_back(line.clone());
        line
    }

    /// Follows it to its end, and closes it at the timeout.
    pub(super) async fn follow(
        self: Arc<Self>,
        name: String,
        mut reader: WebSocketReader,
        (timeout, events): (Duration, Arc<MonitorEvents>),
    ) {
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let why = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = &mut deadline => break "its time is over".to_owned(),
                message = reader.next_message() => match message {
                    Ok(message) => events.push(format!("[{name}] {}", self.keep(message))),
                    Err(why) => break why,
                },
            }
        };
        if self.end(&why) {
            events.push(format!("[{name}] it has ended: {}", self.summary()));
        }
    }
}
