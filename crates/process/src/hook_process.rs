//! Running a hook's program: one process group of its own, fed on standard input, read to the end, never outliving
//! its answer.
//!
//! The program gets no terminal: it starts a session of its own, so that it can neither ask the person nor type for
//! them.
//! Whatever it leaves running is killed with it, because a process that nobody owns is a process that nobody stops.
//! What it prints is bounded; a hook that prints without end is stopped, not remembered.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};
use toolgate_proto::AbsPath;

/// Most bytes of standard output. An answer is a small JSON object.
const MAX_STDOUT_BYTES: usize = 1024 * 1024;
/// Bytes of standard error that are kept; the rest is read and dropped, so that the program is not held up.
const MAX_STDERR_BYTES: usize = 64 * 1024;
/// How long output is still waited for once the group is dead: only a process that left the group can hold it open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// What to run.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The program.
    pub program: HookProgram,
    /// Where it starts.
    pub cwd: AbsPath,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
    /// A step that fails, for tests of what then happens.
    #[doc(hidden)]
    pub fault: Option<HookStep>,
}

/// How a program is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookProgram {
    /// A line for a shell.
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
    /// Handing it its input.
    Write,
    /// Reading its standard output.
    ReadOut,
    /// Reading its standard error.
    ReadErr,
    /// Waiting for its end.
    Wait,
}

impl HookStep {
    /// Every step.
    pub const ALL: [Self; 5] = [Self::Spawn, Self::Write, Self::ReadOut, Self::ReadErr, Self::Wait];
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProcessOutput {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained about, the first 64 KiB.
    pub stderr: Vec<u8>,
}

/// Why there is no end to speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookProcessError {
    /// There is no such program.
    Missing(String),
    /// It is there and could not be started.
    NotStarted(String),
    /// It did not end in time.
    TimedOut,
    /// It printed more than an answer can be.
    TooMuchOutput,
    /// Its input or output broke.
    Broken(String),
}

/// Runs a program and waits for its end. Dropping the future kills the program and all it started.
pub async fn run_hook(command: HookCommand) -> Result<HookProcessOutput, HookProcessError> {
    let deadline = Instant::now() + command.timeout;
    let mut child = spawn(&command)?;
    let group = ProcessGroup::of(&child);
    let stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (input, fault) = (command.stdin, command.fault);
    let mut out = Vec::new();
    let mut err = Vec::new();
    let ended = timeout_at(deadline, async {
        let write = async {
            inject_fault(fault, HookStep::Write)?;
            if let Some(mut stdin) = stdin {
                match stdin.write_all(&input).await {
                    // A hook need not read what it is told.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                        return Err(broken_stream_error(&error));
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            Ok(())
        };
        let read_out = async {
            inject_fault(fault, HookStep::ReadOut)?;
            read_bounded(stdout, &mut out, MAX_STDOUT_BYTES, OutputOverflow::Refuse).await
        };
        let read_err = async {
            inject_fault(fault, HookStep::ReadErr)?;
            read_bounded(stderr, &mut err, MAX_STDERR_BYTES, OutputOverflow::Drop).await
        };
        let wait = async {
            inject_fault(fault, HookStep::Wait)?;
            let status = child.wait().await.map_err(|error| broken_stream_error(&error))?;
            group.kill();
            Ok(status)
        };
        // The end of the program decides; what holds its output open beyond that gets a moment and no more.
        let talk = async { tokio::try_join!(write, read_out, read_err).map(|_| ()) };
        tokio::pin!(talk, wait);
        tokio::select! {
            done = &mut talk => {
                done?;
                wait.await
            }
            status = &mut wait => {
                let status = status?;
                match timeout(DRAIN_TIMEOUT, talk).await {
                    Ok(done) => done.map(|()| status),
                    Err(_) => Ok(status),
                }
            }
        }
    })
    .await;
    drop(group);
    match ended {
        Ok(Ok(status)) => {
            Ok(HookProcessOutput { code: status.code(), signal: status.signal(), stdout: out, stderr: err })
        }
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(HookProcessError::TimedOut),
    }
}

fn spawn(command: &HookCommand) -> Result<Child, HookProcessError> {
    inject_fault(command.fault, HookStep::Spawn)?;
    let mut start = match &command.program {
        HookProgram::Shell(line) => {
            let mut shell = Command::new(find_shell());
            shell.arg("-c").arg(line);
            shell
        }
        HookProgram::Exec { program, args } => {
            let mut start = Command::new(program);
            start.args(args);
            start
        }
    };
    start
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .current_dir(command.cwd.as_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    new_session(&mut start);
    start.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if std::fs::metadata(command.cwd.as_path()).is_err() => {
            HookProcessError::NotStarted(format!("there is no directory `{}` to start it in", command.cwd))
        }
        io::ErrorKind::NotFound => HookProcessError::Missing(display_name(&command.program)),
        _ => HookProcessError::NotStarted(format!("{}: {error}", display_name(&command.program))),
    })
}

/// A session of its own: no terminal to ask or to type on, and one group to kill.
#[expect(unsafe_code, reason = "setsid is async-signal-safe, and nothing else happens between fork and exec")]
fn new_session(start: &mut Command) {
    // SAFETY: the closure makes one system call, allocates nothing and takes no lock.
    unsafe {
        start.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

/// bash where there is one, since hooks are mostly written for it.
fn find_shell() -> &'static str {
    static SHELL: std::sync::OnceLock<&'static str> = std::sync::OnceLock::new();
    SHELL.get_or_init(|| {
        ["/bin/bash", "/usr/bin/bash"]
            .into_iter()
            .find(|path| std::fs::metadata(path).is_ok_and(|found| found.is_file()))
            .unwrap_or("/bin/sh")
    })
}

fn display_name(program: &HookProgram) -> String {
    match program {
        HookProgram::Shell(_) => format!("`{}`", find_shell()),
        HookProgram::Exec { program, .. } => format!("`{program}`"),
    }
}

fn inject_fault(fault: Option<HookStep>, step: HookStep) -> Result<(), HookProcessError> {
    match fault {
        Some(fault) if fault == step && step == HookStep::Spawn => {
            Err(HookProcessError::NotStarted("a fault was asked for".to_owned()))
        }
        Some(fault) if fault == step => Err(HookProcessError::Broken("a fault was asked for".to_owned())),
        Some(_) | None => Ok(()),
    }
}

fn broken_stream_error(error: &io::Error) -> HookProcessError {
    HookProcessError::Broken(error.to_string())
}

/// What happens with output beyond the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputOverflow {
    Refuse,
    Drop,
}

async fn read_bounded(
    from: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    most: usize,
    beyond: OutputOverflow,
) -> Result<(), HookProcessError> {
    let Some(mut from) = from else { return Ok(()) };
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut chunk).await.map_err(|error| broken_stream_error(&error))?;
        if count == 0 {
            return Ok(());
        }
        let room = most.saturating_sub(into.len());
        if count > room && beyond == OutputOverflow::Refuse {
            return Err(HookProcessError::TooMuchOutput);
        }
        into.extend(chunk.iter().take(count.min(room)));
    }
}

/// The process group of a child; killed when dropped.
struct ProcessGroup {
    id: Option<Pid>,
}

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { id }
    }

    /// Kills whatever is left of it. The number cannot have passed to another group: numbers are given out in turn,
    /// and this one was in use a moment ago.
    fn kill(&self) {
        if let Some(id) = self.id {
            // An error means that nobody is left.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
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
        command(HookProgram::Shell(line.to_owned()), "told")
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_is_read_to_the_end() {
        let run = run_hook(shell("cat; echo oh >&2; exit 3")).await.unwrap();
        assert_eq!(
            (run.code, run.stdout.as_slice(), run.stderr.as_slice()),
            (Some(3), &b"told"[..], &b"oh\n"[..])
        );
        let run = run_hook(shell("kill -9 $$")).await.unwrap();
        assert_eq!((run.code, run.signal), (None, Some(9)));
        // Not reading its input is no failure, however long that is.
        let run =
            run_hook(command(HookProgram::Shell("exec <&-; true".to_owned()), &"x".repeat(1 << 20))).await;
        assert_eq!(run.unwrap().code, Some(0));
    }

    #[tokio::test]
    async fn each_way_of_not_starting_is_told_apart() {
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
    async fn what_does_not_end_is_killed_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let line = format!("sleep 1000 & echo $! > {0}; echo $$ >> {0}; wait", pids.display());
        let mut endless = shell(&line);
        endless.timeout = Duration::from_secs(2);
        assert_eq!(run_hook(endless).await.unwrap_err(), HookProcessError::TimedOut);
        for pid in std::fs::read_to_string(&pids).unwrap().lines() {
            gone(pid);
        }
        // So is what stays behind when the program itself has ended, and it does not hold up the answer.
        let run = run_hook(shell(&format!("sleep 1000 & echo $! > {}; echo '{{}}'", pids.display())))
            .await
            .unwrap();
        assert_eq!(run.stdout, b"{}\n");
        gone(std::fs::read_to_string(&pids).unwrap().trim());
    }

    /// Waits until a process is dead: a zombie that nobody has collected yet counts as dead.
    fn gone(pid: &str) {
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
    async fn a_fault_at_any_step_is_a_problem() {
        for step in HookStep::ALL {
            let mut command = shell("echo '{}'");
            command.fault = Some(step);
            assert!(run_hook(command).await.is_err(), "{step:?}");
        }
    }
}
