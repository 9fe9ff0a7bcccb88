//! Threads for work that can be shared out, where the system has any to give.

use std::sync::OnceLock;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// How many threads can run at once here.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Does something on a thread of its own. `None` where there is no thread to be had: then it was not begun, and
/// whoever asked does it alone. `Scope::spawn` would panic, and limits on threads are nothing unusual.
pub fn beside<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}
