//! A panic in a stage, a tool, a hook or an approver becomes an error value.

use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;

/// Runs stages; a panic becomes its message. On the heap: the future is large, and would be copied each time a caller
/// passes its own future on.
pub(crate) fn catch_panic<T>(stages: impl Future<Output = T>) -> impl Future<Output = Result<T, String>> {
    let caught = Box::pin(AssertUnwindSafe(stages).catch_unwind());
    caught.map(|done| done.map_err(|panic| panic_message(&*panic).to_owned()))
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}
