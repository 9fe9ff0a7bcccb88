//! Somewhere for records to go.

use std::sync::{Arc, Mutex, PoisonError};
use toolgate_proto::{CallRecord, Event};

/// Keeps what happens. Each call closes with exactly one record; a sink is told of it once.
///
/// Called on the path of the call, so it should be quick; what is slow belongs on a thread of its own.
pub trait Sink: Send + Sync {
    /// A call is over.
    fn record(&self, record: &CallRecord);

    /// Whether [`Sink::handle_event`] is wanted. Most sinks do not care.
    fn accepts_events(&self) -> bool {
        false
    }

    /// Something happened on the way.
    fn handle_event(&self, event: &Event) {
        let _ = event;
    }
}

/// Behind an [`Arc`], so that a program can keep a sink that it passes to the builder.
impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn record(&self, record: &CallRecord) {
        (**self).record(record);
    }

    fn accepts_events(&self) -> bool {
        (**self).accepts_events()
    }

    fn handle_event(&self, event: &Event) {
        (**self).handle_event(event);
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
