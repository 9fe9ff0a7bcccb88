//! The thread that follows one command: its output, its keeper's words, its end.

use super::capture::{CaptureOptions, OutputCapture, OutputSnapshot};
use super::supervisor::SupervisorMessage;
use super::{ProcessExit, ProcessPhase};
use crate::sandbox::{SandboxDenial, SandboxDenialLog};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;

/// What is known of a command, for whoever asks.
pub(super) struct SharedProcessState {
    state: Mutex<ProcessState>,
    all_exited: Condvar,
    /// For stopping a command that writes too much. Weak: only the owner's hold keeps the command alive.
    lifeline: Weak<OwnedFd>,
    on_change: Box<dyn Fn() + Send + Sync>,
}

struct ProcessState {
    capture: OutputCapture,
    phase: ProcessPhase,
    cwd: Option<AbsPath>,
    over_limit: bool,
    ended: Option<Instant>,
    denials: Option<SandboxDenialLog>,
}

impl std::fmt::Debug for SharedProcessState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

impl SharedProcessState {
    pub(super) fn new(
        keeping: CaptureOptions,
        lifeline: Weak<OwnedFd>,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let known = ProcessState {
            capture: OutputCapture::new(keeping),
            phase: ProcessPhase::Running,
            cwd: None,
            over_limit: false,
            ended: None,
            denials: None,
        };
        Self { state: Mutex::new(known), all_exited: Condvar::new(), lifeline, on_change: Box::new(changed) }
    }

    fn lock_state(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn phase(&self) -> ProcessPhase {
        self.lock_state().phase
    }

    pub(super) fn output_snapshot(&self) -> OutputSnapshot {
        self.lock_state().capture.snapshot()
    }

    pub(super) fn read_output_from(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        self.lock_state().capture.read_from(offset, most)
    }

    pub(super) fn cwd(&self) -> Option<AbsPath> {
        self.lock_state().cwd.clone()
    }

    pub(super) fn is_over_limit(&self) -> bool {
        self.lock_state().over_limit
    }

    pub(super) fn ended(&self) -> Option<Instant> {
        self.lock_state().ended
    }

    pub(super) fn denials(&self) -> Vec<SandboxDenial> {
        self.lock_state().denials.as_ref().map(SandboxDenialLog::all).unwrap_or_default()
    }

    pub(super) fn wait_all_exited(&self, most: Duration) -> bool {
        let running = |known: &mut ProcessState| !matches!(known.phase, ProcessPhase::AllExited(_));
        let waited = self.all_exited.wait_timeout_while(self.lock_state(), most, running);
        !running(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn update(&self, write: impl FnOnce(&mut ProcessState)) {
        write(&mut self.lock_state());
        self.all_exited.notify_all();
        (self.on_change)();
    }
}

/// Reads what a command writes and what its keeper tells, until both have ended.
pub(super) struct ProcessMonitor {
    pub(super) shared: std::sync::Arc<SharedProcessState>,
    /// The read end of the command's output; does not block.
    pub(super) output: OwnedFd,
    /// The read end of the keeper's words.
    pub(super) status: OwnedFd,
    /// The read end of the report of the working directory; does not block.
    pub(super) cwd_report: OwnedFd,
    pub(super) denials: Option<SandboxDenialLog>,
    /// Who waits for the start.
    pub(super) started: SyncSender<SupervisorMessage>,
}

enum OutputReadStatus {
    /// There may be more later.
    WouldBlock,
    /// There will be no more.
    EndOfFile,
}

impl ProcessMonitor {
    pub(super) fn run(self) {
        let mut buffer = Vec::with_capacity(256 * 1024);
        let mut output_open = true;
        self.shared.lock_state().denials.clone_from(&self.denials);
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(self.status.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.output.as_fd(), PollFlags::IN),
            ];
            let watched = if output_open { &mut fds[..] } else { &mut fds[..1] };
            match poll(watched, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return self.mark_supervisor_lost(),
            }
            let [told, wrote] = fds.map(|fd| !fd.revents().is_empty());
            if output_open && wrote && matches!(self.read_output(&mut buffer), OutputReadStatus::EndOfFile) {
                output_open = false;
            }
            if !told {
                continue;
            }
            match self.read_message() {
                Some(word @ (SupervisorMessage::Exited { status } | SupervisorMessage::Ended { status })) => {
                    // What the shell wrote before it ended is in the pipe by now.
                    if output_open && matches!(self.read_output(&mut buffer), OutputReadStatus::EndOfFile) {
                        output_open = false;
                    }
                    let last = matches!(word, SupervisorMessage::Ended { .. });
                    let cwd = self.read_cwd();
                    self.shared.update(|known| {
                        let exit = parse_wait_status(status);
                        known.phase = if last {
                            ProcessPhase::AllExited(exit)
                        } else {
                            ProcessPhase::ShellExited(exit)
                        };
                        known.cwd = cwd;
                        known.ended = Some(Instant::now());
                    });
                    if last {
                        return;
                    }
                }
                Some(SupervisorMessage::Gone) => {
                    if output_open {
                        self.read_output(&mut buffer);
                    }
                    let exit = self.shared.phase().exit().unwrap_or(ProcessExit::Unknown);
                    self.shared.update(|known| {
                        known.phase = ProcessPhase::AllExited(exit);
                        known.ended.get_or_insert_with(Instant::now);
                    });
                    return;
                }
                Some(word @ SupervisorMessage::Started { .. }) => {
                    // Nobody waiting means that the starter gave up, and with it the lifeline.
                    let _ = self.started.send(word);
                }
                Some(word @ SupervisorMessage::Failed { .. }) => {
                    let _ = self.started.send(word);
                    return self.mark_supervisor_lost();
                }
                None => return self.mark_supervisor_lost(),
            }
        }
    }

    /// The keeper is gone without a word.
    fn mark_supervisor_lost(&self) {
        self.shared.update(|known| {
            known.phase = ProcessPhase::AllExited(known.phase.exit().unwrap_or(ProcessExit::Unknown));
            known.ended.get_or_insert_with(Instant::now);
        });
    }

    fn read_output(&self, buffer: &mut Vec<u8>) -> OutputReadStatus {
        // Bounded, so that a command that never stops writing cannot keep the keeper's words from being read.
        for _ in 0..64 {
            buffer.clear();
            // Room that was never written to costs nothing, and most commands write little.
            match read(&self.output, spare_capacity(buffer)) {
                Ok(0) => return OutputReadStatus::EndOfFile,
                Ok(_) => {
                    let bytes = buffer.as_slice();
                    self.shared.update(|known| {
                        if known.capture.append(bytes) && !known.over_limit {
                            known.over_limit = true;
                            if let Some(lifeline) = self.shared.lifeline.upgrade() {
                                super::stop(&lifeline, Duration::from_millis(200));
                            }
                        }
                    });
                }
                Err(Errno::AGAIN) => return OutputReadStatus::WouldBlock,
                Err(Errno::INTR) => {}
                Err(_) => return OutputReadStatus::EndOfFile,
            }
        }
        OutputReadStatus::WouldBlock
    }

    /// One word of the keeper. Words are shorter than what a pipe passes on in one piece.
    fn read_message(&self) -> Option<SupervisorMessage> {
        let mut bytes = [0; SupervisorMessage::BYTES];
        loop {
            match read(&self.status, &mut bytes[..]) {
                Ok(SupervisorMessage::BYTES) => return SupervisorMessage::from_bytes(&bytes),
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    fn read_cwd(&self) -> Option<AbsPath> {
        let mut bytes = vec![0; 8192];
        let count = read(&self.cwd_report, &mut bytes[..]).ok()?;
        bytes.truncate(count);
        let path = bytes.strip_suffix(b"\n")?.to_vec();
        AbsPath::new(std::ffi::OsString::from_vec(path)).ok()
    }
}

fn parse_wait_status(status: i32) -> ProcessExit {
    match status & 0x7f {
        0 => ProcessExit::Code((status >> 8) & 0xff),
        signal => ProcessExit::Signal(signal),
    }
}
