//! Hooks of settings and plugins around calls: prompts, the end of a turn, subagents, compaction, the session itself.
//!
//! Only an agent has these events, so only `toolgate run` and `toolgate acp` use them. A hook runs while the settings or
//! the plugin that names it is in force: that is checked before each run, because a project can lose its trust and a
//! plugin can change meanwhile.

use super::HookContext;
use super::capability_hooks::HookTrustCheck;
use super::command_agent_hook::CommandAgentHook;
use super::plan::{LAPSED_TRUST_REASON, PlannedHook, build_hook, hook_environment};
use crate::plugins::PlannedPluginHooks;
use crate::settings::trust::TrustStatus;
use crate::settings::values::{HookGroup, HookHandler, SettingsValues};
use crate::settings::{LoadedSettings, SettingsFile, SettingsNote};
use crate::settings_reloader::SettingsReloader;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use toolgate_agent::{AgentHook, AgentHookAnswer, AgentHookEvent};
use toolgate_gate::{HookEvent, OnFailure};
use toolgate_policy::{Layer, McpNames};

/// The event of an agent that has this name.
pub(crate) fn find_agent_event(event: &str) -> Option<AgentHookEvent> {
    AgentHookEvent::ALL.into_iter().find(|known| known.as_str() == event)
}

/// Whether a hook of the event guards something, so that its failure refuses it.
pub(super) fn is_guarded(event: AgentHookEvent) -> bool {
    matches!(
        event,
        AgentHookEvent::UserPromptSubmit
            | AgentHookEvent::UserPromptExpansion
            | AgentHookEvent::PreCompact
            | AgentHookEvent::PreModelSwitch
    )
}

/// A hook that cannot run. Where it would have guarded something, that is refused.
struct BrokenAgentHook {
    /// The event that it would have handled.
    event: AgentHookEvent,
    /// Why it cannot run.
    why: String,
}

impl AgentHook for BrokenAgentHook {
    fn name(&self) -> &str {
        "hook that cannot run"
    }

    fn handles(&self, event: AgentHookEvent, _: &Map<String, Value>) -> bool {
        self.event == event
    }

    /// Fails with the reason.
    fn handle<'a>(
        &'a self,
        _: AgentHookEvent,
        _: Map<String, Value>,
    ) -> BoxFuture<'a, Result<AgentHookAnswer, String>> {
        Box::pin(std::future::ready(Err(self.why.clone())))
    }
}

/// What building them needs.
struct AgentHookBuilder<'a> {
    /// The settings as they are now.
    settings: &'a LoadedSettings,
    /// What hooks need to run.
    context: &'a HookContext,
    /// The environment of their programs.
    env: Arc<Vec<(String, String)>>,
    /// The settings at the time of a run.
    reloader: Weak<SettingsReloader>,
    /// The hooks that were built.
    hooks: Vec<Arc<dyn AgentHook>>,
    /// What is said about those that cannot run.
    notes: Vec<SettingsNote>,
}

/// Builds the hooks of the settings as they are now, and says which cannot run.
pub(crate) fn build_agent_hooks(
    settings: &LoadedSettings,
    context: &HookContext,
    reloader: &Arc<SettingsReloader>,
) -> (Vec<Arc<dyn AgentHook>>, Vec<SettingsNote>) {
    let mut builder = AgentHookBuilder {
        settings,
        context,
        env: Arc::new(hook_environment(settings, context)),
        reloader: Arc::downgrade(reloader),
        hooks: Vec::new(),
        notes: Vec::new(),
    };
    for file in &settings.files {
        if !file.trusted && settings.trust_status == TrustStatus::Changed {
            builder.add_lapsed(file);
        } else if settings.are_hooks_active(file) {
            builder.add_file(file);
        }
    }
    if settings.are_plugin_hooks_active() {
        for plugin in settings.plugins().hooks() {
            builder.add_plugin(&plugin);
        }
    }
    (builder.hooks, builder.notes)
}

impl AgentHookBuilder<'_> {
    /// Adds the hooks of a file.
    fn add_file(&mut self, file: &SettingsFile) {
        for (event, groups) in &file.values.hooks {
            let Some(event) = find_agent_event(event) else { continue };
            for (group, handler) in
                groups.iter().flat_map(|group| group.hooks.iter().map(move |it| (group, it)))
            {
                self.add_hook(file, event, group, handler);
            }
        }
    }

    /// A project whose settings changed since they were trusted: its guards of prompts refuse them.
    fn add_lapsed(&mut self, file: &SettingsFile) {
        let written = SettingsValues::deserialize(&file.raw_value).unwrap_or_default().hooks;
        let guards = written.get(AgentHookEvent::UserPromptSubmit.as_str()).into_iter().flatten();
        if guards.flat_map(|group| &group.hooks).next().is_some() {
            let why = LAPSED_TRUST_REASON.to_owned();
            self.hooks.push(Arc::new(BrokenAgentHook { event: AgentHookEvent::UserPromptSubmit, why }));
        }
    }

    /// Adds the hooks of a plugin. Those of one that changed after it was approved do not run, and what they guarded is
    /// refused.
    fn add_plugin(&mut self, plugin: &PlannedPluginHooks<'_>) {
        for (event, groups) in plugin.events {
            let Some(event) = find_agent_event(event) else { continue };
            for (group, handler) in
                groups.iter().flat_map(|group| group.hooks.iter().map(move |it| (group, it)))
            {
                let planned = PlannedHook {
                    // As above.
                    event: HookEvent::PreToolUse,
                    matcher: None,
                    handler: handler.clone(),
                    layer: Layer::User,
                    anchor: plugin.identity.root.clone(),
                    file: format!("plugin:{}", plugin.identity.name),
                    line: 1,
                    refusal_reason: None,
                    plugin: Some(Arc::clone(&plugin.identity)),
                };
                match &plugin.refusal_reason {
                    None => self.add_planned(planned, event, group),
                    Some(why) if is_guarded(event) && handler.in_background != Some(true) => {
                        self.hooks.push(Arc::new(BrokenAgentHook { event, why: why.clone() }));
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Adds one hook of a file.
    fn add_hook(
        &mut self,
        file: &SettingsFile,
        event: AgentHookEvent,
        group: &HookGroup,
        handler: &HookHandler,
    ) {
        let is_of_project = matches!(file.rules.layer, Layer::Project | Layer::Local);
        let planned = PlannedHook {
            // Not given to the gate, so its event does not matter there; the matcher is one of the event.
            event: HookEvent::PreToolUse,
            matcher: None,
            handler: handler.clone(),
            layer: file.rules.layer,
            anchor: file.rules.anchor.clone(),
            file: file.rules.file.clone().unwrap_or_default(),
            line: file.node.nearest_node(&["hooks", event.as_str()]).line,
            refusal_reason: is_of_project.then(|| self.settings.unresolved_hook(handler)).flatten(),
            plugin: None,
        };
        self.add_planned(planned, event, group);
    }

    /// Builds one hook. One that cannot run is noted, and refuses what it would have guarded.
    fn add_planned(&mut self, planned: PlannedHook, event: AgentHookEvent, group: &HookGroup) {
        // It has no matcher of tools, so no server is looked for.
        let (mut hook, problem) =
            build_hook(&planned, self.settings, self.context, &self.env, &McpNames::default);
        // A program that only wants to hear of the end of a turn must not keep the model working when it fails.
        if planned.handler.on_failure.is_none() && !is_guarded(event) {
            hook.on_failure = OnFailure::Continue;
        }
        let check = self.trust_check(event, &planned);
        let built = match problem {
            Some(problem) => Err(problem),
            None => CommandAgentHook::new(event, hook, self.context, &check)
                .and_then(|hook| hook.with_matcher(group.matcher.as_deref())),
        };
        match built {
            Ok(hook) => self.hooks.push(Arc::new(hook)),
            Err(why) => {
                let message = format!("this hook of `{}` cannot run: {why}", event.as_str());
                self.notes.push(SettingsNote { file: planned.file, line: planned.line, message });
                if is_guarded(event) {
                    self.hooks.push(Arc::new(BrokenAgentHook { event, why }));
                }
            }
        }
    }

    /// Whether settings, or the approved plugin that brings it, still name the hook.
    fn trust_check(&self, event: AgentHookEvent, planned: &PlannedHook) -> HookTrustCheck {
        let (reloader, handler) = (self.reloader.clone(), planned.handler.clone());
        let root = planned.plugin.as_ref().map(|plugin| plugin.root.clone());
        let gate_cell = Arc::clone(&self.context.gate_cell);
        Arc::new(move || {
            if let Some(gate) = gate_cell.get().and_then(|(gate, _)| gate.upgrade()) {
                gate.refresh();
            }
            let settings = reloader.upgrade().ok_or("the session has ended")?.active().settings;
            let has_handler = |events: &BTreeMap<String, Vec<HookGroup>>| {
                let groups = events.get(event.as_str()).into_iter().flatten();
                groups.flat_map(|group| &group.hooks).any(|other| *other == handler)
            };
            let Some(root) = &root else {
                let mut files = settings.files.iter().filter(|file| settings.are_hooks_active(file));
                return match files.any(|file| has_handler(&file.values.hooks)) {
                    true => Ok(()),
                    false => {
                        Err("settings no longer name it, or its project is no longer trusted".to_owned())
                    }
                };
            };
            let plugins = settings.plugins().hooks();
            match plugins.iter().find(|plugin| plugin.identity.root == *root) {
                Some(PlannedPluginHooks { refusal_reason: Some(why), .. }) => Err(why.clone()),
                Some(plugin) if settings.are_plugin_hooks_active() && has_handler(plugin.events) => Ok(()),
                _ => Err("its plugin is not in force any more".to_owned()),
            }
        })
    }
}
