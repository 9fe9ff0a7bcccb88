//! The result of a decision, with every step that led to it.

use crate::advice::SettingsAdvice;
use crate::decide::PolicyCheck;
use crate::raw::RuleAction;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use toolgate_proto::{CommandRights, Effect, RiskLevel, RuleRef, Verdict};

/// A verdict with its explanation. `toolgate check` prints one.
#[must_use = "a judgement must be acted on"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Judgement {
    /// Allow with the terms of the run, ask with the question for an approver, or deny with the reason.
    pub verdict: Verdict,
    /// How much damage the call could do.
    pub risk: RiskLevel,
    /// The checks in order, up to the one that decided, which is last.
    pub steps: Vec<JudgementStep>,
    /// The verdict about each simple command of the call's command lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CommandVerdict>,
    /// The reads, writes and fetches that were inferred from the call's command lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inferred: Vec<Effect>,
    /// What would turn an ask or a deny into an allow, as a sentence, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<String>,
    /// The same, for programs.
    #[serde(default)]
    pub advice: SettingsAdvice,
    /// What the kernel would permit the commands of the call, if it runs any: on the terms of an allow, or after an
    /// approver has answered an ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<CommandRights>,
}

impl Judgement {
    /// Says that hooks were not asked, in place of that none has objected. `names` are those that would be.
    pub fn note_unasked_hooks(&mut self, names: &[String]) {
        let found = match names {
            [] => "none is configured for this call".to_owned(),
            names => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("not run: {}", names.join(", "))
            }
        };
        let is_unasked = |step: &&mut JudgementStep| {
            step.looked_at == PolicyCheck::Hooks.as_str() && step.action.is_none()
        };
        if let Some(step) = self.steps.iter_mut().find(is_unasked) {
            step.found = found.into();
        }
    }
}

/// The verdict about one simple command of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandVerdict {
    /// The command, as written.
    pub text: String,
    /// The verdict about this command alone; the line gets the strictest of its commands.
    pub action: RuleAction,
    /// Why, lower case, without a full stop.
    pub reason: String,
    /// The rule that decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
}

/// One check of a judgement and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JudgementStep {
    /// The check ("deny rules", "mode").
    pub looked_at: Cow<'static, str>,
    /// The objection that it raised, or that there is none.
    pub found: Cow<'static, str>,
    /// The action that the objection requires; `None` if the check did not object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RuleAction>,
    /// The rule that matched, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
}

/// The answer of a PreToolUse hook. It can make a judgement stricter, or allow what would ask by default; it can never
/// lift a deny or an explicit ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookOpinion {
    /// The name of the hook, for messages.
    pub by: String,
    /// What the hook answered.
    pub action: RuleAction,
    /// The hook's own explanation.
    pub reason: Option<String>,
}

impl HookOpinion {
    /// Creates the answer of a hook, without a reason.
    pub fn new(by: impl Into<String>, action: RuleAction) -> Self {
        Self { by: by.into(), action, reason: None }
    }

    /// Sets the reason.
    pub fn with_reason(mut self, reason: impl Into<Option<String>>) -> Self {
        self.reason = reason.into();
        self
    }
}
