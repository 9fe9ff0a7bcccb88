//! Which hooks there are: gathered from the settings, strongest layer first, each once.

use super::condition::HookCondition;
use super::configured_hook::{ConfiguredHook, HookAction};
use super::http::HttpHook;
use super::matcher::HookMatcher;
use super::mcp_tool::{GateSessionCell, McpToolHook};
use crate::settings::trust::TrustStatus;
use crate::settings::values::{HookFailurePolicy, HookHandler, HookHandlerKind, SettingsValues};
use crate::settings::{LoadedSettings, SettingsNote};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolgate_gate::{Hook, HookEvent, OnFailure};
use toolgate_policy::Layer;
use toolgate_process::HookProgram;
use toolgate_proto::AbsPath;

/// How long a hook may take where its settings do not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// A name longer than this is cut.
const MAX_NAME_CHARS: usize = 80;

/// Events of other products' hosts that toolgate never sees.
const HOST_ONLY_EVENTS: &[&str] = &[
    "UserPromptSubmit",
    "UserPromptExpansion",
    "Stop",
    "SubagentStop",
    "SubagentStart",
    "SessionStart",
    "SessionEnd",
    "Setup",
    "Notification",
    "PreCompact",
    "PostCompact",
    "StopFailure",
    "InstructionsLoaded",
    "ConfigChange",
    "FileChanged",
    "CwdChanged",
    "DirectoryAdded",
    "WorktreeCreate",
    "WorktreeRemove",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "Elicitation",
    "ElicitationResult",
    "PreModelSwitch",
    "PostModelSwitch",
    "MessageDisplay",
];

/// What hooks are run with.
#[derive(Clone)]
pub(crate) struct HookContext {
    /// The project's directory.
    pub(crate) project: AbsPath,
    /// The environment of the process.
    pub(crate) env: BTreeMap<String, String>,
    /// What runs in the background.
    pub(crate) tasks: TaskTracker,
    /// Where hooks that are tools are called.
    pub(crate) gate_cell: GateSessionCell,
}

/// One handler that counts.
#[derive(Debug, Clone)]
pub(crate) struct PlannedHook {
    pub(crate) moment: HookEvent,
    pub(crate) matcher: Option<String>,
    pub(crate) handler: HookHandler,
    pub(crate) layer: Layer,
    pub(crate) anchor: AbsPath,
    pub(crate) file: String,
    pub(crate) line: usize,
    /// Why it is not told, and the calls that it is for are refused instead.
    pub(crate) refusal_reason: Option<String>,
}

/// Why calls are refused that a project's hooks screened before its trust lapsed.
const LAPSED_TRUST_REASON: &str = "this project's settings or hooks changed after you trusted it, so the calls that its hooks screen are \
                      refused; look at it with `toolgate trust show` and run `toolgate trust add`";

/// The handlers that count, in the order in which they are told, and what should be known about them.
pub(crate) fn plan_hooks(settings: &LoadedSettings) -> (Vec<PlannedHook>, Vec<SettingsNote>) {
    let mut plan: Vec<PlannedHook> = Vec::new();
    let mut notes = Vec::new();
    for file in &settings.files {
        let name = file.rules.file.clone().unwrap_or_default();
        let lapsed = !file.trusted && settings.trust_status == TrustStatus::Changed;
        let written = match (settings.are_hooks_active(file), lapsed) {
            (true, false) => file.values.hooks.clone(),
            // What is there now is not trusted, but shows which calls were screened.
            (_, true) => SettingsValues::deserialize(&file.raw_value).unwrap_or_default().hooks,
            (false, false) => continue,
        };
        for (event, groups) in &written {
            let line = file.node.nearest_node(&["hooks", event]).line;
            let mut note = |line: usize, message: String| {
                notes.push(SettingsNote { file: name.clone(), line, message });
            };
            let Some(moment) = HookEvent::ALL.iter().find(|moment| moment.as_str() == event) else {
                let known = if HOST_ONLY_EVENTS.contains(&event.as_str()) {
                    "is for a host program; toolgate does not raise it"
                } else {
                    "is no event that toolgate knows"
                };
                note(line, format!("`hooks.{event}` {known}, so its hooks never run"));
                continue;
            };
            for (index, group) in groups.iter().enumerate() {
                for (below, handler) in group.hooks.iter().enumerate() {
                    let place = ["hooks", event, &index.to_string(), "hooks", &below.to_string()];
                    let line = file.node.nearest_node(&place).line;
                    let planned = PlannedHook {
                        moment: *moment,
                        matcher: group.matcher.clone(),
                        handler: handler.clone(),
                        layer: file.rules.layer,
                        anchor: file.rules.anchor.clone(),
                        file: name.clone(),
                        line,
                        refusal_reason: match lapsed {
                            true => Some(LAPSED_TRUST_REASON.to_owned()),
                            false if matches!(file.rules.layer, Layer::Project | Layer::Local) => {
                                settings.unresolved_hook(handler)
                            }
                            false => None,
                        },
                    };
                    if lapsed && !planned.is_screening() {
                        continue;
                    }
                    // The same handler in several files is told once.
                    if !plan.iter().any(|other| other.is_same_as(&planned)) {
                        plan.push(planned);
                    }
                }
            }
        }
    }
    (plan, notes)
}

/// The MCP servers whose tools are hooks.
pub(crate) fn hook_tool_servers(settings: &LoadedSettings) -> Vec<String> {
    let (plan, _) = plan_hooks(settings);
    plan.into_iter()
        .filter(|planned| planned.handler.kind == HookHandlerKind::McpTool)
        .filter_map(|planned| planned.handler.server)
        .collect()
}

impl PlannedHook {
    /// Whether it decides about calls before they run.
    fn is_screening(&self) -> bool {
        matches!(self.moment, HookEvent::PreToolUse | HookEvent::PermissionRequest)
            && self.handler.in_background != Some(true)
    }

    /// The hooks of a project that screened calls while it was trusted, as ones that refuse those calls.
    pub(crate) fn collect_lapsed(settings: &LoadedSettings) -> Vec<Self> {
        let (plan, _) = plan_hooks(settings);
        plan.into_iter()
            .filter(|planned| {
                matches!(planned.layer, Layer::Project | Layer::Local) && planned.is_screening()
            })
            .map(|planned| Self { refusal_reason: Some(LAPSED_TRUST_REASON.to_owned()), ..planned })
            .collect()
    }

    fn is_same_as(&self, other: &Self) -> bool {
        self.moment == other.moment && self.matcher == other.matcher && self.handler == other.handler
    }

    /// What it is, for people.
    pub(crate) fn name(&self) -> String {
        let handler = &self.handler;
        let said = match handler.kind {
            HookHandlerKind::Command => handler.command.as_deref(),
            HookHandlerKind::Http => handler.url.as_deref(),
            HookHandlerKind::McpTool => handler.tool.as_deref(),
            HookHandlerKind::Prompt | HookHandlerKind::Agent => handler.prompt.as_deref(),
        };
        let mut name: String = said.unwrap_or("unnamed").chars().take(MAX_NAME_CHARS).collect();
        for arg in handler.args.iter().flatten() {
            if name.chars().count() + arg.chars().count() < MAX_NAME_CHARS {
                name.push(' ');
                name.push_str(arg);
            }
        }
        name
    }
}

/// Makes the hooks that the gate is given: those that count, and those whose trust has lapsed in this session.
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
    let hooks = plan
        .iter()
        .map(|planned| {
            let (hook, problem) = build_hook(planned, settings, context, &env);
            if let Some(problem) = problem {
                let outcome = match hook.on_failure {
                    OnFailure::Deny => "calls that it is for are refused",
                    OnFailure::Continue => "it never runs",
                };
                notes.push(SettingsNote {
                    file: planned.file.clone(),
                    line: planned.line,
                    message: format!("this hook cannot work, so {outcome}: {problem}"),
                });
            }
            Arc::new(hook) as Arc<dyn Hook>
        })
        .collect();
    (hooks, notes)
}

/// The environment of hooks: the process's own, what the settings add, and where the project is.
fn hook_environment(settings: &LoadedSettings, context: &HookContext) -> Vec<(String, String)> {
    let mut env = context.env.clone();
    env.extend(settings.env());
    env.entry("PATH".to_owned()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    for name in ["CLAUDE_PROJECT_DIR", "TOOLGATE_PROJECT_DIR"] {
        env.insert(name.to_owned(), context.project.to_string());
    }
    env.into_iter().collect()
}

fn build_hook(
    planned: &PlannedHook,
    settings: &LoadedSettings,
    context: &HookContext,
    env: &Arc<Vec<(String, String)>>,
) -> (ConfiguredHook, Option<String>) {
    let handler = &planned.handler;
    let mut problem = None;
    let mut kept = |found: String| {
        problem.get_or_insert(found);
    };
    // A matcher that cannot be read might have meant any tool.
    let matcher = HookMatcher::parse(planned.matcher.as_deref()).unwrap_or_else(|found| {
        kept(found);
        HookMatcher::All
    });
    let condition = handler
        .condition
        .as_deref()
        .and_then(|rule| HookCondition::parse(rule, planned.layer, &planned.anchor).map_err(&mut kept).ok());
    let timeout = match handler.timeout {
        None => DEFAULT_TIMEOUT,
        Some(seconds) => Duration::try_from_secs_f64(seconds).unwrap_or_else(|_| {
            kept(format!("its timeout {seconds} is no length of time"));
            DEFAULT_TIMEOUT
        }),
    };
    if let Some(refused) = &planned.refusal_reason {
        kept(refused.clone());
    }
    let action = build_action(planned, settings, context).unwrap_or_else(|found| {
        kept(found);
        HookAction::Impossible(String::new())
    });
    let action = match &problem {
        Some(problem) => HookAction::Impossible(problem.clone()),
        None => action,
    };
    let hook = ConfiguredHook {
        name: planned.name(),
        moment: planned.moment,
        matcher,
        condition,
        action,
        timeout,
        on_failure: match handler.on_failure {
            _ if planned.refusal_reason.is_some() => OnFailure::Deny,
            // A project that is not trusted could deny the tool and so switch the hook off.
            _ if handler.kind == HookHandlerKind::McpTool && settings.has_untrusted_denials() => {
                OnFailure::Deny
            }
            None | Some(HookFailurePolicy::Block) => OnFailure::Deny,
            Some(HookFailurePolicy::Continue) => OnFailure::Continue,
        },
        once: handler.once == Some(true) && planned.refusal_reason.is_none(),
        // What cannot work must be heard of, so it is not put into the background.
        background: handler.in_background == Some(true) && problem.is_none(),
        env: Arc::clone(env),
        tasks: context.tasks.clone(),
        fault: None,
    };
    (hook, problem)
}

fn build_action(
    planned: &PlannedHook,
    settings: &LoadedSettings,
    context: &HookContext,
) -> Result<HookAction, String> {
    let handler = &planned.handler;
    match handler.kind {
        HookHandlerKind::Command => {
            let command = handler.command.as_deref().filter(|command| !command.trim().is_empty());
            let command = command.ok_or("it names no `command`")?;
            let project = context.project.to_string();
            let filled = |text: &str| text.replace("${CLAUDE_PROJECT_DIR}", &project);
            Ok(HookAction::Command(match (&handler.args, handler.shell.as_deref()) {
                (Some(args), _) => HookProgram::Exec {
                    program: filled(command),
                    args: args.iter().map(|arg| filled(arg)).collect(),
                },
                (None, None | Some("bash" | "sh")) => HookProgram::Shell(command.to_owned()),
                (None, Some(shell)) => return Err(format!("its shell `{shell}` is not available here")),
            }))
        }
        HookHandlerKind::Http => {
            let url = handler.url.as_deref().ok_or("it names no `url`")?;
            let server = HttpHook::parse(url, &settings.http_hook_urls())?;
            let allowed =
                settings.http_hook_variables(handler.allowed_env_vars.as_deref().unwrap_or_default());
            let mut env = context.env.clone();
            env.extend(settings.env());
            let headers = handler.headers.clone().unwrap_or_default();
            Ok(HookAction::Http(server.with_headers(&headers, &allowed, &env)))
        }
        HookHandlerKind::McpTool => {
            let server = handler.server.as_deref().ok_or("it names no `server`")?;
            let tool = handler.tool.as_deref().ok_or("it names no `tool`")?;
            McpToolHook::new(server, tool, handler.input.clone(), Arc::clone(&context.gate_cell))
                .map(HookAction::Tool)
        }
        HookHandlerKind::Prompt | HookHandlerKind::Agent => {
            Err("it needs a model, and toolgate has none; use a hook of type `command` or `http`".to_owned())
        }
    }
}
