//! Hooks: code of the user's that sees calls before and after they run.
//!
//! A hook can make a judgement stricter, answer a question that no rule asked, or rewrite the input, which is then
//! checked and judged anew.
//! It can never lift a deny or a question that a rule demands.
//! One that is missing, crashes, hangs or talks nonsense denies, unless it says that it does not matter.
//!
//! Hooks are told one after the other, in the order in which they were registered, so that each sees what the one
//! before made of the input and the outcome does not depend on who is quicker.
//! Among their decisions deny beats defer beats ask beats allow.

mod answer;
mod batch;
mod dispatch;
mod event;
mod failure;

pub use answer::{HookAnswer, HookDecision};
pub use batch::{BatchHookOutcome, BatchedCall, HookBatch};
pub use event::HookEvent;
pub use failure::{HookFailure, OnFailure};

pub(crate) use dispatch::{any_hook_handles, run_hook};
pub(crate) use failure::refusal_for;

use crate::session::CallContext;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use toolgate_proto::{ApprovalQuestion, CallId, CallResult, Intent, Mode, ToolIdentity};

/// What a hook is told about a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookCall<'a> {
    /// The moment.
    pub moment: HookEvent,
    /// The call.
    pub call: &'a CallId,
    /// The tool.
    pub tool: &'a ToolIdentity,
    /// The input as it stands, earlier hooks' rewrites included.
    pub input: &'a Map<String, Value>,
    /// What the call would do with that input.
    pub intent: &'a Intent,
    /// The permission mode.
    pub mode: Mode,
    /// The surroundings.
    pub context: &'a CallContext,
    /// What a person is about to be asked, at [`HookEvent::PermissionRequest`].
    pub question: Option<&'a ApprovalQuestion>,
    /// What came of the call, for the moments after it.
    pub result: Option<&'a CallResult>,
    /// How long the tool ran, where it did.
    pub ran_for: Option<Duration>,
}

/// A hook.
pub trait Hook: Send + Sync {
    /// Its name, for records and messages.
    fn name(&self) -> &str;

    /// Whether it wants to be told. Called on every call, so it must be quick.
    fn handles(&self, moment: HookEvent, tool: &ToolIdentity) -> bool;

    /// What its failure means.
    fn on_failure(&self) -> OnFailure {
        OnFailure::Deny
    }

    /// Tells it.
    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>>;

    /// Whether it wants to be told of whole batches ([`HookEvent::PostToolBatch`]).
    fn handles_batches(&self) -> bool {
        false
    }

    /// Tells it of a batch of calls that are over.
    fn handle_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        let _ = batch;
        Box::pin(std::future::ready(Ok(HookAnswer::empty())))
    }
}

/// Behind an [`Arc`], so that a program can keep a hook that it passes to the builder.
impl<H: Hook + ?Sized> Hook for Arc<H> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn handles(&self, moment: HookEvent, tool: &ToolIdentity) -> bool {
        (**self).handles(moment, tool)
    }

    fn on_failure(&self) -> OnFailure {
        (**self).on_failure()
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        (**self).handle_call(call)
    }

    fn handles_batches(&self) -> bool {
        (**self).handles_batches()
    }

    fn handle_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        (**self).handle_batch(batch)
    }
}
