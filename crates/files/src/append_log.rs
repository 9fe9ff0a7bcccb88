//! A file of lines that is only ever appended to, by several processes, and that survives a crash mid-write.
//!
//! What the lines mean is not known here.
//! The caller hands in a closure that sees the last whole line and returns the next one; it runs under a lock on the
//! directory, so that a chain from line to line cannot fork.
//! A head beside the log and an anchor in another directory both name the last line, so that a log that was truncated
//! or removed shows: the closure is told what they say before they are written again.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toolgate_proto::AbsPath;

/// One file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSegment {
    /// Its path.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
}

/// An append-only log: the newest lines in `NAME.jsonl`, older ones in `NAME-000001.jsonl` and so on.
#[derive(Debug)]
pub struct AppendLog {
    dir: PathBuf,
    name: String,
    path: PathBuf,
    rotate_at: u64,
    file: File,
    /// Device and number of that file: another process may put a new one in its place.
    id: (u64, u64),
    /// Holds the head of the log, and is what writers lock.
    head: SingleLineFile,
    /// Holds the same, elsewhere.
    anchor: SingleLineFile,
    /// How far this process has seen the current file, and the last line there.
    read_offset: u64,
    last_line: Option<String>,
}

/// What is known of a log before a line is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd<'a> {
    /// The last whole line there is.
    pub last: Option<&'a str>,
    /// What the head beside the log says.
    pub head: Option<&'a str>,
    /// What the anchor says.
    pub anchor: Option<&'a str>,
}

impl AppendLog {
    /// Opens or creates the log, with its anchor in a directory below.
    pub fn open(dir: &AbsPath, name: &str, rotate_at: u64) -> io::Result<Self> {
        Self::open_anchored(dir, &Self::default_anchor_dir(dir), name, rotate_at)
    }

    /// Where [`AppendLog::open`] keeps the anchor.
    pub fn default_anchor_dir(dir: &AbsPath) -> AbsPath {
        dir.join("anchor")
    }

    /// Opens or creates the log. The directory is made private to the user, and so is that of the anchor, which
    /// should be another one: what removes the log should not remove its anchor along with it.
    pub fn open_anchored(
        dir: &AbsPath,
        anchor_dir: &AbsPath,
        name: &str,
        rotate_at: u64,
    ) -> io::Result<Self> {
        let dir = dir.as_path().to_path_buf();
        for made in [&dir, anchor_dir.as_path()] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(made)?;
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

    /// Appends the line that `next` makes of the end of the log, and keeps the head it makes beside the log and in
    /// the anchor, so that truncation shows.
    /// Neither may have a line end in it.
    pub fn append(&mut self, next: impl FnOnce(LogEnd<'_>) -> (String, String)) -> io::Result<()> {
        self.lock()?;
        let result = self.append_locked(next);
        flock(&self.head.file, FlockOperation::Unlock)?;
        result
    }

    /// Locks the head that is there now: one that was removed in the meantime is no longer what others lock.
    fn lock(&mut self) -> io::Result<()> {
        const MAX_ATTEMPTS: usize = 16;
        for _ in 0..MAX_ATTEMPTS {
            flock(&self.head.file, FlockOperation::LockExclusive)?;
            if !self.head.reopen_if_replaced()? {
                return Ok(());
            }
        }
        Err(io::Error::other("the head of the log is replaced all the time"))
    }

    fn append_locked(&mut self, next: impl FnOnce(LogEnd<'_>) -> (String, String)) -> io::Result<()> {
        let mut size = self.current_size()?;
        if size != self.read_offset {
            size = self.catch_up(size)?;
        }
        self.anchor.reopen_if_replaced()?;
        let (said, anchored) = (self.head.read()?, self.anchor.read()?);
        let end =
            LogEnd { last: self.last_line.as_deref(), head: said.as_deref(), anchor: anchored.as_deref() };
        let (mut line, head) = next(end);
        if size > 0 && size + line.len() as u64 > self.rotate_at {
            self.rotate()?;
            size = 0;
        }
        line.push('\n');
        // One write call: a crash leaves a torn last line, which `catch_up` ends and skips.
        self.file.write_all(line.as_bytes())?;
        line.pop();
        // Under the lock no other process appends.
        self.read_offset = size + line.len() as u64 + 1;
        self.last_line = Some(line);
        // After the line: a crash in between leaves these one line behind, never one ahead.
        self.head.write(&head)?;
        self.anchor.write(&head)
    }

    /// The head that the last append kept beside the log, where there is one.
    pub fn read_head(dir: &AbsPath, name: &str) -> io::Result<Option<String>> {
        read_single_line_file(&dir.as_path().join(format!("{name}.head")))
    }

    /// The head that the last append kept in the anchor, where there is one.
    pub fn read_anchor(anchor_dir: &AbsPath, name: &str) -> io::Result<Option<String>> {
        read_single_line_file(&anchor_dir.as_path().join(format!("{name}.anchor")))
    }

    /// The current file may have been rotated away by another process since.
    fn current_size(&mut self) -> io::Result<u64> {
        match fs::metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == self.id => Ok(there.len()),
            Ok(_) | Err(_) => {
                (self.file, self.id) = open_segment(&self.path)?;
                self.read_offset = 0;
                Ok(self.file.metadata()?.len())
            }
        }
    }

    /// Reads what others appended, and ends a line that a crash tore.
    fn catch_up(&mut self, size: u64) -> io::Result<u64> {
        let tail = read_tail(&mut self.file, size)?;
        if size > 0 && !tail.ends_with('\n') {
            self.file.write_all(b"\n")?;
        }
        let whole = last_whole_line(&tail);
        self.last_line = match whole {
            Some(line) => Some(line.to_owned()),
            None => self.last_line_of_older_segments()?,
        };
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn last_line_of_older_segments(&self) -> io::Result<Option<String>> {
        let segments = self.segments()?;
        for segment in segments.iter().rev() {
            let mut file = File::open(&segment.path)?;
            let tail = read_tail(&mut file, segment.bytes)?;
            if let Some(line) = last_whole_line(&tail) {
                return Ok(Some(line.to_owned()));
            }
        }
        Ok(None)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let number = self.segments()?.len();
        fs::rename(&self.path, self.dir.join(format!("{}-{number:06}.jsonl", self.name)))?;
        (self.file, self.id) = open_segment(&self.path)?;
        self.read_offset = 0;
        Ok(())
    }

    /// Every file of the log, oldest first.
    pub fn segments(&self) -> io::Result<Vec<LogSegment>> {
        Self::list_segments(&AbsPath::new(&self.dir).map_err(io::Error::other)?, &self.name)
    }

    /// Every file of a log that need not be open, oldest first. A log that was never written has none.
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

    /// The text of one file of a log; bytes that are no UTF-8 are replaced.
    pub fn read_segment(segment: &LogSegment) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(&segment.path)?.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A file of one line.
#[derive(Debug)]
struct SingleLineFile {
    path: PathBuf,
    file: File,
}

impl SingleLineFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = open_single_line_file(&path)?;
        Ok(Self { path, file })
    }

    /// Whether another file, or none, had come into its place; then that one is open now.
    fn reopen_if_replaced(&mut self) -> io::Result<bool> {
        let here = self.file.metadata()?;
        let same = fs::symlink_metadata(&self.path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino()));
        if !same {
            self.file = open_single_line_file(&self.path)?;
        }
        Ok(!same)
    }

    fn read(&self) -> io::Result<Option<String>> {
        let mut bytes = [0u8; MAX_SINGLE_LINE_BYTES];
        let count = self.file.read_at(&mut bytes, 0)?;
        Ok(first_line(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default())))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.file.write_all_at(format!("{text}\n").as_bytes(), 0)
    }
}

/// Most bytes of a note that are looked at.
const MAX_SINGLE_LINE_BYTES: usize = 256;

fn open_single_line_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).mode(0o600).read(true).write(true).open(path)
}

fn read_single_line_file(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(first_line(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn first_line(text: &str) -> Option<String> {
    text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned)
}

fn open_segment(path: &Path) -> io::Result<(File, (u64, u64))> {
    let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
    let there = file.metadata()?;
    Ok((file, (there.dev(), there.ino())))
}

/// The last lines of a file: at least one whole line where there is one.
fn read_tail(file: &mut File, size: u64) -> io::Result<String> {
    let mut window: u64 = 64 * 1024;
    loop {
        let start = size.saturating_sub(window);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(size - start).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // Two line ends: one before and one after a whole line.
        if start == 0 || text.matches('\n').count() >= 2 {
            return Ok(text);
        }
        window = window.saturating_mul(4);
    }
}

fn last_whole_line(tail: &str) -> Option<&str> {
    let whole = tail.rfind('\n').and_then(|end| tail.get(..end))?;
    // A line that is no object was torn by a crash and ended by the next writer.
    whole.rsplit('\n').find(|line| line.starts_with('{') && line.ends_with('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(end: LogEnd<'_>) -> (String, String) {
        let number: u64 = end
            .last
            .and_then(|line| line.trim_start_matches("{\"n\":").trim_end_matches('}').parse().ok())
            .unwrap_or(0);
        (format!("{{\"n\":{}}}", number + 1), format!("{:04}", number + 1))
    }

    fn all(dir: &AbsPath) -> String {
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
            one.append(count).unwrap();
            two.append(count).unwrap();
        }
        let expected: String = (1..=40).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        assert_eq!(all(&dir), expected);
        assert_eq!(AppendLog::read_head(&dir, "log").unwrap().unwrap(), "0040");
        assert_eq!(AppendLog::read_anchor(&dir.join("anchor"), "log").unwrap().unwrap(), "0040");
        assert!(AppendLog::list_segments(&dir, "log").unwrap().len() > 3);
    }

    #[test]
    fn a_torn_line_is_ended_and_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let dir = AbsPath::new(dir.path()).unwrap();
        AppendLog::open(&dir, "log", 1000).unwrap().append(count).unwrap();
        let path = dir.join("log.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"n\":");
        std::fs::write(&path, text).unwrap();
        AppendLog::open(&dir, "log", 1000).unwrap().append(count).unwrap();
        assert_eq!(all(&dir), "{\"n\":1}\n{\"n\":\n{\"n\":2}\n");
    }

    #[test]
    fn a_removed_head_or_anchor_is_seen_by_a_writer_that_had_it_open() {
        for gone in ["log.head", "anchor/log.anchor"] {
            let dir = tempfile::tempdir().unwrap();
            let dir = AbsPath::new(dir.path()).unwrap();
            let mut log = AppendLog::open(&dir, "log", 1000).unwrap();
            log.append(count).unwrap();
            std::fs::remove_file(dir.join(gone)).unwrap();
            let mut seen = Vec::new();
            log.append(|end| {
                seen = vec![end.head.is_some(), end.anchor.is_some()];
                count(end)
            })
            .unwrap();
            assert_eq!(seen, [gone != "log.head", gone == "log.head"]);
            assert_eq!(AppendLog::read_head(&dir, "log").unwrap().unwrap(), "0002");
            assert_eq!(AppendLog::read_anchor(&dir.join("anchor"), "log").unwrap().unwrap(), "0002");
        }
    }
}
