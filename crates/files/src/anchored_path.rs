//! A path anchored at an open directory: a file descriptor of the parent, and a name in it.
//!
//! Every step of a change (open, link, rename, unlink, fsync) uses the same descriptor, so no step looks the parent up by
//! path again.
//! Whatever is swapped above the directory in between, the file that is replaced is the one in the directory that was
//! judged.

use crate::open::{FileProblem, open_without_symlinks};
use crate::sys;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use toolgate_proto::AbsPath;

/// A name in an open directory.
#[derive(Debug)]
pub(crate) struct AnchoredPath {
    /// The parent directory, opened without following symlinks.
    dir: OwnedFd,
    /// The name in `dir`. The file need not exist.
    name: OsString,
    /// Parent directories that were created for the file, outermost first; removed again if the change fails.
    created_directories: Vec<CreatedDirectory>,
}

/// A directory that was created, by its own parent and name.
#[derive(Debug)]
struct CreatedDirectory {
    parent: OwnedFd,
    name: OsString,
}

impl AnchoredPath {
    /// Anchors a path whose parent directory exists.
    pub(crate) fn open_parent(real: &AbsPath) -> Result<Self, FileProblem> {
        let (parent, name) = split_parent(real)?;
        Ok(Self { dir: open_dir(&parent)?, name, created_directories: Vec::new() })
    }

    /// Anchors a path, creating the parent directories that are missing.
    pub(crate) fn create_parents(real: &AbsPath) -> Result<Self, FileProblem> {
        let (parent, name) = split_parent(real)?;
        let mut missing = Vec::new();
        let mut existing = parent;
        let dir = loop {
            match open_dir(&existing) {
                Ok(dir) => break dir,
                Err(FileProblem::Missing) => {
                    let (above, name) = split_parent(&existing)?;
                    missing.push(name);
                    existing = above;
                }
                Err(problem) => return Err(problem),
            }
        };
        let mut anchored = Self { dir, name, created_directories: Vec::new() };
        for name in missing.into_iter().rev() {
            if let Err(problem) = anchored.create_subdirectory(name) {
                anchored.remove_created_directories();
                return Err(problem);
            }
        }
        Ok(anchored)
    }

    /// Creates a directory in the current one and makes it the current one.
    fn create_subdirectory(&mut self, name: OsString) -> Result<(), FileProblem> {
        let created = match sys::mkdirat(self.dir.as_fd(), &name, Mode::from_raw_mode(0o777)) {
            Ok(()) => true,
            // Another process created it first: it is not ours to remove if the change fails.
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match sys::openat(self.dir.as_fd(), &name, flags, Mode::empty()) {
            Ok(next) => {
                let parent = std::mem::replace(&mut self.dir, next);
                if created {
                    self.created_directories.push(CreatedDirectory { parent, name });
                }
                Ok(())
            }
            Err(error) => {
                if created {
                    unlink_name(self.dir.as_fd(), &name, AtFlags::REMOVEDIR)?;
                }
                Err(error.into())
            }
        }
    }

    /// The open parent directory.
    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The name in it.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens the regular file of that name for reading.
    pub(crate) fn open(&self) -> Result<OwnedFd, FileProblem> {
        open_regular_at(self.dir(), &self.name)
    }

    /// Makes the directory entry durable with `fsync`, and those of the directories that were created for it. Without it
    /// a power failure could lose the name of a file whose content is on disk.
    pub(crate) fn sync(&self) -> Result<(), FileProblem> {
        sys::fsync(self.dir())?;
        for created in self.created_directories.iter().rev() {
            sys::fsync(created.parent.as_fd())?;
        }
        Ok(())
    }

    /// Removes the directories that were created. One that another process has put a file into stays.
    pub(crate) fn remove_created_directories(&mut self) {
        while let Some(created) = self.created_directories.pop() {
            let _ = unlink_name(created.parent.as_fd(), &created.name, AtFlags::REMOVEDIR);
        }
    }
}

/// Opens the regular file of that name in a directory for reading. A symlink is not followed.
pub(crate) fn open_regular_at(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = sys::openat(dir, name, flags, Mode::empty())?;
    match FileType::from_raw_mode(sys::fstat(fd.as_fd())?.st_mode) {
        FileType::RegularFile => Ok(fd),
        FileType::Directory => Err(FileProblem::IsDirectory),
        _ => Err(FileProblem::Special),
    }
}

/// Unlinks a name, with a second attempt if the first fails: a temporary file that stays would be visible to the user.
pub(crate) fn unlink_name(dir: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
    sys::unlinkat(dir, name, flags).or_else(|error| match error {
        Errno::NOENT | Errno::NOTEMPTY => Err(error),
        _ => sys::unlinkat(dir, name, flags),
    })
}

/// Opens a directory without following symlinks.
fn open_dir(path: &AbsPath) -> Result<OwnedFd, FileProblem> {
    open_without_symlinks(path, OFlags::RDONLY | OFlags::DIRECTORY).map(|(fd, _)| fd)
}

/// The parent directory and the last component of a path. `/` has neither, and is a directory.
fn split_parent(path: &AbsPath) -> Result<(AbsPath, OsString), FileProblem> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name.to_owned())),
        _ => Err(FileProblem::IsDirectory),
    }
}
