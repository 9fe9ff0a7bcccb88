//! Owner, mode and times of a file. Landlock does not guard them, so the warden always acts itself.

use super::place::{Last, Place};
use super::target::Target;
use super::{Answer, Question, SeccompNotifyContext};
use crate::sandbox::refused::Access;
use rustix::fs::{self, AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use toolgate_proto::AbsPath;

/// What is to be changed.
enum New {
    Mode(u64),
    Owner(u64, u64),
    Times(Timestamps),
}

/// Of which file.
enum Subject {
    At { directory: i32, address: u64, last: Last },
    Handle(i32),
}

/// `None` if the call is none of these.
pub(super) fn decide(
    keeps: &SeccompNotifyContext,
    target: &Target,
    question: Question,
    waits: &dyn Fn() -> bool,
) -> Option<Answer> {
    let (int, word) = (|index| question.int(index), |index| question.word(index));
    let here = libc::AT_FDCWD;
    let at = |directory, address, flags: i32| {
        let last = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        if address == 0
            || flags & libc::AT_EMPTY_PATH != 0 && target.text(address).is_ok_and(|t| t.is_empty())
        {
            Subject::Handle(directory)
        } else {
            Subject::At { directory, address, last }
        }
    };
    let keep = libc::AT_SYMLINK_NOFOLLOW;
    let (subject, new) = match question.call {
        libc::SYS_fchmod => (Subject::Handle(int(0)), Ok(New::Mode(word(1)))),
        libc::SYS_fchmodat => (at(int(0), word(1), 0), Ok(New::Mode(word(2)))),
        libc::SYS_fchmodat2 => (at(int(0), word(1), int(3)), Ok(New::Mode(word(2)))),
        libc::SYS_fchown => (Subject::Handle(int(0)), Ok(New::Owner(word(1), word(2)))),
        libc::SYS_fchownat => (at(int(0), word(1), int(4)), Ok(New::Owner(word(2), word(3)))),
        libc::SYS_utimensat => (at(int(0), word(1), int(3)), times(target, word(2), 1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (at(here, word(0), 0), Ok(New::Mode(word(1)))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (at(here, word(0), 0), Ok(New::Owner(word(1), word(2)))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (at(here, word(0), keep), Ok(New::Owner(word(1), word(2)))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => (at(here, word(0), 0), times(target, word(1), 1000)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (at(int(0), word(1), 0), times(target, word(2), 1000)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (at(here, word(0), 0), whole_seconds(target, word(1))),
        _ => return None,
    };
    let asked = Asked { keeps, target };
    Some(new.and_then(|new| asked.apply(&subject, &new, waits)).unwrap_or_else(Answer::Fail))
}

struct Asked<'a> {
    keeps: &'a SeccompNotifyContext,
    target: &'a Target,
}

impl Asked<'_> {
    fn apply(&self, subject: &Subject, new: &New, waits: &dyn Fn() -> bool) -> Result<Answer, Errno> {
        let handle = match subject {
            Subject::Handle(number) => self.handle(*number)?,
            Subject::At { directory, address, last } => {
                let path = self.target.path(*directory, *address)?;
                match parse_fd_path(&path) {
                    // How the C library changes a file of which it has only a handle.
                    Some(number) => self.handle(number)?,
                    None => {
                        let place = Place::of(&path, *last).ok_or(Errno::ACCESS)?;
                        let handle = place.handle()?;
                        self.may(&handle, Some(&place.real))?;
                        handle
                    }
                }
            }
        };
        if !waits() {
            return Err(Errno::INTR);
        }
        if !self.target.is_same_user() {
            return Err(Errno::PERM);
        }
        change(&handle, new)?;
        Ok(Answer::Done(0))
    }

    /// What a handle of the caller means, held for the rest of the call.
    fn handle(&self, number: i32) -> Result<OwnedFd, Errno> {
        let path = self.target.fd_path(number);
        let handle = fs::openat(CWD, path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|_| Errno::BADF)?;
        self.may(&handle, None)?;
        Ok(handle)
    }

    fn may(&self, handle: &OwnedFd, real: Option<&AbsPath>) -> Result<(), Errno> {
        let stat = fs::fstat(handle)?;
        // A file without a name is the caller's own, made and removed, or made in memory.
        if stat.st_nlink == 0 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            return Ok(());
        }
        let named = match real {
            Some(real) => real.clone(),
            None => {
                let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
                AbsPath::new(std::fs::read_link(link).map_err(|_| Errno::ACCESS)?).map_err(|_| Errno::PERM)?
            }
        };
        let bounds = &self.keeps.bounds;
        if bounds.may_write(&named) && !bounds.pins(stat.st_dev, stat.st_ino) {
            return Ok(());
        }
        self.keeps.refuse(self.target, Access::Metadata, &named);
        Err(Errno::ACCESS)
    }
}

/// The number in `/proc/self/fd/N` and `/dev/fd/N`.
fn parse_fd_path(path: &AbsPath) -> Option<i32> {
    let text = path.as_path().to_str()?;
    let number = text.strip_prefix("/proc/self/fd/").or_else(|| text.strip_prefix("/dev/fd/"))?;
    number.parse().ok()
}

fn change(handle: &OwnedFd, new: &New) -> Result<(), Errno> {
    // A handle that only names a file is used through its own link.
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    match new {
        New::Mode(mode) => {
            let mode = u32::try_from(mode & 0o7777).unwrap_or(0);
            let file = FileType::from_raw_mode(fs::fstat(handle)?.st_mode);
            // A program that takes on its owner's rights would carry them out of the box.
            if mode & 0o4000 != 0 && file == FileType::RegularFile {
                return Err(Errno::PERM);
            }
            if file == FileType::Symlink {
                return Err(Errno::OPNOTSUPP);
            }
            fs::chmod(path.as_str(), Mode::from_raw_mode(mode))
        }
        New::Owner(user, group) => {
            let id = |value: u64| u32::try_from(value & 0xffff_ffff).ok().filter(|id| *id != u32::MAX);
            let (user, group) = (id(*user).map(Uid::from_raw), id(*group).map(Gid::from_raw));
            fs::chownat(handle, c"", user, group, AtFlags::EMPTY_PATH)
        }
        New::Times(times) => match fs::utimensat(CWD, path.as_str(), times, AtFlags::empty()) {
            // The link of a handle on a link is not followed further on every kernel.
            Err(Errno::LOOP) => fs::utimensat(handle, c"", times, AtFlags::EMPTY_PATH),
            done => done,
        },
    }
}

/// Two points in time, seconds and fractions; nothing there means now.
fn times(target: &Target, address: u64, nanos_per_fraction: i64) -> Result<New, Errno> {
    if address == 0 {
        return Ok(now());
    }
    let bytes = target.bytes(address, 32)?;
    let mut numbers = bytes.chunks_exact(8).map(|chunk| chunk.try_into().map_or(0, i64::from_ne_bytes));
    let mut next = || {
        let (seconds, fraction) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Timespec { tv_sec: seconds, tv_nsec: fraction.saturating_mul(nanos_per_fraction) }
    };
    Ok(New::Times(Timestamps { last_access: next(), last_modification: next() }))
}

#[cfg(target_arch = "x86_64")]
fn whole_seconds(target: &Target, address: u64) -> Result<New, Errno> {
    if address == 0 {
        return Ok(now());
    }
    let bytes = target.bytes(address, 16)?;
    let mut numbers = bytes.chunks_exact(8).map(|chunk| chunk.try_into().map_or(0, i64::from_ne_bytes));
    let mut next = || Timespec { tv_sec: numbers.next().unwrap_or(0), tv_nsec: 0 };
    Ok(New::Times(Timestamps { last_access: next(), last_modification: next() }))
}

fn now() -> New {
    let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
    New::Times(Timestamps { last_access: now, last_modification: now })
}
