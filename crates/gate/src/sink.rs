//! Sinks: where records go.

use std::sync::{Arc, Mutex, PoisonError};
use toolgate_proto::{CallRecord, Event};

/// Stores records. Each call ends with exactly one record; a sink gets it once.
///
/// Called on the path of the call, so it should be quick; slow work belongs on another thread.
pub trait Sink: Send + Sync {
    /// A call is over.
    fn record(&self, record: &CallRecord);

    /// Whether the record of a call that would run now can be stored: `None` for a sink that does not promise to keep
    /// records. Asked before each call where records are required ([`Gate::require_records`](crate::Gate::require_records)).
    fn check_ready(&self) -> Option<Result<(), String>> {
        None
    }

    /// Whether [`Sink::handle_event`] is called. Most sinks only store records.
    fn accepts_events(&self) -> bool {
        false
    }

    /// An event of a call in flight.
    fn handle_event(&self, event: &Event) {
        let _ = event;
    }

    /// Whether [`Sink::handle_event`] is called with the whole input and result of each call ([`Event::Returned`]) as well.
    /// With them a session can be rebuilt from its events; they hold what tools have read, so a sink must ask for them.
    fn accepts_results(&self) -> bool {
        false
    }
}

/// Behind an [`Arc`], so that a program can keep a sink that it passes to the builder.
impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn record(&self, record: &CallRecord) {
        (**self).record(record);
    }

    fn check_ready(&self) -> Option<Result<(), String>> {
        (**self).check_ready()
    }

    fn accepts_events(&self) -> bool {
        (**self).accepts_events()
    }

    fn handle_event(&self, event: &Event) {
        (**self).handle_event(event);
    }

    fn accepts_results(&self) -> bool {
        (**self).accepts_results()
    }
}

/// Keeps records in memory, for tests and small programs.
#[derive(Debug, Default)]
pub struct MemorySink {
    records: Mutex<Vec<CallRecord>>,
}

impl MemorySink {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// All records so far.
    pub fn records(&self) -> Vec<CallRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for MemorySink {
    fn record(&self, record: &CallRecord) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
    }
}
