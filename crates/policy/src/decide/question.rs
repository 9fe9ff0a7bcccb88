//! The question that an approver gets, and how risky the call is.

use super::evaluation::PolicyEvaluation;
use super::objection::{ObjectionKind, PolicyObjection};
use toolgate_proto::{
    AbsPath, ApprovalQuestion, Code, Effect, Mode, RiskLevel, RuleSuggestion, Verdict, VerdictReason,
};
use toolgate_shell_syntax::CommandPart;

/// The kind of the warning about a file that may hold secrets.
pub(super) const SENSITIVE_PATH_WARNING: &str = "sensitive_path";

impl PolicyEvaluation<'_> {
    /// Asks, except in mode `dontAsk` or if settings say so: this is the one place where they turn a question into a denial.
    pub(crate) fn ask_question(
        &self,
        objection: PolicyObjection,
        suggestions: Vec<RuleSuggestion>,
    ) -> Verdict {
        let explicit = objection.kind == ObjectionKind::Explicit;
        let no_rule_reason = suggestions.is_empty().then(|| self.explain_missing_rule(&objection).to_owned());
        let reason = objection.reason;
        if self.mode == Mode::DontAsk {
            let text = format!("{}, and mode dontAsk denies instead of asking", reason.text);
            return Verdict::Deny(VerdictReason::new(Code::DeniedByMode, text).with_rule(reason.rule));
        }
        if self.compiled.raw.deny_questions {
            let text =
                format!("{}, and `permissions.denyInsteadOfPrompting` denies instead of asking", reason.text);
            return Verdict::Deny(VerdictReason::new(Code::DeniedByMode, text).with_rule(reason.rule));
        }
        let intent = self.request.intent;
        let tool = self.request.tool.name.clone();
        let mut question = ApprovalQuestion::new(tool, intent.summary.clone(), self.risk(), reason);
        question.effects = self.effects().cloned().collect();
        question.locations = self.locations();
        question.warnings.clone_from(&self.warnings);
        question.suggestions = suggestions;
        question.no_rule_reason = no_rule_reason;
        question.explicit = explicit;
        Verdict::Ask(question)
    }

    /// Everything that the call would do: the declared effects, then those inferred from its command lines.
    pub(crate) fn effects(&self) -> impl Iterator<Item = &Effect> {
        let inferred = self.request.survey.inferred_effects().map(|inferred| &inferred.effect);
        self.request.intent.effects.iter().chain(inferred)
    }

    /// The paths, commands and addresses concerned, without repetition. A symlink is shown with its target.
    fn locations(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for effect in self.effects() {
            let location = match effect.path().map(|path| (path, self.real_path(path))) {
                Some((path, real)) if *path != real => format!("{path} → {real}"),
                Some(_) | None => effect.location(),
            };
            if !out.contains(&location) {
                out.push(location);
            }
        }
        out
    }

    /// The real path, or the lexical form of a path that was not resolved.
    fn real_path(&self, path: &AbsPath) -> AbsPath {
        self.request.facts.get(path).map_or_else(|| path.lexical(), |fact| fact.real.clone())
    }

    /// The risk of the call: what the policy book or the effects say, raised by dangers in its commands.
    pub(crate) fn risk(&self) -> RiskLevel {
        let own = self.request.intent.effects.iter().map(effect_risk).max().unwrap_or(RiskLevel::Low);
        let base = self.compiled.books.risk(self.request.tool).unwrap_or(own);
        let only_reads = !self.parts.is_empty()
            && self.request.survey.commands.iter().all(|command| {
                command.analysis.doubt.is_none() && command.analysis.parts.iter().all(CommandPart::only_reads)
            });
        let base = if only_reads && base == RiskLevel::High { RiskLevel::Low } else { base };
        // What a call may reveal weighs as much as what it may damage, also for a command that only reads.
        let reveals = self.warnings.iter().any(|warning| warning.kind == SENSITIVE_PATH_WARNING);
        let secrets = if reveals { RiskLevel::High } else { RiskLevel::Low };
        base.max(secrets).max(self.danger.unwrap_or(RiskLevel::Low))
    }
}

/// The risk of an effect by its kind.
fn effect_risk(effect: &Effect) -> RiskLevel {
    match effect {
        Effect::Read { .. } | Effect::Ask | Effect::State { .. } => RiskLevel::Low,
        Effect::Write { .. } | Effect::Search { .. } | Effect::Fetch { .. } | Effect::Skill { .. } => {
            RiskLevel::Medium
        }
        Effect::Exec { .. } | Effect::Delegate { .. } | Effect::Remote { .. } | Effect::Opaque => {
            RiskLevel::High
        }
    }
}
