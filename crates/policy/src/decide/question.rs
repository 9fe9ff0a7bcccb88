//! What a person is asked, and what would have spared the question.

use super::effect_path;
use super::evaluation::{ObjectionKind, PolicyCheck, PolicyEvaluation, PolicyObjection};
use crate::lint::{ARBITRARY_CODE_RUNNERS, over_broad_reason};
use crate::raw::RuleAction;
use crate::rule::{PermissionRule, grammar};
use toolgate_proto::{
    AbsPath, ApprovalQuestion, Code, Effect, Mode, RiskLevel, RuleSuggestion, Verdict, VerdictReason,
};
use toolgate_shell_syntax::CommandPart;

/// Most suggestions that a person is shown.
const MAX_SUGGESTIONS: usize = 5;

/// Programs whose second word says what they do, so that a rule for both words is narrow.
const PROGRAMS_WITH_SUBCOMMANDS: &[&str] = &[
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "cargo",
    "go",
    "git",
    "gh",
    "glab",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "pdm",
    "conda",
    "bundle",
    "gem",
    "composer",
    "mvn",
    "gradle",
    "dotnet",
    "swift",
    "rustup",
    "apt",
    "apt-get",
    "brew",
    "systemctl",
    "aws",
    "gcloud",
    "az",
    "make",
    "just",
    "nx",
    "turbo",
];

/// Second words that run or change anything, so that a prefix rule for both words is not narrow.
const OPEN_ENDED_SUBCOMMANDS: &[&str] = &[
    "run",
    "exec",
    "x",
    "dlx",
    "config",
    "push",
    "reset",
    "clean",
    "rebase",
    "filter-branch",
    "-c",
    "-C",
    "apply",
    "delete",
    "rm",
    "compose",
    "shell",
    "eval",
    "publish",
    "tool",
];

impl PolicyEvaluation<'_> {
    /// The one place where a question becomes a denial in mode `dontAsk`.
    pub(crate) fn ask(&self, objection: PolicyObjection, suggestions: Vec<RuleSuggestion>) -> Verdict {
        let explicit = objection.kind == ObjectionKind::Explicit;
        let reason = objection.reason;
        if self.mode == Mode::DontAsk {
            let text = format!("{}, and mode dontAsk does not ask", reason.text);
            return Verdict::Deny(VerdictReason { text, code: Code::DeniedByMode, rule: reason.rule });
        }
        let intent = self.request.intent;
        let tool = self.request.tool.name.clone();
        let mut question = ApprovalQuestion::new(tool, intent.summary.clone(), self.risk(), reason);
        question.effects = self.effects().cloned().collect();
        question.locations = self.locations();
        question.warnings.clone_from(&self.warnings);
        question.suggestions = suggestions;
        question.explicit = explicit;
        Verdict::Ask(question)
    }

    /// Everything the call would do: what the tool says, and what its commands show.
    fn effects(&self) -> impl Iterator<Item = &Effect> {
        let inferred = self.request.survey.commands.iter().flat_map(|command| &command.analysis.parts);
        let inferred = inferred.flat_map(|part| &part.effects).map(|inferred| &inferred.effect);
        self.request.intent.effects.iter().chain(inferred)
    }

    /// The places concerned. Where a path leads elsewhere, the person sees where.
    fn locations(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for effect in self.effects() {
            let location = match effect_path(effect).map(|path| (path, self.real_path(path))) {
                Some((path, real)) if *path != real => format!("{path} → {real}"),
                Some(_) | None => effect.location(),
            };
            if !out.contains(&location) {
                out.push(location);
            }
        }
        out
    }

    fn real_path(&self, path: &AbsPath) -> AbsPath {
        self.request.facts.get(path).map_or_else(|| path.lexical(), |fact| fact.real.clone())
    }

    /// How much could go wrong.
    pub(crate) fn risk(&self) -> RiskLevel {
        let own = self.request.intent.effects.iter().map(effect_risk).max().unwrap_or(RiskLevel::Low);
        let named = self.compiled.books.risk(self.request.tool).unwrap_or(own);
        let only_reads = !self.parts.is_empty()
            && self.request.survey.commands.iter().all(|command| {
                command.analysis.doubt.is_none() && command.analysis.parts.iter().all(CommandPart::only_reads)
            });
        let base = if only_reads && named == RiskLevel::High { RiskLevel::Low } else { named };
        base.max(self.danger.unwrap_or(RiskLevel::Low))
    }

    pub(crate) fn suggestions(&self) -> Vec<RuleSuggestion> {
        let mut out: Vec<RuleSuggestion> = Vec::new();
        // What could ruin the machine is looked at each time it comes.
        if self.danger == Some(RiskLevel::Critical) {
            return out;
        }
        for rule in &self.suggestions {
            if out.len() < MAX_SUGGESTIONS && !out.iter().any(|other| other.rule == *rule) && is_narrow(rule)
            {
                out.push(RuleSuggestion::new(rule));
            }
        }
        out
    }

    /// The narrowest useful rule for a simple command.
    pub(crate) fn command_rule(&self, part: &CommandPart) -> Option<String> {
        let text = part.allow_text.as_deref().filter(|text| !text.is_empty())?;
        let mut words = text.split(' ');
        let (program, second) = (words.next()?, words.next());
        let third = words.next();
        let prefix = match second {
            Some(second)
                if part.plain
                    && PROGRAMS_WITH_SUBCOMMANDS.contains(&program)
                    && !second.starts_with('-')
                    && !OPEN_ENDED_SUBCOMMANDS.contains(&second)
                    && third.is_some() =>
            {
                Some(format!("{program} {second} *"))
            }
            Some(_) | None => None,
        };
        let exact = (!text.contains('*') && !text.chars().any(char::is_control)).then(|| text.to_owned());
        let content = prefix.or(exact)?;
        Some(grammar::write_rule("Bash", &content))
    }

    /// The smallest change of settings that would let the call pass.
    pub(crate) fn suggest_settings_change(
        &self,
        objection: &PolicyObjection,
        suggestions: &[RuleSuggestion],
    ) -> Option<String> {
        if let Some(rule) = &objection.reason.rule
            && objection.check != PolicyCheck::Grants
        {
            return Some(match objection.check {
                PolicyCheck::Usable => format!("repair the {rule}"),
                PolicyCheck::DenyRules
                | PolicyCheck::Mode
                | PolicyCheck::Hooks
                | PolicyCheck::Book
                | PolicyCheck::Protected
                | PolicyCheck::AskRules
                | PolicyCheck::Risks
                | PolicyCheck::Grants => format!("remove or narrow the {rule}"),
            });
        }
        match (objection.kind, objection.check) {
            (ObjectionKind::ByDefault, _) => {
                let rules: Vec<String> =
                    suggestions.iter().map(|suggestion| format!("`{}`", suggestion.rule)).collect();
                match rules.as_slice() {
                    [] => None,
                    [rule] => Some(format!("add the allow rule {rule}")),
                    rules => Some(format!("add the allow rules {}", rules.join(", "))),
                }
            }
            (ObjectionKind::Explicit | ObjectionKind::Deny, PolicyCheck::Mode) => {
                Some("use another mode".to_owned())
            }
            (ObjectionKind::Explicit | ObjectionKind::Deny, PolicyCheck::Hooks) => {
                Some("do what the hook's message says".to_owned())
            }
            (
                ObjectionKind::Explicit | ObjectionKind::Deny,
                PolicyCheck::Usable
                | PolicyCheck::DenyRules
                | PolicyCheck::Book
                | PolicyCheck::Protected
                | PolicyCheck::AskRules
                | PolicyCheck::Risks
                | PolicyCheck::Grants,
            ) => None,
        }
    }
}

/// Whether a rule lets no more pass than people mean when they say yes once.
fn is_narrow(rule: &str) -> bool {
    let Ok(parsed) = PermissionRule::parse(rule, RuleAction::Allow, &AbsPath::root()) else { return false };
    if over_broad_reason(&parsed).is_some() {
        return false;
    }
    let opens = match &parsed {
        PermissionRule::Command(crate::rule::bash::CommandPattern::Prefix(prefix)) => {
            let mut words = prefix.split(' ');
            let program = words.next().unwrap_or("").rsplit('/').next().unwrap_or("");
            words.next().is_none() && ARBITRARY_CODE_RUNNERS.contains(&program)
        }
        PermissionRule::Command(_)
        | PermissionRule::Tool(_)
        | PermissionRule::Mcp(_)
        | PermissionRule::Path(_)
        | PermissionRule::Domain(_)
        | PermissionRule::Agent(_)
        | PermissionRule::Skill(_)
        | PermissionRule::Param(_) => false,
        PermissionRule::Never(..) => true,
    };
    !opens
}

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
