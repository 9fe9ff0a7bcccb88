//! All servers behind one gate.
//!
//! Each server has a task of its own: it connects, registers the tools, and waits for notifications.
//! A server that is slow, has exited or floods delays its own task and its own calls, and nothing else.
//! Tools stay listed while their server is disconnected: a list that changes all the time helps no client, and a call says what is
//! wrong.

use super::connection::{McpConnectionContext, McpConnectionError, OpenConnection, ServerConnection};
use super::in_flight::ServerRequestHandler;
use super::joined_name::joined_name;
use super::pinned_definition::PinnedDefinition;
use super::pins::PinStore;
use super::remote_tool::RemoteTool;
use super::resources::{ListResourcesTool, ReadResourceTool};
use super::server_entry::{ServerEntry, confusable_skeleton};
use super::tool_filter::ToolFilter;
use super::tool_list::{ToolListError, list_tools};
use crate::server::ProtocolEra;
use futures_util::future::BoxFuture;
use rmcp::service::ServiceError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use toolgate_gate::{RegisterError, Source, SourceTools};
use toolgate_proto::{AbsPath, Code, Refusal, SourceId};

/// Extra time for a required server beyond its own timeouts, so that its result is known.
const READY_TIMEOUT_SLACK: Duration = Duration::from_secs(1);

/// What the coordinator needs to know.
#[derive(Debug)]
#[non_exhaustive]
pub struct CoordinatorOptions {
    /// The environment, of which servers see the harmless part.
    pub env: BTreeMap<String, String>,
    /// The roots that legacy servers receive.
    pub roots: Vec<AbsPath>,
    /// What was approved.
    pub pins: PinStore,
    /// How long the first list of tools waits for servers that need not be there.
    pub ready_timeout: Duration,
    /// Answers requests of servers where no client can.
    pub answerer: Option<Arc<dyn ServerRequestHandler>>,
    /// Whether the tools that list and read resources are registered; once per gate is enough.
    pub has_resource_tools: bool,
    /// How to sign in, and where credentials are stored.
    #[cfg(feature = "http")]
    pub access: super::http::OauthOptions,
}

/// How long the first list of tools waits where the options do not say.
const DEFAULT_READY_TIMEOUT: Duration = Duration::from_secs(5);

impl CoordinatorOptions {
    /// Options with these pins, an empty environment, no roots and no sign-in.
    pub fn new(pins: PinStore) -> Self {
        Self {
            env: BTreeMap::new(),
            roots: Vec::new(),
            pins,
            ready_timeout: DEFAULT_READY_TIMEOUT,
            answerer: None,
            has_resource_tools: true,
            #[cfg(feature = "http")]
            access: super::http::OauthOptions::default(),
        }
    }

    /// Leaves out the tools that list and read resources, for a second coordinator behind one gate.
    pub fn without_resource_tools(mut self) -> Self {
        self.has_resource_tools = false;
        self
    }

    /// Sets the environment.
    pub fn with_env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }

    /// Sets the roots that legacy servers receive.
    pub fn with_roots(mut self, roots: Vec<AbsPath>) -> Self {
        self.roots = roots;
        self
    }

    /// Sets how long the first list of tools waits for servers that need not be there.
    pub fn with_ready_timeout(mut self, ready_timeout: Duration) -> Self {
        self.ready_timeout = ready_timeout;
        self
    }

    /// Sets who answers what servers ask where no client can.
    pub fn with_answerer(mut self, answerer: Arc<dyn ServerRequestHandler>) -> Self {
        self.answerer = Some(answerer);
        self
    }

    /// Sets who may sign in, and where credentials are kept.
    #[cfg(feature = "http")]
    pub fn with_access(mut self, access: super::http::OauthOptions) -> Self {
        self.access = access;
        self
    }
}

/// The status of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// The era it speaks, while it is connected.
    pub era: Option<ProtocolEra>,
    /// Its tools, as the gate knows them.
    pub tools: Vec<String>,
    /// It is switched off.
    pub is_disabled: bool,
    /// The error that keeps it from working.
    pub error: Option<McpConnectionError>,
    /// Tools and other things that were not taken, with the reason.
    pub problems: Vec<String>,
    /// All tools that it listed last, with those that are left out; none until it has listed them.
    pub listed: Option<Arc<BTreeMap<String, PinnedDefinition>>>,
    /// Its process, while it runs here.
    pub process: Option<u32>,
    /// What it wrote to standard error last.
    pub stderr_tail: String,
}

/// All servers behind one gate. Cheap to clone; [`McpCoordinator::close`] ends them.
#[derive(Debug, Clone)]
pub struct McpCoordinator {
    /// The state that clones share.
    pub(super) inner: Arc<CoordinatorInner>,
}

/// The servers and the tasks that maintain them.
#[derive(Debug)]
pub(super) struct CoordinatorInner {
    /// The configured servers, in the order of configuration.
    pub(super) servers: RwLock<Vec<Arc<UpstreamServer>>>,
    /// What connections of further servers need.
    pub(super) context: Arc<McpConnectionContext>,
    /// Set when everything is ended: no server is added after that.
    pub(super) is_closed: AtomicBool,
    /// The limit on waiting for servers that are not required.
    ready_timeout: Duration,
    /// Whether this coordinator registers the two resource tools.
    pub(super) has_resource_tools: bool,
    /// The start of all timeouts of `wait_until_ready`, so that several waits do not add up.
    started: Instant,
    /// Registered names, with look-alike characters folded.
    taken_names: Mutex<BTreeMap<String, String>>,
    /// The maintenance tasks, one for each server that is not switched off; `close` aborts them.
    tasks: Mutex<BTreeMap<String, tokio::task::JoinHandle<()>>>,
    /// Where tools are registered, once the source was added.
    pub(super) tools: OnceLock<Arc<SourceTools>>,
    /// Held while a server is switched or connected anew: one at a time.
    pub(super) switching: tokio::sync::Mutex<()>,
}

/// One server with its connection and its registered tools.
#[derive(Debug)]
pub(crate) struct UpstreamServer {
    /// The connection, reopened on demand.
    pub(crate) connection: Arc<ServerConnection>,
    /// Whether the first attempt is over, with success or not.
    pub(super) tried: watch::Sender<bool>,
    /// It is switched off.
    pub(super) is_disabled: AtomicBool,
    /// When it was configured, from which its timeouts count.
    since: Instant,
    /// The result of the last listing.
    tools: Mutex<UpstreamTools>,
}

/// The tools of one server that are registered with the gate, and those that are not.
#[derive(Debug, Default, Clone)]
struct UpstreamTools {
    /// From the joined name to the tool's own.
    tools: BTreeMap<String, String>,
    /// The reasons why tools were left out, for the status display.
    problems: Vec<String>,
    /// The definitions of all tools that were listed last.
    listed: Option<Arc<BTreeMap<String, PinnedDefinition>>>,
}

impl McpCoordinator {
    /// Prepares the servers; none is started yet.
    pub fn new(servers: Vec<ServerEntry>, setup: CoordinatorOptions) -> Self {
        let (patience, has_resource_tools) = (setup.ready_timeout, setup.has_resource_tools);
        let around = Arc::new(McpConnectionContext {
            env: setup.env,
            roots: setup.roots,
            pins: setup.pins,
            answerer: setup.answerer,
            #[cfg(feature = "http")]
            access: setup.access,
        });
        let members = servers.into_iter().map(|entry| UpstreamServer::new(entry, &around)).collect();
        let inner = CoordinatorInner {
            servers: RwLock::new(members),
            context: around,
            is_closed: AtomicBool::new(false),
            ready_timeout: patience,
            has_resource_tools,
            started: Instant::now(),
            taken_names: Mutex::default(),
            tasks: Mutex::default(),
            tools: OnceLock::new(),
            switching: tokio::sync::Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Waits until the tools can be listed: for required servers up to their timeouts, for the others
    /// up to `ready_timeout`.
    pub async fn wait_until_ready(&self) {
        let patience = self.inner.started + self.inner.ready_timeout;
        for member in self.servers() {
            let entry = &member.connection.entry;
            let until =
                if entry.always_load { self.inner.started + member.longest_start() } else { patience };
            let mut tried = member.tried.subscribe();
            // Too late is no error: the tools come when they come.
            let _ = timeout_at(until, tried.wait_for(|tried| *tried)).await;
        }
    }

    /// The status of every server, in the order of configuration.
    pub fn states(&self) -> Vec<ServerState> {
        self.servers().iter().map(|member| member.state()).collect()
    }

    /// Ends every server, and waits until they are gone.
    pub async fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Release);
        let tasks = std::mem::take(&mut *self.inner.lock_tasks());
        for task in tasks.into_values() {
            task.abort();
            let _ = task.await;
        }
        let servers = self.servers();
        futures_util::future::join_all(servers.iter().map(|member| member.connection.close())).await;
    }

    /// The servers as they are now.
    pub(crate) fn servers(&self) -> Vec<Arc<UpstreamServer>> {
        self.inner.list_servers()
    }
}

/// The gateway as a source: the servers' tools are registered as the servers list them, and the tools for resources
/// from the start.
impl Source for McpCoordinator {
    fn id(&self) -> SourceId {
        SourceId::mcp_gateway()
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        if self.inner.has_resource_tools && !self.servers().is_empty() {
            tools.register_as(SourceId::Builtin, ListResourcesTool(self.clone()))?;
            tools.register_as(SourceId::Builtin, ReadResourceTool(self.clone()))?;
        }
        Ok(())
    }

    /// Starts connecting. Must be called inside a Tokio runtime.
    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        let _ = self.inner.tools.set(Arc::clone(tools));
        for member in self.servers() {
            self.inner.spawn_task(&member);
        }
        Ok(())
    }

    /// Has every connected server list its tools again, each in its own task.
    fn refresh<'a>(&'a self, _: &'a SourceTools) -> BoxFuture<'a, Result<(), RegisterError>> {
        for live in self.servers().iter().filter_map(|member| member.connection.current_open()) {
            live.in_flight.tools_changed.notify_one();
        }
        Box::pin(std::future::ready(Ok(())))
    }

    /// Every name of the form `mcp__SERVER__TOOL` with a configured server.
    fn expects_tool(&self, name: &str) -> Option<SourceId> {
        let (member, tool) = self.inner.find_server_of(name)?;
        Some(SourceId::Mcp { server: member.connection.entry.name.clone(), tool: tool.to_owned() })
    }

    /// Waits for the first attempt to connect, up to the timeouts of the server.
    fn wait_for_tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Refusal>> {
        Box::pin(async move {
            let (member, tool) = self.inner.find_server_of(name)?;
            let mut tried = member.tried.subscribe();
            let until = member.since + member.longest_start();
            let is_over = timeout_at(until, tried.wait_for(|tried| *tried)).await.is_ok();
            let server = &member.connection.entry.name;
            if !is_over {
                let refusal =
                    Refusal::new(Code::RemoteUnavailable, format!("server `{server}` is still starting"));
                return Some(refusal.hint(
                    "call again in a moment; `toolgate mcp list --status` shows whether it is connected",
                ));
            }
            if let Some(error) = member.connection.last_error() {
                return Some(error.refusal(server));
            }
            let named = format!("tool `{tool}`: ");
            let tools = member.lock_tools();
            let problem = tools.problems.iter().find(|problem| {
                problem.starts_with(&named) || (tools.tools.is_empty() && !problem.starts_with("tool `"))
            })?;
            let refusal = Refusal::new(Code::RemoteUnavailable, format!("server `{server}`: {problem}"));
            Some(refusal.hint(format!("see `toolgate mcp test {server}`")))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::close(self))
    }
}

impl UpstreamServer {
    /// A server that is not started.
    pub(super) fn new(entry: ServerEntry, context: &Arc<McpConnectionContext>) -> Arc<Self> {
        Arc::new(Self {
            connection: Arc::new(ServerConnection::new(entry, Arc::clone(context))),
            tried: watch::Sender::new(false),
            is_disabled: AtomicBool::new(false),
            since: Instant::now(),
            tools: Mutex::default(),
        })
    }

    /// Collects the status without waiting for the connection.
    fn state(&self) -> ServerState {
        let live = self.connection.current_open();
        let brought = self.lock_tools().clone();
        ServerState {
            name: self.connection.entry.name.clone(),
            era: live.as_ref().map(|live| live.era),
            tools: brought.tools.into_keys().collect(),
            is_disabled: self.is_disabled.load(Ordering::Acquire),
            error: self.connection.last_error(),
            problems: brought.problems,
            listed: brought.listed,
            process: live.as_ref().and_then(|live| live.process_id()),
            stderr_tail: live.as_ref().map(|live| live.stderr_tail()).unwrap_or_default(),
        }
    }

    /// How long the first attempt to connect can take. It may be opened twice, where what is remembered of it is wrong.
    fn longest_start(&self) -> Duration {
        self.connection.entry.connect_timeout.saturating_mul(2) + READY_TIMEOUT_SLACK
    }

    /// Locks the tools; the lock is never held across an await.
    fn lock_tools(&self) -> std::sync::MutexGuard<'_, UpstreamTools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CoordinatorInner {
    /// The server that a tool of this name would belong to, and the tool's part of the name.
    fn find_server_of<'a>(&self, name: &'a str) -> Option<(Arc<UpstreamServer>, &'a str)> {
        let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
        let mut servers = self.list_servers().into_iter();
        Some((servers.find(|member| member.connection.entry.name == server)?, tool))
    }

    /// The servers as they are now.
    pub(super) fn list_servers(&self) -> Vec<Arc<UpstreamServer>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts the task of a server. False if there is no gate to bring its tools to.
    pub(super) fn spawn_task(self: &Arc<Self>, member: &Arc<UpstreamServer>) -> bool {
        let Some(tools) = self.tools.get().map(Arc::clone) else { return false };
        let (inner, name) = (Arc::clone(self), member.connection.entry.name.clone());
        let member = Arc::clone(member);
        let task = tokio::spawn(async move { inner.maintain_server(&member, &tools).await });
        if let Some(before) = self.lock_tasks().insert(name, task) {
            before.abort();
        }
        true
    }

    /// Takes the tools of a server away from the gate.
    pub(super) fn remove_tools(&self, member: &UpstreamServer) {
        let before = std::mem::take(&mut *member.lock_tools());
        for joined in before.tools.keys() {
            if let Some(tools) = self.tools.get() {
                tools.remove(joined);
            }
            self.lock_taken_names().remove(&confusable_skeleton(joined));
        }
    }

    /// Locks the tasks; the lock is never held across an await.
    pub(super) fn lock_tasks(
        &self,
    ) -> std::sync::MutexGuard<'_, BTreeMap<String, tokio::task::JoinHandle<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task of one server.
    async fn maintain_server(&self, member: &Arc<UpstreamServer>, tools: &SourceTools) {
        loop {
            match member.connection.ensure_open().await {
                Ok(live) => {
                    let mut live = self.sync_tools(member, live, tools).await;
                    member.tried.send_replace(true);
                    // A notification or the end of the connection: both lead to another listing.
                    while live.is_open() {
                        if timeout(Duration::from_secs(1), live.in_flight.tools_changed.notified())
                            .await
                            .is_ok()
                        {
                            live = self.sync_tools(member, live, tools).await;
                        }
                    }
                }
                Err(_) => {
                    member.tried.send_replace(true);
                }
            }
            tokio::time::sleep(member.connection.retry_delay().await).await;
        }
    }

    /// Brings a server's tools to the gate, and takes away those that it no longer has. Gives the way that is open
    /// afterwards: a server may want us to sign in before it lists anything.
    async fn sync_tools(
        &self,
        member: &Arc<UpstreamServer>,
        mut live: Arc<OpenConnection>,
        tools: &SourceTools,
    ) -> Arc<OpenConnection> {
        let link = &member.connection;
        let listed = loop {
            let problem = match timeout(link.entry.connect_timeout, list_tools(&live)).await {
                Ok(Ok(listed)) => break listed,
                Ok(Err(ToolListError::Request(error))) => match self.reauthorize(link, &live, &error).await {
                    Ok(Some(again)) => {
                        live = again;
                        continue;
                    }
                    Ok(None) => format!("its tools cannot be listed: {error}"),
                    Err(trouble) => {
                        link.set_last_error(Some(trouble.clone()));
                        trouble.refusal(&link.entry.name).reason
                    }
                },
                Ok(Err(ToolListError::Invalid(problem))) => format!("its tools cannot be listed: {problem}"),
                Err(_) => "its tools were not listed in time".to_owned(),
            };
            member.lock_tools().problems = vec![problem];
            return live;
        };
        #[cfg(feature = "http")]
        link.attempts.reset_attempts();
        self.replace_tools(member, &listed, tools);
        live
    }

    /// Registers the tools that a server lists now, and unregisters those that it no longer has.
    fn replace_tools(&self, member: &Arc<UpstreamServer>, listed: &[rmcp::model::Tool], tools: &SourceTools) {
        let link = &member.connection;
        let server = &link.entry.name;
        let definitions: BTreeMap<String, PinnedDefinition> =
            listed.iter().map(|tool| (tool.name.to_string(), PinnedDefinition::of_tool(tool))).collect();
        let changed: BTreeSet<String> = link
            .pins()
            .find_changed_tools(&link.key(), &link.entry.launch_digest(), &definitions)
            .into_iter()
            .collect();
        // Of two tools with one name only the last is compared with the approved one.
        let has_twins = definitions.len() < listed.len();
        let before = std::mem::take(&mut member.lock_tools().tools);
        let filter = ToolFilter::new(&link.entry, listed.iter().map(|tool| tool.name.as_ref()));
        let mut now = UpstreamTools::default();
        for tool in listed.iter().filter(|tool| filter.includes(&tool.name)) {
            let name = tool.name.to_string();
            let taken = if changed.contains(&name) {
                Err(format!(
                    "it changed since it was approved; `toolgate mcp test {server}` shows how, and \
                     `toolgate mcp approve {server}` approves it"
                ))
            } else if has_twins && definitions.get(&name) != Some(&PinnedDefinition::of_tool(tool)) {
                Err("the server lists another tool of this name".to_owned())
            } else {
                self.register_tool(member, tools, tool)
            };
            match taken {
                Ok(joined) => drop(now.tools.insert(joined, name)),
                Err(problem) => now.problems.push(format!("tool `{name}`: {problem}")),
            }
        }
        for (joined, tool) in &before {
            if now.tools.get(joined) != Some(tool) {
                tools.remove(joined);
                self.lock_taken_names().remove(&confusable_skeleton(joined));
            }
        }
        now.problems.extend(filter.problems);
        now.listed = Some(Arc::new(definitions));
        *member.lock_tools() = now;
    }

    /// The connection after an authorization challenge was handled; none where that is not why it
    /// did not answer.
    #[cfg(feature = "http")]
    async fn reauthorize(
        &self,
        link: &ServerConnection,
        live: &OpenConnection,
        error: &ServiceError,
    ) -> Result<Option<Arc<OpenConnection>>, McpConnectionError> {
        let Some(challenge) = super::oauth::AuthChallenge::from_service_error(error) else { return Ok(None) };
        if !link.reauthorize(live, challenge).await? {
            return Err(McpConnectionError::Auth("it lists its tools only after authorization".to_owned()));
        }
        link.ensure_open().await.map(Some)
    }

    /// Does nothing: without HTTP no server can send an authorization challenge.
    #[cfg(not(feature = "http"))]
    #[expect(clippy::unused_async, reason = "it waits where there is HTTP")]
    async fn reauthorize(
        &self,
        _: &ServerConnection,
        _: &OpenConnection,
        _: &ServiceError,
    ) -> Result<Option<Arc<OpenConnection>>, McpConnectionError> {
        Ok(None)
    }

    /// Registers one tool under its joined name, and returns that name.
    ///
    /// A name that is confusable with a tool of another server is rejected, so that a server cannot pass off its tool
    /// as another one.
    fn register_tool(
        &self,
        member: &Arc<UpstreamServer>,
        tools: &SourceTools,
        tool: &rmcp::model::Tool,
    ) -> Result<String, String> {
        let (server, name) = (&member.connection.entry.name, tool.name.as_ref());
        let joined = joined_name(server, name)?;
        let identity = format!("{server}\u{0}{name}");
        if let Some(owner) =
            self.lock_taken_names().get(&confusable_skeleton(&joined)).filter(|owner| **owner != identity)
        {
            let (server, tool) = owner.split_once('\u{0}').unwrap_or((owner, ""));
            return Err(format!("it is too easily taken for `{tool}` of server `{server}`"));
        }
        let remote = RemoteTool::new(Arc::clone(&member.connection), &joined, tool)?;
        let source = SourceId::Mcp { server: server.clone(), tool: name.to_owned() };
        tools.register_as(source, remote).map_err(|error| error.to_string())?;
        self.lock_taken_names().insert(confusable_skeleton(&joined), identity);
        Ok(joined)
    }

    /// Locks the names in use, which all servers share.
    fn lock_taken_names(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.taken_names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
