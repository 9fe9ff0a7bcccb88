//! `Skill`: the tool by which a model loads a skill, and the source that offers it while there are skills.

use super::capability_file::CatalogSkill;
use super::invocation::{LoadedSkill, SkillInvocation, SkillUser};
use super::live_skills::LiveSkills;
use super::places::CapabilityScope;
use crate::hooks::GateSessionCell;
use crate::settings::values::SkillOverride;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallContext, Cleared, RegisterError, Source, SourceTools, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, PathScope, Refusal, SourceId};

/// How often a running session looks whether skills came or went.
const RELOAD_INTERVAL: Duration = Duration::from_secs(2);
/// How many names a refusal suggests.
const MAX_SUGGESTIONS: usize = 5;

/// Loads a skill.
pub(crate) struct SkillTool {
    /// The skills of the session, read again at each call.
    pub(crate) skills: Arc<LiveSkills>,
    /// The gate that runs commands of skills; set after construction, because the gate owns this tool.
    pub(crate) gate_cell: GateSessionCell,
}

/// Input of [`SkillTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillInput {
    /// The name of the skill, as it is listed.
    skill: String,
    /// What the skill is to be used for: its arguments.
    args: Option<String>,
}

impl SkillTool {
    /// Finds a skill that the settings do not withhold from models. The refusal suggests similar names, so that a model
    /// can correct a typo.
    fn find(&self, name: &str) -> Result<Arc<CatalogSkill>, Refusal> {
        let catalog = self.skills.current();
        let known = catalog.find_skill(name).cloned();
        let is_off = |skill: &Arc<CatalogSkill>| {
            skill.plugin.is_none()
                && matches!(
                    self.skills.find_override(&skill.name),
                    SkillOverride::Off | SkillOverride::UserInvocableOnly
                )
        };
        let is_hidden = |skill: &Arc<CatalogSkill>| is_off(skill) || !self.skills.is_offered(&skill.name);
        known.filter(|skill| !is_hidden(skill)).ok_or_else(|| {
            let mut near: Vec<(usize, &str)> = catalog
                .skills()
                .filter(|skill| !skill.definition.disables_model_invocation && !is_hidden(skill))
                .map(|skill| (strsim::levenshtein(&skill.name, name), skill.name.as_str()))
                .collect();
            near.sort_unstable();
            let near: Vec<String> =
                near.iter().take(MAX_SUGGESTIONS).map(|(_, name)| format!("`{name}`")).collect();
            let refusal = Refusal::new(Code::SkillNotFound, format!("there is no skill `{name}`"));
            match near.is_empty() {
                true => refusal,
                false => refusal.hint(format!("use one that is listed, such as {}", near.join(", "))),
            }
        })
    }
}

impl Tool for SkillTool {
    type Input = SkillInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            "Skill",
            "Loads a skill: instructions for a kind of task, written by the user or a plugin. Load the one that fits the \
             task before you start, and follow it. Its text is the result.",
        )
        .with_title("Load skill")
        .with_destructive(false)
        .with_max_result_chars(200_000)
        .with_rest_field("args")
        .with_input_example(serde_json::json!({ "skill": "review", "args": "src/lib.rs" }))
    }

    /// Appends the current list of skills to the description, which is how a model learns their names.
    fn describe(&self, _: &CallContext) -> Option<String> {
        let listing = self.skills.listing(&self.skills.current());
        Some(format!("{}\n\nThe skills:\n{}", self.spec().description, listing.text))
    }

    /// Declares the skill by its full name, and for project skills also the read of the file, so that `Read` deny rules
    /// apply to it.
    fn intent(&self, input: &SkillInput, _: &CallContext) -> Intent {
        let found = self.find(&input.skill).ok();
        let name = found.as_ref().map_or_else(|| input.skill.clone(), |skill| skill.name.clone());
        let summary = format!("load skill `{name}`");
        let mut effects =
            vec![Effect::Skill { name, args: input.args.clone().filter(|args| !args.is_empty()) }];
        // A skill of the project is a file of the workspace, and a rule may deny reading it.
        if let Some(skill) = found.filter(|skill| skill.scope == CapabilityScope::Project) {
            effects.push(Effect::Read { path: skill.file.clone(), scope: PathScope::Entry });
        }
        Intent::new(summary, effects)
    }

    /// Refuses an unknown skill before approval, so that the user is not asked about a call that cannot succeed.
    async fn guard(&self, input: &SkillInput, _: &CallContext) -> Result<(), Refusal> {
        self.find(&input.skill).map(|_| ())
    }

    /// Loads the skill for a model. The template's own commands are separate calls of the gate.
    async fn run(&self, input: SkillInput, cleared: Cleared) -> CallResult {
        // From here on the text is the one that was found now, whatever becomes of the file.
        let skill = self.find(&input.skill)?;
        let gate = self.gate_cell.get().and_then(|(gate, _)| gate.upgrade());
        let gate = gate.ok_or_else(|| Refusal::new(Code::Internal, "the gate is closed"))?;
        let invocation = SkillInvocation {
            gate: &gate,
            session: &cleared.context().session,
            skills: &self.skills,
            skill: &skill,
            user: SkillUser::Model,
            cancel: cleared.cancel().clone(),
        };
        let loaded = invocation.load(input.args.as_deref().unwrap_or_default()).await?;
        Ok(render_loaded(&loaded))
    }
}

/// A skill that was loaded, as a result.
fn render_loaded(loaded: &LoadedSkill) -> Output {
    let mut text = loaded.text.clone();
    for note in &loaded.notes {
        text.push_str(&format!("\n[{note}]"));
    }
    Output::text(text).display(format!("loaded skill {}", loaded.name))
}

/// Offers [`SkillTool`] while there is a skill that a model may use.
pub(crate) struct SkillSource {
    /// The skills that decide whether the tool is offered.
    pub(crate) skills: Arc<LiveSkills>,
    /// Passed to each tool instance that is registered.
    pub(crate) gate_cell: GateSessionCell,
    /// Ends the task that watches for changes.
    pub(crate) closed: CancellationToken,
}

impl Source for SkillSource {
    /// Reports the tool as built in.
    fn id(&self) -> SourceId {
        SourceId::Builtin
    }

    /// Registers nothing while models have no skill to load, which keeps the definition out of requests.
    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        register_if_needed(&self.skills, &self.gate_cell, tools)
    }

    /// Starts the watcher if a runtime exists. Synchronous callers work without one.
    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        // Without a runtime the skills are looked up again at each use.
        if tokio::runtime::Handle::try_current().is_ok() {
            let watching = watch_skills(
                Arc::downgrade(&self.skills),
                Arc::clone(&self.gate_cell),
                Arc::downgrade(tools),
                self.closed.clone(),
            );
            tokio::spawn(watching);
        }
        Ok(())
    }

    /// Stops the watcher without waiting for it.
    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.cancel();
        Box::pin(std::future::ready(()))
    }
}

/// Registers the tool if there is something to load.
fn register_if_needed(
    skills: &Arc<LiveSkills>,
    gate_cell: &GateSessionCell,
    tools: &SourceTools,
) -> Result<(), RegisterError> {
    let has_some = skills.loaded().skills().any(|skill| !skill.definition.disables_model_invocation);
    match has_some {
        true => tools.register(SkillTool { skills: Arc::clone(skills), gate_cell: Arc::clone(gate_cell) }),
        false => Ok(()),
    }
}

/// Looks for changes until the source is closed. A change of the list registers the tool again, so that clients learn
/// of it.
async fn watch_skills(
    skills: Weak<LiveSkills>,
    gate_cell: GateSessionCell,
    tools: Weak<SourceTools>,
    closed: CancellationToken,
) {
    let mut shown = skills.upgrade().map(|skills| skills.listing(&skills.loaded()));
    loop {
        tokio::select! {
            () = closed.cancelled() => return,
            () = tokio::time::sleep(RELOAD_INTERVAL) => {}
        }
        let (Some(live), Some(tools)) = (skills.upgrade(), tools.upgrade()) else { return };
        let reloading = tokio::task::spawn_blocking(move || {
            let listing = live.listing(&live.current());
            (live, listing)
        });
        let Ok((live, listing)) = reloading.await else { return };
        if shown.as_ref() != Some(&listing) {
            shown = Some(listing);
            // A tool that cannot be registered stays as it is; the next change tries again.
            let _ = tools.replace_all(|tools| register_if_needed(&live, &gate_cell, tools));
        }
    }
}
