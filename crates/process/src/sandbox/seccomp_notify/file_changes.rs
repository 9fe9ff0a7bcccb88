//! Changes of names and contents, and reading where that is mixed.
//!
//! Where Landlock has a grant, the call goes on in the caller.
//! Where the bounds allow what Landlock could not express, the warden does it.
//! Everything else goes on as well, to be refused by Landlock, and is reported.

use super::caller_thread::CallerThread;
use super::syscall_path::{FinalSymlink, SyscallPath};
use super::{DeferredResponse, SeccompNotification, SeccompNotifyContext, SeccompResponse};
use crate::sandbox::WithheldFileMode;
use crate::sandbox::denials::SandboxAccess;
use crate::sandbox::scan::{moves_guarded, moves_link_into_private, resolves_into};
use crate::sandbox::syscall_rules::WRITE_OPEN_FLAGS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self, AtFlags, FileType, MemfdFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use toolgate_proto::EntryKind;

/// `None` if the call is none of these.
pub(super) fn decide(
    keeps: &SeccompNotifyContext,
    target: &CallerThread,
    question: SeccompNotification,
    later: &DeferredResponse,
) -> Option<SeccompResponse> {
    let asked = FileChangeCall { context: keeps, caller: target, deferred: later };
    let (int, word) = (|index| question.int_argument(index), |index| question.argument(index));
    let here = libc::AT_FDCWD;
    let created = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    let result = match question.call {
        libc::SYS_openat => asked.open(int(0), word(1), int(2), word(3)),
        libc::SYS_mkdirat => asked.mkdir(int(0), word(1), word(2)),
        libc::SYS_unlinkat => asked.remove(int(0), word(1), int(2) & libc::AT_REMOVEDIR != 0),
        libc::SYS_renameat2 => asked.rename((int(0), word(1)), (int(2), word(3)), word(4)),
        libc::SYS_linkat => {
            asked.link((int(0), word(1)), (int(2), word(3)), int(4) & libc::AT_SYMLINK_FOLLOW != 0)
        }
        libc::SYS_symlinkat => asked.symlink(word(0), int(1), word(2)),
        libc::SYS_mknodat => asked.mknod(int(0), word(1), word(2)),
        libc::SYS_truncate => asked.truncate(word(0), word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => asked.open(here, word(0), int(1), word(2)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => asked.open(here, word(0), created, word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => asked.mkdir(here, word(0), word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir => asked.remove(here, word(0), true),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => asked.remove(here, word(0), false),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => asked.rename((here, word(0)), (here, word(1)), 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => asked.rename((int(0), word(1)), (int(2), word(3)), 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => asked.link((here, word(0)), (here, word(1)), false),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => asked.symlink(word(0), here, word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => asked.mknod(here, word(0), word(1)),
        _ => return None,
    };
    Some(result.unwrap_or_else(SeccompResponse::Fail))
}

struct FileChangeCall<'a> {
    context: &'a SeccompNotifyContext,
    caller: &'a CallerThread,
    deferred: &'a DeferredResponse,
}

impl FileChangeCall<'_> {
    /// Where a path leads, read from a caller that still waits. `None` leaves it to the kernel.
    fn resolve_argument(
        &self,
        directory: i32,
        address: u64,
        last: FinalSymlink,
    ) -> Result<Option<SyscallPath>, Errno> {
        let path = self.caller.read_path(directory, address)?;
        if !self.deferred.is_caller_waiting() {
            return Err(Errno::INTR);
        }
        Ok(SyscallPath::of(&path, last))
    }

    /// Whether the warden may act in the caller's place.
    fn may_act_for_caller(&self) -> bool {
        self.caller.is_same_user()
    }

    fn deny_write(&self, place: &SyscallPath) -> SeccompResponse {
        let inside = self.context.bounds.writable().any(|root| place.real.is_under(root));
        let access = if inside { SandboxAccess::WriteProtected } else { SandboxAccess::Write };
        self.context.record_denial(self.caller, access, &place.real);
        self.context.deny()
    }

    fn open(&self, directory: i32, address: u64, flags: i32, mode: u64) -> Result<SeccompResponse, Errno> {
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
        let native = (!changes || bounds.landlock_allows_write(&place.real))
            && (!reads || bounds.landlock_allows_read(&place.real));
        // Directories are not opened to be changed, and devices are Landlock's business.
        let pipe = place.kind == EntryKind::Special && place.is_pipe();
        if flags & libc::O_TMPFILE == libc::O_TMPFILE && !native {
            return self.open_tmpfile(&place, flags, mode);
        }
        if native || place.kind == EntryKind::Directory || place.kind == EntryKind::Special && !pipe {
            return Ok(SeccompResponse::Continue);
        }
        let missing = place.kind == EntryKind::Missing;
        if changes && !bounds.may_write(&place.real) {
            let pointless = missing && flags & libc::O_CREAT == 0 || !missing && fresh;
            return Ok(if pointless { SeccompResponse::Continue } else { self.deny_write(&place) });
        }
        if reads && !missing && !bounds.may_read(&place.real) {
            self.context.record_denial(self.caller, SandboxAccess::Read, &place.real);
            return Ok(self.context.deny());
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        let asked = OFlags::from_bits_retain(flags.cast_unsigned());
        // Without NONBLOCK a pipe put there in between would hold up the warden.
        let ours = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = self.masked_mode(mode);
        let directory = place.open_directory()?;
        if pipe && !asked.contains(OFlags::NONBLOCK) {
            let later = self.deferred.clone();
            return later.respond_on_thread(move |later| open_pipe(&directory, &place, (asked, ours), later));
        }
        let handle = fs::openat(&directory, &place.name, asked | ours, mode)?;
        to_fd_response(handle, asked)
    }

    /// A file without a name. In the system's temporary directories, where the C library makes one whatever `TMPDIR`
    /// says, the command gets one of its own temporary directory, if it can never be given a name.
    fn open_tmpfile(&self, place: &SyscallPath, flags: i32, mode: u64) -> Result<SeccompResponse, Errno> {
        let asked = OFlags::from_bits_retain(flags.cast_unsigned());
        let shared = ["/tmp", "/var/tmp"].iter().any(|path| place.real.as_path() == Path::new(path));
        match self.context.bounds.private().first() {
            Some(private) if shared && asked.contains(OFlags::EXCL) && self.may_act_for_caller() => {
                let handle =
                    fs::openat(fs::CWD, private.as_path(), asked | OFlags::CLOEXEC, self.masked_mode(mode))?;
                to_fd_response(handle, asked)
            }
            // Programs then take a file with a name.
            Some(_) | None => Err(Errno::OPNOTSUPP),
        }
    }

    /// The answer to reading what is hidden.
    fn withhold(&self, place: &SyscallPath, changes: bool, flags: i32) -> Result<SeccompResponse, Errno> {
        self.context.record_denial(self.caller, SandboxAccess::ReadHidden, &place.real);
        match self.context.withheld {
            WithheldFileMode::Empty if !changes && !self.context.bounds.is_explicitly_hidden(&place.real) => {
                let memory = fs::memfd_create("withheld", MemfdFlags::CLOEXEC)?;
                // Opened anew, for reading only: nothing can be put into it.
                let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
                let empty = fs::openat(fs::CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                Ok(SeccompResponse::Handle { handle: empty, close_on_exec: flags & libc::O_CLOEXEC != 0 })
            }
            WithheldFileMode::Empty | WithheldFileMode::Refused => Err(Errno::ACCESS),
        }
    }

    fn masked_mode(&self, mode: u64) -> Mode {
        let mode = u32::try_from(mode & 0o1777).unwrap_or(0);
        Mode::from_raw_mode(mode & !self.caller.umask())
    }

    fn mkdir(&self, directory: i32, address: u64, mode: u64) -> Result<SeccompResponse, Errno> {
        let Some(place) = self.resolve_argument(directory, address, FinalSymlink::NoFollow)? else {
            return Ok(SeccompResponse::Continue);
        };
        let bounds = &self.context.bounds;
        if place.kind != EntryKind::Missing || bounds.landlock_allows_write(&place.real) {
            return Ok(SeccompResponse::Continue);
        }
        if !bounds.may_make_directory(&place.real) {
            return Ok(self.deny_write(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        fs::mkdirat(&place.open_directory()?, &place.name, self.masked_mode(mode))?;
        Ok(SeccompResponse::Done(0))
    }

    fn remove(&self, directory: i32, address: u64, is_directory: bool) -> Result<SeccompResponse, Errno> {
        let Some(place) = self.resolve_argument(directory, address, FinalSymlink::NoFollow)? else {
            return Ok(SeccompResponse::Continue);
        };
        // Landlock asks the directory that holds the entry, so a grant on the entry itself is none.
        let native =
            place.real.parent().is_some_and(|parent| self.context.bounds.landlock_allows_write(&parent));
        if native || place.kind == EntryKind::Missing {
            return Ok(SeccompResponse::Continue);
        }
        if !self.context.bounds.may_replace(&place.real) {
            return Ok(self.deny_write(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(&place.open_directory()?, &place.name, flags)?;
        self.context.bounds.note_replaced(&place.real);
        Ok(SeccompResponse::Done(0))
    }

    fn rename(&self, from: (i32, u64), to: (i32, u64), flags: u64) -> Result<SeccompResponse, Errno> {
        let Some(old) = self.resolve_argument(from.0, from.1, FinalSymlink::NoFollow)? else {
            return Ok(self.context.deny());
        };
        let Some(new) = self.resolve_argument(to.0, to.1, FinalSymlink::NoFollow)? else {
            return Ok(self.context.deny());
        };
        let bounds = &self.context.bounds;
        let native = |place: &SyscallPath| {
            place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent))
        };
        if native(&old) && native(&new) || old.kind == EntryKind::Missing {
            return Ok(SeccompResponse::Continue);
        }
        // The command changes its own temporary directory without the supervisor, so what was looked at there may be
        // something else when it is moved. Programs then copy, as between two file systems.
        if native(&old) != native(&new) {
            return Err(Errno::XDEV);
        }
        for place in [&old, &new] {
            if !bounds.may_replace(&place.real) {
                return Ok(self.deny_write(place));
            }
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        // What lies below moves along: it must not get, or get rid of, a name that is guarded.
        let exchanges = flags & u64::from(RenameFlags::EXCHANGE.bits()) != 0;
        let moved = [(&old, &new), (&new, &old)];
        for (from, to) in moved.into_iter().take(if exchanges { 2 } else { 1 }) {
            let guarded = match from.kind {
                EntryKind::Directory => moves_guarded(&from.real, &to.real, &bounds.guard, bounds.private()),
                EntryKind::File | EntryKind::Special => {
                    moves_link_into_private(&from.real, &to.real, bounds.private())
                }
                EntryKind::Missing => false,
            };
            if guarded {
                return Ok(self.deny_write(from));
            }
        }
        let flags = RenameFlags::from_bits_retain(u32::try_from(flags & 0xffff_ffff).unwrap_or(0));
        fs::renameat_with(&old.open_directory()?, &old.name, &new.open_directory()?, &new.name, flags)?;
        bounds.note_replaced(&old.real);
        bounds.note_replaced(&new.real);
        Ok(SeccompResponse::Done(0))
    }

    fn link(&self, from: (i32, u64), to: (i32, u64), follow: bool) -> Result<SeccompResponse, Errno> {
        let last = if follow { FinalSymlink::Follow } else { FinalSymlink::NoFollow };
        let Some(old) = self.resolve_argument(from.0, from.1, last)? else { return Ok(self.context.deny()) };
        let Some(new) = self.resolve_argument(to.0, to.1, FinalSymlink::NoFollow)? else {
            return Ok(self.context.deny());
        };
        let bounds = &self.context.bounds;
        let native = |place: &SyscallPath| {
            place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent))
        };
        if native(&old) && native(&new) || old.kind == EntryKind::Missing {
            return Ok(SeccompResponse::Continue);
        }
        // The command changes its own temporary directory without the supervisor, so what was looked at there may be
        // something else when it is moved. Programs then copy, as between two file systems.
        if native(&old) != native(&new) {
            return Err(Errno::XDEV);
        }
        for place in [&old, &new] {
            if !bounds.may_replace(&place.real) {
                return Ok(self.deny_write(place));
            }
        }
        if moves_link_into_private(&old.real, &new.real, bounds.private()) {
            return Ok(self.deny_write(&new));
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        fs::linkat(&old.open_directory()?, &old.name, &new.open_directory()?, &new.name, AtFlags::empty())?;
        Ok(SeccompResponse::Done(0))
    }

    fn symlink(&self, content: u64, directory: i32, address: u64) -> Result<SeccompResponse, Errno> {
        let content = std::ffi::OsString::from_vec(self.caller.read_string(content)?);
        let Some(place) = self.resolve_argument(directory, address, FinalSymlink::NoFollow)? else {
            return Ok(SeccompResponse::Continue);
        };
        let bounds = &self.context.bounds;
        let native = place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        if native || place.kind != EntryKind::Missing {
            return Ok(SeccompResponse::Continue);
        }
        // No name is guarded in the temporary directory, so nothing in the workspace leads there.
        if !bounds.may_replace(&place.real) || resolves_into(&place.real, content.as_ref(), bounds.private())
        {
            return Ok(self.deny_write(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        fs::symlinkat(&content, &place.open_directory()?, &place.name)?;
        Ok(SeccompResponse::Done(0))
    }

    fn mknod(&self, directory: i32, address: u64, mode: u64) -> Result<SeccompResponse, Errno> {
        let Some(place) = self.resolve_argument(directory, address, FinalSymlink::NoFollow)? else {
            return Ok(SeccompResponse::Continue);
        };
        let bounds = &self.context.bounds;
        let native = place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        let kind = u32::try_from(mode & u64::from(libc::S_IFMT)).unwrap_or(0);
        let kind = if kind == 0 { FileType::RegularFile } else { FileType::from_raw_mode(kind) };
        let harmless = matches!(kind, FileType::RegularFile | FileType::Fifo | FileType::Socket);
        if native || !harmless || place.kind != EntryKind::Missing {
            return Ok(if harmless { SeccompResponse::Continue } else { SeccompResponse::Fail(Errno::PERM) });
        }
        if !bounds.may_replace(&place.real) {
            return Ok(self.deny_write(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        fs::mknodat(&place.open_directory()?, &place.name, kind, self.masked_mode(mode), 0)?;
        Ok(SeccompResponse::Done(0))
    }

    fn truncate(&self, address: u64, length: u64) -> Result<SeccompResponse, Errno> {
        let Some(place) = self.resolve_argument(libc::AT_FDCWD, address, FinalSymlink::Follow)? else {
            return Ok(SeccompResponse::Continue);
        };
        let bounds = &self.context.bounds;
        if bounds.landlock_allows_write(&place.real) || place.kind != EntryKind::File {
            return Ok(SeccompResponse::Continue);
        }
        if !bounds.may_write(&place.real) {
            return Ok(self.deny_write(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.context.deny());
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        fs::ftruncate(&fs::openat(&place.open_directory()?, &place.name, flags, Mode::empty())?, length)?;
        Ok(SeccompResponse::Done(0))
    }
}

/// The handle as the caller asked for it.
fn to_fd_response(handle: OwnedFd, asked: OFlags) -> Result<SeccompResponse, Errno> {
    if !asked.contains(OFlags::NONBLOCK) {
        fs::fcntl_setfl(&handle, fs::fcntl_getfl(&handle)? - OFlags::NONBLOCK)?;
    }
    Ok(SeccompResponse::Handle { handle, close_on_exec: asked.contains(OFlags::CLOEXEC) })
}

/// Opens a named pipe as soon as somebody has its other end, or until the caller is gone.
fn open_pipe(
    directory: &OwnedFd,
    place: &SyscallPath,
    (asked, ours): (OFlags, OFlags),
    later: &DeferredResponse,
) -> SeccompResponse {
    let mut held = None;
    while later.is_caller_waiting() {
        if held.is_none() {
            match fs::openat(directory, &place.name, asked | ours, Mode::empty()) {
                // Nobody reads yet.
                Err(Errno::NXIO) => {}
                Err(errno) => return SeccompResponse::Fail(errno),
                Ok(handle) => held = Some(handle),
            }
        }
        if let Some(handle) = held.take() {
            let writes = asked.intersects(OFlags::WRONLY | OFlags::RDWR);
            let mut fds = [PollFd::new(&handle, PollFlags::IN)];
            let pause = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            // A reader waits for a writer, whom it knows by what comes or by the end.
            if writes || poll(&mut fds, Some(&pause)).is_ok_and(|ready| ready > 0) {
                return to_fd_response(handle, asked).unwrap_or_else(SeccompResponse::Fail);
            }
            held = Some(handle);
        } else {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    SeccompResponse::Fail(Errno::INTR)
}
