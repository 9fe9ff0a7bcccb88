//! The decision: a compiled policy, and the questions it answers.
//!
//! The order of judgement is kept in [`evaluation::PolicyCheck`]: unusable rules, deny rules, mode, hooks, the policy book,
//! protected paths, ask rules, risks, grants. Every stage may raise an objection; the strictest objection decides,
//! and only a call without any is allowed.

mod call;
mod command;
pub(crate) mod evaluation;
mod fetch;
mod globs;
mod paths;
mod question;
mod rights;

use crate::compile::CompiledPolicy;
use crate::facts::{PathFacts, Workspace};
use crate::guard::CommandGuard;
use crate::judgement::{HookOpinion, Judgement};
use crate::raw::{ManagedRestrictions, RawPolicy, RuleProblem};
use crate::read_filter::ReadFilter;
use evaluation::{PolicyApproval, PolicyEvaluation};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_proto::{
    AbsPath, CommandLine, CommandRights, Effect, Intent, Mode, Terms, ToolIdentity, VerdictReason,
};
use toolgate_shell_syntax::{self, CommandAnalysis};

/// Everything there is to judge about one call.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// Which tool.
    pub tool: &'a ToolIdentity,
    /// Its validated input, for rules on parameters.
    pub input: &'a Map<String, Value>,
    /// What it would do.
    pub intent: &'a Intent,
    /// What [`Policy::survey`] found out about the intent, so that commands are analysed once.
    pub survey: &'a IntentSurvey,
    /// Where the session works.
    pub workspace: &'a Workspace,
    /// What is really at the paths that [`Policy::survey`] named.
    pub facts: &'a PathFacts,
    /// What hooks think.
    pub opinions: &'a [HookOpinion],
}

/// What must be found out before a call can be judged.
#[derive(Debug, Clone, Default)]
pub struct IntentSurvey {
    /// The paths about which facts are needed.
    pub paths: Vec<AbsPath>,
    /// What each command line of the intent would do, in the order of its effects.
    pub commands: Vec<SurveyedCommand>,
    /// The shell patterns of which the matching files are needed.
    pub globs: Vec<String>,
    /// The call asks about another call, as a person set it up: paths in its input are spoken of, not touched.
    pub ignores_input_paths: bool,
}

/// A command line and what it would do.
#[derive(Debug, Clone)]
pub struct SurveyedCommand {
    /// The command line.
    pub line: CommandLine,
    /// Its simple commands, their effects, and doubts.
    pub analysis: CommandAnalysis,
}

impl IntentSurvey {
    /// The analysis of a command line, if this survey made one.
    pub fn analysis(&self, line: &CommandLine) -> Option<&CommandAnalysis> {
        self.commands.iter().find(|command| command.line == *line).map(|command| &command.analysis)
    }
}

/// Compiled rules and a mode. Built by [`RawPolicy::compile`]; clones share the rules.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) compiled: Arc<CompiledPolicy>,
    mode: Mode,
}

impl Policy {
    pub(crate) fn of(compiled: Arc<CompiledPolicy>, mode: Mode) -> Self {
        Self { compiled, mode }
    }

    pub(crate) fn compile(raw: RawPolicy) -> (Self, Vec<RuleProblem>) {
        crate::compile::compile(raw)
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The same rules in another mode. Bypass stays off where it is switched off.
    pub fn with_mode(&self, mode: Mode) -> Self {
        let locked = mode == Mode::Bypass && self.compiled.managed.disable_bypass_permissions_mode;
        Self { compiled: Arc::clone(&self.compiled), mode: if locked { Mode::Default } else { mode } }
    }

    /// What the organisation has switched off.
    pub fn managed_restrictions(&self) -> &ManagedRestrictions {
        &self.compiled.managed
    }

    /// Whether a rule denies every call of this tool, so that it need not be shown to a model at all.
    pub fn hides_tool(&self, tool: &ToolIdentity) -> bool {
        let names = std::iter::once(tool.name.as_str()).chain(tool.also.iter().map(String::as_str));
        call::find_tool_rule(&self.compiled.deny, tool, call::ToolNameMatching::Broad).is_some()
            || names.into_iter().any(|name| self.compiled.disabled.contains(name))
            || self.compiled.books.always_denies(tool)
    }

    /// Analyses the commands of an intent and names every path whose facts [`Policy::decide`] will want.
    pub fn survey(&self, intent: &Intent, workspace: &Workspace) -> IntentSurvey {
        let mut survey = IntentSurvey::default();
        for effect in &intent.effects {
            if let Effect::Exec { command } = effect {
                let analysis = toolgate_shell_syntax::analyse(command, workspace);
                survey.commands.push(SurveyedCommand { line: command.clone(), analysis });
            }
        }
        let mut paths: Vec<AbsPath> = intent.effects.iter().filter_map(effect_path).cloned().collect();
        let mut globs: Vec<String> = Vec::new();
        let parts = survey.commands.iter().flat_map(|command| &command.analysis.parts);
        for inferred in parts.flat_map(|part| &part.effects) {
            let Some(path) = effect_path(&inferred.effect) else { continue };
            globs.extend(inferred.glob.iter().cloned());
            paths.extend(inferred.entries.iter().map(|entry| path.join(entry)));
            paths.push(path.clone());
        }
        let parts = survey.commands.iter().flat_map(|command| &command.analysis.parts);
        paths.extend(parts.flat_map(|part| &part.chosen_by).cloned());
        paths.sort_unstable();
        paths.dedup();
        globs.sort_unstable();
        globs.dedup();
        survey.globs = globs;
        survey.paths = paths;
        survey
    }

    /// The same for a call with its input: arguments of another server's tool may name paths.
    pub fn survey_call(
        &self,
        input: &Map<String, Value>,
        intent: &Intent,
        workspace: &Workspace,
    ) -> IntentSurvey {
        let mut survey = self.survey(intent, workspace);
        if intent.effects.iter().any(|effect| matches!(effect, Effect::Remote { .. })) {
            survey.paths.extend(crate::mcp::argument_paths(input, workspace));
            survey.paths.sort_unstable();
            survey.paths.dedup();
        }
        survey
    }

    /// Whether a call would change what is at a path, as far as its intent and commands tell.
    pub fn is_written(&self, path: &AbsPath, intent: &Intent, survey: &IntentSurvey) -> bool {
        let parts = survey.commands.iter().flat_map(|command| &command.analysis.parts);
        let inferred = parts.flat_map(|part| &part.effects).map(|inferred| &inferred.effect);
        intent
            .effects
            .iter()
            .chain(inferred)
            .any(|effect| matches!(effect, Effect::Write { path: written, .. } if written == path))
    }

    /// Judges a call.
    pub fn decide(&self, request: &PolicyRequest<'_>) -> Judgement {
        let mut case = PolicyEvaluation::new(&self.compiled, self.mode, request);
        case.check_call();
        for effect in &request.intent.effects {
            case.check_effect(effect);
        }
        case.conclude()
    }

    /// The terms of a run that a person has approved.
    pub fn terms(&self, request: &PolicyRequest<'_>, reason: VerdictReason) -> Terms {
        PolicyEvaluation::new(&self.compiled, self.mode, request).terms(reason, PolicyApproval::Given)
    }

    /// The rules for files, for a command that runs with these rights.
    pub fn command_guard(&self, workspace: &Workspace, rights: &CommandRights) -> CommandGuard {
        CommandGuard::new(Arc::clone(&self.compiled), workspace, rights)
    }

    /// Whether any rule may keep back a file that a search finds.
    pub fn hides_any_file(&self) -> bool {
        self.compiled.deny.reads.has_patterns() || self.compiled.ask.reads.has_patterns()
    }

    /// What a search may show of the files it finds.
    pub fn read_filter(&self, workspace: &Workspace) -> ReadFilter {
        ReadFilter::new(Arc::clone(&self.compiled), workspace)
    }
}

pub(crate) fn effect_path(effect: &Effect) -> Option<&AbsPath> {
    match effect {
        Effect::Read { path, .. } | Effect::Write { path, .. } => Some(path),
        Effect::Exec { .. }
        | Effect::Fetch { .. }
        | Effect::Search { .. }
        | Effect::Delegate { .. }
        | Effect::Skill { .. }
        | Effect::Remote { .. }
        | Effect::Ask
        | Effect::State { .. }
        | Effect::Opaque => None,
    }
}
