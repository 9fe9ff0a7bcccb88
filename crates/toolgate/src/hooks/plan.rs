//! The plan of hooks: the handlers of all settings files, strongest layer first, without duplicates.

use super::build_agent_hooks::find_agent_event;
use super::condition::HookCondition;
use super::configured_hook::{ConfiguredHook, HookAction};
use super::http::HttpHook;
use super::matcher::HookMatcher;
use super::mcp_reference::UnresolvedServers;
use super::mcp_tool::{GateSessionCell, McpToolHook};
use crate::plugins::{PlannedPluginHooks, PluginVariables};
use crate::settings::trust::TrustStatus;
use crate::settings::values::{HookFailurePolicy, HookHandler, HookHandlerKind, SettingsValues};
use crate::settings::{LoadedSettings, SettingsNote};
use crate::skills::PluginIdentity;
use serde::Deserialize;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolgate_files::DEFAULT_SEARCH_PATH;
use toolgate_gate::{Hook, HookEvent, OnFailure};
use toolgate_policy::{Layer, McpNames};
use toolgate_process::HookProgram;
use toolgate_proto::AbsPath;

/// Timeout of a hook without `timeout`, as in Claude Code.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// How many characters of a command name the hook.
const MAX_NAME_CHARS: usize = 80;

/// Events of Claude Code that are never raised here, each with the reason. Their hooks are reported as such instead of
/// as unknown.
pub(super) const UNRAISED_EVENTS: &[(&str, &str)] = &[
    (
        "ConfigChange",
        "changed settings are in force from the next call on, and no program can hold them back",
    ),
    ("DirectoryAdded", "there is no command that adds a directory"),
    ("Elicitation", "an agent has no form for questions of MCP servers, so they are declined"),
    ("ElicitationResult", "an agent has no form for questions of MCP servers, so they are declined"),
    ("FileChanged", "files are not watched for hooks"),
    ("MessageDisplay", "text is shown and sent as the model writes it, and no program can replace it"),
    ("Setup", "there is no run that only sets up a project"),
    ("TeammateIdle", "there are no teams of sessions"),
    ("WorktreeCreate", "worktrees are made by calls of tools, which hooks for calls see"),
    ("WorktreeRemove", "worktrees are removed by calls of tools, which hooks for calls see"),
];

/// Why the hooks of an event never run; none if they do.
pub(crate) fn describe_unraised(event: &str) -> Option<String> {
    let is_raised =
        HookEvent::ALL.iter().any(|known| known.as_str() == event) || find_agent_event(event).is_some();
    if is_raised {
        return None;
    }
    Some(match UNRAISED_EVENTS.iter().find(|(known, _)| *known == event) {
        Some((_, why)) => format!("is not raised: {why}"),
        None => "is an unknown event".to_owned(),
    })
}

/// What hooks need to run.
#[derive(Clone)]
pub(crate) struct HookContext {
    /// The project directory, which hooks find in `CLAUDE_PROJECT_DIR`.
    pub(crate) project: AbsPath,
    /// The checkout that has the project's settings in place of the workspace. Hooks run there: what was trusted is its
    /// files, and not those of the same names in the workspace.
    pub(crate) config_root: Option<AbsPath>,
    /// The environment of the process.
    pub(crate) env: BTreeMap<String, String>,
    /// Tracks background runs.
    pub(crate) tasks: TaskTracker,
    /// The gate through which `mcp_tool` hooks call their tool.
    pub(crate) gate_cell: GateSessionCell,
}

/// One handler that is active, with its origin.
#[derive(Debug, Clone)]
pub(crate) struct PlannedHook {
    /// The event that it handles.
    pub(crate) event: HookEvent,
    /// The matcher of its group, as written.
    pub(crate) matcher: Option<String>,
    /// The handler, as written.
    pub(crate) handler: HookHandler,
    /// The layer of its file.
    pub(crate) layer: Layer,
    /// The directory that paths in its `if` are relative to.
    pub(crate) anchor: AbsPath,
    /// The file that configures it.
    pub(crate) file: String,
    /// The line in that file.
    pub(crate) line: usize,
    /// Why it does not run although the calls that it screens must not pass: they are refused with this reason.
    pub(crate) refusal_reason: Option<String>,
    /// The plugin that brings it.
    pub(crate) plugin: Option<Arc<PluginIdentity>>,
}

/// Why calls are refused that a project's hooks screened before trust in the project lapsed.
pub(super) const LAPSED_TRUST_REASON: &str = "this project's settings or hooks changed after you trusted it, so the calls that its \
                                   hooks screen are refused; check it with `toolgate trust show`, then run \
                                   `toolgate trust add`";

/// The active handlers in the order in which they run, and notes about handlers that never run.
pub(crate) fn plan_hooks(settings: &LoadedSettings) -> (Vec<PlannedHook>, Vec<SettingsNote>) {
    let mut plan: Vec<PlannedHook> = Vec::new();
    let mut notes = Vec::new();
    for file in &settings.files {
        let name = file.rules.file.clone().unwrap_or_default();
        let lapsed = !file.trusted && settings.trust_status == TrustStatus::Changed;
        let written = match (settings.are_hooks_active(file), lapsed) {
            (true, false) => file.values.hooks.clone(),
            // The hooks of the changed file are not trusted, but they show which calls were screened.
            (_, true) => SettingsValues::deserialize(&file.raw_value).unwrap_or_default().hooks,
            (false, false) => continue,
        };
        for (event, groups) in &written {
            let Some(known) = HookEvent::ALL.iter().find(|known| known.as_str() == event) else {
                let line = file.node.nearest_node(&["hooks", event]).line;
                let note = |message| SettingsNote { file: name.clone(), line, message };
                let reason = describe_unraised(event);
                notes.extend(reason.map(|why| note(format!("`hooks.{event}` {why}; its hooks never run"))));
                continue;
            };
            for (index, group) in groups.iter().enumerate() {
                for (below, handler) in group.hooks.iter().enumerate() {
                    let path = ["hooks", event, &index.to_string(), "hooks", &below.to_string()];
                    let planned = PlannedHook {
                        event: *known,
                        matcher: group.matcher.clone(),
                        handler: handler.clone(),
                        layer: file.rules.layer,
                        anchor: file.rules.anchor.clone(),
                        file: name.clone(),
                        line: file.node.nearest_node(&path).line,
                        refusal_reason: match lapsed {
                            true => Some(LAPSED_TRUST_REASON.to_owned()),
                            false if matches!(file.rules.layer, Layer::Project | Layer::Local) => {
                                settings.unresolved_hook(handler)
                            }
                            false => None,
                        },
                        plugin: None,
                    };
                    let is_duplicate = plan.iter().any(|other| other.is_same_as(&planned));
                    if !is_duplicate && (!lapsed || planned.is_screening()) {
                        plan.push(planned);
                    }
                }
            }
        }
    }
    plan_lapsed_hooks(settings, &mut plan);
    if settings.are_plugin_hooks_active() {
        plan_plugin_hooks(settings, &mut plan);
    }
    (plan, notes)
}

/// Adds the screening hooks that a project had when it was trusted, if it changed since: also those that are gone refuse
/// the calls that they screened.
fn plan_lapsed_hooks(settings: &LoadedSettings, plan: &mut Vec<PlannedHook>) {
    let Some((root, hooks)) = settings.lapsed_hooks() else { return };
    for (layer, event, group) in hooks.groups() {
        let Some(known) = HookEvent::ALL.iter().find(|known| known.as_str() == event) else { continue };
        for handler in group.hooks {
            let planned = PlannedHook {
                event: *known,
                matcher: group.matcher.clone(),
                handler,
                layer,
                anchor: root.clone(),
                file: format!("{root} as it was trusted"),
                line: 1,
                refusal_reason: Some(LAPSED_TRUST_REASON.to_owned()),
                plugin: None,
            };
            if planned.is_screening() && !plan.iter().any(|other| other.is_same_as(&planned)) {
                plan.push(planned);
            }
        }
    }
}

/// Whether calls are refused because hooks of the project screened them before trust in it lapsed.
pub(crate) fn refuses_after_lapse(settings: &LoadedSettings) -> bool {
    let (plan, _) = plan_hooks(settings);
    plan.iter().any(|planned| planned.refusal_reason.as_deref() == Some(LAPSED_TRUST_REASON))
}

/// Adds the hooks of plugins, which run after those of all settings: plugins of the command line as they were given, then
/// the installed ones by name.
fn plan_plugin_hooks(settings: &LoadedSettings, plan: &mut Vec<PlannedHook>) {
    for PlannedPluginHooks { identity, events, refusal_reason } in settings.plugins().hooks() {
        for event in HookEvent::ALL {
            for group in events.get(event.as_str()).into_iter().flatten() {
                for handler in &group.hooks {
                    let planned = PlannedHook {
                        event: *event,
                        matcher: group.matcher.clone(),
                        handler: handler.clone(),
                        layer: Layer::User,
                        anchor: identity.root.clone(),
                        file: format!("plugin:{}", identity.name),
                        line: 1,
                        refusal_reason: refusal_reason.clone(),
                        plugin: Some(Arc::clone(&identity)),
                    };
                    let is_duplicate = plan.iter().any(|other| other.is_same_as(&planned));
                    if !is_duplicate && (refusal_reason.is_none() || planned.is_screening()) {
                        plan.push(planned);
                    }
                }
            }
        }
    }
}

/// The MCP servers whose tools are hooks; they must be connected before the first call.
pub(crate) fn hook_tool_servers(settings: &LoadedSettings) -> Vec<String> {
    let (plan, _) = plan_hooks(settings);
    plan.into_iter()
        .filter(|planned| planned.handler.kind == HookHandlerKind::McpTool)
        .filter_map(|planned| planned.handler.server)
        .collect()
}

impl PlannedHook {
    /// Whether it can deny a call before it runs.
    fn is_screening(&self) -> bool {
        matches!(self.event, HookEvent::PreToolUse | HookEvent::PermissionRequest)
            && self.handler.in_background != Some(true)
    }

    /// The screening hooks of a project that was trusted until now, changed to refuse the calls that they screened.
    pub(crate) fn collect_lapsed(settings: &LoadedSettings) -> Vec<Self> {
        let (plan, _) = plan_hooks(settings);
        plan.into_iter()
            .filter(|planned| {
                matches!(planned.layer, Layer::Project | Layer::Local) && planned.is_screening()
            })
            .map(|planned| Self { refusal_reason: Some(LAPSED_TRUST_REASON.to_owned()), ..planned })
            .collect()
    }

    /// Whether both do the same; the same hook in several files runs once.
    fn is_same_as(&self, other: &Self) -> bool {
        // The same text in two plugins names different files.
        let root = |hook: &Self| hook.plugin.as_ref().map(|plugin| plugin.root.clone());
        self.event == other.event
            && self.matcher == other.matcher
            && self.handler == other.handler
            && root(self) == root(other)
    }

    /// The command, URL, tool or prompt, truncated, for records and messages.
    pub(crate) fn name(&self) -> String {
        let handler = &self.handler;
        let text = match handler.kind {
            HookHandlerKind::Command => handler.command.as_deref(),
            HookHandlerKind::Http => handler.url.as_deref(),
            HookHandlerKind::McpTool => handler.tool.as_deref(),
            HookHandlerKind::Prompt | HookHandlerKind::Agent => handler.prompt.as_deref(),
        };
        let mut name: String = text.unwrap_or("unnamed").chars().take(MAX_NAME_CHARS).collect();
        for arg in handler.args.iter().flatten() {
            if name.chars().count() + arg.chars().count() < MAX_NAME_CHARS {
                name.push(' ');
                name.push_str(arg);
            }
        }
        name
    }
}

/// Builds the hooks for the gate: the active ones, and those whose trust lapsed in this session.
pub(crate) fn build_hooks(
    settings: &LoadedSettings,
    lapsed: &[PlannedHook],
    context: &HookContext,
) -> (Vec<Arc<dyn Hook>>, Vec<SettingsNote>) {
    let (mut plan, mut notes) = plan_hooks(settings);
    for planned in lapsed {
        if !plan.iter().any(|other| other.is_same_as(planned)) {
            plan.push(planned.clone());
        }
    }
    let env = Arc::new(hook_environment(settings, context));
    let mcp = find_mcp_names_once(settings, context);
    let hooks = plan
        .iter()
        .map(|planned| {
            let (hook, problem) = build_hook(planned, settings, context, &env, &mcp);
            notes.extend(problem.map(|problem| describe_unusable(planned, &hook, &problem)));
            Arc::new(hook) as Arc<dyn Hook>
        })
        .collect();
    (hooks, notes)
}

/// The note about a hook that cannot run, with what that means for calls.
fn describe_unusable(planned: &PlannedHook, hook: &ConfiguredHook, problem: &str) -> SettingsNote {
    let outcome = match hook.on_failure {
        OnFailure::Deny => "the calls that it screens are refused",
        OnFailure::Continue => "it never runs",
    };
    SettingsNote {
        file: planned.file.clone(),
        line: planned.line,
        message: format!("this hook cannot run, so {outcome}: {problem}"),
    }
}

/// A function that finds the MCP servers that matchers can name, and reads their lists only once.
pub(super) fn find_mcp_names_once(settings: &LoadedSettings, context: &HookContext) -> impl Fn() -> McpNames {
    let names = OnceCell::new();
    move || {
        let find = || settings.find_mcp_names(&context.project, context.config_root.as_ref(), &context.env);
        names.get_or_init(find).clone()
    }
}

/// The hooks that cannot run because of what is written in them, whether the project is trusted or not. `mcp` finds the
/// names of MCP servers.
pub(crate) fn find_unusable_hooks(
    settings: &LoadedSettings,
    project: &AbsPath,
    mcp: &dyn Fn() -> McpNames,
) -> Vec<SettingsNote> {
    let context = HookContext {
        project: project.clone(),
        config_root: None,
        env: BTreeMap::new(),
        tasks: TaskTracker::new(),
        gate_cell: GateSessionCell::default(),
    };
    let env = Arc::new(Vec::new());
    let (plan, _) = plan_hooks(settings);
    let unusable = |planned: &PlannedHook| {
        let (hook, problem) = build_hook(planned, settings, &context, &env, mcp);
        Some(describe_unusable(planned, &hook, &problem?))
    };
    plan.iter().filter(|planned| planned.refusal_reason.is_none()).filter_map(unusable).collect()
}

/// The environment of hooks: that of the process, the variables of settings, and the project directory.
pub(super) fn hook_environment(settings: &LoadedSettings, context: &HookContext) -> Vec<(String, String)> {
    let mut env = context.env.clone();
    env.extend(settings.env());
    env.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_SEARCH_PATH.to_owned());
    for name in ["CLAUDE_PROJECT_DIR", "TOOLGATE_PROJECT_DIR"] {
        env.insert(name.to_owned(), context.project.to_string());
    }
    env.into_iter().collect()
}

/// Builds one hook, with the environment of programs and the names of MCP servers that are given. A problem of its
/// configuration makes it fail at every call that it screens, and is returned for a note.
pub(super) fn build_hook(
    planned: &PlannedHook,
    settings: &LoadedSettings,
    context: &HookContext,
    env: &Arc<Vec<(String, String)>>,
    mcp: &dyn Fn() -> McpNames,
) -> (ConfiguredHook, Option<String>) {
    let handler = &planned.handler;
    let mut problem = None;
    let mut keep_first = |found: String| {
        problem.get_or_insert(found);
    };
    // An invalid matcher may have meant any tool.
    let mut matcher = HookMatcher::parse_tools(planned.matcher.as_deref()).unwrap_or_else(|found| {
        keep_first(found);
        HookMatcher::All
    });
    let unresolved_servers =
        planned.is_screening().then(|| UnresolvedServers::find(&matcher, mcp, &context.gate_cell)).flatten();
    let misspelled = matcher.add_intended_tools(mcp);
    let is_misspelled = misspelled.is_some();
    misspelled.into_iter().for_each(&mut keep_first);
    let condition = handler.condition.as_deref().and_then(|rule| {
        HookCondition::parse(rule, planned.layer, &planned.anchor).map_err(&mut keep_first).ok()
    });
    let timeout = read_timeout(handler).map_err(&mut keep_first).unwrap_or(DEFAULT_TIMEOUT);
    if let Some(reason) = &planned.refusal_reason {
        keep_first(reason.clone());
    }
    let action = build_action(planned, settings, context).unwrap_or_else(|found| {
        keep_first(found);
        HookAction::Impossible(String::new())
    });
    let action = match &problem {
        Some(problem) => HookAction::Impossible(problem.clone()),
        None => action,
    };
    let hook = ConfiguredHook {
        name: planned.name(),
        event: planned.event,
        matcher,
        unresolved_servers,
        condition,
        action,
        timeout,
        // `onFailure: continue` is about a hook that fails, not about a typo, with which it would never run.
        on_failure: match is_misspelled && planned.is_screening() {
            true => OnFailure::Deny,
            false => failure_handling(planned, settings),
        },
        cwd: context.config_root.clone(),
        once: handler.once == Some(true) && planned.refusal_reason.is_none(),
        // In the background the failure of an invalid hook would have no effect.
        background: handler.in_background == Some(true) && problem.is_none(),
        env: environment_of(planned, context, env),
        tasks: context.tasks.clone(),
        fault: None,
    };
    (hook, problem)
}

/// The timeout of a handler.
fn read_timeout(handler: &HookHandler) -> Result<Duration, String> {
    let Some(seconds) = handler.timeout else { return Ok(DEFAULT_TIMEOUT) };
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("invalid timeout `{seconds}`; give seconds"))
}

/// The environment of one hook: that of a plugin has the plugin's variables as well.
fn environment_of(
    planned: &PlannedHook,
    context: &HookContext,
    env: &Arc<Vec<(String, String)>>,
) -> Arc<Vec<(String, String)>> {
    let Some(plugin) = &planned.plugin else { return Arc::clone(env) };
    let own = PluginVariables::new(plugin, &context.project);
    let mut env: BTreeMap<String, String> = env.iter().cloned().collect();
    env.extend(own.environment());
    Arc::new(env.into_iter().collect())
}

/// Whether a failure refuses the call: by default, and always where `onFailure: continue` could be exploited.
fn failure_handling(planned: &PlannedHook, settings: &LoadedSettings) -> OnFailure {
    let handler = &planned.handler;
    match handler.on_failure {
        _ if planned.refusal_reason.is_some() => OnFailure::Deny,
        // An untrusted project could deny the tool of the hook, and so disable the hook.
        _ if handler.kind == HookHandlerKind::McpTool && settings.has_untrusted_denials() => OnFailure::Deny,
        None | Some(HookFailurePolicy::Block) => OnFailure::Deny,
        Some(HookFailurePolicy::Continue) => OnFailure::Continue,
    }
}

/// What running the hook means, or why its configuration is invalid.
fn build_action(
    planned: &PlannedHook,
    settings: &LoadedSettings,
    context: &HookContext,
) -> Result<HookAction, String> {
    let handler = &planned.handler;
    match handler.kind {
        HookHandlerKind::Command => {
            let command = handler.command.as_deref().filter(|command| !command.trim().is_empty());
            let command = command.ok_or("it has no `command`")?;
            let project = context.project.to_string();
            let variables =
                planned.plugin.as_ref().map(|plugin| PluginVariables::new(plugin, &context.project));
            // A shell fills in the variables itself, from the environment: filled in here they would be shell code.
            let expand = |text: &str| match &variables {
                Some(variables) => variables.expand(text),
                None => text.replace("${CLAUDE_PROJECT_DIR}", &project),
            };
            Ok(HookAction::Command(match (&handler.args, handler.shell.as_deref()) {
                (Some(args), _) => HookProgram::Exec {
                    program: expand(command),
                    args: args.iter().map(|arg| expand(arg)).collect(),
                },
                (None, None | Some("bash" | "sh")) => HookProgram::Shell(command.to_owned()),
                (None, Some(shell)) => return Err(format!("the shell `{shell}` is not supported; use `bash` or `sh`")),
            }))
        }
        HookHandlerKind::Http => {
            let url = handler.url.as_deref().ok_or("it has no `url`")?;
            let server = HttpHook::parse(url, &settings.http_hook_urls())?;
            let allowed =
                settings.http_hook_variables(handler.allowed_env_vars.as_deref().unwrap_or_default());
            let mut env = context.env.clone();
            env.extend(settings.env());
            let headers = handler.headers.clone().unwrap_or_default();
            Ok(HookAction::Http(server.with_headers(&headers, &allowed, &env)))
        }
        HookHandlerKind::McpTool => {
            let server = handler.server.as_deref().ok_or("it has no `server`")?;
            let tool = handler.tool.as_deref().ok_or("it has no `tool`")?;
            McpToolHook::new(server, tool, handler.input.clone(), Arc::clone(&context.gate_cell))
                .map(HookAction::Tool)
        }
        HookHandlerKind::Prompt | HookHandlerKind::Agent => {
            Err("hooks of the types `prompt` and `agent` need a model, which toolgate does not have; use `command`, `http` \
                 or `mcp_tool`"
                .to_owned())
        }
    }
}
