//! Telling one hook: a panic is a crash, and the record gets a line whatever happens.

use super::{Hook, HookAnswer, HookCall, HookEvent, HookFailure};
use crate::catch_panic::panic_message;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use toolgate_proto::{HookRecord, ToolIdentity};

/// What came of telling a hook.
pub(crate) struct HookDispatchResult {
    pub(crate) result: Result<HookAnswer, HookFailure>,
    pub(crate) mark: HookRecord,
}

/// Whether any hook wants to be told. This is all that a call without hooks pays.
pub(crate) fn any_hook_handles(hooks: &[Arc<dyn Hook>], moment: HookEvent, tool: &ToolIdentity) -> bool {
    hooks.iter().any(|hook| hook.handles(moment, tool))
}

/// Tells a hook.
pub(crate) async fn run_hook(hook: &dyn Hook, call: HookCall<'_>) -> HookDispatchResult {
    let started = Instant::now();
    let said = match AssertUnwindSafe(async { hook.handle_call(call).await }).catch_unwind().await {
        Ok(said) => said,
        Err(panic) => Err(HookFailure::Crashed(format!("it crashed: {}", panic_message(&*panic)))),
    };
    let mark = build_mark(hook, call.moment, &said, started);
    HookDispatchResult { result: said, mark }
}

/// The line for the record.
pub(super) fn build_mark(
    hook: &dyn Hook,
    moment: HookEvent,
    said: &Result<HookAnswer, HookFailure>,
    started: Instant,
) -> HookRecord {
    let (ended, detail) = match said {
        Ok(answer) => (answer.record_label(), answer.detail.clone()),
        Err(failure) => (failure.record_label(), Some(failure.to_string())),
    };
    HookRecord {
        hook: hook.name().to_owned(),
        moment: moment.as_str().to_owned(),
        ended: ended.to_owned(),
        detail,
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
    }
}
