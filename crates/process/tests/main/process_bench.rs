//! A workspace to start commands in, and a count of the processes that they leave.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use toolgate_process::sandbox::SandboxProfile;
use toolgate_process::{
    CaptureOptions, CommandEnvironment, ProcessExit, ProcessPhase, ProcessSpec, SupervisedProcess,
    to_plain_text, write_startup_file,
};
use toolgate_proto::AbsPath;

/// Longer than anything here takes, also on a machine with other work: a wait that reaches it is a failure.
pub(super) const TEST_TIMEOUT: Duration = Duration::from_secs(600);

/// Temporary directories for commands, and a mark that all their processes carry.
pub(super) struct ProcessBench {
    dir: tempfile::TempDir,
    /// The value of `TOOLGATE_TEST_MARK` in the environment of every process.
    pub(super) mark: String,
}

impl ProcessBench {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ws", "own", "tmp"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mark = toolgate_files::generate_id("mark_");
        Self { dir, mark }
    }

    pub(super) fn path(&self, name: &str) -> AbsPath {
        AbsPath::new(self.dir.path().canonicalize().unwrap().join(name)).unwrap()
    }

    pub(super) fn ws(&self) -> AbsPath {
        self.path("ws")
    }

    pub(super) fn command(&self, text: &str) -> ProcessSpec {
        let mut from: BTreeMap<String, String> = BTreeMap::new();
        for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"] {
            if let Ok(value) = std::env::var(name) {
                from.insert(name.into(), value);
            }
        }
        // Every process of the command inherits the mark, so that the processes left can be counted.
        let set = BTreeMap::from([("TOOLGATE_TEST_MARK".to_owned(), self.mark.clone())]);
        let mut environment = CommandEnvironment::from_filtered(&from, &[], &set);
        environment.set_temp_dir(&self.path("tmp"));
        let own = self.path("own");
        let capture = CaptureOptions {
            head: 100_000,
            tail: 10_000,
            max_bytes: 1 << 30,
            file: own.join(toolgate_files::generate_id("out_")),
            file_at_once: false,
        };
        let startup = Some(write_startup_file(&own).unwrap());
        ProcessSpec { text: text.to_owned(), cwd: self.ws(), environment, startup, capture, sandbox: None }
    }

    pub(super) fn start(&self, text: &str) -> StartedCommand {
        self.start_command(self.command(text))
    }

    pub(super) fn start_in(&self, text: &str, profile: SandboxProfile) -> StartedCommand {
        let mut command = self.command(text);
        command.sandbox = Some(profile);
        self.start_command(command)
    }

    /// The rights of a command in the workspace: it may write there and in its temporary directory.
    pub(super) fn profile(&self) -> SandboxProfile {
        let protected = [".git/hooks", ".git/config", ".toolgate", ".mcp.json", ".claude/settings.json"];
        SandboxProfile {
            writable: vec![self.ws(), self.path("tmp")],
            protected: protected.into_iter().map(|name| self.ws().join(name)).collect(),
            ..SandboxProfile::default()
        }
    }

    pub(super) fn start_command(&self, command: ProcessSpec) -> StartedCommand {
        let (send, changed) = channel();
        let process = SupervisedProcess::start(command, move || {
            // An error means that the test has ended.
            let _ = send.send(());
        })
        .unwrap();
        StartedCommand { process, changed }
    }

    /// Waits until at least so many processes carry the mark: a process has no environment during an exec.
    pub(super) fn wait_alive(&self, count: usize) {
        let started = std::time::Instant::now();
        while self.alive().len() < count {
            assert!(started.elapsed() < TEST_TIMEOUT, "{:?}", self.alive());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until no process carries the mark.
    pub(super) fn wait_none_alive(&self, what: &str) {
        let started = std::time::Instant::now();
        while !self.alive().is_empty() {
            assert!(started.elapsed() < TEST_TIMEOUT, "{what}: {:?}", self.alive());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The processes that carry the mark.
    pub(super) fn alive(&self) -> Vec<String> {
        let mark = format!("TOOLGATE_TEST_MARK={}", self.mark);
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let name = entry.file_name();
                found.push(format!("{} {}", name.to_string_lossy(), String::from_utf8_lossy(&line)));
            }
        }
        found
    }
}

/// A command, and the channel on which its changes are reported.
pub(super) struct StartedCommand {
    pub(super) process: SupervisedProcess,
    pub(super) changed: Receiver<()>,
}

impl StartedCommand {
    /// Waits until a condition holds.
    pub(super) fn wait_until(&self, mut done: impl FnMut(&SupervisedProcess) -> bool) {
        while !done(&self.process) {
            let change = self.changed.recv_timeout(TEST_TIMEOUT);
            assert!(change.is_ok(), "no further change: {} {:?}", self.text(), self.process);
        }
    }

    pub(super) fn text(&self) -> String {
        to_plain_text(&self.process.output_snapshot().head)
    }

    /// Waits for the exit of the shell.
    pub(super) fn wait_exit(&self) -> (ProcessExit, String) {
        self.wait_until(|process| process.phase() != ProcessPhase::Running);
        (self.process.phase().exit().unwrap(), self.text())
    }

    pub(super) fn wait_text(&self, text: &str) {
        self.wait_until(|process| to_plain_text(&process.output_snapshot().head).contains(text));
    }
}
