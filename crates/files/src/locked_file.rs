//! Changing a file: lock, read, replace or delete, and record for undo.

use crate::anchored_path::AnchoredPath;
use crate::content_check::ContentCheck;
use crate::faults;
use crate::granted_files::GrantedFiles;
use crate::journal::{ChangeRecorder, ContentDescriptor, PendingChange, ProposedChange, UndoAvailability};
use crate::lock::lock_path;
use crate::open::FileProblem;
use crate::replace::{ChangeProblem, ReplaceRequest, put_content, remove_file, temporary_name};
use crate::snapshot::{ContentHash, FileFingerprint, FileSnapshot};
use std::os::fd::AsFd;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;
use toolgate_proto::AbsPath;

/// A path that is granted for writing and locked: no other call of this process changes it until this is dropped.
///
/// A change is a compare-and-swap: [`read`](Self::read) returns a snapshot, and [`put`](Self::put) and
/// [`delete`](Self::delete) fail if the file no longer has the content of that snapshot.
#[derive(Debug)]
pub struct LockedFile {
    /// The real path.
    real: AbsPath,
    /// Records changes in the journal; `None` without a journal.
    recorder: Option<ChangeRecorder>,
    /// Checks that new content has to pass.
    checks: Arc<[Arc<dyn ContentCheck>]>,
    /// The lock on `real`.
    _guard: OwnedMutexGuard<()>,
}

/// The outcome of a change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedFileChange {
    /// The fingerprint of the new file; `None` if it was deleted.
    pub fingerprint: Option<FileFingerprint>,
    /// The hash of the new content; `None` if the file was deleted.
    pub hash: Option<ContentHash>,
    /// Whether the change can be undone.
    pub undo: UndoAvailability,
    /// How many other hard links the old file has. They keep the old content, because the change replaces only one name.
    pub other_hard_links: u64,
}

impl GrantedFiles {
    /// Locks a path that was granted for writing, and runs `work` on it on a thread for blocking I/O.
    ///
    /// `work` runs to its end even if the returned future is dropped, so cancellation leaves no change half done.
    pub async fn change_file<T: Send + 'static>(
        &self,
        asked: &AbsPath,
        work: impl FnOnce(&LockedFile) -> T + Send + 'static,
    ) -> Result<T, FileProblem> {
        let real = self.writable_path(asked)?;
        // Before the path is locked: recovery locks the paths of interrupted changes, which may include this one.
        if let Some(recorder) = self.recorder().filter(|recorder| recorder.needs_recovery()).cloned() {
            run_blocking(move || recorder.recover_journal()).await??;
        }
        let guard = lock_path(&real).await;
        let file =
            LockedFile { real, recorder: self.recorder().cloned(), checks: self.checks(), _guard: guard };
        run_blocking(move || work(&file)).await
    }
}

/// Runs blocking work on a thread of the runtime's blocking pool. A panic of the work is passed on to the caller.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FileProblem> {
    match tokio::task::spawn_blocking(faults::inherit_fault_plan(work)).await {
        Ok(output) => Ok(output),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(FileProblem::Other("the program is shutting down".to_owned())),
    }
}

impl LockedFile {
    /// The real path.
    pub fn real_path(&self) -> &AbsPath {
        &self.real
    }

    /// Reads the whole file; `None` if it does not exist. One of more than `max_bytes` is an error.
    pub fn read(&self, max_bytes: u64) -> Result<Option<FileSnapshot>, FileProblem> {
        read_snapshot(&self.real, max_bytes)
    }

    /// Replaces `before`, which the file must still have, by `content`. `None` stands for a file that must not exist yet.
    pub fn put(
        &self,
        before: Option<&FileSnapshot>,
        content: &[u8],
    ) -> Result<AppliedFileChange, ChangeProblem> {
        for check in self.checks.iter() {
            check.check(&self.real, content).map_err(ChangeProblem::InvalidContent)?;
        }
        let temp = temporary_name();
        let mut path = AnchoredPath::create_parents(&self.real)?;
        let mut hash = None;
        let announce = || {
            let mode = before.map_or(0, |before| before.mode);
            let new_hash = ContentHash::of(content);
            hash = Some(new_hash);
            let after =
                ContentDescriptor { hash: new_hash, bytes: content.len() as u64, mode, stored: false };
            self.begin(before, Some(after), &temp)
        };
        let request = ReplaceRequest { before, content, mode: None, temp: &temp };
        let (recording, result) = put_content(&mut path, request, announce);
        let undo = recording.map_or(UndoAvailability::NoJournal, |recording| recording.end(result.is_ok()));
        let other_hard_links = before.map_or(0, |before| before.hard_links.saturating_sub(1));
        result.map(|fingerprint| AppliedFileChange {
            fingerprint: Some(fingerprint),
            hash,
            undo,
            other_hard_links,
        })
    }

    /// Deletes the file, which must still have the content `before`.
    pub fn delete(&self, before: &FileSnapshot) -> Result<AppliedFileChange, ChangeProblem> {
        let temp = temporary_name();
        let recording = self.begin(Some(before), None, &temp)?;
        let result = AnchoredPath::open_parent(&self.real)
            .map_err(ChangeProblem::from)
            .and_then(|path| remove_file(&path, &temp, before));
        let undo = recording.end(result.is_ok());
        result.map(|()| AppliedFileChange {
            fingerprint: None,
            hash: None,
            undo,
            other_hard_links: before.hard_links.saturating_sub(1),
        })
    }

    /// Records in the journal, if there is one, that the change is about to be made.
    fn begin(
        &self,
        before: Option<&FileSnapshot>,
        after: Option<ContentDescriptor>,
        temp: &std::ffi::OsStr,
    ) -> Result<ChangeRecording, ChangeProblem> {
        let Some(recorder) = &self.recorder else { return Ok(ChangeRecording(None)) };
        let change = ProposedChange { path: &self.real, before, after, temp };
        recorder
            .begin(&change)
            .map(|pending| ChangeRecording(Some(pending)))
            .map_err(ChangeProblem::Unrecorded)
    }
}

/// The journal entry of a change that is being made; `None` without a journal.
struct ChangeRecording(Option<PendingChange>);

impl ChangeRecording {
    /// Ends the journal entry of the change. Without a journal it cannot be undone.
    fn end(self, applied: bool) -> UndoAvailability {
        self.0.map_or(UndoAvailability::NoJournal, |pending| pending.end(applied))
    }
}

/// Reads the regular file at a real path; `None` if it does not exist.
pub(crate) fn read_snapshot(real: &AbsPath, max_bytes: u64) -> Result<Option<FileSnapshot>, FileProblem> {
    let opened = AnchoredPath::open_parent(real).and_then(|path| path.open());
    match opened {
        Ok(fd) => FileSnapshot::read(fd.as_fd(), max_bytes).map(Some),
        Err(FileProblem::Missing) => Ok(None),
        Err(problem) => Err(problem),
    }
}
