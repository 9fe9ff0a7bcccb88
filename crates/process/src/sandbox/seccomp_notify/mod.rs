//! The seccomp notification handler: a thread of toolgate that decides the system calls that the filter passes on as
//! seccomp user notifications, while the caller waits.
//!
//! The arguments are in memory that the command can change at any moment (a TOCTOU race), so the handler decides nothing
//! about the caller's copy: it reads a path once, resolves it itself, and makes the change itself on what it resolved.
//! It lets a call continue in the caller only where Landlock decides in any case; there it only records the denial.
//!
//! It does what no static rule can: it allows what Landlock cannot express (a new file beside a protected one), and
//! refuses what Landlock does not know (modes, owners, times, Unix sockets).

mod caller_thread;
mod execute;
mod file_changes;
mod file_open;
mod metadata;
mod network;
mod syscall_path;

use super::denials::{SandboxAccess, SandboxDenial, SandboxDenialLog};
use super::path_access::SandboxPathAccess;
use super::{SandboxNetworkAccess, WithheldFileMode};
use crate::process::close_fd_range;
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
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// The response to a notification.
pub(super) enum SeccompResponse {
    /// The call continues in the caller: Landlock decides.
    Continue,
    /// The handler made the call, with this result.
    Done(i64),
    /// The call fails.
    Fail(Errno),
    /// The handler opened a file: the caller gets the file descriptor.
    FileDescriptor { fd: OwnedFd, close_on_exec: bool },
    /// Another thread will respond.
    Deferred,
}

impl From<Errno> for SeccompResponse {
    fn from(errno: Errno) -> Self {
        Self::Fail(errno)
    }
}

/// One seccomp user notification: a system call that waits for a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeccompNotification {
    /// The kernel's number of this notification.
    id: u64,
    /// The thread that made the call.
    pub(super) thread: u32,
    /// The system call number.
    pub(super) call: i64,
    /// The raw arguments.
    pub(super) arguments: [u64; 6],
}

impl SeccompNotification {
    /// An argument that is an `int`.
    fn int_argument(&self, index: usize) -> i32 {
        let value = self.arguments.get(index).copied().unwrap_or(0);
        u32::try_from(value & 0xffff_ffff).unwrap_or(0).cast_signed()
    }

    /// An argument as the raw register.
    fn argument(&self, index: usize) -> u64 {
        self.arguments.get(index).copied().unwrap_or(0)
    }
}

/// Responds to a notification from another thread, for calls that may block: the handler thread serves every process of
/// the command.
#[derive(Clone)]
pub(super) struct DeferredResponse {
    /// Shared with the handler thread.
    listener: Arc<OwnedFd>,
    /// The call that waits.
    notification: SeccompNotification,
}

impl DeferredResponse {
    /// Whether the caller still waits.
    fn is_caller_waiting(&self) -> bool {
        is_notification_valid(&self.listener, self.notification)
    }

    /// Runs `work` on a new thread and sends its response.
    fn respond_on_thread(
        self,
        work: impl FnOnce(&Self) -> SeccompResponse + Send + 'static,
    ) -> Result<SeccompResponse, Errno> {
        std::thread::Builder::new()
            .name("tg-seccomp".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                let response = work(&self);
                send_response(&self.listener, self.notification, response);
            })
            .map_err(|_| Errno::AGAIN)?;
        Ok(SeccompResponse::Deferred)
    }
}

/// A handler that has not received its listener yet.
pub(crate) struct SeccompNotifyHandler {
    /// Where the command's process sends the listener.
    socket: OwnedFd,
    /// Shared with the threads of deferred responses.
    context: Arc<SeccompNotifyContext>,
}

/// What the handler decides by.
pub(super) struct SeccompNotifyContext {
    /// The path rights of the command.
    pub(super) bounds: SandboxPathAccess,
    /// The network rights of the command.
    pub(super) net: SandboxNetworkAccess,
    /// What opening a hidden file returns.
    pub(super) withheld: WithheldFileMode,
    /// Landlock decides about calls that continue; without it, a call that may not be made must fail here.
    pub(super) landlock: bool,
    /// Where refused accesses are recorded.
    denials: SandboxDenialLog,
}

impl SeccompNotifyContext {
    /// Adds a denial to the log of the command.
    fn record_denial(&self, caller: &CallerThread, access: SandboxAccess, on: impl std::fmt::Display) {
        self.denials.add(SandboxDenial { access, target: on.to_string(), program: caller.program_name() });
    }

    /// Decides one notification, by the module that knows the system call.
    fn decide(&self, listener: &Arc<OwnedFd>, notification: SeccompNotification) -> SeccompResponse {
        let caller = CallerThread::new(notification.thread);
        let is_waiting = || is_notification_valid(listener, notification);
        if notification.call == libc::SYS_socket {
            self.record_denial(&caller, SandboxAccess::Internet, "");
            return SeccompResponse::Fail(Errno::ACCESS);
        }
        let deferred = DeferredResponse { listener: Arc::clone(listener), notification };
        let decided = file_changes::decide_file_change(self, &caller, notification, &deferred)
            .or_else(|| execute::decide_execute(self, &caller, notification))
            .or_else(|| metadata::decide_metadata_change(self, &caller, notification, &is_waiting))
            .or_else(|| network::decide_network_call(self, &caller, notification, deferred));
        // The filter passes on only calls that one of these decides.
        decided.unwrap_or(SeccompResponse::Fail(Errno::PERM))
    }

    /// The response to a call that is not allowed: Landlock refuses it if it can, because the kernel then returns the
    /// error that comes first without a sandbox (`ENOENT`, `EEXIST`).
    fn deny(&self) -> SeccompResponse {
        if self.landlock { SeccompResponse::Continue } else { SeccompResponse::Fail(Errno::ACCESS) }
    }
}

impl SeccompNotifyHandler {
    /// A handler for the listener that will arrive on `socket`.
    pub(in crate::sandbox) fn new(
        socket: OwnedFd,
        bounds: SandboxPathAccess,
        (net, withheld): (SandboxNetworkAccess, WithheldFileMode),
        landlock: bool,
    ) -> Self {
        let context =
            SeccompNotifyContext { bounds, net, withheld, landlock, denials: SandboxDenialLog::default() };
        Self { socket, context: Arc::new(context) }
    }

    /// Starts the handler thread, which ends with the last process under the filter.
    pub(crate) fn start(self) -> std::io::Result<StartedHandler> {
        let Self { socket, context } = self;
        let denials = context.denials.clone();
        let number = socket.as_raw_fd();
        let (send_ready, ready) = channel();
        std::thread::Builder::new().name("tg-seccomp".to_owned()).stack_size(256 * 1024).spawn(
            move || {
                let socket = move_to_own_fd_table(number);
                // An error means that the command could not be started.
                let _ = send_ready.send(());
                // Without a handler the kernel refuses what it would have answered.
                if let Ok(socket) = socket {
                    context.serve(socket);
                }
            },
        )?;
        Ok(StartedHandler { denials, ready, _socket: socket })
    }
}

/// A handler whose thread has been started.
pub(crate) struct StartedHandler {
    /// Where refused accesses are recorded.
    denials: SandboxDenialLog,
    /// Becomes ready when the thread has a file descriptor table of its own.
    ready: Receiver<()>,
    /// Of the table that other threads share; the handler has a copy of its own.
    _socket: OwnedFd,
}

impl StartedHandler {
    /// The log of its denials. To be called when the command has started, because it waits for the thread's start.
    pub(crate) fn into_denials(self) -> SandboxDenialLog {
        self.denials.clone()
    }
}

impl Drop for StartedHandler {
    fn drop(&mut self) {
        // Only then may the socket be closed. An error means that the thread has ended.
        let _ = self.ready.recv();
    }
}

impl SeccompNotifyContext {
    /// Receives the listener, and serves notifications until the last process under the filter has ended.
    fn serve(&self, socket: OwnedFd) {
        clear_thread_umask();
        let Some(listener) = receive_listener(socket.as_fd()) else { return };
        drop(socket);
        request_sync_wakeups(&listener);
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
                // `None` if the caller was killed in the meantime.
                if let Some(notification) = receive_notification(&listener) {
                    let response = self.decide(&listener, notification);
                    send_response(&listener, notification, response);
                }
            } else if events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return;
            }
        }
    }
}

/// Gives this thread, and the threads that it starts, a file descriptor table of their own, with the standard streams and
/// this socket. Every process that another thread starts has a copy of that thread's table until it executes its program:
/// were the files that the handler opens in the same table, a command could fail to execute a program that it has just
/// written (ETXTBSY), because such a copy still writes to it.
#[expect(unsafe_code, reason = "unshare has no safe form; the table is the thread's own afterwards")]
fn move_to_own_fd_table(socket: RawFd) -> std::io::Result<OwnedFd> {
    // SAFETY: CLONE_FILES copies the table for this thread, and changes no memory.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let number = socket.cast_unsigned();
    close_fd_range(3, number.saturating_sub(1));
    close_fd_range(number.max(2) + 1, u32::MAX);
    // SAFETY: nothing else owns the number in this table: its other owner is in the table of the other threads.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Gives this thread a umask of its own, and clears it: the handler applies the caller's umask to each file that it
/// creates. If that fails, toolgate's umask applies as well, and new files have fewer permissions.
#[expect(unsafe_code, reason = "unshare has no safe form; CLONE_FS only separates the thread's umask")]
fn clear_thread_umask() {
    // SAFETY: CLONE_FS gives the thread its own working directory, root and umask, and changes no memory.
    if unsafe { libc::unshare(libc::CLONE_FS) } == 0 {
        rustix::process::umask(rustix::fs::Mode::empty());
    }
}

/// Sends the listener from the command's process. INVARIANT: makes system calls and nothing else, because it runs before
/// the program is executed.
pub(super) fn send_listener(socket: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> Result<(), c_int> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [listener];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(socket, &[IoSlice::new(b"w")], &mut control, SendFlags::NOSIGNAL)
        .map(|_| ())
        .map_err(Errno::raw_os_error)
}

/// Receives the listener; `None` if the command's process failed before it installed the filter.
fn receive_listener(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0u8; 1];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    })
}

/// Asks the kernel to switch between the caller and this thread on one processor (Linux 6.6). The caller waits while this
/// thread decides, so that waking another processor would only take time. An older kernel refuses, and does that.
#[expect(unsafe_code, reason = "an ioctl on a plain number")]
fn request_sync_wakeups(listener: &OwnedFd) {
    /// `SECCOMP_IOCTL_NOTIF_SET_FLAGS`, which `libc` does not define.
    const SET_FLAGS_REQUEST: libc::Ioctl = 0x4008_2104;
    /// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
    const SYNC_WAKE_UP_FLAGS: u64 = 1;
    // SAFETY: the flags are a number, not a pointer.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS_REQUEST, SYNC_WAKE_UP_FLAGS) };
}

/// Receives one notification; `None` if its caller was killed in the meantime.
#[expect(unsafe_code, reason = "an ioctl that fills in a structure")]
fn receive_notification(listener: &OwnedFd) -> Option<SeccompNotification> {
    // SAFETY: all zero is a valid value, and the one that the kernel requires.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the one that this request fills in.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut raw) };
    (done == 0).then(|| SeccompNotification {
        id: raw.id,
        thread: raw.pid,
        call: i64::from(raw.data.nr),
        arguments: raw.data.args,
    })
}

/// Whether the caller still waits. Only then was what is read by its thread id its own: a thread id can be reused.
#[expect(unsafe_code, reason = "an ioctl on a plain number")]
fn is_notification_valid(listener: &OwnedFd, notification: SeccompNotification) -> bool {
    let id = notification.id;
    // SAFETY: the kernel reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Whether the kernel can pass a file descriptor to a caller (Linux 5.9). Tried with a notification that does not exist:
/// an old kernel does not know the request, and a newer one says that there is no such notification.
pub(super) fn can_pass_descriptors(listener: &OwnedFd) -> bool {
    add_fd(listener, u64::MAX, listener, false).is_err_and(|errno| errno == libc::ENOENT)
}

/// Installs a copy of a file descriptor in the caller that waits for this notification, and returns its number there.
#[expect(unsafe_code, reason = "an ioctl that reads a structure")]
fn add_fd(listener: &OwnedFd, id: u64, fd: &OwnedFd, close_on_exec: bool) -> Result<c_int, c_int> {
    let add = libc::seccomp_notif_addfd {
        id,
        flags: 0,
        srcfd: fd.as_raw_fd().cast_unsigned(),
        newfd: 0,
        newfd_flags: if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
    };
    // SAFETY: the kernel reads the structure; the file descriptor is open until after the call.
    match unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const add) } {
        number if number >= 0 => Ok(number),
        _ => Err(crate::process::last_errno()),
    }
}

/// Sends the response; a file descriptor is first installed in the caller.
#[expect(unsafe_code, reason = "an ioctl that reads a structure")]
fn send_response(listener: &OwnedFd, notification: SeccompNotification, response: SeccompResponse) {
    // The kernel's structure has 32 bits for what `libc` defines as a longer constant.
    const CONTINUE_FLAGS: u32 = 1;
    let (value, error, flags) = match response {
        SeccompResponse::Deferred => return,
        SeccompResponse::Continue => (0, 0, CONTINUE_FLAGS),
        SeccompResponse::Done(value) => (value, 0, 0),
        SeccompResponse::Fail(errno) => (0, -errno.raw_os_error(), 0),
        SeccompResponse::FileDescriptor { fd, close_on_exec } => {
            let added = add_fd(listener, notification.id, &fd, close_on_exec);
            // Closed before the caller goes on, and therefore not answered in the same request: while this copy of a
            // file that the caller has written and closed is open, executing that file fails with ETXTBSY. Before Linux
            // 5.19 a signal in between makes the caller ask again, with a second file descriptor of the same file.
            drop(fd);
            match added {
                Ok(number) => (i64::from(number), 0, 0),
                Err(_) => (0, -libc::EMFILE, 0),
            }
        }
    };
    let response = libc::seccomp_notif_resp { id: notification.id, val: value, error, flags };
    // SAFETY: the kernel reads the structure. An error means that the caller was killed.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
}
