//! finish: hooks see how the call ended, an oversized result goes to a file, and what hooks add reaches the model.

use super::validate::ValidatedCall;
use crate::call_context::PipelineContext;
use crate::hook::{self, Hook, HookAnswer, HookCall, HookDecision, HookEvent, OnFailure};
use crate::record_builder::RecordBuilder;
use crate::registry::RegisteredTool;
use crate::schema::SchemaValidator;
use crate::truncate::{SpillTarget, truncate_output};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::timeout;
use toolgate_proto::{
    CallResult, Code, HookRecord, Intent, Output, OutputBlock, SessionModifier, SourceId, Stage,
};

/// What hooks after the run are shown of the call.
pub(crate) struct HookSubject {
    tool: Arc<RegisteredTool>,
    /// Absent where no hook is configured.
    input: Option<Map<String, Value>>,
}

impl HookSubject {
    /// The subject of a call; the input is copied only where `keeps_input` says that a hook may want it.
    pub(crate) fn new(valid: &ValidatedCall, keeps_input: bool) -> Self {
        Self { tool: Arc::clone(&valid.tool), input: keeps_input.then(|| valid.input().clone()) }
    }

    /// The effects that the call was judged by. The parsed input is gone by now, so it is parsed again.
    fn intent(&self, input: &Map<String, Value>, context: &PipelineContext<'_>) -> Intent {
        match self.tool.tool.parse_input(input) {
            Ok(prepared) => prepared.intent(&context.call_context),
            Err(_) => Intent::new("", []),
        }
    }
}

/// Runs the hooks of the event that ended the call, and truncates its output. A hook that fails cannot hide the result.
pub(crate) async fn finish(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    mut result: CallResult,
) -> CallResult {
    let Some(subject) = record.take_hook_subject() else { return result };
    if let Ok(output) = &result {
        apply_modifiers(context, record, &subject.tool, &output.modifiers);
    }
    if let (Some(event), Some(input)) = (post_run_event(&result), &subject.input)
        && hook::any_hook_handles(&context.snapshot.hooks, event, &subject.tool.identity)
    {
        result = run_post_hooks(context, record, (&subject, input), event, result).await;
    }
    if let Ok(output) = &mut result
        && output.display.is_none()
    {
        output.display = subject.tool.tool.render_result(output);
    }
    let output = match &mut result {
        Ok(output) => Some(output),
        Err(refusal) => refusal.partial.as_deref_mut(),
    };
    if let Some(output) = output {
        let target = SpillTarget {
            spill: context.gate.spill.as_deref(),
            session: &context.call_context.session,
            call: &context.call.id,
        };
        if let Some(path) = truncate_output(output, &subject.tool.spec, target) {
            record.set_spill_path(path);
        }
    }
    add_context(&mut result, record.take_hook_context());
    result
}

/// The event that hooks are run for; `None` for a call that was cancelled before it could be denied.
fn post_run_event(result: &CallResult) -> Option<HookEvent> {
    match result {
        Ok(_) => Some(HookEvent::PostToolUse),
        Err(refusal) if refusal.stage >= Stage::Guard => Some(HookEvent::PostToolUseFailure),
        // A cancelled call was not denied.
        Err(refusal) if matches!(refusal.code, Code::Cancelled | Code::DeadlinePassed) => None,
        Err(_) => Some(HookEvent::PermissionDenied),
    }
}

/// Runs the hooks of an event in order; each sees the result as the one before it left it.
async fn run_post_hooks(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    (subject, input): (&HookSubject, &Map<String, Value>),
    event: HookEvent,
    mut result: CallResult,
) -> CallResult {
    let intent = subject.intent(input, context);
    let hooks = context.snapshot.hooks.iter();
    for hook in hooks.filter(|hook| hook.handles(event, &subject.tool.identity)) {
        let call = HookCall {
            result: Some(&result),
            ran_for: record.run_time(),
            ..HookCall::new(context, event, &subject.tool.identity, input, &intent)
        };
        let running = hook::run_hook(&context.gate.event_bus, hook.as_ref(), call);
        // The caller of a cancelled call is waiting: hooks get the grace period, not their whole timeout.
        let ran = if context.cancel.is_cancelled() {
            match timeout(context.gate.grace, running).await {
                Ok(ran) => ran,
                Err(_) => {
                    record.update_record(|record| record.hooks.push(timed_out_mark(hook.as_ref(), event)));
                    continue;
                }
            }
        } else {
            running.await
        };
        let mut mark = ran.mark;
        match ran.result {
            Ok(answer) => {
                record.apply_hook_answer(hook.name(), &answer);
                if let Err(problem) = revise_result(record, &subject.tool, hook.name(), answer, &mut result) {
                    mark.ended = "unreadable".to_owned();
                    mark.detail = Some(problem);
                }
            }
            // The tool has run: a hook that fails now cannot undo it, and must not hide the result.
            Err(failure) => match hook.on_failure() {
                OnFailure::Deny => record
                    .add_hook_context(format!("hook `{}` failed after the call: {failure}", hook.name())),
                OnFailure::Continue => {}
            },
        }
        record.update_record(|record| record.hooks.push(mark));
    }
    result
}

/// Applies what a hook makes of the result.
fn revise_result(
    record: &mut RecordBuilder,
    tool: &RegisteredTool,
    hook: &str,
    answer: HookAnswer,
    result: &mut CallResult,
) -> Result<(), String> {
    if answer.decision == Some(HookDecision::Deny) {
        let reason = answer.reason.as_deref().unwrap_or("it gave no reason");
        record.add_hook_context(format!("hook `{hook}` objects: {reason}"));
    }
    match result {
        Ok(output) => {
            if let Some(updated) = answer.updated_output {
                *output = replace_output(output, updated, tool.spec.output_schema.as_ref())?;
                record.update_record(|record| record.revisions.push(format!("output, hook: {hook}")));
            }
        }
        Err(refusal) if answer.retry && refusal.stage < Stage::Guard => {
            let name = &tool.identity.name;
            record.add_hook_context(format!("A hook offers a retry: you may call `{name}` again."));
        }
        Err(_) => {}
    }
    Ok(())
}

/// The output as a hook would have it: text, blocks, or the structured form. What the tool changes about the session
/// stays, since that happened.
fn replace_output(output: &Output, updated: Value, schema: Option<&Value>) -> Result<Output, String> {
    let mut new = Output::default();
    new.modifiers.clone_from(&output.modifiers);
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

/// The record of a hook that did not end before the call was cancelled.
fn timed_out_mark(hook: &dyn Hook, event: HookEvent) -> HookRecord {
    HookRecord::new(hook.name(), event.as_str(), "timed_out", 0)
        .with_detail(Some("the call was cancelled".to_owned()))
}

/// Applies what a successful call changes about its session.
fn apply_modifiers(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    tool: &RegisteredTool,
    modifiers: &[SessionModifier],
) {
    for modifier in modifiers {
        match modifier {
            // At once: the next call of the batch may be an edit of this very file.
            SessionModifier::FileRead { path, hash, whole } => {
                context.call_context.session.context().record_read(path.clone(), hash.clone(), *whole);
            }
            SessionModifier::QueueCommand { command } => record.queue_command(command.clone()),
            // A tool cannot grant in the user's name: only a built-in tool that prompted the user brings their answer.
            SessionModifier::PermissionGranted { rule } => {
                let asked = tool.identity.requires_interaction && tool.identity.source == SourceId::Builtin;
                if asked {
                    context.gate.grant(std::slice::from_ref(rule), &context.call_context.workspace.cwd);
                } else {
                    let name = &tool.identity.name;
                    tracing::warn!(tool = %name, rule, "a tool may not grant rules");
                    let refused = format!(
                        "the rule `{rule}` was not granted: the tool `{name}` cannot grant rules, only the user can"
                    );
                    record.add_message(refused.clone());
                    record.add_hook_context(refused);
                }
            }
            // One that the gate does not know has no effect, so it grants nothing.
            unknown => tracing::warn!(?unknown, "a change of the session was ignored"),
        }
    }
}

/// Adds text for the model beside a result.
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
