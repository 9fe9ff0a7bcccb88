//! Telling one hook: a panic is a crash, and the record gets a line whatever happens.

use super::{Hook, HookAnswer, HookCall, HookFailure, Moment};
use crate::pipeline::words_of;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use toolgate_proto::{HookMark, ToolIdentity};

/// What came of telling a hook.
pub(crate) struct HookDispatchResult {
    pub(crate) said: Result<HookAnswer, HookFailure>,
    pub(crate) mark: HookMark,
}

/// Whether any hook wants to be told. This is all that a call without hooks pays.
pub(crate) fn wants(hooks: &[Arc<dyn Hook>], moment: Moment, tool: &ToolIdentity) -> bool {
    hooks.iter().any(|hook| hook.wants(moment, tool))
}

/// Tells a hook.
pub(crate) async fn tell(hook: &dyn Hook, call: HookCall<'_>) -> HookDispatchResult {
    let started = Instant::now();
    let said = match AssertUnwindSafe(async { hook.tell(call).await }).catch_unwind().await {
        Ok(said) => said,
        Err(panic) => Err(HookFailure::Crashed(format!("it crashed: {}", words_of(&*panic)))),
    };
    let mark = mark(hook, call.moment, &said, started);
    HookDispatchResult { said, mark }
}

/// The line for the record.
pub(super) fn mark(
    hook: &dyn Hook,
    moment: Moment,
    said: &Result<HookAnswer, HookFailure>,
    started: Instant,
) -> HookMark {
    let (ended, detail) = match said {
        Ok(answer) => (answer.word(), answer.detail.clone()),
        Err(failure) => (failure.word(), Some(failure.to_string())),
    };
    HookMark {
        hook: hook.name().to_owned(),
        moment: moment.as_str().to_owned(),
        ended: ended.to_owned(),
        detail,
        micros: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
    }
}
