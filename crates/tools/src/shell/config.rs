//! What commands run in: environment, directories, sandbox.

use std::collections::BTreeMap;
use std::time::Duration;
use toolgate_process::GitHelpers;
use toolgate_process::sandbox::{ProcessLimits, SandboxMechanism};
use toolgate_proto::AbsPath;

/// The surroundings of a session's commands. Set once, by whoever makes the session.
#[derive(Debug, Clone)]
pub struct ShellConfig {
    /// toolgate's own environment, from which theirs is cut.
    pub environment: BTreeMap<String, String>,
    /// Names that are let through beside the usual ones; `*` stands for anything, but not for a secret.
    pub pass: Vec<String>,
    /// What is set in so many words.
    pub set: BTreeMap<String, String>,
    /// Where the session's private directory is made.
    pub temp_dir: AbsPath,
    /// Where long output is kept; in the private directory where absent, and gone with it.
    pub output_dir: Option<AbsPath>,
    /// Whether git runs helpers that a repository chooses.
    pub git: GitHelpers,
    /// Bytes of output after which a command is stopped.
    pub max_output_bytes: u64,
    /// Characters of output that a model is given.
    pub max_shown_bytes: usize,
    /// What becomes of a command that runs out of time.
    pub on_timeout: OnTimeout,
    /// How long a command may take to end by itself when it is told to.
    pub grace: Duration,
    /// Commands in the background at one time.
    pub max_background_tasks: usize,
    /// The sandbox.
    pub sandbox: SandboxSettings,
}

/// What becomes of a command in the foreground that runs out of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTimeout {
    /// It is stopped.
    #[default]
    Stop,
    /// It goes on in the background.
    Background,
}

/// The sandbox, as far as settings and not the verdict decide it. They only ever add to what the verdict denies.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Commands run in it.
    pub enabled: bool,
    /// They do not run at all where a part of it cannot be enforced.
    pub required: bool,
    /// A call may leave it, if that was granted.
    pub allow_unsandboxed: bool,
    /// Directories in which commands may write beside the workspace.
    pub writable: Vec<AbsPath>,
    /// Paths that stay as they are.
    pub protected: Vec<AbsPath>,
    /// Paths that may not be read.
    pub unreadable: Vec<AbsPath>,
    /// Hosts that commands may reach, beside those of the verdict: names, `*.` and a name, or `*`.
    pub hosts: Vec<String>,
    /// Hosts that they may not reach, whatever else is said.
    pub denied_hosts: Vec<String>,
    /// Commands may listen on this machine and connect to it.
    pub local_binding: bool,
    /// Sockets in the file system that commands may connect to, or directories of them.
    pub sockets: Vec<AbsPath>,
    /// Who makes the box.
    pub backend: SandboxMechanism,
    /// How much of the machine they may use.
    pub limits: ProcessLimits,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            required: false,
            allow_unsandboxed: true,
            writable: Vec::new(),
            protected: Vec::new(),
            unreadable: Vec::new(),
            hosts: Vec::new(),
            denied_hosts: Vec::new(),
            local_binding: false,
            sockets: Vec::new(),
            backend: SandboxMechanism::default(),
            limits: ProcessLimits::default(),
        }
    }
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self {
            environment: BTreeMap::new(),
            pass: Vec::new(),
            set: BTreeMap::new(),
            temp_dir: AbsPath::root().join("tmp"),
            output_dir: None,
            git: GitHelpers::default(),
            max_output_bytes: 256 << 20,
            max_shown_bytes: 30_000,
            on_timeout: OnTimeout::default(),
            grace: Duration::from_secs(1),
            max_background_tasks: 64,
            sandbox: SandboxSettings::default(),
        }
    }
}
