//! A file with a single line, which is overwritten in place.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file with a single line, such as the head of a log.
#[derive(Debug)]
pub(crate) struct SingleLineFile {
    /// Where it was opened, to notice that it was replaced.
    path: PathBuf,
    /// The open file, which may no longer be the one at `path`.
    file: File,
}

impl SingleLineFile {
    /// Opens or creates the file, accessible to this user only.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let file = open_single_line_file(&path)?;
        Ok(Self { path, file })
    }

    /// The open file, for a lock on it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Opens the path again if it is no longer the open file, because it was removed or replaced. Returns whether it did.
    pub(crate) fn reopen_if_replaced(&mut self) -> io::Result<bool> {
        let open = self.file.metadata()?;
        let is_same = fs::symlink_metadata(&self.path)
            .is_ok_and(|current| (current.dev(), current.ino()) == (open.dev(), open.ino()));
        if !is_same {
            self.file = open_single_line_file(&self.path)?;
        }
        Ok(!is_same)
    }

    /// The line; `None` if the file is empty.
    pub(crate) fn read(&self) -> io::Result<Option<String>> {
        let mut bytes = [0u8; MAX_SINGLE_LINE_BYTES];
        let count = self.file.read_at(&mut bytes, 0)?;
        Ok(first_line(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default())))
    }

    /// Overwrites the line in one system call. The file is not truncated first, so that a crash cannot leave it empty; a
    /// shorter line leaves the rest of the longer one after its line end, where it is ignored.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        self.file.write_all_at(format!("{text}\n").as_bytes(), 0)
    }
}

/// How much of the file is read.
const MAX_SINGLE_LINE_BYTES: usize = 256;

/// Opens or creates the file, private to the user.
fn open_single_line_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).mode(0o600).read(true).write(true).open(path)
}

/// Reads the line of a file that need not be open; `None` if it does not exist or is empty.
pub(crate) fn read_single_line_file(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(first_line(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first line, if it is not empty.
fn first_line(text: &str) -> Option<String> {
    text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned)
}
