//! A file of lines that only grows, such as a transcript.
//!
//! Each line is written by one call, so that a process that is killed leaves whole lines, and at most the start of one at
//! the end, which the next open cuts off.

use crate::open::FileProblem;
use rustix::fs::{FlockOperation, OFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use toolgate_proto::AbsPath;

/// How much is read at once when the end of the last whole line is looked for.
const MAX_BLOCK_BYTES: u64 = 64 * 1024;

/// A file of lines, open for appending.
#[derive(Debug)]
pub struct LineLog {
    file: File,
}

impl LineLog {
    /// Opens or creates the file, for this user only, with its directories.
    pub fn open(path: &AbsPath) -> Result<Self, FileProblem> {
        let parent = path.parent().unwrap_or_else(AbsPath::root);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent.as_path())?;
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path.as_path())?;
        if !file.metadata()?.is_file() {
            return Err(FileProblem::Special);
        }
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(std::io::Error::from)?;
        let whole = end_of_last_line(&mut file);
        let cut =
            whole.and_then(|whole| if whole < file.metadata()?.len() { file.set_len(whole) } else { Ok(()) });
        rustix::fs::flock(&file, FlockOperation::Unlock).map_err(std::io::Error::from)?;
        cut?;
        Ok(Self { file })
    }

    /// Appends a line. It must not contain a line end.
    pub fn append(&mut self, line: &str) -> Result<(), FileProblem> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        rustix::fs::flock(&self.file, FlockOperation::LockExclusive).map_err(std::io::Error::from)?;
        let written = self.file.write_all(&bytes);
        rustix::fs::flock(&self.file, FlockOperation::Unlock).map_err(std::io::Error::from)?;
        Ok(written?)
    }
}

/// Where the last whole line ends.
fn end_of_last_line(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(MAX_BLOCK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The whole lines of a file, oldest first; `None` if it does not exist. The start of a line that was never completed is
/// left out.
pub fn read_log_lines(path: &AbsPath, max_bytes: u64) -> Result<Option<Vec<String>>, FileProblem> {
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path.as_path())
    {
        Ok(file) => file,
        Err(error) => {
            return match FileProblem::from(error) {
                FileProblem::Missing | FileProblem::NotDirectory => Ok(None),
                other => Err(other),
            };
        }
    };
    if !file.metadata()?.is_file() {
        return Err(FileProblem::Special);
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(FileProblem::Other(format!("it is larger than {max_bytes} bytes")));
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let text = String::from_utf8_lossy(bytes.get(..whole).unwrap_or_default()).into_owned();
    Ok(Some(text.lines().map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_is_gone_after_the_next_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap().join("a/b.jsonl")).unwrap();
        assert_eq!(read_log_lines(&path, 100).unwrap(), None);
        let mut log = LineLog::open(&path).unwrap();
        log.append("one").unwrap();
        log.append("two").unwrap();
        for torn in ["x", "{\"half\":", &"y".repeat(200_000)] {
            fs::OpenOptions::new()
                .append(true)
                .open(path.as_path())
                .unwrap()
                .write_all(torn.as_bytes())
                .unwrap();
            assert_eq!(read_log_lines(&path, 1 << 20).unwrap().unwrap(), ["one", "two"]);
            drop(LineLog::open(&path).unwrap());
            assert_eq!(fs::read_to_string(path.as_path()).unwrap(), "one\ntwo\n");
        }
        fs::write(path.as_path(), "only torn").unwrap();
        LineLog::open(&path).unwrap().append("first").unwrap();
        assert_eq!(fs::read_to_string(path.as_path()).unwrap(), "first\n");
    }
}
