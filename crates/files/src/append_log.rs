//! An append-only log of lines for several processes, which survives a crash during a write.
//!
//! The log does not know what its lines mean.
//! The caller passes a closure that gets the last complete line and returns the next one; it runs under an exclusive
//! lock, so that a chain of hashes from line to line cannot fork.
//! A head file beside the log and an anchor file in another directory both name the last line, so that truncation or
//! removal of the log is detected: the closure gets what they contain before they are overwritten.

use crate::single_line_file::{SingleLineFile, read_single_line_file};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toolgate_proto::AbsPath;

/// One file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSegment {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}

/// An append-only log: the newest lines in `NAME.jsonl`, older ones in `NAME-000001.jsonl` and so on.
#[derive(Debug)]
pub struct AppendLog {
    /// The directory of the log.
    dir: PathBuf,
    /// The base of the file names.
    name: String,
    /// The current segment.
    path: PathBuf,
    /// The size in bytes at which a segment is closed and the next one begins.
    rotate_at: u64,
    /// The current segment, open for appending.
    file: File,
    /// Device and inode number of `file`, by which a rotation in another process is noticed.
    id: (u64, u64),
    /// The head file. Writers lock it.
    head: SingleLineFile,
    /// The anchor file.
    anchor: SingleLineFile,
    /// Up to where this process has read the current segment.
    read_offset: u64,
    /// The last complete line before `read_offset`.
    last_line: Option<String>,
}

/// The end of a log before a line is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd<'a> {
    /// The last complete line; `None` in an empty log.
    pub last: Option<&'a str>,
    /// The content of the head file.
    pub head: Option<&'a str>,
    /// The content of the anchor file.
    pub anchor: Option<&'a str>,
}

impl AppendLog {
    /// Opens or creates a log with its anchor in [`AppendLog::default_anchor_dir`].
    pub fn open(dir: &AbsPath, name: &str, rotate_at: u64) -> io::Result<Self> {
        Self::open_anchored(dir, &Self::default_anchor_dir(dir), name, rotate_at)
    }

    /// The directory in which [`AppendLog::open`] puts the anchor.
    pub fn default_anchor_dir(dir: &AbsPath) -> AbsPath {
        dir.join("anchor")
    }

    /// Opens or creates a log. Directories that it creates are accessible to this user only. The anchor
    /// should be in another one than `dir`: what removes the files of the log should not remove its anchor as well.
    pub fn open_anchored(
        dir: &AbsPath,
        anchor_dir: &AbsPath,
        name: &str,
        rotate_at: u64,
    ) -> io::Result<Self> {
        let dir = dir.as_path().to_path_buf();
        for directory in [&dir, anchor_dir.as_path()] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let head = SingleLineFile::open(dir.join(format!("{name}.head")))?;
        let anchor = SingleLineFile::open(anchor_dir.as_path().join(format!("{name}.anchor")))?;
        let path = dir.join(format!("{name}.jsonl"));
        let (file, id) = open_segment(&path)?;
        Ok(Self {
            name: name.to_owned(),
            dir,
            path,
            rotate_at,
            file,
            id,
            head,
            anchor,
            read_offset: 0,
            last_line: None,
        })
    }

    /// Appends a line. `next` gets the end of the log and returns the line and the new content of head and anchor; neither
    /// may contain a line end.
    pub fn append(&mut self, next: impl FnOnce(LogEnd<'_>) -> (String, String)) -> io::Result<()> {
        self.lock()?;
        let result = self.append_locked(next);
        flock(self.head.file(), FlockOperation::Unlock)?;
        result
    }

    /// Whether a line of this size could be appended now: the files can be opened, and the file system keeps the space for
    /// it. A file system that cannot reserve space gives no guarantee, and is no error.
    pub fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        self.lock()?;
        let reserved = self.reserve_locked(bytes);
        flock(self.head.file(), FlockOperation::Unlock)?;
        reserved
    }

    /// Reserves space for a line, so that a full disk is noticed before a call runs.
    fn reserve_locked(&mut self, bytes: u64) -> io::Result<()> {
        let size = self.current_size()?;
        self.anchor.reopen_if_replaced()?;
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, size, bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Locks the head file. If it was replaced before the lock was taken, other writers lock another file, so it is reopened.
    fn lock(&mut self) -> io::Result<()> {
        const MAX_LOCK_ATTEMPTS: usize = 16;
        for _ in 0..MAX_LOCK_ATTEMPTS {
            flock(self.head.file(), FlockOperation::LockExclusive)?;
            if !self.head.reopen_if_replaced()? {
                return Ok(());
            }
        }
        Err(io::Error::other(format!(
            "the head file of the log was replaced during each of {MAX_LOCK_ATTEMPTS} attempts to lock it"
        )))
    }

    /// Appends a line that depends on the end of the log, which another process may have moved.
    fn append_locked(&mut self, next: impl FnOnce(LogEnd<'_>) -> (String, String)) -> io::Result<()> {
        let mut size = self.current_size()?;
        if size != self.read_offset {
            size = self.catch_up(size)?;
        }
        self.anchor.reopen_if_replaced()?;
        let (head, anchor) = (self.head.read()?, self.anchor.read()?);
        let end =
            LogEnd { last: self.last_line.as_deref(), head: head.as_deref(), anchor: anchor.as_deref() };
        let (mut line, head) = next(end);
        if size > 0 && size + line.len() as u64 > self.rotate_at {
            self.rotate()?;
            size = 0;
        }
        line.push('\n');
        // In one system call: a crash leaves at most a truncated last line, which `catch_up` terminates and skips.
        self.file.write_all(line.as_bytes())?;
        line.pop();
        // No other process appends while this one holds the lock.
        self.read_offset = size + line.len() as u64 + 1;
        self.last_line = Some(line);
        // After the line: a crash in between leaves head and anchor one line behind, never one ahead.
        self.head.write(&head)?;
        self.anchor.write(&head)
    }

    /// The content of the head file of a log that need not be open.
    pub fn read_head(dir: &AbsPath, name: &str) -> io::Result<Option<String>> {
        read_single_line_file(&dir.as_path().join(format!("{name}.head")))
    }

    /// The content of the anchor file of a log that need not be open.
    pub fn read_anchor(anchor_dir: &AbsPath, name: &str) -> io::Result<Option<String>> {
        read_single_line_file(&anchor_dir.as_path().join(format!("{name}.anchor")))
    }

    /// The size of the current segment, which is opened again if another process has rotated the log.
    fn current_size(&mut self) -> io::Result<u64> {
        match fs::metadata(&self.path) {
            Ok(current) if (current.dev(), current.ino()) == self.id => Ok(current.len()),
            Ok(_) | Err(_) => {
                (self.file, self.id) = open_segment(&self.path)?;
                self.read_offset = 0;
                Ok(self.file.metadata()?.len())
            }
        }
    }

    /// Reads the last line that other processes appended, and terminates a line that a crash truncated.
    fn catch_up(&mut self, size: u64) -> io::Result<u64> {
        let tail = read_tail(&mut self.file, size)?;
        if size > 0 && !tail.ends_with('\n') {
            self.file.write_all(b"\n")?;
        }
        self.last_line = match last_complete_line(&tail) {
            Some(line) => Some(line.to_owned()),
            None => self.last_line_of_older_segments()?,
        };
        self.file.metadata().map(|metadata| metadata.len())
    }

    /// The last line before the current segment.
    fn last_line_of_older_segments(&self) -> io::Result<Option<String>> {
        let segments = self.segments()?;
        for segment in segments.iter().rev() {
            let mut file = File::open(&segment.path)?;
            let tail = read_tail(&mut file, segment.bytes)?;
            if let Some(line) = last_complete_line(&tail) {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    /// Renames the current segment to the next free number and starts a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let number = self.segments()?.len();
        fs::rename(&self.path, self.dir.join(format!("{}-{number:06}.jsonl", self.name)))?;
        (self.file, self.id) = open_segment(&self.path)?;
        self.read_offset = 0;
        Ok(())
    }

    /// Every segment of this log, oldest first.
    pub fn segments(&self) -> io::Result<Vec<LogSegment>> {
        Self::list_segments(&AbsPath::new(&self.dir).map_err(io::Error::other)?, &self.name)
    }

    /// Every segment of a log that need not be open, oldest first. Empty if the log was never written.
    pub fn list_segments(dir: &AbsPath, name: &str) -> io::Result<Vec<LogSegment>> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(dir.as_path()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let current = format!("{name}.jsonl");
        let older = format!("{name}-");
        for entry in entries {
            let entry = entry?;
            let file_name = entry.file_name().to_string_lossy().into_owned();
            let rank = if file_name == current {
                u64::MAX
            } else {
                match file_name
                    .strip_prefix(&older)
                    .and_then(|rest| rest.strip_suffix(".jsonl"))
                    .and_then(|number| number.parse().ok())
                {
                    Some(number) => number,
                    None => continue,
                }
            };
            found.push((rank, LogSegment { path: entry.path(), bytes: entry.metadata()?.len() }));
        }
        found.sort_by_key(|(rank, _)| *rank);
        Ok(found.into_iter().map(|(_, segment)| segment).collect())
    }

    /// The text of a segment; bytes that are not UTF-8 are replaced.
    pub fn read_segment(segment: &LogSegment) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(&segment.path)?.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Appends a line to a file in one system call, and creates the file for this user only. Without a line it is only found
/// out whether that would work.
pub fn append_line(path: &AbsPath, line: Option<&str>) -> io::Result<()> {
    // Not for reading: a file that may only be appended to is a good place.
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path.as_path())?;
    match line {
        Some(line) => file.write_all(format!("{line}\n").as_bytes()),
        None => Ok(()),
    }
}

/// Opens or creates a segment, with its device and inode number.
fn open_segment(path: &Path) -> io::Result<(File, (u64, u64))> {
    let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, (metadata.dev(), metadata.ino())))
}

/// The end of a file: at least one complete line, if the file has one.
fn read_tail(file: &mut File, size: u64) -> io::Result<String> {
    let mut window: u64 = 64 * 1024;
    loop {
        let start = size.saturating_sub(window);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(size - start).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // Two line ends: one before and one after a complete line.
        if start == 0 || text.matches('\n').count() >= 2 {
            return Ok(text);
        }
        window = window.saturating_mul(4);
    }
}

/// The last line that a crash did not truncate.
fn last_complete_line(tail: &str) -> Option<&str> {
    let lines = tail.rfind('\n').and_then(|end| tail.get(..end))?;
    // A line that is not a JSON object was truncated by a crash and terminated by the next writer.
    lines.rsplit('\n').find(|line| line.starts_with('{') && line.ends_with('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_up(end: LogEnd<'_>) -> (String, String) {
        let number: u64 = end
            .last
            .and_then(|line| line.trim_start_matches("{\"n\":").trim_end_matches('}').parse().ok())
            .unwrap_or(0);
        (format!("{{\"n\":{}}}", number + 1), format!("{:04}", number + 1))
    }

    fn whole_log(dir: &AbsPath) -> String {
        let segments = AppendLog::list_segments(dir, "log").unwrap();
        segments.iter().map(|segment| AppendLog::read_segment(segment).unwrap()).collect()
    }

    #[test]
    fn two_writers_and_rotation_keep_one_chain() {
        let dir = tempfile::tempdir().unwrap();
        let dir = AbsPath::new(dir.path()).unwrap();
        let mut one = AppendLog::open(&dir, "log", 40).unwrap();
        let mut two = AppendLog::open(&dir, "log", 40).unwrap();
        for _ in 0..20 {
            one.append(count_up).unwrap();
            two.append(count_up).unwrap();
        }
        let expected: String = (1..=40).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        assert_eq!(whole_log(&dir), expected);
        assert_eq!(AppendLog::read_head(&dir, "log").unwrap().unwrap(), "0040");
        assert_eq!(AppendLog::read_anchor(&dir.join("anchor"), "log").unwrap().unwrap(), "0040");
        assert!(AppendLog::list_segments(&dir, "log").unwrap().len() > 3);
    }

    #[test]
    fn a_truncated_line_is_terminated_and_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let dir = AbsPath::new(dir.path()).unwrap();
        AppendLog::open(&dir, "log", 1000).unwrap().append(count_up).unwrap();
        let path = dir.join("log.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"n\":");
        std::fs::write(&path, text).unwrap();
        AppendLog::open(&dir, "log", 1000).unwrap().append(count_up).unwrap();
        assert_eq!(whole_log(&dir), "{\"n\":1}\n{\"n\":\n{\"n\":2}\n");
    }

    #[test]
    fn a_removed_head_or_anchor_is_seen_by_a_writer_that_had_it_open() {
        for removed in ["log.head", "anchor/log.anchor"] {
            let dir = tempfile::tempdir().unwrap();
            let dir = AbsPath::new(dir.path()).unwrap();
            let mut log = AppendLog::open(&dir, "log", 1000).unwrap();
            log.append(count_up).unwrap();
            std::fs::remove_file(dir.join(removed)).unwrap();
            let mut seen = Vec::new();
            log.append(|end| {
                seen = vec![end.head.is_some(), end.anchor.is_some()];
                count_up(end)
            })
            .unwrap();
            assert_eq!(seen, [removed != "log.head", removed == "log.head"]);
            assert_eq!(AppendLog::read_head(&dir, "log").unwrap().unwrap(), "0002");
            assert_eq!(AppendLog::read_anchor(&dir.join("anchor"), "log").unwrap().unwrap(), "0002");
        }
    }
}
