//! Supervised processes: commands, and the parts that hooks and MCP servers share with them.
//!
//! Every program starts as a `SupervisedChild` under a supervisor, which owns every process that the program ever starts
//! (`supervisor.rs` says how, and what is not covered).
//! [`SupervisedProcess`] is a shell command on top of it, with captured output; `PipedProcess` is a program with piped
//! standard streams, for hooks and MCP servers.
//!
//! The output of a command goes through one pipe, so that standard output and error keep the order in which they were
//! written.
//! The text that was judged is the text that runs: it is passed to `bash -c` unchanged.
//! A startup file of toolgate sets an exit trap that reports the shell's working directory on a file descriptor that
//! commands do not use.

mod capture;
mod descendants;
mod environment;
mod exec;
mod git;
mod monitor;
mod piped_process;
mod plain_text;
mod program;
mod supervised_child;
mod supervisor;
mod supervisor_memory;
mod termination;

pub use capture::{CaptureOptions, OutputSnapshot};
pub use environment::{CommandEnvironment, GitHelpers};
pub use git::{GitWorktree, GitWorktrees, WORKTREE_FOLDER, WorktreeChanges, find_git_referenced_files};
pub use plain_text::to_plain_text;
pub use program::{EnvProgram, FoundProgram, find_programs};

use crate::sandbox::{
    PreparedSandbox, SandboxDenial, SandboxEnforcement, SandboxProfile, SeccompNotifyHandler, StartedHandler,
};
pub(crate) use exec::{ExecFailure, ExecStep, last_errno};
pub(crate) use piped_process::{PipedCommand, PipedProcess, PipedStreams};
pub(crate) use supervised_child::{ChildStartError, dup_to_high_fd};
pub(crate) use supervisor::close_fd_range;

use exec::{ChildStdio, ExecRequest};
use monitor::{ProcessMonitor, SharedProcessState};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::ffi::CString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use supervised_child::{PendingChild, SupervisedChild};
use toolgate_proto::AbsPath;

/// The size of the pipe for a command's output.
const OUTPUT_PIPE_BYTES: usize = 1 << 20;
/// The stack of the thread that reads the output of a command.
const MONITOR_STACK_BYTES: usize = 512 * 1024;

/// A shell command to be started.
pub struct ProcessSpec {
    /// The command line, passed to `bash -c` unchanged.
    pub text: String,
    /// The working directory.
    pub cwd: AbsPath,
    /// The environment variables.
    pub environment: CommandEnvironment,
    /// The path of a file with [`STARTUP_SCRIPT`]; without it [`SupervisedProcess::cwd`] is unknown.
    pub startup: Option<AbsPath>,
    /// How much of its output is kept, and where.
    pub capture: CaptureOptions,
    /// Its sandbox; `None` runs it with the rights of the user.
    pub sandbox: Option<SandboxProfile>,
}

/// The content of the startup file for shells (`BASH_ENV`): an exit trap that reports the working directory.
/// The trap prints nothing under `set -x`, and keeps the exit status.
pub const STARTUP_SCRIPT: &str = "unset BASH_ENV\ntrap '{ set +x; builtin pwd -P >&250; } 2>&-' EXIT\n";

/// How the shell of a command exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// Its supervisor was killed before it could report the exit.
    Unknown,
}

/// Which processes of a command still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessPhase {
    /// The shell runs.
    Running,
    /// The shell has exited; processes that it started still run.
    ShellExited(ProcessExit),
    /// No process of the command is left.
    AllExited(ProcessExit),
}

impl ProcessPhase {
    /// How the shell exited, if it has.
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
    /// The reason for the user.
    pub message: String,
    /// The sandbox could not be set up; without one the command could start.
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

impl From<ChildStartError> for ProcessStartError {
    fn from(error: ChildStartError) -> Self {
        let sandbox = matches!(&error, ChildStartError::Exec(failure) if failure.step.is_sandbox());
        Self { message: error.to_string(), sandbox }
    }
}

/// A running command. Dropping it ends every process of it.
#[derive(Debug)]
pub struct SupervisedProcess {
    /// The state that the monitor thread updates.
    shared: Arc<SharedProcessState>,
    /// Dropping the last reference ends every process.
    child: Arc<SupervisedChild>,
    /// When [`SupervisedProcess::start`] was called.
    started: Instant,
    /// `None` without a sandbox.
    enforced: Option<SandboxEnforcement>,
}

/// toolgate's ends of a command's pipes, and the command's ends.
struct CommandPipes {
    /// The read end of the command's output; does not block.
    output: OwnedFd,
    /// The read end of the report of the working directory; does not block.
    cwd_report: OwnedFd,
    /// The command's ends.
    stdio: ChildStdio,
}

impl CommandPipes {
    /// Opens the pipes; standard input is `/dev/null`.
    fn open() -> io::Result<Self> {
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC)?;
        // A larger pipe saves wake-ups; an unprivileged user may have used up the allowance.
        let _ = fcntl_setpipe_size(&output, OUTPUT_PIPE_BYTES);
        rustix::io::ioctl_fionbio(&output, true)?;
        let (cwd_report, cwd_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let stdin = openat(CWD, c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let stdio = ChildStdio {
            stdin: dup_to_high_fd(stdin)?,
            stdout: dup_to_high_fd(output_end)?,
            stderr: None,
            cwd_report: Some(dup_to_high_fd(cwd_end)?),
        };
        Ok(Self { output, cwd_report, stdio })
    }
}

impl SupervisedProcess {
    /// Starts a command. `on_change` is called, on another thread, whenever there is more output or the phase changed.
    pub fn start(
        command: ProcessSpec,
        on_change: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, ProcessStartError> {
        let ProcessSpec { text, cwd, mut environment, startup, capture, sandbox } = command;
        let started = Instant::now();
        let shell = find_shell(&environment)?;
        // Without this, bash looks the user up in the password database at every start.
        if environment.get("SHELL").is_none() {
            environment.set("SHELL", shell.clone());
        }
        if let Some(startup) = startup {
            environment.set("BASH_ENV", startup.to_string());
        }
        let CommandPipes { output, cwd_report, stdio } = CommandPipes::open()?;
        let sandbox = sandbox.map(|mut profile| {
            if let Some(programs) = &mut profile.executable {
                let path = environment.get("PATH").unwrap_or_default();
                programs.extend(find_programs(std::slice::from_ref(&shell), path, &cwd, &[]));
            }
            profile.prepare()
        });
        let (argv_prefix, setup, notify_handler, enforced) = match sandbox.transpose()? {
            Some(PreparedSandbox { argv_prefix, setup, notify_handler, enforced }) => {
                (argv_prefix, Some(setup), notify_handler, Some(enforced))
            }
            None => (Vec::new(), None, None, None),
        };

        let call = [shell.as_bytes(), b"--norc", b"--noprofile", b"-c", text.as_bytes()];
        let argv = argv_prefix.iter().map(String::as_bytes).chain(call);
        let argv: Vec<CString> = argv.map(to_c_string).collect::<Result<_, _>>()?;
        let cwd = to_c_string(cwd.as_path().as_os_str().as_bytes())?;
        let program = argv.first().cloned().unwrap_or_default();
        let exec = ExecRequest::new(program, argv, environment.to_envp(), cwd, stdio, setup);
        let pending = PendingChild::spawn(exec, Duration::ZERO)?;
        // Before the wait: executing the shell may be a system call that the handler answers.
        let handler = notify_handler.map(SeccompNotifyHandler::start).transpose()?;
        let (child, status) = pending.wait_started()?;
        let denials = handler.map(StartedHandler::into_denials);

        let child = Arc::new(child);
        let shared = Arc::new(SharedProcessState::new(capture, Arc::downgrade(&child), denials, on_change));
        let monitor = ProcessMonitor { shared: Arc::clone(&shared), output, status, cwd_report };
        std::thread::Builder::new()
            .name("tg-monitor".to_owned())
            .stack_size(MONITOR_STACK_BYTES)
            .spawn(move || monitor.run())?;
        Ok(Self { shared, child, started, enforced })
    }

    /// The process id of its shell.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Which of its processes still run.
    pub fn phase(&self) -> ProcessPhase {
        self.shared.phase()
    }

    /// Its output so far.
    pub fn output_snapshot(&self) -> OutputSnapshot {
        self.shared.output_snapshot()
    }

    /// At most `limit` bytes of its output from an offset on.
    pub fn read_output_from(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.shared.read_output_from(offset, limit)
    }

    /// The working directory of the shell at its exit, if the exit trap ran.
    pub fn cwd(&self) -> Option<AbsPath> {
        self.shared.cwd()
    }

    /// It was ended because it wrote more than [`CaptureOptions::max_bytes`].
    pub fn is_over_output_limit(&self) -> bool {
        self.shared.is_over_limit()
    }

    /// How long the shell ran, or has been running.
    pub fn duration(&self) -> Duration {
        self.shared.ended().unwrap_or_else(Instant::now).saturating_duration_since(self.started)
    }

    /// What its sandbox enforces; `None` without a sandbox.
    pub fn enforcement(&self) -> Option<&SandboxEnforcement> {
        self.enforced.as_ref()
    }

    /// The accesses that the sandbox refused so far.
    pub fn denials(&self) -> Vec<SandboxDenial> {
        self.shared.denials()
    }

    /// Sends SIGTERM to every process of it, and SIGKILL to those that are left after the grace; with no grace only
    /// SIGKILL. Returns at once.
    pub fn send_stop(&self, grace: Duration) {
        self.child.send_stop(grace);
    }

    /// Waits until no process of it is left. Returns false at the timeout.
    pub fn wait_all_exited(&self, timeout: Duration) -> bool {
        self.shared.wait_all_exited(timeout)
    }
}

/// Converts an argument for `execve`.
fn to_c_string(bytes: &[u8]) -> Result<CString, ProcessStartError> {
    CString::new(bytes).map_err(|_| ProcessStartError {
        message: "the command contains a null byte".to_owned(),
        sandbox: false,
    })
}

/// The path of bash: in a usual directory, else in the command's `PATH`.
fn find_shell(environment: &CommandEnvironment) -> Result<String, ProcessStartError> {
    let path = environment.get("PATH").unwrap_or_default();
    let usual_dirs = ["/bin", "/usr/bin", "/usr/local/bin"];
    // The usual directories first: the `PATH` may contain a directory of the workspace.
    usual_dirs
        .into_iter()
        .chain(path.split(':').filter(|dir| dir.starts_with('/')))
        .map(|dir| format!("{dir}/bash"))
        .find(|candidate| rustix::fs::access(candidate.as_str(), rustix::fs::Access::EXEC_OK).is_ok())
        .ok_or_else(|| ProcessStartError {
            message: "bash is not installed; commands need it".to_owned(),
            sandbox: false,
        })
}

/// Writes [`STARTUP_SCRIPT`] to a file in a private directory.
pub fn write_startup_file(dir: &AbsPath) -> io::Result<AbsPath> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = dir.join("startup.sh");
    let mut file =
        std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(STARTUP_SCRIPT.as_bytes())?;
    Ok(path)
}
