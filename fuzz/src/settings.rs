//! Checks any text as a settings file: it is parsed or refused, and no deny rule is lost.

use super::judge_call;
use toolgate::settings::{LoadedSettings, SettingsOptions};
use toolgate_policy::{ProblemSeverity, RuleAction};

/// Checks that settings that can be parsed compile, always to the same verdicts, and that their deny rules apply.
pub(crate) fn check(text: &str) {
    // Any other text is the name of a file.
    if !text.trim_start().starts_with('{') {
        return;
    }
    let mut options = SettingsOptions::new(judge_call::abs("/ws"));
    options.managed_dirs = Vec::new();
    options.sources = Vec::new();
    options.extra = Some(text.to_owned());
    let Ok(settings) = LoadedSettings::load(&options) else { return };
    let raw = settings.policy(None);
    let all_denied = raw.layers.iter().any(|layer| layer.deny.iter().any(|rule| rule.text == "Bash"));
    let (policy, problems) = raw.compile();
    let fatal = problems.iter().any(|problem| problem.weight == ProblemSeverity::Fatal);
    let ran = judge_call::bash(&policy, "npm test");
    if fatal || all_denied {
        assert_eq!(ran, RuleAction::Deny, "a deny rule is lost");
    }
    assert_eq!(
        ran,
        judge_call::bash(&policy, "npm test"),
        "the same call is judged differently the second time"
    );
}
