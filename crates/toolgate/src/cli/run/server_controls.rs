//! The MCP servers of a session: those of settings, those inside the host program, and those that a host adds.

use super::super::context::CliContext;
use super::super::mcp::UpstreamServers;
use super::super::output::CliOutput;
use super::host_session::{describe_problem, host_server_entry};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate::Toolgate;
use toolgate::host::ControlChannel;
use toolgate::mcp::client::{CoordinatorOptions, McpConnectionError, McpCoordinator, PinStore, ServerState};

/// Where the servers of settings and arguments come from, as hosts are told.
pub(super) const CONFIGURED_SOURCE: &str = "config";

/// The servers of a session.
pub(super) struct ServerControls {
    /// The options and the environment, for servers that are added.
    context: Arc<CliContext>,
    toolgate: Toolgate,
    /// The servers of settings and arguments.
    configured: Option<McpCoordinator>,
    /// The servers inside the host program, which are connected at the first turn: it cannot answer before.
    hosted: Option<McpCoordinator>,
    /// The editor that has the directory open.
    editor: Option<McpCoordinator>,
    /// The way to the host, for servers inside it that are added later.
    channel: Option<ControlChannel>,
    /// The servers that the host added, by name.
    added: Mutex<Vec<AddedServer>>,
    /// Held while the host changes its servers: one change at a time.
    changing: tokio::sync::Mutex<()>,
    /// Set once all servers are connected, so that only the first turn waits for them.
    connected: tokio::sync::OnceCell<()>,
}

/// A server that the host added.
#[derive(Clone)]
struct AddedServer {
    name: String,
    /// As the host gave it.
    config: Value,
    servers: McpCoordinator,
}

impl ServerControls {
    /// The servers of a session.
    pub(super) fn new(
        context: Arc<CliContext>,
        toolgate: Toolgate,
        (configured, hosted, editor): (
            Option<McpCoordinator>,
            Option<McpCoordinator>,
            Option<McpCoordinator>,
        ),
        channel: Option<ControlChannel>,
    ) -> Self {
        Self {
            context,
            toolgate,
            configured,
            hosted,
            editor,
            channel,
            added: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            connected: tokio::sync::OnceCell::new(),
        }
    }

    /// Waits for the servers, the first time.
    pub(super) async fn connect(&self) {
        self.connected
            .get_or_init(|| async {
                if let Some(servers) = &self.hosted {
                    // Only a gate that is closed refuses a source.
                    let _ = self.toolgate.add_source(servers.clone());
                    servers.wait_until_ready().await;
                }
                for servers in [&self.configured, &self.editor].into_iter().flatten() {
                    servers.wait_until_ready().await;
                }
            })
            .await;
    }

    /// Every server, as the `init` frame lists it.
    pub(super) fn list(&self) -> Vec<Value> {
        self.groups().iter().flat_map(|(servers, source)| mcp_server_list(servers, source)).collect()
    }

    /// The answer to `mcp_status`.
    pub(super) fn status(&self) -> Value {
        let entries = self.groups().into_iter().flat_map(|(servers, source)| {
            servers.states().iter().map(|state| server_entry(state, source)).collect::<Vec<_>>()
        });
        json!({ "mcpServers": entries.collect::<Vec<_>>() })
    }

    /// Connects a server anew.
    pub(super) async fn reconnect(&self, request: &Value) -> Result<Value, String> {
        let name = server_name(request)?;
        self.connect().await;
        let servers = self.find(name)?;
        match servers.reconnect(name).await {
            Some(Ok(())) => Ok(json!({})),
            Some(Err(error)) => Err(error.refusal(name).reason),
            None => Err(unknown_server(name)),
        }
    }

    /// Switches a server off or on.
    pub(super) async fn toggle(&self, request: &Value) -> Result<Value, String> {
        let name = server_name(request)?;
        let is_enabled = request.get("enabled").and_then(Value::as_bool).ok_or("`enabled` is missing")?;
        self.connect().await;
        match self.find(name)?.set_enabled(name, is_enabled).await {
            true => Ok(json!({})),
            false => Err(unknown_server(name)),
        }
    }

    /// Replaces the servers that the host added. Servers of settings stay.
    pub(super) async fn set_servers(&self, request: &Value) -> Result<Value, String> {
        let wanted = request.get("servers").and_then(Value::as_object).ok_or("`servers` is missing")?;
        self.connect().await;
        let _changing = self.changing.lock().await;
        let (mut added, mut removed, mut errors) = (Vec::new(), Vec::new(), Map::new());
        let before = self.lock_added().clone();
        for server in before.iter().filter(|server| wanted.get(&server.name) != Some(&server.config)) {
            server.servers.set_enabled(&server.name, false).await;
            self.lock_added().retain(|known| known.name != server.name);
            removed.push(server.name.clone());
        }
        for (name, config) in wanted {
            if self.lock_added().iter().any(|known| known.name == *name) {
                continue;
            }
            match self.add_server(name, config).await {
                Ok(()) => added.push(name.clone()),
                Err(problem) => drop(errors.insert(name.clone(), json!(problem))),
            }
        }
        Ok(json!({ "added": added, "removed": removed, "errors": errors }))
    }

    /// Adds one server, as `--mcp-config` would, and waits until it was tried.
    async fn add_server(&self, name: &str, config: &Value) -> Result<(), String> {
        if self.find(name).is_ok() {
            return Err(format!("there is a server `{name}` already"));
        }
        let servers = if config.get("type") == Some(&json!("sdk")) {
            let channel = self.channel.as_ref().ok_or("there is no host with servers of its own")?;
            let options = CoordinatorOptions::new(PinStore::open(None)?).without_resource_tools();
            McpCoordinator::new(vec![host_server_entry(channel, name)?], options)
        } else {
            let mut global = self.context.global.clone();
            global.mcp_config = vec![json!({ "mcpServers": { name: config } }).to_string()];
            global.strict_mcp_config = true;
            let context = CliContext { ambient: self.context.ambient.clone(), global };
            let mut out = CliOutput::new(context.global.color, true);
            let settings = self.toolgate.settings();
            let found = UpstreamServers::discover(&context, &settings, &mut out).map_err(describe_problem)?;
            if found.servers.is_empty() {
                return Err("its configuration cannot be used".to_owned());
            }
            found.into_further_coordinator(&context, &settings).map_err(describe_problem)?
        };
        self.toolgate.add_source(servers.clone()).map_err(|error| error.to_string())?;
        servers.wait_until_ready().await;
        let problem = servers
            .states()
            .iter()
            .find_map(|state| state.error.as_ref().map(|error| error.refusal(name).reason));
        if let Some(problem) = problem {
            servers.set_enabled(name, false).await;
            return Err(problem);
        }
        self.lock_added().push(AddedServer { name: name.to_owned(), config: config.clone(), servers });
        Ok(())
    }

    /// The coordinator of a server.
    fn find(&self, name: &str) -> Result<McpCoordinator, String> {
        let groups = self.groups();
        let found = groups.into_iter().find(|(servers, _)| servers.has_server(name));
        found.map(|(servers, _)| servers).ok_or_else(|| unknown_server(name))
    }

    /// Every coordinator, with where its servers come from.
    fn groups(&self) -> Vec<(McpCoordinator, &'static str)> {
        let configured = self.configured.iter().map(|servers| (servers.clone(), CONFIGURED_SOURCE));
        let hosted = self.hosted.iter().map(|servers| (servers.clone(), "sdk"));
        let editor = self.editor.iter().map(|servers| (servers.clone(), "ide"));
        let added: Vec<_> =
            self.lock_added().iter().map(|server| (server.servers.clone(), "dynamic")).collect();
        configured.chain(hosted).chain(editor).chain(added).collect()
    }

    /// The servers that the host added; a panic of another thread cannot leave one half added.
    fn lock_added(&self) -> MutexGuard<'_, Vec<AddedServer>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server that a request is about.
fn server_name(request: &Value) -> Result<&str, String> {
    request.get("serverName").and_then(Value::as_str).ok_or_else(|| "`serverName` is missing".to_owned())
}

/// There is no such server.
fn unknown_server(name: &str) -> String {
    format!("there is no server `{name}`")
}

/// The servers as the `init` frame lists them.
pub(super) fn mcp_server_list(coordinator: &McpCoordinator, source: &str) -> Vec<Value> {
    let entry =
        |state: &ServerState| json!({ "name": state.name, "status": status_of(state), "source": source });
    coordinator.states().iter().map(entry).collect()
}

/// One server, with its tools under their own names.
fn server_entry(state: &ServerState, source: &str) -> Value {
    let prefix = format!("mcp__{}__", state.name);
    let tools: Vec<Value> = state
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.strip_prefix(&prefix).unwrap_or(tool) }))
        .collect();
    let mut entry =
        json!({ "name": state.name, "status": status_of(state), "source": source, "tools": tools });
    if let (Some(entry), Some(error)) = (entry.as_object_mut(), &state.error) {
        entry.insert("error".to_owned(), json!(error.refusal(&state.name).reason));
    }
    entry
}

/// The state of a server in the words of hosts.
fn status_of(state: &ServerState) -> &'static str {
    match (&state.error, state.era) {
        _ if state.is_disabled => "disabled",
        (Some(McpConnectionError::Auth(_)), _) => "needs-auth",
        (Some(_), _) => "failed",
        (None, Some(_)) => "connected",
        (None, None) => "pending",
    }
}
