//! Command lines: every simple command must be covered, and any of them may be denied or require approval.

use super::coverage::{CommandCoverage, is_known_edit};
use super::evaluation::PolicyEvaluation;
use super::hidden_names::{obeys_ignore_files, skips_hidden_names};
use super::objection::{ObjectionKind, ObjectionRemedy, PolicyCheck};
use super::paths::AccessOrigin;
use crate::judgement::CommandVerdict;
use crate::protect::ReadOrWrite;
use crate::raw::{Enforcement, RuleAction};
use crate::rule::{ActionIndex, squeeze_blanks, syntax};
use std::borrow::Cow;
use toolgate_proto::{
    Code, CommandLine, Effect, EntryKind, GitTerms, GitUse, RiskLevel, SourceId, VerdictReason, WriteKind,
};
use toolgate_shell_syntax::{
    self, CommandAnalysis, CommandPart, DangerResponse, DangerStanding, EffectOrigin, InferredEffect,
};

impl PolicyEvaluation<'_> {
    /// Checks one command line: the line as a whole, then each of its simple commands.
    pub(crate) fn check_command(&mut self, line: &CommandLine) {
        let survey = self.request.survey;
        let analysis = match survey.analysis(line) {
            Some(analysis) => Cow::Borrowed(analysis),
            None => Cow::Owned(toolgate_shell_syntax::analyse(line, self.request.workspace)),
        };
        self.check_line(line, &analysis);
        self.plain_syntax = analysis.plain_syntax;
        let line_rule = self.find_exact_line_rule(line);
        let mut coverages: Vec<Option<CommandCoverage>> = Vec::with_capacity(analysis.parts.len());
        for part in &analysis.parts {
            let wrapper = part.run_by.and_then(|wrapper| coverages.get(wrapper).copied().flatten());
            // An exact rule for a wrapper (`timeout 5 make`) also names the command that it runs.
            let exact_rule = wrapper.and_then(CommandCoverage::exact_rule).or(line_rule);
            coverages.push(exact_rule.map(CommandCoverage::Exact).or_else(|| self.find_coverage(part)));
        }
        for (part, coverage) in analysis.parts.iter().zip(&coverages) {
            self.covered_as_whole |= match coverage {
                Some(coverage) => coverage.is_for_whole_command(),
                // A mode or a hook may still allow it. A command that is known to only read, or to write only known
                // paths, needs no wider rights for that: a stricter setting must not widen the sandbox.
                None => !self.is_known_read_only(part) && !is_known_edit(part),
            };
        }
        for (part, coverage) in analysis.parts.iter().zip(&coverages) {
            // The line has one sandbox: a command that a rule allows as a whole gets rights to read that limit no other,
            // so the words of a reader have to be known.
            let has_unknown_words = part.reads_unknown_paths && part.allow_text.is_none();
            let is_unlimited = has_unknown_words && self.has_workspace_rights();
            let coverage =
                coverage.filter(|coverage| *coverage != CommandCoverage::ReadOnly || !is_unlimited);
            self.check_simple_command(line, part, coverage);
        }
        self.git = git_terms(&analysis.parts, &coverages);
        self.check_doubt(line, &analysis, line_rule);
        if analysis.parts.is_empty() && analysis.doubt.is_none() {
            self.add_allow_reason("the line runs no command", None);
        }
    }

    /// Checks that concern the line as a whole.
    fn check_line(&mut self, line: &CommandLine, analysis: &CommandAnalysis) {
        let compiled = self.compiled;
        if compiled.managed.disable_skill_shell_execution
            && matches!(self.request.tool.source, SourceId::Skill { .. })
        {
            let place = compiled.raw.setting_places.clause("disableSkillShellExecution");
            let text =
                format!("the setting `disableSkillShellExecution`{place} forbids skills to run commands");
            let reason = VerdictReason::new(Code::DeniedByRule, text);
            self.add_objection(ObjectionKind::Deny, PolicyCheck::DenyRules, reason);
            let text = format!("remove `disableSkillShellExecution`{place}");
            self.set_remedy(ObjectionRemedy::Setting(text));
        }
        if let Some(id) = compiled.deny.tools.find_restricted_name("Bash") {
            self.deny_by_rule("running commands is denied by a rule".to_owned(), id);
        }
        if let Some(id) = compiled.ask.tools.find_restricted_name("Bash") {
            self.ask_by_rule(format_args!("every command"), id);
        }
        // A line that cannot be parsed is at least compared as text. Deny and ask rules may match more than bash would
        // run, so any whitespace separates words here.
        if analysis.doubt.is_some() {
            let text = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.check_command_text(&text);
        }
        if line.unsandboxed {
            let (kind, text) = if compiled.allow_unsandboxed {
                (ObjectionKind::Explicit, "the call requests to run outside the sandbox")
            } else {
                (ObjectionKind::Deny, "the settings forbid running commands outside the sandbox")
            };
            self.ask_about_risk(kind, text.to_owned());
            if kind == ObjectionKind::Deny {
                let place = compiled.raw.setting_places.clause("sandbox.allowUnsandboxedCommands");
                let text = format!("remove `sandbox.allowUnsandboxedCommands: false`{place}");
                self.set_remedy(ObjectionRemedy::Setting(text));
            }
        }
        for danger in &analysis.dangers {
            self.danger = self.danger.max(Some(danger.severity));
            self.add_warning(danger.kind.as_str(), danger.severity, danger.text.clone());
            match (danger.standing, danger.phase) {
                (DangerStanding::Advisory, DangerResponse::Ask | DangerResponse::Deny) => {
                    self.object_to_danger(danger.severity, danger.text.clone(), false);
                }
                (DangerStanding::Binding, DangerResponse::Ask) => {
                    self.object_to_danger(danger.severity, danger.text.clone(), true);
                }
                (DangerStanding::Binding, DangerResponse::Deny) => {
                    let reason = VerdictReason::new(Code::DangerousCall, danger.text.clone());
                    self.add_objection(ObjectionKind::Deny, PolicyCheck::Dangers, reason);
                }
            }
        }
    }

    /// A rule for exactly the text of the line.
    fn find_exact_line_rule(&self, line: &CommandLine) -> Option<u32> {
        let text = squeeze_blanks(&line.text);
        self.compiled.find_allow(|allow| allow.commands.find_exact(&text))
    }

    /// A line that the parser does not fully understand asks, unless a rule is for exactly this line.
    fn check_doubt(&mut self, line: &CommandLine, analysis: &CommandAnalysis, line_rule: Option<u32>) {
        let Some(doubt) = &analysis.doubt else { return };
        self.add_warning(doubt.kind.as_str(), RiskLevel::High, doubt.text.clone());
        self.ask_in_plan_mode(format_args!("the command line cannot be analysed"));
        if let Some(id) = line_rule {
            self.add_allow_reason("a rule allows exactly this command line", Some(id));
            return;
        }
        let text = format!("the command line cannot be fully analysed: {}", doubt.text);
        self.ask_about_risk(self.unparsed_objection_kind(None), text);
        self.offer_line_rule(line);
    }

    /// A rule for exactly the whole line removes the last objection, if the line can be written in a rule.
    fn offer_line_rule(&mut self, line: &CommandLine) {
        let text = squeeze_blanks(&line.text);
        let is_writable =
            !text.is_empty() && !text.contains(['*', '\\']) && !text.chars().any(char::is_control);
        if is_writable {
            self.set_remedy(ObjectionRemedy::LineRule(syntax::write_rule("Bash", &text)));
        }
    }

    /// How strict the question about a command is whose words are not all known. If a deny or ask rule could be meant,
    /// neither mode bypass nor a hook may answer it.
    pub(crate) fn unparsed_objection_kind(&self, program: Option<&str>) -> ObjectionKind {
        let mut restricting = [&self.compiled.deny, &self.compiled.ask].into_iter();
        if restricting.any(|index| index.may_apply_to(program)) {
            ObjectionKind::Explicit
        } else {
            ObjectionKind::ByDefault
        }
    }

    /// Deny and ask rules for one spelling of a command.
    fn check_command_text(&mut self, command: &str) {
        let find = |index: &ActionIndex| index.commands.find(command);
        let (denied, asked) = (find(&self.compiled.deny), find(&self.compiled.ask));
        if let Some(id) = denied {
            self.deny_by_rule(format!("running `{command}` is denied by a rule"), id);
        }
        if let Some(id) = asked {
            self.ask_by_rule(format_args!("running `{command}`"), id);
        }
    }

    /// Checks one simple command and its effects, and records the verdict about it.
    fn check_simple_command(
        &mut self,
        line: &CommandLine,
        part: &CommandPart,
        coverage: Option<CommandCoverage>,
    ) {
        let before = self.objections.len();
        for text in &part.deny_texts {
            self.check_command_text(text);
        }
        let rule = coverage.and_then(CommandCoverage::rule);
        let origin = match coverage {
            Some(coverage) => AccessOrigin::Granted { exactly: coverage.exact_rule().is_some() },
            None => AccessOrigin::Command,
        };
        let is_withheld = self.compiled.enforcement == Enforcement::Kernel;
        self.skips_hidden = skips_hidden_names(part) && (is_withheld || !obeys_ignore_files(part));
        for inferred in &part.effects {
            self.check_inferred_effect(inferred, part, origin, rule);
            self.check_copied_names(inferred, part);
        }
        self.check_copied_trees(part, coverage == Some(CommandCoverage::AcceptEdits));
        if !part.only_reads() && coverage != Some(CommandCoverage::Nothing) {
            self.ask_in_plan_mode(format_args!("`{}` may change something", part.text));
        }
        match coverage {
            Some(coverage) => self.add_coverage_reason(coverage, part),
            None if part.allow_text.is_some() && self.may_run_restricted(part) => {
                let text = format!(
                    "`{}` runs code, and a rule denies or asks about commands that it may run",
                    part.text
                );
                let reason = VerdictReason::new(Code::ApprovalUnavailable, text);
                self.add_objection(ObjectionKind::Explicit, PolicyCheck::Grants, reason);
                self.offer_line_rule(line);
            }
            None if part.allow_text.is_some() => self.add_uncovered_command(line, part),
            None => {
                let kind = self.unparsed_objection_kind(part.program.as_deref());
                let text = format!("what `{}` does is only known when it runs", part.text);
                self.add_objection(
                    kind,
                    PolicyCheck::Grants,
                    VerdictReason::new(Code::ApprovalUnavailable, text),
                );
                self.offer_line_rule(line);
            }
        }
        self.record_command_verdict(part, before, rule);
    }

    /// Nothing covers a command whose words are known. It is offered a rule if one for exactly the command can be written.
    fn add_uncovered_command(&mut self, line: &CommandLine, part: &CommandPart) {
        let suggestion = self.suggest_command_rule(part);
        let has_rule = suggestion.is_some();
        self.add_uncovered_objection(format!("no rule allows running `{}`", part.text), suggestion);
        if has_rule {
            return;
        }
        if let Some(why) = self.explain_missing_command_rule(part) {
            self.set_remedy(ObjectionRemedy::NoRule(why));
        }
        // For an interpreter at the end of a pipe, a rule for the line is narrower than one for the interpreter.
        if part.allow_text.as_deref() != Some(&*squeeze_blanks(&line.text)) {
            self.offer_line_rule(line);
        }
    }

    /// Records the strictest objection that was raised since `before`, or why the command is allowed.
    fn record_command_verdict(&mut self, part: &CommandPart, before: usize, rule: Option<u32>) {
        let raised = self.objections.get(before..).unwrap_or_default();
        let (action, reason, rule) = match raised.iter().max_by_key(|objection| objection.kind) {
            Some(objection) => {
                (objection.kind.action(), objection.reason.text.clone(), objection.reason.rule.clone())
            }
            None => (
                RuleAction::Allow,
                self.allow_reasons.last().map_or_else(String::new, |(text, _)| text.to_string()),
                rule.and_then(|id| self.reference(id)),
            ),
        };
        self.parts.push(CommandVerdict { text: part.text.clone(), action, reason, rule });
    }

    /// Records why a simple command is allowed.
    fn add_coverage_reason(&mut self, coverage: CommandCoverage, part: &CommandPart) {
        match coverage {
            CommandCoverage::Exact(id) | CommandCoverage::Rule(id) => {
                self.add_allow_reason("a rule allows the command", Some(id))
            }
            CommandCoverage::Grant(grant) => self.add_grant_reason(grant),
            CommandCoverage::ReadOnly => self.add_allow_reason(format!("`{}` only reads", part.text), None),
            CommandCoverage::AcceptEdits => {
                self.add_allow_reason("mode acceptEdits allows changes inside the workspace", None)
            }
            CommandCoverage::Nothing => self.add_allow_reason("the line runs no command", None),
        }
    }

    /// Checks one effect that the analysis inferred from the words of a command. `rule` is the rule that covers the
    /// command, if one does.
    fn check_inferred_effect(
        &mut self,
        inferred: &InferredEffect,
        part: &CommandPart,
        origin: AccessOrigin,
        rule: Option<u32>,
    ) {
        let origin = match inferred.origin {
            EffectOrigin::Redirect => AccessOrigin::Redirect,
            EffectOrigin::Argument | EffectOrigin::Program => origin,
        };
        match &inferred.effect {
            Effect::Read { path, scope } => {
                if let Some(glob) = &inferred.glob {
                    self.check_glob(inferred, glob, origin);
                }
                self.check_read(path, *scope, origin);
            }
            Effect::Write { path, kind } => {
                let mut directory_kind = *kind;
                if let Some(glob) = &inferred.glob {
                    self.check_glob(inferred, glob, origin);
                    // `rm *.log` removes entries of the directory, not the directory.
                    if self.spares_kept_directories(glob, path) {
                        directory_kind = WriteKind::Edit;
                    }
                }
                self.check_write(path, directory_kind, origin);
                let is_directory =
                    self.request.facts.get(path).is_some_and(|fact| fact.kind == EntryKind::Directory);
                for entry in &inferred.entries {
                    if entry.contains(['*', '?', '[']) {
                        self.check_glob_pattern(&format!("{path}/{entry}"), path, ReadOrWrite::Write, true);
                    } else if is_directory {
                        self.check_write(&path.join(entry), *kind, origin);
                    }
                }
            }
            Effect::Fetch { url } => self.check_inferred_fetch(url, part, origin, rule),
            Effect::Exec { .. }
            | Effect::Search { .. }
            | Effect::Delegate { .. }
            | Effect::Skill { .. }
            | Effect::Remote { .. }
            | Effect::Ask
            | Effect::State { .. }
            | Effect::Opaque => {
                self.add_uncovered_objection("the command has an effect that no rule can allow", None)
            }
        }
    }
}

/// How git is used in a line, by what its commands are allowed by.
fn git_terms(parts: &[CommandPart], coverages: &[Option<CommandCoverage>]) -> GitTerms {
    let mut covered = parts.iter().zip(coverages);
    let relies_on_reading =
        covered.any(|(part, coverage)| part.runs_git() && *coverage == Some(CommandCoverage::ReadOnly));
    let usage = match (
        parts.iter().any(CommandPart::runs_git),
        relies_on_reading,
        parts.iter().all(CommandPart::reads_if_bounded),
    ) {
        (false, _, _) => GitUse::Absent,
        (true, true, true) => GitUse::Reads,
        (true, true, false) => GitUse::Mixed,
        (true, false, true) => GitUse::GrantedReads,
        (true, false, false) => GitUse::Granted,
    };
    GitTerms::new(usage).with_searches(parts.iter().any(CommandPart::searches_by_git))
}
