//! Opening a resolved path without following symlinks.
//!
//! Every open of this crate that a model's call causes goes through [`open_without_symlinks`]: `openat2` with
//! `RESOLVE_NO_SYMLINKS`, so that the kernel refuses a symlink in any component.
//! `O_NOFOLLOW` alone would check only the last component; it is used component by component on kernels that have no
//! `openat2`.

use crate::sys;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};
use toolgate_proto::AbsPath;

/// Why a file could not be used. The variants are those for which a caller has a message or a hint of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileProblem {
    /// No entry of that name exists (`ENOENT`).
    Missing,
    /// A directory is there where a regular file is needed (`EISDIR`).
    IsDirectory,
    /// Something else is there where a directory is needed (`ENOTDIR`).
    NotDirectory,
    /// A pipe, socket or device is there; reading it could block or never end.
    Special,
    /// The operating system denies access (`EACCES`, `EPERM`).
    Denied,
    /// A component of the path is a symlink (`ELOOP`), so it changed after it was resolved.
    SymlinkOnPath,
    /// The call has no grant for the path, or not for this access.
    NotGranted,
    /// Any other failure, with its message.
    Other(String),
}

impl std::fmt::Display for FileProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("no such file or directory"),
            Self::IsDirectory => f.write_str("it is a directory, not a file"),
            Self::NotDirectory => f.write_str("it is not a directory"),
            Self::Special => f.write_str("it is a pipe, a socket or a device, not a regular file"),
            Self::Denied => f.write_str("permission denied by the operating system"),
            Self::SymlinkOnPath => f.write_str("a symlink appeared on its path after access was checked"),
            Self::NotGranted => f.write_str("this call was not granted access to it"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for FileProblem {}

impl From<Errno> for FileProblem {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            Errno::ISDIR => Self::IsDirectory,
            Errno::NOTDIR => Self::NotDirectory,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::LOOP | Errno::XDEV => Self::SymlinkOnPath,
            Errno::NXIO | Errno::NODEV => Self::Special,
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<std::io::Error> for FileProblem {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Other(error.to_string()),
        }
    }
}

/// Opens a path in which no component may be a symlink, and returns the file descriptor with its metadata.
pub(crate) fn open_without_symlinks(real: &AbsPath, flags: OFlags) -> Result<(OwnedFd, Stat), FileProblem> {
    // Without `O_NONBLOCK` the open of a pipe would block until its other end is opened. `O_PATH` does not block, and
    // `openat2` rejects it together with these flags.
    let nonblocking =
        if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NOCTTY | OFlags::NONBLOCK };
    let flags = flags | OFlags::CLOEXEC | nonblocking;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = match sys::openat2(real.as_path(), flags, resolve) {
        Ok(fd) => fd,
        Err(Errno::NOSYS) => open_by_components(real.as_path(), flags)?,
        Err(error) => return Err(error.into()),
    };
    let stat = sys::fstat(fd.as_fd())?;
    Ok((fd, stat))
}

/// Whether the kernel has `openat2`. It is called once, because a version number does not tell: container runtimes
/// filter the system call.
pub fn supports_openat2() -> bool {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).is_ok()
}

/// Opens a path on kernels without `openat2`: directory by directory, each component with `O_NOFOLLOW`. This takes one
/// system call per component.
fn open_by_components(path: &Path, flags: OFlags) -> Result<OwnedFd, FileProblem> {
    let mut directory = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut names = path.components().filter(|component| *component != Component::RootDir).peekable();
    if names.peek().is_none() {
        return Ok(openat(CWD, "/", flags, Mode::empty())?);
    }
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { return Err(FileProblem::SymlinkOnPath) };
        if names.peek().is_none() {
            return Ok(openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
        }
        let parent_flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        directory = openat(&directory, name, parent_flags, Mode::empty())?;
    }
    Err(FileProblem::Missing)
}

/// Opens a regular file for reading, with its metadata. A symlink on the path makes it fail.
pub(crate) fn open_regular_file(real: &AbsPath) -> Result<(File, Stat), FileProblem> {
    let (fd, stat) = open_without_symlinks(real, OFlags::RDONLY)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(fd), stat)),
        FileType::Directory => Err(FileProblem::IsDirectory),
        _ => Err(FileProblem::Special),
    }
}

/// An `O_PATH` handle on a directory. Fails if a component of the path is a symlink.
pub fn open_directory_handle(real: &AbsPath) -> Result<OwnedFd, FileProblem> {
    open_without_symlinks(real, OFlags::PATH | OFlags::DIRECTORY).map(|(fd, _)| fd)
}

/// An `O_PATH` handle on a directory entry of any kind. Fails if a component of the path is a symlink.
pub fn open_entry_handle(real: &AbsPath) -> Result<OwnedFd, FileProblem> {
    open_without_symlinks(real, OFlags::PATH | OFlags::NOFOLLOW).map(|(fd, _)| fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_symlink_in_any_component_is_refused_with_and_without_openat2() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("d")).unwrap();
        std::fs::write(top.join("d/f"), "x").unwrap();
        symlink("d", top.join("to_d")).unwrap();
        symlink("f", top.join("d/to_f")).unwrap();
        for (path, opens) in [("d/f", true), ("to_d/f", false), ("d/to_f", false)] {
            let path = AbsPath::new(top.join(path)).unwrap();
            assert_eq!(open_regular_file(&path).is_ok(), opens, "{path}");
            assert_eq!(open_by_components(path.as_path(), OFlags::RDONLY).is_ok(), opens, "{path}");
        }
    }

    #[test]
    fn a_pipe_is_refused_without_blocking_on_its_other_end() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().canonicalize().unwrap().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(open_regular_file(&AbsPath::new(pipe).unwrap()).unwrap_err(), FileProblem::Special);
    }
}
