//! The file of lines, and what they add up to.

use super::line::{Line, State, parse_begin, to_begin_line};
use super::{Change, Kept};
use crate::files::{FileProblem, Hash, sys};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const NAME: &str = "changes.jsonl";
const NEXT: &str = "changes.next";
/// A journal of this many bytes is forgotten from the start by then.
const MOST_BYTES: u64 = 256 << 20;

/// What all lines together say.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) changes: BTreeMap<u64, Change>,
    /// Moves that were announced and not yet said to be over.
    pub(super) under_way: Vec<UnderWay>,
    highest: u64,
}

/// A change or move that is announced.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) ids: Vec<u64>,
    pub(super) to: State,
    /// What the file holds once it happened.
    pub(super) target: Option<Hash>,
    pub(super) temp: OsString,
    /// When the undo or redo began; 0 for a change.
    pub(super) at: u64,
}

impl Book {
    pub(super) fn next_id(&self) -> u64 {
        self.highest + 1
    }

    pub(super) fn apply(&mut self, line: Line) {
        match line {
            Line::Begin { id, .. } => {
                if let Some((change, temp)) = parse_begin(&line) {
                    self.under_way.push(UnderWay {
                        ids: vec![id],
                        to: State::Done,
                        target: change.after.map(|after| after.hash),
                        temp,
                        at: 0,
                    });
                    self.changes.insert(id, change);
                }
                self.highest = self.highest.max(id);
            }
            Line::Moving { ids, to, target, temp, stored, at } => {
                if stored {
                    for id in &ids {
                        if let Some(after) = self.changes.get_mut(id).and_then(|change| change.after.as_mut())
                        {
                            after.stored = true;
                        }
                    }
                }
                let target = target.as_deref().and_then(Hash::from_hex);
                self.under_way.push(UnderWay { ids, to, target, temp: temp.name(), at });
            }
            Line::State { ids, state, at } => {
                for id in &ids {
                    if let Some(change) = self.changes.get_mut(id) {
                        change.state = state;
                        change.moved_at_millis = change.moved_at_millis.max(at);
                    }
                }
                self.under_way.retain(|move_| move_.ids != ids);
            }
        }
    }

    /// How often each stored content is needed.
    pub(super) fn uses(&self) -> BTreeMap<Hash, usize> {
        let mut uses = BTreeMap::new();
        for hash in self.changes.values().flat_map(stored) {
            *uses.entry(hash).or_insert(0) += 1;
        }
        uses
    }

    pub(super) fn oldest_finished_id(&self) -> Option<u64> {
        let settled = |change: &&Change| {
            change.state != State::Begun && !self.under_way.iter().any(|move_| move_.ids.contains(&change.id))
        };
        self.changes.values().find(settled).map(|change| change.id)
    }
}

/// The contents of a change that are in the blobs.
pub(super) fn stored(change: &Change) -> impl Iterator<Item = Hash> {
    let kept: [Option<Kept>; 2] = [change.before, change.after];
    kept.into_iter().flatten().filter(|kept| kept.stored).map(|kept| kept.hash)
}

/// The file.
#[derive(Debug)]
pub(super) struct Log {
    file: OwnedFd,
    /// How far it has been read.
    seen: u64,
}

impl Log {
    pub(super) fn open(dir: BorrowedFd<'_>) -> Result<Self, FileProblem> {
        Ok(Self { file: open_append(dir)?, seen: 0 })
    }

    /// Reads what others wrote.
    pub(super) fn catch_up(&mut self, dir: BorrowedFd<'_>, book: &mut Book) -> Result<(), FileProblem> {
        let there = open_append(dir)?;
        let (held, now) = (sys::fstat(self.file.as_fd())?, sys::fstat(there.as_fd())?);
        if (held.st_dev, held.st_ino) != (now.st_dev, now.st_ino) {
            self.file = there;
            self.seen = 0;
            *book = Book { highest: book.highest, ..Book::default() };
        }
        let size = u64::try_from(now.st_size).unwrap_or(0);
        if size == self.seen {
            return Ok(());
        }
        let fresh = sys::read_from(self.file.as_fd(), self.seen, size.saturating_sub(self.seen), MOST_BYTES)?;
        if !fresh.is_empty() && !fresh.ends_with(b"\n") {
            // A crash tore the last line. Ended, it is a line that makes no sense, and is passed over.
            sys::write_all(&self.file, b"\n")?;
        }
        for line in fresh.split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<Line>(line) {
                book.apply(line);
            }
        }
        self.seen = u64::try_from(sys::fstat(self.file.as_fd())?.st_size).unwrap_or(0);
        Ok(())
    }

    /// Adds a line. Where that fails, nothing of it stays.
    pub(super) fn append(&mut self, line: &Line) -> Result<(), FileProblem> {
        let bytes = encode(line)?;
        if let Err(error) = sys::write_all(&self.file, &bytes) {
            let _ = sys::ftruncate(self.file.as_fd(), self.seen);
            return Err(error.into());
        }
        self.seen += bytes.len() as u64;
        Ok(())
    }

    /// Writes the book anew, without what was forgotten.
    pub(super) fn rewrite(&mut self, dir: BorrowedFd<'_>, book: &Book) -> Result<(), FileProblem> {
        let mut bytes = Vec::new();
        for change in book.changes.values() {
            bytes.extend(encode(&to_begin_line(change))?);
            let at = change.moved_at_millis;
            bytes.extend(encode(&Line::State { ids: vec![change.id], state: change.state, at })?);
        }
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW;
        let next = sys::openat(dir, OsStr::new(NEXT), flags, Mode::from_raw_mode(0o600))?;
        sys::write_all(&next, &bytes)?;
        sys::fsync(next.as_fd())?;
        sys::rename(dir, OsStr::new(NEXT), OsStr::new(NAME))?;
        self.file = open_append(dir)?;
        self.seen = bytes.len() as u64;
        Ok(())
    }
}

fn encode(line: &Line) -> Result<Vec<u8>, FileProblem> {
    let mut bytes = serde_json::to_vec(line).map_err(|error| FileProblem::Other(error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn open_append(dir: BorrowedFd<'_>) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW;
    Ok(sys::openat(dir, OsStr::new(NAME), flags, Mode::from_raw_mode(0o600))?)
}

/// A directory that only this user may use.
pub(super) fn private_dir(within: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, FileProblem> {
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
