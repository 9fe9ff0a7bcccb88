//! One program under one supervisor: how commands, hooks and MCP servers are started and owned.
//!
//! The guarantee is the same for all of them: every process that descends from the program, whatever session or process
//! group it moved to, is ended when the [`SupervisedChild`] is dropped or toolgate dies (`supervisor.rs` implements it).

use super::exec::{CWD_REPORT_FD, ExecFailure, ExecRequest};
use super::supervisor::{SupervisorArgs, SupervisorMessage, run_supervisor, stop_message};
use rustix::io::{Errno, fcntl_dupfd_cloexec, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The stack of the thread that waits for the supervisor; the supervisor has its own.
const THREAD_STACK_BYTES: usize = 64 * 1024;

/// A program that runs under a supervisor. Dropping it ends every process of the program.
#[derive(Debug)]
pub(crate) struct SupervisedChild {
    /// The write end of the lifeline: when it is closed, by a drop or by toolgate's death, the processes are ended.
    lifeline: OwnedFd,
    /// The first process, a child of the supervisor and the leader of its own session.
    pid: i32,
}

/// A program whose supervisor was cloned, and which has not been executed yet.
pub(super) struct PendingChild {
    /// As in [`SupervisedChild`]: giving up a start ends what was started.
    lifeline: OwnedFd,
    /// Where the first message will arrive.
    status: StatusPipe,
}

/// The read end of the pipe on which a supervisor reports.
#[derive(Debug)]
pub(super) struct StatusPipe(OwnedFd);

/// Why a program could not be started under a supervisor.
#[derive(Debug)]
pub(crate) enum ChildStartError {
    /// The new process failed before it executed the program.
    Exec(ExecFailure),
    /// A pipe or a thread could not be created, or the supervisor was killed.
    Io(io::Error),
}

impl std::fmt::Display for ChildStartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exec(failure) => failure.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for ChildStartError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for ChildStartError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

impl PendingChild {
    /// Clones a supervisor that starts the program. When toolgate dies, the processes get SIGTERM and `orphan_grace`
    /// before SIGKILL; with no grace they are killed at once.
    ///
    /// Separate from [`PendingChild::wait_started`], because the execution of a sandboxed program may need answers of
    /// the seccomp notification handler, which the caller starts in between.
    pub(super) fn spawn(exec: ExecRequest, orphan_grace: Duration) -> io::Result<Self> {
        let (status, status_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (lifeline_end, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        let args = SupervisorArgs::new(
            exec,
            dup_to_high_fd(lifeline_end)?,
            dup_to_high_fd(status_end)?,
            to_millis(orphan_grace),
        )?;
        std::thread::Builder::new()
            .name("tg-supervisor".to_owned())
            .stack_size(THREAD_STACK_BYTES)
            .spawn(move || run_supervisor(args))?;
        Ok(Self { lifeline, status: StatusPipe(status) })
    }

    /// Blocks until the program was executed, as `std::process::Command::spawn` does.
    pub(super) fn wait_started(self) -> Result<(SupervisedChild, StatusPipe), ChildStartError> {
        match self.status.read_message() {
            Some(SupervisorMessage::Started { pid }) => {
                Ok((SupervisedChild { lifeline: self.lifeline, pid }, self.status))
            }
            Some(SupervisorMessage::Failed(failure)) => Err(ChildStartError::Exec(failure)),
            Some(
                SupervisorMessage::Exited { .. } | SupervisorMessage::Ended { .. } | SupervisorMessage::Gone,
            )
            | None => Err(io::Error::other("its supervisor was killed").into()),
        }
    }
}

impl SupervisedChild {
    /// The process id of the program.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends SIGTERM to every process of the program, and SIGKILL to what is left after the grace. With no grace,
    /// SIGKILL at once.
    pub(crate) fn send_stop(&self, grace: Duration) {
        // An error means that the supervisor has ended, and so every process of the program.
        let _ = write(&self.lifeline, &stop_message(to_millis(grace)));
    }
}

impl StatusPipe {
    /// Blocks for the next message; `None` when the supervisor was killed.
    /// A message is shorter than `PIPE_BUF`, so that a read never returns a part of one.
    pub(super) fn read_message(&self) -> Option<SupervisorMessage> {
        let mut bytes = [0; SupervisorMessage::BYTES];
        loop {
            match read(&self.0, &mut bytes[..]) {
                Ok(SupervisorMessage::BYTES) => return SupervisorMessage::from_bytes(&bytes),
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// For polling.
    pub(super) fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }

    /// For reading in async code, which sets `O_NONBLOCK`.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.0
    }
}

/// Milliseconds for a message to the supervisor; a longer duration is the longest possible.
fn to_millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Moves a file descriptor out of the way of the standard streams and of those that a command uses.
pub(crate) fn dup_to_high_fd(fd: OwnedFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(fd, CWD_REPORT_FD + 10)?)
}
