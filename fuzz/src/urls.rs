//! Any text as an address: read once, as browsers do, and compared by labels.

use super::desk;
use std::sync::OnceLock;
use toolgate_policy::url::FetchTarget;
use toolgate_policy::{Policy, RuleAction};
use toolgate_proto::Mode;

fn policies() -> &'static [Policy; 4] {
    static KEPT: OnceLock<[Policy; 4]> = OnceLock::new();
    KEPT.get_or_init(|| {
        [
            desk::policy(&["WebFetch(domain:example.com)"], &[], &[], Mode::Default),
            desk::policy(&["WebFetch(domain:*.example.com)"], &[], &[], Mode::Default),
            desk::policy(&["WebFetch"], &[], &["WebFetch(domain:example.com)"], Mode::Bypass),
            desk::policy(&[], &[], &[], Mode::Default),
        ]
    })
}

/// A host rule lets its host through and no other; no rule for all opens the private network.
pub(crate) fn check(text: &str) {
    let [exact, below, open, bare] = policies();
    let (exact, below, open, bare) = (
        desk::fetch(exact, text),
        desk::fetch(below, text),
        desk::fetch(open, text),
        desk::fetch(bare, text),
    );
    assert_ne!(bare, RuleAction::Allow, "fetched without a rule");
    let Ok(target) = FetchTarget::parse(text) else {
        assert!(
            [exact, below, open, bare].iter().all(|action| *action == RuleAction::Deny),
            "unreadable, yet not denied"
        );
        return;
    };
    let again = FetchTarget::parse(target.url.as_str()).expect("what was read can be read again");
    assert_eq!((&again.host, again.port), (&target.host, target.port), "read twice, read differently");
    let host = target.host_text();
    assert!(exact != RuleAction::Allow || host == "example.com", "another host: {host}");
    assert!(below != RuleAction::Allow || host.ends_with(".example.com"), "another host: {host}");
    assert!(host != "example.com" || open == RuleAction::Deny, "a denied host is fetched");
    assert!(
        target.private_class().is_none() || open == RuleAction::Deny,
        "a private host is fetched: {host}"
    );
}
