//! The journal: what every change displaced, so that it can be undone.
//!
//! A change is written down in three steps: the displaced content goes to a store of blobs, a line says what is
//! about to happen, and after the change another line says that it did.
//! A crash between any two of them is settled when the journal is next opened, by looking at what the file holds.
//! What a change *made* is not stored: it is in the file, and is stored only when it is about to be undone.
//!
//! Blobs are named by the hash of their content and compressed, large ones a moment later; their total size is capped, and the oldest changes
//! are forgotten first.
//! Lines and blobs are not forced to the disk at every change: a power cut may cost the last seconds of undo, never
//! a file, and it would double the price of every edit to promise more.
//!
//! Several processes may use one journal.
//! Whoever writes to it holds the lock; whoever is between the first and the last step of a change holds a shared
//! lock on `live`, so that nobody takes a change under way for a crashed one.

mod blob_store;
mod compress;
mod line;
mod log;
mod recover;
mod select;
mod undo;

use crate::anchored_path::AnchoredPath;
use crate::{ContentHash, FileProblem, FileSnapshot, sys};
use blob_store::BlobStore;
use line::{JournalLine, JournalPath};
use log::{JournalIndex, JournalLog};
use rustix::fs::FlockOperation;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_proto::{AbsPath, CallId, SessionId};

pub use line::ChangeState;
pub use select::{UndoFilter, UndoSelector};
pub use undo::{ConflictHandling, FileRestore, UndoConflict, UndoOutcome, UndoPlan, UndoProblem};

/// How much the journal keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalLimits {
    /// All blobs together, compressed. Past it the oldest changes are forgotten.
    pub total_bytes: u64,
    /// The largest file whose former content is kept. A change of a larger one is made, and cannot be undone.
    pub file_bytes: u64,
    /// How many changes are remembered.
    pub changes: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self { total_bytes: 512 << 20, file_bytes: 64 << 20, changes: 20_000 }
    }
}

/// Content that a change displaced or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentDescriptor {
    /// Its hash.
    pub hash: ContentHash,
    /// Its size.
    pub bytes: u64,
    /// The file's permission bits.
    pub mode: u32,
    /// Whether the content is in the journal.
    pub stored: bool,
}

/// One change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalChange {
    /// Its number, ever rising.
    pub id: u64,
    /// The call that made it.
    pub call: CallId,
    /// The session of that call.
    pub session: SessionId,
    /// When, in milliseconds since 1970.
    pub at_millis: u64,
    /// When it was last undone or redone; 0 where it never was. All that moved together bear the same time.
    pub moved_at_millis: u64,
    /// The file, links resolved.
    pub path: AbsPath,
    /// What was there; `None` where the change created the file.
    pub before: Option<ContentDescriptor>,
    /// What came there; `None` where the change removed the file.
    pub after: Option<ContentDescriptor>,
    /// What became of it.
    pub state: ChangeState,
}

/// Whether a change can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoAvailability {
    /// Yes, as the journal's change of this number.
    Recorded(u64),
    /// No: the file was too large to be kept.
    TooLarge,
    /// No: there is no journal.
    NoJournal,
}

/// The record of all changes. Cheap to share.
#[derive(Debug)]
pub struct Journal {
    dir: OwnedFd,
    /// Whoever writes holds a lock on this.
    lock: OwnedFd,
    limits: JournalLimits,
    /// What was there has been read, and what a crash left is settled.
    recovered: AtomicBool,
    /// Somebody is about to compress what is stored as it is.
    compressing: AtomicBool,
    /// How many large contents this process has displaced.
    large_contents: AtomicU64,
    inner: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    log: JournalLog,
    blobs: BlobStore,
    index: JournalIndex,
}

impl Journal {
    /// Opens or creates the journal in a directory, which is made private to the user, and settles what a crash left
    /// unsettled.
    pub fn open(dir: &AbsPath, limits: JournalLimits) -> Result<Self, FileProblem> {
        let journal = Self::open_lazily(dir, limits)?;
        journal.recover_once()?;
        Ok(journal)
    }

    /// The same, but what is there is only read when it is first needed: most calls change nothing, and should not
    /// wait for a long memory.
    pub fn open_lazily(dir: &AbsPath, limits: JournalLimits) -> Result<Self, FileProblem> {
        let place = AnchoredPath::create_parents(&dir.join("journal"))?;
        let dir = log::open_private_dir(place.dir(), OsStr::new("journal"))?;
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

    fn recover_once(&self) -> Result<(), FileProblem> {
        if !self.recovered.load(Ordering::Acquire) {
            self.recover()?;
            self.recovered.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Every change that is remembered, newest first.
    pub fn list(&self) -> Result<Vec<JournalChange>, FileProblem> {
        self.with_lock(|inner| Ok(inner.index.changes.values().rev().cloned().collect()))
    }

    /// The stored content of a change.
    pub fn content(&self, kept: &ContentDescriptor) -> Result<Vec<u8>, FileProblem> {
        self.with_lock(|inner| inner.blobs.load(kept))
    }

    /// Does something while nobody else writes, knowing all that others wrote.
    fn with_lock<T>(
        &self,
        work: impl FnOnce(&mut JournalState) -> Result<T, FileProblem>,
    ) -> Result<T, FileProblem> {
        self.recover_once()?;
        self.with_lock_unrecovered(work)
    }

    fn with_lock_unrecovered<T>(
        &self,
        work: impl FnOnce(&mut JournalState) -> Result<T, FileProblem>,
    ) -> Result<T, FileProblem> {
        let mut inner = self.lock_state();
        sys::flock(self.lock.as_fd(), FlockOperation::LockExclusive)?;
        let caught_up = inner.catch_up(self.dir.as_fd());
        let done = caught_up.and_then(|()| work(&mut inner));
        // Closing the descriptor would release it as well; until then others wait, so it is tried twice.
        let release = || sys::flock(self.lock.as_fd(), FlockOperation::Unlock);
        let released = release().or_else(|_| release());
        let out = done?;
        released?;
        Ok(out)
    }

    fn lock_state(&self) -> MutexGuard<'_, JournalState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a change is under way in this process, until the result is dropped.
    fn lock_in_progress(&self) -> Result<InProgressLock, FileProblem> {
        let live = log::open_private_file(self.dir.as_fd(), OsStr::new("live"))?;
        sys::flock(live.as_fd(), FlockOperation::LockShared)?;
        Ok(InProgressLock(live))
    }

    /// What the undo of a session's or a call's changes is asked through.
    pub fn recorder(self: &Arc<Self>, call: CallId, session: SessionId) -> ChangeRecorder {
        ChangeRecorder { journal: Arc::clone(self), call, session }
    }
}

impl JournalState {
    fn catch_up(&mut self, dir: std::os::fd::BorrowedFd<'_>) -> Result<(), FileProblem> {
        let Self { log, index: book, .. } = self;
        log.catch_up(dir, book)
    }

    fn append(&mut self, line: JournalLine) -> Result<(), FileProblem> {
        self.log.append(&line)?;
        self.index.apply(line);
        Ok(())
    }
}

/// A sign that a change is under way. Closing alone would not take it away while a process that is just being
/// started still has a copy of the descriptor.
#[derive(Debug)]
struct InProgressLock(OwnedFd);

impl Drop for InProgressLock {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Records the changes of one call.
#[derive(Debug, Clone)]
pub struct ChangeRecorder {
    journal: Arc<Journal>,
    call: CallId,
    session: SessionId,
}

/// A change about to be made.
#[derive(Debug)]
pub(crate) struct ProposedChange<'a> {
    pub(crate) path: &'a AbsPath,
    pub(crate) before: Option<&'a FileSnapshot>,
    pub(crate) after: Option<ContentDescriptor>,
    pub(crate) temp: &'a OsStr,
}

/// A change that was announced. It must be told how it ended.
#[derive(Debug)]
#[must_use = "an announced change must be ended"]
pub(crate) struct PendingChange {
    journal: Arc<Journal>,
    id: u64,
    undo: UndoAvailability,
    /// What was displaced is stored as it is, and should be compressed.
    is_large: bool,
    _in_progress: InProgressLock,
}

impl ChangeRecorder {
    /// Keeps what will be displaced and announces the change.
    pub(crate) fn begin(&self, draft: &ProposedChange<'_>) -> Result<PendingChange, String> {
        self.try_begin(draft).map_err(|problem| problem.to_string())
    }

    fn try_begin(&self, draft: &ProposedChange<'_>) -> Result<PendingChange, FileProblem> {
        let live = self.journal.lock_in_progress()?;
        let small =
            draft.before.is_none_or(|before| before.fingerprint.bytes <= self.journal.limits.file_bytes);
        let id = self.journal.with_lock(|inner| {
            let before = match draft.before {
                Some(before) => Some(inner.blobs.store(before, small)?),
                None => None,
            };
            let id = inner.index.next_id();
            inner.append(JournalLine::Begin {
                id,
                call: self.call.clone(),
                session: self.session.clone(),
                at: crate::now_millis(),
                path: JournalPath::of(draft.path),
                before: before.map(Into::into),
                after: draft.after.map(Into::into),
                temp: JournalPath::of_name(draft.temp),
            })?;
            Ok(id)
        })?;
        let undo = if small { UndoAvailability::Recorded(id) } else { UndoAvailability::TooLarge };
        let large = small && draft.before.is_some_and(|before| blob_store::is_large(&before.bytes));
        Ok(PendingChange {
            journal: Arc::clone(&self.journal),
            id,
            undo,
            is_large: large,
            _in_progress: live,
        })
    }
}

impl PendingChange {
    /// Writes down how it ended. If that fails, the next opening finds out by itself, so it is no reason to take
    /// back a change that was made.
    pub(crate) fn end(self, made: bool) -> UndoAvailability {
        let state = if made { ChangeState::Done } else { ChangeState::Failed };
        let journal = &self.journal;
        let ended =
            journal.with_lock(|inner| inner.append(JournalLine::State { ids: vec![self.id], state, at: 0 }));
        if ended.is_ok() {
            let _ = journal.evict_oldest();
        }
        if self.is_large {
            journal.schedule_compression();
        }
        self.undo
    }
}

impl Journal {
    /// Forgets the oldest changes while there are more of them, or more content, than there may be.
    fn evict_oldest(&self) -> Result<(), FileProblem> {
        let JournalLimits { total_bytes, changes, .. } = self.limits;
        {
            let inner = self.lock_state();
            if inner.blobs.total_bytes() <= total_bytes && inner.index.changes.len() <= changes {
                return Ok(());
            }
        }
        self.compress_raw_blobs()?;
        self.with_lock(|inner| {
            let JournalState { log, blobs, index: book } = inner;
            let mut uses = book.count_references();
            // What a crash or another process left behind, and nobody needs.
            blobs.retain(|hash| uses.contains_key(hash))?;
            // Some more than needed, so that it does not happen again at once.
            while blobs.total_bytes() > total_bytes / 5 * 4 || book.changes.len() > changes / 5 * 4 {
                let Some(oldest) = book.oldest_finished_id().and_then(|id| book.changes.remove(&id)) else {
                    break;
                };
                for hash in log::stored_hashes(&oldest) {
                    let left = uses.get(&hash).copied().unwrap_or(0).saturating_sub(1);
                    uses.insert(hash, left);
                    if left == 0 {
                        blobs.remove_blob(hash)?;
                    }
                }
            }
            log.rewrite(self.dir.as_fd(), book)
        })
    }
}

#[cfg(test)]
mod tests;
