//! Hooks for whole batches of calls.

use super::dispatch::{PublishedHookRun, build_mark};
use super::{Hook, HookDecision, HookEvent, HookFailure, OnFailure};
use crate::call_context::{CallContext, CallPurpose};
use crate::catch_panic::panic_message;
use crate::event_bus::EventBus;
use crate::gate::Gate;
use crate::session::Session;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_proto::{CallId, CallResult, HookRecord, Mode, ToolName};

/// One call of a batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BatchedCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The input as the model sent it.
    pub input: Map<String, Value>,
    /// Its result.
    pub result: CallResult,
}

impl BatchedCall {
    /// A call with its result.
    pub fn new(
        call: impl Into<CallId>,
        tool: impl Into<ToolName>,
        input: Map<String, Value>,
        result: CallResult,
    ) -> Self {
        Self { call: call.into(), tool: tool.into(), input, result }
    }
}

/// What a hook gets to see of a batch.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookBatch<'a> {
    /// The calls, in the order in which the model made them.
    pub calls: &'a [BatchedCall],
    /// The permission mode.
    pub mode: Mode,
    /// Where the call happens.
    pub context: &'a CallContext,
}

impl HookBatch<'_> {
    /// The purpose of a call that the hook makes to ask a tool about the batch.
    pub fn consultation(&self) -> CallPurpose {
        let last = self.calls.last().map_or_else(|| CallId::from(""), |batched| batched.call.clone());
        self.context.consultation(&last, 0, true)
    }
}

/// The outcome of batch hooks.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct BatchHookOutcome {
    /// The agent should stop, for this reason.
    pub stop: Option<String>,
    /// Text that the model gets beside the results.
    pub context: Vec<String>,
    /// Messages for the user.
    pub messages: Vec<String>,
    /// The hooks that ran.
    pub hooks: Vec<HookRecord>,
}

impl Gate {
    /// Runs hooks for a batch of calls that is over. A hook that blocks, or whose failure matters, stops the agent:
    /// the calls themselves are over and cannot be undone.
    pub async fn run_batch_hooks(
        &self,
        session: &Session,
        calls: &[BatchedCall],
        cancel: &CancellationToken,
    ) -> BatchHookOutcome {
        let current = self.current().limited_to(session);
        let mut end = BatchHookOutcome::default();
        let context = CallContext::of(session);
        let batch = HookBatch { calls, mode: current.policy.mode(), context: &context };
        for hook in current.hooks.iter().filter(|hook| hook.handles_batches()) {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    end.stop.get_or_insert_with(|| "the batch was cancelled".to_owned());
                    return end;
                }
                () = run_batch_hook(&self.event_bus, hook, batch, &mut end) => {}
            }
        }
        end
    }
}

/// Runs one hook for a batch, and adds what it wants to the outcome.
async fn run_batch_hook(
    event_bus: &EventBus,
    hook: &Arc<dyn Hook>,
    batch: HookBatch<'_>,
    end: &mut BatchHookOutcome,
) {
    let started = Instant::now();
    let run = PublishedHookRun::start(event_bus, hook.as_ref(), (HookEvent::PostToolBatch, None));
    let result = match AssertUnwindSafe(async { hook.handle_batch(batch).await }).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(HookFailure::Crashed(format!("it crashed: {}", panic_message(&*panic)))),
    };
    let mark = build_mark(hook.as_ref(), HookEvent::PostToolBatch, &result, started);
    run.end(&mark);
    end.hooks.push(mark);
    let mut stop = None;
    match result {
        Ok(answer) => {
            end.context.extend(answer.additional_context);
            end.messages.extend(answer.system_message);
            stop = answer.stop;
            if answer.decision.is_some_and(|decision| decision >= HookDecision::Defer) {
                stop = stop.or(answer.reason).or_else(|| Some("it gave no reason".to_owned()));
            }
        }
        Err(failure) => match hook.on_failure() {
            OnFailure::Deny => stop = Some(failure.to_string()),
            OnFailure::Continue => {}
        },
    }
    if let Some(reason) = stop {
        end.stop.get_or_insert(format!("hook `{}`: {reason}", hook.name()));
    }
}
