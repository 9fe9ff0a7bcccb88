//! A session behind a gate, as an embedding program uses it.

use crate::builder::ToolgateBuilder;
use crate::settings::{LoadedSettings, SettingsNote};
use crate::settings_reloader::SettingsReloader;
use crate::skills::LiveSkills;
use crate::unregistered_tool;
use futures_util::Stream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_agent::AgentHook;
use toolgate_gate::{
    AttachedSource, BatchHookOutcome, BatchedCall, CallBatch, CallOptions, CallOutcome, Gate, ProviderApi,
    RegisterError, Session, Source, StreamedCalls, Tool,
};
use toolgate_mcp::client::McpCoordinator;
use toolgate_policy::{Judgement, RawPolicy, RuleProblem};
use toolgate_proto::{
    CallId, Code, DefinitionFormat, Event, Mode, Refusal, SourceId, ToolCall, ToolDefinition, ToolName,
    render_definitions,
};
use toolgate_tools::ChangedFile;

/// One session behind one gate.
#[derive(Debug, Clone)]
pub struct Toolgate {
    pub(crate) gate: Arc<Gate>,
    pub(crate) session: Session,
    pub(crate) reloader: Arc<SettingsReloader>,
    pub(crate) notes: Vec<SettingsNote>,
    pub(crate) problems: Vec<RuleProblem>,
    pub(crate) tasks: TaskTracker,
    /// Every source that was added and not closed, the built-in tools among them.
    pub(crate) sources: Arc<Mutex<Vec<AttachedSource>>>,
    pub(crate) skills: Option<Arc<LiveSkills>>,
    /// The servers of [`ToolgateBuilder::mcp_servers`].
    pub(crate) mcp_servers: Option<McpCoordinator>,
}

impl Toolgate {
    /// Starts building a toolgate that works in a directory.
    pub fn builder(workspace: impl Into<PathBuf>) -> ToolgateBuilder {
        ToolgateBuilder::new(workspace.into())
    }

    /// The tools that are shown, in a provider's format. The same tools give the same bytes.
    pub fn definitions(&self, format: DefinitionFormat) -> serde_json::Value {
        render_definitions(&self.tools(), format)
    }

    /// The tools that are shown, in name order.
    pub fn tools(&self) -> Vec<ToolDefinition> {
        self.gate.definitions(&self.session)
    }

    /// Takes one call through the boundary. `input` is the JSON text as the model sent it.
    pub async fn call(&self, id: impl Into<CallId>, name: impl Into<ToolName>, input: &str) -> CallOutcome {
        self.call_with_options(ToolCall::new(id, name, input), CallOptions::default()).await
    }

    /// The same, with a way to cancel it and a time limit.
    pub async fn call_with_options(&self, call: ToolCall, limits: CallOptions) -> CallOutcome {
        self.gate.call(&self.session, call, limits).await
    }

    /// Takes many calls through the boundary, together where their effects do not conflict. Results and files are as
    /// if each had waited for the one before. The limits hold for each call.
    pub async fn call_batch(&self, calls: Vec<ToolCall>, limits: CallOptions) -> Vec<CallOutcome> {
        self.gate.call_batch(&self.session, calls, limits).await
    }

    /// Runs the calls of a model's stream as a batch, each as soon as it is complete, while the stream goes on.
    pub async fn call_stream<B, E>(
        &self,
        provider: ProviderApi,
        bytes: impl Stream<Item = Result<B, E>> + Send,
        options: CallOptions,
    ) -> StreamedCalls
    where
        B: AsRef<[u8]>,
        E: std::fmt::Display,
    {
        self.gate.call_stream(&self.session, provider, bytes, options).await
    }

    /// Starts an empty batch, for calls that come one after another out of a model's stream.
    pub fn batch(&self, limits: CallOptions) -> CallBatch {
        self.gate.batch(&self.session, limits)
    }

    /// Notifies hooks that a batch of calls is over.
    pub async fn run_batch_hooks(
        &self,
        calls: &[BatchedCall],
        cancel: &CancellationToken,
    ) -> BatchHookOutcome {
        self.gate.run_batch_hooks(&self.session, calls, cancel).await
    }

    /// Waits for hooks that run in the background, but no longer than this. False if some are still at it.
    pub async fn wait_for_background_hooks(&self, limit: Duration) -> bool {
        self.tasks.close();
        tokio::time::timeout(limit, self.tasks.wait()).await.is_ok()
    }

    /// Judges a call without running it. No hook runs; the judgement names those that would.
    pub fn check(&self, name: impl Into<ToolName>, input: &str) -> Result<Judgement, Refusal> {
        let call = ToolCall::new("check", name, input);
        self.gate.check_intended(&self.session, |gate| unregistered_tool::intend(gate, &self.session, &call))
    }

    /// Changes the permission mode for the rest of the session; managed settings can still override it.
    pub fn set_mode(&self, mode: Mode) {
        self.reloader.set_mode(&self.gate, mode);
    }

    /// The permission mode in force.
    pub fn mode(&self) -> Mode {
        self.gate.policy().mode()
    }

    /// The same, with the PreToolUse hooks: they run as for a real call, and may rewrite the input or refuse it. No hook
    /// runs for a tool that is not registered; the judgement names those that would.
    pub async fn check_with_hooks(
        &self,
        name: impl Into<ToolName>,
        input: &str,
    ) -> Result<Judgement, Refusal> {
        let name = name.into();
        match self.gate.check_with_hooks(&self.session, &ToolCall::new("check", name.clone(), input)).await {
            Err(refusal) if refusal.code == Code::UnknownTool => self.check(name, input),
            checked => checked,
        }
    }

    /// The names of the PreToolUse hooks that would run for a call.
    pub fn screening_hooks(&self, name: impl Into<ToolName>, input: &str) -> Vec<String> {
        let call = ToolCall::new("check", name, input);
        let intended = unregistered_tool::intend(&self.gate, &self.session, &call);
        intended.map(|intended| self.gate.screening_hooks(&self.session, &intended.tool)).unwrap_or_default()
    }

    /// The refusal of a call by a hook that cannot run, whatever policy says of the call. No hook runs.
    pub fn foresee_hook_refusal(&self, name: impl Into<ToolName>, input: &str) -> Option<Refusal> {
        let call = ToolCall::new("check", name, input);
        let intended = unregistered_tool::intend(&self.gate, &self.session, &call).ok()?;
        self.gate.foresee_hook_refusal(&self.session, &intended)
    }

    /// Adds a tool, or replaces the one that this program added under that name.
    pub fn register<T: Tool>(&self, tool: T) -> Result<(), RegisterError> {
        self.gate.register(SourceId::Sdk, tool)
    }

    /// Removes a tool that this program added.
    pub fn unregister(&self, name: &str) -> bool {
        self.gate.unregister(&SourceId::Sdk, name)
    }

    /// Adds a source of tools, and starts it.
    pub fn add_source(&self, source: impl Source + 'static) -> Result<(), RegisterError> {
        let attached = self.gate.add_source(source)?;
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(attached);
        Ok(())
    }

    /// The MCP servers of the builder: their states, and [`McpCoordinator::wait_until_ready`].
    pub fn mcp_servers(&self) -> Option<&McpCoordinator> {
        self.mcp_servers.as_ref()
    }

    /// The files that other programs changed since the session read them, or since the last call of this method. Needs
    /// [`ToolgateBuilder::notice_changed_files`]; without it there are none. Ask before each turn of a model: a change
    /// that is reported with its diff counts as read.
    pub fn changed_files(&self) -> Vec<ChangedFile> {
        toolgate_tools::changed_files(&self.session)
    }

    /// Has every source bring its tools up to date. The first problem is returned; the other sources are refreshed all
    /// the same.
    pub async fn refresh_sources(&self) -> Result<(), RegisterError> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut refreshed = Ok(());
        for source in sources {
            refreshed = refreshed.and(source.refresh().await);
        }
        refreshed
    }

    /// Closes every source: their tools are removed, and what they started is ended. Tools that were added one by one
    /// stay.
    pub async fn close_sources(&self) {
        let sources = std::mem::take(&mut *self.sources.lock().unwrap_or_else(PoisonError::into_inner));
        for source in sources {
            source.close().await;
        }
    }

    /// The skills, if the builder was given their places.
    pub fn skills(&self) -> Option<&Arc<LiveSkills>> {
        self.skills.as_ref()
    }

    /// Watches what happens: calls, questions, progress, records.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.gate.events()
    }

    /// The gate.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The gate, for an edge that outlives this value.
    pub fn shared_gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The rules as they were gathered.
    pub fn policy(&self) -> Arc<RawPolicy> {
        self.reloader.active().policy
    }

    /// Why a registered tool is hidden, for people: the rule, or the setting with its file. `None` if no tool has the name,
    /// or nothing hides it.
    pub fn hidden_reason(&self, name: &str) -> Option<String> {
        let tools = self.gate.registered_tools();
        let tool = tools
            .iter()
            .find(|tool| tool.own_names().any(|own| own == name))
            .or_else(|| tools.iter().find(|tool| tool.has_name(name)))?;
        self.gate.policy().hidden_reason(tool)
    }

    /// The settings as they were found.
    pub fn settings(&self) -> Arc<LoadedSettings> {
        self.reloader.active().settings
    }

    /// The hooks of the settings for the events of an agent, such as the end of a turn, and notes about those that cannot
    /// run. An agent on this gate runs them.
    pub fn settings_hooks(&self) -> (Vec<Arc<dyn AgentHook>>, Vec<SettingsNote>) {
        self.reloader.build_agent_hooks()
    }

    /// What should be known about the settings and the rules, as they were at the start.
    pub fn notes(&self) -> (&[SettingsNote], &[RuleProblem]) {
        (&self.notes, &self.problems)
    }
}
