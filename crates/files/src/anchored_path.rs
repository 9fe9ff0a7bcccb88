//! A place for a file: its directory, held open, and its name there.
//!
//! From here on nothing is looked up by path: whatever is swapped on the way to the directory, the file that is
//! opened, replaced or removed is the one of that name in the directory that was judged.

use super::open::{FileProblem, open_without_symlinks};
use super::sys;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use toolgate_proto::AbsPath;

#[derive(Debug)]
pub(crate) struct AnchoredPath {
    dir: OwnedFd,
    name: OsString,
    /// Directories that were made for it, outermost first.
    created_directories: Vec<CreatedDirectory>,
}

#[derive(Debug)]
struct CreatedDirectory {
    parent: OwnedFd,
    name: OsString,
}

impl AnchoredPath {
    /// The place of a path whose directory is there.
    pub(crate) fn open_parent(real: &AbsPath) -> Result<Self, FileProblem> {
        let (parent, name) = split_parent(real)?;
        Ok(Self { dir: open_dir(&parent)?, name, created_directories: Vec::new() })
    }

    /// The place of a path, with its directories made where they are missing.
    pub(crate) fn create_parents(real: &AbsPath) -> Result<Self, FileProblem> {
        let (parent, name) = split_parent(real)?;
        let mut missing = Vec::new();
        let mut at = parent;
        let dir = loop {
            match open_dir(&at) {
                Ok(dir) => break dir,
                Err(FileProblem::Missing) => {
                    let (above, name) = split_parent(&at)?;
                    missing.push(name);
                    at = above;
                }
                Err(problem) => return Err(problem),
            }
        };
        let mut place = Self { dir, name, created_directories: Vec::new() };
        for name in missing.into_iter().rev() {
            if let Err(problem) = place.create_subdirectory(name) {
                place.remove_created_directories();
                return Err(problem);
            }
        }
        Ok(place)
    }

    fn create_subdirectory(&mut self, name: OsString) -> Result<(), FileProblem> {
        let made = match sys::mkdirat(self.dir.as_fd(), &name, Mode::from_raw_mode(0o777)) {
            Ok(()) => true,
            // Somebody was faster; then it is theirs, and stays whatever becomes of us.
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        match sys::openat(self.dir.as_fd(), &name, flags, Mode::empty()) {
            Ok(next) => {
                let within = std::mem::replace(&mut self.dir, next);
                if made {
                    self.created_directories.push(CreatedDirectory { parent: within, name });
                }
                Ok(())
            }
            Err(error) => {
                if made {
                    unlink_with_retry(self.dir.as_fd(), &name, AtFlags::REMOVEDIR)?;
                }
                Err(error.into())
            }
        }
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens the regular file here for reading.
    pub(crate) fn open(&self) -> Result<OwnedFd, FileProblem> {
        open_regular_at(self.dir(), &self.name)
    }

    /// Makes everything about the new name lasting, the directories made for it included.
    pub(crate) fn sync(&self) -> Result<(), FileProblem> {
        sys::fsync(self.dir())?;
        for made in self.created_directories.iter().rev() {
            sys::fsync(made.parent.as_fd())?;
        }
        Ok(())
    }

    /// Takes back the directories that were made. One that somebody has put something into stays.
    pub(crate) fn remove_created_directories(&mut self) {
        while let Some(made) = self.created_directories.pop() {
            let _ = unlink_with_retry(made.parent.as_fd(), &made.name, AtFlags::REMOVEDIR);
        }
    }
}

/// Opens the regular file of that name in a directory. A link is not followed.
pub(crate) fn open_regular_at(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, FileProblem> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = sys::openat(dir, name, flags, Mode::empty())?;
    match FileType::from_raw_mode(sys::fstat(fd.as_fd())?.st_mode) {
        FileType::RegularFile => Ok(fd),
        FileType::Directory => Err(FileProblem::IsDirectory),
        _ => Err(FileProblem::Special),
    }
}

/// Removes a name; once more where it failed, because what stays would be litter.
pub(crate) fn unlink_with_retry(dir: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
    sys::unlinkat(dir, name, flags).or_else(|error| match error {
        Errno::NOENT | Errno::NOTEMPTY => Err(error),
        _ => sys::unlinkat(dir, name, flags),
    })
}

fn open_dir(path: &AbsPath) -> Result<OwnedFd, FileProblem> {
    open_without_symlinks(path, OFlags::RDONLY | OFlags::DIRECTORY).map(|(fd, _)| fd)
}

fn split_parent(path: &AbsPath) -> Result<(AbsPath, OsString), FileProblem> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name.to_owned())),
        _ => Err(FileProblem::IsDirectory),
    }
}
