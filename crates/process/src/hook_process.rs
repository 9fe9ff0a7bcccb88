//! Running a hook's program: its input is written to standard input, its output is read to the end, and no process of it
//! outlives the answer.
//!
//! The program runs in a session of its own without a terminal, so that it can neither prompt the user nor inject input.
//! Every process it leaves running is killed when it exits, times out or its future is dropped: nothing else would end
//! it.
//! Its output is bounded; a hook that prints without end is killed instead of buffered.

use crate::process::{ChildStartError, ExecFailure, ExecStep, PipedCommand, PipedProcess, PipedStreams};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};
use toolgate_proto::AbsPath;

/// Bytes of standard output after which a hook is killed. An answer is a small JSON object.
const MAX_STDOUT_BYTES: usize = 1024 * 1024;
/// Bytes of standard error that are kept; the rest is read and dropped, so that the program does not block on a full
/// pipe.
const MAX_STDERR_BYTES: usize = 64 * 1024;
/// How long to wait, once the program has exited, for the end of its output and of the processes it left running.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// A hook's program, and how to run it.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The program.
    pub program: HookProgram,
    /// The working directory.
    pub cwd: AbsPath,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// What is written to its standard input.
    pub stdin: Vec<u8>,
    /// How long it may take from start to exit.
    pub timeout: Duration,
    /// A step that fails on purpose, for tests of the error paths.
    #[doc(hidden)]
    pub fault: Option<HookStep>,
}

/// How a hook names its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookProgram {
    /// A command line for `bash -c`, or `sh -c` where there is no bash.
    Shell(String),
    /// A program and its arguments, without a shell.
    Exec {
        /// The program: a path, or a name looked up in `PATH`.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// The steps of running a hook, each of which can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookStep {
    /// Starting it.
    Spawn,
    /// Writing its standard input.
    Write,
    /// Reading its standard output.
    ReadOut,
    /// Reading its standard error.
    ReadErr,
    /// Waiting for its exit.
    Wait,
}

impl HookStep {
    /// Every step.
    pub const ALL: [Self; 5] = [Self::Spawn, Self::Write, Self::ReadOut, Self::ReadErr, Self::Wait];
}

/// The exit and the output of a hook's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProcessOutput {
    /// Its exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Its whole standard output.
    pub stdout: Vec<u8>,
    /// The first 64 KiB of its standard error.
    pub stderr: Vec<u8>,
}

/// Why a hook's program has no [`HookProcessOutput`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookProcessError {
    /// The program does not exist; its name in backticks.
    Missing(String),
    /// The program exists and could not be started.
    NotStarted(String),
    /// It did not exit within [`HookCommand::timeout`].
    TimedOut,
    /// It printed more than 1 MiB.
    TooMuchOutput,
    /// Writing its input, reading its output or waiting for it failed.
    Broken(String),
}

/// Runs a hook's program and waits for its exit. Dropping the future kills every process of it.
pub async fn run_hook(command: HookCommand) -> Result<HookProcessOutput, HookProcessError> {
    let deadline = Instant::now() + command.timeout;
    let (mut process, streams) = spawn(&command)?;
    let mut output = HookStreamBuffers::default();
    let ended = timeout_at(deadline, async {
        let wait = async {
            inject_fault(command.fault, HookStep::Wait)?;
            let status = process.wait().await.map_err(|error| broken_stream_error(&error))?;
            process.kill();
            Ok(status)
        };
        let exchange = output.exchange(streams, &command);
        tokio::pin!(exchange, wait);
        // The exit decides: a process that still has the output open after that is being killed.
        tokio::select! {
            done = &mut exchange => {
                done?;
                wait.await
            }
            status = &mut wait => {
                let status = status?;
                match timeout(DRAIN_TIMEOUT, exchange).await {
                    Ok(done) => done.map(|()| status),
                    Err(_) => Ok(status),
                }
            }
        }
    })
    .await;
    let status: ExitStatus = ended.map_err(|_| HookProcessError::TimedOut)??;
    // The supervisor ends what is left in any case; waiting makes that visible to the caller, if it is quick.
    let _ = timeout(DRAIN_TIMEOUT, process.wait_all_exited()).await;
    let HookStreamBuffers { stdout, stderr } = output;
    Ok(HookProcessOutput { code: status.code(), signal: status.signal(), stdout, stderr })
}

/// Starts the program under a supervisor, and maps the failures that a user can fix to their own errors: a missing program
/// and a missing working directory.
fn spawn(command: &HookCommand) -> Result<(PipedProcess, PipedStreams), HookProcessError> {
    inject_fault(command.fault, HookStep::Spawn)?;
    let (program, args) = match &command.program {
        HookProgram::Shell(line) => (find_shell(), vec!["-c", line.as_str()]),
        HookProgram::Exec { program, args } => (program.as_str(), args.iter().map(String::as_str).collect()),
    };
    let piped = PipedCommand {
        program,
        args,
        env: command.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        cwd: &command.cwd,
        orphan_grace: Duration::ZERO,
    };
    PipedProcess::start(&piped).map_err(|error| match error {
        ChildStartError::Exec(ExecFailure { step: ExecStep::WorkingDirectory, errno: libc::ENOENT }) => {
            HookProcessError::NotStarted(format!("its working directory `{}` does not exist", command.cwd))
        }
        ChildStartError::Exec(ExecFailure { step: ExecStep::Exec, errno: libc::ENOENT }) => {
            HookProcessError::Missing(format!("`{program}`"))
        }
        error => HookProcessError::NotStarted(format!("`{program}`: {error}")),
    })
}

/// bash if it is installed, because most hooks are written for it.
fn find_shell() -> &'static str {
    static SHELL: std::sync::OnceLock<&'static str> = std::sync::OnceLock::new();
    SHELL.get_or_init(|| {
        ["/bin/bash", "/usr/bin/bash"]
            .into_iter()
            .find(|path| std::fs::metadata(path).is_ok_and(|found| found.is_file()))
            .unwrap_or("/bin/sh")
    })
}

/// Fails at the step that a test asked for.
fn inject_fault(fault: Option<HookStep>, step: HookStep) -> Result<(), HookProcessError> {
    match fault {
        Some(fault) if fault == step && step == HookStep::Spawn => {
            Err(HookProcessError::NotStarted("injected fault".to_owned()))
        }
        Some(fault) if fault == step => Err(HookProcessError::Broken("injected fault".to_owned())),
        Some(_) | None => Ok(()),
    }
}

fn broken_stream_error(error: &io::Error) -> HookProcessError {
    HookProcessError::Broken(error.to_string())
}

/// What was read from a hook's program so far. It stays when the reading future is dropped at the drain timeout.
#[derive(Default)]
struct HookStreamBuffers {
    /// At most [`MAX_STDOUT_BYTES`].
    stdout: Vec<u8>,
    /// At most [`MAX_STDERR_BYTES`].
    stderr: Vec<u8>,
}

impl HookStreamBuffers {
    /// Writes the input and reads both outputs to their end.
    async fn exchange(
        &mut self,
        streams: PipedStreams,
        command: &HookCommand,
    ) -> Result<(), HookProcessError> {
        let PipedStreams { mut stdin, stdout, stderr } = streams;
        let write = async move {
            inject_fault(command.fault, HookStep::Write)?;
            match stdin.write_all(&command.stdin).await {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(broken_stream_error(&error)),
                // A hook need not read its input.
                Ok(()) | Err(_) => Ok(()),
            }
        };
        let read_out = async {
            inject_fault(command.fault, HookStep::ReadOut)?;
            read_bounded(stdout, &mut self.stdout, MAX_STDOUT_BYTES, OutputOverflow::Refuse).await
        };
        let read_err = async {
            inject_fault(command.fault, HookStep::ReadErr)?;
            read_bounded(stderr, &mut self.stderr, MAX_STDERR_BYTES, OutputOverflow::Drop).await
        };
        tokio::try_join!(write, read_out, read_err).map(|_| ())
    }
}

/// What happens with output beyond the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputOverflow {
    /// The hook fails with [`HookProcessError::TooMuchOutput`].
    Refuse,
    /// It is read and dropped.
    Drop,
}

/// Reads to the end of file, and keeps at most `limit` bytes.
async fn read_bounded(
    mut from: impl AsyncRead + Unpin,
    into: &mut Vec<u8>,
    limit: usize,
    overflow: OutputOverflow,
) -> Result<(), HookProcessError> {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut chunk).await.map_err(|error| broken_stream_error(&error))?;
        if count == 0 {
            return Ok(());
        }
        let room = limit.saturating_sub(into.len());
        if count > room && overflow == OutputOverflow::Refuse {
            return Err(HookProcessError::TooMuchOutput);
        }
        into.extend(chunk.iter().take(count.min(room)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: HookProgram, stdin: &str) -> HookCommand {
        HookCommand {
            program,
            cwd: AbsPath::new("/tmp").unwrap(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            stdin: stdin.as_bytes().to_vec(),
            timeout: Duration::from_secs(20),
            fault: None,
        }
    }

    fn shell(line: &str) -> HookCommand {
        command(HookProgram::Shell(line.to_owned()), "input")
    }

    #[tokio::test]
    async fn a_program_gets_its_input_and_its_whole_output_is_read() {
        let run = run_hook(shell("cat; echo oh >&2; exit 3")).await.unwrap();
        assert_eq!(
            (run.code, run.stdout.as_slice(), run.stderr.as_slice()),
            (Some(3), &b"input"[..], &b"oh\n"[..])
        );
        let run = run_hook(shell("kill -9 $$")).await.unwrap();
        assert_eq!((run.code, run.signal), (None, Some(9)));
        // A program need not read its input, however long it is.
        let run =
            run_hook(command(HookProgram::Shell("exec <&-; true".to_owned()), &"x".repeat(1 << 20))).await;
        assert_eq!(run.unwrap().code, Some(0));
    }

    #[tokio::test]
    async fn each_failure_to_start_has_its_own_error() {
        let exec = |program: &str| HookProgram::Exec { program: program.to_owned(), args: Vec::new() };
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "not a program").unwrap();
        let missing = run_hook(command(exec("/no/such/program"), "")).await.unwrap_err();
        assert_eq!(missing, HookProcessError::Missing("`/no/such/program`".to_owned()));
        let unstartable = run_hook(command(exec(plain.to_str().unwrap()), "")).await.unwrap_err();
        assert!(matches!(unstartable, HookProcessError::NotStarted(_)), "{unstartable:?}");
        let mut nowhere = command(exec("true"), "");
        nowhere.cwd = AbsPath::new("/no/such/place").unwrap();
        let nowhere = run_hook(nowhere).await.unwrap_err();
        assert!(
            matches!(&nowhere, HookProcessError::NotStarted(why) if why.contains("directory")),
            "{nowhere:?}"
        );
    }

    #[tokio::test]
    async fn a_program_that_times_out_is_killed_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let line = format!("sleep 1000 & echo $! > {0}; echo $$ >> {0}; wait", pids.display());
        let mut endless = shell(&line);
        endless.timeout = Duration::from_secs(2);
        assert_eq!(run_hook(endless).await.unwrap_err(), HookProcessError::TimedOut);
        for pid in std::fs::read_to_string(&pids).unwrap().lines() {
            wait_dead(pid);
        }
        // Processes that the program leaves running are killed as well, and do not delay the answer.
        let run = run_hook(shell(&format!("sleep 1000 & echo $! > {}; echo '{{}}'", pids.display())))
            .await
            .unwrap();
        assert_eq!(run.stdout, b"{}\n");
        wait_dead(std::fs::read_to_string(&pids).unwrap().trim());
    }

    /// Waits until a process is dead; a zombie counts as dead.
    fn wait_dead(pid: &str) {
        loop {
            match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
                Ok(stat) if !stat.contains(") Z ") => std::thread::yield_now(),
                Ok(_) | Err(_) => return,
            }
        }
    }

    #[tokio::test]
    async fn output_is_bounded() {
        assert_eq!(run_hook(shell("yes")).await.unwrap_err(), HookProcessError::TooMuchOutput);
        let run = run_hook(shell("yes | head -c 1000000 >&2; echo done")).await.unwrap();
        assert_eq!((run.stderr.len(), run.stdout.as_slice()), (MAX_STDERR_BYTES, &b"done\n"[..]));
    }

    #[tokio::test]
    async fn a_program_has_no_terminal() {
        let run =
            run_hook(shell("if (: </dev/tty) 2>/dev/null; then echo yes; else echo no; fi")).await.unwrap();
        assert_eq!(run.stdout, b"no\n");
    }

    #[tokio::test]
    async fn a_fault_at_any_step_is_an_error() {
        for step in HookStep::ALL {
            let mut command = shell("echo '{}'");
            command.fault = Some(step);
            assert!(run_hook(command).await.is_err(), "{step:?}");
        }
    }
}
