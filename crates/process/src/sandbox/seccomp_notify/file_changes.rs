//! System calls that change names and contents of files, and those that open files in trees with hidden files.
//!
//! A call that the Landlock rules grant continues in the caller.
//! A call that the profile allows and Landlock cannot express, the handler makes on behalf of the caller.
//! Every other call continues as well, so that Landlock refuses it, and is recorded as a denial.

use super::caller_thread::CallerThread;
use super::syscall_path::{FinalSymlink, SyscallPath};
use super::{DeferredResponse, SeccompNotification, SeccompNotifyContext, SeccompResponse};
use crate::sandbox::denials::SandboxAccess;
use crate::sandbox::scan::{moves_guarded, moves_link_into_private, resolves_into};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::os::unix::ffi::OsStringExt;
use toolgate_proto::EntryKind;

/// `None` if the call is none of these.
pub(super) fn decide_file_change(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    notification: SeccompNotification,
    deferred: &DeferredResponse,
) -> Option<SeccompResponse> {
    let call = FileChangeCall { context, caller, deferred };
    let (int, word) = (|index| notification.int_argument(index), |index| notification.argument(index));
    let here = libc::AT_FDCWD;
    let created = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    let result = match notification.call {
        libc::SYS_openat => call.open(int(0), word(1), int(2), word(3)),
        libc::SYS_mkdirat => call.mkdir(int(0), word(1), word(2)),
        libc::SYS_unlinkat => call.remove(int(0), word(1), int(2) & libc::AT_REMOVEDIR != 0),
        libc::SYS_renameat2 => call.rename((int(0), word(1)), (int(2), word(3)), word(4)),
        libc::SYS_linkat => {
            call.link((int(0), word(1)), (int(2), word(3)), int(4) & libc::AT_SYMLINK_FOLLOW != 0)
        }
        libc::SYS_symlinkat => call.symlink(word(0), int(1), word(2)),
        libc::SYS_mknodat => call.mknod(int(0), word(1), word(2)),
        libc::SYS_truncate => call.truncate(word(0), word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => call.open(here, word(0), int(1), word(2)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => call.open(here, word(0), created, word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => call.mkdir(here, word(0), word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir => call.remove(here, word(0), true),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => call.remove(here, word(0), false),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => call.rename((here, word(0)), (here, word(1)), 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => call.rename((int(0), word(1)), (int(2), word(3)), 0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => call.link((here, word(0)), (here, word(1)), false),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => call.symlink(word(0), here, word(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => call.mknod(here, word(0), word(1)),
        _ => return None,
    };
    Some(result.unwrap_or_else(SeccompResponse::Fail))
}

/// One such system call.
pub(super) struct FileChangeCall<'a> {
    pub(super) context: &'a SeccompNotifyContext,
    pub(super) caller: &'a CallerThread,
    /// For responses that may block, and for checking that the caller still waits.
    pub(super) deferred: &'a DeferredResponse,
}

impl FileChangeCall<'_> {
    /// Resolves a path argument of a caller that still waits. `None` leaves the call to the kernel.
    pub(super) fn resolve_argument(
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

    /// Whether the handler may act on behalf of the caller.
    pub(super) fn may_act_for_caller(&self) -> bool {
        self.caller.is_same_user()
    }

    /// Records a refused change, and refuses it.
    pub(super) fn deny_write(&self, place: &SyscallPath) -> SeccompResponse {
        let inside = self.context.bounds.writable().any(|root| place.real.is_under(root));
        let access = if inside { SandboxAccess::WriteProtected } else { SandboxAccess::Write };
        self.context.record_denial(self.caller, access, &place.real);
        self.context.deny()
    }

    /// The mode of a new file: without the bits of the caller's umask, and without set-user-ID and set-group-ID.
    pub(super) fn masked_mode(&self, mode: u64) -> Mode {
        let mode = u32::try_from(mode & 0o1777).unwrap_or(0);
        Mode::from_raw_mode(mode & !self.caller.umask())
    }

    /// `mkdir`: also creates the parents of an entry that may be written.
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

    /// `unlink` and `rmdir`.
    fn remove(&self, directory: i32, address: u64, is_directory: bool) -> Result<SeccompResponse, Errno> {
        let Some(place) = self.resolve_argument(directory, address, FinalSymlink::NoFollow)? else {
            return Ok(SeccompResponse::Continue);
        };
        // Landlock checks the parent directory for a removal, not the entry itself.
        let by_landlock =
            place.real.parent().is_some_and(|parent| self.context.bounds.landlock_allows_write(&parent));
        if by_landlock || place.kind == EntryKind::Missing {
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

    /// `rename`: both paths must be replaceable, and no protected name may be gained or lost below them.
    fn rename(&self, from: (i32, u64), to: (i32, u64), flags: u64) -> Result<SeccompResponse, Errno> {
        let Some(old) = self.resolve_argument(from.0, from.1, FinalSymlink::NoFollow)? else {
            return Ok(self.context.deny());
        };
        let Some(new) = self.resolve_argument(to.0, to.1, FinalSymlink::NoFollow)? else {
            return Ok(self.context.deny());
        };
        let bounds = &self.context.bounds;
        let by_landlock = |place: &SyscallPath| {
            place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent))
        };
        if by_landlock(&old) && by_landlock(&new) || old.kind == EntryKind::Missing {
            return Ok(SeccompResponse::Continue);
        }
        // The command changes its private directory without the handler, so that an entry there may be replaced between
        // the check and the move. Programs then copy, as between two file systems.
        if by_landlock(&old) != by_landlock(&new) {
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
        // The entries below move as well: none of them may gain or lose a protected name.
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

    /// `link`: a hard link of a protected file would make it writable under another name.
    fn link(&self, from: (i32, u64), to: (i32, u64), follow: bool) -> Result<SeccompResponse, Errno> {
        let last = if follow { FinalSymlink::Follow } else { FinalSymlink::NoFollow };
        let Some(old) = self.resolve_argument(from.0, from.1, last)? else { return Ok(self.context.deny()) };
        let Some(new) = self.resolve_argument(to.0, to.1, FinalSymlink::NoFollow)? else {
            return Ok(self.context.deny());
        };
        let bounds = &self.context.bounds;
        let by_landlock = |place: &SyscallPath| {
            place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent))
        };
        if by_landlock(&old) && by_landlock(&new) || old.kind == EntryKind::Missing {
            return Ok(SeccompResponse::Continue);
        }
        // The command changes its private directory without the handler, so that an entry there may be replaced between
        // the check and the move. Programs then copy, as between two file systems.
        if by_landlock(&old) != by_landlock(&new) {
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

    /// `symlink`: its content is read once, and checked against the private directories.
    fn symlink(&self, content: u64, directory: i32, address: u64) -> Result<SeccompResponse, Errno> {
        let content = std::ffi::OsString::from_vec(self.caller.read_string(content)?);
        let Some(place) = self.resolve_argument(directory, address, FinalSymlink::NoFollow)? else {
            return Ok(SeccompResponse::Continue);
        };
        let bounds = &self.context.bounds;
        let by_landlock = place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        if by_landlock || place.kind != EntryKind::Missing {
            return Ok(SeccompResponse::Continue);
        }
        // Rules by name do not apply in the private directory, so no symlink of the workspace may point there.
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

    /// `mknod`: named pipes, sockets and empty files; never devices.
    fn mknod(&self, directory: i32, address: u64, mode: u64) -> Result<SeccompResponse, Errno> {
        let Some(place) = self.resolve_argument(directory, address, FinalSymlink::NoFollow)? else {
            return Ok(SeccompResponse::Continue);
        };
        let bounds = &self.context.bounds;
        let by_landlock = place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        let kind = u32::try_from(mode & u64::from(libc::S_IFMT)).unwrap_or(0);
        let kind = if kind == 0 { FileType::RegularFile } else { FileType::from_raw_mode(kind) };
        let harmless = matches!(kind, FileType::RegularFile | FileType::Fifo | FileType::Socket);
        if by_landlock || !harmless || place.kind != EntryKind::Missing {
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

    /// `truncate` by path; `ftruncate` needs an open file, which was checked when it was opened.
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
