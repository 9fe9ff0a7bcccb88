//! Telling how far a call is, to whoever watches.

use tokio::sync::broadcast;
use toolgate_proto::{CallId, Event};

/// A handle by which a running tool tells how far it is. Cheap to clone; nobody need be listening.
#[derive(Debug, Clone)]
pub struct Progress {
    call: CallId,
    events: broadcast::Sender<Event>,
}

impl Progress {
    pub(crate) fn new(call: CallId, events: broadcast::Sender<Event>) -> Self {
        Self { call, events }
    }

    /// Passes on new output, or a word on how far it is.
    pub fn say(&self, text: impl Into<String>) {
        self.send(text.into(), None);
    }

    /// The same, with the part done, from 0 to 1.
    pub fn part(&self, fraction: f64, text: impl Into<String>) {
        self.send(text.into(), Some(fraction.clamp(0.0, 1.0)));
    }

    fn send(&self, text: String, fraction: Option<f64>) {
        // An error means that nobody listens, which is fine.
        let _ = self.events.send(Event::Progress { call: self.call.clone(), text, fraction });
    }
}
