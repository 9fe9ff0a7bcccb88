//! The one place where the process's surroundings are read.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use toolgate_proto::AbsPath;

/// What the process was started with. Read once, by the binary, and passed on as a value.
#[derive(Debug, Clone)]
pub struct AmbientEnvironment {
    /// The working directory.
    pub cwd: AbsPath,
    /// The environment; names and values that are no UTF-8 are left out.
    pub env: BTreeMap<String, String>,
    /// The home directory, where one is set.
    pub home: Option<AbsPath>,
    /// Where the person's settings live.
    pub config_dir: Option<AbsPath>,
    /// Where the ledger and the journal live.
    pub state_dir: Option<AbsPath>,
    /// Where temporary files go.
    pub temp_dir: AbsPath,
    /// The process may do anything to this machine.
    pub is_root: bool,
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStream {
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl AmbientEnvironment {
    /// Reads the surroundings. Fails only where there is no working directory.
    pub fn read() -> io::Result<Self> {
        let env: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let cwd = AbsPath::new(std::env::current_dir()?).map_err(io::Error::other)?;
        let home = env.get("HOME").and_then(|home| AbsPath::new(home).ok());
        let place = |variable: &str, below_home: &str| {
            let named = env.get(variable).and_then(|dir| AbsPath::new(dir).ok());
            named.or_else(|| Some(home.as_ref()?.join(below_home))).map(|dir| dir.join("toolgate"))
        };
        let config_dir = place("XDG_CONFIG_HOME", ".config");
        let state_dir = match env.get("TOOLGATE_STATE_DIR").and_then(|dir| AbsPath::new(dir).ok()) {
            Some(dir) => Some(dir),
            None => place("XDG_STATE_HOME", ".local/state"),
        };
        let temp_dir = AbsPath::new(std::env::temp_dir()).unwrap_or_else(|_| AbsPath::root().join("tmp"));
        let is_root = rustix::process::geteuid().is_root();
        Ok(Self { cwd, home, config_dir, state_dir, temp_dir, is_root, env })
    }

    /// `--cwd` as given, seen from where the process was started.
    pub fn absolute_path(&self, given: &str) -> AbsPath {
        let expanded = match (given.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.as_path().join(rest),
            _ => PathBuf::from(given),
        };
        self.cwd.join(expanded)
    }
}

/// Whether a standard stream is a terminal.
pub fn is_terminal(stream: StandardStream) -> bool {
    match stream {
        StandardStream::Stdin => io::stdin().is_terminal(),
        StandardStream::Stdout => io::stdout().is_terminal(),
        StandardStream::Stderr => io::stderr().is_terminal(),
    }
}
