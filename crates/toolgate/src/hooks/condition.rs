//! The condition `if` of a hook: a permission rule that selects the calls for which the hook runs.
//!
//! The rule matches as broadly as a deny rule: a hook for `Bash(git push *)` runs for every command line that contains
//! a `git push`.
//! An invalid rule makes the hook fail, and so refuse the calls of its matcher: skipping the hook would disable a
//! guard because of a typo, as Claude Code does.

use toolgate_gate::{HookCall, IntendedCall, judge_intended};
use toolgate_policy::{Layer, LayerRules, Policy, ProblemSeverity, RawPolicy, RawRule};
use toolgate_proto::{AbsPath, Code, Mode, Verdict};

/// A compiled condition.
#[derive(Debug)]
pub(super) struct HookCondition {
    /// A policy with the rule as its only deny rule, in mode bypass: it denies exactly the calls that match.
    policy: Policy,
}

impl HookCondition {
    /// Compiles a rule. Patterns that start with `/` are relative to `anchor`.
    pub(super) fn parse(rule: &str, layer: Layer, anchor: &AbsPath) -> Result<Self, String> {
        let mut rules = LayerRules::new(layer, anchor.clone());
        rules.deny.push(RawRule::from(rule));
        let mut raw = RawPolicy::default();
        raw.layers.push(rules);
        raw.mode = Mode::Bypass;
        let (policy, problems) = raw.compile();
        match problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal) {
            Some(problem) => {
                Err(format!("the rule `{rule}` in `if` is invalid: {}; {}", problem.message, problem.fix))
            }
            None => Ok(Self { policy }),
        }
    }

    /// Whether the rule matches a call.
    pub(super) fn matches(&self, call: &HookCall<'_>) -> bool {
        let intended = IntendedCall::new(call.tool.clone(), call.input.clone(), call.intent.clone());
        match judge_intended(&self.policy, &call.context.workspace, &intended).verdict {
            Verdict::Deny(reason) => reason.code == Some(Code::DeniedByRule),
            Verdict::Allow(_) | Verdict::Ask(_) => false,
        }
    }
}
