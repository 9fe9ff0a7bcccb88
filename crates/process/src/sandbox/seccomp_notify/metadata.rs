//! System calls that change owner, mode and times of a file. Landlock does not restrict them, so the handler always makes
//! the change itself.

use super::caller_thread::CallerThread;
use super::syscall_path::{FinalSymlink, SyscallPath};
use super::{SeccompNotification, SeccompNotifyContext, SeccompResponse};
use crate::sandbox::denials::SandboxAccess;
use rustix::fs::{self, AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use toolgate_proto::AbsPath;

/// What a call changes.
enum MetadataChange {
    /// The mode.
    Mode(u64),
    /// User and group; `u32::MAX` keeps one.
    Owner(u64, u64),
    /// Access and modification time.
    Times(Timestamps),
}

/// The file that a call changes.
enum MetadataTarget {
    /// A path argument, relative to a directory.
    At { directory: i32, address: u64, last: FinalSymlink },
    /// An open file of the caller.
    FileDescriptor(i32),
}

/// `None` if the call is none of these.
pub(super) fn decide_metadata_change(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    notification: SeccompNotification,
    is_waiting: &dyn Fn() -> bool,
) -> Option<SeccompResponse> {
    let (int, word) = (|index| notification.int_argument(index), |index| notification.argument(index));
    let here = libc::AT_FDCWD;
    let at = |directory, address, flags: i32| {
        let last = if flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
            FinalSymlink::NoFollow
        } else {
            FinalSymlink::Follow
        };
        if address == 0
            || flags & libc::AT_EMPTY_PATH != 0 && caller.read_string(address).is_ok_and(|t| t.is_empty())
        {
            MetadataTarget::FileDescriptor(directory)
        } else {
            MetadataTarget::At { directory, address, last }
        }
    };
    let keep = libc::AT_SYMLINK_NOFOLLOW;
    let (target, change) = match notification.call {
        libc::SYS_fchmod => (MetadataTarget::FileDescriptor(int(0)), Ok(MetadataChange::Mode(word(1)))),
        libc::SYS_fchmodat => (at(int(0), word(1), 0), Ok(MetadataChange::Mode(word(2)))),
        libc::SYS_fchmodat2 => (at(int(0), word(1), int(3)), Ok(MetadataChange::Mode(word(2)))),
        libc::SYS_fchown => {
            (MetadataTarget::FileDescriptor(int(0)), Ok(MetadataChange::Owner(word(1), word(2))))
        }
        libc::SYS_fchownat => (at(int(0), word(1), int(4)), Ok(MetadataChange::Owner(word(2), word(3)))),
        libc::SYS_utimensat => (at(int(0), word(1), int(3)), read_times(caller, word(2), 1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (at(here, word(0), 0), Ok(MetadataChange::Mode(word(1)))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (at(here, word(0), 0), Ok(MetadataChange::Owner(word(1), word(2)))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (at(here, word(0), keep), Ok(MetadataChange::Owner(word(1), word(2)))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => (at(here, word(0), 0), read_times(caller, word(1), 1000)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (at(int(0), word(1), 0), read_times(caller, word(2), 1000)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (at(here, word(0), 0), read_utime(caller, word(1))),
        _ => return None,
    };
    let call = MetadataCall { context, caller };
    Some(
        change
            .and_then(|change| call.apply(&target, &change, is_waiting))
            .unwrap_or_else(SeccompResponse::Fail),
    )
}

/// One such system call.
struct MetadataCall<'a> {
    context: &'a SeccompNotifyContext,
    caller: &'a CallerThread,
}

impl MetadataCall<'_> {
    /// Opens the file, checks it, and makes the change through the same open file.
    fn apply(
        &self,
        target: &MetadataTarget,
        change: &MetadataChange,
        is_waiting: &dyn Fn() -> bool,
    ) -> Result<SeccompResponse, Errno> {
        let fd = match target {
            MetadataTarget::FileDescriptor(number) => self.open_caller_fd(*number)?,
            MetadataTarget::At { directory, address, last } => {
                let path = self.caller.read_path(*directory, *address)?;
                match parse_fd_path(&path) {
                    // How the C library changes a file of which it has only a file descriptor.
                    Some(number) => self.open_caller_fd(number)?,
                    None => {
                        let place = SyscallPath::of(&path, *last).ok_or(Errno::ACCESS)?;
                        let fd = place.open_entry()?;
                        self.check_allowed(&fd, Some(&place.real))?;
                        fd
                    }
                }
            }
        };
        if !is_waiting() {
            return Err(Errno::INTR);
        }
        if !self.caller.is_same_user() {
            return Err(Errno::PERM);
        }
        apply_change(&fd, change)?;
        Ok(SeccompResponse::Done(0))
    }

    /// Opens the file of a file descriptor of the caller, so that it stays the same for the rest of the call.
    fn open_caller_fd(&self, number: i32) -> Result<OwnedFd, Errno> {
        let path = self.caller.fd_path(number);
        let fd = fs::openat(CWD, path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|_| Errno::BADF)?;
        self.check_allowed(&fd, None)?;
        Ok(fd)
    }

    /// Whether the file may be changed, by its path and by its inode.
    fn check_allowed(&self, fd: &OwnedFd, real: Option<&AbsPath>) -> Result<(), Errno> {
        let stat = fs::fstat(fd)?;
        // A file without a name is the caller's own: created and removed, or a memfd.
        if stat.st_nlink == 0 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            return Ok(());
        }
        let named = match real {
            Some(real) => real.clone(),
            None => {
                let link = format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
                AbsPath::new(std::fs::read_link(link).map_err(|_| Errno::ACCESS)?).map_err(|_| Errno::PERM)?
            }
        };
        let bounds = &self.context.bounds;
        if bounds.may_write(&named) && !bounds.is_pinned_file(stat.st_dev, stat.st_ino) {
            return Ok(());
        }
        self.context.record_denial(self.caller, SandboxAccess::Metadata, &named);
        Err(Errno::ACCESS)
    }
}

/// The number in `/proc/self/fd/N` and `/dev/fd/N`.
fn parse_fd_path(path: &AbsPath) -> Option<i32> {
    let text = path.as_path().to_str()?;
    let number = text.strip_prefix("/proc/self/fd/").or_else(|| text.strip_prefix("/dev/fd/"))?;
    number.parse().ok()
}

/// Makes the change on a file opened with `O_PATH`.
fn apply_change(fd: &OwnedFd, change: &MetadataChange) -> Result<(), Errno> {
    // A file descriptor with O_PATH is used through its symlink in `/proc`.
    let path = format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
    match change {
        MetadataChange::Mode(mode) => {
            let mode = u32::try_from(mode & 0o7777).unwrap_or(0);
            let file = FileType::from_raw_mode(fs::fstat(fd)?.st_mode);
            // A set-user-ID program would take the user's rights outside the sandbox.
            if mode & 0o4000 != 0 && file == FileType::RegularFile {
                return Err(Errno::PERM);
            }
            if file == FileType::Symlink {
                return Err(Errno::OPNOTSUPP);
            }
            fs::chmod(path.as_str(), Mode::from_raw_mode(mode))
        }
        MetadataChange::Owner(user, group) => {
            let id = |value: u64| u32::try_from(value & 0xffff_ffff).ok().filter(|id| *id != u32::MAX);
            let (user, group) = (id(*user).map(Uid::from_raw), id(*group).map(Gid::from_raw));
            fs::chownat(fd, c"", user, group, AtFlags::EMPTY_PATH)
        }
        MetadataChange::Times(times) => match fs::utimensat(CWD, path.as_str(), times, AtFlags::empty()) {
            // For a file descriptor of a symlink, some kernels return ELOOP.
            Err(Errno::LOOP) => fs::utimensat(fd, c"", times, AtFlags::EMPTY_PATH),
            done => done,
        },
    }
}

/// Reads two times in seconds and fractions; a null pointer means now.
fn read_times(caller: &CallerThread, address: u64, nanos_per_fraction: i64) -> Result<MetadataChange, Errno> {
    if address == 0 {
        return Ok(current_times());
    }
    let bytes = caller.read_bytes(address, 32)?;
    let mut numbers = bytes.chunks_exact(8).map(|chunk| chunk.try_into().map_or(0, i64::from_ne_bytes));
    let mut next = || {
        let (seconds, fraction) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Timespec { tv_sec: seconds, tv_nsec: fraction.saturating_mul(nanos_per_fraction) }
    };
    Ok(MetadataChange::Times(Timestamps { last_access: next(), last_modification: next() }))
}

/// Reads the argument of `utime`: two times in seconds.
#[cfg(target_arch = "x86_64")]
fn read_utime(caller: &CallerThread, address: u64) -> Result<MetadataChange, Errno> {
    if address == 0 {
        return Ok(current_times());
    }
    let bytes = caller.read_bytes(address, 16)?;
    let mut numbers = bytes.chunks_exact(8).map(|chunk| chunk.try_into().map_or(0, i64::from_ne_bytes));
    let mut next = || Timespec { tv_sec: numbers.next().unwrap_or(0), tv_nsec: 0 };
    Ok(MetadataChange::Times(Timestamps { last_access: next(), last_modification: next() }))
}

/// Both times are now, as the kernel knows it.
fn current_times() -> MetadataChange {
    let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
    MetadataChange::Times(Timestamps { last_access: now, last_modification: now })
}
