//! A supervised program with pipes for its three standard streams, used from async code: a hook, an MCP server or a
//! language server.

use super::ProcessStartError;
use super::exec::{ChildStdio, ExecFailure, ExecRequest, ExecStep};
use super::program::find_executable;
use super::supervised_child::{ChildStartError, PendingChild, SupervisedChild, dup_to_high_fd};
use super::supervisor::SupervisorMessage;
use crate::sandbox::{
    PreparedSandbox, SandboxDenial, SandboxDenialLog, SandboxProfile, SeccompNotifyHandler, StartedHandler,
};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::net::unix::pipe;
use toolgate_files::DEFAULT_SEARCH_PATH;
use toolgate_proto::AbsPath;

/// What to start.
pub(crate) struct PipedCommand<'a> {
    /// A path, or a name that is looked up in the `PATH` of `env`.
    pub(crate) program: &'a str,
    /// The arguments after the program's name.
    pub(crate) args: Vec<&'a str>,
    /// The whole environment.
    pub(crate) env: BTreeMap<&'a str, &'a str>,
    /// The working directory.
    pub(crate) cwd: &'a AbsPath,
    /// How long the processes may take to end after SIGTERM when toolgate has died.
    pub(crate) orphan_grace: Duration,
}

/// toolgate's ends of the standard streams.
pub(crate) struct PipedStreams {
    /// Dropping it is the end of file for the program.
    pub(crate) stdin: pipe::Sender,
    /// Reaches its end when every process of the program has closed it.
    pub(crate) stdout: pipe::Receiver,
    /// Must be read, or a program that fills the pipe blocks.
    pub(crate) stderr: pipe::Receiver,
}

/// A running program. Dropping it kills every process of it.
#[derive(Debug)]
pub(crate) struct PipedProcess {
    /// Owns the processes.
    child: SupervisedChild,
    /// The messages of the supervisor.
    status: pipe::Receiver,
    /// How the first process exited; `None` while it runs.
    exit: Option<ExitStatus>,
    /// No process of it is left.
    all_exited: bool,
    /// What its sandbox refused; `None` without a sandbox that observes.
    denials: Option<SandboxDenialLog>,
}

impl PipedProcess {
    /// Starts a program. Blocks until it was executed; must be called inside a runtime.
    pub(crate) fn start(command: &PipedCommand<'_>) -> Result<(Self, PipedStreams), ChildStartError> {
        Self::start_prepared(command, None)
    }

    /// The same in a sandbox. The profile is prepared first, so that a failure of the sandbox is told apart from one of the
    /// program.
    pub(crate) fn start_sandboxed(
        command: &PipedCommand<'_>,
        profile: SandboxProfile,
    ) -> Result<(Self, PipedStreams), ProcessStartError> {
        Ok(Self::start_prepared(command, Some(profile.prepare()?))?)
    }

    fn start_prepared(
        command: &PipedCommand<'_>,
        sandbox: Option<PreparedSandbox>,
    ) -> Result<(Self, PipedStreams), ChildStartError> {
        let search_path = command.env.get("PATH").copied().unwrap_or(DEFAULT_SEARCH_PATH);
        let program = find_executable(command.program, search_path, command.cwd)
            .ok_or(ChildStartError::Exec(ExecFailure { step: ExecStep::Exec, errno: libc::ENOENT }))?;
        let (prefix, setup, notify_handler) = match sandbox {
            Some(PreparedSandbox { argv_prefix, setup, notify_handler, enforced: _ }) => {
                (argv_prefix, Some(setup), notify_handler)
            }
            None => (Vec::new(), None, None),
        };
        // A program that sets up the sandbox gets the path that was found, and not a name to look up again.
        let found = program.to_string_lossy();
        let name = if prefix.is_empty() { command.program } else { &*found };
        let argv = prefix.iter().map(String::as_str).chain([name]).chain(command.args.iter().copied());
        let executed = prefix.first().map_or(program.as_os_str().as_bytes(), |first| first.as_bytes());
        let variables = command.env.iter().map(|(name, value)| format!("{name}={value}"));
        let (stdin_end, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stdout, stdout_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, stderr_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let stdio = ChildStdio {
            stdin: dup_to_high_fd(stdin_end)?,
            stdout: dup_to_high_fd(stdout_end)?,
            stderr: Some(dup_to_high_fd(stderr_end)?),
            cwd_report: None,
        };
        let exec = ExecRequest::new(
            to_c_string(executed)?,
            argv.map(|arg| to_c_string(arg.as_bytes())).collect::<io::Result<_>>()?,
            variables.map(|variable| to_c_string(variable.as_bytes())).collect::<io::Result<_>>()?,
            to_c_string(command.cwd.as_path().as_os_str().as_bytes())?,
            stdio,
            setup,
        );
        let streams = PipedStreams {
            stdin: pipe::Sender::from_owned_fd(stdin)?,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        };
        let pending = PendingChild::spawn(exec, command.orphan_grace)?;
        // Before the wait: executing the program may be a system call that the handler answers.
        let handler = notify_handler.map(SeccompNotifyHandler::start).transpose()?;
        let (child, status) = pending.wait_started()?;
        let denials = handler.map(StartedHandler::into_denials);
        let status = pipe::Receiver::from_owned_fd(status.into_fd())?;
        Ok((Self { child, status, exit: None, all_exited: false, denials }, streams))
    }

    /// What its sandbox refused so far.
    pub(crate) fn denials(&self) -> Vec<SandboxDenial> {
        self.denials.as_ref().map(SandboxDenialLog::all).unwrap_or_default()
    }

    /// The process id, until the exit has been waited for.
    pub(crate) fn id(&self) -> Option<u32> {
        self.exit.is_none().then(|| self.child.pid().unsigned_abs())
    }

    /// Waits for the exit of the first process. Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.exit {
                Some(status) => return Ok(status),
                None if self.all_exited => return Err(io::Error::other("its supervisor was killed")),
                None => self.receive_message().await?,
            }
        }
    }

    /// Waits until no process of it is left. Cancel safe.
    pub(crate) async fn wait_all_exited(&mut self) {
        while !self.all_exited && self.receive_message().await.is_ok() {}
    }

    /// Sends SIGTERM to every process of it, and SIGKILL to what is left after the grace.
    pub(crate) fn send_stop(&self, grace: Duration) {
        if !self.all_exited {
            self.child.send_stop(grace);
        }
    }

    /// Kills every process of it.
    pub(crate) fn kill(&self) {
        self.send_stop(Duration::ZERO);
    }

    /// Waits for one message of the supervisor and applies it. The end of the status pipe without a message means that the
    /// supervisor was killed, and the program with it.
    async fn receive_message(&mut self) -> io::Result<()> {
        let mut bytes = [0; SupervisorMessage::BYTES];
        let count = loop {
            // Not `read_exact`, which would lose what it has read when the future is dropped.
            self.status.readable().await?;
            match self.status.try_read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                count => break count?,
            }
        };
        let message = SupervisorMessage::from_bytes(&bytes).filter(|_| count == bytes.len());
        match message {
            Some(SupervisorMessage::Exited { status }) => self.exit = Some(ExitStatus::from_raw(status)),
            Some(SupervisorMessage::Ended { status }) => {
                self.exit = Some(ExitStatus::from_raw(status));
                self.all_exited = true;
            }
            Some(SupervisorMessage::Gone) | None => self.all_exited = true,
            Some(SupervisorMessage::Started { .. } | SupervisorMessage::Failed(_)) => {}
        }
        Ok(())
    }
}

impl Drop for PipedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Converts an argument or a variable for `execve`.
fn to_c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "an argument or a variable contains a null byte")
    })
}
