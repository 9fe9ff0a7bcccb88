//! Checks any text as a rule: it is parsed or refused, and its effect is monotonic.

use super::judge_call;
use std::sync::OnceLock;
use toolgate_policy::{Layer, LayerRules, Policy, ProblemSeverity, RawPolicy, RuleAction};

/// The actions for one call of each kind that rules can match.
fn verdicts(policy: &Policy) -> [RuleAction; 4] {
    [
        judge_call::bash(policy, "npm run build"),
        judge_call::write(policy, &judge_call::abs("/ws/src/a.rs")),
        judge_call::fetch(policy, "https://docs.example.com/x"),
        judge_call::remote(policy),
    ]
}

/// Checks that a rule never does the opposite of what its list says, and that a rule that cannot be parsed is never
/// ignored silently.
pub(crate) fn check(text: &str) {
    static PLAIN: OnceLock<[RuleAction; 4]> = OnceLock::new();
    let plain = PLAIN.get_or_init(|| verdicts(&RawPolicy::default().compile().0));
    // The length of the text selects one list: a fuzzer reaches all three, and is three times as fast.
    let lists = [RuleAction::Allow, RuleAction::Ask, RuleAction::Deny];
    if let Some(action) = lists.get(text.len() % 3).copied() {
        let mut layer = LayerRules::new(Layer::Project, judge_call::abs("/ws"));
        match action {
            RuleAction::Allow => layer.allow.push(text.into()),
            RuleAction::Ask => layer.ask.push(text.into()),
            RuleAction::Deny => layer.deny.push(text.into()),
        }
        let (policy, problems) = RawPolicy::default().with_layers(vec![layer]).compile();
        let fatal = problems.iter().any(|problem| problem.weight == ProblemSeverity::Fatal);
        assert!(!(fatal && action == RuleAction::Allow), "an allow rule is never fatal: {text:?}");
        for (got, plain) in verdicts(&policy).into_iter().zip(plain) {
            match action {
                _ if fatal => {
                    assert_eq!(
                        got,
                        RuleAction::Deny,
                        "the rule is unusable, but not everything is denied: {text:?}"
                    )
                }
                RuleAction::Allow => assert!(got <= *plain, "an allow rule tightens: {text:?}"),
                RuleAction::Ask => assert!(
                    got >= *plain && got <= RuleAction::Ask,
                    "an ask rule loosens or denies: {text:?}"
                ),
                RuleAction::Deny => assert!(got >= *plain, "a deny rule loosens: {text:?}"),
            }
        }
    }
}
