//! Allow rules that a question offers, and the change of settings that would allow a call.
//!
//! A suggestion is as narrow as it can be and still be useful: users tend to accept what is offered, so an offered
//! `Bash(git *)` would become a rule.

use super::evaluation::PolicyEvaluation;
use super::objection::{ObjectionKind, PolicyCheck, PolicyObjection};
use crate::lint::{ARBITRARY_CODE_RUNNERS, over_broad_reason};
use crate::raw::RuleAction;
use crate::rule::command::CommandPattern;
use crate::rule::{PermissionRule, syntax};
use toolgate_proto::{AbsPath, RiskLevel, RuleSuggestion};
use toolgate_shell_syntax::CommandPart;

/// How many suggestions a question offers: more than a handful is not read.
const MAX_SUGGESTIONS: usize = 5;

/// Programs whose second word is a subcommand, so that a prefix rule for both words is narrow.
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

/// Subcommands that run or change anything, so that a prefix rule for both words is not narrow.
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
    /// The rules that a question offers.
    pub(crate) fn suggestions(&self) -> Vec<RuleSuggestion> {
        let mut out: Vec<RuleSuggestion> = Vec::new();
        // A command that could ruin the machine is asked about every time, so no rule for it is offered.
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

    /// The narrowest useful rule for a simple command: program and subcommand, or the exact text.
    pub(crate) fn suggest_command_rule(&self, part: &CommandPart) -> Option<String> {
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
        Some(syntax::write_rule("Bash", &content))
    }

    /// The smallest change of settings that would allow the call, as an imperative sentence.
    pub(crate) fn suggest_settings_change(
        &self,
        objection: &PolicyObjection,
        suggestions: &[RuleSuggestion],
    ) -> Option<String> {
        if let Some(rule) = &objection.reason.rule
            && objection.check != PolicyCheck::Grants
        {
            let verb = if objection.check == PolicyCheck::Usable { "fix" } else { "remove or narrow" };
            return Some(format!("{verb} the {rule}"));
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
                Some("switch to another mode".to_owned())
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

/// Whether a rule allows no more than a user means who approves one call.
fn is_narrow(rule: &str) -> bool {
    let Ok(parsed) = PermissionRule::parse(rule, RuleAction::Allow, &AbsPath::root()) else { return false };
    if over_broad_reason(&parsed).is_some() {
        return false;
    }
    let allows_any_code = match &parsed {
        PermissionRule::Command(CommandPattern::Prefix(prefix)) => {
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
    !allows_any_code
}
