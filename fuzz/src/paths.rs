//! Checks any text as a path, and any text as a pattern for it.

use super::judge_call;
use std::sync::OnceLock;
use toolgate_policy::{Policy, RuleAction};
use toolgate_proto::Mode;

/// A policy with rules for paths, and one without rules.
fn policies() -> &'static [Policy; 2] {
    static POLICIES: OnceLock<[Policy; 2]> = OnceLock::new();
    POLICIES.get_or_init(|| {
        [
            judge_call::policy(&["Read", "Edit"], &[], &["Read(private/**)", "Edit(*.lock)"], Mode::Bypass),
            judge_call::policy(&[], &[], &[], Mode::AcceptEdits),
        ]
    })
}

/// Checks the path in the first line with the pattern in the second: rules apply to the normalised path, and without a
/// rule nothing outside of the workspace is read or written.
pub(crate) fn check(text: &str) {
    let (path, pattern) = text.split_once('\n').unwrap_or((text, "src/**"));
    let path = judge_call::abs("/ws").join(path);
    let real = path.lexical();
    assert_eq!(real.lexical(), real, "normalising twice differs from normalising once");
    let [ruled, plain] = policies();
    let names: Vec<String> = real.to_string().split('/').map(str::to_lowercase).collect();
    let inside = real.is_under(&judge_call::abs("/ws"));
    if inside && names.iter().skip(2).rev().skip(1).any(|name| name == "private") {
        assert_eq!(judge_call::read(ruled, &path), RuleAction::Deny, "a file in a denied directory is read");
        assert_eq!(
            judge_call::write(ruled, &path),
            RuleAction::Deny,
            "a file that may not be read is written"
        );
    }
    if names.iter().any(|name| name == ".git" || name == ".bashrc") {
        assert!(
            judge_call::write(ruled, &path) >= RuleAction::Ask,
            "a protected path is written without approval"
        );
    }
    if judge_call::write(plain, &path) == RuleAction::Allow {
        assert!(inside, "a file outside of the workspace is written");
    }
    if judge_call::read(plain, &path) == RuleAction::Allow {
        assert!(inside, "a file outside of the workspace is read");
    }
    let rule = format!("Edit({pattern})");
    let none = judge_call::write(plain, &path);
    if text.len().is_multiple_of(2) {
        let granting = judge_call::policy(&[&rule], &[], &[], Mode::AcceptEdits);
        assert!(judge_call::write(&granting, &path) <= none, "an allow rule tightens");
    } else {
        let denying = judge_call::policy(&[], &[], &[&rule], Mode::AcceptEdits);
        assert!(judge_call::write(&denying, &path) >= none, "a deny rule loosens");
    }
}
