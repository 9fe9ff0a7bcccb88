//! Any text as a path, and any text as a pattern for it.

use super::desk;
use std::sync::OnceLock;
use toolgate_policy::{Policy, RuleAction};
use toolgate_proto::Mode;

fn policies() -> &'static [Policy; 2] {
    static KEPT: OnceLock<[Policy; 2]> = OnceLock::new();
    KEPT.get_or_init(|| {
        [
            desk::policy(&["Read", "Edit"], &[], &["Read(private/**)", "Edit(*.lock)"], Mode::Bypass),
            desk::policy(&[], &[], &[], Mode::AcceptEdits),
        ]
    })
}

/// The first line is the path, the second a pattern.
pub(crate) fn check(text: &str) {
    let (path, pattern) = text.split_once('\n').unwrap_or((text, "src/**"));
    let path = desk::abs("/ws").join(path);
    let real = path.lexical();
    assert_eq!(real.lexical(), real, "lexical twice is not lexical once");
    let [ruled, plain] = policies();
    let names: Vec<String> = real.to_string().split('/').map(str::to_lowercase).collect();
    let inside = real.is_under(&desk::abs("/ws"));
    if inside && names.iter().skip(2).rev().skip(1).any(|name| name == "private") {
        assert_eq!(desk::read(ruled, &path), RuleAction::Deny, "a denied directory is read");
        assert_eq!(desk::write(ruled, &path), RuleAction::Deny, "what may not be read is written");
    }
    if names.iter().any(|name| name == ".git" || name == ".bashrc") {
        assert!(desk::write(ruled, &path) >= RuleAction::Ask, "a protected path is written");
    }
    if desk::write(plain, &path) == RuleAction::Allow {
        assert!(inside, "written outside");
    }
    if desk::read(plain, &path) == RuleAction::Allow {
        assert!(inside, "read outside");
    }
    let rule = format!("Edit({pattern})");
    let none = desk::write(plain, &path);
    if text.len().is_multiple_of(2) {
        let granting = desk::policy(&[&rule], &[], &[], Mode::AcceptEdits);
        assert!(desk::write(&granting, &path) <= none, "an allow rule tightens");
    } else {
        let denying = desk::policy(&[], &[], &[&rule], Mode::AcceptEdits);
        assert!(desk::write(&denying, &path) >= none, "a deny rule loosens");
    }
}
