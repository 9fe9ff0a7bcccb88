//! Any text as a command line: there is always an answer, and what is doubted or hidden never looks harmless.

use super::desk;
use std::sync::OnceLock;
use toolgate_policy::{Policy, RuleAction};
use toolgate_proto::Mode;
use toolgate_shell_syntax::analyse;

/// A policy that denies a program, one that allows it, one without rules.
fn policies() -> &'static [Policy; 3] {
    static KEPT: OnceLock<[Policy; 3]> = OnceLock::new();
    KEPT.get_or_init(|| {
        [
            desk::policy(&["Bash(echo *)", "Bash(rm *)"], &[], &["Bash(rm *)", "Read(.env)"], Mode::Bypass),
            desk::policy(&["Bash(echo *)"], &[], &[], Mode::Default),
            desk::policy(&[], &[], &[], Mode::Default),
        ]
    })
}

/// Parts agree with themselves; rules are monotonic; a program that is denied and read is denied.
pub(crate) fn check(text: &str) {
    let analysis = analyse(&desk::line(text), &desk::workspace());
    for part in &analysis.parts {
        assert!(!part.read_only || part.allow_text.is_some() || part.reads_unknown_paths);
        assert!(!part.deny_texts.is_empty() || part.allow_text.is_none() || part.program.is_none());
    }
    let [strict, loose, bare] = policies();
    let (strict, loose, bare) = (desk::bash(strict, text), desk::bash(loose, text), desk::bash(bare, text));
    assert!(loose <= bare, "an allow rule tightens");
    if analysis.doubt.is_some() {
        assert!(bare >= RuleAction::Ask && loose >= RuleAction::Ask, "a doubted line passes");
    }
    if analysis.parts.iter().any(|part| part.program.as_deref() == Some("rm")) {
        assert_eq!(strict, RuleAction::Deny, "a denied program is not denied");
    }
}
