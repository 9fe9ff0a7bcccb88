//! Putting new content in a file's place, wholly or not at all.
//!
//! The new content is written to a file that has no name, made lasting, given a temporary name, and then the two
//! names are *exchanged* in one step.
//! What the temporary name holds after that is exactly what the new content displaced, so it can be compared with
//! what the caller meant to displace: if somebody else was faster, the names are exchanged back and nothing of
//! theirs is lost.
//! A check before a plain rename, which is the usual way, has a gap in which an update can be lost; it is what is
//! left on file systems that cannot exchange names.
//!
//! Until the very last step the old file is there in full, so a failure at any step can be taken back.
//! A process that is killed between two steps may leave the temporary name behind; the journal knows it and removes
//! it when it is next opened.

use super::anchored_path::{AnchoredPath, open_regular_at, unlink_with_retry};
use super::faults;
use super::open::FileProblem;
use super::snapshot::{FileFingerprint, FileSnapshot};
use super::sys;
use crate::threads::try_spawn_scoped;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};

/// Why a change was not made. The file is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeProblem {
    /// The file could not be used.
    File(FileProblem),
    /// What is there now is not what the change was meant for.
    Changed,
    /// The change could not be recorded, so it was not made.
    Unrecorded(String),
    /// The new content is not what a file of that name must hold.
    InvalidContent(Vec<String>),
}

impl std::fmt::Display for ChangeProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::Changed => f.write_str("somebody else has changed it in the meantime"),
            Self::InvalidContent(words) => {
                write!(f, "its new content would not be valid: {}", words.join("; "))
            }
            Self::Unrecorded(words) => write!(f, "the change could not be recorded for undo: {words}"),
        }
    }
}

impl std::error::Error for ChangeProblem {}

impl<E: Into<FileProblem>> From<E> for ChangeProblem {
    fn from(error: E) -> Self {
        Self::File(error.into())
    }
}

/// A name for a file that is there only during a change.
pub(crate) fn temporary_name() -> OsString {
    OsString::from(format!(".toolgate-{}.tmp", uuid::Uuid::now_v7().simple()))
}

/// New content for a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplaceRequest<'a> {
    /// What must be there; `None` stands for nothing.
    pub(crate) before: Option<&'a FileSnapshot>,
    pub(crate) content: &'a [u8],
    /// The mode of a file that was removed and comes back.
    pub(crate) mode: Option<u32>,
    /// A name for the time of the change.
    pub(crate) temp: &'a OsStr,
}

/// Content this large is written while the change is announced.
const MIN_PARALLEL_WRITE_BYTES: usize = 1 << 20;

/// Puts new content in its place, once `announce` has said that it will be.
/// The first of the two results is the announcement's, where it was made.
pub(crate) fn put_content<A: Send>(
    place: &mut AnchoredPath,
    put: ReplaceRequest<'_>,
    announce: impl FnOnce() -> Result<A, ChangeProblem> + Send,
) -> (Option<A>, Result<FileFingerprint, ChangeProblem>) {
    let (announced, draft) = match prepare(place, put, announce) {
        Ok(prepared) => prepared,
        Err(problem) => {
            place.remove_created_directories();
            return (None, Err(problem));
        }
    };
    let done = draft.and_then(|draft| {
        let done = match put.before {
            Some(before) => draft.replace_by_exchange(place, before),
            None => draft.create_by_link(place),
        };
        if done.is_err() {
            draft.unlink_temporary(place);
        }
        done
    });
    if done.is_err() {
        place.remove_created_directories();
    }
    (Some(announced), done)
}

/// The announcement and the written draft. An error is the announcement's; then there is no draft.
fn prepare<'a, A: Send>(
    place: &AnchoredPath,
    put: ReplaceRequest<'a>,
    announce: impl FnOnce() -> Result<A, ChangeProblem> + Send,
) -> Result<(A, Result<TemporaryFile<'a>, ChangeProblem>), ChangeProblem> {
    // A draft without a name is nothing that a crash could leave behind, so it may be begun before the announcement.
    if put.content.len() >= MIN_PARALLEL_WRITE_BYTES
        && let Ok(Some(draft)) = TemporaryFile::create_unnamed(place, put)
    {
        let (announced, filled) = std::thread::scope(|scope| {
            match try_spawn_scoped(scope, faults::inherit_fault_plan(|| draft.fill(place, put))) {
                Some(filling) => (announce(), filling.join()),
                None => (announce(), Ok(draft.fill(place, put))),
            }
        });
        let filled = filled.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        return Ok((announced?, filled.map(|()| draft)));
    }
    Ok((announce()?, TemporaryFile::write(place, put)))
}

/// Removes the file that holds `before`.
pub(crate) fn remove_file(
    place: &AnchoredPath,
    temp: &OsStr,
    before: &FileSnapshot,
) -> Result<(), ChangeProblem> {
    let dir = place.dir();
    check_writable(place)?;
    match sys::rename_noreplace(dir, place.name(), temp) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Err(ChangeProblem::Changed),
        Err(error) => return Err(error.into()),
    }
    let checked = match holds_snapshot(place, temp, before) {
        Ok(true) => place.sync().map_err(ChangeProblem::from),
        Ok(false) => Err(ChangeProblem::Changed),
        Err(problem) => Err(problem.into()),
    };
    let done = checked.and_then(|()| Ok(unlink_with_retry(dir, temp, AtFlags::empty())?));
    if done.is_err() {
        let back = || sys::rename_noreplace(dir, temp, place.name());
        back().or_else(|_| back()).map_err(|error| rollback_problem(temp, error))?;
    }
    done
}

/// New content on its way.
struct TemporaryFile<'t> {
    fd: OwnedFd,
    temp: &'t OsStr,
    /// The system made us give it a name from the start.
    named: bool,
}

impl<'t> TemporaryFile<'t> {
    fn write(place: &AnchoredPath, put: ReplaceRequest<'t>) -> Result<Self, ChangeProblem> {
        let draft = match Self::create_unnamed(place, put)? {
            Some(draft) => draft,
            None => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW;
                let fd = sys::openat(place.dir(), put.temp, flags, initial_mode(put))?;
                Self { fd, temp: put.temp, named: true }
            }
        };
        if let Err(problem) = draft.fill(place, put) {
            draft.unlink_temporary(place);
            return Err(problem);
        }
        Ok(draft)
    }

    /// An empty draft that has no name yet. `None` where the file system knows no such thing.
    fn create_unnamed(place: &AnchoredPath, put: ReplaceRequest<'t>) -> Result<Option<Self>, ChangeProblem> {
        if put.before.is_some() {
            check_writable(place)?;
        }
        match sys::openat(place.dir(), OsStr::new("."), OFlags::TMPFILE | OFlags::RDWR, initial_mode(put)) {
            Ok(fd) => Ok(Some(Self { fd, temp: put.temp, named: false })),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn fill(&self, place: &AnchoredPath, put: ReplaceRequest<'_>) -> Result<(), ChangeProblem> {
        sys::write_all(&self.fd, put.content)?;
        if put.before.is_some() {
            let old = match place.open() {
                Ok(old) => old,
                Err(FileProblem::Missing) => return Err(ChangeProblem::Changed),
                Err(problem) => return Err(problem.into()),
            };
            copy_metadata(&old, &self.fd)?;
        } else if let Some(mode) = put.mode {
            sys::fchmod(self.fd.as_fd(), Mode::from_raw_mode(mode & 0o777))?;
        }
        sys::fsync(self.fd.as_fd())?;
        Ok(())
    }

    /// Takes the name where there was nothing.
    fn create_by_link(&self, place: &AnchoredPath) -> Result<FileFingerprint, ChangeProblem> {
        let dir = place.dir();
        let named = if self.named {
            sys::rename_noreplace(dir, self.temp, place.name())
        } else {
            sys::link_unnamed_file(self.fd.as_fd(), dir, place.name())
        };
        match named {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(ChangeProblem::Changed),
            Err(error) => return Err(error.into()),
        }
        match place.sync().map_err(ChangeProblem::from).and_then(|()| self.fingerprint()) {
            Ok(mark) => Ok(mark),
            Err(problem) => {
                let _ = unlink_with_retry(dir, place.name(), AtFlags::empty());
                Err(problem)
            }
        }
    }

    /// Takes the name from the version that has it.
    fn replace_by_exchange(
        &self,
        place: &AnchoredPath,
        before: &FileSnapshot,
    ) -> Result<FileFingerprint, ChangeProblem> {
        let dir = place.dir();
        if !self.named {
            sys::link_unnamed_file(self.fd.as_fd(), dir, self.temp)?;
        }
        match sys::rename_exchange(dir, self.temp, place.name()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(ChangeProblem::Changed),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return self.replace_by_rename(place, before);
            }
            Err(error) => return Err(error.into()),
        }
        let checked = match holds_snapshot(place, self.temp, before) {
            Ok(true) => place.sync().map_err(ChangeProblem::from).and_then(|()| self.fingerprint()),
            Ok(false) => Err(ChangeProblem::Changed),
            Err(problem) => Err(problem.into()),
        };
        let done = checked.and_then(|mark| {
            unlink_with_retry(dir, self.temp, AtFlags::empty())?;
            Ok(mark)
        });
        if done.is_err() {
            self.revert_exchange(place)?;
        }
        done
    }

    /// The names change back. Where somebody has meanwhile put a newer file in our place, theirs stays.
    fn revert_exchange(&self, place: &AnchoredPath) -> Result<(), ChangeProblem> {
        let dir = place.dir();
        let exchange = || sys::rename_exchange(dir, self.temp, place.name());
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

    /// For file systems that cannot exchange two names.
    fn replace_by_rename(
        &self,
        place: &AnchoredPath,
        before: &FileSnapshot,
    ) -> Result<FileFingerprint, ChangeProblem> {
        if !holds_snapshot(place, place.name(), before)? {
            return Err(ChangeProblem::Changed);
        }
        let mark = self.fingerprint()?;
        sys::rename(place.dir(), self.temp, place.name())?;
        place.sync()?;
        Ok(mark)
    }

    fn fingerprint(&self) -> Result<FileFingerprint, ChangeProblem> {
        Ok(FileFingerprint::of(&sys::fstat(self.fd.as_fd())?))
    }

    /// No litter. The name may never have been given.
    fn unlink_temporary(&self, place: &AnchoredPath) {
        let _ = unlink_with_retry(place.dir(), self.temp, AtFlags::empty());
    }
}

/// What replaces a file gets that file's mode later and must not be readable by more people until then.
fn initial_mode(put: ReplaceRequest<'_>) -> Mode {
    Mode::from_raw_mode(if put.before.is_some() { 0o600 } else { 0o666 })
}

/// Whether a name in the place's directory is a regular file with this version in it.
fn holds_snapshot(place: &AnchoredPath, name: &OsStr, before: &FileSnapshot) -> Result<bool, FileProblem> {
    match open_regular_at(place.dir(), name) {
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

/// A rename does not ask whether the file itself may be written to. People who took the right away meant it.
fn check_writable(place: &AnchoredPath) -> Result<(), ChangeProblem> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    match sys::openat(place.dir(), place.name(), flags, Mode::empty()) {
        Ok(_) | Err(Errno::TXTBSY) => Ok(()),
        Err(Errno::NOENT) => Err(ChangeProblem::Changed),
        Err(error) => Err(error.into()),
    }
}

/// Mode, owner and extended attributes go over to the new file, as far as the system lets us.
fn copy_metadata(old: &OwnedFd, new: &OwnedFd) -> Result<(), ChangeProblem> {
    let (old, new) = (old.as_fd(), new.as_fd());
    let (was, is) = (sys::fstat(old)?, sys::fstat(new)?);
    let mut mode = was.st_mode & 0o7777;
    if (was.st_uid, was.st_gid) != (is.st_uid, is.st_gid) {
        match sys::fchown(new, was.st_uid, was.st_gid) {
            Ok(()) => {}
            // The new file is ours now: it must not run as us.
            Err(Errno::PERM) => mode &= 0o777,
            Err(error) => return Err(error.into()),
        }
    }
    let names = match sys::list_xattrs(old) {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::RANGE) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let copied = sys::get_xattr(old, name).and_then(|value| sys::set_xattr(new, name, &value));
        match copied {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS | Errno::NODATA) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Last, because a change of owner takes away the bits that let a program run as its owner.
    sys::fchmod(new, Mode::from_raw_mode(mode))?;
    Ok(())
}

fn rollback_problem(temp: &OsStr, error: Errno) -> ChangeProblem {
    let temp = temp.display();
    ChangeProblem::File(FileProblem::Other(format!(
        "the change could not be taken back ({error}); the former content is beside it in `{temp}`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_snapshot;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use toolgate_proto::AbsPath;

    fn put_now(
        place: &mut AnchoredPath,
        before: Option<&FileSnapshot>,
        content: &[u8],
    ) -> Result<FileFingerprint, ChangeProblem> {
        put_content(place, ReplaceRequest { before, content, mode: None, temp: &temporary_name() }, || Ok(()))
            .1
    }

    /// Reads a file, lets somebody else do something, and then tries to change it.
    fn check(others: impl FnOnce(&Path), expected: Result<&str, ChangeProblem>, left: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap().join("f")).unwrap();
        std::fs::write(&path, "old content").unwrap();
        let before = read_snapshot(&path, 1000).unwrap().unwrap();
        others(path.as_path());
        let mut place = AnchoredPath::open_parent(&path).unwrap();
        let made = put_now(&mut place, Some(&before), b"new content");
        assert_eq!(made.map(|_| "made"), expected);
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), left);
        let names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".toolgate")), "{names:?}");
    }

    #[test]
    fn what_somebody_else_did_meanwhile_is_never_overwritten() {
        check(|_| {}, Ok("made"), "new content");
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
    fn a_touch_or_the_same_content_again_is_no_change() {
        check(
            |path| {
                let file = std::fs::File::options().write(true).open(path).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            },
            Ok("made"),
            "new content",
        );
        check(
            |path| {
                std::fs::remove_file(path).unwrap();
                std::fs::write(path, "old content").unwrap();
            },
            Ok("made"),
            "new content",
        );
    }

    #[test]
    fn mode_and_attributes_go_over_to_the_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap().join("f")).unwrap();
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
        rustix::fs::setxattr(path.as_path(), "user.note", b"kept", rustix::fs::XattrFlags::empty()).unwrap();
        let before = read_snapshot(&path, 1000).unwrap();
        put_now(&mut AnchoredPath::open_parent(&path).unwrap(), before.as_ref(), b"new").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
        let mut value = [0; 16];
        let got = rustix::fs::getxattr(path.as_path(), "user.note", &mut value).unwrap();
        assert_eq!(&value[..got], b"kept");
    }

    #[test]
    fn a_new_file_does_not_take_a_name_that_somebody_took_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap().join("f")).unwrap();
        std::fs::write(&path, "theirs").unwrap();
        let made = put_now(&mut AnchoredPath::create_parents(&path).unwrap(), None, b"ours");
        assert_eq!(made.unwrap_err(), ChangeProblem::Changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    }
}
