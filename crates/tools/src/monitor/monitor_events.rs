//! Events that wait for a session: lines of watched commands, messages of watched sockets.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use toolgate_gate::Session;

/// Events that wait for the session. Of more, the oldest are dropped and counted.
const MAX_WAITING_EVENTS: usize = 200;

/// Events that wait for the session.
#[derive(Debug, Default)]
pub(super) struct MonitorEvents {
    inner: Mutex<WaitingEvents>,
}

/// The state behind the lock of [`MonitorEvents`].
#[derive(Debug, Default)]
struct WaitingEvents {
    lines: VecDeque<String>,
    dropped: usize,
}

impl MonitorEvents {
    /// A panic while it was held leaves whole lines, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, WaitingEvents> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub(super) fn push(&self, line: String) {
        let mut waiting = self.lock();
        if waiting.lines.len() >= MAX_WAITING_EVENTS {
            waiting.lines.pop_front();
            waiting.dropped += 1;
        }
        waiting.lines.push_back(line);
    }
}

/// Takes what watched commands of a session have printed and watched sockets have sent, oldest first. It comes from programs:
/// data for a model, never instructions of the user.
pub fn take_monitor_events(session: &Session) -> Vec<String> {
    let events = session.state::<MonitorEvents>();
    let WaitingEvents { lines, dropped } = std::mem::take(&mut *events.lock());
    let note = (dropped > 0).then(|| format!("[{dropped} earlier events were dropped; TaskOutput has them]"));
    note.into_iter().chain(lines).collect()
}
