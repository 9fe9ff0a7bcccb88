//! The file of lines, and what they add up to.

use super::line::{ChangeState, JournalLine, parse_begin, to_begin_line};
use super::{ContentDescriptor, JournalChange};
use crate::{ContentHash, FileProblem, sys};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const LOG_FILE_NAME: &str = "changes.jsonl";
const NEXT_LOG_FILE_NAME: &str = "changes.next";
/// A journal of this many bytes is forgotten from the start by then.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// What all lines together say.
#[derive(Debug, Default)]
pub(super) struct JournalIndex {
    pub(super) changes: BTreeMap<u64, JournalChange>,
    /// Moves that were announced and not yet said to be over.
    pub(super) in_flight: Vec<InFlightChange>,
    highest_id: u64,
}

/// A change or move that is announced.
#[derive(Debug)]
pub(super) struct InFlightChange {
    pub(super) ids: Vec<u64>,
    pub(super) to: ChangeState,
    /// What the file holds once it happened.
    pub(super) target: Option<ContentHash>,
    pub(super) temp: OsString,
    /// When the undo or redo began; 0 for a change.
    pub(super) at: u64,
}

impl JournalIndex {
    pub(super) fn next_id(&self) -> u64 {
        self.highest_id + 1
    }

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
                    if let Some(change) = self.changes.get_mut(id) {
                        change.state = state;
                        change.moved_at_millis = change.moved_at_millis.max(at);
                    }
                }
                self.in_flight.retain(|move_| move_.ids != ids);
            }
        }
    }

    /// How often each stored content is needed.
    pub(super) fn count_references(&self) -> BTreeMap<ContentHash, usize> {
        let mut uses = BTreeMap::new();
        for hash in self.changes.values().flat_map(stored_hashes) {
            *uses.entry(hash).or_insert(0) += 1;
        }
        uses
    }

    pub(super) fn oldest_finished_id(&self) -> Option<u64> {
        let settled = |change: &&JournalChange| {
            change.state != ChangeState::Begun
                && !self.in_flight.iter().any(|move_| move_.ids.contains(&change.id))
        };
        self.changes.values().find(settled).map(|change| change.id)
    }
}

/// The contents of a change that are in the blobs.
pub(super) fn stored_hashes(change: &JournalChange) -> impl Iterator<Item = ContentHash> {
    let kept: [Option<ContentDescriptor>; 2] = [change.before, change.after];
    kept.into_iter().flatten().filter(|kept| kept.stored).map(|kept| kept.hash)
}

/// The file.
#[derive(Debug)]
pub(super) struct JournalLog {
    file: OwnedFd,
    /// How far it has been read.
    read_offset: u64,
}

impl JournalLog {
    pub(super) fn open(dir: BorrowedFd<'_>) -> Result<Self, FileProblem> {
        Ok(Self { file: open_append(dir)?, read_offset: 0 })
    }

    /// Reads what others wrote.
    pub(super) fn catch_up(
        &mut self,
        dir: BorrowedFd<'_>,
        book: &mut JournalIndex,
    ) -> Result<(), FileProblem> {
        let there = open_append(dir)?;
        let (held, now) = (sys::fstat(self.file.as_fd())?, sys::fstat(there.as_fd())?);
        if (held.st_dev, held.st_ino) != (now.st_dev, now.st_ino) {
            self.file = there;
            self.read_offset = 0;
            *book = JournalIndex { highest_id: book.highest_id, ..JournalIndex::default() };
        }
        let size = u64::try_from(now.st_size).unwrap_or(0);
        if size == self.read_offset {
            return Ok(());
        }
        let fresh = sys::read_from_offset(
            self.file.as_fd(),
            self.read_offset,
            size.saturating_sub(self.read_offset),
            MAX_LOG_BYTES,
        )?;
        if !fresh.is_empty() && !fresh.ends_with(b"\n") {
            // A crash tore the last line. Ended, it is a line that makes no sense, and is passed over.
            sys::write_all(&self.file, b"\n")?;
        }
        for line in fresh.split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<JournalLine>(line) {
                book.apply(line);
            }
        }
        self.read_offset = u64::try_from(sys::fstat(self.file.as_fd())?.st_size).unwrap_or(0);
        Ok(())
    }

    /// Adds a line. Where that fails, nothing of it stays.
    pub(super) fn append(&mut self, line: &JournalLine) -> Result<(), FileProblem> {
        let bytes = encode(line)?;
        if let Err(error) = sys::write_all(&self.file, &bytes) {
            let _ = sys::ftruncate(self.file.as_fd(), self.read_offset);
            return Err(error.into());
        }
        self.read_offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes the book anew, without what was forgotten.
    pub(super) fn rewrite(&mut self, dir: BorrowedFd<'_>, book: &JournalIndex) -> Result<(), FileProblem> {
        let mut bytes = Vec::new();
        for change in book.changes.values() {
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

fn encode(line: &JournalLine) -> Result<Vec<u8>, FileProblem> {
    let mut bytes = serde_json::to_vec(line).map_err(|error| FileProblem::Other(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn open_append(dir: BorrowedFd<'_>) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW;
    Ok(sys::openat(dir, OsStr::new(LOG_FILE_NAME), flags, Mode::from_raw_mode(0o600))?)
}

/// A directory that only this user may use.
pub(super) fn open_private_dir(within: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, FileProblem> {
    match sys::mkdirat(within, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    Ok(sys::openat(within, name, flags, Mode::empty())?)
}

/// An empty file that only this user may use, for locks.
pub(super) fn open_private_file(within: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW;
    Ok(sys::openat(within, name, flags, Mode::from_raw_mode(0o600))?)
}
