//! Configuration of the commands of a session: environment variables, limits and sandbox.

use std::collections::BTreeMap;
use std::time::Duration;
use toolgate_process::GitHelpers;
use toolgate_process::sandbox::{ProcessLimits, SandboxMechanism};
use toolgate_proto::AbsPath;

/// How the commands of a session run. The host sets it with [`set_shell_config`](crate::set_shell_config) when it
/// creates the session, and again when its settings change.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShellConfig {
    /// toolgate's own environment variables. Commands get a filtered copy without secrets.
    pub environment: BTreeMap<String, String>,
    /// Names of further variables to pass to commands. A `*` matches any name, except names that look like secrets.
    pub pass: Vec<String>,
    /// Variables with explicit values, which override those of `environment`.
    pub set: BTreeMap<String, String>,
    /// The directory in which the session's private directory is created.
    pub temp_dir: AbsPath,
    /// The directory of output files; `None` for the private directory, which is removed when the session ends.
    pub output_dir: Option<AbsPath>,
    /// Whether git may run programs that a repository's configuration names: hooks, filters, pagers.
    pub git: GitHelpers,
    /// Bytes of output after which a command is stopped. It protects the disk.
    pub max_output_bytes: u64,
    /// Bytes of output in a result; the rest is in the output file. It protects the model's context window.
    pub max_shown_bytes: usize,
    /// What happens to a command in the foreground that reaches its timeout.
    pub on_timeout: OnTimeout,
    /// Time between SIGTERM and SIGKILL when a command is stopped.
    pub grace: Duration,
    /// Maximum number of background tasks at the same time.
    pub max_background_tasks: usize,
    /// What a command changes in the workspace is recorded in the journal, so that it can be undone.
    pub snapshots: bool,
    /// Settings of the sandbox.
    pub sandbox: SandboxSettings,
    /// The settings file that hints name as the one to edit, if there is one.
    pub settings_file: Option<String>,
}

/// What happens to a command in the foreground that reaches its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTimeout {
    /// It is stopped, and the call fails with its output so far.
    #[default]
    Stop,
    /// It becomes a background task.
    Background,
}

/// The part of the sandbox that comes from settings. The other part comes from the verdict of the call: `writable`,
/// `hosts`, `local_binding` and `sockets` apply only to a command that was allowed as a whole; the denials apply to
/// every command.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// Whether commands run in the sandbox.
    pub enabled: bool,
    /// Refuse to run commands if the kernel cannot enforce every part of the sandbox.
    pub required: bool,
    /// Whether a call may run outside the sandbox if its verdict grants that.
    pub allow_unsandboxed: bool,
    /// Directories outside the workspace in which commands may write.
    pub writable: Vec<AbsPath>,
    /// Paths that commands may not change.
    pub protected: Vec<AbsPath>,
    /// Paths that commands may not read.
    pub unreadable: Vec<AbsPath>,
    /// Hosts that commands may reach in addition to those of the verdict: `example.com`, `*.example.com` or `*`.
    pub hosts: Vec<String>,
    /// Hosts that commands may not reach, even if `hosts` or the verdict allows them.
    pub denied_hosts: Vec<String>,
    /// Whether commands may listen on loopback and connect to it, for example to test a server.
    pub local_binding: bool,
    /// Unix domain sockets that commands may connect to, or directories of such sockets.
    pub sockets: Vec<AbsPath>,
    /// The mechanism that enforces the sandbox.
    pub backend: SandboxMechanism,
    /// Resource limits of a command: memory, processes, file size, processor time.
    pub limits: ProcessLimits,
}

impl Default for SandboxSettings {
    /// Enables the sandbox without requiring it, so that commands also run on kernels without the needed features.
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
    /// Starts from an empty environment; the caller provides the variables.
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
            snapshots: false,
            sandbox: SandboxSettings::default(),
            settings_file: None,
        }
    }
}

impl ShellConfig {
    /// A configuration with these environment variables, which creates private directories in `temp_dir`; everything else
    /// has its default.
    pub fn new(environment: BTreeMap<String, String>, temp_dir: AbsPath) -> Self {
        Self { environment, temp_dir, ..Self::default() }
    }

    /// The first field that grants commands more than another configuration does, by the name of its setting. The patterns
    /// name every field, so a new field does not compile until it is compared.
    pub fn find_looser_field(&self, other: &Self) -> Option<&'static str> {
        let Self {
            environment,
            pass,
            set,
            temp_dir,
            output_dir,
            git,
            max_output_bytes,
            max_shown_bytes,
            on_timeout,
            grace,
            max_background_tasks,
            snapshots,
            sandbox,
            // A name in a hint grants nothing.
            settings_file: _,
        } = self;
        let same = *environment == other.environment
            && *temp_dir == other.temp_dir
            && *output_dir == other.output_dir
            && *git == other.git
            && *max_output_bytes == other.max_output_bytes
            && *max_shown_bytes == other.max_shown_bytes
            && *on_timeout == other.on_timeout
            && *grace == other.grace
            && *max_background_tasks == other.max_background_tasks
            && *snapshots == other.snapshots;
        [
            ("the shell's settings", same),
            ("sandbox.environment.pass", is_within(pass, &other.pass)),
            ("env", *set == other.set),
        ]
        .into_iter()
        .find(|(_, holds)| !holds)
        .map(|(what, _)| what)
        .or_else(|| sandbox.find_looser_field(&other.sandbox))
    }
}

impl SandboxSettings {
    /// The same for the sandbox.
    fn find_looser_field(&self, other: &Self) -> Option<&'static str> {
        let Self {
            enabled,
            required,
            allow_unsandboxed,
            writable,
            protected,
            unreadable,
            hosts,
            denied_hosts,
            local_binding,
            sockets,
            backend,
            limits,
        } = self;
        [
            ("sandbox.enabled", *enabled || !other.enabled),
            ("sandbox.required", *required || !other.required),
            ("sandbox.allowUnsandboxedCommands", !*allow_unsandboxed || other.allow_unsandboxed),
            ("sandbox.filesystem.allowWrite", is_within(writable, &other.writable)),
            ("sandbox.filesystem.denyWrite", is_within(&other.protected, protected)),
            ("sandbox.filesystem.denyRead", is_within(&other.unreadable, unreadable)),
            ("sandbox.network.allowedDomains", is_within(hosts, &other.hosts)),
            ("sandbox.network.deniedDomains", is_within(&other.denied_hosts, denied_hosts)),
            ("sandbox.network.allowLocalBinding", !*local_binding || other.local_binding),
            ("sandbox.network.allowUnixSockets", is_within(sockets, &other.sockets)),
            ("sandbox.backend", *backend == other.backend),
            ("sandbox.limits", limits.is_within(&other.limits)),
        ]
        .into_iter()
        .find(|(_, holds)| !holds)
        .map(|(what, _)| what)
    }
}

/// Whether every item of the first list is in the second.
fn is_within<T: PartialEq>(few: &[T], many: &[T]) -> bool {
    few.iter().all(|one| many.contains(one))
}
