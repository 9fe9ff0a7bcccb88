//! Command lines: every simple command must be covered, any may be denied or asked about.

use super::evaluation::{ObjectionKind, PolicyCheck, PolicyEvaluation, ToolWideGrant};
use super::paths::AccessOrigin;
use crate::facts::EntryKind;
use crate::judgement::CommandVerdict;
use crate::protect::ReadOrWrite;
use crate::raw::{Enforcement, RuleAction};
use crate::rule::{ActionIndex, squeeze_blanks};
use std::borrow::Cow;
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, GitTerms, GitUse, Mode, RiskLevel, SourceId, VerdictReason,
};
use toolgate_shell_syntax::{
    self, CommandAnalysis, CommandPart, DangerResponse, DangerStanding, EffectOrigin, InferredEffect,
};

/// What covers a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandCoverage {
    /// A rule for exactly this command, or this line.
    Exact(u32),
    /// A rule with a wildcard.
    Rule(u32),
    /// A rule for the tool, or the policy book.
    Grant(ToolWideGrant),
    /// It cannot do anything but read.
    ReadOnly,
    /// The mode frees changes inside the workspace.
    AcceptEdits,
    /// Nothing runs here.
    Nothing,
}

impl PolicyEvaluation<'_> {
    /// A command line.
    pub(crate) fn check_command(&mut self, line: &CommandLine) {
        let survey = self.request.survey;
        let analysis = match survey.analysis(line) {
            Some(analysis) => Cow::Borrowed(analysis),
            None => Cow::Owned(toolgate_shell_syntax::analyse(line, self.request.workspace)),
        };
        self.check_line(line, &analysis);
        self.plain_syntax = analysis.plain_syntax;
        let whole = self.find_exact_line_rule(line);
        let mut covers: Vec<Option<CommandCoverage>> = Vec::with_capacity(analysis.parts.len());
        for part in &analysis.parts {
            // An exact rule for a wrapper and what it runs speaks of both.
            let runner = part.run_by.and_then(|runner| covers.get(runner).copied().flatten());
            let spoken = match runner {
                Some(CommandCoverage::Exact(id)) => Some(id),
                Some(
                    CommandCoverage::Rule(_)
                    | CommandCoverage::Grant(_)
                    | CommandCoverage::ReadOnly
                    | CommandCoverage::AcceptEdits
                    | CommandCoverage::Nothing,
                )
                | None => whole,
            };
            let cover = spoken.map(CommandCoverage::Exact).or_else(|| self.find_coverage(part));
            self.covered_as_whole |= match cover {
                Some(CommandCoverage::ReadOnly | CommandCoverage::AcceptEdits | CommandCoverage::Nothing) => {
                    false
                }
                Some(CommandCoverage::Exact(_) | CommandCoverage::Rule(_) | CommandCoverage::Grant(_)) => {
                    true
                }
                // A mode or a hook may answer for it. What is known to only read, or to write only known paths, needs no
                // more rights for that: a setting that makes the question stricter must not widen the sandbox.
                None => !self.is_known_read_only(part) && !is_known_edit(part),
            };
            self.check_simple_command(part, cover);
            covers.push(cover);
        }
        self.git = git_terms(&analysis.parts, &covers);
        self.check_doubt(&analysis, whole);
        if analysis.parts.is_empty() && analysis.doubt.is_none() {
            self.add_allow_reason("nothing runs", None);
        }
    }

    /// What holds for the line as a whole.
    fn check_line(&mut self, line: &CommandLine, analysis: &CommandAnalysis) {
        let compiled = self.compiled;
        if compiled.managed.disable_skill_shell_execution
            && matches!(self.request.tool.source, SourceId::Skill { .. })
        {
            let reason = VerdictReason::new(Code::DeniedByRule, "skills may not run commands here");
            self.add_objection(ObjectionKind::Deny, PolicyCheck::DenyRules, reason);
        }
        if let Some(id) = compiled.deny.tools.find_name("Bash") {
            let text = "commands are denied".to_owned();
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if let Some(id) = compiled.ask.tools.find_name("Bash") {
            let text = "a rule wants a person to be asked about commands".to_owned();
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
        // A line that cannot be taken apart is at least compared as it stands. Deny and ask rules may match more
        // than bash would read, so any space separates words for them.
        if analysis.doubt.is_some() {
            let text = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.check_command_text(&text);
        }
        if line.unsandboxed {
            let (force, text) = if compiled.allow_unsandboxed {
                (ObjectionKind::Explicit, "the command wants to leave the sandbox")
            } else {
                (ObjectionKind::Deny, "commands may not leave the sandbox here")
            };
            self.add_objection(force, PolicyCheck::Risks, VerdictReason::new(Code::NobodyToAsk, text));
        }
        for danger in &analysis.dangers {
            self.danger = self.danger.max(Some(danger.severity));
            self.add_warning(danger.kind.as_str(), danger.severity, danger.text.clone());
            match (danger.standing, danger.phase) {
                (DangerStanding::Advisory, DangerResponse::Ask | DangerResponse::Deny) => {}
                (DangerStanding::Binding, DangerResponse::Ask) => {
                    let reason = VerdictReason::new(Code::ProtectedPath, danger.text.clone());
                    self.add_objection(ObjectionKind::Explicit, PolicyCheck::Protected, reason);
                }
                (DangerStanding::Binding, DangerResponse::Deny) => {
                    let reason = VerdictReason::new(Code::ProtectedPath, danger.text.clone());
                    self.add_objection(ObjectionKind::Deny, PolicyCheck::Protected, reason);
                }
            }
        }
    }

    /// A rule for exactly the text of the line.
    fn find_exact_line_rule(&self, line: &CommandLine) -> Option<u32> {
        self.compiled.allow.commands.find_exact(&squeeze_blanks(&line.text))
    }

    /// A line that is not understood asks, unless a rule is for exactly this line.
    fn check_doubt(&mut self, analysis: &CommandAnalysis, whole: Option<u32>) {
        let Some(doubt) = &analysis.doubt else { return };
        self.add_warning(doubt.kind.as_str(), RiskLevel::High, doubt.text.clone());
        self.ask_in_plan_mode("the command is not understood");
        if let Some(id) = whole {
            self.add_allow_reason("a rule allows exactly this line", Some(id));
            return;
        }
        let text = format!("the command is not fully understood: {}", doubt.text);
        self.add_objection(
            self.unparsed_objection_kind(None),
            PolicyCheck::Risks,
            VerdictReason::new(Code::NobodyToAsk, text),
        );
    }

    /// How strong the question about a command is that cannot be read: where a deny or ask rule might be meant,
    /// neither mode bypass nor a hook answers it.
    fn unparsed_objection_kind(&self, program: Option<&str>) -> ObjectionKind {
        let mut guarded = [&self.compiled.deny, &self.compiled.ask].into_iter();
        if guarded.any(|index| index.may_apply_to(program)) {
            ObjectionKind::Explicit
        } else {
            ObjectionKind::ByDefault
        }
    }

    /// Deny and ask rules for one spelling of a command.
    fn check_command_text(&mut self, text: &str) {
        let find = |index: &ActionIndex| index.commands.find(text);
        let (denied, asked) = (find(&self.compiled.deny), find(&self.compiled.ask));
        if let Some(id) = denied {
            let text = format!("a rule denies `{text}`");
            self.add_rule_objection(
                ObjectionKind::Deny,
                PolicyCheck::DenyRules,
                Code::DeniedByRule,
                text,
                id,
            );
        }
        if let Some(id) = asked {
            let text = format!("a rule wants a person to be asked about `{text}`");
            self.add_rule_objection(
                ObjectionKind::Explicit,
                PolicyCheck::AskRules,
                Code::NobodyToAsk,
                text,
                id,
            );
        }
    }

    /// One simple command.
    fn check_simple_command(&mut self, part: &CommandPart, cover: Option<CommandCoverage>) {
        let before = self.objections.len();
        for text in &part.deny_texts {
            self.check_command_text(text);
        }
        let rule = match cover {
            Some(
                CommandCoverage::Exact(id)
                | CommandCoverage::Rule(id)
                | CommandCoverage::Grant(ToolWideGrant::Rule(id)),
            ) => Some(id),
            Some(
                CommandCoverage::Grant(ToolWideGrant::Book)
                | CommandCoverage::ReadOnly
                | CommandCoverage::AcceptEdits
                | CommandCoverage::Nothing,
            )
            | None => None,
        };
        let exactly = matches!(cover, Some(CommandCoverage::Exact(_)));
        let via = match cover {
            Some(_) => AccessOrigin::Granted { exactly },
            None => AccessOrigin::Command,
        };
        self.skips_hidden = skips_hidden(part);
        for inferred in &part.effects {
            self.check_inferred_effect(inferred, via, rule);
        }
        if !part.only_reads() && cover != Some(CommandCoverage::Nothing) {
            self.ask_in_plan_mode("a command that may change something would run");
        }
        match cover {
            Some(cover) => self.add_coverage_reason(cover, part),
            None if part.allow_text.is_some() => {
                let suggestion = self.command_rule(part);
                self.add_uncovered_objection(format!("no rule allows `{}`", part.text), suggestion);
            }
            None => {
                let force = self.unparsed_objection_kind(part.program.as_deref());
                let text = format!("what `{}` does cannot be known before it runs", part.text);
                self.add_objection(force, PolicyCheck::Grants, VerdictReason::new(Code::NobodyToAsk, text));
            }
        }
        let worst = self.objections.get(before..).unwrap_or_default();
        let worst = worst.iter().max_by_key(|objection| objection.kind);
        self.parts.push(match worst {
            Some(objection) => CommandVerdict {
                text: part.text.clone(),
                action: match objection.kind {
                    ObjectionKind::ByDefault | ObjectionKind::Explicit => RuleAction::Ask,
                    ObjectionKind::Deny => RuleAction::Deny,
                },
                reason: objection.reason.text.clone(),
                rule: objection.reason.rule.clone(),
            },
            None => CommandVerdict {
                text: part.text.clone(),
                action: RuleAction::Allow,
                reason: self.allow_reasons.last().map_or_else(String::new, |(text, _)| text.to_string()),
                rule: rule.and_then(|id| self.reference(id)),
            },
        });
    }

    /// What covers a part, if anything does.
    fn find_coverage(&self, part: &CommandPart) -> Option<CommandCoverage> {
        let allow = &self.compiled.allow;
        let Some(text) = part.allow_text.as_deref() else {
            // Words that are only known at run time: no rule can speak of them, but the kernel bounds what they reach.
            let unseen = part.reads_unknown_paths
                && self.unparsed_objection_kind(part.program.as_deref()) == ObjectionKind::ByDefault;
            return (unseen && self.is_allowed_as_read_only(part)).then_some(CommandCoverage::ReadOnly);
        };
        if text.is_empty() {
            return Some(CommandCoverage::Nothing);
        }
        let exact = allow.commands.find_exact(text).or_else(|| allow.commands.find_exact(&part.text));
        if let Some(id) = exact {
            return Some(CommandCoverage::Exact(id));
        }
        // A wildcard grants the plain use of a program, not options that make it another one.
        if part.plain {
            if let Some(id) = allow.commands.find_wildcard(text) {
                return Some(CommandCoverage::Rule(id));
            }
            let bare = allow.tools.find_name("Bash").map(ToolWideGrant::Rule);
            if let Some(grant) = self.grant.or(bare) {
                return Some(CommandCoverage::Grant(grant));
            }
        }
        if self.is_allowed_as_read_only(part) {
            return Some(CommandCoverage::ReadOnly);
        }
        (self.mode == Mode::AcceptEdits && is_known_edit(part)).then_some(CommandCoverage::AcceptEdits)
    }

    /// Whether a command passes because it can do nothing but read.
    fn is_allowed_as_read_only(&self, part: &CommandPart) -> bool {
        self.compiled.auto_read_only && self.is_known_read_only(part)
    }

    /// Whether it is known that a command can do nothing but read. Its redirects are judged by themselves.
    fn is_known_read_only(&self, part: &CommandPart) -> bool {
        let by_itself = |inferred: &&InferredEffect| inferred.origin != EffectOrigin::Redirect;
        let mut own = part.effects.iter().filter(by_itself).map(|inferred| &inferred.effect);
        // Where the kernel does not hold a command to its effects, only what is plain and fully known passes.
        let enforced = self.compiled.enforcement == Enforcement::Kernel;
        let bounded = enforced || self.plain_syntax && !part.reads_unknown_paths;
        bounded
            && part.read_only
            && !part.unknown_effects
            && part.chosen_by.iter().all(|path| self.is_missing(path))
            && own.all(|effect| matches!(effect, Effect::Read { .. }))
    }

    fn is_missing(&self, path: &AbsPath) -> bool {
        self.request
            .facts
            .get(path)
            .is_some_and(|fact| fact.kind == EntryKind::Missing && fact.problem.is_none())
    }

    fn add_coverage_reason(&mut self, cover: CommandCoverage, part: &CommandPart) {
        match cover {
            CommandCoverage::Exact(id) | CommandCoverage::Rule(id) => {
                self.add_allow_reason("a rule allows the command", Some(id))
            }
            CommandCoverage::Grant(grant) => self.add_grant_reason(grant),
            CommandCoverage::ReadOnly => self.add_allow_reason(format!("`{}` only reads", part.text), None),
            CommandCoverage::AcceptEdits => {
                self.add_allow_reason("mode acceptEdits allows changes inside the workspace", None)
            }
            CommandCoverage::Nothing => self.add_allow_reason("nothing runs", None),
        }
    }

    fn check_inferred_effect(&mut self, inferred: &InferredEffect, via: AccessOrigin, rule: Option<u32>) {
        let via = match inferred.origin {
            EffectOrigin::Redirect => AccessOrigin::Redirect,
            EffectOrigin::Argument | EffectOrigin::Program => via,
        };
        match &inferred.effect {
            Effect::Read { path, scope } => {
                if let Some(glob) = &inferred.glob {
                    self.check_glob(inferred, glob, via);
                }
                self.check_read(path, *scope, via);
            }
            Effect::Write { path, kind } => {
                if let Some(glob) = &inferred.glob {
                    self.check_glob(inferred, glob, via);
                }
                self.check_write(path, *kind, via);
                let directory =
                    self.request.facts.get(path).is_some_and(|fact| fact.kind == EntryKind::Directory);
                for entry in &inferred.entries {
                    if entry.contains(['*', '?', '[']) {
                        self.check_glob_pattern(&format!("{path}/{entry}"), path, ReadOrWrite::Write, true);
                    } else if directory {
                        self.check_write(&path.join(entry), *kind, via);
                    }
                }
            }
            Effect::Fetch { url } => self.check_inferred_fetch(url, via, rule),
            Effect::Exec { .. }
            | Effect::Search { .. }
            | Effect::Delegate { .. }
            | Effect::Skill { .. }
            | Effect::Remote { .. }
            | Effect::Ask
            | Effect::State { .. }
            | Effect::Opaque => {
                self.add_uncovered_objection("the command does something that no rule speaks of", None)
            }
        }
    }
}

/// What git does in a line, by what its commands are allowed by.
fn git_terms(parts: &[CommandPart], covers: &[Option<CommandCoverage>]) -> GitTerms {
    let mut covered = parts.iter().zip(covers);
    let relies = covered.any(|(part, cover)| part.runs_git() && *cover == Some(CommandCoverage::ReadOnly));
    let usage = match (
        parts.iter().any(CommandPart::runs_git),
        relies,
        parts.iter().all(CommandPart::reads_if_bounded),
    ) {
        (false, _, _) => GitUse::Absent,
        (true, true, true) => GitUse::Reads,
        (true, true, false) => GitUse::Mixed,
        (true, false, true) => GitUse::GrantedReads,
        (true, false, false) => GitUse::Granted,
    };
    GitTerms { usage, searches: parts.iter().any(CommandPart::searches_by_git) }
}

/// Whether a command changes files, and only such as its words name.
fn is_known_edit(part: &CommandPart) -> bool {
    part.file_edit && !part.unknown_effects
}

/// Whether a search program leaves out names that begin with a dot, because no option tells it not to.
fn skips_hidden(part: &CommandPart) -> bool {
    let letters = match part.program.as_deref() {
        Some("rg") => "u.",
        Some("fd") => "uH",
        Some("ag") => "uat",
        Some("tree") => "a",
        Some(_) | None => return false,
    };
    let shows = |word: &str| match word.strip_prefix("--") {
        Some(long) => ["h", "u", "a"].into_iter().any(|start| long.starts_with(start)),
        None => word.strip_prefix('-').is_some_and(|flags| flags.contains(|c| letters.contains(c))),
    };
    part.argv.iter().all(|word| word.live.is_none() && !shows(&word.text))
        && !(part.program.as_deref() == Some("rg") && has_glob_for_hidden(part))
}

/// Whether a glob for `rg` may match a hidden name: what a glob asks for is looked at although it is hidden.
fn has_glob_for_hidden(part: &CommandPart) -> bool {
    let mut words = part.argv.iter().map(|word| word.text.as_str());
    let hidden = |glob: &str| {
        let name = glob.rsplit('/').next().unwrap_or(glob);
        // `*.rs` asks for an extension; `.env` is one too, as far as a glob goes.
        let by_extension = name.strip_prefix("*.").is_some_and(|extension| {
            !extension.starts_with("env")
                && extension.chars().all(|character| character.is_ascii_alphanumeric())
        });
        let plain = name.starts_with(|first: char| first == '_' || first.is_alphanumeric());
        !glob.starts_with('!') && !by_extension && !plain
    };
    while let Some(word) = words.next() {
        let glob = match word.split_once('=') {
            Some(("--glob" | "--iglob", glob)) => Some(glob),
            _ if matches!(word, "--glob" | "--iglob") => words.next(),
            _ => match word
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'))
                .and_then(|rest| rest.split_once('g'))
            {
                Some((_, "")) => words.next(),
                attached => attached.map(|(_, glob)| glob),
            },
        };
        if glob.is_some_and(hidden) {
            return true;
        }
    }
    false
}
