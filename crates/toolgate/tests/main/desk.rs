//! A place to try the program: a temporary workspace, home and state directory.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(super) struct Desk {
    dir: tempfile::TempDir,
}

#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Desk {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
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

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

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

    pub(super) fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    /// Runs a tool without questions, as root may only inside a sandbox.
    pub(super) fn run_unasked(&self, tool: &str, input: &str) -> Said {
        let args = ["call", tool, input, "--permission-mode", "bypass"];
        said(self.command(&args).env("TOOLGATE_SANDBOXED", "1").output().unwrap())
    }

    pub(super) fn run_with_input(&self, args: &[&str], input: &str) -> Said {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // The program may end before it has read everything.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        said(output)
    }
}

fn said(output: std::process::Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
