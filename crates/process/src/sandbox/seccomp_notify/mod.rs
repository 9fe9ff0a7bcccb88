//! The warden: a thread of toolgate that decides the system calls the filter marks, while the caller waits.
//!
//! The arguments live in memory that the command can change at any moment, so nothing is decided about the caller's
//! copy: the warden reads a path once, resolves it itself, and makes the change itself, on what it resolved.
//! It lets a call go on in the caller only where Landlock decides anyway; there it fills in the report.
//!
//! It has two jobs that no rule can do: to allow what Landlock cannot express (a new file beside a protected one), and
//! to refuse what Landlock does not know (modes, owners, times, sockets in the file system).

mod caller_thread;
mod execute;
mod file_changes;
mod metadata;
mod network;
mod syscall_path;

use super::denials::{SandboxAccess, SandboxDenial, SandboxDenialLog};
use super::path_access::SandboxPathAccess;
use super::{SandboxNetworkAccess, WithheldFileMode};
use caller_thread::CallerThread;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::ffi::c_int;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// What the kernel is told.
pub(super) enum SeccompResponse {
    /// Go on in the caller: Landlock decides.
    Continue,
    /// The warden did it, with this result.
    Done(i64),
    /// It fails.
    Fail(Errno),
    /// The warden opened it: the caller gets the handle.
    Handle { handle: OwnedFd, close_on_exec: bool },
    /// Another thread will answer.
    Deferred,
}

impl From<Errno> for SeccompResponse {
    fn from(errno: Errno) -> Self {
        Self::Fail(errno)
    }
}

/// One call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeccompNotification {
    id: u64,
    pub(super) thread: u32,
    pub(super) call: i64,
    pub(super) arguments: [u64; 6],
}

impl SeccompNotification {
    /// An argument that is an `int`.
    fn int_argument(&self, index: usize) -> i32 {
        let value = self.arguments.get(index).copied().unwrap_or(0);
        u32::try_from(value & 0xffff_ffff).unwrap_or(0).cast_signed()
    }

    fn argument(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }
}

/// The means to answer a call on a thread of its own: it may take its time, and everybody else waits for the warden.
#[derive(Clone)]
pub(super) struct DeferredResponse {
    listener: Arc<OwnedFd>,
    notification: SeccompNotification,
}

impl DeferredResponse {
    /// Whether the caller still waits.
    fn is_caller_waiting(&self) -> bool {
        is_notification_valid(&self.listener, self.notification)
    }

    fn respond_on_thread(
        self,
        work: impl FnOnce(&Self) -> SeccompResponse + Send + 'static,
    ) -> Result<SeccompResponse, Errno> {
        std::thread::Builder::new()
            .name("toolgate-warden".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                let answer = work(&self);
                send_response(&self.listener, self.notification, answer);
            })
            .map_err(|_| Errno::AGAIN)?;
        Ok(SeccompResponse::Deferred)
    }
}

/// A warden that waits for its filter.
pub(crate) struct SeccompNotifyHandler {
    socket: OwnedFd,
    context: Arc<SeccompNotifyContext>,
}

/// What a warden knows.
pub(super) struct SeccompNotifyContext {
    pub(super) bounds: SandboxPathAccess,
    pub(super) net: SandboxNetworkAccess,
    pub(super) withheld: WithheldFileMode,
    /// Landlock decides what is let go on.
    pub(super) landlock: bool,
    denials: SandboxDenialLog,
}

impl SeccompNotifyContext {
    fn record_denial(&self, target: &CallerThread, access: SandboxAccess, on: impl std::fmt::Display) {
        self.denials.add(SandboxDenial { access, target: on.to_string(), program: target.program_name() });
    }

    fn decide(&self, listener: &Arc<OwnedFd>, question: SeccompNotification) -> SeccompResponse {
        let target = CallerThread::new(question.thread);
        let waits = || is_notification_valid(listener, question);
        if question.call == libc::SYS_socket {
            self.record_denial(&target, SandboxAccess::Internet, "");
            return SeccompResponse::Fail(Errno::ACCESS);
        }
        let later = DeferredResponse { listener: Arc::clone(listener), notification: question };
        let decided = file_changes::decide(self, &target, question, &later)
            .or_else(|| execute::decide(self, &target, question))
            .or_else(|| metadata::decide(self, &target, question, &waits))
            .or_else(|| network::decide(self, &target, question, later));
        // The filter asks only about calls that one of these knows.
        decided.unwrap_or(SeccompResponse::Fail(Errno::PERM))
    }

    /// The answer to a call that is not allowed: Landlock gives it where it can, with the error that the caller
    /// would see without a sandbox (there is no such file, there is one already).
    fn deny(&self) -> SeccompResponse {
        if self.landlock { SeccompResponse::Continue } else { SeccompResponse::Fail(Errno::ACCESS) }
    }
}

impl SeccompNotifyHandler {
    pub(in crate::sandbox) fn new(
        socket: OwnedFd,
        bounds: SandboxPathAccess,
        (net, withheld): (SandboxNetworkAccess, WithheldFileMode),
        landlock: bool,
    ) -> Self {
        let keeps =
            SeccompNotifyContext { bounds, net, withheld, landlock, denials: SandboxDenialLog::default() };
        Self { socket, context: Arc::new(keeps) }
    }

    /// Begins to answer, on a thread that ends with the last process under the filter.
    pub(crate) fn start(self) -> std::io::Result<SandboxDenialLog> {
        let refused = self.context.denials.clone();
        std::thread::Builder::new()
            .name("toolgate-warden".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || self.run())?;
        Ok(refused)
    }

    fn run(self) {
        let Self { socket, context: keeps } = self;
        clear_thread_umask();
        let Some(listener) = receive_listener(socket.as_fd()) else { return };
        drop(socket);
        let listener = Arc::new(listener);
        loop {
            let mut fds = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            let [events] = fds.map(|fd| fd.revents());
            if events.contains(PollFlags::IN) {
                // The caller may have been killed in the meantime; then there is nothing to answer.
                if let Some(question) = receive_notification(&listener) {
                    let answer = keeps.decide(&listener, question);
                    send_response(&listener, question, answer);
                }
            } else if events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return;
            }
        }
    }
}

/// Gives this thread a file mode mask of its own, and an empty one: the command's mask is applied to each file that is
/// created in its place. Where that cannot be had, toolgate's own mask holds as well, and new files have fewer rights.
#[expect(unsafe_code, reason = "unshare has no safe form; this one only separates the thread's own mask")]
fn clear_thread_umask() {
    // SAFETY: CLONE_FS gives the thread its own working directory, root and mask; no memory is concerned.
    if unsafe { libc::unshare(libc::CLONE_FS) } == 0 {
        rustix::process::umask(rustix::fs::Mode::empty());
    }
}

/// Sends the filter's handle. INVARIANT: makes system calls and nothing else; runs before the command is executed.
pub(super) fn send_listener(messenger: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> Result<(), c_int> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let handles = [listener];
    control.push(SendAncillaryMessage::ScmRights(&handles));
    sendmsg(messenger, &[IoSlice::new(b"w")], &mut control, SendFlags::NOSIGNAL)
        .map(|_| ())
        .map_err(Errno::raw_os_error)
}

fn receive_listener(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8; 1];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    })
}

#[expect(unsafe_code, reason = "an ioctl that fills in a structure")]
fn receive_notification(listener: &OwnedFd) -> Option<SeccompNotification> {
    // SAFETY: all zero is a valid value, and what the kernel asks for.
    let mut notice: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the one that this request fills in.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notice) };
    (done == 0).then(|| SeccompNotification {
        id: notice.id,
        thread: notice.pid,
        call: i64::from(notice.data.nr),
        arguments: notice.data.args,
    })
}

/// Whether the caller still waits: only then is what was read through its number really the caller's.
#[expect(unsafe_code, reason = "an ioctl on a plain number")]
fn is_notification_valid(listener: &OwnedFd, question: SeccompNotification) -> bool {
    let id = question.id;
    // SAFETY: the kernel reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

#[expect(unsafe_code, reason = "ioctls that read structures")]
fn send_response(listener: &OwnedFd, question: SeccompNotification, answer: SeccompResponse) {
    const CONTINUE: u32 = 1;
    const SEND: u32 = 2;
    let (value, error, flags) = match answer {
        SeccompResponse::Deferred => return,
        SeccompResponse::Continue => (0, 0, CONTINUE),
        SeccompResponse::Done(value) => (value, 0, 0),
        SeccompResponse::Fail(errno) => (0, -errno.raw_os_error(), 0),
        SeccompResponse::Handle { handle, close_on_exec } => {
            let add = libc::seccomp_notif_addfd {
                id: question.id,
                flags: SEND,
                srcfd: handle.as_raw_fd().cast_unsigned(),
                newfd: 0,
                newfd_flags: if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
            };
            // SAFETY: the kernel reads the structure; the handle lives until after the call.
            let done =
                unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const add) };
            if done >= 0 {
                return;
            }
            (0, -libc::EMFILE, 0)
        }
    };
    let response = libc::seccomp_notif_resp { id: question.id, val: value, error, flags };
    // SAFETY: the kernel reads the structure. A caller that was killed gets no answer.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
}
