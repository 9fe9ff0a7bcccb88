//! How a hook fails, and what that means.

use super::Hook;
use toolgate_proto::{Code, Refusal};

/// How a hook failed. The record distinguishes each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookFailure {
    /// Its program is not there.
    #[error("there is no {0}")]
    Missing(String),
    /// Its program is there and could not be started.
    #[error("it could not be started: {0}")]
    NotStarted(String),
    /// It crashed.
    #[error("{0}")]
    Crashed(String),
    /// It gave no answer in time.
    #[error("it gave no answer in {0} ms")]
    TimedOut(u64),
    /// Its answer could not be read.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    /// Its server could not be reached, or answered with an error.
    #[error("{0}")]
    Unreachable(String),
    /// It is configured in a way that cannot work.
    #[error("{0}")]
    Misconfigured(String),
}

impl HookFailure {
    /// What the record says of it.
    pub fn record_label(&self) -> &'static str {
        match self {
            Self::Missing(_) => "missing",
            Self::NotStarted(_) => "not_started",
            Self::Crashed(_) => "crashed",
            Self::TimedOut(_) => "timed_out",
            Self::Unreadable(_) => "unreadable",
            Self::Unreachable(_) => "unreachable",
            Self::Misconfigured(_) => "misconfigured",
        }
    }

    /// The code of the refusal that this failure becomes.
    fn code(&self) -> Code {
        match self {
            Self::Missing(_) => Code::HookMissing,
            Self::NotStarted(_) | Self::Crashed(_) | Self::Unreachable(_) | Self::Misconfigured(_) => {
                Code::HookFailed
            }
            Self::TimedOut(_) => Code::HookTimedOut,
            Self::Unreadable(_) => Code::HookUnreadable,
        }
    }
}

/// What a failed hook means for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// The call is refused.
    #[default]
    Deny,
    /// The call goes on as if the hook had made no decision.
    Continue,
}

/// The refusal that a failed hook means, unless its failure does not matter.
pub(crate) fn refusal_for(hook: &dyn Hook, failure: &HookFailure) -> Option<Refusal> {
    match hook.on_failure() {
        OnFailure::Continue => None,
        OnFailure::Deny => {
            Some(Refusal::new(failure.code(), format!("hook `{}` failed: {failure}", hook.name())))
        }
    }
}
