//! Objections: what a check has against a call, and how strict that is.

use crate::judgement::JudgementStep;
use crate::raw::RuleAction;
use toolgate_proto::{RuleSuggestion, VerdictReason};

/// The checks of a decision, in the order in which a judgement lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PolicyCheck {
    /// Every deny and ask rule was valid when the policy was compiled.
    Usable,
    /// Deny rules, blocked hosts and disabled tools.
    DenyRules,
    /// The permission mode.
    Mode,
    /// Hooks that deny or require approval.
    Hooks,
    /// The policy book.
    Book,
    /// Writes to protected paths.
    Protected,
    /// Dangers that no rule may pre-approve, and those that a setting denies.
    Dangers,
    /// Ask rules, and tools that need an answer from the user.
    AskRules,
    /// Unusual spellings, special files, secrets, commands that cannot be analysed.
    Risks,
    /// Whether an allow rule, a mode or the kind of effect covers everything that the call would do.
    Grants,
}

impl PolicyCheck {
    /// All checks, in order.
    pub(super) const ALL: [Self; 10] = [
        Self::Usable,
        Self::DenyRules,
        Self::Mode,
        Self::Hooks,
        Self::Book,
        Self::Protected,
        Self::Dangers,
        Self::AskRules,
        Self::Risks,
        Self::Grants,
    ];

    /// The name of the check in [`JudgementStep::looked_at`].
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Usable => "rules",
            Self::DenyRules => "deny rules",
            Self::Mode => "mode",
            Self::Hooks => "hooks",
            Self::Book => "policy book",
            Self::Protected => "protected paths",
            Self::Dangers => "dangers",
            Self::AskRules => "ask rules",
            Self::Risks => "risks",
            Self::Grants => "allow rules",
        }
    }

    /// What [`JudgementStep::found`] says if the check raised no objection.
    pub(super) fn no_objection_text(self) -> &'static str {
        match self {
            Self::Usable => "all are valid",
            Self::DenyRules | Self::AskRules => "none matches",
            Self::Mode => "does not decide",
            Self::Hooks => "no hook has objected",
            Self::Book => "does not object",
            Self::Protected => "none is written",
            Self::Dangers | Self::Risks => "none",
            Self::Grants => "every effect is allowed",
        }
    }
}

/// How strict an objection is, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ObjectionKind {
    /// The call asks because nothing allows it: mode bypass or a hook may answer.
    ByDefault,
    /// The call asks because a rule, a mode or a risk requires approval: only an approver may answer.
    Explicit,
    /// The call is denied.
    Deny,
}

impl ObjectionKind {
    /// The action that a judgement shows for the objection.
    pub(crate) fn action(self) -> RuleAction {
        match self {
            Self::ByDefault | Self::Explicit => RuleAction::Ask,
            Self::Deny => RuleAction::Deny,
        }
    }
}

/// What would remove an objection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectionRemedy {
    /// These allow rules together.
    AllowRules(Vec<RuleSuggestion>),
    /// A rule for exactly the whole command line. A prompt does not offer it, because the words of the line are not all
    /// known; a user who writes it knows what it means.
    LineRule(String),
    /// The rule that raised it, removed, narrowed or corrected.
    Rule,
    /// Another mode.
    Mode,
    /// Another setting, as an imperative sentence.
    Setting(String),
    /// Another setting, as an imperative sentence, and then the answer of the user.
    SettingAndUser(String),
    /// A command of toolgate.
    Command(&'static str),
    /// What the hook says.
    Hook,
    /// Nothing but the answer of the user.
    User,
    /// The same, because no rule for exactly the call can be written: why.
    NoRule(String),
}

/// A reason not to allow a call.
#[derive(Debug, Clone)]
pub(crate) struct PolicyObjection {
    /// How strict it is.
    pub(crate) kind: ObjectionKind,
    /// The check that raised it.
    pub(crate) check: PolicyCheck,
    /// The text, code and rule that a refusal or a question shows.
    pub(crate) reason: VerdictReason,
    /// What would remove it.
    pub(crate) remedy: ObjectionRemedy,
}

impl PolicyObjection {
    /// An objection with the remedy that its check and its rule suggest.
    pub(super) fn new(kind: ObjectionKind, check: PolicyCheck, reason: VerdictReason) -> Self {
        let remedy = match check {
            PolicyCheck::Mode => ObjectionRemedy::Mode,
            PolicyCheck::Hooks => ObjectionRemedy::Hook,
            PolicyCheck::Usable
            | PolicyCheck::DenyRules
            | PolicyCheck::Book
            | PolicyCheck::Protected
            | PolicyCheck::Dangers
            | PolicyCheck::AskRules
            | PolicyCheck::Risks
            | PolicyCheck::Grants => {
                if reason.rule.is_some() {
                    ObjectionRemedy::Rule
                } else {
                    ObjectionRemedy::User
                }
            }
        };
        Self { kind, check, reason, remedy }
    }

    /// The step of the judgement that shows the objection.
    pub(super) fn step(&self) -> JudgementStep {
        JudgementStep {
            looked_at: self.check.as_str().into(),
            found: self.reason.text.clone().into(),
            action: Some(self.kind.action()),
            rule: self.reason.rule.clone(),
        }
    }
}
