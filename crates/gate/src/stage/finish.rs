//! finish: hooks are told how it ended, what is too large is put into a file, and what hooks add reaches the model.

use super::validate::ValidatedCall;
use crate::gate::GateSnapshot;
use crate::hook::{self, Hook, HookAnswer, HookCall, HookDecision, HookEvent, OnFailure};
use crate::pipeline::CallState;
use crate::registry::RegisteredTool;
use crate::schema::SchemaValidator;
use crate::truncate::{SpillTarget, truncate_output};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::timeout;
use toolgate_proto::{
    CallResult, Code, HookRecord, Intent, Output, OutputBlock, SessionModifier, SourceId, Stage,
};

/// What hooks after the run are told about.
pub(crate) struct HookSubject {
    tool: Arc<RegisteredTool>,
    /// Absent where there are no hooks to be told.
    input: Option<Map<String, Value>>,
}

impl HookSubject {
    pub(crate) fn new(valid: &ValidatedCall, current: &GateSnapshot) -> Self {
        let input = (!current.hooks.is_empty()).then(|| valid.input().clone());
        Self { tool: Arc::clone(&valid.tool), input }
    }

    /// What the call would have done. The input was taken once, so it is taken again.
    fn intent(&self, input: &Map<String, Value>, walk: &CallState<'_>) -> Intent {
        match self.tool.tool.parse_input(input) {
            Ok(prepared) => prepared.intent(&walk.call_context),
            Err(_) => Intent::new("", []),
        }
    }
}

pub(crate) async fn finish(walk: &mut CallState<'_>, result: CallResult) -> CallResult {
    let Some(told) = walk.hook_subject.take() else { return result };
    let gate = walk.gate;
    let mut result = result;
    if let Ok(output) = &result {
        apply_modifiers(walk, &told.tool, &output.modifiers);
    }
    if let (Some(moment), Some(input)) = (post_run_event(&result), &told.input)
        && hook::any_hook_handles(&walk.current.hooks, moment, &told.tool.identity)
    {
        result = run_post_hooks(walk, &told, input, moment, result).await;
    }
    let context = std::mem::take(&mut walk.context);
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
        let store = SpillTarget {
            spill: gate.spill.as_deref(),
            session: &walk.call_context.session,
            call: &walk.call.id,
        };
        if let Some(path) = truncate_output(output, &told.tool.spec, store) {
            walk.record.set_spill_path(path);
        }
    }
    add_context(&mut result, context);
    result
}

fn post_run_event(result: &CallResult) -> Option<HookEvent> {
    match result {
        Ok(_) => Some(HookEvent::PostToolUse),
        Err(refusal) if refusal.stage >= Stage::Guard => Some(HookEvent::PostToolUseFailure),
        // Nobody denied a call that was called off.
        Err(refusal) if matches!(refusal.code, Code::Cancelled | Code::DeadlinePassed) => None,
        Err(_) => Some(HookEvent::PermissionDenied),
    }
}

async fn run_post_hooks(
    walk: &mut CallState<'_>,
    told: &HookSubject,
    input: &Map<String, Value>,
    moment: HookEvent,
    mut result: CallResult,
) -> CallResult {
    let hooks = Arc::clone(&walk.current.hooks);
    let intent = told.intent(input, walk);
    for hook in hooks.iter().filter(|hook| hook.handles(moment, &told.tool.identity)) {
        let call = HookCall {
            moment,
            call: &walk.call.id,
            tool: &told.tool.identity,
            input,
            intent: &intent,
            mode: walk.current.policy.mode(),
            context: &walk.call_context,
            question: None,
            result: Some(&result),
            ran_for: walk.ran_for,
        };
        let telling = hook::run_hook(hook.as_ref(), call);
        // Whoever called the call off is waiting: hooks get a moment, not their whole time.
        let telling = if walk.cancel.is_cancelled() {
            match timeout(walk.gate.grace, telling).await {
                Ok(telling) => telling,
                Err(_) => {
                    walk.record
                        .update_record(|record| record.hooks.push(timed_out_mark(hook.as_ref(), moment)));
                    continue;
                }
            }
        } else {
            telling.await
        };
        let mut mark = telling.mark;
        match telling.result {
            Ok(answer) => {
                walk.apply_hook_answer(hook.name(), &answer);
                if let Err(problem) = revise(walk, told, hook.name(), answer, &mut result) {
                    mark.ended = "unreadable".to_owned();
                    mark.detail = Some(problem);
                }
            }
            // What ran, ran: a hook that fails now cannot undo it, and must not hide the result.
            Err(failure) => match hook.on_failure() {
                OnFailure::Deny => {
                    walk.context.push(format!("hook `{}` failed after the call: {failure}", hook.name()))
                }
                OnFailure::Continue => {}
            },
        }
        walk.record.update_record(|record| record.hooks.push(mark));
    }
    result
}

/// Applies what a hook makes of the end.
fn revise(
    walk: &mut CallState<'_>,
    told: &HookSubject,
    hook: &str,
    answer: HookAnswer,
    result: &mut CallResult,
) -> Result<(), String> {
    if answer.decision == Some(HookDecision::Deny) {
        let reason = answer.reason.as_deref().unwrap_or("it gave no reason");
        walk.context.push(format!("hook `{hook}` objects: {reason}"));
    }
    match result {
        Ok(output) => {
            if let Some(updated) = answer.updated_output {
                *output = replace_output(output, updated, told.tool.spec.output_schema.as_ref())?;
                walk.record.update_record(|record| record.revisions.push(format!("output, hook: {hook}")));
            }
        }
        Err(refusal) if answer.retry && refusal.stage < Stage::Guard => {
            let name = &told.tool.identity.name;
            walk.context.push(format!("A hook offers a retry: you may call `{name}` again."));
        }
        Err(_) => {}
    }
    Ok(())
}

/// The output as a hook would have it: text, blocks, or the structured form. What the tool changes about the session
/// stays, since that happened.
fn replace_output(output: &Output, updated: Value, schema: Option<&Value>) -> Result<Output, String> {
    let mut new = Output { modifiers: output.modifiers.clone(), ..Output::default() };
    if let Value::String(text) = &updated {
        new.content = vec![OutputBlock::Text { text: text.clone() }];
        return Ok(new);
    }
    if let Some(blocks) = updated.get("content")
        && let Ok(blocks) = serde_json::from_value(blocks.clone())
    {
        new.content = blocks;
        return Ok(new);
    }
    if output.structured.is_some()
        && let Some(schema) = schema
    {
        let checker = SchemaValidator::new(schema)?;
        checker
            .check(&updated)
            .map_err(|refusal| format!("its output does not fit what the tool gives: {}", refusal.reason))?;
    }
    new.content = vec![OutputBlock::Text { text: updated.to_string() }];
    new.structured = output.structured.as_ref().map(|_| updated);
    Ok(new)
}

fn timed_out_mark(hook: &dyn Hook, moment: HookEvent) -> HookRecord {
    HookRecord {
        hook: hook.name().to_owned(),
        moment: moment.as_str().to_owned(),
        ended: "timed_out".to_owned(),
        detail: Some("the call was called off".to_owned()),
        micros: 0,
    }
}

/// Applies what a successful call changes about its session.
fn apply_modifiers(walk: &CallState<'_>, tool: &RegisteredTool, modifiers: &[SessionModifier]) {
    for modifier in modifiers {
        match modifier {
            // At once: the next call of the batch may be an edit of this very file.
            SessionModifier::FileRead { path, hash, whole } => {
                walk.call_context.session.context().record_read(path.clone(), hash.clone(), *whole);
            }
            SessionModifier::QueueCommand { command } => match &walk.schedule {
                Some(turn) => turn.defer_command(command.clone()),
                None => walk.call_context.session.context().queue_commands(vec![command.clone()]),
            },
            // A tool's word is not a person's: only a built-in tool that asked somebody brings their answer.
            SessionModifier::PermissionGranted { rule } => {
                let asked = tool.identity.requires_interaction && tool.identity.source == SourceId::Builtin;
                if asked {
                    walk.gate.grant(std::slice::from_ref(rule), &walk.call_context.workspace.cwd);
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
    let blocks = context.into_iter().map(|text| OutputBlock::Text { text });
    match result {
        Ok(output) => output.content.extend(blocks),
        Err(refusal) => refusal.partial.get_or_insert_default().content.extend(blocks),
    }
}
