//! Starting the process of a server: its environment, its private directory, its sandbox.

use crate::connection::ENDED;
use crate::server_entry::LspServerEntry;
use crate::server_program::find_server_program;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::unix::pipe;
use toolgate_files::{ScratchDirectory, make_directory, resolve, run_blocking};
use toolgate_process::sandbox::{
    FileGuard, ProcessLimits, SandboxMechanism, SandboxNetworkAccess, SandboxProfile,
};
use toolgate_process::{ServerLaunch, ServerProcess};
use toolgate_proto::protected_names::SANDBOX_PROTECTED_PATHS;
use toolgate_proto::{AbsPath, EntryKind};

/// Variables of toolgate's environment that servers need to find their toolchains, beside those that every server gets.
const TOOLCHAIN_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "NODE_PATH",
    "NVM_DIR",
    "PYENV_ROOT",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "GEM_HOME",
    "LD_LIBRARY_PATH",
];
/// Characters of a line of standard error in a message.
const MAX_STDERR_CHARS: usize = 300;

/// What all servers of a pool are started with.
#[derive(Clone)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// toolgate's environment; servers get the harmless part of it.
    pub env: BTreeMap<String, String>,
    /// Where the private temporary directories of servers are made.
    pub temp_dir: AbsPath,
    /// The home directory, for `~/` in `writable`.
    pub home: Option<AbsPath>,
    /// Asked before each start.
    pub permission: Arc<dyn StartPermission>,
}

/// Decides whether a server may start, and in which sandbox. Servers run code of the project: build scripts, plugins.
pub trait StartPermission: Send + Sync {
    /// The sandbox of the server; `None` starts it with the rights of the user. An error is the reason that it may not
    /// start.
    fn check_start(&self, entry: &LspServerEntry) -> Result<Option<LspSandbox>, String>;
}

/// The sandbox of servers: they may read what no rule hides, write to their own directories, and reach no network.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct LspSandbox {
    /// The rules for files.
    pub guard: FileGuard,
    /// Paths that they may not read.
    pub unreadable: Vec<AbsPath>,
    /// Paths that they may not change.
    pub protected: Vec<AbsPath>,
    /// The mechanism that enforces it.
    pub mechanism: SandboxMechanism,
    /// Resource limits of each process.
    pub limits: ProcessLimits,
    /// Refuse to start a server if a part of it cannot be enforced.
    pub required: bool,
}

impl LaunchOptions {
    /// Options with this environment.
    pub fn new(
        env: BTreeMap<String, String>,
        temp_dir: AbsPath,
        permission: Arc<dyn StartPermission>,
    ) -> Self {
        Self { env, temp_dir, home: None, permission }
    }
}

impl LspSandbox {
    /// The profile of one server.
    fn profile(&self, writable: Vec<AbsPath>, root: &AbsPath, private: &AbsPath) -> SandboxProfile {
        let mut protected = self.protected.clone();
        for tree in writable.iter().chain([root]) {
            protected.extend(SANDBOX_PROTECTED_PATHS.iter().map(|name| tree.join(name)));
        }
        let (files, trees): (Vec<_>, Vec<_>) =
            writable.into_iter().partition(|path| resolve(path).kind != EntryKind::Directory);
        SandboxProfile {
            writable: trees,
            entries: files,
            private: vec![private.clone()],
            guard: self.guard.clone(),
            protected,
            unreadable: self.unreadable.clone(),
            net: SandboxNetworkAccess::None,
            limits: self.limits,
            backend: self.mechanism,
            required: self.required,
            ..SandboxProfile::default()
        }
    }
}

/// The process of a server, and its private directory, which is removed after it.
pub(crate) struct StartedProcess {
    /// Ends with this value.
    pub(crate) process: ServerProcess,
    /// The temporary directory of the server.
    _private: ScratchDirectory,
}

impl StartedProcess {
    /// Ends it, and adds to a reason how it exited and the end of its standard error.
    pub(crate) async fn explain_failure(mut self, mut reason: String) -> String {
        // Any other reason says more: toolgate has closed the connection, and the exit is a consequence.
        if reason == ENDED
            && let Some(status) = self.process.exit_status().await
        {
            reason = format!("{ENDED} ({status})");
        }
        let stderr = self.process.stderr_tail();
        if let Some(line) = find_error_line(&stderr) {
            let line: String = line.trim().chars().take(MAX_STDERR_CHARS).collect();
            reason.push_str(&format!("; its last output: {line}"));
        }
        if let Some(denial) = self.process.denials().first() {
            reason.push_str(&format!("; its sandbox refused: {denial}"));
        }
        self.process.stop().await;
        reason
    }
}

/// The paths that a server may write to. Directories, which end with a slash, are made if their parents exist: a sandbox can
/// allow only a directory that is there.
///
/// A path of the project that a symlink leads out of it is left out: who writes the project must not choose what else a
/// server may change.
fn writable_paths(entry: &LspServerEntry, root: &AbsPath, home: Option<&AbsPath>) -> Vec<AbsPath> {
    let mut paths = Vec::new();
    for text in &entry.writable {
        let path = match text.strip_prefix("~/") {
            Some(rest) => home.map(|home| home.join(rest)),
            None => Some(root.join(text)),
        };
        let Some(path) = path.map(|path| path.lexical()) else { continue };
        let real = resolve(&path).real;
        if path.is_under(root) && !real.is_under(&resolve(root).real) {
            continue;
        }
        if text.ends_with('/') {
            // One that cannot be made is not writable, and the server says so.
            let _ = make_directory(&real);
        }
        paths.push(path);
    }
    paths
}

/// The line at the end of standard error that explains most: the first about an error, because a stack trace follows it, or else the
/// last.
fn find_error_line(stderr: &str) -> Option<&str> {
    let lines = || stderr.lines().filter(|line| !line.trim().is_empty());
    lines().find(|line| line.to_ascii_lowercase().contains("error")).or_else(|| lines().next_back())
}

/// Starts the process of a server. The error says why it does not start.
pub(crate) async fn start_process(
    entry: &LspServerEntry,
    root: &AbsPath,
    options: &LaunchOptions,
    sandbox: Option<LspSandbox>,
) -> Result<(StartedProcess, pipe::Receiver, pipe::Sender), String> {
    let private = ScratchDirectory::new(&options.temp_dir, "toolgate-lsp-")
        .map_err(|error| format!("no private directory can be made for it: {error}"))?;
    let passed = options.env.iter().filter(|(name, _)| TOOLCHAIN_VARIABLES.contains(&name.as_str()));
    let mut env: BTreeMap<String, String> =
        passed.map(|(name, value)| (name.clone(), value.clone())).collect();
    env.insert("TMPDIR".to_owned(), private.dir().to_string());
    env.extend(entry.env.clone());
    // The file that was found: a look-up of its own would take a placeholder that stands before it.
    let program = find_server_program(entry, &options.env);
    let command = program.map_or_else(|| entry.command.clone(), |program| program.to_string());
    let launch = ServerLaunch::new(command, entry.args.clone(), root.clone()).with_env(env);
    let writable = match &sandbox {
        Some(_) => writable_paths(entry, root, options.home.as_ref()),
        None => Vec::new(),
    };
    let profile = sandbox.map(|sandbox| sandbox.profile(writable, root, private.dir()));
    let ambient = options.env.clone();
    let command = entry.command.clone();
    // Starting blocks until the program was executed.
    let started = run_blocking(move || match profile {
        Some(profile) => {
            ServerProcess::start_sandboxed(&launch, &ambient, profile).map_err(|error| error.message)
        }
        None => ServerProcess::start(&launch, &ambient).map_err(|error| error.to_string()),
    });
    let started = started.await.map_err(|problem| problem.to_string()).and_then(|started| started);
    let (process, output, input) =
        started.map_err(|problem| format!("`{command}` cannot be started: {problem}"))?;
    Ok((StartedProcess { process, _private: private }, output, input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_and_symlinks_out_of_the_project_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let top = resolve(&AbsPath::new(dir.path()).unwrap()).real;
        let (root, home) = (top.join("project"), top.join("home"));
        for made in [&root, &home] {
            make_directory(made).unwrap();
        }
        std::os::unix::fs::symlink(home.as_path(), root.join("link").as_path()).unwrap();
        let mut entry = LspServerEntry::new("x", "x");
        entry.writable =
            ["target/", "a.lock", "link/", "link/x", "deep/er/", "~/cache/"].map(str::to_owned).to_vec();
        let paths = writable_paths(&entry, &root, Some(&home));
        let wanted = [root.join("target"), root.join("a.lock"), root.join("deep/er"), home.join("cache")];
        assert_eq!(paths, wanted);
        let is_directory = |path: &AbsPath| resolve(path).kind == EntryKind::Directory;
        assert_eq!(wanted.map(|path| is_directory(&path)), [true, false, false, true]);
    }

    #[test]
    fn the_line_about_the_error_is_chosen_from_the_last_words() {
        let rustup =
            "error: Unknown binary 'rust-analyzer'\n\nStack backtrace:\n   0: main\n  15: <unknown>\n";
        assert_eq!(find_error_line(rustup), Some("error: Unknown binary 'rust-analyzer'"));
        let node = "node:internal/modules:1\n  throw err;\n\nError: Cannot find module 'x'\n    at f\n\nNode.js v20\n";
        assert_eq!(find_error_line(node), Some("Error: Cannot find module 'x'"));
        assert_eq!(find_error_line("starting\ncannot load the plugin\n\n"), Some("cannot load the plugin"));
        assert_eq!(find_error_line("\n"), None);
    }
}
