//! The one place where toolgate reads its own environment, working directory and user.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use toolgate_proto::AbsPath;

/// What the process was started with. The binary reads it once and passes it on as a value, so that nothing else depends
/// on the state of the process.
#[derive(Debug, Clone)]
pub struct AmbientEnvironment {
    /// The working directory.
    pub cwd: AbsPath,
    /// The environment variables; those that are not UTF-8 are left out.
    pub env: BTreeMap<String, String>,
    /// The home directory, if `HOME` is set to an absolute path.
    pub home: Option<AbsPath>,
    /// The directory of the user's settings.
    pub config_dir: Option<AbsPath>,
    /// The directory of the ledger and the journal.
    pub state_dir: Option<AbsPath>,
    /// The directory for temporary files.
    pub temp_dir: AbsPath,
    /// The process runs as root.
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
    /// Reads the state of the process. Fails only if there is no working directory.
    pub fn read() -> io::Result<Self> {
        let env: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let cwd = AbsPath::new(std::env::current_dir()?).map_err(io::Error::other)?;
        let home = env.get("HOME").and_then(|home| AbsPath::new(home).ok());
        let xdg_dir = |variable: &str, below_home: &str| {
            let named = env.get(variable).and_then(|dir| AbsPath::new(dir).ok());
            named.or_else(|| Some(home.as_ref()?.join(below_home))).map(|dir| dir.join("toolgate"))
        };
        let config_dir = xdg_dir("XDG_CONFIG_HOME", ".config");
        let state_dir = match env.get("TOOLGATE_STATE_DIR").and_then(|dir| AbsPath::new(dir).ok()) {
            Some(dir) => Some(dir),
            None => xdg_dir("XDG_STATE_HOME", ".local/state"),
        };
        let temp_dir = AbsPath::new(std::env::temp_dir()).unwrap_or_else(|_| AbsPath::root().join("tmp"));
        let is_root = rustix::process::geteuid().is_root();
        Ok(Self { cwd, home, config_dir, state_dir, temp_dir, is_root, env })
    }

    /// A path argument made absolute: `~/` is the home directory, and relative paths start at the working directory.
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
