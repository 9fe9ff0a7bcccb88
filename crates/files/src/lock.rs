//! One change of a file at a time, in the whole process.
//!
//! The lock is by real path, so that two spellings or two sessions meet.
//! It only keeps our own calls from being refused needlessly: that no update of anybody is lost is the business of
//! the compare-and-swap in [`replace`](super::replace).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;
use toolgate_proto::AbsPath;

type FileLockTable = HashMap<AbsPath, Weak<tokio::sync::Mutex<()>>>;

static FILE_LOCKS: LazyLock<Mutex<FileLockTable>> = LazyLock::new(Mutex::default);

/// Past this many, entries that nobody holds are thrown out.
const LOCK_TABLE_PRUNE_LIMIT: usize = 1024;

/// Waits for its turn with a path.
pub(crate) async fn lock_path(real: &AbsPath) -> OwnedMutexGuard<()> {
    lock_entry(real).lock_owned().await
}

/// The same for a thread outside the async world. Tokio's own way of waiting would panic inside it, and whoever
/// calls undo need not know where they are.
pub(crate) fn lock_path_blocking(real: &AbsPath) -> OwnedMutexGuard<()> {
    loop {
        match lock_entry(real).try_lock_owned() {
            Ok(turn) => return turn,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}

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
