//! Recording a change: one line before it is made, one after.

use super::line::{ChangeState, JournalLine, JournalPath};
use super::{ContentDescriptor, InProgressLock, Journal, UndoAvailability, blob_store};
use crate::{FileProblem, FileSnapshot};
use std::ffi::OsStr;
use std::sync::Arc;
use toolgate_proto::{AbsPath, CallId, SessionId};

/// Records the changes of one call in the journal.
#[derive(Debug, Clone)]
pub struct ChangeRecorder {
    /// Where the changes are recorded.
    journal: Arc<Journal>,
    /// The call, by which its changes are undone together.
    call: CallId,
    /// The session of the call.
    session: SessionId,
}

/// A change that is about to be made.
#[derive(Debug)]
pub(crate) struct ProposedChange<'a> {
    /// The real path of the file.
    pub(crate) path: &'a AbsPath,
    /// What the change displaces; `None` if it creates the file.
    pub(crate) before: Option<&'a FileSnapshot>,
    /// What the change writes; `None` if it deletes the file.
    pub(crate) after: Option<ContentDescriptor>,
    /// The temporary name that the change uses, which recovery removes after a crash.
    pub(crate) temp: &'a OsStr,
}

/// A change that is recorded as begun. [`PendingChange::end`] records its outcome.
#[derive(Debug)]
#[must_use = "the outcome of the change must be recorded"]
pub(crate) struct PendingChange {
    /// Where it is recorded.
    journal: Arc<Journal>,
    /// Its number in the journal.
    id: u64,
    /// Whether it can be undone once it is made.
    undo: UndoAvailability,
    /// Whether the displaced content was stored uncompressed and should be compressed later.
    is_large: bool,
    /// Keeps recovery in other processes from taking the change for a crashed one.
    _in_progress: InProgressLock,
}

impl Journal {
    /// A recorder for the changes of one call.
    pub fn recorder(self: &Arc<Self>, call: CallId, session: SessionId) -> ChangeRecorder {
        ChangeRecorder { journal: Arc::clone(self), call, session }
    }
}

impl ChangeRecorder {
    /// Whether the journal was not used by this process before, so that a crash may have left changes in flight.
    pub(crate) fn needs_recovery(&self) -> bool {
        !self.journal.is_recovered()
    }

    /// Settles the changes that a crash interrupted. Must come before the first change of this process begins: recovery
    /// is skipped while a change is in progress.
    pub(crate) fn recover_journal(&self) -> Result<(), FileProblem> {
        self.journal.recover_once()
    }

    /// Stores the content that will be displaced, and records that the change begins.
    pub(crate) fn begin(&self, change: &ProposedChange<'_>) -> Result<PendingChange, String> {
        self.try_begin(change).map_err(|problem| problem.to_string())
    }

    /// Stores the old content and announces the change, before it is made.
    fn try_begin(&self, change: &ProposedChange<'_>) -> Result<PendingChange, FileProblem> {
        let in_progress = self.journal.lock_in_progress()?;
        let fits =
            change.before.is_none_or(|before| before.fingerprint.bytes <= self.journal.limits.file_bytes);
        let id = self.journal.with_lock(|inner| {
            let before = match change.before {
                Some(before) => Some(inner.blobs.store(before, fits)?),
                None => None,
            };
            let id = inner.index.next_id();
            inner.append(JournalLine::Begin {
                id,
                call: self.call.clone(),
                session: self.session.clone(),
                at: crate::now_millis(),
                path: JournalPath::of(change.path),
                before: before.map(Into::into),
                after: change.after.map(Into::into),
                temp: JournalPath::of_name(change.temp),
                applied: 0,
                undone: Vec::new(),
                redone: Vec::new(),
            })?;
            Ok(id)
        })?;
        let undo = if fits { UndoAvailability::Recorded(id) } else { UndoAvailability::TooLarge };
        let is_large = fits && change.before.is_some_and(|before| blob_store::is_large(&before.bytes));
        Ok(PendingChange {
            journal: Arc::clone(&self.journal),
            id,
            undo,
            is_large,
            _in_progress: in_progress,
        })
    }
}

impl PendingChange {
    /// Records whether the change was made. If recording fails, recovery finds the outcome by looking at the file, so
    /// the change need not be rolled back.
    pub(crate) fn end(self, applied: bool) -> UndoAvailability {
        let state = if applied { ChangeState::Done } else { ChangeState::Failed };
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
