//! Programs that serve over their standard streams, owned from start to end.
//!
//! A server runs in a process group of its own, so that what it starts (a package runner starts the real server) can
//! be ended with it.
//! What leaves the group is known by a mark in its environment.
//! It is told to end when this process dies, and it is ended when its handle is dropped.
//! It sees only the variables that programs need to run at all, and those that were configured for it.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use toolgate_proto::AbsPath;

/// What a server may see of our environment: what programs need to run, and nothing that could be a secret.
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
/// The variable by which what a server started is found again.
const SERVER_ID_VARIABLE: &str = "TOOLGATE_MCP_SERVER_ID";
/// The variable that says how many servers stand around a program, one inside the other.
const DEPTH_VARIABLE: &str = "TOOLGATE_MCP_DEPTH";
/// How much of what a server wrote to standard error is kept.
const MAX_STDERR_BYTES: usize = 16 * 1024;
/// How long a server may take to end by itself, and then once it was asked to.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(700);

/// How to start a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLaunch {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set for it, over those passed on.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub cwd: AbsPath,
}

/// A server that runs. Dropping it ends it, and all that it started.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    group: Option<Pid>,
    mark: String,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

/// How many servers this program stands in, by its environment: a server may be a toolgate, which has servers of its
/// own, and must not start itself for ever.
pub fn server_depth(environment: &BTreeMap<String, String>) -> usize {
    environment.get(DEPTH_VARIABLE).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

impl ServerProcess {
    /// Starts it. `ambient` is the environment from which the harmless part is passed on.
    pub fn start(
        launch: &ServerLaunch,
        ambient: &BTreeMap<String, String>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mark = toolgate_files::generate_id("");
        let mut command = Command::new(&launch.command);
        command
            .args(&launch.args)
            .env_clear()
            .envs(ambient.iter().filter(|(name, _)| is_allowed_variable(name)))
            .envs(&launch.env)
            .env(SERVER_ID_VARIABLE, &mark)
            .env(DEPTH_VARIABLE, (server_depth(ambient) + 1).to_string())
            .current_dir(launch.cwd.as_path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        #[cfg(target_os = "linux")]
        set_parent_death_signal(&mut command);
        let mut child = command.spawn()?;
        let missing = || io::Error::other("the server's streams could not be opened");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let said = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(capture_stderr(stderr, Arc::clone(&said)));
        Ok((Self { child, group, mark, stderr: said }, stdout, stdin))
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The end of what it wrote to standard error.
    pub fn stderr_tail(&self) -> String {
        let mut kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }

    /// How it ended, if it has.
    pub fn exit_status(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// Ends it: first it may end by itself (its standard input must be closed already), then it is asked, then made to.
    pub async fn stop(mut self) {
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, self.child.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.child.wait()).await;
        }
        // What it started may still be there, even where it is gone itself.
        self.kill_all();
        let _ = self.child.wait().await;
    }

    /// Ends its group, and what left the group.
    fn kill_all(&self) {
        self.signal(Signal::KILL);
        #[cfg(target_os = "linux")]
        kill_marked_processes(&self.mark);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that the group is gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn is_allowed_variable(name: &str) -> bool {
    ALLOWED_VARIABLES.contains(&name) || name.starts_with("LC_")
}

async fn capture_stderr(mut stderr: tokio::process::ChildStderr, said: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 4096];
    // Read to the end whatever it says: a full pipe would stop the server.
    while let Ok(read) = stderr.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        let mut kept = said.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(buffer.iter().take(read));
        let over = kept.len().saturating_sub(MAX_STDERR_BYTES);
        kept.drain(..over);
    }
}

/// Ends every process that carries the mark. One that starts others meanwhile is met again in the next pass, as is one
/// that shows no environment because it is just becoming another program.
#[cfg(target_os = "linux")]
fn kill_marked_processes(mark: &str) {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let wanted = format!("{SERVER_ID_VARIABLE}={mark}");
    // A process of somebody else cannot be read, and is not ours.
    let environment = |id: &str| std::fs::read(format!("/proc/{id}/environ")).ok();
    let marked = |bytes: &[u8]| bytes.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
    for _ in 0..5 {
        let Ok(entries) = std::fs::read_dir("/proc") else { return };
        let (mut found, mut unsure) = (false, false);
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else {
                continue;
            };
            let Some(shown) = environment(id) else { continue };
            if shown.is_empty() {
                // Threads of the kernel and what is dead have no program either.
                unsure |= std::fs::read_link(format!("/proc/{id}/exe")).is_ok();
            }
            let pid = id.parse().ok().and_then(Pid::from_raw).filter(|_| marked(&shown));
            let Some(handle) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
                continue;
            };
            // Looked at again now that the handle holds it: the number may have gone to another in between.
            found = true;
            if environment(id).is_some_and(|shown| marked(&shown)) {
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
        }
        if !found && !unsure {
            return;
        }
        if !found {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Has the kernel end the server when this process is killed and can do nothing any more.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "between fork and exec only calls that are safe after a fork are made")]
fn set_parent_death_signal(command: &mut Command) {
    // SAFETY: the closure makes one system call and touches neither memory nor locks.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from)
        });
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

    fn alive(id: &str) -> bool {
        // Not by its command line: one that is just becoming another program shows none.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    #[tokio::test]
    async fn what_a_server_started_ends_with_it() {
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
        let runaway = lines.next_line().await.unwrap().unwrap();
        assert!(alive(&grandchild) && alive(&runaway));
        while process.stderr_tail().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(process.stderr_tail(), "trouble\n");
        drop(stdin);
        process.stop().await;
        while alive(&grandchild) || alive(&runaway) {
            tokio::task::yield_now().await;
        }
    }
}
