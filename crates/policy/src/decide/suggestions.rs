//! Allow rules that a question offers, and the change of settings that would allow a call.
//!
//! A suggestion is the call as it is: users tend to accept what is offered, so an offered `Bash(git *)` would become a
//! rule. Where calls of the same kind are likely to follow, a wider rule is offered beside it, such as `Bash(npm run *)`.

use super::evaluation::PolicyEvaluation;
use super::objection::{ObjectionKind, ObjectionRemedy, PolicyCheck, PolicyObjection};
use super::standard_input::runs_standard_input;
use crate::advice::{SettingsAdvice, SettingsChange};
use crate::lint::{ARBITRARY_CODE_RUNNERS, over_broad_reason};
use crate::raw::RuleAction;
use crate::rule::command::CommandPattern;
use crate::rule::{PermissionRule, syntax};
use toolgate_proto::{AbsPath, Mode, RiskLevel, RuleRef, RuleSuggestion};
use toolgate_shell_syntax::CommandPart;

/// How many rules a question offers. A line of more commands is asked about every time, because a part of its rules
/// would not spare the question.
const MAX_SUGGESTIONS: usize = 8;

/// Programs whose second word is a subcommand, so that a prefix rule for both words is narrow.
pub(crate) const PROGRAMS_WITH_SUBCOMMANDS: &[&str] = &[
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

/// Programs whose subcommand `run` starts a script that the project defines, not anything that the line names.
const SCRIPT_RUNNERS: &[&str] = &["npm", "pnpm", "yarn", "bun"];

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
    /// The rules that a question offers: none, unless all of them together spare the same call the next question. A part
    /// of them would grant something for good, and the user would be asked again.
    pub(crate) fn suggestions(&self) -> Vec<RuleSuggestion> {
        let mut out: Vec<RuleSuggestion> = Vec::new();
        // An answer cannot add a managed rule, and no other counts.
        if self.compiled.managed.allow_managed_permission_rules_only {
            return out;
        }
        // A rule for a wrapper (`sudo sh`) must not allow the command that it runs where a rule for that is not offered.
        let has_no_rule = |objection: &PolicyObjection| {
            matches!(objection.remedy, ObjectionRemedy::LineRule(_) | ObjectionRemedy::NoRule(_))
        };
        if self.objections.iter().any(has_no_rule) {
            return out;
        }
        // A command that could ruin the machine is asked about every time, so no rule for it is offered.
        if self.danger == Some(RiskLevel::Critical) {
            return out;
        }
        for suggestion in self.remedy_rules() {
            let is_new = !out.iter().any(|other| other.rule == suggestion.rule);
            if is_new && is_narrow(&suggestion.rule) {
                let wider = suggestion.wider.clone().filter(|wider| is_narrow(wider));
                out.push(RuleSuggestion::new(&suggestion.rule).with_wider(wider));
            }
        }
        let is_too_long = out.len() > MAX_SUGGESTIONS;
        if out.is_empty()
            || is_too_long
            || !self.is_allowed_with(out.iter().map(|offered| offered.rule.as_str()))
        {
            return Vec::new();
        }
        let has_wider = out.iter().any(|offered| offered.wider.is_some());
        if has_wider && !self.is_allowed_with(out.iter().map(widest_rule)) {
            out = out.into_iter().map(|offered| offered.with_wider(None)).collect();
        }
        out
    }

    /// Why a question offers no rule.
    pub(crate) fn explain_missing_rule<'o>(&'o self, decisive: &'o PolicyObjection) -> &'o str {
        if self.danger == Some(RiskLevel::Critical) {
            return "a critical command is asked about every time";
        }
        if self.compiled.managed.allow_managed_permission_rules_only {
            return "only managed rules count";
        }
        let is_explicit = decisive.kind == ObjectionKind::Explicit;
        // Where rules would remove the decisive objection, another one is the reason.
        let is_removable = |objection: &&PolicyObjection| {
            matches!(objection.remedy, ObjectionRemedy::AllowRules(_)) && !is_explicit
        };
        let other = self.objections.iter().find(|objection| !is_removable(objection));
        let blocking = if is_removable(&decisive) { other.unwrap_or(decisive) } else { decisive };
        match &blocking.remedy {
            ObjectionRemedy::Rule => "the rule that asks counts every time",
            ObjectionRemedy::Mode => "the mode asks about every change",
            ObjectionRemedy::Hook => "the hook asks every time",
            ObjectionRemedy::Setting(_)
            | ObjectionRemedy::SettingAndUser(_)
            | ObjectionRemedy::Command(_) => "a rule alone would not allow it",
            ObjectionRemedy::AllowRules(_) if !is_explicit => match self.remedy_rules().count() {
                count if count > MAX_SUGGESTIONS => "the call would need too many",
                _ if self.remedy_rules().all(|suggestion| is_narrow(&suggestion.rule)) => {
                    "those for its parts would not allow it"
                }
                _ => "one that covers the call would allow much more",
            },
            ObjectionRemedy::AllowRules(_) | ObjectionRemedy::LineRule(_) => {
                "only one for exactly this call allows it, if you add it to your settings"
            }
            ObjectionRemedy::User => "such a call is asked about every time",
            ObjectionRemedy::NoRule(why) => why,
        }
    }

    /// The rule for exactly a simple command, and the one for its program and subcommand. A command that cannot be
    /// written in a rule has only the latter, and one that runs its standard input has none.
    pub(crate) fn suggest_command_rule(&self, part: &CommandPart) -> Option<RuleSuggestion> {
        let text = part.allow_text.as_deref().filter(|text| !text.is_empty())?;
        if runs_standard_input(part.argv.iter().map(|word| word.text.as_str())) {
            return None;
        }
        let wider = subcommand_prefix(part, text).map(|prefix| syntax::write_rule("Bash", &prefix));
        let is_writable = !text.contains('*') && !text.chars().any(char::is_control);
        match is_writable {
            true => Some(RuleSuggestion::new(syntax::write_rule("Bash", text)).with_wider(wider)),
            false => wider.map(RuleSuggestion::new),
        }
    }

    /// Why [`PolicyEvaluation::suggest_command_rule`] has no rule for a command, if a rule could cover it at all.
    pub(crate) fn explain_missing_command_rule(&self, part: &CommandPart) -> Option<String> {
        let text = part.allow_text.as_deref()?;
        if runs_standard_input(part.argv.iter().map(|word| word.text.as_str())) {
            return Some("a rule for it would allow every program on its standard input".to_owned());
        }
        let program = text.split(' ').next().filter(|program| program.chars().all(is_plain_char))?;
        // A wildcard only covers the plain use of a program.
        (part.plain && text.contains('*')).then(|| {
            format!("only a wider one covers it, such as `Bash({program} *)`, because `*` matches anything in a rule")
        })
    }

    /// The allow rules that would remove objections, in order.
    fn remedy_rules(&self) -> impl Iterator<Item = &RuleSuggestion> {
        self.objections.iter().flat_map(|objection| match &objection.remedy {
            ObjectionRemedy::AllowRules(rules) => rules.as_slice(),
            ObjectionRemedy::LineRule(_)
            | ObjectionRemedy::Rule
            | ObjectionRemedy::Mode
            | ObjectionRemedy::Setting(_)
            | ObjectionRemedy::SettingAndUser(_)
            | ObjectionRemedy::Command(_)
            | ObjectionRemedy::Hook
            | ObjectionRemedy::User
            | ObjectionRemedy::NoRule(_) => &[],
        })
    }

    /// What would have to change for the call to be allowed: the remedy of every objection, because removing only the
    /// decisive one would end in the next.
    pub(crate) fn advise_changes(&self) -> SettingsAdvice {
        let mut advice = SettingsAdvice {
            managed_only: self.compiled.managed.allow_managed_permission_rules_only,
            needs_user: self.danger == Some(RiskLevel::Critical),
            ..SettingsAdvice::default()
        };
        let line_rule = self.objections.iter().any(|o| matches!(o.remedy, ObjectionRemedy::LineRule(_)));
        for objection in &self.objections {
            match &objection.remedy {
                // A rule for the whole line covers each of its commands.
                ObjectionRemedy::AllowRules(rules) => {
                    let is_covered = |rule: &RuleSuggestion| line_rule && rule.rule.starts_with("Bash(");
                    for rule in rules.iter().filter(|rule| !is_covered(rule)) {
                        advice.add_allow(&rule.rule);
                        if objection.kind == ObjectionKind::Deny {
                            advice.add_denial_rule(rule.rule.clone());
                        }
                    }
                }
                ObjectionRemedy::LineRule(rule) => advice.add_allow(rule),
                ObjectionRemedy::Rule => {
                    if let Some(rule) = &objection.reason.rule {
                        advice.add_change(change_of_rule(objection.check, rule.clone()));
                    }
                }
                ObjectionRemedy::Mode => advice.add_change(SettingsChange::LeaveMode { mode: self.mode }),
                ObjectionRemedy::Setting(text) => {
                    advice.add_change(SettingsChange::ChangeSetting { text: text.clone() });
                }
                ObjectionRemedy::SettingAndUser(text) => {
                    advice.add_change(SettingsChange::ChangeSetting { text: text.clone() });
                    advice.needs_user = true;
                }
                ObjectionRemedy::Command(command) => {
                    advice.add_change(SettingsChange::RunCommand { command: (*command).to_owned() });
                }
                ObjectionRemedy::Hook => advice.add_change(SettingsChange::FollowHook),
                ObjectionRemedy::User if objection.kind == ObjectionKind::Deny => advice.is_final = true,
                ObjectionRemedy::User => advice.needs_user = true,
                ObjectionRemedy::NoRule(why) => {
                    advice.needs_user = true;
                    advice.no_rule_reason.get_or_insert_with(|| why.clone());
                }
            }
        }
        if self.mode == Mode::DontAsk && advice.needs_user {
            advice.add_change(SettingsChange::LeaveMode { mode: self.mode });
        }
        if self.compiled.raw.deny_questions && advice.needs_user {
            let place = self.compiled.raw.setting_places.clause("permissions.denyInsteadOfPrompting");
            let text = format!("remove `permissions.denyInsteadOfPrompting`{place}");
            advice.add_change(SettingsChange::ChangeSetting { text });
        }
        if line_rule {
            self.advise_line_rule_alone(&mut advice);
        }
        advice.drop_useless_rules();
        advice
    }

    /// A rule for exactly the line also covers most files that the line names: where it suffices, rules for these files
    /// would only open them to every other call.
    fn advise_line_rule_alone(&self, advice: &mut SettingsAdvice) {
        let is_alone = advice.added_rules().nth(1).is_none();
        let line_rule = self.objections.iter().find_map(|objection| match &objection.remedy {
            ObjectionRemedy::LineRule(rule) => Some(rule.as_str()),
            ObjectionRemedy::AllowRules(_)
            | ObjectionRemedy::Rule
            | ObjectionRemedy::Mode
            | ObjectionRemedy::Setting(_)
            | ObjectionRemedy::SettingAndUser(_)
            | ObjectionRemedy::Command(_)
            | ObjectionRemedy::Hook
            | ObjectionRemedy::User
            | ObjectionRemedy::NoRule(_) => None,
        });
        if let Some(rule) = line_rule.filter(|rule| !is_alone && self.is_allowed_with(std::iter::once(*rule)))
        {
            advice.drop_rules();
            advice.add_allow(rule);
        }
    }
}

/// What to do with the deny or ask rule behind an objection.
fn change_of_rule(check: PolicyCheck, rule: RuleRef) -> SettingsChange {
    match check {
        PolicyCheck::Usable => SettingsChange::FixRule { rule },
        PolicyCheck::DenyRules
        | PolicyCheck::Mode
        | PolicyCheck::Hooks
        | PolicyCheck::Book
        | PolicyCheck::Protected
        | PolicyCheck::Dangers
        | PolicyCheck::AskRules
        | PolicyCheck::Risks
        | PolicyCheck::Grants => SettingsChange::RemoveRule { rule },
    }
}

/// The wider rule of a suggestion if it has one, and the exact one otherwise.
fn widest_rule(offered: &RuleSuggestion) -> &str {
    offered.wider.as_deref().unwrap_or(&offered.rule)
}

/// Whether a character means the same in a rule, in bash and in a word.
fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '@' | '+')
}

/// `program subcommand *`, where that is a kind of call and not anything at all.
fn subcommand_prefix(part: &CommandPart, text: &str) -> Option<String> {
    let mut words = text.split(' ');
    let (program, second, third) = (words.next()?, words.next()?, words.next());
    let runs_scripts = SCRIPT_RUNNERS.contains(&program) && second == "run";
    let is_kind = part.plain
        && PROGRAMS_WITH_SUBCOMMANDS.contains(&program)
        // A quoted word ends at its quote, not at a blank in it: `make 'x *` would allow `make 'x y' install`.
        && second.chars().all(is_plain_char)
        && !second.starts_with('-')
        && (runs_scripts || !OPEN_ENDED_SUBCOMMANDS.contains(&second))
        && third.is_some();
    is_kind.then(|| format!("{program} {second} *"))
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
        PermissionRule::Never(_) => true,
    };
    !allows_any_code
}
