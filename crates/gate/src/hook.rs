//! Hooks: code of the user's that sees calls before and after they run.
//!
//! A hook can make a judgement stricter, answer a question that no rule asked, or rewrite the input, which is then
//! checked and judged anew.
//! It can never lift a deny.
//! One that crashes, hangs or talks nonsense denies, unless it says that it does not matter.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use toolgate_policy::{Action, Opinion};
use toolgate_proto::{CallId, CallResult, Refusal, ToolIdentity};

use crate::scene::Scene;

/// A moment at which hooks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before a call is judged.
    PreToolUse,
    /// After a tool succeeded.
    PostToolUse,
    /// After a tool failed.
    PostToolUseFailure,
    /// After a call was denied.
    PermissionDenied,
}

/// What a hook is told.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    /// The moment.
    pub moment: Moment,
    /// The call.
    pub call: &'a CallId,
    /// The tool.
    pub tool: &'a ToolIdentity,
    /// The input as it stands, earlier hooks' rewrites included.
    pub input: &'a Map<String, Value>,
    /// The surroundings.
    pub scene: &'a Scene,
    /// What came of the call, for the moments after it.
    pub result: Option<&'a CallResult>,
}

/// What a hook says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookAnswer {
    /// What it wants done with the call; nothing where it only watches. Counts before the run only.
    pub decision: Option<HookDecision>,
    /// Why, for the model and the record.
    pub reason: Option<String>,
    /// The input it would rather see, whole. Counts before the run only.
    pub updated_input: Option<Map<String, Value>>,
    /// Something the model should know beside the result.
    pub additional_context: Option<String>,
}

/// What a hook wants done with a call, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookDecision {
    /// Answer a question that no rule asked with yes.
    Allow,
    /// Ask a person.
    Ask,
    /// Put it off.
    Defer,
    /// Refuse.
    Deny,
}

/// How a hook failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookFailure {
    /// It could not be started, or crashed.
    #[error("{0}")]
    Crashed(String),
    /// It gave no answer in time.
    #[error("it gave no answer in {0} ms")]
    TimedOut(u64),
    /// Its answer could not be read.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
}

/// What a failed hook means for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// The call is refused.
    #[default]
    Deny,
    /// The call goes on as if the hook had said nothing.
    Continue,
}

/// A hook.
pub trait Hook: Send + Sync {
    /// Its name, for records and messages.
    fn name(&self) -> &str;

    /// Whether it wants to be told. Called on every call, so it must be quick.
    fn wants(&self, moment: Moment, tool: &ToolIdentity) -> bool;

    /// What its failure means.
    fn on_failure(&self) -> OnFailure {
        OnFailure::Deny
    }

    /// Tells it.
    fn tell<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>>;
}

impl HookAnswer {
    /// A hook that has nothing to say.
    pub fn silent() -> Self {
        Self::default()
    }

    /// A refusal.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision::Deny), reason: Some(reason.into()), ..Self::default() }
    }

    /// A wish that a person be asked.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision::Ask), reason: Some(reason.into()), ..Self::default() }
    }

    /// Consent, which counts only where no rule speaks.
    pub fn allow() -> Self {
        Self { decision: Some(HookDecision::Allow), ..Self::default() }
    }

    /// Another input.
    pub fn rewrite(input: Map<String, Value>) -> Self {
        Self { updated_input: Some(input), ..Self::default() }
    }

    pub(crate) fn opinion(&self, by: &str) -> Option<Opinion> {
        let action = match self.decision? {
            HookDecision::Allow => Action::Allow,
            HookDecision::Ask => Action::Ask,
            HookDecision::Defer | HookDecision::Deny => Action::Deny,
        };
        Some(Opinion { by: by.to_owned(), action, reason: self.reason.clone() })
    }
}

/// The refusal that a failed hook means, unless its failure does not matter.
pub(crate) fn refusal_for(hook: &dyn Hook, failure: &HookFailure) -> Option<Refusal> {
    use toolgate_proto::Code;
    match hook.on_failure() {
        OnFailure::Continue => None,
        OnFailure::Deny => {
            let code = match failure {
                HookFailure::Crashed(_) => Code::HookFailed,
                HookFailure::TimedOut(_) => Code::HookTimedOut,
                HookFailure::Unreadable(_) => Code::HookUnreadable,
            };
            Some(Refusal::new(code, format!("hook `{}` failed: {failure}", hook.name())))
        }
    }
}
