//! Telling hooks that a whole batch of calls is over.

use super::dispatch::build_mark;
use super::{Hook, HookDecision, HookEvent, HookFailure, OnFailure};
use crate::gate::Gate;
use crate::pipeline::panic_message;
use crate::session::{CallContext, Session};
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
    /// What came of it.
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

/// What a hook is told about a batch.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookBatch<'a> {
    /// The calls, in the order in which the model made them.
    pub calls: &'a [BatchedCall],
    /// The permission mode.
    pub mode: Mode,
    /// The surroundings.
    pub context: &'a CallContext,
}

/// What hooks make of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct BatchHookOutcome {
    /// The agent should stop, for this reason.
    pub stop: Option<String>,
    /// What the model should know beside the results.
    pub context: Vec<String>,
    /// Words for the person.
    pub messages: Vec<String>,
    /// The hooks that were told.
    pub hooks: Vec<HookRecord>,
}

impl Gate {
    /// Tells hooks that a batch of calls is over. A hook that blocks, or that fails and matters, stops the agent:
    /// the calls themselves are over and cannot be undone.
    pub async fn run_batch_hooks(
        &self,
        session: &Session,
        calls: &[BatchedCall],
        cancel: &CancellationToken,
    ) -> BatchHookOutcome {
        let current = self.current();
        let mut end = BatchHookOutcome::default();
        let scene = CallContext::of(session);
        let batch = HookBatch { calls, mode: current.policy.mode(), context: &scene };
        for hook in current.hooks.iter().filter(|hook| hook.handles_batches()) {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    end.stop.get_or_insert_with(|| "the batch was cancelled".to_owned());
                    return end;
                }
                () = run_batch_hook(hook, batch, &mut end) => {}
            }
        }
        end
    }
}

async fn run_batch_hook(hook: &Arc<dyn Hook>, batch: HookBatch<'_>, end: &mut BatchHookOutcome) {
    let started = Instant::now();
    let said = match AssertUnwindSafe(async { hook.handle_batch(batch).await }).catch_unwind().await {
        Ok(said) => said,
        Err(panic) => Err(HookFailure::Crashed(format!("it crashed: {}", panic_message(&*panic)))),
    };
    end.hooks.push(build_mark(hook.as_ref(), HookEvent::PostToolBatch, &said, started));
    let mut stop = None;
    match said {
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
