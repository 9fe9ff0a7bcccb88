//! The event bus: records go to sinks, events to sinks and subscribers.

use crate::gate::Gate;
use crate::sink::Sink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::broadcast;
use toolgate_proto::{Code, Event, Refusal};

/// A subscriber that is further behind misses the oldest events.
const MAX_BUFFERED_EVENTS: usize = 1024;

/// Where records and events go.
#[derive(Clone)]
pub(crate) struct EventBus {
    pub(crate) sinks: Arc<[Arc<dyn Sink>]>,
    /// Calls whose record cannot be stored are refused.
    records_required: Arc<AtomicBool>,
    /// What to do if a call cannot be recorded, where the program knows more than the code's own hint.
    record_hint: Arc<Mutex<Option<String>>>,
    /// Made at the first subscription: the buffer is large, and most gates have no subscriber.
    events: Arc<OnceLock<broadcast::Sender<Event>>>,
}

impl std::fmt::Debug for EventBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventBus").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

impl EventBus {
    /// A bus with these sinks and no subscribers yet.
    pub(crate) fn new(sinks: Vec<Arc<dyn Sink>>) -> Self {
        Self {
            sinks: sinks.into(),
            records_required: Arc::default(),
            record_hint: Arc::default(),
            events: Arc::default(),
        }
    }

    /// Refuses a call whose record could not be stored, where records are required.
    pub(crate) fn check_recordable(&self) -> Result<(), Refusal> {
        if !self.records_required.load(Ordering::Relaxed) {
            return Ok(());
        }
        let refused = |why: &str| {
            let refusal = Refusal::new(Code::NotRecordable, format!("the call could not be recorded: {why}"));
            let hint = self.record_hint.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Err(match hint {
                Some(hint) => refusal.hint(hint),
                None => refusal,
            })
        };
        let mut is_kept = false;
        for ready in self.sinks.iter().filter_map(|sink| sink.check_ready()) {
            match ready {
                Ok(()) => is_kept = true,
                Err(why) => return refused(&why),
            }
        }
        if is_kept { Ok(()) } else { refused("no ledger is open") }
    }

    /// Receives every event from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.get_or_init(|| broadcast::Sender::new(MAX_BUFFERED_EVENTS)).subscribe()
    }

    /// Whether a subscriber or a sink wants events.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.active_sender().is_some() || self.sinks.iter().any(|sink| sink.accepts_events())
    }

    /// Hands an event to sinks and subscribers. It is only made where one of them wants it.
    pub(crate) fn publish(&self, event: impl FnOnce() -> Event) {
        if self.has_subscribers() {
            let event = event();
            for sink in self.sinks.iter().filter(|sink| sink.accepts_events()) {
                sink.handle_event(&event);
            }
            if let Some(events) = self.active_sender() {
                // An error means that the last subscriber has just gone.
                let _ = events.send(event);
            }
        }
    }

    /// Whether a sink wants the inputs and results of calls.
    pub(crate) fn keeps_results(&self) -> bool {
        self.sinks.iter().any(|sink| sink.accepts_results())
    }

    /// Hands the result of a call to the sinks that ask for results, and to no one else.
    pub(crate) fn publish_result(&self, event: &Event) {
        for sink in self.sinks.iter().filter(|sink| sink.accepts_results()) {
            sink.handle_event(event);
        }
    }

    /// The channel, if it has a subscriber; without one, events are not even made.
    fn active_sender(&self) -> Option<&broadcast::Sender<Event>> {
        self.events.get().filter(|events| events.receiver_count() > 0)
    }
}

impl Gate {
    /// Says whether a call is refused, before any hook or tool runs, if no sink can store its record.
    pub fn require_records(&self, required: bool) {
        self.require_records_with_hint(required, None);
    }

    /// The same, with the hint of the refusal: it can name the file that requires records.
    pub fn require_records_with_hint(&self, required: bool, hint: Option<String>) {
        *self.event_bus.record_hint.lock().unwrap_or_else(PoisonError::into_inner) = hint;
        self.event_bus.records_required.store(required, Ordering::Relaxed);
    }
}
