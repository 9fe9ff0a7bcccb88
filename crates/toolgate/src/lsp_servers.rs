//! The language servers of a toolgate: which there are, and when they may start.
//!
//! Servers come from the key `lspServers` of the settings, from approved plugins, and from the table of well-known servers,
//! if their programs are installed. Nothing is downloaded.
//! A server runs code of the project, so it starts only if the project is trusted, and in the sandbox that commands have.

use crate::settings::LoadedSettings;
use crate::settings::trust::{TrustStatus, language_server_key};
use crate::settings_reloader::SettingsReloader;
use serde_json::Value;
use std::sync::{Arc, Weak};
use std::time::Duration;
use toolgate_gate::Gate;
use toolgate_lsp::{
    EditDiagnostics, LaunchOptions, LspSandbox, LspServerEntry, LspSource, PoolOptions, ServerPool,
    StartPermission, known_servers, read_servers,
};
use toolgate_proto::AbsPath;
use toolgate_tools::Toolset;

/// The file in the state directory that `toolgate lsp restart` changes.
pub const RESTART_FILE: &str = "lsp-restart";
/// The directory in the state directory where running toolgates say what their servers do, for `toolgate lsp status`.
pub const STATUS_DIR: &str = "lsp-status";

/// The configured servers, strongest first, and the problems of invalid entries. Servers of a project that is not trusted
/// are left out.
///
/// ```
/// use toolgate::settings::LoadedSettings;
///
/// let (servers, problems) = toolgate::lsp_servers::collect_servers(&LoadedSettings::default());
/// assert!(servers.iter().any(|server| server.command == "rust-analyzer"));
/// assert!(problems.is_empty());
/// ```
pub fn collect_servers(settings: &LoadedSettings) -> (Vec<LspServerEntry>, Vec<String>) {
    let entries = settings.merged().lsp_servers.clone();
    let (mut servers, mut problems) = read_servers(&Value::Object(entries.into_iter().collect()), "settings");
    servers.retain(|server| {
        let is_covered = !settings.is_unresolved_server(&language_server_key(&server.name));
        if !is_covered {
            problems.push(format!(
                "lspServers.{}: trust does not cover it, because the files that it runs are unknown; name a program by \
                 its path, or move the entry to your own settings",
                server.name
            ));
        }
        is_covered
    });
    let (of_plugins, wrong) = settings.plugins().language_servers();
    servers.extend(of_plugins);
    problems.extend(wrong);
    for known in known_servers() {
        if !servers.iter().any(|server| server.name == known.name) {
            servers.push(known);
        }
    }
    (servers, problems)
}

/// The hook that adds diagnostics to the results of edits, before its servers are known.
pub(crate) fn new_edit_hook() -> Arc<EditDiagnostics> {
    Arc::new(EditDiagnostics::default())
}

/// The source of the tool, with the servers of the settings as they are now.
pub(crate) fn new_lsp_source(
    gate: &Arc<Gate>,
    reloader: &Arc<SettingsReloader>,
    toolset: Toolset,
    hook: &EditDiagnostics,
) -> LspSource {
    let pool = new_pool(gate, reloader);
    reloader.follow_language_servers(&pool);
    hook.connect(Arc::clone(&pool));
    LspSource::new(tool_name(toolset), pool)
}

/// The name of the tool in a toolset.
pub(crate) fn tool_name(toolset: Toolset) -> &'static str {
    match toolset {
        Toolset::Claude => "LSP",
        Toolset::Plain => "lsp",
    }
}

/// Builds the server pool from the active settings. The servers start later, at the first call that needs them.
fn new_pool(gate: &Arc<Gate>, reloader: &Arc<SettingsReloader>) -> Arc<ServerPool> {
    let options = reloader.builder_options();
    let settings = reloader.active().settings;
    let permission = GateStartPermission { gate: Arc::downgrade(gate), reloader: Arc::downgrade(reloader) };
    let shell_config = &options.shell_config;
    let mut launch = LaunchOptions::new(
        shell_config.environment.clone(),
        shell_config.temp_dir.clone(),
        Arc::new(permission),
    );
    launch.home = options.session.workspace().home.clone();
    let mut pool_options = PoolOptions::new(collect_servers(&settings).0, launch);
    if let Some(millis) = settings.merged().lsp_diagnostics_timeout {
        pool_options.diagnostics_timeout = Duration::from_millis(millis);
    }
    let state_dir = options.options.as_ref().and_then(|options| options.state_dir.as_ref());
    pool_options.restart_file = state_dir.map(|dir: &AbsPath| dir.join(RESTART_FILE));
    pool_options.status_dir = state_dir.map(|dir: &AbsPath| dir.join(STATUS_DIR));
    ServerPool::new(pool_options)
}

/// Lets servers start in a trusted project, with the rules and the sandbox settings of that moment.
struct GateStartPermission {
    /// Weak, to avoid a reference cycle: the gate owns the LSP source and thereby this permission.
    gate: Weak<Gate>,
    /// Weak for the same reason; read at each start, so that a change of settings or trust applies to the next server.
    reloader: Weak<SettingsReloader>,
}

impl StartPermission for GateStartPermission {
    /// Refuses servers in untrusted or changed projects, because a language server runs the project's code. Otherwise
    /// derives the sandbox from the shell's settings.
    fn check_start(&self, _: &LspServerEntry) -> Result<Option<LspSandbox>, String> {
        let (Some(gate), Some(reloader)) = (self.gate.upgrade(), self.reloader.upgrade()) else {
            return Err("toolgate is ending".to_owned());
        };
        match reloader.active().settings.trust_status {
            TrustStatus::Trusted => {}
            TrustStatus::Changed => return Err("this project changed after you trusted it".to_owned()),
            TrustStatus::Unknown => return Err("this project is not trusted".to_owned()),
        }
        let settings = reloader.shell_config().sandbox;
        if !settings.enabled {
            return Ok(None);
        }
        let mut sandbox = LspSandbox::default();
        sandbox.guard = gate.file_guard(&reloader.builder_options().session.workspace());
        sandbox.unreadable = settings.unreadable;
        sandbox.protected = settings.protected;
        sandbox.mechanism = settings.backend;
        sandbox.limits = settings.limits;
        sandbox.required = settings.required;
        Ok(Some(sandbox))
    }
}
