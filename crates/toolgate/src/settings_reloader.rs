//! Reloading of settings: the files are checked before each call and read again when one has changed.
//!
//! A change applies from the next call on; calls in flight keep the settings that they started with.
//! Grants of the session and its roots are kept.
//! When a file becomes unreadable the gate refuses every call, because that file may contain a deny rule.

use crate::builder::BuilderRules;
use crate::enforcement::enforcement;
use crate::hooks::{
    BuiltHooks, CapabilityHooks, HookContext, HookOwner, HookTrustCheck, PlannedHook, build_agent_hooks,
    build_hooks,
};
use crate::settings::trust::TrustStatus;
use crate::settings::{LoadedSettings, SettingsNote, SettingsOptions};
use crate::skills::LiveSkills;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use toolgate_agent::AgentHook;
use toolgate_gate::{ALL_GROUPS, Approver, Gate, Hook, Session, Visibility};
use toolgate_policy::{
    Layer, LayerRules, ProblemSeverity, RawPolicy, RuleProblem, SettingPlaces, check_tool_names,
    find_intended_name, find_intended_tool, is_known_tool,
};
use toolgate_proto::{AbsPath, Mode, ToolIdentity};
use toolgate_tools::ShellConfig;

/// The part of the configuration that the builder fixed. Each reload combines it with the settings files.
pub(crate) struct BuilderOptions {
    /// Where the settings files are; none if the program uses no settings.
    pub(crate) options: Option<SettingsOptions>,
    /// The workspace root, which anchors the builder's rules.
    pub(crate) root: AbsPath,
    /// The session whose shell configuration is updated.
    pub(crate) session: Session,
    /// The shell configuration before settings are applied.
    pub(crate) shell_config: ShellConfig,
    /// The configuration of the web tools before settings are applied.
    #[cfg(feature = "web")]
    pub(crate) web_config: toolgate_tools::WebConfig,
    /// Rules of the builder and the command line.
    pub(crate) rules: BuilderRules,
    /// The names of the MCP servers that the embedding program gave.
    pub(crate) server_names: BTreeSet<String>,
    /// The mode of the command line; managed settings can override it.
    pub(crate) mode: Option<Mode>,
    /// The only visible tools, if they are limited.
    pub(crate) only: Option<BTreeSet<String>>,
    /// The groups of optional tools that are listed.
    pub(crate) groups: Vec<String>,
    /// Whether unknown names in `only` and `groups` are errors.
    pub(crate) requires_known_names: bool,
    /// The budget for the definitions of tools of MCP servers.
    pub(crate) max_remote_bytes: Option<usize>,
    /// Hooks of the program; they run after those of settings.
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    /// Approvers of the program; settings can switch them off.
    pub(crate) approvers: Vec<Arc<dyn Approver>>,
    /// What configured hooks need to run.
    pub(crate) context: HookContext,
    /// The skills, which settings can switch off one by one.
    pub(crate) skills: Option<Arc<LiveSkills>>,
}

/// The settings that apply now.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveSettings {
    /// The files, as they were read.
    pub(crate) settings: Arc<LoadedSettings>,
    /// The policy made from them, before compilation.
    pub(crate) policy: Arc<RawPolicy>,
    /// Hooks that screened calls until trust in the project lapsed in this session. The calls are refused meanwhile.
    lapsed_hooks: Arc<[PlannedHook]>,
}

/// Applies the settings files to a gate, at the start and after each change.
pub(crate) struct SettingsReloader {
    /// What does not change.
    builder_options: BuilderOptions,
    /// The mode of the command line, or the one that the session changed to.
    mode: Mutex<Option<Mode>>,
    /// What the last reload made.
    active: Mutex<ActiveSettings>,
    /// The MCP servers of plugins that could run at some time of this session.
    plugin_servers: Mutex<BTreeSet<String>>,
    /// Counts reloads, for those who follow them.
    reloads: watch::Sender<u64>,
    /// The language servers, once there are some.
    #[cfg(feature = "lsp")]
    language_servers: std::sync::OnceLock<std::sync::Weak<toolgate_lsp::ServerPool>>,
}

impl SettingsReloader {
    /// A reloader that has not applied any settings yet.
    pub(crate) fn new(builder_options: BuilderOptions) -> Self {
        let mode = Mutex::new(builder_options.mode);
        Self {
            builder_options,
            mode,
            active: Mutex::default(),
            plugin_servers: Mutex::default(),
            reloads: watch::Sender::new(0),
            #[cfg(feature = "lsp")]
            language_servers: std::sync::OnceLock::new(),
        }
    }

    /// The settings that apply now.
    pub(crate) fn active(&self) -> ActiveSettings {
        self.lock().clone()
    }

    /// Wakes after each reload.
    pub(crate) fn watch_reloads(&self) -> watch::Receiver<u64> {
        self.reloads.subscribe()
    }

    /// Keeps these language servers as the settings and plugins say, from the next reload on.
    #[cfg(feature = "lsp")]
    pub(crate) fn follow_language_servers(&self, pool: &Arc<toolgate_lsp::ServerPool>) {
        let _ = self.language_servers.set(Arc::downgrade(pool));
    }

    /// Rules that deny the tools of plugins' servers that may not run any more: such a server is ended only after the
    /// reload, and no call may reach it meanwhile.
    fn deny_gone_servers(&self, settings: &LoadedSettings) -> Option<LayerRules> {
        let now = settings.plugins().mcp_server_names();
        let mut known = self.plugin_servers.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<String> = known.difference(&now).map(|name| format!("mcp__{name}")).collect();
        known.extend(now);
        if gone.is_empty() {
            return None;
        }
        let mut rules = LayerRules::new(Layer::Cli, self.builder_options.root.clone());
        rules.file = Some("a plugin that changed or was switched off (`toolgate plugin list`)".to_owned());
        rules.deny = gone.into_iter().map(Into::into).collect();
        Some(rules)
    }

    /// Applies settings to the gate. Returns the problems of rules and the notes about settings and hooks.
    pub(crate) fn apply(
        &self,
        gate: &Gate,
        settings: LoadedSettings,
    ) -> (Vec<RuleProblem>, Vec<SettingsNote>) {
        self.apply_locked(&mut self.lock(), gate, settings)
    }

    /// Reads the files again if one has changed; closes the gate if that fails.
    pub(crate) fn refresh(&self, gate: &Gate) {
        let Some(options) = &self.builder_options.options else { return };
        let mut active = self.lock();
        if !active.settings.is_stale() {
            return;
        }
        match LoadedSettings::load(options) {
            Ok(settings) => {
                self.apply_locked(&mut active, gate, settings);
                match describe_fatal(&self.check_names_of(&active, gate)) {
                    None => gate.reopen(),
                    Some(fatal) => gate.shut(&fatal),
                }
            }
            // The old settings stay stale, so the next call reads the files again.
            Err(error) => gate.shut(&format!("{}:{}: {}", error.file, error.line, error.message)),
        }
    }

    /// Applies what depends on the registered tools.
    pub(crate) fn apply_to_tools(&self, gate: &Gate) {
        let settings = Arc::clone(&self.lock().settings);
        gate.set_visibility(self.visibility(gate, &settings));
    }

    /// Which tools are shown and listed, by the settings and the builder.
    fn visibility(&self, gate: &Gate, settings: &LoadedSettings) -> Visibility {
        let BuilderOptions { only, groups, max_remote_bytes, .. } = &self.builder_options;
        let hidden = settings.disabled_tools().into_iter().chain(self.find_unnamed_relatives(gate));
        #[cfg(feature = "web")]
        let hidden = hidden.chain(self.unoffered_browser_tools(settings));
        Visibility::default()
            .with_only(only.clone())
            .with_hidden(hidden)
            .with_groups(groups.clone())
            .with_max_remote_bytes(*max_remote_bytes)
    }

    /// The browser tools, unless the user turned them on.
    #[cfg(feature = "web")]
    fn unoffered_browser_tools(&self, settings: &LoadedSettings) -> Vec<String> {
        let mut web_config = self.builder_options.web_config.clone();
        settings.apply_to_web_config(&mut web_config);
        let hidden = if web_config.browser_tools { &[][..] } else { toolgate_tools::BROWSER_TOOLS };
        hidden.iter().map(|&name| name.to_owned()).collect()
    }

    /// Tools that a list of the only visible ones names by their family alone, although a tool has that very name:
    /// `--tools Read` means Read, not every tool that reads.
    fn find_unnamed_relatives(&self, gate: &Gate) -> Vec<String> {
        let Some(only) = &self.builder_options.only else { return Vec::new() };
        let tools = gate.registered_tools();
        let registered: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let own_names: BTreeSet<&str> = tools.iter().flat_map(ToolIdentity::own_names).collect();
        let is_named = |tool: &&ToolIdentity| {
            only.iter().any(|name| match registered.contains(name.as_str()) {
                true => tool.name.as_str() == name,
                false => {
                    tool.own_names().any(|own| own == name)
                        || (tool.has_name(name) && !own_names.contains(name.as_str()))
                }
            })
        };
        let is_related = |tool: &&ToolIdentity| only.iter().any(|name| tool.has_name(name));
        let unnamed = tools.iter().filter(|tool| is_related(tool) && !is_named(tool));
        unnamed.map(|tool| tool.name.as_str().to_owned()).collect()
    }

    /// Checks the names of the only visible tools and of the groups, if the program wants that.
    pub(crate) fn check_named_tools(&self, gate: &Gate) -> Result<(), String> {
        let BuilderOptions { only, groups, requires_known_names: true, .. } = &self.builder_options else {
            return Ok(());
        };
        let registered = gate.registered_names();
        for name in only.iter().flatten().filter(|name| !name.is_empty() && !registered.contains(*name)) {
            if let Some(meant) = find_intended_tool(name, &registered) {
                return Err(format!("there is no tool `{name}` to offer\n  hint: did you mean `{meant}`?"));
            }
            if !is_known_tool(name, &registered) {
                return Err(format!(
                    "there is no tool `{name}` to offer\n  hint: `toolgate tools --all` lists the names"
                ));
            }
        }
        let mut known = gate.registered_groups();
        known.insert(ALL_GROUPS.to_owned());
        if let Some(name) = groups.iter().find(|name| !known.contains(*name)) {
            let list = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let hint = match find_intended_name(name, known.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("use {list}"),
            };
            return Err(format!("there is no group of tools `{name}`\n  hint: {hint}"));
        }
        Ok(())
    }

    /// Changes the mode for the rest of the session. Managed settings can still override it.
    pub(crate) fn set_mode(&self, gate: &Gate, mode: Mode) {
        let mut active = self.lock();
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
        let mut policy = RawPolicy::clone(&active.policy);
        let in_mode = active.settings.policy(Some(mode));
        (policy.mode, policy.setting_places) = (in_mode.mode, in_mode.setting_places);
        gate.set_policy(policy.clone());
        active.policy = Arc::new(policy);
    }

    /// Problems of the tool names in rules, which need the registered tools.
    pub(crate) fn check_tool_names(&self, gate: &Gate) -> Vec<RuleProblem> {
        self.check_names_of(&self.lock(), gate)
    }

    /// The same for settings that are locked already. Servers of plugins that are gone have deny rules, so they are known.
    fn check_names_of(&self, active: &ActiveSettings, gate: &Gate) -> Vec<RuleProblem> {
        check_tool_names(&active.policy, &gate.registered_names(), || {
            let BuilderOptions { options, server_names, .. } = &self.builder_options;
            let mut names =
                options.as_ref().map(|it| it.find_mcp_names(&active.settings)).unwrap_or_default();
            names.servers.extend(server_names.iter().cloned());
            let of_plugins = self.plugin_servers.lock().unwrap_or_else(PoisonError::into_inner);
            names.servers.extend(of_plugins.iter().cloned());
            names
        })
    }

    /// Applies settings while the lock is held: two reloads must not interleave their changes to the gate.
    fn apply_locked(
        &self,
        active: &mut ActiveSettings,
        gate: &Gate,
        settings: LoadedSettings,
    ) -> (Vec<RuleProblem>, Vec<SettingsNote>) {
        let options = &self.builder_options;
        let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        let mut policy = settings.policy(mode);
        let mut rules = LayerRules::new(Layer::Cli, options.root.clone());
        rules.ask.clone_from(&options.rules.ask);
        rules.deny.clone_from(&options.rules.deny);
        rules.allow.clone_from(&options.rules.allow);
        policy.layers.push(rules);
        policy.layers.extend(self.deny_gone_servers(&settings));
        let lapsed: Arc<[PlannedHook]> = match (settings.trust_status, active.settings.trust_status) {
            (TrustStatus::Trusted, _) => Arc::default(),
            (_, TrustStatus::Trusted) => PlannedHook::collect_lapsed(&active.settings).into(),
            (_, TrustStatus::Changed | TrustStatus::Unknown) => Arc::clone(&active.lapsed_hooks),
        };
        let (configured, hook_notes) = build_hooks(&settings, &lapsed, &options.context);
        // Hooks of settings run first, managed ones before all others, then those of the program.
        gate.set_hooks(configured.into_iter().chain(options.hooks.iter().cloned()).collect());
        let deny_questions = settings.denies_instead_of_asking();
        gate.set_approvers(if deny_questions { Vec::new() } else { options.approvers.clone() });
        gate.set_visibility(self.visibility(gate, &settings));
        let is_required = settings.merged().ledger.required == Some(true);
        gate.require_records_with_hint(is_required, Some(record_hint(&policy.setting_places)));
        let mut shell_config = options.shell_config.clone();
        settings.apply_to_shell_config(&mut shell_config);
        self.protect_own_files(&settings, &mut shell_config);
        policy.enforcement = enforcement(&shell_config);
        let problems = gate.set_policy(policy.clone());
        if let Some(skills) = &options.skills {
            skills.set_overrides(settings.merged().skill_overrides.clone());
            skills.set_plugin_places(settings.plugins().places());
        }
        #[cfg(feature = "web")]
        self.configure_web(&settings, &shell_config);
        toolgate_tools::set_shell_config(&options.session, shell_config);
        #[cfg(feature = "lsp")]
        if let Some(pool) = self.language_servers.get().and_then(std::sync::Weak::upgrade) {
            pool.set_servers(crate::lsp_servers::collect_servers(&settings).0);
        }
        let notes = settings.notes.iter().cloned().chain(hook_notes).collect();
        *active =
            ActiveSettings { settings: Arc::new(settings), policy: Arc::new(policy), lapsed_hooks: lapsed };
        self.reloads.send_modify(|count| *count += 1);
        (problems, notes)
    }

    /// Builds hooks of a skill or an agent by the settings as they are now. `check` says before each run whether the file is
    /// still trusted. The error says why they cannot run.
    pub(crate) fn build_capability_hooks(
        &self,
        hooks: &CapabilityHooks,
        owner: &HookOwner,
        check: &HookTrustCheck,
    ) -> Result<BuiltHooks, String> {
        let settings = self.active().settings;
        hooks.build(owner, &settings, &self.builder_options.context, check)
    }

    /// The hooks of the settings as they are now for the events of an agent, and notes about those that cannot run.
    pub(crate) fn build_agent_hooks(self: &Arc<Self>) -> (Vec<Arc<dyn AgentHook>>, Vec<SettingsNote>) {
        let settings = self.active().settings;
        build_agent_hooks(&settings, &self.builder_options.context, self)
    }

    /// Where the settings files are; `None` if the program reads none.
    pub(crate) fn settings_options(&self) -> Option<&SettingsOptions> {
        self.builder_options.options.as_ref()
    }

    /// What the builder fixed.
    #[cfg(feature = "lsp")]
    pub(crate) fn builder_options(&self) -> &BuilderOptions {
        &self.builder_options
    }

    /// The shell configuration as commands have it now.
    #[cfg(feature = "lsp")]
    pub(crate) fn shell_config(&self) -> ShellConfig {
        let settings = self.active().settings;
        let mut shell_config = self.builder_options.shell_config.clone();
        settings.apply_to_shell_config(&mut shell_config);
        self.protect_own_files(&settings, &mut shell_config);
        shell_config
    }

    /// Sets up the web tools. They find proxies and keys in the environment that commands get a part of.
    #[cfg(feature = "web")]
    fn configure_web(&self, settings: &LoadedSettings, shell_config: &ShellConfig) {
        let options = &self.builder_options;
        let mut web_config = options.web_config.clone();
        if web_config.environment.is_empty() {
            web_config.environment.clone_from(&shell_config.environment);
        }
        settings.apply_to_web_config(&mut web_config);
        // A model of the host comes before one of the settings.
        if web_config.page_model.is_none() {
            web_config.page_model = crate::page_model::configured_page_model(
                &settings.merged().web.page_model,
                &web_config.environment,
            );
        }
        toolgate_tools::set_web_config(&options.session, web_config);
    }

    /// Makes toolgate's own files and the scripts of hooks read-only for commands, and its credentials unreadable.
    fn protect_own_files(&self, settings: &LoadedSettings, shell_config: &mut ShellConfig) {
        let roots = self.builder_options.session.workspace().roots.clone();
        let is_writable = |path: &AbsPath| {
            roots.iter().chain(&shell_config.sandbox.writable).any(|root| path.is_under(root))
        };
        let protected: Vec<AbsPath> = settings.protected_paths().into_iter().filter(is_writable).collect();
        shell_config.sandbox.protected.extend(protected);
        let state = self.builder_options.options.as_ref().and_then(|options| options.state_dir.as_ref());
        let secrets = state.map(LoadedSettings::secret_paths).unwrap_or_default();
        let existing = secrets
            .into_iter()
            .filter(|path| toolgate_files::read_file_stamp(path) != toolgate_files::FileStamp::Absent);
        shell_config.sandbox.unreadable.extend(existing);
    }

    /// The active settings; a panic of another thread cannot leave them half replaced.
    fn lock(&self) -> MutexGuard<'_, ActiveSettings> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to do if a call cannot be recorded, with the files that require it.
fn record_hint(places: &SettingPlaces) -> String {
    let anchor = match places.get("ledger.anchor") {
        Some(place) => format!(" and the place of `ledger.anchor` ({place})"),
        None => String::new(),
    };
    let required = places.clause("ledger.required");
    format!("make the ledger{anchor} writable again, or remove `ledger.required`{required}")
}

/// Adds the problems that are not listed yet: parsing a rule and checking its name can find the same one.
pub(crate) fn add_new_problems(problems: &mut Vec<RuleProblem>, found: Vec<RuleProblem>) {
    for problem in found {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

/// Every fatal problem, one on each line. Rules of two places can have the same one.
pub(crate) fn describe_fatal(problems: &[RuleProblem]) -> Option<String> {
    let fatal = problems.iter().filter(|problem| problem.weight == ProblemSeverity::Fatal);
    let mut lines: Vec<String> = Vec::new();
    for line in fatal.map(ToString::to_string) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

impl std::fmt::Debug for SettingsReloader {
    /// Shows the active settings, which identify the state of the reloader, and omits the rest.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsReloader").field("active", &self.active).finish_non_exhaustive()
    }
}
