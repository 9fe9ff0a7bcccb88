//! From what was typed to the servers behind the gate.

use super::super::CliError;
use super::super::context::CliContext;
use super::super::output::CliOutput;
use std::collections::BTreeSet;
use std::time::Duration;
use toolgate::mcp::client::{
    CoordinatorOptions, CredentialFile, McpCoordinator, OauthOptions, PinStore, ServerEntry, SignInOptions,
};
use toolgate::mcp_servers::{DiscoveredServers, ServerDiscoveryOptions};
use toolgate::settings::{LoadedSettings, trust::TrustStatus};

/// How long the first list waits for servers that need not be there.
const DEFAULT_FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// How many toolgates may stand one behind the other and still have servers.
const MAX_SERVER_DEPTH: usize = 3;

/// The servers that were found.
pub(crate) struct UpstreamServers {
    pub(crate) servers: Vec<ServerEntry>,
}

impl UpstreamServers {
    /// Looks for servers and tells what is wrong with others.
    pub(crate) fn discover(
        world: &CliContext,
        settings: &LoadedSettings,
        out: &mut CliOutput,
    ) -> Result<Self, CliError> {
        let mut options = ServerDiscoveryOptions {
            root: toolgate_files::resolve(&world.cwd()).real,
            home: world.ambient.home.clone(),
            config_dir: world.ambient.config_dir.clone(),
            given: world.global.mcp_config.clone(),
            given_base: world.ambient.cwd.clone(),
            strict: world.global.strict_mcp_config,
            trust_workspace: settings.trust_status == TrustStatus::Trusted,
            env: world.ambient.env.clone(),
        };
        // Whoever leaves out a group of settings leaves out its servers as well.
        if let Some(sources) = &world.global.setting_sources {
            if !sources.iter().any(|source| source == "user") {
                (options.home, options.config_dir) = (None, None);
            }
            if !sources.iter().any(|source| source == "project") {
                options.strict = options.strict || sources.iter().all(|source| source == "none");
            }
        }
        // A toolgate that is a server of another reads the same configuration, and would find itself in it.
        match toolgate_process::server_depth(&world.ambient.env) {
            0 => {}
            1..MAX_SERVER_DEPTH => options.strict = true,
            _ => return Ok(Self { servers: Vec::new() }),
        }
        let gathered = DiscoveredServers::discover(&options, settings).map_err(CliError::Usage)?;
        for problem in &gathered.problems {
            out.print_note(problem);
        }
        let mut servers = gathered.servers;
        let millis = |name: &str| {
            world.ambient.env.get(name).and_then(|value| value.parse().ok()).map(Duration::from_millis)
        };
        if let Some(limit) = millis("MCP_TIMEOUT") {
            servers.iter_mut().for_each(|server| server.connect_timeout = limit);
        }
        Ok(Self { servers })
    }

    /// Has the servers ready before the first call that hooks and the prompt tool cannot do without. Their names.
    pub(crate) fn mark_required(
        &mut self,
        world: &CliContext,
        settings: &LoadedSettings,
    ) -> BTreeSet<String> {
        let mut needed: BTreeSet<String> = settings.hook_servers().into_iter().collect();
        needed.extend(
            world.global.permission_prompt_tool.as_deref().and_then(parse_server_name).map(str::to_owned),
        );
        for entry in self.servers.iter_mut().filter(|entry| needed.contains(&entry.name)) {
            entry.always_load = true;
        }
        needed
    }

    /// The one of that name.
    pub(crate) fn find_server(&self, name: &str) -> Result<&ServerEntry, CliError> {
        self.servers
            .iter()
            .find(|server| server.name == name)
            .ok_or_else(|| CliError::Usage(format!("there is no server `{name}`; see `toolgate mcp list`")))
    }

    /// Makes them ready to be started. Must be called inside a runtime.
    pub(crate) fn into_coordinator(
        self,
        world: &CliContext,
        settings: &LoadedSettings,
    ) -> Result<McpCoordinator, CliError> {
        self.into_coordinator_with(world, settings, None)
    }

    /// The same, for somebody who may sign in.
    pub(crate) fn into_coordinator_with(
        self,
        world: &CliContext,
        settings: &LoadedSettings,
        sign_in: Option<SignInOptions>,
    ) -> Result<McpCoordinator, CliError> {
        let credentials = world.ambient.state_dir.as_ref().map(|dir| dir.join("mcp-credentials.json"));
        let env = &world.ambient.env;
        let nonblocking =
            env.get("MCP_CONNECTION_NONBLOCKING").is_some_and(|value| value == "1" || value == "true");
        let patience = env
            .get("MCP_CONNECT_TIMEOUT_MS")
            .and_then(|value| value.parse().ok())
            .map_or(DEFAULT_FIRST_LIST_TIMEOUT, Duration::from_millis);
        let mut roots = vec![toolgate_files::resolve(&world.cwd()).real];
        roots.extend(settings.additional_directories());
        let access =
            OauthOptions::default().with_sign_in(sign_in).with_credentials(CredentialFile::new(credentials));
        let setup = CoordinatorOptions::new(open_pins(world)?)
            .with_env(env.clone())
            .with_roots(roots)
            .with_ready_timeout(if nonblocking { Duration::ZERO } else { patience })
            .with_access(access);
        Ok(McpCoordinator::new(self.servers, setup))
    }
}

/// The server in the name of one of its tools.
pub(crate) fn parse_server_name(tool: &str) -> Option<&str> {
    Some(tool.strip_prefix("mcp__")?.split_once("__")?.0)
}

/// What was approved about servers.
pub(crate) fn open_pins(world: &CliContext) -> Result<PinStore, CliError> {
    let file = world.ambient.state_dir.as_ref().map(|dir| dir.join("mcp-servers.json"));
    PinStore::open(file).map_err(CliError::Usage)
}
