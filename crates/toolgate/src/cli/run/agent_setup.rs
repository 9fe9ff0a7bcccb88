//! Everything that a run of an agent is made of, put together from arguments, settings and environment.

use super::super::CliError;
use super::super::context::{CliContext, RecordingToolgate};
use super::super::mcp::{UpstreamServers, follow_plugin_servers};
use super::super::output::CliOutput;
use super::debug_log::DebugLog;
use super::editor_context::{CONTEXT_TOOLS, read_editor_context};
use super::editor_lock::connect_editor;
use super::file_capabilities::{
    NO_STYLE, apply_style, check_agent_tools, file_agents, find_style, list_styles, load_file_capabilities,
};
use super::key_helper::KeyHelper;
use super::provider_choice::ProviderChoice;
use super::run_args::{RunArgs, ThinkingArg};
use super::stored_session::RunSession;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use toolgate::agent::provider::{CredentialHelper, ModelClient, ThinkingMode};
use toolgate::agent::session::TranscriptWriter;
use toolgate::agent::subagent::{AgentDefinition, AgentTypes, SubagentParts, SubagentSource};
use toolgate::agent::{
    AgentEnvironment, AgentHook, AgentLoop, AgentObserver, AgentParts, AgentSettings, GateEventRelay,
    InstructionPlaces, LoadedInstructions, ModelPrice, StructuredOutputSource, SystemPromptParts, UsageMeter,
    build_system_prompt, describe_environment, read_instructions, render_instructions,
};
use toolgate::mcp::client::McpCoordinator;
use toolgate::settings::LoadedSettings;
use toolgate::skills::{CatalogStyle, SkillCatalog, SkillExpander};
use toolgate::{AbsPath, EntryKind, Toolgate, ToolgateBuilder};
use toolgate_gate::SessionLimits;

/// How many bytes of a system prompt file are read.
const MAX_PROMPT_BYTES: u64 = 1024 * 1024;
/// How long the end of a run waits for subagents where the environment does not say.
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(600);
/// What the Messages API wants to hear with a budget in tokens.
const TASK_BUDGET_BETA: &str = "task-budgets-2026-03-13";

/// A run before its agent exists.
pub(crate) struct AgentSetup {
    /// The gate with its records.
    pub(crate) recording: RecordingToolgate,
    /// The model's provider.
    pub(crate) provider: ProviderChoice,
    /// What the run wants.
    pub(crate) settings: AgentSettings,
    /// The price and the budget.
    pub(crate) meter: Arc<UsageMeter>,
    /// The configured MCP servers.
    pub(crate) coordinator: Option<McpCoordinator>,
    /// The editor that has the directory open, if it is wanted.
    pub(crate) editor: Option<McpCoordinator>,
    /// The session, and what it goes on from.
    pub(crate) session: RunSession,
    /// Writes the session; absent if it is not stored.
    pub(crate) transcript: Option<Arc<TranscriptWriter>>,
    /// The files of the arguments, for the first prompt.
    pub(crate) files: Vec<String>,
    /// The output style in use, and every other that there is.
    pub(crate) output_style: String,
    /// The names of all output styles.
    pub(crate) output_styles: Vec<String>,
    /// The files with instructions, and how many bytes each has.
    pub(crate) memory_files: Vec<(AbsPath, usize)>,
    /// Writes what happens, if the arguments want it.
    debug_log: Option<Arc<DebugLog>>,
    /// The hooks of settings around calls.
    settings_hooks: Vec<Arc<dyn AgentHook>>,
    /// Starts subagents.
    pub(crate) subagents: SubagentSource,
    /// Events of the gate for the observers and the hooks of the agent.
    relay: Arc<GateEventRelay>,
    /// Their types.
    types: AgentTypes,
    /// Where the agent works; passed on to subagents.
    environment: AgentEnvironment,
    /// The tools and the mode of the main conversation, where `--agent` limits them.
    main_limits: Option<SessionLimits>,
    /// Limits for subagents, read from the environment once at setup.
    limits: SubagentLimits,
}

/// How deep and how many, by the environment.
#[derive(Debug, Clone, Default)]
struct SubagentLimits {
    /// The depth to which subagents may start subagents (`CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH`).
    max_depth: Option<usize>,
    /// The number of subagents that run at the same time (`CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS`).
    max_agents: Option<usize>,
    /// Whether subagents may run beside the agent that starts them (`CLAUDE_CODE_DISABLE_BACKGROUND_TASKS`).
    allows_background: bool,
    /// The model of all subagents (`CLAUDE_CODE_SUBAGENT_MODEL`).
    model: Option<String>,
    /// How long the end of a run waits for subagents (`CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS`).
    max_wait: Duration,
}

impl SubagentLimits {
    /// The limits that the environment sets.
    fn from_env(env: &BTreeMap<String, String>) -> Self {
        let number = |name: &str| env.get(name).and_then(|text| text.trim().parse().ok());
        let wait = env.get("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS").and_then(|text| text.trim().parse().ok());
        Self {
            max_depth: number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH"),
            max_agents: number("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS"),
            allows_background: env
                .get("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
                .is_none_or(|value| value != "1"),
            max_wait: wait.map_or(DEFAULT_MAX_WAIT, Duration::from_millis),
            model: env.get("CLAUDE_CODE_SUBAGENT_MODEL").filter(|model| !model.is_empty()).cloned(),
        }
    }
}

/// What a host adds to the arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct SetupAdditions {
    /// The parts of the system prompt, over those of the arguments.
    pub(crate) prompt: SystemPromptParts,
    /// Types of subagents, over those of the arguments.
    pub(crate) agents: Vec<AgentDefinition>,
    /// The schema of the output, over that of the arguments.
    pub(crate) output_schema: Option<Value>,
}

impl AgentSetup {
    /// Puts it together. Must be called inside a runtime.
    pub(crate) fn build(
        context: &CliContext,
        args: &RunArgs,
        additions: &SetupAdditions,
        out: &mut CliOutput,
        configure: impl FnOnce(ToolgateBuilder) -> ToolgateBuilder,
    ) -> Result<Self, CliError> {
        let session = RunSession::choose(context, args)?;
        let subagents = SubagentSource::default();
        let (id, source) = (session.id.clone(), subagents.clone());
        let relay = Arc::new(GateEventRelay::default());
        let sink = Arc::clone(&relay);
        let recording = context.build_recording_with(out, |builder| {
            configure(allow_editor_context(builder.session(id).source(source).sink(sink), args))
        })?;
        let mut provider = ProviderChoice::from_env(
            &context.ambient.env,
            key_helper(context, &recording.toolgate.settings()),
        )?;
        let mut betas = args.betas.clone();
        betas.extend(args.task_budget.map(|_| TASK_BUDGET_BETA.to_owned()));
        if !betas.is_empty() {
            provider.config.headers.push(("anthropic-beta".to_owned(), betas.join(",")));
        }
        let model = provider.model(args.model.as_deref())?;
        let transcript = session.open_transcript(&recording.toolgate).unwrap_or_else(|problem| {
            out.print_note(&problem);
            None
        });
        let meter = Arc::new(build_meter(context, args)?);
        let files = load_file_capabilities(&recording.toolgate);
        let types = agent_types(&recording.toolgate, args, additions, &files, out)?;
        let style = find_style(&recording.toolgate, &files, args.output_style.as_deref(), out)?;
        let environment = find_environment(context, &recording);
        let (mut settings, memory_files) = build_settings(
            (context, &recording),
            args,
            (additions, style.as_deref()),
            &environment,
            model,
            out,
        )?;
        settings.model_aliases = provider.model_aliases(&settings.model);
        let main_agent = find_main_agent(args, &types)?;
        apply_main_agent(main_agent, args, &environment, &mut settings);
        check_price(&meter, &settings.model)?;
        settings.output_schema = add_output_schema(&recording, args, additions)?;
        let coordinator = Some(connect_servers(context, &recording, out)?);
        let editor = args.ide.then(|| add_editor(context, &recording)).transpose()?;
        Ok(Self {
            limits: SubagentLimits::from_env(&context.ambient.env),
            settings_hooks: find_agent_hooks(&recording.toolgate, out),
            main_limits: main_agent.map(|agent| limit_main_agent(agent, &recording)),
            recording,
            provider,
            settings,
            meter,
            coordinator,
            editor,
            session,
            transcript,
            files: args.files.clone(),
            output_style: style.map_or_else(|| NO_STYLE.to_owned(), |style| style.name.clone()),
            output_styles: list_styles(&files),
            memory_files,
            debug_log: open_debug_log(context, args, out),
            subagents,
            relay,
            types,
            environment,
        })
    }

    /// Waits for the servers; an editor that was asked for and does not answer is an error.
    pub(crate) async fn wait_for_servers(&self) -> Result<(), CliError> {
        for servers in [&self.coordinator, &self.editor].into_iter().flatten() {
            servers.wait_until_ready().await;
        }
        let states = self.editor.as_ref().map(McpCoordinator::states).unwrap_or_default();
        match states.iter().find_map(|state| state.error.as_ref().map(|error| (&state.name, error))) {
            Some((name, error)) => Err(CliError::Usage(format!("--ide: {}", error.refusal(name).reason))),
            None => Ok(()),
        }
    }

    /// How long the end of a turn waits for agents in the background when no more input can come.
    pub(crate) fn max_wait(&self) -> Duration {
        self.limits.max_wait
    }

    /// Adds what the editor shows to the next prompt, where the editor is wanted.
    pub(crate) async fn attach_editor_context(&self, agent: &AgentLoop) {
        if self.editor.is_some() {
            agent.attach(read_editor_context(&self.recording.toolgate).await);
        }
    }

    /// The agent, connected to its subagents and its transcript.
    pub(crate) fn agent(
        &self,
        mut observers: Vec<Arc<dyn AgentObserver>>,
        mut hooks: Vec<Arc<dyn AgentHook>>,
    ) -> AgentLoop {
        hooks.splice(0..0, self.settings_hooks.iter().cloned());
        let client = ModelClient::new(self.provider.config.clone());
        let gate = self.recording.toolgate.shared_gate();
        observers.extend(self.debug_log.clone().map(|log| log as Arc<dyn AgentObserver>));
        observers.extend(self.transcript.clone().map(|transcript| transcript as Arc<dyn AgentObserver>));
        self.relay.connect(observers.clone(), &hooks);
        let mut subagents = SubagentParts::new(
            &gate,
            client.clone(),
            Arc::clone(&self.meter),
            self.types.clone(),
            self.environment.clone(),
            self.settings.clone(),
        );
        subagents.observers.clone_from(&observers);
        subagents.hooks.clone_from(&hooks);
        subagents.max_depth = self.limits.max_depth;
        subagents.max_agents = self.limits.max_agents;
        subagents.allows_background = self.limits.allows_background;
        subagents.model.clone_from(&self.limits.model);
        self.subagents.connect(subagents);
        let expander = Arc::new(SkillExpander::new(self.recording.toolgate.clone()));
        let session = self.recording.toolgate.session();
        #[cfg(feature = "web")]
        let hooks = hooks.into_iter().chain([super::named_urls::note_named_urls(session)]).collect();
        let session = match &self.main_limits {
            Some(limits) => session.child(session.principal().clone(), limits.clone()),
            None => session.clone(),
        };
        let parts = AgentParts::new(gate, session, client, self.settings.clone())
            .with_meter(Arc::clone(&self.meter))
            .with_observers(observers)
            .with_hooks(hooks)
            .with_conversation(self.session.before.messages());
        AgentLoop::new(parts).with_prompt_expander(expander)
    }
}

/// The hooks of settings around calls; those that cannot run are said.
fn find_agent_hooks(toolgate: &Toolgate, out: &mut CliOutput) -> Vec<Arc<dyn AgentHook>> {
    let (hooks, notes) = toolgate.settings_hooks();
    notes.iter().for_each(|note| out.print_note(&note.to_string()));
    hooks
}

/// The log that `--debug-file` or `--debug` want.
fn open_debug_log(context: &CliContext, args: &RunArgs, out: &mut CliOutput) -> Option<Arc<DebugLog>> {
    let file = args.debug_file.as_ref().map(|file| context.ambient.absolute_path(file));
    if file.is_none() && args.debug.is_none() {
        return None;
    }
    match DebugLog::open(file.as_ref()) {
        Ok(log) => Some(log),
        Err(problem) => {
            out.print_note(&format!("--debug-file: nothing is written there: {problem}"));
            None
        }
    }
}

/// Allows the tools by which the editor tells what it shows, where the editor is wanted.
fn allow_editor_context(builder: ToolgateBuilder, args: &RunArgs) -> ToolgateBuilder {
    let tools = if args.ide { &CONTEXT_TOOLS[..] } else { &[] };
    tools.iter().fold(builder, |builder, tool| builder.allow(*tool))
}

/// A budget can only be kept with a model whose price is known.
fn check_price(meter: &UsageMeter, model: &str) -> Result<(), CliError> {
    if meter.can_price(model) {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "the price of `{model}` is not known, so a budget cannot be kept; set TOOLGATE_MODEL_PRICE=INPUT/OUTPUT in US \
         dollars per million tokens, such as 3/15, or leave --max-budget-usd out"
    )))
}

/// The type that `--agent` names.
fn find_main_agent<'a>(
    args: &RunArgs,
    types: &'a AgentTypes,
) -> Result<Option<&'a AgentDefinition>, CliError> {
    let Some(name) = &args.agent else { return Ok(None) };
    let known = || types.iter().map(|known| known.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = types.get(name).ok_or_else(|| {
        CliError::Usage(format!("--agent: there is no agent type `{name}`; the types are {}", known()))
    })?;
    Ok(Some(found))
}

/// The prompt, the model and the limits of the type that the main conversation is. Options of the command line count
/// over it.
fn apply_main_agent(
    agent: Option<&AgentDefinition>,
    args: &RunArgs,
    environment: &AgentEnvironment,
    settings: &mut AgentSettings,
) {
    let Some(agent) = agent else { return };
    if args.system_prompt.is_none() && args.system_prompt_file.is_none() {
        let appended = args.append_system_prompt.as_deref().unwrap_or_default();
        settings.system_prompt =
            format!("{}\n\n{}\n\n{appended}", agent.prompt, describe_environment(environment))
                .trim_end()
                .to_owned();
    }
    if let Some(model) = agent.model.as_ref().filter(|_| args.model.is_none()) {
        settings.model.clone_from(model);
    }
    settings.max_turns = settings.max_turns.or(agent.max_turns);
    settings.effort = settings.effort.take().or_else(|| agent.effort.clone());
}

/// What the main conversation sees where a type limits it. Its mode counts where it is stricter.
fn limit_main_agent(agent: &AgentDefinition, recording: &RecordingToolgate) -> SessionLimits {
    let shown: BTreeSet<String> =
        recording.toolgate.tools().iter().map(|tool| tool.name.to_string()).collect();
    let is_limited = agent.tools.is_some() || !agent.disallowed_tools.is_empty();
    let mut limits = SessionLimits::default();
    limits.only = is_limited.then(|| agent.visible_tools(&shown));
    limits.mode = agent.mode;
    limits
}

/// The program that prints the key, if trusted settings name one.
pub(super) fn key_helper(
    context: &CliContext,
    settings: &LoadedSettings,
) -> Option<Arc<dyn CredentialHelper>> {
    let command = settings.merged().api_key_helper.as_deref().filter(|command| !command.trim().is_empty())?;
    Some(Arc::new(KeyHelper::new(command, context.cwd(), context.ambient.env.clone())))
}

/// Offers the tool that takes the output, if the run has a schema for it.
fn add_output_schema(
    recording: &RecordingToolgate,
    args: &RunArgs,
    additions: &SetupAdditions,
) -> Result<Option<Value>, CliError> {
    let Some(schema) = output_schema(args, additions)? else { return Ok(None) };
    let source = StructuredOutputSource::new(schema.clone())
        .map_err(|problem| CliError::Usage(format!("--json-schema: {problem}")))?;
    let added = recording.toolgate.add_source(source);
    added.map_err(|error| CliError::Usage(format!("--json-schema: {error}")))?;
    Ok(Some(schema))
}

/// Brings in the tools of the editor that has the directory open.
fn add_editor(context: &CliContext, recording: &RecordingToolgate) -> Result<McpCoordinator, CliError> {
    let editor = connect_editor(context)?;
    let added = recording.toolgate.add_source(editor.clone());
    added.map_err(|error| CliError::Usage(format!("--ide: {error}")))?;
    Ok(editor)
}

/// The schema of the output.
fn output_schema(args: &RunArgs, additions: &SetupAdditions) -> Result<Option<Value>, CliError> {
    if let Some(schema) = &additions.output_schema {
        return Ok(Some(schema.clone()));
    }
    let Some(text) = &args.json_schema else { return Ok(None) };
    let schema = serde_json::from_str(text);
    schema.map(Some).map_err(|error| CliError::Usage(format!("--json-schema is not valid JSON: {error}")))
}

/// The types of subagents, the weakest first: built in, of files, of `--agents`, of the host, of the administrator.
fn agent_types(
    toolgate: &Toolgate,
    args: &RunArgs,
    additions: &SetupAdditions,
    files: &SkillCatalog,
    out: &mut CliOutput,
) -> Result<AgentTypes, CliError> {
    let mut types = AgentTypes::default();
    types.add(file_agents(toolgate, files, false, out));
    if let Some(text) = &args.agents {
        let value = serde_json::from_str(text)
            .map_err(|error| CliError::Usage(format!("--agents is not valid JSON: {error}")))?;
        let given = AgentDefinition::read_all(&value)
            .and_then(|agents| check_agent_tools(agents, out))
            .map_err(|problem| CliError::Usage(format!("--agents: {problem}")))?;
        types.add(given);
    }
    types.add(check_agent_tools(additions.agents.clone(), out).map_err(CliError::Usage)?);
    types.add(file_agents(toolgate, files, true, out));
    Ok(types)
}

/// Starts connecting to the configured MCP servers. Plugins may bring further ones later.
fn connect_servers(
    context: &CliContext,
    recording: &RecordingToolgate,
    out: &mut CliOutput,
) -> Result<McpCoordinator, CliError> {
    let settings = recording.toolgate.settings();
    let upstreams = UpstreamServers::discover(context, &settings, out)?;
    let coordinator = upstreams.into_coordinator(context, &settings)?;
    let added = recording.toolgate.add_source(coordinator.clone());
    added.map_err(|error| CliError::Usage(error.to_string()))?;
    follow_plugin_servers(context, &recording.toolgate, &coordinator);
    Ok(coordinator)
}

/// The price and the budget, checked.
fn build_meter(context: &CliContext, args: &RunArgs) -> Result<UsageMeter, CliError> {
    let price = match context.ambient.env.get("TOOLGATE_MODEL_PRICE") {
        None => None,
        Some(text) => Some(ModelPrice::parse(text).ok_or_else(|| {
            CliError::Usage(format!(
                "invalid TOOLGATE_MODEL_PRICE `{text}`; give INPUT/OUTPUT in US dollars per million tokens, such as 3/15"
            ))
        })?),
    };
    if let Some(budget) = args.max_budget_usd.filter(|budget| !budget.is_finite() || *budget < 0.0) {
        return Err(CliError::Usage(format!(
            "invalid --max-budget-usd `{budget}`; give US dollars, such as 0.50"
        )));
    }
    Ok(UsageMeter::new(price, args.max_budget_usd))
}

/// The model, the prompt, the instructions and the limits; and the files with instructions.
fn build_settings(
    (context, recording): (&CliContext, &RecordingToolgate),
    args: &RunArgs,
    (additions, style): (&SetupAdditions, Option<&CatalogStyle>),
    environment: &AgentEnvironment,
    model: String,
    out: &mut CliOutput,
) -> Result<(AgentSettings, Vec<(AbsPath, usize)>), CliError> {
    let given = match &args.system_prompt_file {
        Some(file) => Some(read_prompt_file(&context.ambient.absolute_path(file))?),
        None => args.system_prompt.clone(),
    };
    let mut parts = SystemPromptParts::default()
        .with_replacement(additions.prompt.replacement.clone().or(given))
        .with_appended(additions.prompt.appended.clone().or_else(|| args.append_system_prompt.clone()));
    if let Some(style) = style {
        apply_style(&mut parts, style, environment);
    }
    let mut settings = AgentSettings::new(model, build_system_prompt(&parts, environment));
    // From the repository's root down; without a repository only the working directory counts.
    let mut ancestors = ancestors(&environment.cwd);
    let root = ancestors.iter().position(|dir| exists(&dir.join(".git"))).unwrap_or(0);
    ancestors.truncate(root + 1);
    ancestors.reverse();
    // A file that the model could not read by a call must not reach it as an instruction.
    let filter = recording.toolgate.gate().policy().read_filter(&recording.toolgate.session().workspace());
    let is_withheld = |path: &AbsPath| filter.is_hidden(path) || filter.is_sensitive(path);
    let (files, problems) = read_instructions(&instruction_places(context, ancestors), &is_withheld);
    problems.iter().for_each(|problem| out.print_note(problem));
    settings.first_context = render_instructions(&files);
    settings.instruction_files =
        files.iter().map(|file| LoadedInstructions::new(file.path.clone(), file.kind)).collect();
    settings.fallback_model.clone_from(&args.fallback_model);
    settings.max_turns = args.max_turns;
    settings.task_budget = args.task_budget;
    settings.effort.clone_from(&args.effort);
    settings.thinking_display.clone_from(&args.thinking_display);
    settings.thinking = match (args.max_thinking_tokens, args.thinking) {
        (Some(0), _) | (None, Some(ThinkingArg::Disabled)) => ThinkingMode::Disabled,
        (Some(tokens), _) => ThinkingMode::Budget(tokens),
        (None, Some(ThinkingArg::Adaptive)) => ThinkingMode::Adaptive,
        (None, None) => ThinkingMode::Unset,
    };
    let number = |name: &str| context.ambient.env.get(name).and_then(|text| text.parse().ok());
    settings.max_tokens = number("CLAUDE_CODE_MAX_OUTPUT_TOKENS").unwrap_or(settings.max_tokens);
    if let Some(millis) = number("TOOLGATE_IDLE_NOTIFICATION_MS") {
        settings.idle_delay = Duration::from_millis(millis);
    }
    let memory_files = files.into_iter().map(|file| (file.path, file.text.len())).collect();
    Ok((settings, memory_files))
}

/// Where the agent works.
fn find_environment(context: &CliContext, recording: &RecordingToolgate) -> AgentEnvironment {
    let cwd = recording.toolgate.session().workspace().cwd.clone();
    let additional = context.global.add_dir.iter().map(|dir| context.ambient.absolute_path(dir)).collect();
    let is_repository = ancestors(&cwd).iter().any(|dir| exists(&dir.join(".git")));
    AgentEnvironment::new(cwd, std::env::consts::OS)
        .with_additional(additional)
        .with_repository(is_repository)
}

/// Whether anything is at a path.
fn exists(path: &AbsPath) -> bool {
    toolgate_files::resolve(path).kind != EntryKind::Missing
}

/// The directory and those above it, innermost first.
fn ancestors(dir: &AbsPath) -> Vec<AbsPath> {
    std::iter::successors(Some(dir.clone()), AbsPath::parent).collect()
}

/// Files with instructions are settings of a kind: `--setting-sources` selects them too.
fn instruction_places(context: &CliContext, project_dirs: Vec<AbsPath>) -> InstructionPlaces {
    let reads = |source: &str| {
        context
            .global
            .setting_sources
            .as_ref()
            .is_none_or(|sources| sources.iter().any(|given| given == source))
    };
    let env = &context.ambient.env;
    let claude_dir = match env.get("CLAUDE_CONFIG_DIR").and_then(|dir| AbsPath::new(dir).ok()) {
        Some(dir) => Some(dir),
        None => context.ambient.home.as_ref().map(|home| home.join(".claude")),
    };
    let own = context.ambient.config_dir.as_ref().map(|dir| dir.join("AGENTS.md"));
    let user_files = claude_dir.map(|dir| dir.join("CLAUDE.md")).into_iter().chain(own);
    InstructionPlaces::default()
        .with_user_files(if reads("user") { user_files.collect() } else { Vec::new() })
        .with_project_dirs(if reads("project") { project_dirs } else { Vec::new() })
        .with_home(context.ambient.home.clone())
}

/// The text of `--system-prompt-file`.
fn read_prompt_file(path: &AbsPath) -> Result<String, CliError> {
    let text = toolgate_files::read_settings_text(path, MAX_PROMPT_BYTES);
    let text =
        text.map_err(|problem| CliError::Usage(format!("--system-prompt-file: `{path}`: {problem}")))?;
    text.ok_or_else(|| CliError::Usage(format!("--system-prompt-file: there is no file `{path}`")))
}
