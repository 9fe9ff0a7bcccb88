//! Progress notifications to the client that made a call.

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio_util::sync::CancellationToken;
use toolgate_proto::{CallId, Event};

/// The widest a progress report is cut to: a bar, not a log.
const MAX_PROGRESS_CHARS: usize = 2_000;

/// Sends progress notifications of a call.
pub(super) struct McpProgressReporter {
    /// The event stream of the gate, which carries the events of all calls.
    pub(super) events: Receiver<Event>,
    /// The call whose events are forwarded.
    pub(super) call: CallId,
    /// The token under which the client expects the notifications.
    pub(super) token: ProgressToken,
    /// The client that made the call.
    pub(super) peer: Peer<RoleServer>,
    /// The last progress value that was sent.
    pub(super) last_progress: f64,
}

impl McpProgressReporter {
    /// Sends until the call is over, and then what was reported before its end: that must arrive before the result.
    pub(super) async fn run(mut self, over: &CancellationToken) {
        loop {
            // A word that was taken is passed on whatever happens meanwhile, so that is not a part of the choice.
            let event = tokio::select! {
                biased;
                event = self.events.recv() => event,
                () = over.cancelled() => return self.drain_events().await,
            };
            match event {
                Ok(event) => self.forward_event(event).await,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Forwards the events that are queued already, without waiting for more.
    async fn drain_events(&mut self) {
        loop {
            match self.events.try_recv() {
                Ok(event) => self.forward_event(event).await,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Sends a progress event of this call as a notification, and drops every other event.
    async fn forward_event(&mut self, event: Event) {
        let Event::Progress { call, text, fraction } = event else { return };
        if call != self.call {
            return;
        }
        // Progress must grow with every report, whatever the tool says.
        let (progress, total) = match fraction.map(|fraction| fraction * 100.0) {
            Some(part) if part > self.last_progress => (part, Some(100.0)),
            Some(_) | None => (self.last_progress + 1.0, None),
        };
        self.last_progress = progress;
        let mut report = ProgressNotificationParam::new(self.token.clone(), progress);
        report.total = total;
        let text = text.trim_end();
        report.message = (!text.is_empty()).then(|| text.chars().take(MAX_PROGRESS_CHARS).collect());
        // An error means that the client is gone.
        let _ = self.peer.notify_progress(report).await;
    }
}
