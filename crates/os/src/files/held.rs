//! A file that one call holds for changing.

use super::check::ContentCheck;
use super::faults;
use super::lock::lock;
use super::open::FileProblem;
use super::place::Place;
use super::reach::Files;
use super::replace::{ChangeProblem, Put, remove_file, temporary_name};
use super::version::{Hash, Mark, Version};
use crate::journal::{ChangeRecorder, Draft, Kept, Undo};
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;
use toolgate_proto::AbsPath;

/// A path that nobody else in this process is changing. It stays so until this is dropped.
#[derive(Debug)]
pub struct Held {
    real: AbsPath,
    recorder: Option<ChangeRecorder>,
    checks: Arc<[Arc<dyn ContentCheck>]>,
    _turn: OwnedMutexGuard<()>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The file's outward signs after it; `None` where it was removed.
    pub mark: Option<Mark>,
    /// Hash of what is there now; `None` where it was removed.
    pub hash: Option<Hash>,
    /// Whether it can be undone.
    pub undo: Undo,
    /// Names of the same file elsewhere, which keep the former content.
    pub other_names: u64,
}

impl Files {
    /// Holds a path that was granted for writing, and works on it where waiting for the disk holds up nobody.
    ///
    /// The work goes on to its end even if the caller stops waiting: a change is never left half done.
    pub async fn change<T: Send + 'static>(
        &self,
        asked: &AbsPath,
        work: impl FnOnce(&Held) -> T + Send + 'static,
    ) -> Result<T, FileProblem> {
        let real = self.writable(asked)?;
        let turn = lock(&real).await;
        let held = Held { real, recorder: self.recorder().cloned(), checks: self.checks(), _turn: turn };
        blocking(move || work(&held)).await
    }
}

/// Does something that waits for the disk.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FileProblem> {
    let done = tokio::task::spawn_blocking(faults::carried(work));
    match done.await {
        Ok(out) => Ok(out),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(FileProblem::Other("the program is ending".to_owned())),
    }
}

impl Held {
    /// Where the path really leads.
    pub fn real(&self) -> &AbsPath {
        &self.real
    }

    /// What is there, up to `most` bytes. `None` where nothing is.
    pub fn read(&self, most: u64) -> Result<Option<Version>, FileProblem> {
        read_at(&self.real, most)
    }

    /// Puts `content` in the place of `before`, which must still be there. `None` stands for nothing.
    pub fn put(&self, before: Option<&Version>, content: &[u8]) -> Result<Made, ChangeProblem> {
        for check in self.checks.iter() {
            check.check(&self.real, content).map_err(ChangeProblem::Unfit)?;
        }
        let temp = temporary_name();
        let mut place = Place::make(&self.real)?;
        let mut hash = None;
        let announce = || {
            let mode = before.map_or(0, |before| before.mode);
            let made = Hash::of(content);
            hash = Some(made);
            let after = Kept { hash: made, bytes: content.len() as u64, mode, stored: false };
            self.begin(before, Some(after), &temp)
        };
        let put = Put { before, content, mode: None, temp: &temp };
        let (recording, made) = super::replace::put(&mut place, put, announce);
        let undo = recording.map_or(Undo::Off, |recording| recording.end(made.is_ok()));
        let others = before.map_or(0, |before| before.names.saturating_sub(1));
        made.map(|mark| Made { mark: Some(mark), hash, undo, other_names: others })
    }

    /// Removes `before`, which must still be there.
    pub fn delete(&self, before: &Version) -> Result<Made, ChangeProblem> {
        let temp = temporary_name();
        let recording = self.begin(Some(before), None, &temp)?;
        let made = Place::find(&self.real)
            .map_err(ChangeProblem::from)
            .and_then(|place| remove_file(&place, &temp, before));
        let undo = recording.end(made.is_ok());
        made.map(|()| Made { mark: None, hash: None, undo, other_names: before.names.saturating_sub(1) })
    }

    fn begin(
        &self,
        before: Option<&Version>,
        after: Option<Kept>,
        temp: &std::ffi::OsStr,
    ) -> Result<Recording, ChangeProblem> {
        let Some(recorder) = &self.recorder else { return Ok(Recording(None)) };
        let draft = Draft { path: &self.real, before, after, temp };
        recorder.begin(&draft).map(|begun| Recording(Some(begun))).map_err(ChangeProblem::Unrecorded)
    }
}

/// A recording that must be ended, where there is a journal.
struct Recording(Option<crate::journal::Begun>);

impl Recording {
    fn end(self, made: bool) -> Undo {
        self.0.map_or(Undo::Off, |begun| begun.end(made))
    }
}

/// What is at a real path.
pub(crate) fn read_at(real: &AbsPath, most: u64) -> Result<Option<Version>, FileProblem> {
    use std::os::fd::AsFd;
    let opened = Place::find(real).and_then(|place| place.open());
    match opened {
        Ok(fd) => Version::read(fd.as_fd(), most).map(Some),
        Err(FileProblem::Missing) => Ok(None),
        Err(problem) => Err(problem),
    }
}
