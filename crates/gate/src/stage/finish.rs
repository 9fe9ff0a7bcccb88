//! finish: hooks are told how it ended, what is too large is put into a file, and what hooks add reaches the model.

use super::validate::Valid;
use crate::gate::Gate;
use crate::hook::{HookCall, Moment};
use crate::pipeline::Walk;
use crate::registry::Registered;
use crate::shape::{Store, shape};
use futures_util::FutureExt;
use serde_json::{Map, Value};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use toolgate_proto::{Block, CallResult, Modifier, SourceId, Stage};

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
    if let Ok(output) = &result {
        apply(walk, &told.tool, &output.modifiers);
    }
    if let Ok(output) = &mut result
        && output.display.is_none()
    {
        output.display = told.tool.tool.render_result(output);
    }
    let output = match &mut result {
        Ok(output) => Some(output),
        Err(refusal) => refusal.partial.as_deref_mut(),
    };
    if let Some(output) = output {
        let store = Store { spill: gate.spill.as_deref(), session: &walk.scene.session, call: &walk.call.id };
        if let Some(path) = shape(output, &told.tool.spec, store) {
            walk.trail.spilled(path);
        }
    }
    add_context(&mut result, context);
    result
}

/// Applies what a successful call changes about its session.
fn apply(walk: &Walk<'_>, tool: &Registered, modifiers: &[Modifier]) {
    for modifier in modifiers {
        match modifier {
            // At once: the next call of the batch may be an edit of this very file.
            Modifier::FileRead { path, sha256, whole } => {
                walk.scene.session.context().read(path.clone(), sha256.clone(), *whole);
            }
            Modifier::QueueCommand { command } => match &walk.turn {
                Some(turn) => turn.after(command.clone()),
                None => walk.scene.session.context().queue(vec![command.clone()]),
            },
            // A tool's word is not a person's: only a built-in tool that asked somebody brings their answer.
            Modifier::PermissionGranted { rule } => {
                let asked = tool.identity.requires_interaction && tool.identity.source == SourceId::Builtin;
                if asked {
                    walk.gate.grant(rule, &walk.scene.workspace.cwd);
                } else {
                    tracing::warn!(tool = %tool.identity.name, rule, "a tool may not grant rules");
                }
            }
        }
    }
}

/// Adds words for the model beside a result.
pub(crate) fn add_context(result: &mut CallResult, context: Vec<String>) {
    if context.is_empty() {
        return;
    }
    let blocks = context.into_iter().map(|text| Block::Text { text });
    match result {
        Ok(output) => output.content.extend(blocks),
        Err(refusal) => refusal.partial.get_or_insert_default().content.extend(blocks),
    }
}
