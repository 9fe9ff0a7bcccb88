//! Atomic replacement of a file, as a compare-and-swap on its content.
//!
//! The steps of a replacement are:
//!
//! 1. write the new content to an unnamed file (`O_TMPFILE`) and `fsync` it;
//! 2. link it under a temporary name beside the old file;
//! 3. exchange the two names with `renameat2` (`RENAME_EXCHANGE`);
//! 4. compare the displaced file, now under the temporary name, with the content that the caller had read; if it
//!    differs, another process was faster, and the exchange is reverted;
//! 5. `fsync` the directory and unlink the temporary name.
//!
//! The usual way, a check and then a plain rename, has a race between the two in which an update can be lost.
//! It remains as a fallback for file systems that cannot exchange names.
//!
//! The old file exists until the last step, so a failure at any step can be rolled back.
//! A process that is killed between two steps may leave the temporary name behind; the journal has recorded it and
//! removes it when it is next opened.

use crate::anchored_path::{AnchoredPath, open_regular_at, unlink_name};
use crate::copy_metadata::copy_metadata;
use crate::faults;
use crate::open::FileProblem;
use crate::snapshot::{FileFingerprint, FileSnapshot};
use crate::sys;
use crate::threads::try_spawn_scoped;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};

/// Why a change was not made. The file is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeProblem {
    /// The file, or its directory, could not be used.
    File(FileProblem),
    /// The file was modified, created or deleted after the caller read it.
    Changed,
    /// The journal could not record the change, and a change that cannot be undone is not made.
    Unrecorded(String),
    /// A [`ContentCheck`](crate::ContentCheck) rejects the new content, for these reasons.
    InvalidContent(Vec<String>),
}

impl std::fmt::Display for ChangeProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::Changed => f.write_str("it was modified after it was read"),
            Self::InvalidContent(reasons) => {
                write!(f, "its new content is not valid: {}", reasons.join("; "))
            }
            Self::Unrecorded(reason) => write!(f, "the change could not be recorded for undo: {reason}"),
        }
    }
}

impl std::error::Error for ChangeProblem {}

impl<E: Into<FileProblem>> From<E> for ChangeProblem {
    fn from(error: E) -> Self {
        Self::File(error.into())
    }
}

/// A unique name for the temporary file of one change. Recovery removes only files with this prefix.
pub(crate) fn temporary_name() -> OsString {
    OsString::from(format!(".toolgate-{}.tmp", uuid::Uuid::now_v7().simple()))
}

/// New content for a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplaceRequest<'a> {
    /// What the file must have now; `None` if it must not exist.
    pub(crate) before: Option<&'a FileSnapshot>,
    /// What the file will have.
    pub(crate) content: &'a [u8],
    /// Permission bits that undo restores; otherwise those of the old file or the umask apply.
    pub(crate) mode: Option<u32>,
    /// The temporary name, as the journal recorded it.
    pub(crate) temp: &'a OsStr,
}

/// With less content, starting a thread takes longer than writing while the journal records the change.
const MIN_PARALLEL_WRITE_BYTES: usize = 1 << 20;

/// Replaces or creates a file, after `announce` has recorded the change in the journal.
///
/// The first result is that of `announce`, `None` if it failed; the second is the outcome of the change.
pub(crate) fn put_content<A: Send>(
    path: &mut AnchoredPath,
    request: ReplaceRequest<'_>,
    announce: impl FnOnce() -> Result<A, ChangeProblem> + Send,
) -> (Option<A>, Result<FileFingerprint, ChangeProblem>) {
    let (announced, temporary) = match prepare(path, request, announce) {
        Ok(prepared) => prepared,
        Err(problem) => {
            path.remove_created_directories();
            return (None, Err(problem));
        }
    };
    let result = temporary.and_then(|temporary| {
        let result = match request.before {
            Some(before) => temporary.replace_by_exchange(path, before),
            None => temporary.create_by_link(path),
        };
        if result.is_err() {
            temporary.unlink_temporary(path);
        }
        result
    });
    if result.is_err() {
        path.remove_created_directories();
    }
    (Some(announced), result)
}

/// Announces the change and writes the temporary file. An error of the announcement leaves no temporary file.
fn prepare<'a, A: Send>(
    path: &AnchoredPath,
    request: ReplaceRequest<'a>,
    announce: impl FnOnce() -> Result<A, ChangeProblem> + Send,
) -> Result<(A, Result<TemporaryFile<'a>, ChangeProblem>), ChangeProblem> {
    // A crash removes an unnamed file, so it may be written before the journal has recorded the change.
    if request.content.len() >= MIN_PARALLEL_WRITE_BYTES
        && let Ok(Some(temporary)) = TemporaryFile::create_unnamed(path, request)
    {
        let (announced, filled) = std::thread::scope(|scope| {
            match try_spawn_scoped(scope, faults::inherit_fault_plan(|| temporary.fill(path, request))) {
                Some(writer) => (announce(), writer.join()),
                None => (announce(), Ok(temporary.fill(path, request))),
            }
        });
        let filled = filled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        return Ok((announced?, filled.map(|()| temporary)));
    }
    Ok((announce()?, TemporaryFile::write(path, request)))
}

/// Deletes a file that has the content `before`: renames it to the temporary name, compares it, and unlinks it. If it
/// has other content, it gets its name back.
pub(crate) fn remove_file(
    path: &AnchoredPath,
    temp: &OsStr,
    before: &FileSnapshot,
) -> Result<(), ChangeProblem> {
    let dir = path.dir();
    check_writable(path)?;
    match sys::rename_noreplace(dir, path.name(), temp) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Err(ChangeProblem::Changed),
        Err(error) => return Err(error.into()),
    }
    let checked = match holds_snapshot(path, temp, before) {
        Ok(true) => path.sync().map_err(ChangeProblem::from),
        Ok(false) => Err(ChangeProblem::Changed),
        Err(problem) => Err(problem.into()),
    };
    let result = checked.and_then(|()| Ok(unlink_name(dir, temp, AtFlags::empty())?));
    if result.is_err() {
        let rename_back = || sys::rename_noreplace(dir, temp, path.name());
        rename_back().or_else(|_| rename_back()).map_err(|error| rollback_problem(temp, error))?;
    }
    result
}

/// The file with the new content, before it has its final name.
struct TemporaryFile<'t> {
    /// The file, open for writing.
    fd: OwnedFd,
    /// The temporary name that it has or will get.
    temp: &'t OsStr,
    /// Whether it was created under the temporary name, because the file system has no unnamed files.
    named: bool,
}

impl<'t> TemporaryFile<'t> {
    /// Creates the file, unnamed if the file system can do that, and fills it.
    fn write(path: &AnchoredPath, request: ReplaceRequest<'t>) -> Result<Self, ChangeProblem> {
        let temporary = match Self::create_unnamed(path, request)? {
            Some(temporary) => temporary,
            None => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW;
                let fd = sys::openat(path.dir(), request.temp, flags, initial_mode(request))?;
                Self { fd, temp: request.temp, named: true }
            }
        };
        if let Err(problem) = temporary.fill(path, request) {
            temporary.unlink_temporary(path);
            return Err(problem);
        }
        Ok(temporary)
    }

    /// Creates an empty file without a name (`O_TMPFILE`). `None` if the file system does not support it.
    fn create_unnamed(
        path: &AnchoredPath,
        request: ReplaceRequest<'t>,
    ) -> Result<Option<Self>, ChangeProblem> {
        if request.before.is_some() {
            check_writable(path)?;
        }
        match sys::openat(path.dir(), OsStr::new("."), OFlags::TMPFILE | OFlags::RDWR, initial_mode(request))
        {
            Ok(fd) => Ok(Some(Self { fd, temp: request.temp, named: false })),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the content, copies the metadata of the old file, and makes both durable with `fsync`.
    fn fill(&self, path: &AnchoredPath, request: ReplaceRequest<'_>) -> Result<(), ChangeProblem> {
        sys::write_all(&self.fd, request.content)?;
        if request.before.is_some() {
            let old = match path.open() {
                Ok(old) => old,
                Err(FileProblem::Missing) => return Err(ChangeProblem::Changed),
                Err(problem) => return Err(problem.into()),
            };
            copy_metadata(&old, &self.fd)?;
        }
        if let Some(mode) = request.mode {
            sys::fchmod(self.fd.as_fd(), Mode::from_raw_mode(mode & 0o777))?;
        }
        sys::fsync(self.fd.as_fd())?;
        Ok(())
    }

    /// Gives the file its name, which must be free. Both `linkat` and `RENAME_NOREPLACE` fail if it is taken.
    fn create_by_link(&self, path: &AnchoredPath) -> Result<FileFingerprint, ChangeProblem> {
        let dir = path.dir();
        let named = if self.named {
            sys::rename_noreplace(dir, self.temp, path.name())
        } else {
            sys::link_unnamed_file(self.fd.as_fd(), dir, path.name())
        };
        match named {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(ChangeProblem::Changed),
            Err(error) => return Err(error.into()),
        }
        match path.sync().map_err(ChangeProblem::from).and_then(|()| self.fingerprint()) {
            Ok(fingerprint) => Ok(fingerprint),
            Err(problem) => {
                let _ = unlink_name(dir, path.name(), AtFlags::empty());
                Err(problem)
            }
        }
    }

    /// Exchanges names with the old file, and reverts that if the old file does not have the content `before`.
    fn replace_by_exchange(
        &self,
        path: &AnchoredPath,
        before: &FileSnapshot,
    ) -> Result<FileFingerprint, ChangeProblem> {
        let dir = path.dir();
        if !self.named {
            sys::link_unnamed_file(self.fd.as_fd(), dir, self.temp)?;
        }
        match sys::rename_exchange(dir, self.temp, path.name()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(ChangeProblem::Changed),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return self.replace_by_rename(path, before);
            }
            Err(error) => return Err(error.into()),
        }
        let checked = match holds_snapshot(path, self.temp, before) {
            Ok(true) => path.sync().map_err(ChangeProblem::from).and_then(|()| self.fingerprint()),
            Ok(false) => Err(ChangeProblem::Changed),
            Err(problem) => Err(problem.into()),
        };
        let result = checked.and_then(|fingerprint| {
            unlink_name(dir, self.temp, AtFlags::empty())?;
            Ok(fingerprint)
        });
        if result.is_err() {
            self.revert_exchange(path)?;
        }
        result
    }

    /// Exchanges the names back. If another process has replaced the new file in between, its file is what the exchange
    /// displaced, and it gets the name again.
    fn revert_exchange(&self, path: &AnchoredPath) -> Result<(), ChangeProblem> {
        let dir = path.dir();
        let exchange = || sys::rename_exchange(dir, self.temp, path.name());
        let exchange =
            || exchange().or_else(|_| exchange()).map_err(|error| rollback_problem(self.temp, error));
        exchange()?;
        let ours = sys::fstat(self.fd.as_fd())?;
        let theirs = open_regular_at(dir, self.temp).and_then(|fd| Ok(sys::fstat(fd.as_fd())?));
        if theirs.is_ok_and(|theirs| (theirs.st_dev, theirs.st_ino) != (ours.st_dev, ours.st_ino)) {
            exchange()?;
        }
        Ok(())
    }

    /// Replaces the file with a check and a plain rename, on file systems that cannot exchange names. An update between
    /// the two steps is lost.
    fn replace_by_rename(
        &self,
        path: &AnchoredPath,
        before: &FileSnapshot,
    ) -> Result<FileFingerprint, ChangeProblem> {
        if !holds_snapshot(path, path.name(), before)? {
            return Err(ChangeProblem::Changed);
        }
        let fingerprint = self.fingerprint()?;
        sys::rename(path.dir(), self.temp, path.name())?;
        path.sync()?;
        Ok(fingerprint)
    }

    /// The fingerprint of the open file.
    fn fingerprint(&self) -> Result<FileFingerprint, ChangeProblem> {
        Ok(FileFingerprint::of(&sys::fstat(self.fd.as_fd())?))
    }

    /// Unlinks the temporary name, which need not exist.
    fn unlink_temporary(&self, path: &AnchoredPath) {
        let _ = unlink_name(path.dir(), self.temp, AtFlags::empty());
    }
}

/// The permission bits at creation. A file that replaces another gets its mode at the end, and until then only the owner
/// may read it.
fn initial_mode(request: ReplaceRequest<'_>) -> Mode {
    Mode::from_raw_mode(if request.before.is_some() { 0o600 } else { 0o666 })
}

/// Whether a name in the directory of `path` is a regular file with the content of a snapshot.
fn holds_snapshot(path: &AnchoredPath, name: &OsStr, before: &FileSnapshot) -> Result<bool, FileProblem> {
    match open_regular_at(path.dir(), name) {
        Ok(fd) => before.is_content_of(fd),
        Err(
            FileProblem::Missing
            | FileProblem::SymlinkOnPath
            | FileProblem::IsDirectory
            | FileProblem::Special,
        ) => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// Fails if the file is write-protected. A rename needs only write access to the directory, and would override that.
fn check_writable(path: &AnchoredPath) -> Result<(), ChangeProblem> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    match sys::openat(path.dir(), path.name(), flags, Mode::empty()) {
        Ok(_) | Err(Errno::TXTBSY) => Ok(()),
        Err(Errno::NOENT) => Err(ChangeProblem::Changed),
        Err(error) => Err(error.into()),
    }
}

/// The problem of a change that could not be reverted; it names the file with the displaced content.
fn rollback_problem(temp: &OsStr, error: Errno) -> ChangeProblem {
    let temp = temp.display();
    ChangeProblem::File(FileProblem::Other(format!(
        "the change could not be rolled back ({error}); the previous content is in `{temp}` in the same directory"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_snapshot;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use toolgate_proto::AbsPath;

    /// Replaces without a journal.
    fn put_unrecorded(
        path: &mut AnchoredPath,
        before: Option<&FileSnapshot>,
        content: &[u8],
    ) -> Result<FileFingerprint, ChangeProblem> {
        put_content(path, ReplaceRequest { before, content, mode: None, temp: &temporary_name() }, || Ok(()))
            .1
    }

    /// Reads a file, lets another process interfere, and then tries to replace it.
    fn check(interfere: impl FnOnce(&Path), expected: Result<(), ChangeProblem>, content: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap().join("f")).unwrap();
        std::fs::write(&path, "old content").unwrap();
        let before = read_snapshot(&path, 1000).unwrap().unwrap();
        interfere(path.as_path());
        let mut anchored = AnchoredPath::open_parent(&path).unwrap();
        let result = put_unrecorded(&mut anchored, Some(&before), b"new content");
        assert_eq!(result.map(drop), expected);
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), content);
        let names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".toolgate")), "{names:?}");
    }

    #[test]
    fn a_concurrent_change_is_never_overwritten() {
        check(|_| {}, Ok(()), "new content");
        check(
            |path| std::fs::write(path, "OLD CONTENT").unwrap(),
            Err(ChangeProblem::Changed),
            "OLD CONTENT",
        );
        check(
            |path| {
                std::fs::write(path.with_extension("new"), "theirs").unwrap();
                std::fs::rename(path.with_extension("new"), path).unwrap();
            },
            Err(ChangeProblem::Changed),
            "theirs",
        );
        check(|path| std::fs::remove_file(path).unwrap(), Err(ChangeProblem::Changed), "");
        check(
            |path| {
                std::fs::write(path.with_extension("target"), "elsewhere").unwrap();
                std::fs::remove_file(path).unwrap();
                symlink(path.with_extension("target"), path).unwrap();
            },
            Err(ChangeProblem::File(FileProblem::SymlinkOnPath)),
            "elsewhere",
        );
        check(
            |path| {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            },
            Err(ChangeProblem::File(FileProblem::IsDirectory)),
            "",
        );
    }

    #[test]
    fn a_new_timestamp_or_a_rewrite_of_the_same_content_is_no_conflict() {
        check(
            |path| {
                let file = std::fs::File::options().write(true).open(path).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            },
            Ok(()),
            "new content",
        );
        check(
            |path| {
                std::fs::remove_file(path).unwrap();
                std::fs::write(path, "old content").unwrap();
            },
            Ok(()),
            "new content",
        );
    }

    #[test]
    fn mode_and_extended_attributes_are_copied_to_the_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap().join("f")).unwrap();
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
        rustix::fs::setxattr(path.as_path(), "user.note", b"kept", rustix::fs::XattrFlags::empty()).unwrap();
        let before = read_snapshot(&path, 1000).unwrap();
        put_unrecorded(&mut AnchoredPath::open_parent(&path).unwrap(), before.as_ref(), b"new").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
        let mut value = [0; 16];
        let got = rustix::fs::getxattr(path.as_path(), "user.note", &mut value).unwrap();
        assert_eq!(&value[..got], b"kept");
    }

    #[test]
    fn a_new_file_does_not_replace_one_that_was_created_in_the_meantime() {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap().join("f")).unwrap();
        std::fs::write(&path, "theirs").unwrap();
        let result = put_unrecorded(&mut AnchoredPath::create_parents(&path).unwrap(), None, b"ours");
        assert_eq!(result.unwrap_err(), ChangeProblem::Changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    }
}
