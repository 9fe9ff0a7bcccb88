//! Commands: started, followed, ended with everything they started.
//!
//! [`SupervisedProcess::start`] runs a shell command in a session of its own, below a keeper that owns every process the
//! command ever starts (`keeper.rs` says how, and what is not covered).
//! Its output goes through one pipe, so that standard output and error stay in the order in which they were written.
//! Dropping a [`SupervisedProcess`] ends all of it at once.
//!
//! The text that was judged is the text that runs: it is handed to `bash -c` as it is.
//! A startup file of toolgate's own sets a trap that tells the shell's working directory when it exits, on a handle
//! that the command does not otherwise use.

mod capture;
mod descendants;
mod environment;
mod exec;
mod git;
mod monitor;
mod output_text;
mod program;
mod supervisor;

pub use capture::{CaptureOptions, OutputSnapshot};
pub use environment::{CommandEnvironment, GitHelpers};
pub use git::find_git_referenced_files;
pub use output_text::to_plain_text;
pub use program::{FoundProgram, find_programs};

use crate::sandbox::{SandboxDenial, SandboxEnforcement, SandboxProfile};
pub(crate) use exec::last_errno;
use exec::{CWD_REPORT_FD, ExecRequest, describe_step};
use monitor::{ProcessMonitor, SharedProcessState};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use supervisor::{SupervisorArgs, SupervisorMessage, stop_message};
use toolgate_proto::AbsPath;

/// A shell command to be started.
pub struct ProcessSpec {
    /// The exact text, for `bash -c`.
    pub text: String,
    /// Where it starts.
    pub cwd: AbsPath,
    /// What it knows.
    pub environment: CommandEnvironment,
    /// toolgate's startup file for shells, see [`STARTUP_SCRIPT`].
    pub startup: Option<AbsPath>,
    /// How much of its output is kept.
    pub capture: CaptureOptions,
    /// The box it runs in; `None` runs it as it is.
    pub sandbox: Option<SandboxProfile>,
}

/// What toolgate's startup file for shells says.
/// The trap is silent under `set -x`, and leaves the exit status as it is.
pub const STARTUP_SCRIPT: &str = "unset BASH_ENV\ntrap '{ set +x; builtin pwd -P >&250; } 2>&-' EXIT\n";

/// How a command's shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Its keeper was killed, so nobody knows.
    Unknown,
}

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessPhase {
    /// The shell runs.
    Running,
    /// The shell has ended; processes that it started still run.
    ShellExited(ProcessExit),
    /// Nothing of it is left.
    AllExited(ProcessExit),
}

impl ProcessPhase {
    /// How the shell ended, if it has.
    pub fn exit(self) -> Option<ProcessExit> {
        match self {
            Self::Running => None,
            Self::ShellExited(exit) | Self::AllExited(exit) => Some(exit),
        }
    }
}

/// Why a command could not be started.
#[derive(Debug)]
pub struct ProcessStartError {
    /// In words.
    pub message: String,
    /// The sandbox is what was missing.
    pub sandbox: bool,
}

impl From<io::Error> for ProcessStartError {
    fn from(error: io::Error) -> Self {
        Self { message: error.to_string(), sandbox: false }
    }
}

impl From<rustix::io::Errno> for ProcessStartError {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// A command that was started. Dropping it ends every process of it.
#[derive(Debug)]
pub struct SupervisedProcess {
    shared: Arc<SharedProcessState>,
    /// Closing it, or losing it with toolgate's life, ends the command.
    lifeline: Arc<OwnedFd>,
    pid: i32,
    started: Instant,
    enforced: Option<SandboxEnforcement>,
}

impl SupervisedProcess {
    /// Starts a command. `changed` is called, on another thread, whenever there is more output or the phase changed.
    pub fn start(
        command: ProcessSpec,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, ProcessStartError> {
        let ProcessSpec { text, cwd, mut environment, startup, capture: keeping, sandbox: confinement } =
            command;
        let started = Instant::now();
        let shell = find_shell(&environment)?;
        // Without this, bash looks the user up at every start.
        if environment.get("SHELL").is_none() {
            environment.set("SHELL", shell.clone());
        }
        if let Some(startup) = startup {
            environment.set("BASH_ENV", startup.to_string());
        }
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC)?;
        // A larger pipe spares wake-ups; an unprivileged user may have used up the allowance.
        let _ = fcntl_setpipe_size(&output, 1 << 20);
        rustix::io::ioctl_fionbio(&output, true)?;
        let (cwd_report, cwd_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (status, status_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (lifeline_end, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        let nothing = openat(CWD, c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;

        let confinement = confinement.map(|mut confinement| {
            if let Some(programs) = &mut confinement.executable {
                let path = environment.get("PATH").unwrap_or_default();
                programs.extend(find_programs(std::slice::from_ref(&shell), path, &cwd, &[]));
            }
            confinement
        });
        let prepared = confinement.map(SandboxProfile::prepare).transpose()?;
        let (wrapping, cage, warden, enforced) = match prepared {
            Some(prepared) => {
                (prepared.argv_prefix, Some(prepared.setup), prepared.notify_handler, Some(prepared.enforced))
            }
            None => (Vec::new(), None, None, None),
        };

        let call = [shell.as_bytes(), b"--norc", b"--noprofile", b"-c", text.as_bytes()];
        let argv = wrapping.iter().map(String::as_bytes).chain(call);
        let launch = ExecRequest::new(
            argv.map(to_c_string).collect::<Result<_, _>>()?,
            environment.to_envp(),
            to_c_string(cwd.as_path().as_os_str().as_bytes())?,
            [dup_to_high_fd(nothing)?, dup_to_high_fd(output_end)?, dup_to_high_fd(cwd_end)?],
            cage,
        );
        let charge = SupervisorArgs::new(launch, dup_to_high_fd(lifeline_end)?, dup_to_high_fd(status_end)?);
        std::thread::Builder::new()
            .name("toolgate-vigil".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || supervisor::run_supervisor(charge))?;

        let lifeline = Arc::new(lifeline);
        let shared = Arc::new(SharedProcessState::new(keeping, Arc::downgrade(&lifeline), changed));
        let refused = warden.map(|warden| warden.start()).transpose()?;
        let (tell, told) = sync_channel(1);
        let pump = ProcessMonitor {
            shared: Arc::clone(&shared),
            output,
            status,
            cwd_report,
            denials: refused,
            started: tell,
        };
        std::thread::Builder::new()
            .name("toolgate-pump".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || pump.run())?;
        match told.recv() {
            Ok(SupervisorMessage::Started { pid }) => Ok(Self { shared, lifeline, pid, started, enforced }),
            Ok(SupervisorMessage::Failed { step, errno }) => Err(ProcessStartError {
                message: format!("{}: {}", describe_step(step), io::Error::from_raw_os_error(errno)),
                sandbox: (3..=7).contains(&step),
            }),
            Ok(
                SupervisorMessage::Exited { .. } | SupervisorMessage::Ended { .. } | SupervisorMessage::Gone,
            )
            | Err(_) => Err(ProcessStartError {
                message: "its keeper could not be started".to_owned(),
                sandbox: false,
            }),
        }
    }

    /// The process id of its shell.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// How far it is.
    pub fn phase(&self) -> ProcessPhase {
        self.shared.phase()
    }

    /// What it wrote so far.
    pub fn output_snapshot(&self) -> OutputSnapshot {
        self.shared.output_snapshot()
    }

    /// What it wrote from an offset on.
    pub fn read_output_from(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        self.shared.read_output_from(offset, most)
    }

    /// Where the shell was when it exited, if it told.
    pub fn cwd(&self) -> Option<AbsPath> {
        self.shared.cwd()
    }

    /// It was stopped because it wrote too much.
    pub fn is_over_output_limit(&self) -> bool {
        self.shared.is_over_limit()
    }

    /// How long ago it was started, or how long the shell ran.
    pub fn duration(&self) -> Duration {
        self.shared.ended().unwrap_or_else(Instant::now).saturating_duration_since(self.started)
    }

    /// What its sandbox holds it to; `None` where it runs without one.
    pub fn enforcement(&self) -> Option<&SandboxEnforcement> {
        self.enforced.as_ref()
    }

    /// What the sandbox was seen to refuse so far.
    pub fn denials(&self) -> Vec<SandboxDenial> {
        self.shared.denials()
    }

    /// Asks every process of it to end, and kills what is left after the grace.
    pub fn send_stop(&self, grace: Duration) {
        stop(&self.lifeline, grace);
    }

    /// Waits until nothing of it is left, but not longer than this. Says whether that is so.
    pub fn wait_all_exited(&self, most: Duration) -> bool {
        self.shared.wait_all_exited(most)
    }
}

fn stop(lifeline: &OwnedFd, grace: Duration) {
    let millis = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
    // A keeper that is gone has nothing left to stop.
    let _ = rustix::io::write(lifeline, &stop_message(millis));
}

/// Out of the way of the standard streams and of what a command may use.
pub(crate) fn dup_to_high_fd(handle: OwnedFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(handle, CWD_REPORT_FD + 10)?)
}

fn to_c_string(bytes: &[u8]) -> Result<CString, ProcessStartError> {
    CString::new(bytes).map_err(|_| ProcessStartError {
        message: "the command has a zero byte in it".to_owned(),
        sandbox: false,
    })
}

/// Bash, on the command's own search path, else where it usually is.
fn find_shell(environment: &CommandEnvironment) -> Result<String, ProcessStartError> {
    let path = environment.get("PATH").unwrap_or_default();
    let usual = ["/bin", "/usr/bin", "/usr/local/bin"];
    // The usual places first: a search path may lead into the workspace.
    usual
        .into_iter()
        .chain(path.split(':').filter(|dir| dir.starts_with('/')))
        .map(|dir| format!("{dir}/bash"))
        .find(|candidate| rustix::fs::access(candidate.as_str(), rustix::fs::Access::EXEC_OK).is_ok())
        .ok_or_else(|| ProcessStartError {
            message: "there is no bash on this machine".to_owned(),
            sandbox: false,
        })
}

/// Writes toolgate's startup file for shells into a private directory.
pub fn write_startup_file(dir: &AbsPath) -> io::Result<AbsPath> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = dir.join("startup.sh");
    let mut file =
        std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(STARTUP_SCRIPT.as_bytes())?;
    Ok(path)
}
