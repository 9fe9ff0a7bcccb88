//! MCP servers and language servers: programs that serve over their standard streams.
//!
//! A server runs under a supervisor, so that what it starts (a package runner starts the real server) ends with it, also
//! what left its process group or session.
//! When toolgate dies, the processes get SIGTERM, a moment to clean up, and SIGKILL.
//! A server inherits only the environment variables that programs need to run at all, and gets those configured for it.

use crate::process::{
    ChildStartError, ExecFailure, ExecStep, PipedCommand, PipedProcess, PipedStreams, ProcessStartError,
};
use crate::sandbox::{SandboxDenial, SandboxProfile};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;
use toolgate_proto::AbsPath;

/// The environment variables of toolgate that a server inherits: what programs need to run, and no secrets.
const ALLOWED_VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];
/// The environment variable that counts nested servers.
const DEPTH_VARIABLE: &str = "TOOLGATE_MCP_DEPTH";
/// How much of the end of a server's standard error is kept.
const MAX_STDERR_BYTES: usize = 16 * 1024;
/// How long a server may take to end by itself, and again after SIGTERM.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(700);
/// How long to wait for the end of killed processes: the kernel may be busy with one in an uninterruptible sleep.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for the exit of a server that has closed its streams.
const EXIT_TIMEOUT: Duration = Duration::from_millis(50);

/// How to start a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLaunch {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables set for it; they replace inherited ones.
    pub env: BTreeMap<String, String>,
    /// The working directory.
    pub cwd: AbsPath,
}

impl ServerLaunch {
    /// A program with its arguments, started in a directory, without environment variables of its own.
    pub fn new(command: impl Into<String>, args: Vec<String>, cwd: AbsPath) -> Self {
        Self { command: command.into(), args, env: BTreeMap::new(), cwd }
    }

    /// The same, with environment variables that are set for it.
    pub fn with_env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }
}

/// A running server. Dropping it kills every process of it.
#[derive(Debug)]
pub struct ServerProcess {
    /// Owns every process of the server.
    process: PipedProcess,
    /// The end of its standard error, which a task of the runtime appends to.
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

/// How many servers this program is nested in, by its environment. A server may be toolgate itself with servers of its
/// own, which must not start themselves without end.
pub fn server_depth(environment: &BTreeMap<String, String>) -> usize {
    environment.get(DEPTH_VARIABLE).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

impl ServerProcess {
    /// Starts a server; returns its standard output and input with it. `ambient` is toolgate's environment, of which
    /// the harmless part is inherited. Must be called inside a runtime.
    pub fn start(
        launch: &ServerLaunch,
        ambient: &BTreeMap<String, String>,
    ) -> io::Result<(Self, pipe::Receiver, pipe::Sender)> {
        let depth = (server_depth(ambient) + 1).to_string();
        let started = PipedProcess::start(&piped_command(launch, ambient, &depth));
        Ok(Self::with_streams(started.map_err(|error| match error {
            ChildStartError::Exec(ExecFailure { step: ExecStep::Exec, errno }) => {
                io::Error::from_raw_os_error(errno)
            }
            ChildStartError::Exec(failure) => io::Error::other(failure.to_string()),
            ChildStartError::Io(error) => error,
        })?))
    }

    /// The same in a sandbox.
    pub fn start_sandboxed(
        launch: &ServerLaunch,
        ambient: &BTreeMap<String, String>,
        profile: SandboxProfile,
    ) -> Result<(Self, pipe::Receiver, pipe::Sender), ProcessStartError> {
        let depth = (server_depth(ambient) + 1).to_string();
        let started = PipedProcess::start_sandboxed(&piped_command(launch, ambient, &depth), profile);
        started.map(Self::with_streams)
    }

    fn with_streams(
        (process, streams): (PipedProcess, PipedStreams),
    ) -> (Self, pipe::Receiver, pipe::Sender) {
        let PipedStreams { stdin, stdout, stderr } = streams;
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(capture_stderr(stderr, Arc::clone(&tail)));
        (Self { process, stderr: tail }, stdout, stdin)
    }

    /// What its sandbox refused so far.
    pub fn denials(&self) -> Vec<SandboxDenial> {
        self.process.denials()
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// The end of what it wrote to standard error.
    pub fn stderr_tail(&self) -> String {
        let mut tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(tail.make_contiguous()).into_owned()
    }

    /// How it exited, if it has or does so at once.
    pub async fn exit_status(&mut self) -> Option<String> {
        let status = timeout(EXIT_TIMEOUT, self.process.wait()).await.ok()?.ok()?;
        Some(status.to_string())
    }

    /// Ends it at once, with every process it started.
    pub async fn end_now(mut self) {
        self.process.kill();
        let _ = timeout(KILL_TIMEOUT, self.process.wait_all_exited()).await;
    }

    /// Ends it: waits for it to end by itself (the caller must have closed its standard input), then sends SIGTERM, then
    /// SIGKILL, also to every process it started.
    pub async fn stop(mut self) {
        if timeout(SHUTDOWN_TIMEOUT, self.process.wait()).await.is_err() {
            self.process.send_stop(SHUTDOWN_TIMEOUT);
            let _ = timeout(SHUTDOWN_TIMEOUT, self.process.wait()).await;
        }
        self.process.kill();
        let _ = timeout(KILL_TIMEOUT, self.process.wait_all_exited()).await;
    }
}

/// What to start: the harmless part of toolgate's environment, and what was configured.
fn piped_command<'a>(
    launch: &'a ServerLaunch,
    ambient: &'a BTreeMap<String, String>,
    depth: &'a str,
) -> PipedCommand<'a> {
    let inherited = ambient.iter().filter(|(name, _)| is_allowed_variable(name));
    let mut env: BTreeMap<&str, &str> =
        inherited.chain(&launch.env).map(|(name, value)| (name.as_str(), value.as_str())).collect();
    env.insert(DEPTH_VARIABLE, depth);
    PipedCommand {
        program: &launch.command,
        args: launch.args.iter().map(String::as_str).collect(),
        env,
        cwd: &launch.cwd,
        orphan_grace: SHUTDOWN_TIMEOUT,
    }
}

fn is_allowed_variable(name: &str) -> bool {
    ALLOWED_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Reads standard error to the end, and keeps its last bytes.
async fn capture_stderr(mut stderr: pipe::Receiver, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 4096];
    // Read to the end even though little is kept: a full pipe would block the server.
    while let Ok(count) = stderr.read(&mut buffer).await {
        if count == 0 {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(buffer.iter().take(count));
        let surplus = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncBufReadExt;

    fn launch(script: &str) -> ServerLaunch {
        ServerLaunch {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]),
            cwd: AbsPath::root(),
        }
    }

    fn is_alive(id: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    #[tokio::test]
    async fn processes_of_a_server_end_with_it() {
        let ambient = BTreeMap::from([
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("API_KEY".to_owned(), "secret".to_owned()),
        ]);
        let script = "echo \"$GIVEN$API_KEY\"; echo trouble >&2; trap '' TERM; sleep 1000 & echo $!; \
                      setsid sleep 1000 < /dev/null > /dev/null 2>&1 & echo $!; wait";
        let (process, stdout, stdin) = ServerProcess::start(&launch(script), &ambient).unwrap();
        let mut lines = tokio::io::BufReader::new(stdout).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "yes");
        let grandchild = lines.next_line().await.unwrap().unwrap();
        let daemon = lines.next_line().await.unwrap().unwrap();
        assert!(is_alive(&grandchild) && is_alive(&daemon));
        while process.stderr_tail().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(process.stderr_tail(), "trouble\n");
        drop(stdin);
        process.stop().await;
        while is_alive(&grandchild) || is_alive(&daemon) {
            tokio::task::yield_now().await;
        }
    }
}
