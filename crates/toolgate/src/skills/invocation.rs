//! Loading of a skill: its text with arguments, the output of its commands and its files.
//!
//! Commands and files go through the gate like any call, with two differences: the skill's own pre-approvals count for
//! its commands, and nothing is ever asked. A command that is not allowed, or fails, ends the loading, because the text
//! would lack what it was written around.

use super::capability_file::CatalogSkill;
use super::live_skills::LiveSkills;
use super::skill_trust::TrustSubject;
use crate::hooks::HookOwner;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolgate_agent::TurnModel;
use toolgate_gate::{CallOptions, Gate, Hook, Session};
use toolgate_policy::{Layer, LayerRules, ProblemSeverity, RawPolicy, RawRule};
use toolgate_proto::{AbsPath, Code, EntryKind, Output, Refusal, Stage, ToolCall};
use toolgate_skills::{FilledPart, SkillContext, SkillFileKind, SkillTemplate, TemplateValues};

/// What stands in place of a command that managed settings forbid.
const DISABLED_COMMAND_TEXT: &str = "[shell command execution disabled by policy]";

/// The tool that starts agents, where there are any.
const AGENT_TOOL: &str = "Agent";
/// The names of the shell tool and of the reading tool, of each toolset.
const SHELL_TOOLS: [&str; 2] = ["Bash", "shell"];
/// The reading tool of each toolset, with the name of its path field.
const READ_TOOLS: [(&str, &str); 2] = [("Read", "file_path"), ("read_file", "path")];

/// Who uses a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillUser {
    /// A model, by the tool `Skill`.
    Model,
    /// A user, by `/name`.
    User,
}

/// A skill that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedSkill {
    /// Its name.
    pub name: String,
    /// The text for the model.
    pub text: String,
    /// What the user should know: requests that have no effect.
    pub notes: Vec<String>,
    /// The model that it wants for the rest of the turn.
    pub model: Option<String>,
    /// The effort that it wants for the rest of the turn.
    pub effort: Option<String>,
}

impl LoadedSkill {
    /// This skill and one after it, as one text. What the later one wants of the model counts.
    pub(crate) fn followed_by(mut self, later: Self) -> Self {
        self.name = format!("{}, {}", self.name, later.name);
        self.text = format!("{}\n\n{}", self.text.trim_end_matches('\n'), later.text);
        self.notes.extend(later.notes);
        self.model = later.model.or(self.model);
        self.effort = later.effort.or(self.effort);
        self
    }
}

/// Loads one skill for one session.
pub(crate) struct SkillInvocation<'i> {
    /// Runs the commands and file reads of the skill under the normal policy.
    pub(crate) gate: &'i Arc<Gate>,
    /// The session whose workspace and id the template refers to.
    pub(crate) session: &'i Session,
    /// The live catalog, which counts uses and holds overrides.
    pub(crate) skills: &'i Arc<LiveSkills>,
    /// The skill as it was when the invocation began; later changes of the file do not apply.
    pub(crate) skill: &'i CatalogSkill,
    /// The invoking party. Front matter can exclude models or users.
    pub(crate) user: SkillUser,
    /// Cancels the commands of the skill when the surrounding call ends.
    pub(crate) cancel: CancellationToken,
}

impl SkillInvocation<'_> {
    /// Loads the skill with arguments.
    pub(crate) async fn load(&self, arguments: &str) -> Result<LoadedSkill, Refusal> {
        self.check_user()?;
        let definition = &self.skill.definition;
        let mut notes = Vec::new();
        let hooks = self.build_hooks(&mut notes);
        let allowed = match hooks {
            Some(_) => self.pre_approvals(&mut notes),
            // Hooks may be what makes the pre-approved tools harmless.
            None => Vec::new(),
        };
        let denied = self.denials()?;
        let mut text = self.opening();
        let mut attached = String::new();
        for part in self.fill(arguments) {
            match part {
                FilledPart::Text(part) => text.push_str(&part),
                FilledPart::Command { text: command, line } => {
                    text.push_str(&self.run_command(&command, line, &allowed).await?);
                }
                FilledPart::File(path) => {
                    text.push('@');
                    text.push_str(&path);
                    attached.push_str(&self.attach_file(&path).await);
                }
            }
        }
        text.push_str(&attached);
        if let Some(hooks) = hooks.filter(|hooks| !hooks.is_empty()) {
            self.gate.add_turn_hooks(&self.skill.file.to_string(), hooks);
        }
        self.add_turn_rules(allowed, denied, &mut notes);
        match &definition.context {
            SkillContext::Fork { agent, .. } => text = self.run_fork(&text, agent.as_deref()).await?,
            SkillContext::Inline => {
                TurnModel::new(definition.model.clone(), definition.effort.clone()).apply(self.session);
            }
        }
        self.skills.count_use(&self.skill.name);
        Ok(LoadedSkill {
            name: self.skill.name.clone(),
            text,
            notes,
            model: definition.model.clone(),
            effort: definition.effort.clone(),
        })
    }

    /// Refuses a user that the skill excludes, and what cannot be done here.
    fn check_user(&self) -> Result<(), Refusal> {
        let (definition, name) = (&self.skill.definition, &self.skill.name);
        let refuse = |reason: String, hint: &str| Err(Refusal::new(Code::SkillFailed, reason).hint(hint));
        match self.user {
            SkillUser::Model if definition.disables_model_invocation => {
                return refuse(format!("only the user may use skill `{name}`"), "ask the user to use it");
            }
            SkillUser::User if !definition.is_user_invocable => {
                return refuse(
                    format!("only a model may use skill `{name}`"),
                    "describe the task to the model instead",
                );
            }
            SkillUser::Model | SkillUser::User => {}
        }
        if let SkillContext::Fork { .. } = definition.context
            && self.gate.definition(AGENT_TOOL).is_none()
        {
            return refuse(
                format!("skill `{name}` runs in an agent of its own, and no agents can be started here"),
                "remove `context: fork` from the skill, or do the task without it",
            );
        }
        Ok(())
    }

    /// The line before the text: a skill refers to the files beside it.
    fn opening(&self) -> String {
        match self.skill.kind {
            SkillFileKind::Skill => format!("The files of this skill are in {}.\n\n", self.skill.dir()),
            SkillFileKind::Command => String::new(),
        }
    }

    /// Substitutes arguments and variables. The body is parsed first, so an argument cannot introduce a command or a
    /// file reference.
    fn fill(&self, arguments: &str) -> Vec<FilledPart> {
        let workspace = self.session.workspace();
        let (dir, project) = (self.skill.dir().to_string(), workspace.cwd.to_string());
        let plugin = self.skill.plugin.as_deref();
        let (root, data) = (
            plugin.map(|plugin| plugin.root.to_string()),
            plugin.and_then(|plugin| plugin.data.as_ref()).map(AbsPath::to_string),
        );
        let mut values = TemplateValues::new(arguments);
        values.session_id = Some(self.session.id().as_str());
        values.effort = self.skill.definition.effort.as_deref();
        values.skill_dir = Some(&dir);
        values.project_dir = Some(&project);
        values.plugin_root = root.as_deref();
        values.plugin_data = data.as_deref();
        let definition = &self.skill.definition;
        SkillTemplate::parse(&definition.body, &definition.argument_names).fill(&values).parts
    }

    /// The hooks of the skill for the rest of the turn; none if they may not or cannot run, which is noted.
    fn build_hooks(&self, notes: &mut Vec<String>) -> Option<Vec<Arc<dyn Hook>>> {
        let (skill, name) = (self.skill, &self.skill.name);
        let owner =
            HookOwner { scope: skill.scope.clone(), plugin: skill.plugin.clone(), file: skill.file.clone() };
        let subject = TrustSubject::of_skill(skill);
        match self.skills.build_hooks(&owner, skill.definition.hooks.as_ref(), subject) {
            Ok(built) => {
                let around = built.agent_hooks.iter().map(|_| "Stop".to_owned()).take(1);
                for event in built.skipped.into_iter().chain(around) {
                    notes.push(format!("hooks of `{event}` in skill `{name}` are not run"));
                }
                Some(built.calls)
            }
            Err(why) => {
                let tools = match skill.definition.allowed_tools.is_empty() {
                    true => "",
                    false => ", and neither does `allowed-tools`",
                };
                notes.push(format!("`hooks` of skill `{name}` have no effect{tools}: {why}"));
                None
            }
        }
    }

    /// The rules that the skill may have for itself.
    fn pre_approvals(&self, notes: &mut Vec<String>) -> Vec<RawRule> {
        let asked = &self.skill.definition.allowed_tools;
        if asked.is_empty() {
            return Vec::new();
        }
        if !self.skills.trust().is_trusted(self.skill) {
            let why = match &self.skill.plugin {
                Some(plugin) => format!(
                    "a plugin that you have not approved as it is now; run `toolgate plugin approve {}`",
                    plugin.root
                ),
                None => {
                    "a project that you have not trusted as it is now; run `toolgate trust add`".to_owned()
                }
            };
            notes.push(format!(
                "`allowed-tools` of skill `{}` has no effect, because it belongs to {why}",
                self.skill.name
            ));
            return Vec::new();
        }
        let expanded = asked.iter().filter_map(|rule| self.expand_rule(rule, notes)).collect::<Vec<_>>();
        let is_usable = |rule: &RawRule| match self.check_rule(self.rules(vec![rule.clone()], Vec::new())) {
            Ok(()) => true,
            Err(problem) => {
                notes.push(format!("`{}` in `allowed-tools` has no effect: {problem}", rule.text));
                false
            }
        };
        expanded.into_iter().map(RawRule::from).filter(is_usable).collect()
    }

    /// The rules that the skill gives up. One that cannot be read would make the gate deny everything, so the skill is
    /// not loaded instead.
    fn denials(&self) -> Result<Vec<RawRule>, Refusal> {
        let rules = self.skill.definition.disallowed_tools.iter().cloned().map(RawRule::from);
        let checked = rules.map(|rule| match self.check_rule(self.rules(Vec::new(), vec![rule.clone()])) {
            Ok(()) => Ok(rule),
            Err(problem) => {
                let reason =
                    format!("`{}` in `disallowed-tools` of skill `{}` {problem}", rule.text, self.skill.name);
                Err(Refusal::new(Code::SkillFailed, reason).hint("correct the rule in the skill"))
            }
        });
        checked.collect()
    }

    /// Whether a rule can be used.
    fn check_rule(&self, rules: LayerRules) -> Result<(), String> {
        let policy = RawPolicy::default().with_layers(vec![rules]);
        let (_, problems) = policy.compile();
        let worst = problems.into_iter().find(|problem| problem.weight >= ProblemSeverity::Warning);
        worst.map_or(Ok(()), |problem| Err(problem.message))
    }

    /// A rule with the directories of the skill in it. A directory whose name has signs of the rule language would
    /// make another rule of it.
    fn expand_rule(&self, rule: &str, notes: &mut Vec<String>) -> Option<String> {
        let workspace = self.session.workspace();
        let plugin = self.skill.plugin.as_deref();
        let mut expanded = rule.to_owned();
        for (variable, value) in [
            ("${CLAUDE_SKILL_DIR}", Some(self.skill.dir())),
            ("${CLAUDE_PROJECT_DIR}", Some(workspace.cwd.clone())),
            ("${CLAUDE_PLUGIN_ROOT}", plugin.map(|plugin| plugin.root.clone())),
            ("${CLAUDE_PLUGIN_DATA}", plugin.and_then(|plugin| plugin.data.clone())),
        ] {
            if !expanded.contains(variable) {
                continue;
            }
            let value = value.map(|path| path.to_string()).filter(|path| is_plain_path(path));
            let Some(value) = value else {
                notes.push(format!(
                    "`{rule}` has no effect, because the directory has signs that a rule or a shell reads"
                ));
                return None;
            };
            expanded = expanded.replace(variable, &value);
        }
        Some(expanded)
    }

    /// Runs a command of the text, and returns its output.
    async fn run_command(&self, command: &str, line: usize, allowed: &[RawRule]) -> Result<String, Refusal> {
        let definition = &self.skill.definition;
        let line = line + definition.body_line.saturating_sub(1);
        if self.gate.policy().forbids_skill_commands() {
            return Ok(DISABLED_COMMAND_TEXT.to_owned());
        }
        let stop = |code: Code, reason: String, hint: String| {
            let place = format!("skill `{}` was not loaded: its command on line {line}", self.skill.name);
            Err(Refusal::new(code, format!("{place}, `{command}`, {reason}"))
                .hint(&hint)
                .at_stage(Stage::Run))
        };
        if let Some(shell) = definition.shell.as_deref().filter(|shell| *shell != "bash") {
            let reason = format!("needs the shell `{shell}`, which is not there");
            return stop(Code::SkillFailed, reason, "write the command for bash".to_owned());
        }
        let dirs = [Some(self.skill.dir()), self.skill.plugin.as_deref().map(|plugin| plugin.root.clone())];
        let has_odd_dir = dirs.into_iter().flatten().any(|dir| {
            let dir = dir.to_string();
            command.contains(&dir) && !is_plain_path(&dir)
        });
        if has_odd_dir {
            let reason = "names a directory with signs that a shell reads".to_owned();
            return stop(
                Code::SkillFailed,
                reason,
                "move the skill to a directory with a plain name".to_owned(),
            );
        }
        let Some(tool) = SHELL_TOOLS.into_iter().find(|name| self.gate.definition(name).is_some()) else {
            return stop(
                Code::SkillFailed,
                "needs a shell tool, and none is offered".to_owned(),
                "offer `Bash`".to_owned(),
            );
        };
        match self.call(tool, &json!({ "command": command }), allowed).await {
            Ok(output) => Ok(command_output(&output)),
            Err(refusal) => {
                stop(refusal.code, format!("did not run to its end: {}", refusal.reason), refusal.hint)
            }
        }
    }

    /// Gives the text to an agent of its own, as its task, and returns the answer. Starting the agent is a call like any
    /// other: a rule, a hook or the user may refuse it. The conversation waits for it, also where the skill wants it in
    /// the background.
    async fn run_fork(&self, task: &str, agent: Option<&str>) -> Result<String, Refusal> {
        let name = &self.skill.name;
        let mut input =
            json!({ "description": format!("skill {name}"), "prompt": task, "run_in_background": false });
        let optional = [("subagent_type", agent), ("model", self.skill.definition.model.as_deref())];
        for (field, value) in optional {
            if let (Some(value), Some(fields)) = (value, input.as_object_mut()) {
                fields.insert(field.to_owned(), json!(value));
            }
        }
        let options = CallOptions::default().with_cancel(self.cancel.child_token());
        let call = ToolCall::new(toolgate_files::generate_id("skill_"), AGENT_TOOL, input.to_string());
        // Boxed: the agent makes calls, which may load skills.
        let calling: BoxFuture<'_, _> = Box::pin(self.gate.call(self.session, call, options));
        let output = calling.await.result.map_err(|refusal| {
            let reason = format!("the agent of skill `{name}` did not finish: {}", refusal.reason);
            Refusal::new(refusal.code, reason).hint(&refusal.hint)
        })?;
        Ok(format!("An agent of its own worked on skill `{name}`. Its answer:\n\n{}", output.model_text()))
    }

    /// The content of a file that the text refers to; nothing if there is no such file.
    async fn attach_file(&self, given: &str) -> String {
        let path = self.session.workspace().cwd.join(given);
        if toolgate_files::resolve(&path).kind != EntryKind::File {
            return String::new();
        }
        let Some((tool, field)) =
            READ_TOOLS.into_iter().find(|(name, _)| self.gate.definition(name).is_some())
        else {
            return String::new();
        };
        match self.call(tool, &json!({ field: path }), &[]).await {
            Ok(output) => format!("\n\nThe file {given}:\n{}\n", output.model_text()),
            Err(refusal) => format!("\n\nThe file {given} is not attached: {}\n", refusal.reason),
        }
    }

    /// Makes a call through the gate that asks nothing.
    async fn call(&self, tool: &str, input: &Value, allowed: &[RawRule]) -> Result<Output, Refusal> {
        let id = toolgate_files::generate_id("skill_");
        let mut options = CallOptions::default().with_cancel(self.cancel.child_token()).without_questions();
        if !allowed.is_empty() {
            options = options.with_extra_rules(self.rules(allowed.to_vec(), Vec::new()));
        }
        // Boxed: the call may run hooks, which may make calls.
        let call = ToolCall::new(id, tool, input.to_string());
        let calling: BoxFuture<'_, _> = Box::pin(self.gate.call(self.session, call, options));
        calling.await.result
    }

    /// Adds what the skill asks for until the turn ends.
    fn add_turn_rules(&self, allowed: Vec<RawRule>, denied: Vec<RawRule>, notes: &mut Vec<String>) {
        if allowed.is_empty() && denied.is_empty() {
            return;
        }
        let asks = !allowed.is_empty();
        let has_turn = self.gate.add_turn_rules(self.rules(allowed, denied));
        if asks && !has_turn {
            notes.push(format!(
                "`allowed-tools` of skill `{}` counts for its own commands only, because this session has no turns",
                self.skill.name
            ));
        }
    }

    /// Puts rules into a session layer that names the skill's file, so that a verdict shows where the rule comes from.
    fn rules(&self, allow: Vec<RawRule>, deny: Vec<RawRule>) -> LayerRules {
        let mut rules = LayerRules::new(Layer::Session, self.session.workspace().cwd.clone());
        rules.file = Some(self.skill.file.to_string());
        (rules.allow, rules.deny) = (allow, deny);
        rules
    }
}

/// Whether a path has no sign that a rule or a shell would read.
fn is_plain_path(path: &str) -> bool {
    path.chars().all(|c| c.is_alphanumeric() || "/._-+@%,=~".contains(c))
}

/// What a command wrote.
fn command_output(output: &Output) -> String {
    let stdout = output.structured.as_ref().and_then(|value| value.get("stdout")).and_then(Value::as_str);
    let text = stdout.map_or_else(|| output.model_text(), str::to_owned);
    text.trim_end_matches('\n').to_owned()
}
