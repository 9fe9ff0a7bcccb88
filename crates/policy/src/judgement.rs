//! The answer, and how it was reached.

use crate::raw::RuleAction;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use toolgate_proto::{CommandRights, RiskLevel, RuleRef, Verdict};

/// A verdict that explains itself.
#[must_use = "a judgement must be acted on"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The decision, with its terms, question or reason.
    pub verdict: Verdict,
    /// How much could go wrong.
    pub risk: RiskLevel,
    /// Each step of the judgement, in order; the last one decided.
    pub steps: Vec<JudgementStep>,
    /// What was decided of each simple command, where the call runs one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CommandVerdict>,
    /// The smallest change of settings that would turn an ask or a deny into an allow, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flip: Option<String>,
    /// What the kernel would permit the commands of the call, where it runs any: as it is allowed, or once a person
    /// has approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<CommandRights>,
}

/// What was decided of one simple command of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandVerdict {
    /// The command, as written.
    pub text: String,
    /// What it comes to by itself.
    pub action: RuleAction,
    /// Why.
    pub reason: String,
    /// The rule that decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
}

/// One step of a judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgementStep {
    /// What was looked at ("deny rules", "mode acceptEdits").
    pub looked_at: Cow<'static, str>,
    /// What came of it.
    pub found: Cow<'static, str>,
    /// The action it called for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RuleAction>,
    /// The rule that matched, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleRef>,
}

/// What a hook thinks of the call. It can make a judgement stricter, or answer a question that no rule asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookOpinion {
    /// Whose opinion.
    pub by: String,
    /// What it wants.
    pub action: RuleAction,
    /// Why.
    pub reason: Option<String>,
}
