//! What covers a simple command, so that it runs without a question.

use super::evaluation::{PolicyEvaluation, ToolWideGrant};
use super::objection::ObjectionKind;
use crate::raw::Enforcement;
use toolgate_proto::{AbsPath, Effect, EntryKind, Mode};
use toolgate_shell_syntax::{CommandPart, EffectOrigin, InferredEffect};

/// What covers a simple command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandCoverage {
    /// A rule for exactly this command, or for exactly this line.
    Exact(u32),
    /// A rule with a wildcard.
    Rule(u32),
    /// A rule for the tool, or the policy book.
    Grant(ToolWideGrant),
    /// The analysis found that it can only read.
    ReadOnly,
    /// Mode acceptEdits allows the writes that the analysis found.
    AcceptEdits,
    /// The part runs no command, such as a redirect without one.
    Nothing,
}

impl CommandCoverage {
    /// The rule behind the coverage, if there is one.
    pub(crate) fn rule(self) -> Option<u32> {
        match self {
            Self::Exact(id) | Self::Rule(id) | Self::Grant(ToolWideGrant::Rule(id)) => Some(id),
            Self::Grant(ToolWideGrant::Book) | Self::ReadOnly | Self::AcceptEdits | Self::Nothing => None,
        }
    }

    /// The rule behind the coverage, if it spells out the command.
    pub(crate) fn exact_rule(self) -> Option<u32> {
        match self {
            Self::Exact(id) => Some(id),
            Self::Rule(_) | Self::Grant(_) | Self::ReadOnly | Self::AcceptEdits | Self::Nothing => None,
        }
    }

    /// Whether the command was allowed whatever it does, not for the effects that the analysis found.
    pub(crate) fn is_for_whole_command(self) -> bool {
        match self {
            Self::Exact(_) | Self::Rule(_) | Self::Grant(_) => true,
            Self::ReadOnly | Self::AcceptEdits | Self::Nothing => false,
        }
    }
}

impl PolicyEvaluation<'_> {
    /// What covers a simple command, if anything does.
    pub(crate) fn find_coverage(&self, part: &CommandPart) -> Option<CommandCoverage> {
        let compiled = self.compiled;
        let Some(text) = part.allow_text.as_deref() else {
            // Some words are only known at run time. No rule can match them, but the kernel limits what they reach.
            let is_unrestricted = part.reads_unknown_paths
                && self.unparsed_objection_kind(part.program.as_deref()) == ObjectionKind::ByDefault;
            return (is_unrestricted && self.is_allowed_as_read_only(part))
                .then_some(CommandCoverage::ReadOnly);
        };
        if text.is_empty() {
            return Some(CommandCoverage::Nothing);
        }
        let find_exact = |text: &str| compiled.find_allow(|allow| allow.commands.find_exact(text));
        let exact = find_exact(text).or_else(|| find_exact(&part.text));
        if let Some(id) = exact {
            return Some(CommandCoverage::Exact(id));
        }
        // A wildcard allows the plain use of a program, not options that make it run other programs.
        if part.plain {
            if let Some(id) = compiled.find_allow(|allow| allow.commands.find_wildcard(text)) {
                return Some(CommandCoverage::Rule(id));
            }
            let bare = compiled.find_allow(|allow| allow.tools.find_name("Bash")).map(ToolWideGrant::Rule);
            if let Some(grant) = self.grant.or(bare)
                && !self.may_run_restricted(part)
            {
                return Some(CommandCoverage::Grant(grant));
            }
        }
        if self.is_allowed_as_read_only(part) {
            return Some(CommandCoverage::ReadOnly);
        }
        (self.mode == Mode::AcceptEdits && is_known_edit(part)).then_some(CommandCoverage::AcceptEdits)
    }

    /// Whether a command runs code, and a deny or ask rule is for certain commands, which the code may run. A rule for
    /// all commands does not say that the code may run those too; a rule for the interpreter does.
    pub(crate) fn may_run_restricted(&self, part: &CommandPart) -> bool {
        let mut restricting = [&self.compiled.deny, &self.compiled.ask].into_iter();
        part.runs_code && restricting.any(|index| !index.commands.is_empty())
    }

    /// Whether the settings let a command run without a rule because it only reads.
    fn is_allowed_as_read_only(&self, part: &CommandPart) -> bool {
        self.compiled.auto_read_only && self.is_known_read_only(part)
    }

    /// Whether it is certain that a command only reads. Its redirects are checked as accesses of their own.
    pub(crate) fn is_known_read_only(&self, part: &CommandPart) -> bool {
        let is_own = |inferred: &&InferredEffect| inferred.origin != EffectOrigin::Redirect;
        let mut own_effects = part.effects.iter().filter(is_own).map(|inferred| &inferred.effect);
        // Without kernel enforcement an error of the analysis would be an access, so only plain lines count.
        let is_enforced = self.compiled.enforcement == Enforcement::Kernel;
        let is_bounded = is_enforced || self.plain_syntax && !part.reads_unknown_paths;
        is_bounded
            && part.read_only
            && !part.unknown_effects
            && part.chosen_by.iter().all(|path| self.is_missing(path))
            && !part.option_globs.iter().any(|glob| self.may_match_option(glob))
            && own_effects.all(|effect| matches!(effect, Effect::Read { .. }))
    }

    /// Whether a glob may match a file whose name begins like an option, an operator of `find` or a response file.
    fn may_match_option(&self, glob: &str) -> bool {
        let Some(matches) = self.request.facts.glob(glob) else { return true };
        let literal = glob.find(['*', '?', '[']).and_then(|end| glob.get(..end)).unwrap_or(glob);
        let directory = literal.rsplit_once('/').map_or("", |(directory, _)| directory);
        matches.iter().any(|path| {
            let path = path.to_string();
            let name = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
            name.is_none_or(|name| name.starts_with(['-', '+', '@', '(', ')', '!', ',']))
        })
    }

    /// Whether it is certain that nothing exists at a path.
    fn is_missing(&self, path: &AbsPath) -> bool {
        self.request
            .facts
            .get(path)
            .is_some_and(|fact| fact.kind == EntryKind::Missing && fact.problem.is_none())
    }
}

/// Whether a command writes files, and only those that its words name.
pub(crate) fn is_known_edit(part: &CommandPart) -> bool {
    part.file_edit && !part.unknown_effects
}
