//! Opening a resolved path without following any link.

use super::sys;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};
use toolgate_proto::AbsPath;

/// Why a file could not be used. Each has its own message for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProblem {
    /// Nothing is there.
    Missing,
    /// It is a directory.
    IsDirectory,
    /// It is not a directory.
    NotDirectory,
    /// It is a pipe, socket or device.
    Special,
    /// The operating system refuses.
    Denied,
    /// A link has appeared on the way since the path was judged.
    SymlinkOnPath,
    /// The path is not among those the call was granted.
    NotGranted,
    /// Anything else, in the system's words.
    Other(String),
}

impl std::fmt::Display for FileProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("there is nothing at this path"),
            Self::IsDirectory => f.write_str("it is a directory"),
            Self::NotDirectory => f.write_str("it is not a directory"),
            Self::Special => f.write_str("it is a pipe, a socket or a device"),
            Self::Denied => f.write_str("the operating system refuses access"),
            Self::SymlinkOnPath => f.write_str("a link appeared on the way to it after the path was judged"),
            Self::NotGranted => f.write_str("the call was not granted this path"),
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

/// Opens a path in which no component may be a link, and says what it is.
pub fn open_without_symlinks(real: &AbsPath, flags: OFlags) -> Result<(OwnedFd, Stat), FileProblem> {
    // Without NONBLOCK the open of a pipe would wait for its other end; a handle that only names does not wait, and
    // takes no such flag.
    let patient =
        if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NOCTTY | OFlags::NONBLOCK };
    let flags = flags | OFlags::CLOEXEC | patient;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = match sys::openat2(real.as_path(), flags, resolve) {
        Ok(fd) => fd,
        Err(Errno::NOSYS) => open_by_components(real.as_path(), flags)?,
        Err(error) => return Err(error.into()),
    };
    let stat = sys::fstat(fd.as_fd())?;
    Ok((fd, stat))
}

/// Whether the kernel itself refuses links on the way (`openat2`); tried, not looked up.
pub fn supports_openat2() -> bool {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).is_ok()
}

/// The same for kernels without `openat2`: from handle to handle, each component without following.
fn open_by_components(path: &Path, flags: OFlags) -> Result<OwnedFd, FileProblem> {
    let mut at = openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut names = path.components().filter(|component| *component != Component::RootDir).peekable();
    if names.peek().is_none() {
        return Ok(openat(CWD, "/", flags, Mode::empty())?);
    }
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { return Err(FileProblem::SymlinkOnPath) };
        if names.peek().is_none() {
            return Ok(openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
        }
        let way = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        at = openat(&at, name, way, Mode::empty())?;
    }
    Err(FileProblem::Missing)
}

/// Opens a regular file for reading, with its metadata. Symlinks on the way make it fail.
pub fn open_regular_file(real: &AbsPath) -> Result<(File, Stat), FileProblem> {
    let (fd, stat) = open_without_symlinks(real, OFlags::RDONLY)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(fd), stat)),
        FileType::Directory => Err(FileProblem::IsDirectory),
        _ => Err(FileProblem::Special),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_anywhere_on_the_way_is_refused_by_both_ways_of_opening() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("d")).unwrap();
        std::fs::write(top.join("d/f"), "x").unwrap();
        symlink("d", top.join("to_d")).unwrap();
        symlink("f", top.join("d/to_f")).unwrap();
        for (path, fine) in [("d/f", true), ("to_d/f", false), ("d/to_f", false)] {
            let path = AbsPath::new(top.join(path)).unwrap();
            assert_eq!(open_regular_file(&path).is_ok(), fine, "{path}");
            assert_eq!(open_by_components(path.as_path(), OFlags::RDONLY).is_ok(), fine, "{path}");
        }
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_other_end() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().canonicalize().unwrap().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(open_regular_file(&AbsPath::new(pipe).unwrap()).unwrap_err(), FileProblem::Special);
    }
}
