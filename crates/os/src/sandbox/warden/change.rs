//! Changes of names and contents, and reading where that is mixed.
//!
//! Where Landlock has a grant, the call goes on in the caller.
//! Where the bounds allow what Landlock could not express, the warden does it.
//! Everything else goes on as well, to be refused by Landlock, and is reported.

use super::place::{Last, Place};
use super::target::Target;
use super::{Answer, Later, Question, SeccompNotifyContext};
use crate::sandbox::WithheldFileMode;
use crate::sandbox::calls::WRITE_OPEN_FLAGS;
use crate::sandbox::refused::Access;
use crate::sandbox::scan::{moves_guarded, moves_link_into_private, resolves_into};
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
    target: &Target,
    question: Question,
    later: &Later,
) -> Option<Answer> {
    let asked = Asked { keeps, target, later };
    let (int, word) = (|index| question.int(index), |index| question.word(index));
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
    Some(result.unwrap_or_else(Answer::Fail))
}

struct Asked<'a> {
    keeps: &'a SeccompNotifyContext,
    target: &'a Target,
    later: &'a Later,
}

impl Asked<'_> {
    /// Where a path leads, read from a caller that still waits. `None` leaves it to the kernel.
    fn place(&self, directory: i32, address: u64, last: Last) -> Result<Option<Place>, Errno> {
        let path = self.target.path(directory, address)?;
        if !self.later.waits() {
            return Err(Errno::INTR);
        }
        Ok(Place::of(&path, last))
    }

    /// Whether the warden may act in the caller's place.
    fn may_act_for_caller(&self) -> bool {
        self.target.is_same_user()
    }

    fn refuse(&self, place: &Place) -> Answer {
        let inside = self.keeps.bounds.writable().any(|root| place.real.is_under(root));
        let access = if inside { Access::WriteProtected } else { Access::Write };
        self.keeps.refuse(self.target, access, &place.real);
        self.keeps.no()
    }

    fn open(&self, directory: i32, address: u64, flags: i32, mode: u64) -> Result<Answer, Errno> {
        let fresh = flags & (libc::O_CREAT | libc::O_EXCL) == libc::O_CREAT | libc::O_EXCL;
        let last = if fresh || flags & libc::O_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        let Some(place) = self.place(directory, address, last)? else { return Ok(Answer::Go) };
        let bounds = &self.keeps.bounds;
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
            return Ok(Answer::Go);
        }
        let missing = place.kind == EntryKind::Missing;
        if changes && !bounds.may_write(&place.real) {
            let pointless = missing && flags & libc::O_CREAT == 0 || !missing && fresh;
            return Ok(if pointless { Answer::Go } else { self.refuse(&place) });
        }
        if reads && !missing && !bounds.may_read(&place.real) {
            self.keeps.refuse(self.target, Access::Read, &place.real);
            return Ok(self.keeps.no());
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
        }
        let asked = OFlags::from_bits_retain(flags.cast_unsigned());
        // Without NONBLOCK a pipe put there in between would hold up the warden.
        let ours = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::NONBLOCK;
        let mode = self.mode(mode);
        let directory = place.directory()?;
        if pipe && !asked.contains(OFlags::NONBLOCK) {
            let later = self.later.clone();
            return later.answer(move |later| open_pipe(&directory, &place, (asked, ours), later));
        }
        let handle = fs::openat(&directory, &place.name, asked | ours, mode)?;
        hand(handle, asked)
    }

    /// A file without a name. In the system's temporary directories, where the C library makes one whatever `TMPDIR`
    /// says, the command gets one of its own temporary directory, if it can never be given a name.
    fn open_tmpfile(&self, place: &Place, flags: i32, mode: u64) -> Result<Answer, Errno> {
        let asked = OFlags::from_bits_retain(flags.cast_unsigned());
        let shared = ["/tmp", "/var/tmp"].iter().any(|path| place.real.as_path() == Path::new(path));
        match self.keeps.bounds.private().first() {
            Some(private) if shared && asked.contains(OFlags::EXCL) && self.may_act_for_caller() => {
                let handle =
                    fs::openat(fs::CWD, private.as_path(), asked | OFlags::CLOEXEC, self.mode(mode))?;
                hand(handle, asked)
            }
            // Programs then take a file with a name.
            Some(_) | None => Err(Errno::OPNOTSUPP),
        }
    }

    /// The answer to reading what is hidden.
    fn withhold(&self, place: &Place, changes: bool, flags: i32) -> Result<Answer, Errno> {
        self.keeps.refuse(self.target, Access::ReadHidden, &place.real);
        match self.keeps.withheld {
            WithheldFileMode::Empty if !changes && !self.keeps.bounds.is_explicitly_hidden(&place.real) => {
                let memory = fs::memfd_create("withheld", MemfdFlags::CLOEXEC)?;
                // Opened anew, for reading only: nothing can be put into it.
                let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
                let empty = fs::openat(fs::CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                Ok(Answer::Handle { handle: empty, close_on_exec: flags & libc::O_CLOEXEC != 0 })
            }
            WithheldFileMode::Empty | WithheldFileMode::Refused => Err(Errno::ACCESS),
        }
    }

    fn mode(&self, mode: u64) -> Mode {
        let mode = u32::try_from(mode & 0o1777).unwrap_or(0);
        Mode::from_raw_mode(mode & !self.target.umask())
    }

    fn mkdir(&self, directory: i32, address: u64, mode: u64) -> Result<Answer, Errno> {
        let Some(place) = self.place(directory, address, Last::Keep)? else { return Ok(Answer::Go) };
        let bounds = &self.keeps.bounds;
        if place.kind != EntryKind::Missing || bounds.landlock_allows_write(&place.real) {
            return Ok(Answer::Go);
        }
        if !bounds.may_make_directory(&place.real) {
            return Ok(self.refuse(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
        }
        fs::mkdirat(&place.directory()?, &place.name, self.mode(mode))?;
        Ok(Answer::Done(0))
    }

    fn remove(&self, directory: i32, address: u64, is_directory: bool) -> Result<Answer, Errno> {
        let Some(place) = self.place(directory, address, Last::Keep)? else { return Ok(Answer::Go) };
        // Landlock asks the directory that holds the entry, so a grant on the entry itself is none.
        let native =
            place.real.parent().is_some_and(|parent| self.keeps.bounds.landlock_allows_write(&parent));
        if native || place.kind == EntryKind::Missing {
            return Ok(Answer::Go);
        }
        if !self.keeps.bounds.may_replace(&place.real) {
            return Ok(self.refuse(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
        }
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(&place.directory()?, &place.name, flags)?;
        self.keeps.bounds.note_replaced(&place.real);
        Ok(Answer::Done(0))
    }

    fn rename(&self, from: (i32, u64), to: (i32, u64), flags: u64) -> Result<Answer, Errno> {
        let Some(old) = self.place(from.0, from.1, Last::Keep)? else { return Ok(self.keeps.no()) };
        let Some(new) = self.place(to.0, to.1, Last::Keep)? else { return Ok(self.keeps.no()) };
        let bounds = &self.keeps.bounds;
        let native =
            |place: &Place| place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        if native(&old) && native(&new) || old.kind == EntryKind::Missing {
            return Ok(Answer::Go);
        }
        // The command changes its own temporary directory without the supervisor, so what was looked at there may be
        // something else when it is moved. Programs then copy, as between two file systems.
        if native(&old) != native(&new) {
            return Err(Errno::XDEV);
        }
        for place in [&old, &new] {
            if !bounds.may_replace(&place.real) {
                return Ok(self.refuse(place));
            }
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
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
                return Ok(self.refuse(from));
            }
        }
        let flags = RenameFlags::from_bits_retain(u32::try_from(flags & 0xffff_ffff).unwrap_or(0));
        fs::renameat_with(&old.directory()?, &old.name, &new.directory()?, &new.name, flags)?;
        bounds.note_replaced(&old.real);
        bounds.note_replaced(&new.real);
        Ok(Answer::Done(0))
    }

    fn link(&self, from: (i32, u64), to: (i32, u64), follow: bool) -> Result<Answer, Errno> {
        let last = if follow { Last::Follow } else { Last::Keep };
        let Some(old) = self.place(from.0, from.1, last)? else { return Ok(self.keeps.no()) };
        let Some(new) = self.place(to.0, to.1, Last::Keep)? else { return Ok(self.keeps.no()) };
        let bounds = &self.keeps.bounds;
        let native =
            |place: &Place| place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        if native(&old) && native(&new) || old.kind == EntryKind::Missing {
            return Ok(Answer::Go);
        }
        // The command changes its own temporary directory without the supervisor, so what was looked at there may be
        // something else when it is moved. Programs then copy, as between two file systems.
        if native(&old) != native(&new) {
            return Err(Errno::XDEV);
        }
        for place in [&old, &new] {
            if !bounds.may_replace(&place.real) {
                return Ok(self.refuse(place));
            }
        }
        if moves_link_into_private(&old.real, &new.real, bounds.private()) {
            return Ok(self.refuse(&new));
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
        }
        fs::linkat(&old.directory()?, &old.name, &new.directory()?, &new.name, AtFlags::empty())?;
        Ok(Answer::Done(0))
    }

    fn symlink(&self, content: u64, directory: i32, address: u64) -> Result<Answer, Errno> {
        let content = std::ffi::OsString::from_vec(self.target.text(content)?);
        let Some(place) = self.place(directory, address, Last::Keep)? else { return Ok(Answer::Go) };
        let bounds = &self.keeps.bounds;
        let native = place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        if native || place.kind != EntryKind::Missing {
            return Ok(Answer::Go);
        }
        // No name is guarded in the temporary directory, so nothing in the workspace leads there.
        if !bounds.may_replace(&place.real) || resolves_into(&place.real, content.as_ref(), bounds.private())
        {
            return Ok(self.refuse(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
        }
        fs::symlinkat(&content, &place.directory()?, &place.name)?;
        Ok(Answer::Done(0))
    }

    fn mknod(&self, directory: i32, address: u64, mode: u64) -> Result<Answer, Errno> {
        let Some(place) = self.place(directory, address, Last::Keep)? else { return Ok(Answer::Go) };
        let bounds = &self.keeps.bounds;
        let native = place.real.parent().is_some_and(|parent| bounds.landlock_allows_write(&parent));
        let kind = u32::try_from(mode & u64::from(libc::S_IFMT)).unwrap_or(0);
        let kind = if kind == 0 { FileType::RegularFile } else { FileType::from_raw_mode(kind) };
        let harmless = matches!(kind, FileType::RegularFile | FileType::Fifo | FileType::Socket);
        if native || !harmless || place.kind != EntryKind::Missing {
            return Ok(if harmless { Answer::Go } else { Answer::Fail(Errno::PERM) });
        }
        if !bounds.may_replace(&place.real) {
            return Ok(self.refuse(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
        }
        fs::mknodat(&place.directory()?, &place.name, kind, self.mode(mode), 0)?;
        Ok(Answer::Done(0))
    }

    fn truncate(&self, address: u64, length: u64) -> Result<Answer, Errno> {
        let Some(place) = self.place(libc::AT_FDCWD, address, Last::Follow)? else { return Ok(Answer::Go) };
        let bounds = &self.keeps.bounds;
        if bounds.landlock_allows_write(&place.real) || place.kind != EntryKind::File {
            return Ok(Answer::Go);
        }
        if !bounds.may_write(&place.real) {
            return Ok(self.refuse(&place));
        }
        if !self.may_act_for_caller() {
            return Ok(self.keeps.no());
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        fs::ftruncate(&fs::openat(&place.directory()?, &place.name, flags, Mode::empty())?, length)?;
        Ok(Answer::Done(0))
    }
}

/// The handle as the caller asked for it.
fn hand(handle: OwnedFd, asked: OFlags) -> Result<Answer, Errno> {
    if !asked.contains(OFlags::NONBLOCK) {
        fs::fcntl_setfl(&handle, fs::fcntl_getfl(&handle)? - OFlags::NONBLOCK)?;
    }
    Ok(Answer::Handle { handle, close_on_exec: asked.contains(OFlags::CLOEXEC) })
}

/// Opens a named pipe as soon as somebody has its other end, or until the caller is gone.
fn open_pipe(directory: &OwnedFd, place: &Place, (asked, ours): (OFlags, OFlags), later: &Later) -> Answer {
    let mut held = None;
    while later.waits() {
        if held.is_none() {
            match fs::openat(directory, &place.name, asked | ours, Mode::empty()) {
                // Nobody reads yet.
                Err(Errno::NXIO) => {}
                Err(errno) => return Answer::Fail(errno),
                Ok(handle) => held = Some(handle),
            }
        }
        if let Some(handle) = held.take() {
            let writes = asked.intersects(OFlags::WRONLY | OFlags::RDWR);
            let mut fds = [PollFd::new(&handle, PollFlags::IN)];
            let pause = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            // A reader waits for a writer, whom it knows by what comes or by the end.
            if writes || poll(&mut fds, Some(&pause)).is_ok_and(|ready| ready > 0) {
                return hand(handle, asked).unwrap_or_else(Answer::Fail);
            }
            held = Some(handle);
        } else {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    Answer::Fail(Errno::INTR)
}
