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
use crate::{FileProblem, generate_id};
use rustix::fs::{AtFlags, CWD, FileType, readlinkat, statat};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use toolgate_proto::{AbsPath, UncoveredFile};

/// The size of the largest file that is kept.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The size of all files that are kept of one command.
const MAX_TOTAL_BYTES: u64 = 256 << 20;
/// How many files are kept of one command.
const MAX_FILES: usize = 10_000;

/// Why a symlink is not kept.
const SYMLINK_REASON: &str = "a symlink";
/// Why a file above [`MAX_FILE_BYTES`] is not kept.
const TOO_LARGE_REASON: &str = "larger than 16 MiB";
/// Why a file is not kept after the limits of the command are reached.
const TOO_MANY_REASON: &str = "the command changed more than is kept of one command";

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
    /// Entries whose content was not kept, with the reason and what tells whether they were changed.
    unkept: BTreeMap<AbsPath, (String, EntryStamp)>,
}

/// What tells whether an entry whose content was not kept was changed.
#[derive(Debug, PartialEq, Eq)]
enum EntryStamp {
    /// There is none, or it cannot be looked at.
    Absent,
    /// A directory, which has no content to keep.
    Directory,
    /// A symlink to this target.
    Symlink(Option<CString>),
    /// Any other entry.
    File {
        /// Its size.
        bytes: u64,
        /// Its inode, mode, and times of modification and change, with nanoseconds.
        state: (u64, u32, [i64; 4]),
    },
}

/// What became of the files of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandChanges {
    /// Files whose change can be undone.
    pub recorded: Vec<AbsPath>,
    /// Files that the command changed, and whose change cannot be undone. Symlinks come last.
    pub left_out: Vec<UncoveredFile>,
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
        if !is_inside || state.before.contains_key(real) || state.unkept.contains_key(real) {
            return;
        }
        let stamp = EntryStamp::of(real);
        if stamp == EntryStamp::Directory {
            return;
        }
        match state.read_before(real, &stamp) {
            Ok(snapshot) => {
                state.bytes += snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len() as u64);
                state.before.insert(real.clone(), snapshot);
            }
            Err(reason) => {
                state.unkept.insert(real.clone(), (reason, stamp));
            }
        }
    }

    /// Records in the journal what differs from the snapshots, and forgets them. A file that was opened for writing and
    /// not changed is no change.
    pub fn record(&self) -> CommandChanges {
        let captured = std::mem::take(&mut *self.lock());
        let mut changes = CommandChanges::default();
        for (path, (reason, stamp)) in captured.unkept {
            if EntryStamp::of(&path) != stamp {
                changes.left_out.push(UncoveredFile::new(path, reason));
            }
        }
        let is_usable = captured.before.is_empty()
            || !self.recorder.needs_recovery()
            || self.recorder.recover_journal().is_ok();
        for (path, before) in captured.before {
            let recorded = match is_usable {
                true => self.record_file(&path, before.as_ref()),
                false => Err("the journal cannot be used".to_owned()),
            };
            match recorded {
                Ok(true) => changes.recorded.push(path),
                Ok(false) => {}
                Err(reason) => changes.left_out.push(UncoveredFile::new(path, reason)),
            }
        }
        changes.left_out.sort_by_key(|file| file.reason == SYMLINK_REASON);
        changes
    }

    /// Records the change of one file. False if it is as it was; the error says why it cannot be recorded.
    fn record_file(&self, path: &AbsPath, before: Option<&FileSnapshot>) -> Result<bool, String> {
        let stamp = EntryStamp::of(path);
        let now = match stamp {
            EntryStamp::Directory => None,
            _ => read_snapshot(path, MAX_FILE_BYTES).map_err(|problem| stamp.explain(&problem))?,
        };
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
        let unrecorded = || "the journal could not record it".to_owned();
        let pending = self.recorder.begin(&change).map_err(|_| unrecorded())?;
        match pending.end(true) {
            crate::UndoAvailability::Recorded(_) => Ok(true),
            crate::UndoAvailability::TooLarge => Err(TOO_LARGE_REASON.to_owned()),
            crate::UndoAvailability::NoJournal => Err(unrecorded()),
        }
    }

    /// Locks what was kept. A poisoned lock still protects whole entries.
    fn lock(&self) -> MutexGuard<'_, CapturedFiles> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CapturedFiles {
    /// Reads what an entry contains, if it can be kept. The error says why it cannot.
    fn read_before(&self, real: &AbsPath, stamp: &EntryStamp) -> Result<Option<FileSnapshot>, String> {
        let room = MAX_TOTAL_BYTES.saturating_sub(self.bytes);
        match stamp {
            EntryStamp::File { bytes, .. } if *bytes <= MAX_FILE_BYTES && *bytes > room => {
                Err(TOO_MANY_REASON.to_owned())
            }
            _ if self.before.len() >= MAX_FILES => Err(TOO_MANY_REASON.to_owned()),
            _ => read_snapshot(real, room.min(MAX_FILE_BYTES)).map_err(|problem| stamp.explain(&problem)),
        }
    }
}

impl EntryStamp {
    /// The stamp of what is at a path now.
    fn of(path: &AbsPath) -> Self {
        let Ok(stat) = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW) else { return Self::Absent };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink(readlinkat(CWD, path.as_path(), Vec::new()).ok()),
            _ => {
                let times =
                    [stat.st_mtime, stat.st_mtime_nsec as i64, stat.st_ctime, stat.st_ctime_nsec as i64];
                Self::File { bytes: stat.st_size as u64, state: (stat.st_ino, stat.st_mode, times) }
            }
        }
    }

    /// Why the content of the entry cannot be kept, after it could not be read.
    fn explain(&self, problem: &FileProblem) -> String {
        match self {
            Self::Symlink(_) => SYMLINK_REASON.to_owned(),
            Self::File { bytes, .. } if *bytes > MAX_FILE_BYTES => TOO_LARGE_REASON.to_owned(),
            Self::File { .. } | Self::Absent | Self::Directory => problem.to_string(),
        }
    }
}
