//! A fixture for the program: a temporary workspace, home and state directory.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Directories for one test, removed at its end.
pub(super) struct CliFixture {
    dir: tempfile::TempDir,
}

/// The result of one run of the program.
#[derive(Debug)]
pub(super) struct CliRun {
    /// The exit code; -1 after a signal.
    pub(super) code: i32,
    /// Standard output.
    pub(super) stdout: String,
    /// Standard error.
    pub(super) stderr: String,
}

impl CliFixture {
    pub(super) fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// With paths that have the same length in every run, for screens on which rows break.
    pub(super) fn of_fixed_length() -> Self {
        Self::at(tempfile::tempdir_in("/tmp").unwrap())
    }

    fn at(dir: tempfile::TempDir) -> Self {
        for name in ["ws", "home", "state"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    /// A path in the workspace.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("ws").join(name)
    }

    /// A path beside the workspace.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file in the workspace.
    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program with an environment that contains only these directories.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.beside("home"))
            .env("TOOLGATE_STATE_DIR", self.beside("state"))
            .current_dir(self.path(""))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program without standard input.
    pub(super) fn run(&self, args: &[&str]) -> CliRun {
        cli_run(self.command(args).output().unwrap())
    }

    /// Calls a tool in mode bypass, which root may use only in a sandbox.
    pub(super) fn run_unasked(&self, tool: &str, input: &str) -> CliRun {
        let args = ["call", tool, input, "--permission-mode", "bypass"];
        cli_run(self.command(&args).env("TOOLGATE_SANDBOXED", "1").output().unwrap())
    }

    /// Runs the program with standard input.
    pub(super) fn run_with_input(&self, args: &[&str], input: &str) -> CliRun {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // The program may end before it has read its whole input.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        cli_run(output)
    }
}

pub(super) fn cli_run(output: std::process::Output) -> CliRun {
    CliRun {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
