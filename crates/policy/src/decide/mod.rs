//! The decision about one call: a compiled [`Policy`], and the questions that it answers.
//!
//! [`Policy::survey`] comes first: it analyses the command lines of an intent and lists the paths and globs whose facts
//! are needed. The caller gathers those facts, and [`Policy::decide`] judges. Two steps keep this crate free of I/O, and
//! they make the caller resolve each path once, before the decision, so that nothing is resolved a second time later.
//!
//! The checks and their order are listed in [`objection::PolicyCheck`]. Every check may raise objections; the strictest
//! one decides, and only a call without any is allowed.
//!
//! | module | what it checks or computes |
//! |---|---|
//! | [`call`] | rules for the tool, mode, hooks, policy book, agents, skills |
//! | [`paths`], [`path_risks`] | reads and writes of paths |
//! | [`command`], [`coverage`] | command lines and their simple commands |
//! | [`globs`], [`hidden_names`] | files that a command may match or skip |
//! | [`fetch`] | hosts |
//! | [`remote`] | tools of MCP servers |
//! | [`question`], [`suggestions`], [`standard_input`] | what an approver sees |
//! | [`rights`], [`terms`] | what a run is limited to |

mod call;
mod command;
mod copied_names;
mod coverage;
mod evaluation;
mod fetch;
mod globs;
mod hidden_names;
mod objection;
mod path_risks;
mod paths;
mod question;
mod remote;
mod rights;
mod standard_input;
pub(crate) mod suggestions;
mod terms;

use crate::argument_paths::argument_paths;
use crate::compile::CompiledPolicy;
use crate::guard::CommandGuard;
use crate::judgement::{HookOpinion, Judgement};
use crate::raw::{ManagedRestrictions, RawPolicy, RuleProblem};
use crate::read_filter::ReadFilter;
use evaluation::PolicyEvaluation;
pub(crate) use objection::PolicyCheck;
use rights::RightsBasis;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_proto::{
    AbsPath, CommandLine, CommandRights, Effect, Intent, Mode, PathFacts, Terms, ToolIdentity, Verdict,
    VerdictReason, Workspace,
};
use toolgate_shell_syntax::{self, CommandAnalysis, CommandPart, InferredEffect};

/// How often advice is tried out, at most.
const MAX_ADVICE_ROUNDS: usize = 6;
/// With more rules than this, advice is not tried out: compiling them again would take milliseconds.
const MAX_ADVISED_RULES: usize = 2_000;

/// Everything that a decision depends on, beside the policy itself.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// The tool, with its other names and its source.
    pub tool: &'a ToolIdentity,
    /// The validated input, for rules on its fields.
    pub input: &'a Map<String, Value>,
    /// What the tool declares that it would do.
    pub intent: &'a Intent,
    /// The result of [`Policy::survey`] for the same intent, so that commands are analysed once.
    pub survey: &'a IntentSurvey,
    /// The working directory, the roots and the home directory of the session.
    pub workspace: &'a Workspace,
    /// What is at the paths that [`Policy::survey`] named. A path without a fact asks.
    pub facts: &'a PathFacts,
    /// What PreToolUse hooks answered.
    pub opinions: &'a [HookOpinion],
}

/// What the caller must find out before a call can be judged.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct IntentSurvey {
    /// The paths to resolve, sorted and without repetition.
    pub paths: Vec<AbsPath>,
    /// The analysis of each command line of the intent, in the order of its effects.
    pub commands: Vec<SurveyedCommand>,
    /// The shell globs to expand, sorted and without repetition.
    pub globs: Vec<String>,
    /// The call only asks about another call, such as a prompt tool that the user configured: the paths in its input
    /// are mentioned, not accessed.
    pub ignores_input_paths: bool,
}

/// A command line with its analysis.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SurveyedCommand {
    /// The line as the tool declared it.
    pub line: CommandLine,
    /// Its simple commands, their effects, and what the parser did not understand.
    pub analysis: CommandAnalysis,
}

impl IntentSurvey {
    /// The simple commands of all command lines.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &CommandPart> {
        self.commands.iter().flat_map(|command| &command.analysis.parts)
    }

    /// The effects that the analysis inferred from all command lines.
    pub(crate) fn inferred_effects(&self) -> impl Iterator<Item = &InferredEffect> {
        self.parts().flat_map(|part| &part.effects)
    }

    /// The analysis of a command line, if this survey contains it.
    pub fn analysis(&self, line: &CommandLine) -> Option<&CommandAnalysis> {
        self.commands.iter().find(|command| command.line == *line).map(|command| &command.analysis)
    }
}

/// Compiled rules and a mode, made by [`RawPolicy::compile`]. A clone shares the rules.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The rules, indexed.
    pub(crate) compiled: Arc<CompiledPolicy>,
    /// The mode in force, which may change during a session while the rules stay.
    mode: Mode,
}

impl Policy {
    pub(crate) fn new(compiled: Arc<CompiledPolicy>, mode: Mode) -> Self {
        Self { compiled, mode }
    }

    /// See [`RawPolicy::compile`].
    pub(crate) fn compile(raw: RawPolicy) -> (Self, Vec<RuleProblem>) {
        crate::compile::compile(raw)
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether settings forbid skills to run commands.
    pub fn forbids_skill_commands(&self) -> bool {
        self.compiled.managed.disable_skill_shell_execution
    }

    /// The same rules in another mode. If managed settings disable mode bypass, it becomes mode default; if they require
    /// plan mode, every mode but deny becomes mode plan.
    pub fn with_mode(&self, mode: Mode) -> Self {
        let managed = &self.compiled.managed;
        let mode = match mode {
            Mode::Deny => Mode::Deny,
            _ if managed.require_plan_mode => Mode::Plan,
            Mode::Bypass if managed.disable_bypass_permissions_mode => Mode::Default,
            Mode::Default | Mode::Plan | Mode::AcceptEdits | Mode::DontAsk | Mode::Bypass => mode,
        };
        Self { compiled: Arc::clone(&self.compiled), mode }
    }

    /// What managed settings restrict.
    pub fn managed_restrictions(&self) -> &ManagedRestrictions {
        &self.compiled.managed
    }

    /// Whether every call of this tool would be denied, so that the tool need not be offered to a model.
    pub fn hides_tool(&self, tool: &ToolIdentity) -> bool {
        call::find_tool_rule(&self.compiled.deny, tool, call::ToolNameMatching::Broad).is_some()
            || self.compiled.disabled_name(tool).is_some()
            || self.compiled.books.always_denies(tool)
    }

    /// Why a tool is hidden, with the rule or the setting; for people only, because a model must not learn what it may not
    /// see. `None` if no rule and no setting hides it.
    pub fn hidden_reason(&self, tool: &ToolIdentity) -> Option<String> {
        let compiled = &self.compiled;
        if let Some(id) = call::find_tool_rule(&compiled.deny, tool, call::ToolNameMatching::Broad) {
            let rule = compiled.reference(id).map(|rule| format!(" ({rule})")).unwrap_or_default();
            return Some(format!("tool `{}` is denied by a rule{rule}", tool.name));
        }
        if let Some(name) = compiled.disabled_name(tool) {
            let place = compiled.raw.setting_places.clause(&format!("disabledTools.{name}"));
            return Some(format!("tool `{}` is disabled by the setting `disabledTools`{place}", tool.name));
        }
        compiled
            .books
            .always_denies(tool)
            .then(|| format!("tool `{}` is denied by the policy book", tool.name))
    }

    /// Analyses the command lines of an intent, and lists every path and glob whose facts [`Policy::decide`] needs.
    pub fn survey(&self, intent: &Intent, workspace: &Workspace) -> IntentSurvey {
        let mut survey = IntentSurvey::default();
        for effect in &intent.effects {
            if let Effect::Exec { command } = effect {
                let analysis = toolgate_shell_syntax::analyse(command, workspace);
                survey.commands.push(SurveyedCommand { line: command.clone(), analysis });
            }
        }
        let mut paths: Vec<AbsPath> = intent.effects.iter().filter_map(Effect::path).cloned().collect();
        // Rules can be about the directory in which a command is to run.
        let directories = survey.commands.iter().map(|command| &command.line.cwd);
        paths.extend(directories.filter(|cwd| **cwd != workspace.cwd).cloned());
        let mut globs: Vec<String> = Vec::new();
        for inferred in survey.inferred_effects() {
            let Some(path) = inferred.effect.path() else { continue };
            globs.extend(inferred.glob.iter().cloned());
            paths.extend(inferred.entries.iter().map(|entry| path.join(entry)));
            paths.push(path.clone());
        }
        globs.extend(survey.parts().flat_map(copied_names::copied_tree_globs));
        paths.extend(survey.parts().flat_map(|part| &part.chosen_by).cloned());
        paths.sort_unstable();
        paths.dedup();
        globs.sort_unstable();
        globs.dedup();
        survey.globs = globs;
        survey.paths = paths;
        survey
    }

    /// Like [`Policy::survey`], with the paths that the arguments of an MCP tool name.
    pub fn survey_call(
        &self,
        input: &Map<String, Value>,
        intent: &Intent,
        workspace: &Workspace,
    ) -> IntentSurvey {
        let mut survey = self.survey(intent, workspace);
        if intent.effects.iter().any(|effect| matches!(effect, Effect::Remote { .. })) {
            survey.paths.extend(argument_paths(input, workspace));
            survey.paths.sort_unstable();
            survey.paths.dedup();
        }
        survey
    }

    /// Whether a call would write exactly this path, as far as its intent and its command lines show.
    pub fn is_written(&self, path: &AbsPath, intent: &Intent, survey: &IntentSurvey) -> bool {
        let inferred = survey.inferred_effects().map(|inferred| &inferred.effect);
        intent
            .effects
            .iter()
            .chain(inferred)
            .any(|effect| matches!(effect, Effect::Write { path: written, .. } if written == path))
    }

    /// Judges a call. The same request always gets the same judgement.
    pub fn decide(&self, request: &PolicyRequest<'_>) -> Judgement {
        let mut judgement = self.evaluate(request);
        self.complete_advice(request, &mut judgement);
        self.advise_trust(request, &mut judgement);
        judgement
    }

    /// Behind a rule that decides there may be another that would decide next, and rules that are added may not suffice.
    /// The advised changes are therefore made, the call is judged again, and what is advised then is added.
    fn complete_advice(&self, request: &PolicyRequest<'_>, judgement: &mut Judgement) {
        let suffices = self.is_advice_sufficient(request, judgement);
        if suffices && !judgement.advice.names_rules() {
            return;
        }
        let mut is_stuck = !suffices;
        let rounds = if self.compiled.rules.len() > MAX_ADVISED_RULES { 0 } else { MAX_ADVICE_ROUNDS };
        for _ in 0..rounds {
            let mut raw = RawPolicy::clone(&self.compiled.raw);
            raw.mode = self.mode;
            judgement.advice.apply_to(&mut raw);
            let next = raw.compile().0.evaluate(request);
            is_stuck = !matches!(next.verdict, Verdict::Allow(_));
            if !is_stuck {
                judgement.advice.spare_user();
                break;
            }
            if !judgement.advice.merge(next.advice) {
                break;
            }
        }
        if is_stuck && judgement.advice.is_fully_applicable(&self.compiled.raw) {
            judgement.advice.require_user();
        }
        judgement.flip = judgement.advice.to_sentence(&self.compiled.raw);
    }

    /// Whether the advised allow rules are known to be enough. A question has tried those that it offers; a trial of
    /// others is much cheaper than compiling all rules again.
    fn is_advice_sufficient(&self, request: &PolicyRequest<'_>, judgement: &Judgement) -> bool {
        let advice = &judgement.advice;
        if advice.needs_user || !advice.adds_rules() {
            return true;
        }
        if let Verdict::Ask(question) = &judgement.verdict {
            let offered = question.suggestions.iter().map(|offered| offered.rule.as_str());
            if offered.eq(advice.added_rules()) {
                return true;
            }
        }
        let mode = if advice.leaves_mode() { Mode::Default } else { self.mode };
        PolicyEvaluation::new(&self.compiled, mode, request).is_allowed_with(advice.added_rules())
    }

    /// If a rule of the untrusted project would allow the call, trusting the project is the better advice: the rule is
    /// there already.
    fn advise_trust(&self, request: &PolicyRequest<'_>, judgement: &mut Judgement) {
        let raw = &self.compiled.raw;
        if raw.untrusted_allow.is_empty()
            || !judgement.advice.adds_rules()
            || self.compiled.rules.len() > MAX_ADVISED_RULES
        {
            return;
        }
        let mut advice = judgement.advice.clone();
        advice.drop_rules();
        let mut trusted = RawPolicy::clone(raw);
        trusted.mode = self.mode;
        advice.apply_to(&mut trusted);
        trusted.trust_project();
        let after = trusted.compile().0.evaluate(request);
        if matches!(after.verdict, Verdict::Allow(_))
            && let Some(rule) = after.verdict.reason().rule.clone()
        {
            judgement.advice.trust_instead(rule);
            judgement.flip = judgement.advice.to_sentence(raw);
        }
    }

    /// Runs every check.
    fn evaluate(&self, request: &PolicyRequest<'_>) -> Judgement {
        let mut evaluation = PolicyEvaluation::new(&self.compiled, self.mode, request);
        evaluation.check_everything();
        evaluation.conclude()
    }

    /// The terms of a run that an approver allowed.
    pub fn terms(&self, request: &PolicyRequest<'_>, reason: VerdictReason) -> Terms {
        PolicyEvaluation::new(&self.compiled, self.mode, request).terms(reason, RightsBasis::AsWhole)
    }

    /// The rules for files that apply while a command runs with these rights.
    pub fn command_guard(&self, workspace: &Workspace, rights: &CommandRights) -> CommandGuard {
        CommandGuard::new(Arc::clone(&self.compiled), workspace, rights)
    }

    /// Whether any deny or ask rule is for reading particular paths, so that a search must filter its results.
    pub fn hides_any_file(&self) -> bool {
        self.compiled.deny.reads.has_patterns() || self.compiled.ask.reads.has_patterns()
    }

    /// Which files a search may list and quote.
    pub fn read_filter(&self, workspace: &Workspace) -> ReadFilter {
        ReadFilter::new(Arc::clone(&self.compiled), workspace)
    }
}
