//! finish: hooks are told how it ended, and what they add reaches the model.

use super::validate::Valid;
use crate::gate::Gate;
use crate::hook::{HookCall, Moment};
use crate::pipeline::Walk;
use crate::registry::Registered;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use toolgate_proto::{Block, CallResult, Output, Stage};

/// What hooks after the run are told about.
pub(crate) struct Told {
    tool: Arc<Registered>,
    /// Absent where there are no hooks to be told.
    input: Option<Map<String, Value>>,
}

impl Told {
    pub(crate) fn about(valid: &Valid, gate: &Gate) -> Self {
        let input = (!gate.hooks.is_empty()).then(|| valid.input().clone());
        Self { tool: Arc::clone(&valid.tool), input }
    }
}

pub(crate) async fn finish(walk: &mut Walk<'_>, result: CallResult) -> CallResult {
    let Some(told) = walk.told.take() else { return result };
    let moment = match &result {
        Ok(_) => Moment::PostToolUse,
        Err(refusal) if refusal.stage >= Stage::Guard => Moment::PostToolUseFailure,
        Err(_) => Moment::PermissionDenied,
    };
    let gate = walk.gate;
    for hook in &gate.hooks {
        let Some(input) = told.input.as_ref().filter(|_| hook.wants(moment, &told.tool.identity)) else {
            continue;
        };
        let call = HookCall {
            moment,
            call: &walk.call.id,
            tool: &told.tool.identity,
            input,
            scene: &walk.scene,
            result: Some(&result),
        };
        // What ran, ran: a hook that fails now cannot undo it, and must not hide the result.
        match AssertUnwindSafe(hook.tell(call)).catch_unwind().await {
            Ok(Ok(answer)) => {
                walk.context.extend(answer.additional_context);
                if answer.decision.is_some_and(|decision| decision == crate::hook::HookDecision::Deny) {
                    walk.context.extend(answer.reason);
                }
            }
            Ok(Err(failure)) => {
                walk.context.push(format!("hook `{}` failed after the call: {failure}", hook.name()));
            }
            Err(_) => walk.context.push(format!("hook `{}` crashed after the call", hook.name())),
        }
    }
    let context = std::mem::take(&mut walk.context);
    let mut result = result;
    if let Ok(output) = &mut result
        && output.display.is_none()
    {
        output.display = told.tool.tool.render_result(output);
    }
    add_context(result, context)
}

fn add_context(result: CallResult, context: Vec<String>) -> CallResult {
    if context.is_empty() {
        return result;
    }
    let blocks = context.into_iter().map(|text| Block::Text { text });
    match result {
        Ok(mut output) => {
            output.content.extend(blocks);
            Ok(output)
        }
        Err(mut refusal) => {
            let mut partial = refusal.partial.take().map_or_else(Output::default, |partial| *partial);
            partial.content.extend(blocks);
            Err(refusal.with_partial(partial))
        }
    }
}
