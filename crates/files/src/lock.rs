//! Locks on files: one change at a time per real path, in the whole process.
//!
//! The lock is keyed by real path, so that two spellings of a path, or two sessions, contend for the same one.
//! It is an optimization: without it, concurrent calls would refuse each other's changes. That no update is lost, also
//! none of another process, is ensured by the compare-and-swap in [`replace`](crate::replace).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use toolgate_proto::AbsPath;

/// One mutex per path that is in use; a weak reference, so that unused ones can be pruned.
type FileLockTable = HashMap<AbsPath, Weak<tokio::sync::Mutex<()>>>;

/// The locks of this process. Between processes, the comparison before a replacement finds a lost race.
static FILE_LOCKS: LazyLock<Mutex<FileLockTable>> = LazyLock::new(Mutex::default);

/// From this many entries on, unused ones are removed before one is added.
const LOCK_TABLE_PRUNE_LIMIT: usize = 1024;
/// How long [`lock_path_blocking`] sleeps between two attempts.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(1);

/// Locks a path, waiting asynchronously.
pub(crate) async fn lock_path(real: &AbsPath) -> OwnedMutexGuard<()> {
    lock_entry(real).lock_owned().await
}

/// Locks a path, blocking the thread. Polls, because `blocking_lock` panics inside an async context, and the callers
/// of undo may be in one.
pub(crate) fn lock_path_blocking(real: &AbsPath) -> OwnedMutexGuard<()> {
    loop {
        match lock_entry(real).try_lock_owned() {
            Ok(guard) => return guard,
            Err(_) => std::thread::sleep(LOCK_RETRY_DELAY),
        }
    }
}

/// The lock of a real path, the same for every caller.
fn lock_entry(real: &AbsPath) -> Arc<tokio::sync::Mutex<()>> {
    let mut locks = FILE_LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lock) = locks.get(real).and_then(Weak::upgrade) {
        return lock;
    }
    if locks.len() >= LOCK_TABLE_PRUNE_LIMIT {
        locks.retain(|_, lock| lock.strong_count() > 0);
    }
    let lock = Arc::new(tokio::sync::Mutex::new(()));
    locks.insert(real.clone(), Arc::downgrade(&lock));
    lock
}
