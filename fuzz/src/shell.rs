//! Checks any text as a command line: it always has an analysis, and a doubted line is never allowed.

use super::judge_call;
use std::sync::OnceLock;
use toolgate_policy::{Policy, RuleAction};
use toolgate_proto::Mode;
use toolgate_shell_syntax::analyse;

/// A policy that denies a program, one that allows a program, and one without rules.
fn policies() -> &'static [Policy; 3] {
    static POLICIES: OnceLock<[Policy; 3]> = OnceLock::new();
    POLICIES.get_or_init(|| {
        [
            judge_call::policy(
                &["Bash(echo *)", "Bash(rm *)"],
                &[],
                &["Bash(rm *)", "Read(.env)"],
                Mode::Bypass,
            ),
            judge_call::policy(&["Bash(echo *)"], &[], &[], Mode::Default),
            judge_call::policy(&[], &[], &[], Mode::Default),
        ]
    })
}

/// Checks that parts are consistent, that rules are monotonic, and that a denied program is denied wherever the analysis
/// finds it.
pub(crate) fn check(text: &str) {
    let analysis = analyse(&judge_call::line(text), &judge_call::workspace());
    for part in &analysis.parts {
        assert!(!part.read_only || part.allow_text.is_some() || part.reads_unknown_paths);
        assert!(!part.deny_texts.is_empty() || part.allow_text.is_none() || part.program.is_none());
    }
    let [strict, loose, bare] = policies();
    let (strict, loose, bare) =
        (judge_call::bash(strict, text), judge_call::bash(loose, text), judge_call::bash(bare, text));
    assert!(loose <= bare, "an allow rule tightens");
    if analysis.doubt.is_some() {
        assert!(bare >= RuleAction::Ask && loose >= RuleAction::Ask, "a doubted line is allowed");
    }
    if analysis.parts.iter().any(|part| part.program.as_deref() == Some("rm")) {
        assert_eq!(strict, RuleAction::Deny, "a denied program is not denied");
    }
}
