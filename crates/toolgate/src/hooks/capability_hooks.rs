//! Hooks in the front matter of skills and agents.
//!
//! Those of a skill hold until the turn ends, those of an agent for its life and that of the agents that it starts.
//! A hook is a program of its author outside of the sandbox, so it runs only if the user trusts the file as it is now
//! ([`SkillTrust`](crate::skills::SkillTrust)); that is checked again before each run, because the files that it names can
//! change meanwhile. A hook that may not run any more refuses the calls that it screens.

use super::command_agent_hook::CommandAgentHook;
use super::configured_hook::{ConfiguredHook, HookAction};
use super::intended_event::{find_group_problem, find_intended_event};
use super::plan::{PlannedHook, build_hook, find_mcp_names_once, hook_environment};
use crate::plugins::{describe_handler, find_unusable_text};
use crate::settings::LoadedSettings;
use crate::settings::values::{HookGroup, HookHandler};
use crate::skills::{CapabilityScope, PluginIdentity};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use toolgate_agent::{AgentHook, AgentHookEvent};
use toolgate_gate::{Hook, HookAnswer, HookBatch, HookCall, HookEvent, HookFailure, OnFailure};
use toolgate_policy::Layer;
use toolgate_proto::{AbsPath, ToolIdentity};

/// Says why a hook may not run, if it may not.
pub(crate) type HookTrustCheck = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The hooks that a file wants, as written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CapabilityHooks {
    /// By event, in the order in which they run.
    events: BTreeMap<String, Vec<HookGroup>>,
    /// Events that toolgate does not raise for such a file.
    pub(crate) skipped: Vec<String>,
}

/// The file that wants hooks.
#[derive(Debug, Clone)]
pub(crate) struct HookOwner {
    /// Whose it is.
    pub(crate) scope: CapabilityScope,
    /// The plugin, if it is one's.
    pub(crate) plugin: Option<Arc<PluginIdentity>>,
    /// The file.
    pub(crate) file: AbsPath,
}

/// Hooks that are ready to run.
#[derive(Clone, Default)]
pub(crate) struct BuiltHooks {
    /// Those for calls.
    pub(crate) calls: Vec<Arc<dyn Hook>>,
    /// Those around calls.
    pub(crate) agent_hooks: Vec<Arc<dyn AgentHook>>,
    /// Events that toolgate does not raise for such a file.
    pub(crate) skipped: Vec<String>,
}

impl CapabilityHooks {
    /// Reads the field `hooks`. An event that cannot be read may have been one that screens calls, so it is an error.
    pub(crate) fn read(value: &Value, is_of_plugin: bool) -> Result<Self, String> {
        let mut read = Self::default();
        let events = value.as_object().ok_or("`hooks` must have one entry for each event")?;
        for (event, groups) in events {
            let is_raised = HookEvent::ALL.iter().any(|known| known.as_str() == event);
            if !is_raised && find_capability_event(event).is_none() {
                if let Some(meant) = find_intended_event(event) {
                    let shown: String = event.chars().take(60).collect();
                    return Err(format!("unknown event `{}`; did you mean `{meant}`?", shown.escape_debug()));
                }
                read.skipped.push(event.chars().take(60).collect());
                continue;
            }
            if let Some(problem) = find_unusable_text(groups).filter(|_| is_of_plugin) {
                return Err(format!("a hook of `{event}` cannot be used: {problem}"));
            }
            let mut all = groups.as_array().into_iter().flatten();
            if let Some((problem, fix)) = all.find_map(|group| find_group_problem(event, group)) {
                return Err(format!("a hook of `{event}` cannot be used: {problem}; {fix}"));
            }
            let groups = serde_json::from_value::<Vec<HookGroup>>(groups.clone())
                .map_err(|error| format!("the hooks of `{event}` cannot be read: {error}"))?;
            read.events.insert(event.clone(), groups);
        }
        Ok(read)
    }

    /// Every handler.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = &HookHandler> {
        self.events.values().flatten().flat_map(|group| &group.hooks)
    }

    /// What they run, one line each.
    pub(crate) fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (event, groups) in &self.events {
            for group in groups {
                let tools = group.matcher.as_deref().filter(|matcher| !matcher.is_empty()).unwrap_or("*");
                let line = |handler| format!("hook {event} {tools}: {}", describe_handler(handler));
                lines.extend(group.hooks.iter().map(line));
            }
        }
        lines
    }

    /// Builds the hooks. The error says why they cannot run.
    pub(crate) fn build(
        &self,
        owner: &HookOwner,
        settings: &LoadedSettings,
        context: &super::HookContext,
        check: &HookTrustCheck,
    ) -> Result<BuiltHooks, String> {
        if !settings.are_hooks_of_scope_active(&owner.scope) {
            return Err("settings switch hooks off".to_owned());
        }
        check()?;
        let mut env = hook_environment(settings, context);
        if let Some(dir) = owner.file.parent() {
            env.push(("CLAUDE_SKILL_DIR".to_owned(), dir.to_string()));
        }
        let env = Arc::new(env);
        let mcp = find_mcp_names_once(settings, context);
        let mut built = BuiltHooks::default();
        for (event, groups) in &self.events {
            for (group, handler) in
                groups.iter().flat_map(|group| group.hooks.iter().map(move |it| (group, it)))
            {
                let planned = owner.plan(event, group, handler);
                let (hook, problem) = build_hook(&planned, settings, context, &env, &mcp);
                if let Some(problem) = problem {
                    return Err(problem);
                }
                match find_capability_event(event) {
                    Some(event) => {
                        built.agent_hooks.push(Arc::new(CommandAgentHook::new(event, hook, context, check)?));
                    }
                    None => built.calls.push(Arc::new(CheckedHook { hook, check: Arc::clone(check) })),
                }
            }
        }
        Ok(built)
    }
}

/// The event of an agent that an event of its file is for: the end of an agent is that of a subagent.
fn find_capability_event(event: &str) -> Option<AgentHookEvent> {
    match event {
        "Stop" | "SubagentStop" => Some(AgentHookEvent::SubagentStop),
        "SubagentStart" => Some(AgentHookEvent::SubagentStart),
        _ => None,
    }
}

impl HookOwner {
    /// A hook of the file among those of settings.
    fn plan(&self, event: &str, group: &HookGroup, handler: &HookHandler) -> PlannedHook {
        PlannedHook {
            // Hooks around calls are not given to the gate, so their event does not matter there.
            event: *HookEvent::ALL
                .iter()
                .find(|known| known.as_str() == event)
                .unwrap_or(&HookEvent::PreToolUse),
            // At the end of an agent the matcher, which is no name of a tool, has no effect.
            matcher: group.matcher.clone().filter(|_| find_capability_event(event).is_none()),
            handler: handler.clone(),
            layer: match self.scope {
                CapabilityScope::Managed => Layer::Managed,
                CapabilityScope::Personal | CapabilityScope::Plugin => Layer::User,
                CapabilityScope::Project => Layer::Project,
            },
            anchor: self.file.parent().unwrap_or_else(AbsPath::root),
            file: self.file.to_string(),
            line: 1,
            refusal_reason: None,
            plugin: self.plugin.clone(),
        }
    }
}

/// A hook that runs only while its file is trusted.
struct CheckedHook {
    hook: ConfiguredHook,
    check: HookTrustCheck,
}

impl Hook for CheckedHook {
    fn name(&self) -> &str {
        self.hook.name()
    }

    fn handles(&self, event: HookEvent, tool: &ToolIdentity) -> bool {
        self.hook.handles(event, tool)
    }

    /// One that lost its trust denies, whatever its file says about failures.
    fn on_failure(&self) -> OnFailure {
        match (self.check)() {
            Ok(()) => self.hook.on_failure(),
            Err(_) => OnFailure::Deny,
        }
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        match (self.check)() {
            Ok(()) => self.hook.handle_call(call),
            Err(why) => Box::pin(std::future::ready(Err(HookFailure::Misconfigured(why)))),
        }
    }

    fn handles_batches(&self) -> bool {
        self.hook.handles_batches()
    }

    fn handle_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        match (self.check)() {
            Ok(()) => self.hook.handle_batch(batch),
            Err(why) => Box::pin(std::future::ready(Err(HookFailure::Misconfigured(why)))),
        }
    }
}

/// The program that a hook starts.
pub(super) fn program_of(hook: &ConfiguredHook) -> Result<toolgate_process::HookProgram, String> {
    match &hook.action {
        HookAction::Command(program) => Ok(program.clone()),
        HookAction::Http(_) | HookAction::Tool(_) | HookAction::Callback(_) | HookAction::Impossible(_) => {
            Err("only hooks of the type `command` run at this event".to_owned())
        }
    }
}
