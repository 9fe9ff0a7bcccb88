//! The captured output of a command: its start and end in memory, and the whole in a file if it is long.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use toolgate_proto::AbsPath;

/// How much of a command's output is kept, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Bytes kept in memory from the start. Output beyond them is spilled to the file.
    pub head: usize,
    /// Bytes kept in memory from the end.
    pub tail: usize,
    /// Bytes after which the command is ended.
    pub max_bytes: u64,
    /// The file for long output, created when it is needed.
    pub file: AbsPath,
    /// Create the file at the start, so that other programs can follow it.
    pub file_at_once: bool,
}

/// The output so far, written by the monitor thread.
#[derive(Debug)]
pub(super) struct OutputCapture {
    /// The limits, and where the file goes.
    options: CaptureOptions,
    /// The first bytes, at most [`CaptureOptions::head`].
    head: Vec<u8>,
    /// The last bytes beyond `head`.
    tail: VecDeque<u8>,
    /// Bytes so far.
    total: u64,
    /// The file with the whole output, once it exists.
    file: Option<File>,
    /// Why the file could not be written.
    problem: Option<String>,
}

/// The output of a command at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputSnapshot {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, if not all of it is in `head`.
    pub tail: Vec<u8>,
    /// How many bytes were written altogether.
    pub total: u64,
    /// The file with the whole output.
    pub file: Option<AbsPath>,
    /// Why the file could not be written, although the output is long.
    pub problem: Option<String>,
}

impl OutputSnapshot {
    /// Bytes that are neither in `head` nor in `tail`.
    pub fn omitted_bytes(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }
}

impl OutputCapture {
    /// Starts with no output, and creates the file at once if the options ask for it.
    pub(super) fn new(options: CaptureOptions) -> Self {
        let mut capture =
            Self { options, head: Vec::new(), tail: VecDeque::new(), total: 0, file: None, problem: None };
        if capture.options.file_at_once {
            capture.create_file();
        }
        capture
    }

    /// Appends output. Returns whether it exceeds [`CaptureOptions::max_bytes`]; the surplus is dropped.
    pub(super) fn append(&mut self, mut bytes: &[u8]) -> bool {
        let room = self.options.max_bytes.saturating_sub(self.total);
        let is_over_limit = bytes.len() as u64 > room;
        if is_over_limit {
            bytes = bytes.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(bytes);
        }
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(self.options.head - self.head.len());
        let (first, rest) = bytes.split_at_checked(to_head).unwrap_or((bytes, &[]));
        if self.file.is_none() && self.problem.is_none() && !rest.is_empty() {
            self.create_file();
        }
        self.head.extend_from_slice(first);
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(bytes)
        {
            self.problem = Some(error.to_string());
            self.file = None;
        }
        if rest.len() >= self.options.tail {
            self.tail.clear();
            let last = rest.len() - self.options.tail;
            self.tail.extend(rest.get(last..).unwrap_or_default());
        } else {
            let surplus = (self.tail.len() + rest.len()).saturating_sub(self.options.tail);
            self.tail.drain(..surplus);
            self.tail.extend(rest);
        }
        is_over_limit
    }

    /// Creates the file and writes the output so far.
    fn create_file(&mut self) {
        let opened = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(self.options.file.as_path())
            .and_then(|mut file| file.write_all(&self.head).map(|()| file));
        match opened {
            Ok(file) => self.file = Some(file),
            Err(error) => self.problem = Some(error.to_string()),
        }
    }

    /// Copies what is in memory; the file is only named.
    pub(super) fn snapshot(&self) -> OutputSnapshot {
        OutputSnapshot {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            total: self.total,
            file: self.file.is_some().then(|| self.options.file.clone()),
            problem: self.problem.clone(),
        }
    }

    /// At most `limit` bytes from an offset on: from the file, or from memory.
    pub(super) fn read_from(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        if let Some(file) = &self.file {
            let left = usize::try_from(self.total.saturating_sub(offset)).unwrap_or(usize::MAX);
            let mut out = vec![0; left.min(limit)];
            let read = file.read_at(&mut out, offset)?;
            out.truncate(read);
            return Ok(out);
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.head.get(start..).unwrap_or_default();
        Ok(rest.get(..limit).unwrap_or(rest).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn options(dir: &tempfile::TempDir, head: usize, tail: usize, max_bytes: u64) -> CaptureOptions {
        let file = AbsPath::new(dir.path().join("out")).unwrap();
        CaptureOptions { head, tail, max_bytes, file, file_at_once: false }
    }

    proptest! {
        #[test]
        fn no_output_is_lost(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            head in 1usize..50,
            tail in 0usize..50,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let all: Vec<u8> = chunks.concat();
            let mut capture = OutputCapture::new(options(&dir, head, tail, 10_000));
            for chunk in &chunks {
                prop_assert!(!capture.append(chunk));
            }
            let written = capture.snapshot();
            prop_assert_eq!(written.total, all.len() as u64);
            prop_assert!(all.starts_with(&written.head));
            prop_assert!(all.ends_with(&written.tail));
            prop_assert_eq!(capture.read_from(0, usize::MAX).unwrap(), all.clone());
            match &written.file {
                Some(file) => prop_assert_eq!(std::fs::read(file).unwrap(), all),
                None => prop_assert_eq!(written.head, all),
            }
        }

        #[test]
        fn the_most_is_never_passed(sizes in prop::collection::vec(0usize..60, 1..20), most in 0u64..200) {
            let dir = tempfile::tempdir().unwrap();
            let mut capture = OutputCapture::new(options(&dir, 20, 20, most));
            let mut sum = 0;
            for size in sizes {
                sum += size as u64;
                let full = capture.append(&vec![b'x'; size]);
                prop_assert!(capture.total <= most);
                if sum > most {
                    prop_assert!(full || size == 0);
                }
            }
        }
    }
}
