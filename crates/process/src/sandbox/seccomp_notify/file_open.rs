//! Opening files on behalf of a sandboxed command: for writing, in trees with hidden files, and named pipes.

use super::file_changes::FileChangeCall;
use super::syscall_path::{FinalSymlink, SyscallPath};
use super::{DeferredResponse, SeccompResponse};
use crate::sandbox::WithheldFileMode;
use crate::sandbox::denials::SandboxAccess;
use crate::sandbox::syscall_rules::WRITE_OPEN_FLAGS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use toolgate_proto::EntryKind;

impl FileChangeCall<'_> {
    /// `open`, `openat` and `creat`. Opens the file on behalf of the caller if the profile allows what Landlock does not.
    pub(super) fn open(
        &self,
        directory: i32,
        address: u64,
        flags: i32,
        mode: u64,
    ) -> Result<SeccompResponse, Errno> {
        let fresh = flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
        let last = if fresh || flags & libc::O_NOFOLLOW != 0 {
            FinalSymlink::NoFollow
        } else {
            FinalSymlink::Follow
        };
        let Some(place) = self.resolve_argument(directory, address, last)? else {
            return Ok(SeccompResponse::Continue);
        };
        let bounds = &self.context.bounds;
        let changes = flags & WRITE_OPEN_FLAGS != 0;
        let reads = flags & libc::O_ACCMODE != libc::O_WRONLY;
        if reads && place.kind == EntryKind::File && bounds.hides(&place.real) {
            return self.withhold(&place, changes, flags);
        }
        let by_landlock = (!changes || bounds.landlock_allows_write(&place.real))
            && (!reads || bounds.landlock_allows_read(&place.real));
        // A directory cannot be opened for writing, and Landlock decides about devices.
        let pipe = place.kind == EntryKind::Special && place.is_pipe();
        if flags & libc::O_TMPFILE == libc::O_TMPFILE && !by_landlock {
            return self.open_tmpfile(&place, flags, mode);
        }
        if by_landlock || place.kind == EntryKind::Directory || place.kind == EntryKind::Special && !pipe {
            return Ok(SeccompResponse::Continue);
        }
        let missing = place.kind == EntryKind::Missing;
        if changes && !bounds.may_write(&place.real) {
            let fails_anyway = missing && flags & libc::O_CREAT == 0 || !missing && fresh;
            return Ok(if fails_anyway { SeccompResponse::Continue } else { self.deny_write(&place) });
        }
        if reads && !missing && !bounds.may_read(&place.real) {
            self.context.record_denial(self.caller, SandboxAccess::Read, &place.real);
            return Ok(self.context.deny());
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        let wanted = OFlags::from_bits_retain(flags.cast_unsigned());
        // NONBLOCK, because opening a named pipe that replaced the file would block the handler.
        let added = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = self.masked_mode(mode);
        let directory = place.open_directory()?;
        if pipe && !wanted.contains(OFlags::NONBLOCK) {
            let deferred = self.deferred.clone();
            return deferred
                .respond_on_thread(move |deferred| open_pipe(&directory, &place, (wanted, added), deferred));
        }
        let fd = fs::openat(&directory, &place.name, wanted | added, mode)?;
        to_fd_response(fd, wanted)
    }

    /// Opens a file without a name (`O_TMPFILE`). In the shared temporary directories, where the C library opens one
    /// regardless of `TMPDIR`, the command gets one in its private directory, if `O_EXCL` rules out naming it later.
    fn open_tmpfile(&self, place: &SyscallPath, flags: i32, mode: u64) -> Result<SeccompResponse, Errno> {
        let wanted = OFlags::from_bits_retain(flags.cast_unsigned());
        let is_shared = ["/tmp", "/var/tmp"].iter().any(|path| place.real.as_path() == Path::new(path));
        match self.context.bounds.private().first() {
            Some(private) if is_shared && wanted.contains(OFlags::EXCL) && self.may_act_for_caller() => {
                let fd =
                    fs::openat(fs::CWD, private.as_path(), wanted | OFlags::CLOEXEC, self.masked_mode(mode))?;
                to_fd_response(fd, wanted)
            }
            // Programs then use a file with a name.
            Some(_) | None => Err(Errno::OPNOTSUPP),
        }
    }

    /// The response to opening a hidden file for reading.
    fn withhold(&self, place: &SyscallPath, changes: bool, flags: i32) -> Result<SeccompResponse, Errno> {
        self.context.record_denial(self.caller, SandboxAccess::ReadHidden, &place.real);
        match self.context.withheld {
            WithheldFileMode::Empty if !changes && !self.context.bounds.is_explicitly_hidden(&place.real) => {
                let memory = fs::memfd_create("withheld", MemfdFlags::CLOEXEC)?;
                // Opened again for reading only, so that nothing can be written to it.
                let path = format!("/proc/thread-self/fd/{}", memory.as_raw_fd());
                let empty = fs::openat(fs::CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                Ok(SeccompResponse::FileDescriptor { fd: empty, close_on_exec: flags & libc::O_CLOEXEC != 0 })
            }
            WithheldFileMode::Empty | WithheldFileMode::Refused => Err(Errno::ACCESS),
        }
    }
}

/// A file descriptor with the flags that the caller asked for.
fn to_fd_response(fd: OwnedFd, wanted: OFlags) -> Result<SeccompResponse, Errno> {
    if !wanted.contains(OFlags::NONBLOCK) {
        fs::fcntl_setfl(&fd, fs::fcntl_getfl(&fd)? - OFlags::NONBLOCK)?;
    }
    Ok(SeccompResponse::FileDescriptor { fd, close_on_exec: wanted.contains(OFlags::CLOEXEC) })
}

/// Opens a named pipe as soon as another process has opened its other end, unless the caller dies first.
fn open_pipe(
    directory: &OwnedFd,
    place: &SyscallPath,
    (wanted, added): (OFlags, OFlags),
    deferred: &DeferredResponse,
) -> SeccompResponse {
    let mut opened = None;
    while deferred.is_caller_waiting() {
        if opened.is_none() {
            match fs::openat(directory, &place.name, wanted | added, Mode::empty()) {
                // No process has it open for reading yet.
                Err(Errno::NXIO) => {}
                Err(errno) => return SeccompResponse::Fail(errno),
                Ok(fd) => opened = Some(fd),
            }
        }
        if let Some(fd) = opened.take() {
            let writes = wanted.intersects(OFlags::WRONLY | OFlags::RDWR);
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            let pause = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            // A reader waits for a writer: then there is data, or the end of file.
            if writes || poll(&mut fds, Some(&pause)).is_ok_and(|ready| ready > 0) {
                return to_fd_response(fd, wanted).unwrap_or_else(SeccompResponse::Fail);
            }
            opened = Some(fd);
        } else {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    SeccompResponse::Fail(Errno::INTR)
}
