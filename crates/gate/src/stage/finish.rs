//! finish: hooks are told how it ended, and what they add reaches the model.

use super::validate::Valid;
use crate::hook::{self, Hook, HookAnswer, HookCall, HookDecision, Moment, OnFailure};
use crate::pipeline::Walk;
use crate::registry::Registered;
use crate::schema::Checker;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::timeout;
use toolgate_proto::{Block, CallResult, Code, HookMark, Intent, Output, Stage};

/// What hooks after the run are told about.
pub(crate) struct Told {
    tool: Arc<Registered>,
    input: Map<String, Value>,
}

impl Told {
    pub(crate) fn about(valid: &Valid) -> Self {
        Self { tool: Arc::clone(&valid.tool), input: valid.input().clone() }
    }

    /// What the call would have done. The input was taken once, so it is taken again.
    fn intent(&self, walk: &Walk<'_>) -> Intent {
        match self.tool.tool.read(&self.input) {
            Ok(prepared) => prepared.intent(&walk.scene),
            Err(_) => Intent::new("", []),
        }
    }
}

pub(crate) async fn finish(walk: &mut Walk<'_>, result: CallResult) -> CallResult {
    let Some(told) = walk.told.take() else { return result };
    let mut result = result;
    if let Some(moment) = moment_of(&result)
        && hook::wants(&walk.current.hooks, moment, &told.tool.identity)
    {
        result = tell_all(walk, &told, moment, result).await;
    }
    if let Ok(output) = &mut result
        && output.display.is_none()
    {
        output.display = told.tool.tool.render_result(output);
    }
    add_context(result, std::mem::take(&mut walk.context))
}

fn moment_of(result: &CallResult) -> Option<Moment> {
    match result {
        Ok(_) => Some(Moment::PostToolUse),
        Err(refusal) if refusal.stage >= Stage::Guard => Some(Moment::PostToolUseFailure),
        // Nobody denied a call that was called off.
        Err(refusal) if matches!(refusal.code, Code::Cancelled | Code::DeadlinePassed) => None,
        Err(_) => Some(Moment::PermissionDenied),
    }
}

async fn tell_all(walk: &mut Walk<'_>, told: &Told, moment: Moment, mut result: CallResult) -> CallResult {
    let hooks = Arc::clone(&walk.current.hooks);
    let intent = told.intent(walk);
    for hook in hooks.iter().filter(|hook| hook.wants(moment, &told.tool.identity)) {
        let call = HookCall {
            moment,
            call: &walk.call.id,
            tool: &told.tool.identity,
            input: &told.input,
            intent: &intent,
            mode: walk.current.policy.mode(),
            scene: &walk.scene,
            question: None,
            result: Some(&result),
            ran_for: walk.ran_for,
        };
        let telling = hook::tell(hook.as_ref(), call);
        // Whoever called the call off is waiting: hooks get a moment, not their whole time.
        let telling = if walk.cancel.is_cancelled() {
            match timeout(walk.gate.grace, telling).await {
                Ok(telling) => telling,
                Err(_) => {
                    walk.trail.note(|record| record.hooks.push(cut_short(hook.as_ref(), moment)));
                    continue;
                }
            }
        } else {
            telling.await
        };
        let mut mark = telling.mark;
        match telling.said {
            Ok(answer) => {
                walk.heard(hook.name(), &answer);
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
        walk.trail.note(|record| record.hooks.push(mark));
    }
    result
}

/// Applies what a hook makes of the end.
fn revise(
    walk: &mut Walk<'_>,
    told: &Told,
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
                *output = replaced(output, updated, told.tool.spec.output_schema.as_ref())?;
                walk.trail.note(|record| record.revisions.push(format!("output, hook: {hook}")));
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
fn replaced(output: &Output, updated: Value, schema: Option<&Value>) -> Result<Output, String> {
    let mut new = Output { modifiers: output.modifiers.clone(), ..Output::default() };
    if let Value::String(text) = &updated {
        new.content = vec![Block::Text { text: text.clone() }];
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
        let checker = Checker::new(schema)?;
        checker
            .check(&updated)
            .map_err(|refusal| format!("its output does not fit what the tool gives: {}", refusal.reason))?;
    }
    new.content = vec![Block::Text { text: updated.to_string() }];
    new.structured = output.structured.as_ref().map(|_| updated);
    Ok(new)
}

fn cut_short(hook: &dyn Hook, moment: Moment) -> HookMark {
    HookMark {
        hook: hook.name().to_owned(),
        moment: moment.as_str().to_owned(),
        ended: "timed_out".to_owned(),
        detail: Some("the call was called off".to_owned()),
        micros: 0,
    }
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
