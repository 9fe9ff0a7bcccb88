//! Hooks: the user's code that sees calls before and after they run.
//!
//! A hook can make a judgement stricter, answer a question that no rule asked, or rewrite the input, which is then
//! checked and judged anew.
//! It can never lift a deny or a question that a rule demands.
//! One that is missing, crashes, times out or answers with invalid output denies, unless its configuration says that a failure does not matter.
//!
//! Hooks run one after the other, in the order of registration, so that each sees the input as the one
//! before rewrote it, and the outcome does not depend on which is quicker.
//! Of their decisions deny overrides defer, defer overrides ask, and ask overrides allow.

mod answer;
mod batch;
mod dispatch;
mod event;
mod failure;
mod raised_hooks;
mod session_hooks;

pub use answer::{HookAnswer, HookDecision};
pub use batch::{BatchHookOutcome, BatchedCall, HookBatch};
pub use event::HookEvent;
pub use failure::{HookFailure, OnFailure};
pub use session_hooks::SessionHooks;

pub(crate) use dispatch::{any_hook_handles, run_hook};
pub(crate) use failure::refusal_for;
pub(crate) use raised_hooks::RaisedHooks;

use crate::call_context::{CallContext, CallPurpose, PipelineContext};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use toolgate_proto::{ApprovalQuestion, CallId, CallResult, Intent, Mode, ToolIdentity};

/// What a hook gets to see of a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookCall<'a> {
    /// The event.
    pub event: HookEvent,
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
    /// Where the call happens.
    pub context: &'a CallContext,
    /// What the user is about to be asked, at [`HookEvent::PermissionRequest`].
    pub question: Option<&'a ApprovalQuestion>,
    /// The result of the call, for events after it.
    pub result: Option<&'a CallResult>,
    /// How long the tool ran, where it did.
    pub ran_for: Option<Duration>,
    /// What only this event has, for events that the tool raises.
    pub fields: Option<&'a Map<String, Value>>,
}

impl<'a> HookCall<'a> {
    /// What a hook is shown of a call that has not run.
    pub(crate) fn new(
        context: &'a PipelineContext<'_>,
        event: HookEvent,
        tool: &'a ToolIdentity,
        input: &'a Map<String, Value>,
        intent: &'a Intent,
    ) -> Self {
        Self {
            event,
            call: &context.call.id,
            tool,
            input,
            intent,
            mode: context.effective_policy().effective.mode(),
            context: &context.call_context,
            question: None,
            result: None,
            ran_for: None,
            fields: None,
        }
    }

    /// The purpose of a call that the hook makes to ask a tool about this one.
    pub fn consultation(&self) -> CallPurpose {
        self.context.consultation(self.call, usize::from(self.question.is_some()), true)
    }
}

/// A hook.
pub trait Hook: Send + Sync {
    /// Its name, for records and messages.
    fn name(&self) -> &str;

    /// Whether it runs for this event. Called on every call, so it must be quick.
    fn handles(&self, event: HookEvent, tool: &ToolIdentity) -> bool;

    /// What its failure means.
    fn on_failure(&self) -> OnFailure {
        OnFailure::Deny
    }

    /// Why it would fail for this call, if that is known without running it. A check asks, so that it does not promise
    /// what no call does.
    fn find_misconfiguration(&self, call: &HookCall<'_>) -> Option<String> {
        let _ = call;
        None
    }

    /// Runs it.
    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>>;

    /// Whether it runs for whole batches ([`HookEvent::PostToolBatch`]).
    fn handles_batches(&self) -> bool {
        false
    }

    /// Runs it for a batch of calls that are over.
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

    fn handles(&self, event: HookEvent, tool: &ToolIdentity) -> bool {
        (**self).handles(event, tool)
    }

    fn on_failure(&self) -> OnFailure {
        (**self).on_failure()
    }

    fn find_misconfiguration(&self, call: &HookCall<'_>) -> Option<String> {
        (**self).find_misconfiguration(call)
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
