//! The thread that reads one command's output and its supervisor's messages.

use super::capture::{CaptureOptions, OutputCapture, OutputSnapshot};
use super::supervised_child::{StatusPipe, SupervisedChild};
use super::supervisor::SupervisorMessage;
use super::{ProcessExit, ProcessPhase};
use crate::sandbox::{SandboxDenial, SandboxDenialLog};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;

/// The size of the first reads: most commands write little.
const FIRST_READ_BYTES: usize = 8 * 1024;
/// The size of reads after one that was full.
const FULL_READ_BYTES: usize = 256 * 1024;
/// Reads of the output between two looks at the status pipe.
const MAX_READS: usize = 64;
/// How long a command that wrote too much may take to end after SIGTERM.
const OVER_LIMIT_GRACE: Duration = Duration::from_millis(200);

/// The state of a command that its monitor thread updates and [`super::SupervisedProcess`] reads.
pub(super) struct SharedProcessState {
    state: Mutex<ProcessState>,
    /// Notified on every change of the state.
    all_exited: Condvar,
    /// For ending a command that writes too much. Weak, because dropping the last `Arc` is what ends the command.
    child: Weak<SupervisedChild>,
    /// What the sandbox refused; `None` without a seccomp notification handler.
    denials: Option<SandboxDenialLog>,
    /// Called after every change of the state, on the monitor thread.
    on_change: Box<dyn Fn() + Send + Sync>,
}

/// What is known of a command at one moment.
struct ProcessState {
    /// The output so far.
    capture: OutputCapture,
    /// Which processes still run.
    phase: ProcessPhase,
    /// The working directory of the shell at its exit.
    cwd: Option<AbsPath>,
    /// The command was ended because it wrote more than [`CaptureOptions::max_bytes`].
    over_limit: bool,
    /// When the shell exited.
    ended: Option<Instant>,
}

impl std::fmt::Debug for SharedProcessState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedProcessState").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

impl SharedProcessState {
    /// The state of a command that has just started.
    pub(super) fn new(
        options: CaptureOptions,
        child: Weak<SupervisedChild>,
        denials: Option<SandboxDenialLog>,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let state = ProcessState {
            capture: OutputCapture::new(options),
            phase: ProcessPhase::Running,
            cwd: None,
            over_limit: false,
            ended: None,
        };
        Self {
            state: Mutex::new(state),
            all_exited: Condvar::new(),
            child,
            denials,
            on_change: Box::new(on_change),
        }
    }

    /// Locks the state. A panic of the callback of another thread leaves it consistent, so poisoning is ignored.
    fn lock_state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`super::SupervisedProcess::phase`].
    pub(super) fn phase(&self) -> ProcessPhase {
        self.lock_state().phase
    }

    /// See [`super::SupervisedProcess::output_snapshot`].
    pub(super) fn output_snapshot(&self) -> OutputSnapshot {
        self.lock_state().capture.snapshot()
    }

    /// See [`super::SupervisedProcess::read_output_from`].
    pub(super) fn read_output_from(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.lock_state().capture.read_from(offset, limit)
    }

    /// See [`super::SupervisedProcess::cwd`].
    pub(super) fn cwd(&self) -> Option<AbsPath> {
        self.lock_state().cwd.clone()
    }

    /// See [`super::SupervisedProcess::is_over_output_limit`].
    pub(super) fn is_over_limit(&self) -> bool {
        self.lock_state().over_limit
    }

    /// When the shell exited, if it has.
    pub(super) fn ended(&self) -> Option<Instant> {
        self.lock_state().ended
    }

    /// See [`super::SupervisedProcess::denials`].
    pub(super) fn denials(&self) -> Vec<SandboxDenial> {
        self.denials.as_ref().map(SandboxDenialLog::all).unwrap_or_default()
    }

    /// See [`super::SupervisedProcess::wait_all_exited`].
    pub(super) fn wait_all_exited(&self, timeout: Duration) -> bool {
        let running = |state: &mut ProcessState| !matches!(state.phase, ProcessPhase::AllExited(_));
        let waited = self.all_exited.wait_timeout_while(self.lock_state(), timeout, running);
        !running(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Changes the state, wakes the waiting threads and calls `on_change` without the lock.
    fn update(&self, write: impl FnOnce(&mut ProcessState)) {
        write(&mut self.lock_state());
        self.all_exited.notify_all();
        (self.on_change)();
    }
}

/// Reads what a command writes and what its supervisor reports, until no process of the command is left.
pub(super) struct ProcessMonitor {
    pub(super) shared: std::sync::Arc<SharedProcessState>,
    /// The read end of the command's output; does not block.
    pub(super) output: OwnedFd,
    /// The messages of the supervisor.
    pub(super) status: StatusPipe,
    /// The read end of the report of the working directory; does not block.
    pub(super) cwd_report: OwnedFd,
}

/// Whether the output pipe has reached its end of file.
#[derive(PartialEq, Eq)]
enum OutputReadStatus {
    /// There may be more later.
    WouldBlock,
    /// There will be no more.
    EndOfFile,
}

impl ProcessMonitor {
    /// Runs until no process of the command is left, or the supervisor was killed.
    pub(super) fn run(self) {
        let mut buffer = Vec::with_capacity(FIRST_READ_BYTES);
        let mut output_open = true;
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(self.status.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.output.as_fd(), PollFlags::IN),
            ];
            let watched = if output_open { &mut fds[..] } else { &mut fds[..1] };
            match poll(watched, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return self.set_all_exited(),
            }
            let [status_ready, output_ready] = fds.map(|fd| !fd.revents().is_empty());
            let message = status_ready.then(|| self.status.read_message());
            // What the shell wrote before a message of its exit is in the pipe by now.
            if output_open && (output_ready || status_ready) {
                output_open = self.read_output(&mut buffer) != OutputReadStatus::EndOfFile;
            }
            match message {
                None | Some(Some(SupervisorMessage::Started { .. })) => {}
                Some(Some(SupervisorMessage::Exited { status })) => self.set_shell_exited(status, false),
                Some(Some(SupervisorMessage::Ended { status })) => {
                    return self.set_shell_exited(status, true);
                }
                Some(Some(SupervisorMessage::Gone | SupervisorMessage::Failed(_)) | None) => {
                    return self.set_all_exited();
                }
            }
        }
    }

    /// Records the exit of the shell; with `is_last`, no other process is left.
    fn set_shell_exited(&self, wait_status: i32, is_last: bool) {
        let exit = parse_wait_status(wait_status);
        let cwd = self.read_cwd();
        self.shared.update(|state| {
            state.phase =
                if is_last { ProcessPhase::AllExited(exit) } else { ProcessPhase::ShellExited(exit) };
            state.cwd = cwd;
            state.ended = Some(Instant::now());
        });
    }

    /// No process is left, or the supervisor was killed before it could report the exit.
    fn set_all_exited(&self) {
        self.shared.update(|state| {
            state.phase = ProcessPhase::AllExited(state.phase.exit().unwrap_or(ProcessExit::Unknown));
            state.ended.get_or_insert_with(Instant::now);
        });
    }

    /// Moves what is in the pipe to the capture, and ends the command at the output limit.
    fn read_output(&self, buffer: &mut Vec<u8>) -> OutputReadStatus {
        // Bounded, so that a command that writes without end does not delay the supervisor's messages.
        for _ in 0..MAX_READS {
            buffer.clear();
            match read(&self.output, spare_capacity(buffer)) {
                Ok(0) => return OutputReadStatus::EndOfFile,
                Ok(_) => {
                    let bytes = buffer.as_slice();
                    self.shared.update(|state| {
                        if state.capture.append(bytes) && !state.over_limit {
                            state.over_limit = true;
                            if let Some(child) = self.shared.child.upgrade() {
                                child.send_stop(OVER_LIMIT_GRACE);
                            }
                        }
                    });
                    if buffer.len() == buffer.capacity() {
                        buffer.clear();
                        buffer.reserve(FULL_READ_BYTES);
                    }
                }
                Err(Errno::AGAIN) => return OutputReadStatus::WouldBlock,
                Err(Errno::INTR) => {}
                Err(_) => return OutputReadStatus::EndOfFile,
            }
        }
        OutputReadStatus::WouldBlock
    }

    /// The working directory that the exit trap wrote; `None` if it did not run or the path is not absolute.
    fn read_cwd(&self) -> Option<AbsPath> {
        let mut bytes = vec![0; 8192];
        let count = read(&self.cwd_report, &mut bytes[..]).ok()?;
        bytes.truncate(count);
        let path = bytes.strip_suffix(b"\n")?.to_vec();
        AbsPath::new(std::ffi::OsString::from_vec(path)).ok()
    }
}

/// Decodes the status of `wait` (`WIFEXITED` and `WTERMSIG` of the C library).
fn parse_wait_status(status: i32) -> ProcessExit {
    match status & 0x7f {
        0 => ProcessExit::Code((status >> 8) & 0xff),
        signal => ProcessExit::Signal(signal),
    }
}
