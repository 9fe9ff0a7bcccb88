//! Telling how far a call is, to whoever watches.
//!
//! A tool may tell as often as it likes: watchers hear of it ten times a second at most.
//! What is said in between is not lost but gathered, and its end is kept where it is too much; what is left is told
//! when the call is over.

use crate::record_builder::EventBus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;
use toolgate_proto::{AbsPath, CallAnomaly, CallId, Code, Event};

/// How long watchers are left in peace between two words on one call.
const MIN_REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Of what is said in that time, this much is kept.
const MAX_BUFFERED_BYTES: usize = 16 * 1024;

/// A handle by which a running tool tells how far it is. Cheap to clone; nobody need be listening.
#[derive(Debug, Clone)]
pub struct CallProgress {
    inner: Arc<CallProgressInner>,
}

#[derive(Debug)]
struct CallProgressInner {
    call: CallId,
    event_bus: EventBus,
    runtime: Option<Handle>,
    state: Mutex<CallProgressState>,
}

#[derive(Debug, Default)]
struct CallProgressState {
    last: Option<Instant>,
    buffered: Option<BufferedProgress>,
    /// Something will tell what was gathered.
    timed: bool,
    /// What a command tried although its judgement did not foresee it.
    anomalies: Vec<CallAnomaly>,
    over: bool,
}

#[derive(Debug, Default)]
struct BufferedProgress {
    text: String,
    fraction: Option<f64>,
}

impl CallProgress {
    pub(crate) fn new(call: CallId, audience: EventBus) -> Self {
        let runtime = Handle::try_current().ok();
        Self {
            inner: Arc::new(CallProgressInner {
                call,
                event_bus: audience,
                runtime,
                state: Mutex::default(),
            }),
        }
    }

    /// Passes on new output, or a word on how far it is.
    pub fn report(&self, text: impl Into<String>) {
        self.add(text.into(), None);
    }

    /// The same, with the part done, from 0 to 1.
    pub fn report_fraction(&self, fraction: f64, text: impl Into<String>) {
        self.add(text.into(), Some(fraction.clamp(0.0, 1.0)));
    }

    /// Tells that work which the call left going on is over. Told at once, and also after the end of the call.
    pub fn report_task_end(&self, task: &str, summary: String, output_file: Option<AbsPath>) {
        let inner = &self.inner;
        let (call, task) = (inner.call.clone(), task.to_owned());
        inner.event_bus.publish(|| Event::TaskEnded { call, task, summary, output_file });
    }

    /// Says that a command tried something that its judgement did not foresee. It stands in the call's record.
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

    pub(crate) fn take_anomalies(&self) -> Vec<CallAnomaly> {
        std::mem::take(&mut self.inner.lock().anomalies)
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

    /// The call is over: what was gathered is told, and no more.
    pub(crate) fn end(&self) {
        let mut state = self.inner.lock();
        state.over = true;
        self.inner.flush(state, Instant::now());
    }
}

impl CallProgressInner {
    fn flush(&self, mut state: MutexGuard<'_, CallProgressState>, now: Instant) {
        state.timed = false;
        if let Some(BufferedProgress { text, fraction }) = state.buffered.take() {
            state.last = Some(now);
            // Told under the lock, so that words keep their order.
            self.event_bus.publish(|| Event::Progress { call: self.call.clone(), text, fraction });
        }
    }

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

    fn watched() -> (CallProgress, broadcast::Receiver<Event>) {
        let audience = EventBus::new(Vec::new());
        let heard = audience.subscribe();
        (CallProgress::new("c".into(), audience), heard)
    }

    fn told(heard: &mut broadcast::Receiver<Event>) -> Vec<(String, Option<f64>)> {
        std::iter::from_fn(|| match heard.try_recv() {
            Ok(Event::Progress { text, fraction, .. }) => Some((text, fraction)),
            _ => None,
        })
        .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn watchers_hear_ten_times_a_second_and_miss_nothing() {
        let (progress, mut heard) = watched();
        let mut said = String::new();
        for step in 0..1000 {
            progress.report(format!("{step} "));
            said.push_str(&format!("{step} "));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        progress.end();
        progress.report("too late");
        let told = told(&mut heard);
        assert!((9..=12).contains(&told.len()), "{}", told.len());
        assert_eq!(told.into_iter().map(|(text, _)| text).collect::<String>(), said);
    }

    #[tokio::test]
    async fn the_end_of_a_task_is_told_after_the_end_of_its_call() {
        let (progress, mut heard) = watched();
        progress.end();
        progress.report_task_end("task_1", "over".to_owned(), None);
        assert!(matches!(heard.try_recv(), Ok(Event::TaskEnded { task, .. }) if task == "task_1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_falls_silent_is_heard_all_the_same() {
        let (progress, mut heard) = watched();
        progress.report_fraction(0.1, "a");
        progress.report_fraction(0.2, "b");
        progress.report("c");
        assert_eq!(told(&mut heard), [("a".to_owned(), Some(0.1))]);
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(told(&mut heard), [("bc".to_owned(), Some(0.2))]);
    }

    #[tokio::test(start_paused = true)]
    async fn too_much_is_cut_at_its_start_on_a_character() {
        let (progress, mut heard) = watched();
        progress.report("x");
        progress.report("é".repeat(MAX_BUFFERED_BYTES));
        progress.end();
        let told = told(&mut heard);
        assert!(told[1].0.len() <= MAX_BUFFERED_BYTES && told[1].0.chars().all(|c| c == 'é'));
    }
}
