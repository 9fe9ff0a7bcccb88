//! What a command wrote: the first and the last of it in memory, all of it in a file when it is long.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use toolgate_proto::AbsPath;

/// How much of the output is kept where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Bytes kept in memory from the start. More than this goes to the file.
    pub head: usize,
    /// Bytes kept in memory from the end.
    pub tail: usize,
    /// Bytes after which the command is stopped.
    pub max_bytes: u64,
    /// The file for long output. It is made when it is needed.
    pub file: AbsPath,
    /// Make the file at once, so that others can follow it.
    pub file_at_once: bool,
}

#[derive(Debug)]
pub(super) struct OutputCapture {
    options: CaptureOptions,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    file: Option<File>,
    /// Why the file could not be written, if so.
    problem: Option<String>,
}

/// A view of what was written so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputSnapshot {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, if not all of it is in `head`.
    pub tail: Vec<u8>,
    /// All bytes.
    pub total: u64,
    /// The file that has all of it.
    pub file: Option<AbsPath>,
    /// Why there is no such file although there should be.
    pub problem: Option<String>,
}

impl OutputSnapshot {
    /// Bytes that are neither in `head` nor in `tail`.
    pub fn omitted_bytes(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }
}

impl OutputCapture {
    pub(super) fn new(keeping: CaptureOptions) -> Self {
        let mut capture = Self {
            options: keeping,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            file: None,
            problem: None,
        };
        if capture.options.file_at_once {
            capture.create_file();
        }
        capture
    }

    /// Takes what was read. Says whether the most was passed.
    pub(super) fn append(&mut self, mut bytes: &[u8]) -> bool {
        let room = self.options.max_bytes.saturating_sub(self.total);
        let full = bytes.len() as u64 > room;
        if full {
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
        full
    }

    /// Makes the file and puts what is known into it.
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

    pub(super) fn snapshot(&self) -> OutputSnapshot {
        OutputSnapshot {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            total: self.total,
            file: self.file.is_some().then(|| self.options.file.clone()),
            problem: self.problem.clone(),
        }
    }

    /// Bytes from an offset on, at most so many: from the file, or from what is in memory.
    pub(super) fn read_from(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        if let Some(file) = &self.file {
            let left = usize::try_from(self.total.saturating_sub(offset)).unwrap_or(usize::MAX);
            let mut out = vec![0; left.min(most)];
            let read = file.read_at(&mut out, offset)?;
            out.truncate(read);
            return Ok(out);
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.head.get(start..).unwrap_or_default();
        Ok(rest.get(..most).unwrap_or(rest).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keeping(dir: &tempfile::TempDir, head: usize, tail: usize, most: u64) -> CaptureOptions {
        let file = AbsPath::new(dir.path().join("out")).unwrap();
        CaptureOptions { head, tail, max_bytes: most, file, file_at_once: false }
    }

    proptest! {
        #[test]
        fn nothing_written_is_lost(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            head in 1usize..50,
            tail in 0usize..50,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let all: Vec<u8> = chunks.concat();
            let mut capture = OutputCapture::new(keeping(&dir, head, tail, 10_000));
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
            let mut capture = OutputCapture::new(keeping(&dir, 20, 20, most));
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
