//! The answer of a hook.

use serde_json::{Map, Value};
use toolgate_policy::{HookOpinion, RuleAction};

/// The answer of a hook. Fields that do not fit the event have no effect.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct HookAnswer {
    /// Its decision; none where it only observes. Counts before the run only; after the run,
    /// a deny passes its reason on to the model.
    pub decision: Option<HookDecision>,
    /// Why, for the model and the record.
    pub reason: Option<String>,
    /// A whole input instead of the call's. Counts before the run only.
    pub updated_input: Option<Map<String, Value>>,
    /// Text that the model gets beside the result.
    pub additional_context: Option<String>,
    /// An output instead of the tool's. Counts after a success only.
    pub updated_output: Option<Value>,
    /// A message for the user.
    pub system_message: Option<String>,
    /// The agent should stop altogether, for this reason.
    pub stop: Option<String>,
    /// The model may try again. Counts after a denial only.
    pub retry: bool,
    /// Allow rules to remember, out of those that the question suggests. Counts where it answers a question.
    pub remember: Vec<String>,
    /// How the answer came, for the record (`exit 2`).
    pub detail: Option<String>,
}

/// The decision of a hook, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookDecision {
    /// Answer yes to a question that no rule asked.
    Allow,
    /// Ask the user.
    Ask,
    /// Defer the call.
    Defer,
    /// Refuse.
    Deny,
}

impl HookDecision {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Defer => "defer",
            Self::Deny => "deny",
        }
    }
}

impl HookAnswer {
    /// No decision and no change.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A refusal.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision::Deny), reason: Some(reason.into()), ..Self::default() }
    }

    /// A request that the user be asked.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision::Ask), reason: Some(reason.into()), ..Self::default() }
    }

    /// A request that the call be deferred.
    pub fn defer(reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision::Defer), reason: Some(reason.into()), ..Self::default() }
    }

    /// Consent, which counts only when no rule matches.
    pub fn allow() -> Self {
        Self { decision: Some(HookDecision::Allow), ..Self::default() }
    }

    /// Another input.
    pub fn rewrite(input: Map<String, Value>) -> Self {
        Self { updated_input: Some(input), ..Self::default() }
    }

    /// The same, with a text that the model reads beside the result.
    pub fn with_context(mut self, text: impl Into<String>) -> Self {
        self.additional_context = Some(text.into());
        self
    }

    /// The same, with an output that the model sees in place of the tool's.
    pub fn with_updated_output(mut self, output: Value) -> Self {
        self.updated_output = Some(output);
        self
    }

    /// The same, with a message for the user.
    pub fn with_message(mut self, text: impl Into<String>) -> Self {
        self.system_message = Some(text.into());
        self
    }

    /// The same, stopping the agent for this reason.
    pub fn with_stop(mut self, reason: impl Into<String>) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// The same, telling the model after a denial whether it may try again.
    pub fn with_retry(mut self, retry: bool) -> Self {
        self.retry = retry;
        self
    }

    /// The same, with allow rules to remember.
    pub fn with_remembered_rules(mut self, rules: Vec<String>) -> Self {
        self.remember = rules;
        self
    }

    /// The same, with a note for the record on how the answer came about.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// What the record says of it.
    pub(crate) fn record_label(&self) -> &'static str {
        match (self.decision, &self.stop, &self.updated_input, &self.updated_output) {
            (_, Some(_), _, _) => "stopped",
            (Some(decision), None, _, _) => decision.as_str(),
            (None, None, Some(_), _) | (None, None, None, Some(_)) => "rewrote",
            (None, None, None, None) => "silent",
        }
    }

    /// The answer as an opinion for policy; `None` if the hook decided nothing.
    pub(crate) fn opinion(&self, by: &str) -> Option<HookOpinion> {
        let action = match self.decision? {
            HookDecision::Allow => RuleAction::Allow,
            HookDecision::Ask => RuleAction::Ask,
            HookDecision::Defer | HookDecision::Deny => RuleAction::Deny,
        };
        Some(HookOpinion::new(by, action).with_reason(self.reason.clone()))
    }
}
