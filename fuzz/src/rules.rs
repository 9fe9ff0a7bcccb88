//! Any text as a rule: it is read or refused, and what it does is monotonic.

use super::desk;
use std::sync::OnceLock;
use toolgate_policy::{Layer, LayerRules, Policy, ProblemSeverity, RawPolicy, RuleAction};

/// One call of each kind that rules speak of.
fn verdicts(policy: &Policy) -> [RuleAction; 4] {
    [
        desk::bash(policy, "npm run build"),
        desk::write(policy, &desk::abs("/ws/src/a.rs")),
        desk::fetch(policy, "https://docs.example.com/x"),
        desk::remote(policy),
    ]
}

/// A rule never does the opposite of what its list says, and one that cannot be read never vanishes silently.
pub(crate) fn check(text: &str) {
    static PLAIN: OnceLock<[RuleAction; 4]> = OnceLock::new();
    let plain = PLAIN.get_or_init(|| verdicts(&RawPolicy::default().compile().0));
    // One list for each text, told by its length: a fuzzer finds all three, and is three times as fast.
    let lists = [RuleAction::Allow, RuleAction::Ask, RuleAction::Deny];
    if let Some(action) = lists.get(text.len() % 3).copied() {
        let mut layer = LayerRules::new(Layer::Project, desk::abs("/ws"));
        match action {
            RuleAction::Allow => layer.allow.push(text.into()),
            RuleAction::Ask => layer.ask.push(text.into()),
            RuleAction::Deny => layer.deny.push(text.into()),
        }
        let (policy, problems) = RawPolicy { layers: vec![layer], ..RawPolicy::default() }.compile();
        let fatal = problems.iter().any(|problem| problem.weight == ProblemSeverity::Fatal);
        assert!(!(fatal && action == RuleAction::Allow), "an allow rule is never fatal: {text:?}");
        for (got, plain) in verdicts(&policy).into_iter().zip(plain) {
            match action {
                _ if fatal => {
                    assert_eq!(got, RuleAction::Deny, "unusable, but not everything is denied: {text:?}")
                }
                RuleAction::Allow => assert!(got <= *plain, "an allow rule tightens: {text:?}"),
                RuleAction::Ask => assert!(got >= *plain && got <= RuleAction::Ask, "an ask rule: {text:?}"),
                RuleAction::Deny => assert!(got >= *plain, "a deny rule loosens: {text:?}"),
            }
        }
    }
}
