//! The undo journal: stores what every change displaced, so that it can be undone and redone.
//!
//! A change is recorded in three steps: the displaced content goes to the blob store, a line in the log says that the
//! change begins, and after the change another line says how it ended.
//! A crash between two steps is settled when the journal is next opened, by comparing the file with both contents.
//! The new content of a change is not stored: it is in the file, and is stored only when the change is undone.
//!
//! Blobs are named by the hash of their content and compressed, large ones a moment later in the background.
//! Their total size is limited; the oldest changes are evicted first.
//! The log and the blobs are not fsynced at every change: a power failure may lose the last seconds of undo history, but
//! never a file, and an fsync would double the cost of every edit.
//!
//! Several processes may use one journal.
//! A writer holds an exclusive lock on the file `lock`.
//! A process with a change in flight holds a shared lock on the file `live`, so that recovery in another process does
//! not take the change for a crashed one.

// A change is recorded.
mod record;

mod line;
mod log;

mod blob_store;
mod compress;
mod evict;

// A change is undone.
mod undo;

mod restore;
mod select;

mod recover;

use crate::anchored_path::AnchoredPath;
use crate::{ContentHash, FileProblem, sys};
use blob_store::BlobStore;
use line::JournalLine;
use log::{JournalIndex, JournalLog};
use rustix::fs::FlockOperation;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use toolgate_proto::{AbsPath, CallId, SessionId};

pub use line::ChangeState;
pub use record::ChangeRecorder;
pub(crate) use record::{PendingChange, ProposedChange};
pub use select::{UndoFilter, UndoSelector};
pub use undo::{ConflictHandling, FileRestore, UndoConflict, UndoOutcome, UndoPlan, UndoProblem};

/// The file on which processes with a change in flight hold a shared lock.
const LIVE_FILE_NAME: &str = "live";

/// How much the journal stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalLimits {
    /// Size of all blobs on disk. Above it the oldest changes are evicted.
    pub total_bytes: u64,
    /// Size of the largest file whose content is stored. A larger file can be changed, but the change cannot be undone.
    pub file_bytes: u64,
    /// Number of changes. Above it the oldest are evicted.
    pub changes: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self { total_bytes: 512 << 20, file_bytes: 64 << 20, changes: 20_000 }
    }
}

/// The content of a file before or after a change, by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentDescriptor {
    /// The hash, by which the blob store finds it.
    pub hash: ContentHash,
    /// Uncompressed size.
    pub bytes: u64,
    /// Permission bits of the file; 0 if they are not known.
    pub mode: u32,
    /// Whether the content is in the blob store.
    pub stored: bool,
}

/// One change of one file, as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalChange {
    /// Its number. Later changes have higher ones.
    pub id: u64,
    /// The call that made it.
    pub call: CallId,
    /// The session of that call.
    pub session: SessionId,
    /// When it was made, in milliseconds since 1970.
    pub at_millis: u64,
    /// When it last took effect: when it was made, or redone since. An undo starts with the latest.
    pub applied_at_millis: u64,
    /// When it was last undone or redone; 0 if never. Changes that were undone together have the same time.
    pub moved_at_millis: u64,
    /// The real path of the file.
    pub path: AbsPath,
    /// The content before; `None` if the change created the file.
    pub before: Option<ContentDescriptor>,
    /// The content after; `None` if the change deleted the file.
    pub after: Option<ContentDescriptor>,
    /// Whether it was made, failed, or was undone.
    pub state: ChangeState,
    /// The changes that the undo or redo moved which made this change. They follow its state: once it is undone, they are
    /// what they were before it. Empty for a change of a call.
    pub moved: MovedChanges,
}

/// The numbers of the changes of one file that an undo or redo moved, when it also overwrote other content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedChanges {
    /// Those that it undid.
    pub undone: Vec<u64>,
    /// Those that it made done again.
    pub redone: Vec<u64>,
}

/// Whether a change can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoAvailability {
    /// Yes: the journal has it under this number.
    Recorded(u64),
    /// No: the file was larger than [`JournalLimits::file_bytes`].
    TooLarge,
    /// No: there is no journal.
    NoJournal,
}

/// The undo journal of a state directory: a log of changes and a store of contents.
///
/// Shared by all sessions of a process in an [`Arc`](std::sync::Arc), and with other processes through file locks.
#[derive(Debug)]
pub struct Journal {
    /// The directory of the journal.
    dir: OwnedFd,
    /// The file `lock`: a process that reads or writes the journal holds an exclusive `flock` on it.
    lock: OwnedFd,
    /// When to evict changes.
    limits: JournalLimits,
    /// Whether the log has been read and changes that a crash interrupted are settled.
    recovered: AtomicBool,
    /// Whether a thread of this process is going to compress raw blobs.
    compressing: AtomicBool,
    /// How many large contents this process has stored; the compressing thread waits until it stops growing.
    large_contents: AtomicU64,
    /// What the log and the blob store contain, as far as this process has read them.
    inner: Mutex<JournalState>,
}

/// The parts of the journal that are used under its lock.
#[derive(Debug)]
struct JournalState {
    /// The file of lines.
    log: JournalLog,
    /// The stored contents.
    blobs: BlobStore,
    /// What the lines of the log add up to.
    index: JournalIndex,
}

impl Journal {
    /// Opens or creates the journal in a state directory, and settles changes that a crash interrupted. The directory of
    /// the journal is accessible to this user only.
    pub fn open(dir: &AbsPath, limits: JournalLimits) -> Result<Self, FileProblem> {
        let journal = Self::open_lazily(dir, limits)?;
        journal.recover_once()?;
        Ok(journal)
    }

    /// Opens the journal, and reads it when it is first used: most calls change nothing, and should not wait until a
    /// long log is read.
    pub fn open_lazily(dir: &AbsPath, limits: JournalLimits) -> Result<Self, FileProblem> {
        let anchored = AnchoredPath::create_parents(&dir.join("journal"))?;
        let dir = log::open_private_dir(anchored.dir(), OsStr::new("journal"))?;
        let lock = log::open_private_file(dir.as_fd(), OsStr::new("lock"))?;
        let log = JournalLog::open(dir.as_fd())?;
        let blobs = BlobStore::open(dir.as_fd())?;
        let inner = Mutex::new(JournalState { log, blobs, index: JournalIndex::default() });
        Ok(Self {
            dir,
            lock,
            limits,
            recovered: AtomicBool::new(false),
            compressing: AtomicBool::new(false),
            large_contents: AtomicU64::new(0),
            inner,
        })
    }

    /// Whether interrupted changes were settled.
    fn is_recovered(&self) -> bool {
        self.recovered.load(Ordering::Acquire)
    }

    /// Settles changes that a crash interrupted, at the first use.
    fn recover_once(&self) -> Result<(), FileProblem> {
        if !self.is_recovered() {
            self.recover()?;
            self.recovered.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Every change in the journal, newest first.
    pub fn list(&self) -> Result<Vec<JournalChange>, FileProblem> {
        self.with_lock(|inner| Ok(inner.index.changes.values().rev().cloned().collect()))
    }

    /// How many lines of the log cannot be read, because of a crash or of another program. Changes in them are lost.
    pub fn count_damaged_lines(&self) -> Result<usize, FileProblem> {
        self.with_lock(|inner| Ok(inner.index.damaged_lines))
    }

    /// Loads content from the blob store.
    pub fn content(&self, descriptor: &ContentDescriptor) -> Result<Vec<u8>, FileProblem> {
        self.with_lock(|inner| inner.blobs.load(descriptor))
    }

    /// One side of a change; `Ok(None)` if the file does not exist on that side. New content is in the blob store once it
    /// was displaced; until then it is in the file, if no other program has changed that.
    pub fn changed_content(
        &self,
        change: &JournalChange,
        side: Option<ContentDescriptor>,
    ) -> Result<Option<Vec<u8>>, FileProblem> {
        let Some(descriptor) = side else { return Ok(None) };
        self.content(&descriptor).map(Some).or_else(|problem| {
            let now = crate::read_snapshot(&change.path, self.limits.file_bytes)?;
            now.filter(|now| now.hash() == descriptor.hash).map(|now| Some(now.bytes)).ok_or(problem)
        })
    }

    /// Runs `work` under the lock of the journal, after reading what other processes have appended.
    fn with_lock<T>(
        &self,
        work: impl FnOnce(&mut JournalState) -> Result<T, FileProblem>,
    ) -> Result<T, FileProblem> {
        self.recover_once()?;
        self.with_lock_unrecovered(work)
    }

    /// Runs `work` under the lock without settling interrupted changes first, for the recovery itself.
    fn with_lock_unrecovered<T>(
        &self,
        work: impl FnOnce(&mut JournalState) -> Result<T, FileProblem>,
    ) -> Result<T, FileProblem> {
        let mut inner = self.lock_state();
        sys::flock(self.lock.as_fd(), FlockOperation::LockExclusive)?;
        let caught_up = inner.catch_up(self.dir.as_fd());
        let result = caught_up.and_then(|()| work(&mut inner));
        // The descriptor stays open, so a lock that is not released would block other processes: retry once.
        let release = || sys::flock(self.lock.as_fd(), FlockOperation::Unlock);
        let released = release().or_else(|_| release());
        let output = result?;
        released?;
        Ok(output)
    }

    /// Locks the state; a panic of another thread leaves it usable.
    fn lock_state(&self) -> MutexGuard<'_, JournalState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a change of this process as in flight until the result is dropped.
    fn lock_in_progress(&self) -> Result<InProgressLock, FileProblem> {
        let file = log::open_private_file(self.dir.as_fd(), OsStr::new(LIVE_FILE_NAME))?;
        sys::flock(file.as_fd(), FlockOperation::LockShared)?;
        Ok(InProgressLock(file))
    }
}

impl JournalState {
    /// Applies the lines that other processes have appended to the log.
    fn catch_up(&mut self, dir: BorrowedFd<'_>) -> Result<(), FileProblem> {
        self.log.catch_up(dir, &mut self.index)
    }

    /// Appends a line to the log and applies it.
    fn append(&mut self, line: JournalLine) -> Result<(), FileProblem> {
        self.log.append(&line)?;
        self.index.apply(line);
        Ok(())
    }
}

/// A lock on the file `live`. It is released explicitly: closing the descriptor does not release it while a child
/// process between fork and exec has a copy.
#[derive(Debug)]
struct InProgressLock(OwnedFd);

impl Drop for InProgressLock {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests;
