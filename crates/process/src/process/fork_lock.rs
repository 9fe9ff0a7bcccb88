//! The fork lock: no process is cloned while a file is open for writing on behalf of a sandboxed command.
//!
//! A cloned process has a copy of every file descriptor of toolgate until it closes them. If one of them writes to a
//! file that the command closes and then executes, the kernel refuses with ETXTBSY (Text file busy): for a compiler
//! whose program is started at once that is a failure that comes and goes.

use rustix::io::Errno;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Shared by those who have such a file open, exclusive for a clone.
static FORK_LOCK: RwLock<()> = RwLock::new(());

/// How long a supervisor that does not close its file descriptors, because it was killed, holds up others.
const CLOSE_TIMEOUT: futex::Timespec = futex::Timespec { tv_sec: 1, tv_nsec: 0 };

/// While this exists, no process is cloned.
#[must_use]
pub(crate) struct NoForkGuard {
    _shared: RwLockReadGuard<'static, ()>,
}

/// Waits for a clone that is under way, and prevents others.
pub(crate) fn prevent_forks() -> NoForkGuard {
    // The lock protects no data that a panic could have left half changed.
    NoForkGuard { _shared: FORK_LOCK.read().unwrap_or_else(PoisonError::into_inner) }
}

/// Waits until no file is open that must not be copied, and prevents that one is opened.
pub(super) fn lock_for_fork() -> RwLockWriteGuard<'static, ()> {
    FORK_LOCK.write().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a cloned process has closed the file descriptors that it has from toolgate. In memory that both share.
#[derive(Debug, Default)]
pub(super) struct ClosedFlag(AtomicU32);

impl ClosedFlag {
    /// Called by the cloned process: makes system calls and nothing else.
    pub(super) fn set(&self) {
        self.0.store(1, Ordering::Release);
        // An error means that no thread waits.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Waits until the cloned process has called [`ClosedFlag::set`], or for [`CLOSE_TIMEOUT`].
    pub(super) fn wait(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            if futex::wait(&self.0, futex::Flags::PRIVATE, 0, Some(&CLOSE_TIMEOUT)) == Err(Errno::TIMEDOUT) {
                return;
            }
        }
    }
}
