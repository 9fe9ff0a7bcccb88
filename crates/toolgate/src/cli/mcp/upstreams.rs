//! The upstream MCP servers of a run: found in settings, lists and options, then started by a coordinator.

use super::super::CliError;
use super::super::context::CliContext;
use super::super::output::CliOutput;
use std::collections::BTreeSet;
use std::time::Duration;
use toolgate::mcp::client::{
    CoordinatorOptions, CredentialFile, McpCoordinator, OauthOptions, PinStore, ServerEntry, ServerState,
    SignInOptions,
};
use toolgate::mcp_servers::{DiscoveredServers, ServerDiscoveryOptions};
use toolgate::settings::{LoadedSettings, MCP_PINS_FILE, trust::TrustStatus};
use toolgate::{BuildError, Toolgate};

/// How long the first tool list waits for servers that are not marked `alwaysLoad`.
const DEFAULT_FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a command waits for the runtime's tasks at its end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// How many toolgates can be nested as servers of each other. A deeper one starts no servers, which ends a loop.
const MAX_SERVER_DEPTH: usize = 3;

/// The configured servers, not started yet.
pub(crate) struct UpstreamServers {
    /// The usable entries; a name occurs once.
    pub(crate) servers: Vec<ServerEntry>,
    /// What is wrong with the other entries, and with lists that cannot be read.
    pub(crate) problems: Vec<String>,
}

/// What is wrong with lists of servers and their entries: the tools of such a server are missing.
pub(crate) fn find_server_problems(context: &CliContext, settings: &LoadedSettings) -> Vec<String> {
    let options = discovery_options(context, settings);
    let discovered = options.map(|options| DiscoveredServers::discover(&options, settings));
    match discovered {
        Some(Ok(discovered)) => discovered.problems,
        Some(Err(problem)) => vec![problem],
        None => Vec::new(),
    }
}

/// Registers the tools for resources with the configured servers, for a command that judges calls and connects to no server.
/// What is wrong with the lists is reported by the commands that connect.
pub(crate) fn register_resource_tools(context: &CliContext, toolgate: &Toolgate) -> Result<(), CliError> {
    let settings = toolgate.settings();
    let options = discovery_options(context, &settings);
    let discovered = options.map(|options| DiscoveredServers::discover(&options, &settings));
    let servers = discovered.and_then(Result::ok).map(|discovered| discovered.servers).unwrap_or_default();
    if servers.is_empty() {
        return Ok(());
    }
    let coordinator = McpCoordinator::new(servers, CoordinatorOptions::new(PinStore::in_memory()));
    Ok(coordinator.register_resource_tools(toolgate.gate()).map_err(BuildError::from)?)
}

/// Where the servers of a run are looked for; none if this run starts no servers.
fn discovery_options(context: &CliContext, settings: &LoadedSettings) -> Option<ServerDiscoveryOptions> {
    let mut options = ServerDiscoveryOptions::new(toolgate_files::resolve(&context.cwd()).real);
    options.config_root = context.config_root();
    options.home = context.ambient.home.clone();
    options.config_dir = context.ambient.config_dir.clone();
    options.given = context.global.mcp_config.clone();
    options.given_base = context.ambient.cwd.clone();
    options.strict = context.global.strict_mcp_config;
    options.trust_workspace = settings.trust_status == TrustStatus::Trusted;
    options.env = context.ambient.env.clone();
    // `--setting-sources` selects the server lists as well as the settings files.
    if let Some(sources) = &context.global.setting_sources {
        if !sources.iter().any(|source| source == "user") {
            (options.home, options.config_dir) = (None, None);
        }
        if !sources.iter().any(|source| source == "project") {
            options.strict =
                options.strict || sources.iter().all(|source| matches!(source.as_str(), "none" | ""));
        }
    }
    // A toolgate that another toolgate started reads the same configuration, and would start itself again.
    match toolgate_process::server_depth(&context.ambient.env) {
        0 => {}
        1..MAX_SERVER_DEPTH => options.strict = true,
        _ => return None,
    }
    Some(options)
}

impl UpstreamServers {
    /// Collects the servers from all sources, and prints a note for each unusable entry.
    pub(crate) fn discover(
        context: &CliContext,
        settings: &LoadedSettings,
        out: &mut CliOutput,
    ) -> Result<Self, CliError> {
        let Some(options) = discovery_options(context, settings) else {
            return Ok(Self { servers: Vec::new(), problems: Vec::new() });
        };
        let discovered = DiscoveredServers::discover(&options, settings).map_err(CliError::Usage)?;
        for problem in &discovered.problems {
            out.print_note(problem);
        }
        let mut servers = discovered.servers;
        let millis = |name: &str| {
            context.ambient.env.get(name).and_then(|value| value.parse().ok()).map(Duration::from_millis)
        };
        if let Some(limit) = millis("MCP_TIMEOUT") {
            servers.iter_mut().for_each(|server| server.connect_timeout = limit);
        }
        Ok(Self { servers, problems: discovered.problems })
    }

    /// Marks the servers whose tools are hooks or the prompt tool, so that they are ready before the first call.
    /// Returns their names.
    pub(crate) fn mark_required(
        &mut self,
        context: &CliContext,
        settings: &LoadedSettings,
    ) -> BTreeSet<String> {
        let mut required: BTreeSet<String> = settings.hook_servers().into_iter().collect();
        required.extend(
            context.global.permission_prompt_tool.as_deref().and_then(parse_server_name).map(str::to_owned),
        );
        for entry in self.servers.iter_mut().filter(|entry| required.contains(&entry.name)) {
            entry.always_load = true;
        }
        required
    }

    /// The server with this name.
    pub(crate) fn find_server(&self, name: &str) -> Result<&ServerEntry, CliError> {
        self.servers.iter().find(|server| server.name == name).ok_or_else(|| {
            // The note above says what is wrong with the list or the entry.
            CliError::Usage(match self.problems.is_empty() {
                true => format!("unknown server `{name}`; `toolgate mcp list` lists the servers"),
                false => format!(
                    "there is no usable server `{name}`; first repair what is reported above, then see `toolgate mcp list`"
                ),
            })
        })
    }

    /// Connects to the servers, adds their tools, and ends the servers again; their tools stay listed. Returns the state
    /// of each server when it was connected or had failed.
    pub(crate) fn connect_once(
        self,
        context: &CliContext,
        toolgate: &Toolgate,
    ) -> Result<Vec<ServerState>, CliError> {
        let pins = open_pins(context)?;
        self.connect_with_pins(context, toolgate, pins)
    }

    /// The same with other approvals than the stored ones.
    pub(crate) fn connect_with_pins(
        mut self,
        context: &CliContext,
        toolgate: &Toolgate,
        pins: PinStore,
    ) -> Result<Vec<ServerState>, CliError> {
        // Wait until every server is connected or has failed.
        self.servers.iter_mut().for_each(|server| server.always_load = true);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let states = runtime.block_on(async {
            let mut options = coordinator_options(context, &toolgate.settings(), None)?;
            options.pins = pins;
            let coordinator = McpCoordinator::new(self.servers, options);
            toolgate.add_source(coordinator.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
            coordinator.wait_until_ready().await;
            let states = coordinator.states();
            coordinator.close().await;
            Ok::<_, CliError>(states)
        });
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        states
    }

    /// A coordinator for the servers. Must be called inside a tokio runtime.
    pub(crate) fn into_coordinator(
        self,
        context: &CliContext,
        settings: &LoadedSettings,
    ) -> Result<McpCoordinator, CliError> {
        self.into_coordinator_with(context, settings, None)
    }

    /// A coordinator for servers that are added to a session that has one already: the tools for resources are there.
    pub(crate) fn into_further_coordinator(
        self,
        context: &CliContext,
        settings: &LoadedSettings,
    ) -> Result<McpCoordinator, CliError> {
        let setup = coordinator_options(context, settings, None)?.without_resource_tools();
        Ok(McpCoordinator::new(self.servers, setup))
    }

    /// A coordinator that can start an OAuth sign-in in the browser.
    pub(crate) fn into_coordinator_with(
        self,
        context: &CliContext,
        settings: &LoadedSettings,
        sign_in: Option<SignInOptions>,
    ) -> Result<McpCoordinator, CliError> {
        let setup = coordinator_options(context, settings, sign_in)?;
        Ok(McpCoordinator::new(self.servers, setup))
    }
}

/// Keeps the servers of plugins as the plugins are while a session runs. Must be called inside a tokio runtime.
pub(crate) fn follow_plugin_servers(context: &CliContext, toolgate: &Toolgate, coordinator: &McpCoordinator) {
    let context = CliContext { ambient: context.ambient.clone(), global: context.global.clone() };
    toolgate.follow_plugin_servers(coordinator, move |settings| {
        // Problems of servers were reported at the start; `toolgate mcp list` reports them again.
        let mut out = CliOutput::new(context.global.color, true);
        let found = UpstreamServers::discover(&context, settings, &mut out);
        found.map(|found| found.servers).unwrap_or_default()
    });
}

/// What a coordinator of this run needs to know.
fn coordinator_options(
    context: &CliContext,
    settings: &LoadedSettings,
    sign_in: Option<SignInOptions>,
) -> Result<CoordinatorOptions, CliError> {
    let credentials = context.ambient.state_dir.as_ref().map(|dir| dir.join("mcp-credentials.json"));
    let env = &context.ambient.env;
    let nonblocking =
        env.get("MCP_CONNECTION_NONBLOCKING").is_some_and(|value| value == "1" || value == "true");
    let ready_timeout = env
        .get("MCP_CONNECT_TIMEOUT_MS")
        .and_then(|value| value.parse().ok())
        .map_or(DEFAULT_FIRST_LIST_TIMEOUT, Duration::from_millis);
    let mut roots = vec![toolgate_files::resolve(&context.cwd()).real];
    roots.extend(settings.additional_directories());
    let access =
        OauthOptions::default().with_sign_in(sign_in).with_credentials(CredentialFile::new(credentials));
    Ok(CoordinatorOptions::new(open_pins(context)?)
        .with_env(env.clone())
        .with_roots(roots)
        .with_ready_timeout(if nonblocking { Duration::ZERO } else { ready_timeout })
        .with_access(access))
}

/// The server in a tool name of the form `mcp__SERVER__TOOL`.
pub(crate) fn parse_server_name(tool: &str) -> Option<&str> {
    Some(tool.strip_prefix("mcp__")?.split_once("__")?.0)
}

/// The store of approved launch commands and tool definitions.
pub(crate) fn open_pins(context: &CliContext) -> Result<PinStore, CliError> {
    let file = context.ambient.state_dir.as_ref().map(|dir| dir.join(MCP_PINS_FILE));
    PinStore::open(file).map_err(CliError::Usage)
}
