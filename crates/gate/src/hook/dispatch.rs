//! Running one hook: a panic counts as a crash, and the record gets a line whatever happens.

use super::{Hook, HookAnswer, HookCall, HookEvent, HookFailure};
use crate::catch_panic::panic_message;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use toolgate_proto::{HookRecord, ToolIdentity};

/// The result of running a hook.
pub(crate) struct HookDispatchResult {
    pub(crate) result: Result<HookAnswer, HookFailure>,
    pub(crate) mark: HookRecord,
}

/// Whether any hook runs for this event. This is all that a call without hooks costs.
pub(crate) fn any_hook_handles(hooks: &[Arc<dyn Hook>], event: HookEvent, tool: &ToolIdentity) -> bool {
    hooks.iter().any(|hook| hook.handles(event, tool))
}

/// Runs a hook.
pub(crate) async fn run_hook(hook: &dyn Hook, call: HookCall<'_>) -> HookDispatchResult {
    let started = Instant::now();
    let result = match AssertUnwindSafe(async { hook.handle_call(call).await }).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(HookFailure::Crashed(format!("it crashed: {}", panic_message(&*panic)))),
    };
    let mark = build_mark(hook, call.moment, &result, started);
    HookDispatchResult { result, mark }
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
    HookRecord {
        hook: hook.name().to_owned(),
        moment: event.as_str().to_owned(),
        ended: ended.to_owned(),
        detail,
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
    }
}
