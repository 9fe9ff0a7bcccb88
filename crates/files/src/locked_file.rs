//! A file that one call holds for changing.

use super::anchored_path::AnchoredPath;
use super::content_check::ContentCheck;
use super::faults;
use super::granted_files::GrantedFiles;
use super::lock::lock_path;
use super::open::FileProblem;
use super::replace::{ChangeProblem, ReplaceRequest, remove_file, temporary_name};
use super::snapshot::{ContentHash, FileFingerprint, FileSnapshot};
use crate::journal::{ChangeRecorder, ContentDescriptor, ProposedChange, UndoAvailability};
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;
use toolgate_proto::AbsPath;

/// A path that nobody else in this process is changing. It stays so until this is dropped.
#[derive(Debug)]
pub struct LockedFile {
    real: AbsPath,
    recorder: Option<ChangeRecorder>,
    checks: Arc<[Arc<dyn ContentCheck>]>,
    _guard: OwnedMutexGuard<()>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFileChange {
    /// The file's outward signs after it; `None` where it was removed.
    pub fingerprint: Option<FileFingerprint>,
    /// Hash of what is there now; `None` where it was removed.
    pub hash: Option<ContentHash>,
    /// Whether it can be undone.
    pub undo: UndoAvailability,
    /// Names of the same file elsewhere, which keep the former content.
    pub other_hard_links: u64,
}

impl GrantedFiles {
    /// Holds a path that was granted for writing, and works on it where waiting for the disk holds up nobody.
    ///
    /// The work goes on to its end even if the caller stops waiting: a change is never left half done.
    pub async fn change_file<T: Send + 'static>(
        &self,
        asked: &AbsPath,
        work: impl FnOnce(&LockedFile) -> T + Send + 'static,
    ) -> Result<T, FileProblem> {
        let real = self.writable_path(asked)?;
        let turn = lock_path(&real).await;
        let held =
            LockedFile { real, recorder: self.recorder().cloned(), checks: self.checks(), _guard: turn };
        run_blocking(move || work(&held)).await
    }
}

/// Does something that waits for the disk.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FileProblem> {
    let done = tokio::task::spawn_blocking(faults::inherit_fault_plan(work));
    match done.await {
        Ok(out) => Ok(out),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(FileProblem::Other("the program is ending".to_owned())),
    }
}

impl LockedFile {
    /// Where the path really leads.
    pub fn real_path(&self) -> &AbsPath {
        &self.real
    }

    /// What is there, up to `most` bytes. `None` where nothing is.
    pub fn read(&self, most: u64) -> Result<Option<FileSnapshot>, FileProblem> {
        read_snapshot(&self.real, most)
    }

    /// Puts `content` in the place of `before`, which must still be there. `None` stands for nothing.
    pub fn put(
        &self,
        before: Option<&FileSnapshot>,
        content: &[u8],
    ) -> Result<AppliedFileChange, ChangeProblem> {
        for check in self.checks.iter() {
            check.check(&self.real, content).map_err(ChangeProblem::InvalidContent)?;
        }
        let temp = temporary_name();
        let mut place = AnchoredPath::create_parents(&self.real)?;
        let mut hash = None;
        let announce = || {
            let mode = before.map_or(0, |before| before.mode);
            let made = ContentHash::of(content);
            hash = Some(made);
            let after = ContentDescriptor { hash: made, bytes: content.len() as u64, mode, stored: false };
            self.begin(before, Some(after), &temp)
        };
        let put = ReplaceRequest { before, content, mode: None, temp: &temp };
        let (recording, made) = super::replace::put_content(&mut place, put, announce);
        let undo = recording.map_or(UndoAvailability::NoJournal, |recording| recording.end(made.is_ok()));
        let others = before.map_or(0, |before| before.hard_links.saturating_sub(1));
        made.map(|mark| AppliedFileChange { fingerprint: Some(mark), hash, undo, other_hard_links: others })
    }

    /// Removes `before`, which must still be there.
    pub fn delete(&self, before: &FileSnapshot) -> Result<AppliedFileChange, ChangeProblem> {
        let temp = temporary_name();
        let recording = self.begin(Some(before), None, &temp)?;
        let made = AnchoredPath::open_parent(&self.real)
            .map_err(ChangeProblem::from)
            .and_then(|place| remove_file(&place, &temp, before));
        let undo = recording.end(made.is_ok());
        made.map(|()| AppliedFileChange {
            fingerprint: None,
            hash: None,
            undo,
            other_hard_links: before.hard_links.saturating_sub(1),
        })
    }

    fn begin(
        &self,
        before: Option<&FileSnapshot>,
        after: Option<ContentDescriptor>,
        temp: &std::ffi::OsStr,
    ) -> Result<ChangeRecording, ChangeProblem> {
        let Some(recorder) = &self.recorder else { return Ok(ChangeRecording(None)) };
        let draft = ProposedChange { path: &self.real, before, after, temp };
        recorder.begin(&draft).map(|begun| ChangeRecording(Some(begun))).map_err(ChangeProblem::Unrecorded)
    }
}

/// A recording that must be ended, where there is a journal.
struct ChangeRecording(Option<crate::journal::PendingChange>);

impl ChangeRecording {
    fn end(self, made: bool) -> UndoAvailability {
        self.0.map_or(UndoAvailability::NoJournal, |begun| begun.end(made))
    }
}

/// What is at a real path.
pub(crate) fn read_snapshot(real: &AbsPath, most: u64) -> Result<Option<FileSnapshot>, FileProblem> {
    use std::os::fd::AsFd;
    let opened = AnchoredPath::open_parent(real).and_then(|place| place.open());
    match opened {
        Ok(fd) => FileSnapshot::read(fd.as_fd(), most).map(Some),
        Err(FileProblem::Missing) => Ok(None),
        Err(problem) => Err(problem),
    }
}
