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
pub(crate) struct Place {
    dir: OwnedFd,
    name: OsString,
    /// Directories that were made for it, outermost first.
    made: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    within: OwnedFd,
    name: OsString,
}

impl Place {
    /// The place of a path whose directory is there.
    pub(crate) fn find(real: &AbsPath) -> Result<Self, FileProblem> {
        let (parent, name) = split(real)?;
        Ok(Self { dir: open_dir(&parent)?, name, made: Vec::new() })
    }

    /// The place of a path, with its directories made where they are missing.
    pub(crate) fn make(real: &AbsPath) -> Result<Self, FileProblem> {
        let (parent, name) = split(real)?;
        let mut missing = Vec::new();
        let mut at = parent;
        let dir = loop {
            match open_dir(&at) {
                Ok(dir) => break dir,
                Err(FileProblem::Missing) => {
                    let (above, name) = split(&at)?;
                    missing.push(name);
                    at = above;
                }
                Err(problem) => return Err(problem),
            }
        };
        let mut place = Self { dir, name, made: Vec::new() };
        for name in missing.into_iter().rev() {
            if let Err(problem) = place.create_subdirectory(name) {
                place.unmake();
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
                    self.made.push(Made { within, name });
                }
                Ok(())
            }
            Err(error) => {
                if made {
                    remove(self.dir.as_fd(), &name, AtFlags::REMOVEDIR)?;
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
        for made in self.made.iter().rev() {
            sys::fsync(made.within.as_fd())?;
        }
        Ok(())
    }

    /// Takes back the directories that were made. One that somebody has put something into stays.
    pub(crate) fn unmake(&mut self) {
        while let Some(made) = self.made.pop() {
            let _ = remove(made.within.as_fd(), &made.name, AtFlags::REMOVEDIR);
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
pub(crate) fn remove(dir: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
    sys::unlinkat(dir, name, flags).or_else(|error| match error {
        Errno::NOENT | Errno::NOTEMPTY => Err(error),
        _ => sys::unlinkat(dir, name, flags),
    })
}

fn open_dir(path: &AbsPath) -> Result<OwnedFd, FileProblem> {
    open_without_symlinks(path, OFlags::RDONLY | OFlags::DIRECTORY).map(|(fd, _)| fd)
}

fn split(path: &AbsPath) -> Result<(AbsPath, OsString), FileProblem> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name.to_owned())),
        _ => Err(FileProblem::IsDirectory),
    }
}
