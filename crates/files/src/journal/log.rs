//! The log of the journal: a file of JSON lines, and the index that they add up to.
//!
//! Processes append to the same file under the lock of the journal, and each applies the lines of the others before it
//! does anything.

use super::line::{ChangeState, JournalLine, parse_begin, to_begin_line};
use super::undo::opposite_state;
use super::{ContentDescriptor, JournalChange, MovedChanges};
use crate::{ContentHash, FileProblem, sys};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The log of changes, one JSON object a line.
const LOG_FILE_NAME: &str = "changes.jsonl";
/// The rewritten log until it is complete and renamed.
const NEXT_LOG_FILE_NAME: &str = "changes.next";
/// How much of the log is read at once. Eviction keeps it far below.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// The state that all lines of the log add up to.
#[derive(Debug, Default)]
pub(super) struct JournalIndex {
    /// Every change by its number.
    pub(super) changes: BTreeMap<u64, JournalChange>,
    /// Changes, undos and redos that have begun and not ended.
    pub(super) in_flight: Vec<InFlightChange>,
    /// The highest number that was ever used, also by changes that were evicted.
    highest_id: u64,
    /// Lines that cannot be read: what they recorded is lost.
    pub(super) damaged_lines: usize,
}

/// A change, undo or redo of one file that has begun and not ended.
#[derive(Debug)]
pub(super) struct InFlightChange {
    /// The changes that it is about.
    pub(super) ids: Vec<u64>,
    /// The state that they get when it succeeds.
    pub(super) to: ChangeState,
    /// The content of the file after it succeeded; `None` if the file is deleted.
    pub(super) target: Option<ContentHash>,
    /// The temporary name that it uses in the directory of the file.
    pub(super) temp: OsString,
    /// When the undo or redo began, in milliseconds since 1970; 0 for a change.
    pub(super) at: u64,
}

impl JournalIndex {
    /// The number for a new change.
    pub(super) fn next_id(&self) -> u64 {
        self.highest_id + 1
    }

    /// Applies one line of the log.
    pub(super) fn apply(&mut self, line: JournalLine) {
        match line {
            JournalLine::Begin { id, .. } => {
                if let Some((change, temp)) = parse_begin(&line) {
                    self.in_flight.push(InFlightChange {
                        ids: vec![id],
                        to: ChangeState::Done,
                        target: change.after.map(|after| after.hash),
                        temp,
                        at: 0,
                    });
                    self.changes.insert(id, change);
                }
                self.highest_id = self.highest_id.max(id);
            }
            JournalLine::Moving { ids, to, target, temp, stored, at } => {
                if stored {
                    for id in &ids {
                        if let Some(after) = self.changes.get_mut(id).and_then(|change| change.after.as_mut())
                        {
                            after.stored = true;
                        }
                    }
                }
                let target = target.as_deref().and_then(ContentHash::from_hex);
                self.in_flight.push(InFlightChange { ids, to, target, temp: temp.name(), at });
            }
            JournalLine::State { ids, state, at } => {
                for id in &ids {
                    self.set_state(*id, state, at);
                }
                self.in_flight.retain(|in_flight| in_flight.ids != ids);
            }
        }
    }

    /// Gives a change a state. A change that an undo or redo made takes along those that were moved with it: undoing an
    /// undo makes the original changes done again, and so undoable.
    fn set_state(&mut self, id: u64, state: ChangeState, at: u64) {
        let Some(change) = self.changes.get_mut(&id) else { return };
        let former = std::mem::replace(&mut change.state, state);
        change.moved_at_millis = change.moved_at_millis.max(at);
        let (to_done, to_undone) = match (former, state) {
            (ChangeState::Done, ChangeState::Undone) => {
                (change.moved.undone.clone(), change.moved.redone.clone())
            }
            (ChangeState::Undone, ChangeState::Done) => {
                change.applied_at_millis = change.applied_at_millis.max(at);
                (change.moved.redone.clone(), change.moved.undone.clone())
            }
            _ => return,
        };
        for (ids, state) in [(to_done, ChangeState::Done), (to_undone, ChangeState::Undone)] {
            for id in ids {
                // Their times stay, so that they have the place in the order that they had in this state before.
                if let Some(change) = self.changes.get_mut(&id) {
                    change.state = state;
                }
            }
        }
    }

    /// What an undo or redo of these changes moves: they themselves, and those that follow their state.
    pub(super) fn moved_with(&self, ids: &[u64], to: ChangeState) -> MovedChanges {
        let mut moved = MovedChanges::default();
        let (own, other) = if to == ChangeState::Undone {
            (&mut moved.undone, &mut moved.redone)
        } else {
            (&mut moved.redone, &mut moved.undone)
        };
        own.extend(ids);
        let is = |id: &u64, state| self.changes.get(id).is_some_and(|change| change.state == state);
        for change in ids.iter().filter_map(|id| self.changes.get(id)) {
            other.extend(change.moved.undone.iter().filter(|id| is(id, to)));
            own.extend(change.moved.redone.iter().filter(|id| is(id, opposite_state(to))));
        }
        moved
    }

    /// How many changes refer to each stored content.
    pub(super) fn count_references(&self) -> BTreeMap<ContentHash, usize> {
        let mut references = BTreeMap::new();
        for hash in self.changes.values().flat_map(stored_hashes) {
            *references.entry(hash).or_insert(0) += 1;
        }
        references
    }

    /// The oldest change that is not in flight, and so can be evicted.
    pub(super) fn oldest_finished_id(&self) -> Option<u64> {
        let is_finished = |change: &&JournalChange| {
            change.state != ChangeState::Begun
                && !self.in_flight.iter().any(|in_flight| in_flight.ids.contains(&change.id))
        };
        self.changes.values().find(is_finished).map(|change| change.id)
    }
}

/// The contents of a change that are in the blob store.
pub(super) fn stored_hashes(change: &JournalChange) -> impl Iterator<Item = ContentHash> {
    let contents: [Option<ContentDescriptor>; 2] = [change.before, change.after];
    contents.into_iter().flatten().filter(|content| content.stored).map(|content| content.hash)
}

/// The open log file.
#[derive(Debug)]
pub(super) struct JournalLog {
    /// The file, open for reading and appending.
    file: OwnedFd,
    /// Up to where its lines have been applied to the index.
    read_offset: u64,
}

impl JournalLog {
    /// Opens the log, and reads it from its start.
    pub(super) fn open(dir: BorrowedFd<'_>) -> Result<Self, FileProblem> {
        Ok(Self { file: open_append(dir)?, read_offset: 0 })
    }

    /// Applies the lines that other processes have appended. A log that another process has rewritten is read from its
    /// start.
    pub(super) fn catch_up(
        &mut self,
        dir: BorrowedFd<'_>,
        index: &mut JournalIndex,
    ) -> Result<(), FileProblem> {
        let current = open_append(dir)?;
        let (known, now) = (sys::fstat(self.file.as_fd())?, sys::fstat(current.as_fd())?);
        if (known.st_dev, known.st_ino) != (now.st_dev, now.st_ino) {
            self.file = current;
            self.read_offset = 0;
            *index = JournalIndex { highest_id: index.highest_id, ..JournalIndex::default() };
        }
        let size = u64::try_from(now.st_size).unwrap_or(0);
        if size == self.read_offset {
            return Ok(());
        }
        let appended = sys::read_from_offset(
            self.file.as_fd(),
            self.read_offset,
            size.saturating_sub(self.read_offset),
            MAX_LOG_BYTES,
        )?;
        if !appended.is_empty() && !appended.ends_with(b"\n") {
            // A crash truncated the last line. With a line end after it, it is a line that does not parse and is skipped.
            sys::write_all(&self.file, b"\n")?;
        }
        for line in appended.split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<JournalLine>(line) {
                Ok(line) => index.apply(line),
                Err(_) => index.damaged_lines += usize::from(!line.is_empty()),
            }
        }
        self.read_offset = u64::try_from(sys::fstat(self.file.as_fd())?.st_size).unwrap_or(0);
        Ok(())
    }

    /// Appends a line. If that fails, the file is truncated to what it was.
    pub(super) fn append(&mut self, line: &JournalLine) -> Result<(), FileProblem> {
        let bytes = encode(line)?;
        if let Err(error) = sys::write_all(&self.file, &bytes) {
            let _ = sys::ftruncate(self.file.as_fd(), self.read_offset);
            return Err(error.into());
        }
        self.read_offset += bytes.len() as u64;
        Ok(())
    }

    /// Replaces the log by one with only the changes that are in the index, after an eviction.
    pub(super) fn rewrite(&mut self, dir: BorrowedFd<'_>, index: &JournalIndex) -> Result<(), FileProblem> {
        let mut bytes = Vec::new();
        for change in index.changes.values() {
            bytes.extend(encode(&to_begin_line(change))?);
            let at = change.moved_at_millis;
            bytes.extend(encode(&JournalLine::State { ids: vec![change.id], state: change.state, at })?);
        }
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW;
        let next = sys::openat(dir, OsStr::new(NEXT_LOG_FILE_NAME), flags, Mode::from_raw_mode(0o600))?;
        sys::write_all(&next, &bytes)?;
        sys::fsync(next.as_fd())?;
        sys::rename(dir, OsStr::new(NEXT_LOG_FILE_NAME), OsStr::new(LOG_FILE_NAME))?;
        self.file = open_append(dir)?;
        self.read_offset = bytes.len() as u64;
        Ok(())
    }
}

/// A line of the log as bytes, with its line end.
fn encode(line: &JournalLine) -> Result<Vec<u8>, FileProblem> {
    let mut bytes = serde_json::to_vec(line).map_err(|error| FileProblem::Other(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Opens or creates the file for appending.
fn open_append(dir: BorrowedFd<'_>) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW;
    Ok(sys::openat(dir, OsStr::new(LOG_FILE_NAME), flags, Mode::from_raw_mode(0o600))?)
}

/// Opens or creates a directory that only this user can access.
pub(super) fn open_private_dir(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, FileProblem> {
    match sys::mkdirat(parent, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    Ok(sys::openat(parent, name, flags, Mode::empty())?)
}

/// Opens or creates an empty file that only this user can access, for locks.
pub(super) fn open_private_file(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW;
    Ok(sys::openat(parent, name, flags, Mode::from_raw_mode(0o600))?)
}
