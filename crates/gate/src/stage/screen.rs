//! screen: PreToolUse hooks, in order. Each sees the input as the one before rewrote it.

use super::validate::{ValidatedCall, validate_object};
use crate::call_context::PipelineContext;
use crate::hook::{self, HookAnswer, HookCall, HookDecision, HookEvent, refusal_for};
use crate::record_builder::RecordBuilder;
use std::sync::Arc;
use toolgate_policy::HookOpinion;
use toolgate_proto::{Code, Intent, Refusal, Stage};

/// A valid input that every hook has seen.
pub(crate) struct ScreenedCall {
    pub(crate) valid: ValidatedCall,
    /// Decisions of hooks that policy takes into account.
    pub(crate) opinions: Vec<HookOpinion>,
}

/// Runs the PreToolUse hooks in order. Each sees the input as the one before it rewrote it.
pub(crate) async fn screen(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    valid: ValidatedCall,
) -> Result<ScreenedCall, Refusal> {
    let mut screened = ScreenedCall { valid, opinions: Vec::new() };
    let hooks = &context.snapshot.hooks;
    if !hook::any_hook_handles(hooks, HookEvent::PreToolUse, screened.valid.identity()) {
        return Ok(screened);
    }
    // Nothing overrides a deny, so it ends the round. A defer waits until every later hook had the chance to deny.
    let mut deferred: Option<Refusal> = None;
    let mut intent = screened.valid.prepared.intent(&context.call_context);
    for hook in hooks.iter() {
        if !hook.handles(HookEvent::PreToolUse, screened.valid.identity()) {
            continue;
        }
        let Some(answer) = ask_hook(context, record, hook.as_ref(), &screened.valid, &intent).await? else {
            continue;
        };
        match answer.decision {
            Some(HookDecision::Deny) => return Err(hook_refusal(Code::HookDenied, hook.name(), &answer)),
            Some(HookDecision::Defer) => {
                deferred.get_or_insert(hook_refusal(Code::HookDeferred, hook.name(), &answer));
            }
            Some(HookDecision::Allow | HookDecision::Ask) => {
                screened.opinions.extend(answer.opinion(hook.name()));
            }
            None => {}
        }
        if let Some(input) = answer.updated_input {
            screened.valid = validate_object(Arc::clone(&screened.valid.tool), input).map_err(|refusal| {
                let reason = format!("hook `{}` rewrote the input, and {}", hook.name(), refusal.reason);
                Refusal::new(refusal.code, reason)
            })?;
            intent = screened.valid.prepared.intent(&context.call_context);
            record.set_input(&screened.valid);
            record.update_record(|record| record.revisions.push(format!("hook: {}", hook.name())));
        }
    }
    match deferred {
        Some(refusal) => Err(refusal),
        None => Ok(screened),
    }
}

/// Runs one hook. `None` where it failed and its failure does not matter.
async fn ask_hook(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    hook: &dyn hook::Hook,
    valid: &ValidatedCall,
    intent: &Intent,
) -> Result<Option<HookAnswer>, Refusal> {
    let call = HookCall::new(context, HookEvent::PreToolUse, valid.identity(), valid.input(), intent);
    let running = async { Ok(hook::run_hook(&context.gate.event_bus, hook, call).await) };
    let ran = context.await_unless_stopped(Stage::Screen, running).await?;
    record.update_record(|record| record.hooks.push(ran.mark));
    let answer = match ran.result {
        Ok(answer) => answer,
        Err(failure) => return refusal_for(hook, &failure).map_or(Ok(None), Err),
    };
    record.apply_hook_answer(hook.name(), &answer);
    match &answer.stop {
        Some(reason) => Err(Refusal::new(Code::HookStopped, format!("hook `{}`: {reason}", hook.name()))),
        None => Ok(Some(answer)),
    }
}

/// The refusal of a call that a hook denied.
fn hook_refusal(code: Code, hook: &str, answer: &HookAnswer) -> Refusal {
    let reason = answer.reason.as_deref().unwrap_or("it gave no reason");
    Refusal::new(code, format!("hook `{hook}`: {reason}"))
}
