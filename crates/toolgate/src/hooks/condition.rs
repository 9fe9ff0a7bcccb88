//! A hook's `if`: one permission rule that says which calls it is for.
//!
//! The rule is read as a deny rule would be, that is broadly: a guard for `Bash(git push *)` sees every command line
//! in which a `git push` hides.
//! A rule that cannot be read does not mean "always" or "never": the hook then fails, and so refuses, because nobody
//! can tell whether its guard was meant for the call.
//! (Claude Code lets such a call pass.)

use toolgate_gate::{HookCall, IntendedCall, judge_intended};
use toolgate_policy::{Layer, LayerRules, Policy, ProblemSeverity, RawPolicy, RawRule};
use toolgate_proto::{AbsPath, Code, Mode, Verdict};

/// A condition, compiled.
#[derive(Debug)]
pub(super) struct HookCondition {
    policy: Policy,
}

impl HookCondition {
    /// Reads a rule. `anchor` is what its `/paths` are seen from.
    pub(super) fn parse(rule: &str, layer: Layer, anchor: &AbsPath) -> Result<Self, String> {
        let mut rules = LayerRules::new(layer, anchor.clone());
        rules.deny.push(RawRule::from(rule));
        let mut raw = RawPolicy::default();
        raw.layers.push(rules);
        raw.mode = Mode::Bypass;
        let (policy, problems) = raw.compile();
        match problems.iter().find(|problem| problem.weight >= ProblemSeverity::Warning) {
            Some(problem) => Err(format!("its `if` `{rule}` cannot be used: {}", problem.message)),
            None => Ok(Self { policy }),
        }
    }

    /// Whether the rule speaks of a call.
    pub(super) fn matches(&self, call: &HookCall<'_>) -> bool {
        let intended =
            IntendedCall { tool: call.tool.clone(), input: call.input.clone(), intent: call.intent.clone() };
        match judge_intended(&self.policy, &call.context.workspace, &intended).verdict {
            Verdict::Deny(reason) => reason.code == Code::DeniedByRule,
            Verdict::Allow(_) | Verdict::Ask(_) => false,
        }
    }
}
