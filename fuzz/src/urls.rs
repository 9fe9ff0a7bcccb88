//! Checks any text as an address: it is parsed as browsers do, and hosts are compared by labels.

use super::judge_call;
use std::sync::OnceLock;
use toolgate_policy::url::FetchTarget;
use toolgate_policy::{Policy, RuleAction};
use toolgate_proto::Mode;

/// Policies that allow one host, its subdomains, and everything but one host, and one without rules.
fn policies() -> &'static [Policy; 4] {
    static POLICIES: OnceLock<[Policy; 4]> = OnceLock::new();
    POLICIES.get_or_init(|| {
        [
            judge_call::policy(&["WebFetch(domain:example.com)"], &[], &[], Mode::Default),
            judge_call::policy(&["WebFetch(domain:*.example.com)"], &[], &[], Mode::Default),
            judge_call::policy(&["WebFetch"], &[], &["WebFetch(domain:example.com)"], Mode::Bypass),
            judge_call::policy(&[], &[], &[], Mode::Default),
        ]
    })
}

/// Checks that a rule for a host allows that host and no other, and that a rule for all hosts does not allow the private
/// network.
pub(crate) fn check(text: &str) {
    let [exact, below, open, bare] = policies();
    let (exact, below, open, bare) = (
        judge_call::fetch(exact, text),
        judge_call::fetch(below, text),
        judge_call::fetch(open, text),
        judge_call::fetch(bare, text),
    );
    assert_ne!(bare, RuleAction::Allow, "fetched without a rule");
    let Ok(target) = FetchTarget::parse(text) else {
        assert!(
            [exact, below, open, bare].iter().all(|action| *action == RuleAction::Deny),
            "an address that cannot be parsed is not denied"
        );
        return;
    };
    let again = FetchTarget::parse(target.url.as_str()).expect("a parsed address can be parsed again");
    assert_eq!(
        (&again.host, again.port),
        (&target.host, target.port),
        "parsing the address again gives another host"
    );
    let host = target.host_text();
    assert!(exact != RuleAction::Allow || host == "example.com", "another host: {host}");
    assert!(below != RuleAction::Allow || host.ends_with(".example.com"), "another host: {host}");
    assert!(host != "example.com" || open == RuleAction::Deny, "a denied host is fetched");
    assert!(
        target.private_class().is_none() || open == RuleAction::Deny,
        "a private host is fetched: {host}"
    );
}
