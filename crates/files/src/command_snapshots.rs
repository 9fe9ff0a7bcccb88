//! Snapshots around a command: what its files contained before it changed them, so that its changes can be undone.
//!
//! The sandbox makes every change of a command, and says so beforehand ([`CommandSnapshots::capture`]).
//! Only files that are about to change are read, so the cost does not depend on the size of the workspace.
//! When the command is over, [`CommandSnapshots::record`] compares each of them with what is there now, and records what
//! differs in the journal, as changes of the call.
//!
//! Repositories' own data (`.git`) is left out: git has its own way back, and half of a repository's files would be worse
//! than none.

use crate::journal::{ChangeRecorder, ContentDescriptor, ProposedChange};
use crate::locked_file::read_snapshot;
use crate::snapshot::FileSnapshot;
use crate::{generate_id, resolve};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use toolgate_proto::{AbsPath, EntryKind};

/// The size of the largest file that is kept.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The size of all files that are kept of one command.
const MAX_TOTAL_BYTES: u64 = 256 << 20;
/// How many files are kept of one command.
const MAX_FILES: usize = 10_000;

/// The directory of a repository's own data.
const REPOSITORY_DIR: &str = ".git";

/// What the files of one command contained before it changed them.
#[derive(Debug)]
pub struct CommandSnapshots {
    /// Records the changes of the call.
    recorder: ChangeRecorder,
    /// The directories whose files are kept.
    roots: Vec<AbsPath>,
    /// What was kept so far.
    state: Mutex<CapturedFiles>,
}

/// The files that a command was about to change.
#[derive(Debug, Default)]
struct CapturedFiles {
    /// By real path; `None` for a file that did not exist.
    before: BTreeMap<AbsPath, Option<FileSnapshot>>,
    /// The size of what is kept.
    bytes: u64,
    /// Files that could not be kept.
    left_out: BTreeSet<AbsPath>,
}

/// What became of the files of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandChanges {
    /// Files whose change can be undone.
    pub recorded: Vec<AbsPath>,
    /// Files that the command may have changed, and whose change cannot be undone: they are too large, or too many.
    pub left_out: Vec<AbsPath>,
}

impl CommandSnapshots {
    /// Snapshots of files below these directories.
    pub(crate) fn new(recorder: ChangeRecorder, roots: Vec<AbsPath>) -> Self {
        Self { recorder, roots, state: Mutex::default() }
    }

    /// Keeps what a file contains now, unless that was done before. Called before each change; a directory and a special
    /// file have no content to keep.
    pub fn capture(&self, real: &AbsPath) {
        let is_inside = self.roots.iter().any(|root| {
            real.as_path().strip_prefix(root.as_path()).is_ok_and(|inner| {
                inner.components().all(|part| part.as_os_str() != OsStr::new(REPOSITORY_DIR))
            })
        });
        let mut state = self.lock();
        if !is_inside || state.before.contains_key(real) || state.left_out.contains(real) {
            return;
        }
        if resolve(real).kind == EntryKind::Directory {
            return;
        }
        let room = MAX_TOTAL_BYTES.saturating_sub(state.bytes).min(MAX_FILE_BYTES);
        match read_snapshot(real, room) {
            Ok(snapshot) if state.before.len() < MAX_FILES => {
                state.bytes += snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len() as u64);
                state.before.insert(real.clone(), snapshot);
            }
            Ok(_) | Err(_) => {
                state.left_out.insert(real.clone());
            }
        }
    }

    /// Records in the journal what differs from the snapshots, and forgets them. A file that was opened for writing and
    /// not changed is no change.
    pub fn record(&self) -> CommandChanges {
        let captured = std::mem::take(&mut *self.lock());
        let mut changes =
            CommandChanges { left_out: captured.left_out.into_iter().collect(), recorded: Vec::new() };
        if captured.before.is_empty() {
            return changes;
        }
        if self.recorder.needs_recovery() && self.recorder.recover_journal().is_err() {
            changes.left_out.extend(captured.before.into_keys());
            return changes;
        }
        for (path, before) in captured.before {
            match self.record_file(&path, before.as_ref()) {
                Ok(true) => changes.recorded.push(path),
                Ok(false) => {}
                Err(()) => changes.left_out.push(path),
            }
        }
        changes
    }

    /// Records the change of one file. False if it is as it was.
    fn record_file(&self, path: &AbsPath, before: Option<&FileSnapshot>) -> Result<bool, ()> {
        let is_directory = resolve(path).kind == EntryKind::Directory;
        let now = if is_directory { None } else { read_snapshot(path, MAX_FILE_BYTES).map_err(|_| ())? };
        let is_same = match (before, &now) {
            (None, None) => true,
            (Some(before), Some(now)) => before.bytes == now.bytes && before.mode == now.mode,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            return Ok(false);
        }
        let after = now.map(|now| ContentDescriptor {
            hash: now.hash(),
            bytes: now.bytes.len() as u64,
            mode: now.mode,
            stored: false,
        });
        // No temporary file is used; the name is one that recovery does not find.
        let temp = generate_id(".toolgate-unused-");
        let change = ProposedChange { path, before, after, temp: OsStr::new(&temp) };
        let pending = self.recorder.begin(&change).map_err(drop)?;
        match pending.end(true) {
            crate::UndoAvailability::Recorded(_) => Ok(true),
            crate::UndoAvailability::TooLarge | crate::UndoAvailability::NoJournal => Err(()),
        }
    }

    /// Locks what was kept. A poisoned lock still protects whole entries.
    fn lock(&self) -> MutexGuard<'_, CapturedFiles> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
