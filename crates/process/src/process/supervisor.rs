//! The keeper: a process that stands between toolgate and one command, and outlives neither.
//!
//! Every process of a command descends from the keeper, and the keeper is a subreaper: a child that calls `setsid` or
//! forks twice comes back to it as an orphan, so parentage alone says what belongs to the command.
//! The keeper ends the whole tree when it is told to, and also when toolgate dies, however that happens: it holds a
//! pipe whose other end only toolgate has, and a handle on toolgate's own process.
//! It stands in a session of its own, outside the command's sandbox, where no signal of the command reaches it.
//!
//! It is not a program of its own, so that an embedding program needs no helper beside it.
//! A thread of toolgate clones a process that shares the memory and has its own stack, which costs as little as a
//! thread; a fork would copy the page tables of the whole program.
//! The price is that the keeper may not allocate, lock or panic: toolgate may have died holding the allocator's lock.
//!
//! What is not covered: a keeper that is itself killed with SIGKILL by the same user from outside the sandbox, or by
//! the kernel for want of memory.
//! Then the command's first process dies with it, and what had left its process group is orphaned.

use super::descendants::DescendantTable;
use super::exec::{ExecRequest, exec_command};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, pidfd_open, set_child_subreaper, setsid, wait,
    waitpid,
};
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Enough for a keeper: its largest buffer has 16 KiB.
const STACK_BYTES: usize = 128 * 1024;
const PAGE_BYTES: usize = 4096;

/// What a keeper is handed.
pub(super) struct SupervisorArgs {
    pub(super) exec: ExecRequest,
    /// The read end of the lifeline.
    pub(super) lifeline: OwnedFd,
    /// The write end of what the keeper tells.
    pub(super) status: OwnedFd,
    /// Which process must live for the command to live.
    pub(super) parent_pid: i32,
    pub(super) descendants: DescendantTable,
    /// The stack of the command's process until it is executed.
    stack_top: AtomicPtr<c_void>,
    /// Where that process stopped, if it could not be executed: the step, and the error number.
    pub(super) failure: AtomicU64,
}

/// What a keeper tells, in order: `Started` or `Failed`, then `CommandWaitOutcome`, or `Exited` and later `AllExited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorMessage {
    /// The command runs, as this process.
    Started { pid: i32 },
    /// It could not be started.
    Failed { step: i32, errno: i32 },
    /// Its first process ended, with this wait status; others of it live on.
    Exited { status: i32 },
    /// Its first process ended, with this wait status, and it was the last.
    Ended { status: i32 },
    /// Every process of it has ended.
    Gone,
}

impl SupervisorMessage {
    pub(super) const BYTES: usize = 12;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let (tag, a, b) = match self {
            Self::Started { pid } => (1, pid, 0),
            Self::Failed { step, errno } => (2, step, errno),
            Self::Exited { status } => (3, status, 0),
            Self::Gone => (4, 0, 0),
            Self::Ended { status } => (5, status, 0),
        };
        let mut out = [0; Self::BYTES];
        for (chunk, value) in out.chunks_exact_mut(4).zip([tag, a, b]) {
            chunk.copy_from_slice(&i32::to_ne_bytes(value));
        }
        out
    }

    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut values = bytes.chunks_exact(4).map(|chunk| chunk.try_into().map(i32::from_ne_bytes));
        let mut next = || values.next()?.ok();
        match (next()?, next()?, next()?) {
            (1, pid, _) => Some(Self::Started { pid }),
            (2, step, errno) => Some(Self::Failed { step, errno }),
            (3, status, _) => Some(Self::Exited { status }),
            (4, _, _) => Some(Self::Gone),
            (5, status, _) => Some(Self::Ended { status }),
            _ => None,
        }
    }
}

/// What toolgate says over the lifeline: end it, after this many milliseconds of grace.
pub(super) fn stop_message(grace_millis: u32) -> [u8; 4] {
    grace_millis.to_ne_bytes()
}

/// Memory for two stacks, with a page between them that may not be touched.
struct CloneStacks {
    base: *mut c_void,
}

impl CloneStacks {
    const BYTES: usize = 2 * (STACK_BYTES + PAGE_BYTES);

    #[expect(unsafe_code, reason = "a cloned process needs a stack of its own")]
    fn new() -> io::Result<Self> {
        // SAFETY: a fresh private mapping, of which nothing else knows; the guard pages lie inside it.
        unsafe {
            let base = mmap_anonymous(
                null_mut(),
                Self::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?;
            let stacks = Self { base };
            mprotect(base, PAGE_BYTES, MprotectFlags::empty())?;
            mprotect(base.byte_add(STACK_BYTES + PAGE_BYTES), PAGE_BYTES, MprotectFlags::empty())?;
            Ok(stacks)
        }
    }

    #[expect(unsafe_code, reason = "pointers into the mapping")]
    fn tops(&self) -> (*mut c_void, *mut c_void) {
        // SAFETY: both lie inside the mapping, or one past its end, and are aligned to pages.
        unsafe { (self.base.byte_add(STACK_BYTES + PAGE_BYTES), self.base.byte_add(Self::BYTES)) }
    }
}

impl Drop for CloneStacks {
    #[expect(unsafe_code, reason = "gives the stacks back")]
    fn drop(&mut self) {
        // SAFETY: the keeper has ended, and the command's process was executed or has ended before it.
        let _ = unsafe { munmap(self.base, Self::BYTES) };
    }
}

impl SupervisorArgs {
    pub(super) fn new(exec: ExecRequest, lifeline: OwnedFd, status: OwnedFd) -> Self {
        Self {
            exec,
            lifeline,
            status,
            parent_pid: getpid().as_raw_nonzero().get(),
            descendants: DescendantTable::new(),
            stack_top: AtomicPtr::new(null_mut()),
            failure: AtomicU64::new(0),
        }
    }
}

/// Clones a keeper for a command and returns when the keeper has ended.
///
/// Must be called on a thread that does nothing else: until then the keeper uses this thread's thread-local storage.
#[expect(unsafe_code, reason = "clone has no safe form")]
pub(super) fn run_supervisor(mut charge: SupervisorArgs) -> io::Result<()> {
    let stacks = CloneStacks::new()?;
    let (keeper_top, child_top) = stacks.tops();
    *charge.stack_top.get_mut() = child_top;
    block_signals();
    let charge = Box::into_raw(Box::new(charge));
    // SAFETY: `keeper` gets a stack of its own that outlives it, and `charge` stays where it is until the keeper has
    // ended. It shares this program's memory but allocates nothing and takes no lock. All signals are blocked on
    // this thread and so in the keeper: no handler of this program runs there.
    let pid =
        unsafe { libc::clone(supervisor_main, keeper_top, libc::CLONE_VM | libc::SIGCHLD, charge.cast()) };
    let failed = (pid < 0).then(io::Error::last_os_error);
    if failed.is_none() {
        close_pipe_ends(charge);
        if let Some(pid) = Pid::from_raw(pid) {
            while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(Errno::INTR)) {}
        }
    }
    // SAFETY: made by `Box::into_raw` above; the keeper has ended or never was.
    let charge = unsafe { Box::from_raw(charge) };
    match failed {
        Some(error) => Err(error),
        None => {
            // Its handles were closed above.
            let SupervisorArgs { exec: launch, lifeline, status, .. } = *charge;
            launch.forget_fds();
            forget_fd(lifeline);
            forget_fd(status);
            Ok(())
        }
    }
}

/// The keeper has its own copy of the table of open files: what it holds need not stay open here, and must not, or
/// the ends of the pipes would never be seen.
#[expect(unsafe_code, reason = "closes what is owned elsewhere, once")]
fn close_pipe_ends(charge: *const SupervisorArgs) {
    // SAFETY: the charge is alive, and its handles are forgotten, not dropped, after this.
    let charge = unsafe { &*charge };
    let ends = charge.exec.raw_fds().into_iter().flatten();
    for end in ends.chain([raw_fd(&charge.lifeline), raw_fd(&charge.status)]) {
        // SAFETY: as above.
        drop(unsafe { OwnedFd::from_raw_fd(end) });
    }
}

fn forget_fd(handle: OwnedFd) {
    use std::os::fd::IntoRawFd;
    let _ = handle.into_raw_fd();
}

fn raw_fd(handle: &OwnedFd) -> RawFd {
    use std::os::fd::AsRawFd;
    handle.as_raw_fd()
}

#[expect(unsafe_code, reason = "signal masks have no safe form")]
fn block_signals() {
    // SAFETY: the set is filled in before it is used.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, null_mut());
    }
}

/// The keeper's whole life. INVARIANT: nothing in it allocates, locks or panics.
#[expect(unsafe_code, reason = "the start of a cloned process")]
extern "C" fn supervisor_main(charge: *mut c_void) -> c_int {
    // SAFETY: `keep` handed over a charge that stays alive; only the keeper changes it.
    let charge = unsafe { &mut *charge.cast::<SupervisorArgs>() };
    // Out of toolgate's group, so that a signal to that group does not end the one who must clean up.
    let _ = setsid();
    let _ = rustix::thread::set_name(c"toolgate-keeper");
    let _ = set_child_subreaper(Some(getpid()));
    close_inherited_fds(charge);
    let parent = getppid().and_then(|parent| {
        (parent.as_raw_nonzero().get() == charge.parent_pid).then(|| pidfd_open(parent, PidfdFlags::empty()))
    });
    let Some(parent) = parent else { return 1 };
    let children = match open_child_signalfd() {
        Ok(children) => children,
        Err(errno) => {
            send_message(charge, SupervisorMessage::Failed { step: 0, errno: errno.raw_os_error() });
            return 1;
        }
    };
    let Some(pid) = start_command(charge) else { return 1 };
    send_message(charge, SupervisorMessage::Started { pid });
    charge.exec.close_fds();
    supervise(charge, pid, &children, parent.as_ref().ok());
    0
}

/// Starts the command. The keeper waits until it is executed, as after `vfork`.
#[expect(unsafe_code, reason = "clone has no safe form")]
fn start_command(charge: &mut SupervisorArgs) -> Option<i32> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD | charge.exec.clone_flags();
    let stack = *charge.stack_top.get_mut();
    // SAFETY: the child has its own stack, shares memory only while the keeper is suspended, and `enter` does
    // nothing but system calls on what was prepared.
    let pid = unsafe { libc::clone(child_main, stack, flags, (&raw mut *charge).cast()) };
    let failure = charge.failure.load(Ordering::Relaxed);
    if pid < 0 {
        send_message(charge, SupervisorMessage::Failed { step: 0, errno: Errno::AGAIN.raw_os_error() });
        return None;
    }
    if failure != 0 {
        let _ = waitpid(Pid::from_raw(pid), WaitOptions::empty());
        let (step, errno) = (failure >> 32, failure & 0xffff_ffff);
        let number = |value: u64| i32::try_from(value).unwrap_or(0);
        send_message(charge, SupervisorMessage::Failed { step: number(step), errno: number(errno) });
        return None;
    }
    Some(pid)
}

#[expect(unsafe_code, reason = "the start of a cloned process")]
extern "C" fn child_main(charge: *mut c_void) -> c_int {
    // SAFETY: the keeper waits while this runs, and nobody else has the charge.
    let charge = unsafe { &*charge.cast::<SupervisorArgs>() };
    let (step, errno) = exec_command(&charge.exec);
    let step = u64::try_from(step).unwrap_or(1);
    let errno = u64::try_from(errno).unwrap_or(0);
    charge.failure.store(step << 32 | errno, Ordering::Relaxed);
    127
}

/// Waits for the end of the command, or for the order to end it.
fn supervise(charge: &mut SupervisorArgs, shell: i32, children: &OwnedFd, parent: Option<&OwnedFd>) {
    let me = getpid().as_raw_nonzero().get();
    let mut end = TerminationState::NotRequested;
    let mut rounds: i64 = 0;
    loop {
        let mut exited = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == shell => {
                    exited = Some(status.as_raw());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => {
                    send_message(
                        charge,
                        exited.map_or(SupervisorMessage::Gone, |status| SupervisorMessage::Ended { status }),
                    );
                    return;
                }
            }
        }
        if let Some(status) = exited {
            send_message(charge, SupervisorMessage::Exited { status });
        }
        let timeout = match end {
            TerminationState::NotRequested => None,
            TerminationState::GraceUntil(deadline) => Some(deadline.saturating_sub(now_millis())),
            TerminationState::Killing => {
                rounds += 1;
                // What is stopped cannot fork, so the second signal meets all of them.
                for _ in 0..16 {
                    let stopped = charge.descendants.signal(me, Signal::STOP);
                    if stopped == charge.descendants.signal(me, Signal::KILL) {
                        break;
                    }
                }
                Some(rounds.min(20))
            }
        };
        let timeout =
            timeout.map(|millis| Timespec { tv_sec: millis / 1000, tv_nsec: (millis % 1000) * 1_000_000 });
        let parent_fd = parent.map_or(charge.lifeline.as_fd(), AsFd::as_fd);
        let mut fds = [
            PollFd::from_borrowed_fd(children.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(parent_fd, PollFlags::IN),
            PollFd::from_borrowed_fd(charge.lifeline.as_fd(), PollFlags::IN),
        ];
        // With nothing more to learn, only the children matter.
        let watched = if end == TerminationState::Killing { &mut fds[..1] } else { &mut fds[..] };
        let _ = poll(watched, timeout.as_ref());
        let [_, parent_fd, lifeline] = fds.map(|fd| !fd.revents().is_empty());
        drain_signalfd(children.as_fd());
        match end {
            TerminationState::Killing => {}
            TerminationState::NotRequested | TerminationState::GraceUntil(_)
                if parent.is_some() && parent_fd =>
            {
                end = TerminationState::Killing
            }
            TerminationState::NotRequested | TerminationState::GraceUntil(_) if lifeline => {
                let mut message = [0u8; 4];
                match read(&charge.lifeline, &mut message[..]) {
                    Ok(4) => {
                        charge.descendants.signal(me, Signal::TERM);
                        // A stopped process acts on the signal only when it goes on.
                        charge.descendants.signal(me, Signal::CONT);
                        end = TerminationState::GraceUntil(
                            now_millis() + i64::from(u32::from_ne_bytes(message)),
                        );
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Ok(_) | Err(_) => end = TerminationState::Killing,
                }
            }
            TerminationState::GraceUntil(deadline) if now_millis() >= deadline => {
                end = TerminationState::Killing
            }
            TerminationState::NotRequested | TerminationState::GraceUntil(_) => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TerminationState {
    NotRequested,
    GraceUntil(i64),
    Killing,
}

fn now_millis() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.saturating_mul(1000) + now.tv_nsec / 1_000_000
}

fn send_message(charge: &SupervisorArgs, word: SupervisorMessage) {
    // Nobody to tell means that toolgate is gone, which the lifeline says as well.
    let _ = write(&charge.status, &word.to_bytes());
}

/// Closes every handle that was copied from toolgate and is not needed here.
fn close_inherited_fds(charge: &SupervisorArgs) {
    let mut keep = [0; 10];
    let mine = charge.exec.raw_fds().into_iter().flatten();
    let mine = mine.chain([raw_fd(&charge.lifeline), raw_fd(&charge.status)]);
    let mut count = 0;
    for (slot, fd) in keep.iter_mut().zip(mine) {
        *slot = fd;
        count += 1;
    }
    let Some(keep) = keep.get_mut(..count) else { return };
    keep.sort_unstable();
    let mut from: u32 = 0;
    for fd in keep.iter().filter_map(|fd| u32::try_from(*fd).ok()) {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = fd + 1;
    }
    close_range(from, u32::MAX);
}

#[expect(unsafe_code, reason = "closes handles by number")]
fn close_range(first: u32, last: u32) {
    // SAFETY: the keeper's table is its own; nothing in it but the kept handles is used again.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if done != 0 {
        for fd in first..=last.min(4096) {
            // SAFETY: as above.
            unsafe { libc::close(fd.cast_signed()) };
        }
    }
}

/// A handle that is readable when a child has changed its state.
#[expect(unsafe_code, reason = "signalfd has no safe form")]
fn open_child_signalfd() -> Result<OwnedFd, Errno> {
    // SAFETY: plain values; the disposition is this process's own, because the clone did not share it.
    let fd = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut child = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut child);
        libc::sigaddset(&raw mut child, libc::SIGCHLD);
        libc::signalfd(-1, &raw const child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(Errno::MFILE);
    }
    // SAFETY: just made, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn drain_signalfd(children: BorrowedFd<'_>) {
    let mut record = [0u8; 128];
    while read(children, &mut record[..]).is_ok_and(|length| length > 0) {}
}
