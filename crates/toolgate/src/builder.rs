//! Putting a toolgate together.

use crate::hooks::{GateSessionCell, HookContext};
use crate::settings::grants::LocalGrantStore;
use crate::settings::{LoadedSettings, SettingsError, SettingsNote, SettingsOptions, content_checks};
use crate::settings_reloader::{BuilderOptions, SettingsReloader};
use crate::unregistered_tool;
use futures_util::Stream;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_files::{Journal, SpillLimits, SpillStore};
use toolgate_gate::{
    Approver, AttachedSource, BatchHookOutcome, BatchedCall, CallBatch, CallOptions, CallOutcome, Gate,
    GateParts, GrantStore, Hook, ProviderApi, RegisterError, Session, Sink, Source, StreamedCalls, Tool,
    judge_intended,
};
use toolgate_policy::{Judgement, ProblemSeverity, RawPolicy, RawRule, RuleProblem};
use toolgate_proto::{
    AbsPath, CallId, DefinitionFormat, Event, Mode, Principal, Refusal, SessionId, SourceId, ToolCall,
    ToolDefinition, ToolName, Workspace, render_definitions,
};
use toolgate_tools::{BuiltinTools, ShellConfig, Toolset};

/// Why a toolgate could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A directory is not there, or is none.
    #[error("`{path}` cannot be a workspace: {problem}")]
    Directory {
        /// The directory.
        path: String,
        /// What is the matter.
        problem: String,
    },
    /// A settings file cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A rule that would deny cannot be read.
    #[error("{0}")]
    Policy(String),
    /// A tool was not taken.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// Collects what a [`Toolgate`] is made of. See [`Toolgate::builder`].
pub struct ToolgateBuilder {
    root: PathBuf,
    additional: Vec<PathBuf>,
    settings: Option<SettingsOptions>,
    toolset: Toolset,
    builtin: bool,
    mode: Option<Mode>,
    cli: BuilderRules,
    only: Option<Vec<String>>,
    parts: GateParts,
    session: Option<SessionId>,
    principal: Principal,
    home: Option<AbsPath>,
    env: BTreeMap<String, String>,
    register: Vec<ToolRegistration>,
    sources: Vec<Arc<dyn Source>>,
    shell_config: ShellConfig,
}

type ToolRegistration = Box<dyn FnOnce(&Gate) -> Result<(), RegisterError> + Send>;

/// Rules of the command line, or of the embedding program.
#[derive(Debug, Default)]
pub(crate) struct BuilderRules {
    pub(crate) allow: Vec<RawRule>,
    pub(crate) ask: Vec<RawRule>,
    pub(crate) deny: Vec<RawRule>,
}

impl ToolgateBuilder {
    /// Adds a directory beside the workspace.
    pub fn add_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.additional.push(dir.into());
        self
    }

    /// Reads settings files. Without this no file is read, and only the builder's own rules count.
    pub fn settings(mut self, options: SettingsOptions) -> Self {
        self.settings = Some(options);
        self
    }

    /// Chooses the names and shapes of the built-in tools.
    pub fn toolset(mut self, toolset: Toolset) -> Self {
        self.toolset = toolset;
        self
    }

    /// Leaves the built-in tools out: only what is added is there.
    pub fn no_builtin_tools(mut self) -> Self {
        self.builtin = false;
        self
    }

    /// Sets the permission mode, over what the settings say.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Adds an allow rule.
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.cli.allow.push(rule.into().into());
        self
    }

    /// Adds an ask rule.
    pub fn ask(mut self, rule: impl Into<String>) -> Self {
        self.cli.ask.push(rule.into().into());
        self
    }

    /// Adds a deny rule. A bare tool name hides the tool as well.
    pub fn deny(mut self, rule: impl Into<String>) -> Self {
        self.cli.deny.push(rule.into().into());
        self
    }

    /// Shows only these tools.
    pub fn only_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a tool of the embedding program.
    pub fn tool<T: Tool>(mut self, tool: T) -> Self {
        self.register.push(Box::new(move |gate| gate.register(SourceId::Sdk, tool)));
        self
    }

    /// Adds a source of tools. [`ToolgateBuilder::build`] asks it for its tools and starts it; a source that spawns tasks
    /// needs a Tokio runtime around `build`.
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds a hook, after those added before.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.parts.hooks.push(Arc::new(hook));
        self
    }

    /// Adds an approver, after those added before.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.parts.approvers.push(Arc::new(approver));
        self
    }

    /// Adds a sink for records. To keep access to it, pass a clone of an [`Arc`] around it.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.parts.sinks.push(Arc::new(sink));
        self
    }

    /// Sets how long a question may wait for its answer.
    pub fn approval_timeout(mut self, timeout: Duration) -> Self {
        self.parts.approval_timeout = timeout;
        self
    }

    /// Sets how many calls of one batch may go on at once. Ten where this is not called; at least one.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.parts.max_concurrency = calls;
        self
    }

    /// Keeps results that are too large for a model below this directory, in a folder of the session's own that its
    /// tools may read. Without this they are cut, and the rest is gone.
    pub fn spill_dir(mut self, dir: AbsPath, limits: SpillLimits) -> Self {
        self.parts.spill = Some(Arc::new(SpillStore::new(dir, limits)));
        self
    }

    /// Records what calls change in files, so that it can be undone. Without this nothing is remembered.
    pub fn journal(mut self, journal: Arc<Journal>) -> Self {
        self.parts.journal = Some(journal);
        self
    }

    /// Names the session, in place of a fresh name.
    pub fn session(mut self, id: impl Into<SessionId>) -> Self {
        self.session = Some(id.into());
        self
    }

    /// Says on whose behalf calls are made.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    /// Says where home is, for `~/` in paths and rules.
    pub fn home(mut self, home: Option<AbsPath>) -> Self {
        self.home = home;
        self
    }

    /// Says where rules go that a person grants for good, in place of the project's local settings.
    pub fn grant_store(mut self, keeper: impl GrantStore + 'static) -> Self {
        self.parts.grant_store = Some(Arc::new(keeper));
        self
    }

    /// Gives hooks this environment. Without it they get a plain `PATH` and where the project is.
    pub fn env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }

    /// Says in what surroundings commands run: environment, private directories, sandbox. Settings add to this.
    pub fn shell_config(mut self, surroundings: ShellConfig) -> Self {
        self.shell_config = surroundings;
        self
    }

    /// Puts it together.
    pub fn build(mut self) -> Result<Toolgate, BuildError> {
        let root = resolve_directory(&self.root)?;
        let config_dir = self.settings.as_ref().and_then(|options| options.config_dir.clone());
        self.parts.content_checks.extend(content_checks(config_dir));
        if let Some(options) = &mut self.settings
            && options.search_path.is_none()
        {
            options.search_path = self.env.get("PATH").cloned();
        }
        let settings = match &self.settings {
            Some(options) => LoadedSettings::load(options)?,
            None => LoadedSettings::default(),
        };
        let mut roots = vec![root.clone()];
        for dir in &self.additional {
            roots.push(resolve_directory(dir)?);
        }
        // A directory that settings name and that is not there grants nothing.
        roots.extend(
            settings.additional_directories().iter().filter_map(|dir| resolve_directory(dir.as_path()).ok()),
        );
        let id = self.session.unwrap_or_else(|| toolgate_files::generate_id("ses_").into());
        if let Some(spill) = &self.parts.spill {
            roots.push(spill.session_directory(id.as_str()));
            // What cannot be removed now is removed another time.
            let _ = spill.clean_up();
        }
        let home = self.home.map(|home| toolgate_files::resolve(&home).real);
        let workspace = Workspace { cwd: root.clone(), roots, home };
        if let (None, Some(dir)) =
            (&self.parts.grant_store, self.settings.as_ref().and_then(|options| options.state_dir.as_ref()))
        {
            self.parts.grant_store = Some(Arc::new(LocalGrantStore::in_dir(dir)));
        }

        let tasks = TaskTracker::new();
        let place = GateSessionCell::default();
        let session = Session::new(id, self.principal, workspace);
        let live = SettingsReloader::new(BuilderOptions {
            session: session.clone(),
            shell_config: self.shell_config,
            options: self.settings,
            root: root.clone(),
            rules: self.cli,
            mode: self.mode,
            only: self.only.map(|names| names.into_iter().collect()),
            hooks: std::mem::take(&mut self.parts.hooks),
            approvers: std::mem::take(&mut self.parts.approvers),
            context: HookContext {
                project: root,
                env: self.env,
                tasks: tasks.clone(),
                gate_cell: Arc::clone(&place),
            },
        });
        let gate = Arc::new(Gate::new(self.parts));
        let (problems, notes) = live.apply(&gate, settings);
        if let Some(fatal) = problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal) {
            return Err(BuildError::Policy(fatal.to_string()));
        }
        let builtin = self.builtin.then(|| BuiltinTools::new(self.toolset));
        let sources = add_tools(&gate, builtin, self.register, self.sources)?;
        let live = Arc::new(live);
        let looking = Arc::clone(&live);
        gate.set_refresh_callback(move |gate| looking.refresh(gate));
        let _ = place.set((Arc::downgrade(&gate), session.clone()));
        let sources = Arc::new(Mutex::new(sources));
        Ok(Toolgate { gate, session, reloader: live, notes, problems, tasks, sources })
    }
}

/// Registers the built-in tools, then the embedding program's, then those of its sources.
fn add_tools(
    gate: &Arc<Gate>,
    builtin: Option<BuiltinTools>,
    tools: Vec<ToolRegistration>,
    sources: Vec<Arc<dyn Source>>,
) -> Result<Vec<AttachedSource>, RegisterError> {
    let mut attached = Vec::new();
    if let Some(builtin) = builtin {
        attached.push(gate.add_source(builtin)?);
    }
    for register in tools {
        register(gate)?;
    }
    for source in sources {
        attached.push(gate.add_source(source)?);
    }
    Ok(attached)
}

/// One session behind one gate.
#[derive(Debug, Clone)]
pub struct Toolgate {
    gate: Arc<Gate>,
    session: Session,
    reloader: Arc<SettingsReloader>,
    notes: Vec<SettingsNote>,
    problems: Vec<RuleProblem>,
    tasks: TaskTracker,
    /// Every source that was added and not closed, the built-in tools among them.
    sources: Arc<Mutex<Vec<AttachedSource>>>,
}

impl Toolgate {
    /// Starts building a toolgate that works in a directory.
    pub fn builder(workspace: impl Into<PathBuf>) -> ToolgateBuilder {
        ToolgateBuilder {
            root: workspace.into(),
            additional: Vec::new(),
            settings: None,
            toolset: Toolset::default(),
            builtin: true,
            mode: None,
            cli: BuilderRules::default(),
            only: None,
            parts: GateParts::default(),
            session: None,
            principal: Principal::new("sdk"),
            home: None,
            env: BTreeMap::new(),
            register: Vec::new(),
            sources: Vec::new(),
            shell_config: ShellConfig::default(),
        }
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

    /// Tells hooks that a batch of calls is over.
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

    /// Judges a call without running it.
    pub fn check(&self, name: impl Into<ToolName>, input: &str) -> Result<Judgement, Refusal> {
        self.reloader.refresh(&self.gate);
        let intended =
            unregistered_tool::intend(&self.gate, &self.session, &ToolCall::new("check", name, input))?;
        Ok(judge_intended(&self.gate.policy(), &self.session.workspace(), &intended))
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

    /// The settings as they were found.
    pub fn settings(&self) -> Arc<LoadedSettings> {
        self.reloader.active().settings
    }

    /// What should be known about the settings and the rules, as they were at the start.
    pub fn notes(&self) -> (&[SettingsNote], &[RuleProblem]) {
        (&self.notes, &self.problems)
    }
}

/// An existing directory, links resolved.
fn resolve_directory(path: &Path) -> Result<AbsPath, BuildError> {
    let unusable = |problem: String| BuildError::Directory { path: path.display().to_string(), problem };
    let asked = AbsPath::new(path).map_err(|problem| unusable(problem.to_string()))?;
    let fact = toolgate_files::resolve(&asked);
    match (fact.problem, fact.kind) {
        (Some(problem), _) => Err(unusable(problem)),
        (None, toolgate_proto::EntryKind::Directory) => Ok(fact.real),
        (None, toolgate_proto::EntryKind::Missing) => Err(unusable("there is no such directory".to_owned())),
        (None, toolgate_proto::EntryKind::File | toolgate_proto::EntryKind::Special) => {
            Err(unusable("it is not a directory".to_owned()))
        }
    }
}
