//! The thread that follows one command: its output, its keeper's words, its end.

use super::capture::{Capture, CaptureOptions, Written};
use super::keeper::Word;
use super::{Exit, Phase};
use crate::sandbox::{Refused, SandboxDenialLog};
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
pub(super) struct Shared {
    known: Mutex<Known>,
    gone: Condvar,
    /// For stopping a command that writes too much. Weak: only the owner's hold keeps the command alive.
    lifeline: Weak<OwnedFd>,
    changed: Box<dyn Fn() + Send + Sync>,
}

struct Known {
    capture: Capture,
    phase: Phase,
    cwd: Option<AbsPath>,
    full: bool,
    ended: Option<Instant>,
    refused: Option<SandboxDenialLog>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(
        keeping: CaptureOptions,
        lifeline: Weak<OwnedFd>,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let known = Known {
            capture: Capture::new(keeping),
            phase: Phase::Running,
            cwd: None,
            full: false,
            ended: None,
            refused: None,
        };
        Self { known: Mutex::new(known), gone: Condvar::new(), lifeline, changed: Box::new(changed) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn phase(&self) -> Phase {
        self.known().phase
    }

    pub(super) fn written(&self) -> Written {
        self.known().capture.written()
    }

    pub(super) fn written_from(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        self.known().capture.from(offset, most)
    }

    pub(super) fn cwd(&self) -> Option<AbsPath> {
        self.known().cwd.clone()
    }

    pub(super) fn full(&self) -> bool {
        self.known().full
    }

    pub(super) fn ended(&self) -> Option<Instant> {
        self.known().ended
    }

    pub(super) fn refused(&self) -> Vec<Refused> {
        self.known().refused.as_ref().map(SandboxDenialLog::all).unwrap_or_default()
    }

    pub(super) fn wait_gone(&self, most: Duration) -> bool {
        let running = |known: &mut Known| !matches!(known.phase, Phase::Gone(_));
        let waited = self.gone.wait_timeout_while(self.known(), most, running);
        !running(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn note(&self, write: impl FnOnce(&mut Known)) {
        write(&mut self.known());
        self.gone.notify_all();
        (self.changed)();
    }
}

/// Reads what a command writes and what its keeper tells, until both have ended.
pub(super) struct ProcessMonitor {
    pub(super) shared: std::sync::Arc<Shared>,
    /// The read end of the command's output; does not block.
    pub(super) output: OwnedFd,
    /// The read end of the keeper's words.
    pub(super) status: OwnedFd,
    /// The read end of the report of the working directory; does not block.
    pub(super) cwd_report: OwnedFd,
    pub(super) refused: Option<SandboxDenialLog>,
    /// Who waits for the start.
    pub(super) started: SyncSender<Word>,
}

enum OutputReadStatus {
    /// There may be more later.
    Dry,
    /// There will be no more.
    End,
}

impl ProcessMonitor {
    pub(super) fn run(self) {
        let mut buffer = Vec::with_capacity(256 * 1024);
        let mut output_open = true;
        self.shared.known().refused.clone_from(&self.refused);
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(self.status.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.output.as_fd(), PollFlags::IN),
            ];
            let watched = if output_open { &mut fds[..] } else { &mut fds[..1] };
            match poll(watched, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return self.lost(),
            }
            let [told, wrote] = fds.map(|fd| !fd.revents().is_empty());
            if output_open && wrote && matches!(self.read_output(&mut buffer), OutputReadStatus::End) {
                output_open = false;
            }
            if !told {
                continue;
            }
            match self.word() {
                Some(word @ (Word::Exited { status } | Word::Ended { status })) => {
                    // What the shell wrote before it ended is in the pipe by now.
                    if output_open && matches!(self.read_output(&mut buffer), OutputReadStatus::End) {
                        output_open = false;
                    }
                    let last = matches!(word, Word::Ended { .. });
                    let cwd = self.read_cwd();
                    self.shared.note(|known| {
                        let exit = exit_of(status);
                        known.phase = if last { Phase::Gone(exit) } else { Phase::Left(exit) };
                        known.cwd = cwd;
                        known.ended = Some(Instant::now());
                    });
                    if last {
                        return;
                    }
                }
                Some(Word::Gone) => {
                    if output_open {
                        self.read_output(&mut buffer);
                    }
                    let exit = self.shared.phase().exit().unwrap_or(Exit::Lost);
                    self.shared.note(|known| {
                        known.phase = Phase::Gone(exit);
                        known.ended.get_or_insert_with(Instant::now);
                    });
                    return;
                }
                Some(word @ Word::Started { .. }) => {
                    // Nobody waiting means that the starter gave up, and with it the lifeline.
                    let _ = self.started.send(word);
                }
                Some(word @ Word::Failed { .. }) => {
                    let _ = self.started.send(word);
                    return self.lost();
                }
                None => return self.lost(),
            }
        }
    }

    /// The keeper is gone without a word.
    fn lost(&self) {
        self.shared.note(|known| {
            known.phase = Phase::Gone(known.phase.exit().unwrap_or(Exit::Lost));
            known.ended.get_or_insert_with(Instant::now);
        });
    }

    fn read_output(&self, buffer: &mut Vec<u8>) -> OutputReadStatus {
        // Bounded, so that a command that never stops writing cannot keep the keeper's words from being read.
        for _ in 0..64 {
            buffer.clear();
            // Room that was never written to costs nothing, and most commands write little.
            match read(&self.output, spare_capacity(buffer)) {
                Ok(0) => return OutputReadStatus::End,
                Ok(_) => {
                    let bytes = buffer.as_slice();
                    self.shared.note(|known| {
                        if known.capture.take(bytes) && !known.full {
                            known.full = true;
                            if let Some(lifeline) = self.shared.lifeline.upgrade() {
                                super::stop(&lifeline, Duration::from_millis(200));
                            }
                        }
                    });
                }
                Err(Errno::AGAIN) => return OutputReadStatus::Dry,
                Err(Errno::INTR) => {}
                Err(_) => return OutputReadStatus::End,
            }
        }
        OutputReadStatus::Dry
    }

    /// One word of the keeper. Words are shorter than what a pipe passes on in one piece.
    fn word(&self) -> Option<Word> {
        let mut bytes = [0; Word::BYTES];
        loop {
            match read(&self.status, &mut bytes[..]) {
                Ok(Word::BYTES) => return Word::from_bytes(&bytes),
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

fn exit_of(status: i32) -> Exit {
    match status & 0x7f {
        0 => Exit::Code((status >> 8) & 0xff),
        signal => Exit::Signal(signal),
    }
}
