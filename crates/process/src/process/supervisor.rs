//! The supervisor: a process between toolgate and one program, which owns every process of that program.
//!
//! Every process of the program descends from the supervisor, and the supervisor is a subreaper: a child that calls
//! `setsid` or forks twice is reparented to it, so that parentage alone says what belongs to the program.
//! The supervisor ends the whole tree when toolgate asks for it, and also when toolgate dies, by whatever signal: it
//! holds the read end of a pipe (the lifeline) whose write end only toolgate has, and a pidfd of toolgate's process.
//! It runs in a session of its own, outside the program's sandbox, where no signal of the program reaches it.
//!
//! It is not a separate executable, so that a program that embeds toolgate needs no helper installed beside it.
//! A thread of toolgate clones a process that shares the memory and has its own stack, which costs as little as a
//! thread; a fork would copy the page tables of the whole program.
//! The price is that the supervisor must not allocate, lock or panic: toolgate may have died while one of its threads
//! held the allocator's lock.
//!
//! Not covered: a supervisor that is itself killed with SIGKILL by the same user from outside the sandbox, or by the
//! kernel's OOM killer.
//! Then the program's first process dies with it, and the processes that had left its process group are orphaned.

use super::exec::{ExecFailure, ExecRequest, ExecStep, exec_program, last_errno};
use super::supervisor_memory::SupervisorMemory;
use super::termination::supervise;
use rustix::io::{Errno, write};
use rustix::process::{
    Pid, PidfdFlags, WaitOptions, getpid, getppid, pidfd_open, set_child_subreaper, setsid, waitpid,
};
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a supervisor needs, allocated before it is cloned.
pub(super) struct SupervisorArgs {
    /// The program to start.
    exec: ExecRequest,
    /// The read end of the lifeline.
    pub(super) lifeline: OwnedFd,
    /// The write end of the status pipe, for [`SupervisorMessage`]s.
    status: OwnedFd,
    /// How long the processes may take to end after SIGTERM when toolgate has died; at 0 they are killed at once.
    pub(super) orphan_grace_ms: u32,
    /// toolgate's process id: when it dies, the processes are ended.
    parent_pid: i32,
    /// The stacks of the cloned processes, and memory for finding the descendants.
    pub(super) memory: SupervisorMemory,
    /// Where that process failed, see [`pack_failure`]; 0 if it did not.
    failure: AtomicU64,
}

/// What a supervisor reports, in order: `Started` or `Failed`, then `Ended`, or `Exited` and later `Gone`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorMessage {
    /// The program runs, as this process.
    Started { pid: i32 },
    /// The program could not be started.
    Failed(ExecFailure),
    /// The first process exited with this wait status; others of the program still run.
    Exited { status: i32 },
    /// The first process exited with this wait status, and no other is left.
    Ended { status: i32 },
    /// Every process has ended, after `Exited`.
    Gone,
}

impl SupervisorMessage {
    /// The size of an encoded message: a tag and two numbers.
    pub(super) const BYTES: usize = 12;

    /// Encodes the message without allocating.
    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let (tag, a, b) = match self {
            Self::Started { pid } => (1, pid, 0),
            Self::Failed(failure) => (2, failure.step.to_number(), failure.errno),
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

    /// Decodes a message; `None` for an unknown tag or step.
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut values = bytes.chunks_exact(4).map(|chunk| chunk.try_into().map(i32::from_ne_bytes));
        let mut next = || values.next()?.ok();
        match (next()?, next()?, next()?) {
            (1, pid, _) => Some(Self::Started { pid }),
            (2, step, errno) => Some(Self::Failed(ExecFailure { step: ExecStep::from_number(step)?, errno })),
            (3, status, _) => Some(Self::Exited { status }),
            (4, _, _) => Some(Self::Gone),
            (5, status, _) => Some(Self::Ended { status }),
            _ => None,
        }
    }
}

/// The message on the lifeline that ends the processes: SIGTERM now and SIGKILL after this many milliseconds; at 0 only
/// SIGKILL.
pub(super) fn stop_message(grace_millis: u32) -> [u8; 4] {
    grace_millis.to_ne_bytes()
}

impl SupervisorArgs {
    /// Allocates everything that the supervisor will use.
    pub(super) fn new(
        exec: ExecRequest,
        lifeline: OwnedFd,
        status: OwnedFd,
        orphan_grace_ms: u32,
    ) -> io::Result<Self> {
        Ok(Self {
            exec,
            lifeline,
            status,
            orphan_grace_ms,
            parent_pid: getpid().as_raw_nonzero().get(),
            memory: SupervisorMemory::take()?,
            failure: AtomicU64::new(0),
        })
    }
}

/// Clones a supervisor and returns when the supervisor has ended.
///
/// Must be called on a thread that does nothing else: until then the supervisor uses this thread's thread-local
/// storage. A failure to clone is reported on the status pipe.
#[expect(unsafe_code, reason = "clone has no safe form")]
pub(super) fn run_supervisor(args: SupervisorArgs) {
    let (supervisor_top, _) = args.memory.stack_tops();
    block_signals();
    let args = Box::into_raw(Box::new(args));
    // SAFETY: `supervisor_main` gets a stack of its own that outlives it, and `args` stays where it is until the
    // supervisor has ended. It shares this program's memory but allocates nothing and takes no lock. All signals are
    // blocked on this thread and so in the supervisor: no signal handler of this program runs there.
    let pid =
        unsafe { libc::clone(supervisor_main, supervisor_top, libc::CLONE_VM | libc::SIGCHLD, args.cast()) };
    let clone_errno = last_errno();
    let Some(pid) = (pid > 0).then(|| Pid::from_raw(pid)).flatten() else {
        // SAFETY: made by `Box::into_raw` above, and no supervisor was cloned that could use it.
        let args = unsafe { Box::from_raw(args) };
        let failure = ExecFailure { step: ExecStep::Clone, errno: clone_errno };
        return send_message(&args, SupervisorMessage::Failed(failure));
    };
    close_pipe_ends(args);
    let has_exited = loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            ended => break ended.ok().flatten().is_some_and(|(_, status)| status.exited()),
        }
    };
    // SAFETY: made by `Box::into_raw` above; the supervisor has ended.
    let SupervisorArgs { exec, lifeline, status, memory, .. } = *unsafe { Box::from_raw(args) };
    // The first child of a supervisor that was killed may still run on its stack.
    if has_exited {
        memory.keep();
    }
    // `close_pipe_ends` has closed their file descriptors.
    exec.forget_fds();
    let _ = lifeline.into_raw_fd();
    let _ = status.into_raw_fd();
}

/// Closes toolgate's copies of what the supervisor holds: the supervisor has a file descriptor table of its own, and
/// with copies left here the pipes would never reach their end of file.
#[expect(unsafe_code, reason = "closes what is owned elsewhere, once")]
fn close_pipe_ends(args: *const SupervisorArgs) {
    // SAFETY: `args` is alive, and its file descriptors are forgotten, not dropped, after this.
    let args = unsafe { &*args };
    let fds = args.exec.raw_fds().into_iter().flatten();
    for fd in fds.chain([args.lifeline.as_raw_fd(), args.status.as_raw_fd()]) {
        // SAFETY: as above.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

/// Blocks every signal on this thread, and so in the processes that it clones until they execute a program.
#[expect(unsafe_code, reason = "signal masks have no safe form")]
fn block_signals() {
    // SAFETY: the set is filled in before it is used.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, null_mut());
    }
}

/// The supervisor from its clone to its exit. INVARIANT: nothing in it allocates, locks or panics.
#[expect(unsafe_code, reason = "the entry point of a cloned process")]
extern "C" fn supervisor_main(args: *mut c_void) -> c_int {
    // SAFETY: `run_supervisor` keeps `args` alive until this process has ended, and only this process changes it.
    let args = unsafe { &mut *args.cast::<SupervisorArgs>() };
    // Out of toolgate's process group, so that a signal to that group does not end the process that must clean up.
    let _ = setsid();
    let _ = rustix::thread::set_name(c"tg-supervisor");
    let _ = set_child_subreaper(Some(getpid()));
    close_inherited_fds(args);
    let parent = getppid().and_then(|parent| {
        (parent.as_raw_nonzero().get() == args.parent_pid).then(|| pidfd_open(parent, PidfdFlags::empty()))
    });
    // toolgate has died already.
    let Some(parent) = parent else { return 1 };
    let started = open_child_signalfd()
        .map_err(|errno| ExecFailure { step: ExecStep::Clone, errno })
        .and_then(|children| start_program(args).map(|pid| (children, pid)));
    match started {
        Ok((children, pid)) => {
            send_message(args, SupervisorMessage::Started { pid });
            args.exec.close_fds();
            supervise(args, pid, &children, parent.as_ref().ok());
            0
        }
        Err(failure) => {
            send_message(args, SupervisorMessage::Failed(failure));
            1
        }
    }
}

/// Starts the program. The supervisor is suspended until it has executed, as after `vfork`.
#[expect(unsafe_code, reason = "clone has no safe form")]
fn start_program(args: &mut SupervisorArgs) -> Result<i32, ExecFailure> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD | args.exec.clone_flags();
    let (_, stack) = args.memory.stack_tops();
    // SAFETY: the child has its own stack, shares memory only while the supervisor is suspended, and `exec_program`
    // makes nothing but system calls on what was prepared.
    let pid = unsafe { libc::clone(child_main, stack, flags, (&raw mut *args).cast()) };
    if pid < 0 {
        return Err(ExecFailure { step: ExecStep::Clone, errno: last_errno() });
    }
    match unpack_failure(args.failure.load(Ordering::Relaxed)) {
        Some(failure) => {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::empty());
            Err(failure)
        }
        None => Ok(pid),
    }
}

/// The first child of the supervisor until it executes its program. On failure the reason is in shared memory.
#[expect(unsafe_code, reason = "the entry point of a cloned process")]
extern "C" fn child_main(args: *mut c_void) -> c_int {
    // SAFETY: the supervisor is suspended while this runs, and no other process uses `args`.
    let args = unsafe { &*args.cast::<SupervisorArgs>() };
    args.failure.store(pack_failure(exec_program(&args.exec)), Ordering::Relaxed);
    127
}

/// A failure as one number, which a process can leave in shared memory. Never 0: no error number is.
fn pack_failure(failure: ExecFailure) -> u64 {
    let [step, errno] =
        [failure.step.to_number(), failure.errno].map(|value| u64::from(value.unsigned_abs()));
    step << 32 | errno
}

/// The inverse of [`pack_failure`]; `None` for 0.
fn unpack_failure(packed: u64) -> Option<ExecFailure> {
    let number = |value: u64| i32::try_from(value).ok();
    let step = ExecStep::from_number(number(packed >> 32)?)?;
    number(packed & 0xffff_ffff).filter(|errno| *errno != 0).map(|errno| ExecFailure { step, errno })
}

/// Writes a message to the status pipe. A message is shorter than `PIPE_BUF`, so that it is never split.
pub(super) fn send_message(args: &SupervisorArgs, message: SupervisorMessage) {
    // An error means that toolgate has closed the status pipe or died, which the lifeline reports as well.
    let _ = write(&args.status, &message.to_bytes());
}

/// Closes every file descriptor that was copied from toolgate and is not needed here.
fn close_inherited_fds(args: &SupervisorArgs) {
    let mut keep = [0; 10];
    let needed = args.exec.raw_fds().into_iter().flatten();
    let needed = needed.chain([args.lifeline.as_raw_fd(), args.status.as_raw_fd()]);
    let mut count = 0;
    for (slot, fd) in keep.iter_mut().zip(needed) {
        *slot = fd;
        count += 1;
    }
    let Some(keep) = keep.get_mut(..count) else { return };
    keep.sort_unstable();
    let mut from: u32 = 0;
    for fd in keep.iter().filter_map(|fd| u32::try_from(*fd).ok()) {
        if fd > from {
            close_fd_range(from, fd - 1);
        }
        from = fd + 1;
    }
    close_fd_range(from, u32::MAX);
}

/// Closes a range of file descriptors in a table that is the caller's own; one by one on kernels before 5.9.
#[expect(unsafe_code, reason = "closes file descriptors by number")]
pub(crate) fn close_fd_range(first: u32, last: u32) {
    // SAFETY: the caller has its own file descriptor table, of which it uses only the kept ones again.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if done != 0 {
        for fd in first..=last.min(4096) {
            // SAFETY: as above.
            unsafe { libc::close(fd.cast_signed()) };
        }
    }
}

/// A file descriptor that is readable when a child has changed its state.
#[expect(unsafe_code, reason = "signalfd has no safe form")]
fn open_child_signalfd() -> Result<OwnedFd, c_int> {
    // SAFETY: plain values; the signal disposition is this process's own, because the clone did not share it.
    let fd = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut child = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut child);
        libc::sigaddset(&raw mut child, libc::SIGCHLD);
        libc::signalfd(-1, &raw const child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: just opened, and not owned by anything else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
