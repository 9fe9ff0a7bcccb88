//! Any text as a settings file: it is taken apart or refused, and a project that is not trusted loosens nothing.

use super::desk;
use toolgate::settings::{LoadedSettings, SettingsOptions};
use toolgate_policy::{ProblemSeverity, RuleAction};

/// What is read compiles, always to the same verdicts; deny lists that were read are kept.
pub(crate) fn check(text: &str) {
    // Anything else would be the name of a file.
    if !text.trim_start().starts_with('{') {
        return;
    }
    let mut options = SettingsOptions::new(desk::abs("/ws"));
    options.managed_dirs = Vec::new();
    options.sources = Vec::new();
    options.extra = Some(text.to_owned());
    let Ok(settings) = LoadedSettings::load(&options) else { return };
    let raw = settings.policy(None);
    let all_denied = raw.layers.iter().any(|layer| layer.deny.iter().any(|rule| rule.text == "Bash"));
    let (policy, problems) = raw.compile();
    let fatal = problems.iter().any(|problem| problem.weight == ProblemSeverity::Fatal);
    let ran = desk::bash(&policy, "npm test");
    if fatal || all_denied {
        assert_eq!(ran, RuleAction::Deny, "a deny rule is lost");
    }
    assert_eq!(ran, desk::bash(&policy, "npm test"), "judged twice, judged differently");
}
