//! Progress of a running call, for subscribers to events.
//!
//! A tool may report as often as it likes: subscribers get at most ten events a second.
//! What is reported in between is buffered, and truncated at the front where it is too much; the rest is sent
//! when the call is over.

use crate::event_bus::EventBus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;
use toolgate_proto::{AbsPath, CallAnomaly, CallId, Code, Event, HookRecord, UncoveredFile};

/// The time between two progress events of one call.
const MIN_REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// How much output is buffered in that time.
const MAX_BUFFERED_BYTES: usize = 16 * 1024;
/// How many files that the journal does not have go into a record.
const MAX_UNCOVERED_FILES: usize = 20;

/// A handle by which a running tool reports progress. Cheap to clone; there need not be a subscriber.
#[derive(Debug, Clone)]
pub struct CallProgress {
    inner: Arc<CallProgressInner>,
}

/// What the clones of one call's progress share.
#[derive(Debug)]
struct CallProgressInner {
    call: CallId,
    event_bus: EventBus,
    runtime: Option<Handle>,
    state: Mutex<CallProgressState>,
}

/// What was reported so far, and what waits to be sent.
#[derive(Debug, Default)]
struct CallProgressState {
    last: Option<Instant>,
    buffered: Option<BufferedProgress>,
    /// A timer will send what is buffered.
    timed: bool,
    /// What a command tried although its judgement did not include it.
    anomalies: Vec<CallAnomaly>,
    /// The journal has every change of the call's commands.
    is_journalled: bool,
    /// Files that they changed and that the journal does not have.
    not_journalled: Vec<UncoveredFile>,
    /// Hooks that the tool ran itself.
    hooks: Vec<HookRecord>,
    over: bool,
}

/// Reports that came too soon after the last event; they are sent as one.
#[derive(Debug, Default)]
struct BufferedProgress {
    text: String,
    fraction: Option<f64>,
}

impl CallProgress {
    /// Progress of a call, for the subscribers of the bus. Outside of a runtime nothing is buffered by time.
    pub(crate) fn new(call: CallId, event_bus: EventBus) -> Self {
        let runtime = Handle::try_current().ok();
        Self { inner: Arc::new(CallProgressInner { call, event_bus, runtime, state: Mutex::default() }) }
    }

    /// Reports new output, or a line on progress.
    pub fn report(&self, text: impl Into<String>) {
        self.add(text.into(), None);
    }

    /// The same, with the fraction done, from 0 to 1.
    pub fn report_fraction(&self, fraction: f64, text: impl Into<String>) {
        self.add(text.into(), Some(fraction.clamp(0.0, 1.0)));
    }

    /// Reports that background work of the call is over. Sent at once, also after the end of the call.
    pub fn report_task_end(&self, task: &str, summary: String, output_file: Option<AbsPath>) {
        let inner = &self.inner;
        let (call, task) = (inner.call.clone(), task.to_owned());
        inner.event_bus.publish(|| Event::TaskEnded { call, task, summary, output_file });
    }

    /// Reports that a command tried something that its judgement did not include. It goes into the call's record.
    pub fn report_anomaly(&self, text: String) {
        let anomaly = CallAnomaly::new(Code::Unforeseen, text);
        let inner = &self.inner;
        let mut state = inner.lock();
        if state.anomalies.contains(&anomaly) {
            return;
        }
        state.anomalies.push(anomaly.clone());
        drop(state);
        inner.event_bus.publish(|| Event::Anomaly { call: inner.call.clone(), anomaly });
    }

    /// Says that the journal has every change of files that the commands of this call made.
    pub fn report_journalled(&self) {
        self.inner.lock().is_journalled = true;
    }

    /// Says which files the commands of this call changed although the journal could not keep them.
    pub fn report_not_journalled(&self, files: &[UncoveredFile]) {
        self.inner.lock().not_journalled = files.iter().take(MAX_UNCOVERED_FILES).cloned().collect();
    }

    /// The files that the journal does not have.
    pub(crate) fn take_not_journalled(&self) -> Vec<UncoveredFile> {
        std::mem::take(&mut self.inner.lock().not_journalled)
    }

    /// Whether a change of the call is in the journal.
    pub(crate) fn is_journalled(&self) -> bool {
        self.inner.lock().is_journalled
    }

    /// What the sandbox refused although the judgement did not foresee it.
    pub(crate) fn take_anomalies(&self) -> Vec<CallAnomaly> {
        std::mem::take(&mut self.inner.lock().anomalies)
    }

    /// Notes a hook that ran for an event of the tool. It goes into the call's record.
    pub(crate) fn report_hook(&self, mark: HookRecord) {
        self.inner.lock().hooks.push(mark);
    }

    /// The hooks that ran for events of the tool.
    pub(crate) fn take_hooks(&self) -> Vec<HookRecord> {
        std::mem::take(&mut self.inner.lock().hooks)
    }

    /// Where events of the call go.
    pub(crate) fn event_bus(&self) -> &EventBus {
        &self.inner.event_bus
    }

    fn add(&self, text: String, fraction: Option<f64>) {
        if !self.inner.event_bus.has_subscribers() {
            return;
        }
        let mut state = self.inner.lock();
        if state.over {
            return;
        }
        state.buffered.get_or_insert_default().add(&text, fraction);
        let now = Instant::now();
        match state.last.map(|last| last + MIN_REPORT_INTERVAL) {
            Some(next) if now < next => {
                let Some(runtime) = self.inner.runtime.as_ref().filter(|_| !state.timed) else { return };
                state.timed = true;
                let inner = Arc::downgrade(&self.inner);
                runtime.spawn(async move {
                    tokio::time::sleep_until(next).await;
                    if let Some(inner) = inner.upgrade() {
                        let state = inner.lock();
                        inner.flush(state, next);
                    }
                });
            }
            Some(_) | None => self.inner.flush(state, now),
        }
    }

    /// The call is over: what is buffered is sent, and nothing after it.
    pub(crate) fn end(&self) {
        let mut state = self.inner.lock();
        state.over = true;
        self.inner.flush(state, Instant::now());
    }
}

impl CallProgressInner {
    /// Sends what is buffered.
    fn flush(&self, mut state: MutexGuard<'_, CallProgressState>, now: Instant) {
        state.timed = false;
        if let Some(BufferedProgress { text, fraction }) = state.buffered.take() {
            state.last = Some(now);
            // Sent under the lock, so that events keep their order.
            self.event_bus.publish(|| Event::Progress { call: self.call.clone(), text, fraction });
        }
    }

    /// Locks the state; a panic of another thread leaves it usable.
    fn lock(&self) -> MutexGuard<'_, CallProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BufferedProgress {
    fn add(&mut self, text: &str, fraction: Option<f64>) {
        self.text.push_str(text);
        self.fraction = fraction.or(self.fraction);
        if self.text.len() > MAX_BUFFERED_BYTES {
            let cut = self.text.len() - MAX_BUFFERED_BYTES;
            let cut = (cut..=self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
            self.text.drain(..cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::broadcast;

    fn subscribed() -> (CallProgress, broadcast::Receiver<Event>) {
        let event_bus = EventBus::new(Vec::new());
        let receiver = event_bus.subscribe();
        (CallProgress::new("c".into(), event_bus), receiver)
    }

    fn received(receiver: &mut broadcast::Receiver<Event>) -> Vec<(String, Option<f64>)> {
        std::iter::from_fn(|| match receiver.try_recv() {
            Ok(Event::Progress { text, fraction, .. }) => Some((text, fraction)),
            _ => None,
        })
        .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn watchers_hear_ten_times_a_second_and_miss_nothing() {
        let (progress, mut receiver) = subscribed();
        let mut said = String::new();
        for step in 0..1000 {
            progress.report(format!("{step} "));
            said.push_str(&format!("{step} "));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        progress.end();
        progress.report("too late");
        let received = received(&mut receiver);
        assert!((9..=12).contains(&received.len()), "{}", received.len());
        assert_eq!(received.into_iter().map(|(text, _)| text).collect::<String>(), said);
    }

    #[tokio::test]
    async fn the_end_of_a_task_is_published_after_the_end_of_its_call() {
        let (progress, mut receiver) = subscribed();
        progress.end();
        progress.report_task_end("task_1", "over".to_owned(), None);
        assert!(matches!(receiver.try_recv(), Ok(Event::TaskEnded { task, .. }) if task == "task_1"));
    }

    #[tokio::test(start_paused = true)]
    async fn buffered_progress_is_published_without_further_reports() {
        let (progress, mut receiver) = subscribed();
        progress.report_fraction(0.1, "a");
        progress.report_fraction(0.2, "b");
        progress.report("c");
        assert_eq!(received(&mut receiver), [("a".to_owned(), Some(0.1))]);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(received(&mut receiver), [("bc".to_owned(), Some(0.2))]);
    }

    #[tokio::test(start_paused = true)]
    async fn too_much_is_cut_at_its_start_on_a_character() {
        let (progress, mut receiver) = subscribed();
        progress.report("x");
        progress.report("é".repeat(MAX_BUFFERED_BYTES));
        progress.end();
        let received = received(&mut receiver);
        assert!(received[1].0.len() <= MAX_BUFFERED_BYTES && received[1].0.chars().all(|c| c == 'é'));
    }
}
