//! Restoring one file of an undo or redo, and rolling it back.

use super::line::{ChangeState, JournalLine, JournalPath};
use super::undo::{FileRestore, content_hash, opposite_state};
use super::{ContentDescriptor, Journal, JournalState};
use crate::anchored_path::AnchoredPath;
use crate::replace::{ChangeProblem, ReplaceRequest, put_content, remove_file, temporary_name};
use crate::{FileProblem, FileSnapshot, lock_path_blocking, read_snapshot};
use std::ffi::OsStr;
use toolgate_proto::{CallId, SessionId};

/// One undo or redo that is being executed.
#[derive(Debug, Clone)]
pub(super) struct UndoRun {
    /// The state that the changes get.
    pub(super) to: ChangeState,
    /// Its time in milliseconds since 1970. Later than that of every earlier run, so that a redo can select what was
    /// undone last.
    pub(super) at: u64,
    /// The call under which the run itself is recorded, if it overwrites the content of a file that none of the changes
    /// made: one of one session for all files, so that undoing it brings back what was before the run, in every file of it.
    pub(super) overwrite_call: Option<(SessionId, CallId)>,
}

impl Journal {
    /// Restores a file that still has the content of the plan, and records it before and after. Returns the number of the
    /// change that overwrites other content, if the run does.
    pub(super) fn restore_file(
        &self,
        restore: &FileRestore,
        run: &UndoRun,
    ) -> Result<Option<u64>, ChangeProblem> {
        let _guard = lock_path_blocking(&restore.path);
        let temp = temporary_name();
        let overwrite = self
            .with_lock(|inner| self.begin_restore(inner, restore, run, &temp))
            .map_err(|problem| ChangeProblem::Unrecorded(problem.to_string()))?;
        let result = apply_restore(restore, &temp);
        let state = if result.is_ok() { run.to } else { opposite_state(run.to) };
        // If this fails, recovery finds the outcome by looking at the file.
        let _ = self.with_lock(|inner| {
            if let Some(id) = overwrite {
                let state = if result.is_ok() { ChangeState::Done } else { ChangeState::Failed };
                inner.append(JournalLine::State { ids: vec![id], state, at: 0 })?;
            }
            // A time would change the order in which later runs undo and redo, and nothing has moved.
            let at = if result.is_ok() { run.at } else { 0 };
            inner.append(JournalLine::State { ids: restore.changes.clone(), state, at })
        });
        result.map(|()| overwrite)
    }

    /// Stores the current content, which the opposite operation will restore, and records that the restore begins. Returns
    /// the number of the change that overwrites foreign content, if the restore does.
    fn begin_restore(
        &self,
        inner: &mut JournalState,
        restore: &FileRestore,
        run: &UndoRun,
        temp: &OsStr,
    ) -> Result<Option<u64>, FileProblem> {
        let fits = |snapshot: &FileSnapshot| snapshot.fingerprint.bytes <= self.limits.file_bytes;
        let stored = match restore.current.as_ref().filter(|current| fits(current)) {
            Some(current) => {
                let content = inner.blobs.store(current, true)?;
                let newest = restore.changes.iter().max().and_then(|id| inner.index.changes.get(id));
                content_hash(newest.and_then(|change| change.after)) == Some(content.hash)
            }
            None => false,
        };
        inner.append(JournalLine::Moving {
            ids: restore.changes.clone(),
            to: run.to,
            target: restore.target.map(|content| content.hash.to_string()),
            temp: JournalPath::of_name(temp),
            stored: stored && run.to == ChangeState::Undone,
            at: run.at,
        })?;
        let Some((session, call)) = run.overwrite_call.clone() else { return Ok(None) };
        let id = inner.index.next_id();
        let moved = inner.index.moved_with(&restore.changes, run.to);
        let before = restore.current.as_ref().map(|current| describe(current, fits(current)));
        inner.append(JournalLine::Begin {
            id,
            call,
            session,
            at: crate::now_millis(),
            path: JournalPath::of(&restore.path),
            before: before.map(Into::into),
            after: restore.target.map(Into::into),
            temp: JournalPath::of_name(temp),
            // Not before that of the changes it moves: an undo takes this one first.
            applied: run.at,
            undone: moved.undone,
            redone: moved.redone,
        })?;
        Ok(Some(id))
    }

    /// Gives a restored file its former content again, because a later file of the same run failed, and takes back the
    /// change that was recorded for it. A failure here is ignored: the caller already reports the first one.
    pub(super) fn roll_back(&self, restore: &FileRestore, run: &UndoRun, overwrite: Option<u64>) {
        let back = FileRestore {
            then: restore.now.clone(),
            now: restore.then.clone(),
            mode_change: restore.mode_change.map(|(now, then)| (then, now)),
            target: restore.current.as_ref().map(|snapshot| describe(snapshot, true)),
            current: read_snapshot(&restore.path, u64::MAX).ok().flatten(),
            is_foreign: false,
            ..restore.clone()
        };
        let back_run = UndoRun { to: opposite_state(run.to), at: 0, overwrite_call: None };
        if let (Ok(_), Some(id)) = (self.restore_file(&back, &back_run), overwrite) {
            let failed = JournalLine::State { ids: vec![id], state: ChangeState::Failed, at: 0 };
            let _ = self.with_lock(|inner| inner.append(failed));
        }
    }
}

/// The descriptor of a content that was read.
fn describe(snapshot: &FileSnapshot, stored: bool) -> ContentDescriptor {
    ContentDescriptor {
        hash: snapshot.hash(),
        bytes: snapshot.fingerprint.bytes,
        mode: snapshot.mode,
        stored,
    }
}

/// Writes or deletes the file.
fn apply_restore(restore: &FileRestore, temp: &OsStr) -> Result<(), ChangeProblem> {
    match (&restore.then, &restore.current) {
        (Some(then), current) => {
            let mode = match current {
                Some(_) => restore.mode_change.map(|(_, then)| then),
                None => restore.target.map(|content| content.mode).filter(|mode| *mode != 0),
            };
            let mut path = AnchoredPath::create_parents(&restore.path)?;
            let request = ReplaceRequest { before: current.as_ref(), content: then, mode, temp };
            put_content(&mut path, request, || Ok(())).1.map(drop)
        }
        (None, Some(current)) => remove_file(&AnchoredPath::open_parent(&restore.path)?, temp, current),
        (None, None) => Ok(()),
    }
}
