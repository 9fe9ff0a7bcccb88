//! Running one hook: a panic counts as a crash, and the record gets a line whatever happens.

use super::{Hook, HookAnswer, HookCall, HookEvent, HookFailure};
use crate::catch_panic::panic_message;
use crate::event_bus::EventBus;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use toolgate_proto::{CallId, Event, HookRecord, ToolIdentity};

/// The result of running a hook.
pub(crate) struct HookDispatchResult {
    pub(crate) result: Result<HookAnswer, HookFailure>,
    pub(crate) mark: HookRecord,
}

/// Whether any hook runs for this event. This is all that a call without hooks costs.
pub(crate) fn any_hook_handles(hooks: &[Arc<dyn Hook>], event: HookEvent, tool: &ToolIdentity) -> bool {
    hooks.iter().any(|hook| hook.handles(event, tool))
}

/// Runs a hook. Subscribers learn that it starts and how it ended.
pub(crate) async fn run_hook(
    event_bus: &EventBus,
    hook: &dyn Hook,
    call: HookCall<'_>,
) -> HookDispatchResult {
    let started = Instant::now();
    let run = PublishedHookRun::start(event_bus, hook, (call.event, Some(call.call)));
    let result = match AssertUnwindSafe(async { hook.handle_call(call).await }).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(HookFailure::Crashed(format!("it crashed: {}", panic_message(&*panic)))),
    };
    let mark = build_mark(hook, call.event, &result, started);
    run.end(&mark);
    HookDispatchResult { result, mark }
}

/// A run of a hook whose start was published. One that is dropped before its end was given up.
pub(super) struct PublishedHookRun<'a> {
    event_bus: &'a EventBus,
    /// The id of the run; absent without subscribers and after the end.
    id: Option<String>,
    call: Option<&'a CallId>,
    hook: &'a dyn Hook,
    event: HookEvent,
}

impl<'a> PublishedHookRun<'a> {
    /// Publishes that a hook starts. Without subscribers this costs nothing.
    pub(super) fn start(
        event_bus: &'a EventBus,
        hook: &'a dyn Hook,
        (event, call): (HookEvent, Option<&'a CallId>),
    ) -> Self {
        let id = event_bus.has_subscribers().then(toolgate_files::generate_uuid);
        if let Some(id) = &id {
            event_bus.publish(|| Event::HookStarted {
                run: id.clone(),
                call: call.cloned(),
                hook: hook.name().to_owned(),
                event: event.as_str().to_owned(),
            });
        }
        Self { event_bus, id, call, hook, event }
    }

    /// Publishes how it ended.
    pub(super) fn end(mut self, mark: &HookRecord) {
        self.publish_end(|| mark.clone());
    }

    /// Publishes the end, once.
    fn publish_end(&mut self, mark: impl FnOnce() -> HookRecord) {
        if let Some(run) = self.id.take() {
            let call = self.call.cloned();
            self.event_bus.publish(|| Event::HookEnded { run, call, record: Box::new(mark()) });
        }
    }
}

impl Drop for PublishedHookRun<'_> {
    fn drop(&mut self) {
        let (hook, event) = (self.hook.name().to_owned(), self.event.as_str().to_owned());
        self.publish_end(|| {
            HookRecord::new(hook, event, "cancelled", 0)
                .with_detail(Some("the call was cancelled".to_owned()))
        });
    }
}

/// The line for the record.
pub(super) fn build_mark(
    hook: &dyn Hook,
    event: HookEvent,
    result: &Result<HookAnswer, HookFailure>,
    started: Instant,
) -> HookRecord {
    let (ended, detail) = match result {
        Ok(answer) => (answer.record_label(), answer.detail.clone()),
        Err(failure) => (failure.record_label(), Some(failure.to_string())),
    };
    let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    HookRecord::new(hook.name(), event.as_str(), ended, micros).with_detail(detail)
}
