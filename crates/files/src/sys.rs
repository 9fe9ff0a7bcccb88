//! The system calls of file changes, each in one place.
//!
//! This layer adds two things to rustix: a call that a signal interrupted (`EINTR`) is retried, and tests can make any
//! call fail (see [`faults`]).

use crate::faults::{self, SyscallBehavior};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat, XattrFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// The result of a system call.
type SyscallResult<T> = std::result::Result<T, Errno>;

/// Makes a system call again until no signal interrupts it. `call` is its name for fault injection.
fn retry_on_interrupt<T>(
    call: &'static str,
    mut work: impl FnMut(SyscallBehavior) -> SyscallResult<T>,
) -> SyscallResult<T> {
    loop {
        match faults::check_fault_point(call).and_then(&mut work) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Opens an absolute path with restrictions on its resolution.
pub(crate) fn openat2(path: &Path, flags: OFlags, resolve: ResolveFlags) -> SyscallResult<OwnedFd> {
    retry_on_interrupt("openat2", |_| rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve))
}

/// Opens or creates an entry of a directory.
pub(crate) fn openat(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags, mode: Mode) -> SyscallResult<OwnedFd> {
    retry_on_interrupt("openat", |_| rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, mode))
}

/// `fstat(2)`.
pub(crate) fn fstat(fd: BorrowedFd<'_>) -> SyscallResult<Stat> {
    retry_on_interrupt("fstat", |_| rustix::fs::fstat(fd))
}

/// `mkdirat(2)`.
pub(crate) fn mkdirat(dir: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> SyscallResult<()> {
    retry_on_interrupt("mkdirat", |_| rustix::fs::mkdirat(dir, name, mode))
}

/// `unlinkat(2)`.
pub(crate) fn unlinkat(dir: BorrowedFd<'_>, name: &OsStr, flags: AtFlags) -> SyscallResult<()> {
    retry_on_interrupt("unlinkat", |_| rustix::fs::unlinkat(dir, name, flags))
}

/// Exchanges two names of a directory atomically (`RENAME_EXCHANGE`).
pub(crate) fn rename_exchange(dir: BorrowedFd<'_>, one: &OsStr, other: &OsStr) -> SyscallResult<()> {
    retry_on_interrupt("renameat2", |_| {
        rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)
    })
}

/// Renames within a directory, replacing a file that has the new name.
pub(crate) fn rename(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> SyscallResult<()> {
    retry_on_interrupt("renameat", |_| rustix::fs::renameat(dir, from, dir, to))
}

/// Renames within a directory; fails with `EEXIST` if the new name is taken.
pub(crate) fn rename_noreplace(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> SyscallResult<()> {
    retry_on_interrupt("renameat2", |_| rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE))
}

/// Gives an unnamed file a name; fails with `EEXIST` if it is taken. `AT_EMPTY_PATH` needs a privilege on older kernels,
/// so the link in `/proc/self/fd` is the fallback.
pub(crate) fn link_unnamed_file(
    file: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    name: &OsStr,
) -> SyscallResult<()> {
    retry_on_interrupt("linkat", |_| match rustix::fs::linkat(file, "", dir, name, AtFlags::EMPTY_PATH) {
        Err(Errno::NOENT | Errno::PERM) => {
            let fd_path = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, fd_path, dir, name, AtFlags::SYMLINK_FOLLOW)
        }
        result => result,
    })
}

/// `fsync(2)`.
pub(crate) fn fsync(fd: BorrowedFd<'_>) -> SyscallResult<()> {
    retry_on_interrupt("fsync", |_| rustix::fs::fsync(fd))
}

/// `fchmod(2)`.
pub(crate) fn fchmod(fd: BorrowedFd<'_>, mode: Mode) -> SyscallResult<()> {
    retry_on_interrupt("fchmod", |_| rustix::fs::fchmod(fd, mode))
}

/// `fchown(2)`.
pub(crate) fn fchown(fd: BorrowedFd<'_>, uid: u32, gid: u32) -> SyscallResult<()> {
    let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
    retry_on_interrupt("fchown", |_| rustix::fs::fchown(fd, Some(uid), Some(gid)))
}

/// The names of the extended attributes, each with a NUL after it. More than 4 KiB of names are `ERANGE`.
pub(crate) fn list_xattrs(fd: BorrowedFd<'_>) -> SyscallResult<Vec<u8>> {
    let mut names = vec![0; 4096];
    let count = retry_on_interrupt("flistxattr", |_| rustix::fs::flistxattr(fd, &mut names))?;
    names.truncate(count);
    Ok(names)
}

/// The value of an extended attribute, up to the 64 KiB that Linux allows.
pub(crate) fn get_xattr(fd: BorrowedFd<'_>, name: &CStr) -> SyscallResult<Vec<u8>> {
    let mut value = vec![0; 65_536];
    let count = retry_on_interrupt("fgetxattr", |_| rustix::fs::fgetxattr(fd, name, &mut value))?;
    value.truncate(count);
    Ok(value)
}

/// `fsetxattr(2)`.
pub(crate) fn set_xattr(fd: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> SyscallResult<()> {
    retry_on_interrupt("fsetxattr", |_| rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty()))
}

/// `flock(2)`.
pub(crate) fn flock(fd: BorrowedFd<'_>, operation: FlockOperation) -> SyscallResult<()> {
    retry_on_interrupt("flock", |_| rustix::fs::flock(fd, operation))
}

/// `ftruncate(2)`.
pub(crate) fn ftruncate(fd: BorrowedFd<'_>, bytes: u64) -> SyscallResult<()> {
    retry_on_interrupt("ftruncate", |_| rustix::fs::ftruncate(fd, bytes))
}

/// Reads from the start to the end, or until more than `max_bytes` are read.
pub(crate) fn read_all(fd: BorrowedFd<'_>, expected: u64, max_bytes: u64) -> SyscallResult<Vec<u8>> {
    read_from_offset(fd, 0, expected, max_bytes)
}

/// Reads from `start` to the end, or until more than `max_bytes` are read.
pub(crate) fn read_from_offset(
    fd: BorrowedFd<'_>,
    start: u64,
    expected: u64,
    max_bytes: u64,
) -> SyscallResult<Vec<u8>> {
    let capacity = usize::try_from(expected.min(max_bytes)).unwrap_or(0).saturating_add(1);
    let mut bytes: Vec<u8> = Vec::with_capacity(capacity);
    loop {
        if bytes.capacity() == bytes.len() {
            bytes.reserve(bytes.len().max(4096));
        }
        let offset = start + bytes.len() as u64;
        let count = retry_on_interrupt("read", |_| {
            rustix::io::pread(fd, rustix::buffer::spare_capacity(&mut bytes), offset)
        })?;
        if count == 0 || bytes.len() as u64 > max_bytes {
            return Ok(bytes);
        }
    }
}

/// Writes all bytes, however few the kernel accepts at a time.
pub(crate) fn write_all(fd: impl AsFd, mut bytes: &[u8]) -> SyscallResult<()> {
    while !bytes.is_empty() {
        let written = retry_on_interrupt("write", |behavior| {
            let part = match behavior {
                SyscallBehavior::Normal => bytes,
                SyscallBehavior::ShortWrite => bytes.get(..bytes.len().div_ceil(2)).unwrap_or(bytes),
            };
            rustix::io::write(fd.as_fd(), part)
        })?;
        if written == 0 {
            return Err(Errno::IO);
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}
