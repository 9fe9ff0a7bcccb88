//! Putting a toolgate together.

use crate::hooks::{GateSessionCell, HookContext};
use crate::settings::config_tool::ConfigTool;
use crate::settings::grants::LocalGrantStore;
use crate::settings::{LoadedSettings, SettingsError, SettingsOptions, content_checks};
use crate::settings_reloader::{BuilderOptions, SettingsReloader, add_new_problems, describe_fatal};
use crate::skills::{LiveSkills, SkillOptions, SkillSource, TouchedPathSink};
use crate::toolgate::Toolgate;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_files::{Journal, SpillLimits, SpillStore};
use toolgate_gate::{
    Approver, AttachedSource, Gate, GateParts, GrantStore, Hook, RegisterError, Session, Sink, Source, Tool,
};
use toolgate_mcp::client::{CoordinatorOptions, McpCoordinator, PinStore, ServerEntry};
use toolgate_policy::RawRule;
use toolgate_process::sandbox::KernelSupport;
use toolgate_proto::{AbsPath, Mode, Principal, SessionId, SourceId, Workspace};
use toolgate_tools::{BuiltinTools, ShellConfig, StateConfig, ToolSearchTool, Toolset};

/// Why a toolgate could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A directory of the workspace does not exist, or the path is not a directory.
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
    /// Rules that would deny or ask cannot work; one line for each.
    #[error("{0}")]
    Policy(String),
    /// A tool or a group that should be shown does not exist.
    #[error("{0}")]
    UnknownName(String),
    /// A tool was not taken.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// Files cannot be watched, though the program wants to know of changes.
    #[error("changed files cannot be noticed: {0}")]
    Watch(String),
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
    groups: Vec<String>,
    requires_known_names: bool,
    max_remote_bytes: Option<usize>,
    state: StateConfig,
    parts: GateParts,
    session: Option<SessionId>,
    principal: Principal,
    home: Option<AbsPath>,
    env: BTreeMap<String, String>,
    register: Vec<ToolRegistration>,
    sources: Vec<Arc<dyn Source>>,
    mcp_servers: Vec<ServerEntry>,
    mcp_options: Option<CoordinatorOptions>,
    notices_changes: bool,
    shell_config: ShellConfig,
    #[cfg(feature = "lsp")]
    language_servers: bool,
    skills: Option<SkillOptions>,
    #[cfg(feature = "web")]
    web_config: toolgate_tools::WebConfig,
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
    /// The parts that a toolgate has by default.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            additional: Vec::new(),
            settings: None,
            toolset: Toolset::default(),
            builtin: true,
            mode: None,
            cli: BuilderRules::default(),
            only: None,
            groups: Vec::new(),
            requires_known_names: false,
            max_remote_bytes: None,
            state: StateConfig::default(),
            parts: GateParts::default(),
            session: None,
            principal: Principal::new("sdk"),
            home: None,
            env: BTreeMap::new(),
            register: Vec::new(),
            sources: Vec::new(),
            mcp_servers: Vec::new(),
            mcp_options: None,
            notices_changes: false,
            shell_config: ShellConfig::default(),
            #[cfg(feature = "lsp")]
            language_servers: false,
            skills: None,
            #[cfg(feature = "web")]
            web_config: toolgate_tools::WebConfig::default(),
        }
    }

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

    /// Lists the tools of a group of optional ones, such as `tasks`; `all` stands for every group. Without this they can
    /// be called by name, and models do not get their definitions.
    pub fn tool_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Refuses names in [`ToolgateBuilder::only_tools`] and [`ToolgateBuilder::tool_group`] that no tool has, apart from
    /// tools of MCP servers and of other products. Without this they are ignored, because a tool can be registered later.
    pub fn require_known_names(mut self) -> Self {
        self.requires_known_names = true;
        self
    }

    /// Lists the tools of MCP servers only while their definitions have at most so many bytes together. Beyond that they
    /// are found with `ToolSearch`, and can be called by name.
    pub fn defer_tools_beyond(mut self, bytes: usize) -> Self {
        self.max_remote_bytes = Some(bytes);
        self
    }

    /// Says where tasks are stored. Without this they last as long as the session.
    pub fn state_config(mut self, state: StateConfig) -> Self {
        self.state = state;
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

    /// Puts MCP servers behind the gate. [`ToolgateBuilder::build`] starts connecting, and needs a Tokio runtime around it
    /// for that; [`Toolgate::mcp_servers`] has their states and waits for them, [`Toolgate::close_sources`] ends them.
    ///
    /// [`DiscoveredServers::discover`](crate::mcp_servers::DiscoveredServers::discover) reads entries from lists and
    /// settings, [`read_servers`](crate::mcp::client::read_servers) from JSON.
    pub fn mcp_servers(mut self, servers: impl IntoIterator<Item = ServerEntry>) -> Self {
        self.mcp_servers.extend(servers);
        self
    }

    /// Says how MCP servers are started and what was approved about them. Without this approvals last as long as the
    /// program, servers get the environment of [`ToolgateBuilder::env`], and no server can sign in.
    pub fn mcp_options(mut self, options: CoordinatorOptions) -> Self {
        self.mcp_options = Some(options);
        self
    }

    /// Notices when another program changes a file that the session has read; [`Toolgate::changed_files`] tells.
    pub fn notice_changed_files(mut self) -> Self {
        self.notices_changes = true;
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

    /// Says where rules go that the user grants for good, in place of the project's local settings.
    pub fn grant_store(mut self, store: impl GrantStore + 'static) -> Self {
        self.parts.grant_store = Some(Arc::new(store));
        self
    }

    /// Gives hooks this environment. Without it they get a plain `PATH` and where the project is.
    pub fn env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }

    /// Sets how commands run: their environment variables, private directories and sandbox. Settings add to this.
    pub fn shell_config(mut self, config: ShellConfig) -> Self {
        self.shell_config = config;
        self
    }

    /// Offers the tool that asks language servers, with those of the settings and well-known ones that are installed.
    /// They start in a project that is trusted, at the first call that needs them; [`Toolgate::close_sources`] ends them.
    #[cfg(feature = "lsp")]
    pub fn language_servers(mut self, offered: bool) -> Self {
        self.language_servers = offered;
        self
    }

    /// Offers skills and commands: the tool `Skill` for models, and [`Toolgate::load_skill`] for users. Without this
    /// no file is looked for.
    pub fn skills(mut self, options: SkillOptions) -> Self {
        self.skills = Some(options);
        self
    }

    /// Says how the web tools work: proxies and keys, the search service, a model that answers from pages. Settings add to
    /// this.
    #[cfg(feature = "web")]
    pub fn web_config(mut self, config: toolgate_tools::WebConfig) -> Self {
        self.web_config = config;
        self
    }

    /// Offers the tools that open, read, click and type in a browser page. The setting `web.browserTools` decides where
    /// it is set.
    #[cfg(feature = "web")]
    pub fn browser_tools(mut self, offered: bool) -> Self {
        self.web_config.browser_tools = offered;
        self
    }

    /// Puts it together.
    pub fn build(mut self) -> Result<Toolgate, BuildError> {
        // The first policy needs the answer; settings are read meanwhile.
        KernelSupport::begin_detection();
        let root = resolve_directory(&self.root)?;
        let settings = self.load_settings()?;
        let session = self.open_session(&root, &settings)?;
        #[cfg(feature = "lsp")]
        let edit_diagnostics = self.add_edit_hook();
        let (tasks, place) = (TaskTracker::new(), GateSessionCell::default());
        let skills = self.open_skills(&root);
        let live = self.open_reloader(root, &session, skills.as_ref(), &tasks, &place);
        let gate = Arc::new(Gate::new(std::mem::take(&mut self.parts)));
        let (mut problems, notes) = live.apply(&gate, settings);
        if describe_fatal(&problems).is_some() {
            add_new_problems(&mut problems, live.check_tool_names(&gate));
            return Err(BuildError::Policy(describe_fatal(&problems).unwrap_or_default()));
        }
        self.register_gate_tools(&gate, &live)?;
        self.add_skill_source(skills.as_ref(), &place);
        let mcp_servers = self.add_mcp_source();
        if self.notices_changes {
            toolgate_tools::watch_reads(&session).map_err(BuildError::Watch)?;
        }
        let builtin = self.builtin.then(|| BuiltinTools::new(self.toolset));
        let sources = add_tools(&gate, builtin, self.register, self.sources)?;
        // Only now is it known which names are those of tools.
        live.apply_to_tools(&gate);
        live.check_named_tools(&gate).map_err(BuildError::UnknownName)?;
        add_new_problems(&mut problems, live.check_tool_names(&gate));
        if let Some(fatal) = describe_fatal(&problems) {
            return Err(BuildError::Policy(fatal));
        }
        #[cfg(feature = "lsp")]
        let mut sources = sources;
        #[cfg(feature = "lsp")]
        if let Some(hook) = edit_diagnostics {
            let source = crate::lsp_servers::new_lsp_source(&gate, &live, self.toolset, &hook);
            sources.push(gate.add_source(source)?);
        }
        let looking = Arc::clone(&live);
        gate.set_refresh_callback(move |gate| looking.refresh(gate));
        let _ = place.set((Arc::downgrade(&gate), session.clone()));
        let sources = Arc::new(Mutex::new(sources));
        Ok(Toolgate { gate, session, reloader: live, notes, problems, tasks, sources, skills, mcp_servers })
    }

    /// Reads the settings, and takes from their options what the gate checks and stores.
    fn load_settings(&mut self) -> Result<LoadedSettings, BuildError> {
        let config_dir = self.settings.as_ref().and_then(|options| options.config_dir.clone());
        self.parts.content_checks.extend(content_checks(config_dir));
        let Some(options) = &mut self.settings else { return Ok(LoadedSettings::default()) };
        if options.search_path.is_none() {
            options.search_path = self.env.get("PATH").cloned();
        }
        if let (None, Some(dir)) = (&self.parts.grant_store, &options.state_dir) {
            self.parts.grant_store = Some(Arc::new(LocalGrantStore::in_dir(dir)));
        }
        Ok(LoadedSettings::load(options)?)
    }

    /// The session, in the directories of the builder and of the settings.
    fn open_session(&mut self, root: &AbsPath, settings: &LoadedSettings) -> Result<Session, BuildError> {
        let mut roots = vec![root.clone()];
        for dir in &self.additional {
            roots.push(resolve_directory(dir)?);
        }
        // A directory that settings name and that is not there grants nothing.
        roots.extend(
            settings.additional_directories().iter().filter_map(|dir| resolve_directory(dir.as_path()).ok()),
        );
        let id = self.session.take().unwrap_or_else(|| toolgate_files::generate_id("ses_").into());
        if let Some(spill) = &self.parts.spill {
            roots.push(spill.session_directory(id.as_str()));
            // What cannot be removed now is removed another time.
            let _ = spill.clean_up();
        }
        let home = self.home.take().map(|home| toolgate_files::resolve(&home).real);
        let workspace = Workspace::new(root.clone()).with_roots(roots).with_home(home);
        let session = Session::new(id, self.principal.clone(), workspace);
        toolgate_tools::set_state_config(&session, std::mem::take(&mut self.state));
        Ok(session)
    }

    /// Adds the hook that shows what language servers say of an edit, if they are offered.
    #[cfg(feature = "lsp")]
    fn add_edit_hook(&mut self) -> Option<Arc<toolgate_lsp::EditDiagnostics>> {
        let hook = self.language_servers.then(crate::lsp_servers::new_edit_hook);
        self.parts.hooks.extend(hook.iter().map(|hook| Arc::clone(hook) as Arc<dyn Hook>));
        hook
    }

    /// The skills, if they are offered, and the sink that shows them which files calls touch.
    fn open_skills(&mut self, root: &AbsPath) -> Option<Arc<LiveSkills>> {
        let skills = Arc::new(LiveSkills::new(self.skills.take()?));
        let sink = TouchedPathSink { skills: Arc::clone(&skills), root: root.clone() };
        self.parts.sinks.push(Arc::new(sink));
        Some(skills)
    }

    /// What applies the settings and the builder's own options to the gate, now and when files change.
    fn open_reloader(
        &mut self,
        root: AbsPath,
        session: &Session,
        skills: Option<&Arc<LiveSkills>>,
        tasks: &TaskTracker,
        place: &GateSessionCell,
    ) -> Arc<SettingsReloader> {
        let config_root = self.settings.as_ref().and_then(|options| options.config_root.clone());
        let live = Arc::new(SettingsReloader::new(BuilderOptions {
            session: session.clone(),
            skills: skills.cloned(),
            shell_config: std::mem::take(&mut self.shell_config),
            #[cfg(feature = "web")]
            web_config: std::mem::take(&mut self.web_config),
            options: self.settings.take(),
            root: root.clone(),
            rules: std::mem::take(&mut self.cli),
            server_names: self.mcp_servers.iter().map(|server| server.name.clone()).collect(),
            mode: self.mode,
            only: self.only.take().map(|names| names.into_iter().collect()),
            groups: std::mem::take(&mut self.groups),
            requires_known_names: self.requires_known_names,
            max_remote_bytes: self.max_remote_bytes,
            hooks: std::mem::take(&mut self.parts.hooks),
            approvers: std::mem::take(&mut self.parts.approvers),
            context: HookContext {
                project: config_root.clone().unwrap_or(root),
                config_root,
                env: self.env.clone(),
                tasks: tasks.clone(),
                gate_cell: Arc::clone(place),
            },
        }));
        if let Some(skills) = skills {
            skills.connect(&live);
        }
        live
    }

    /// Registers the built-in tools that work on the gate and the settings themselves.
    fn register_gate_tools(
        &self,
        gate: &Arc<Gate>,
        live: &Arc<SettingsReloader>,
    ) -> Result<(), RegisterError> {
        if !self.builtin {
            return Ok(());
        }
        if live.settings_options().is_some() {
            gate.register(SourceId::Builtin, ConfigTool { settings: Some(Arc::clone(live)) })?;
        }
        gate.register(SourceId::Builtin, ToolSearchTool::new(Arc::downgrade(gate)))
    }

    /// Adds the source of the tool `Skill`.
    fn add_skill_source(&mut self, skills: Option<&Arc<LiveSkills>>, place: &GateSessionCell) {
        let Some(skills) = skills else { return };
        let (skills, gate_cell) = (Arc::clone(skills), Arc::clone(place));
        self.sources.push(Arc::new(SkillSource { skills, gate_cell, closed: CancellationToken::new() }));
    }

    /// Adds the source of the tools of MCP servers, if there are servers.
    fn add_mcp_source(&mut self) -> Option<McpCoordinator> {
        if self.mcp_servers.is_empty() {
            return None;
        }
        let options = match self.mcp_options.take() {
            Some(options) => options,
            None => CoordinatorOptions::new(PinStore::in_memory()).with_env(std::mem::take(&mut self.env)),
        };
        let coordinator = McpCoordinator::new(std::mem::take(&mut self.mcp_servers), options);
        self.sources.push(Arc::new(coordinator.clone()));
        Some(coordinator)
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
