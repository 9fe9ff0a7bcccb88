//! screen: PreToolUse hooks, in order. Each sees what the one before made of the input.

use super::finish::HookSubject;
use super::validate::{ValidatedCall, validate_object};
use crate::hook::{self, HookAnswer, HookCall, HookDecision, HookEvent, refusal_for};
use crate::pipeline::CallState;
use std::sync::Arc;
use toolgate_policy::HookOpinion;
use toolgate_proto::{Code, Refusal};

/// A valid input that every hook has seen.
pub(crate) struct ScreenedCall {
    pub(crate) valid: ValidatedCall,
    pub(crate) opinions: Vec<HookOpinion>,
}

/// A call that no hook wants to see.
pub(crate) fn skip_screening(valid: ValidatedCall) -> ScreenedCall {
    ScreenedCall { valid, opinions: Vec::new() }
}

pub(crate) async fn screen(walk: &mut CallState<'_>, valid: ValidatedCall) -> Result<ScreenedCall, Refusal> {
    let mut screened = skip_screening(valid);
    let hooks = Arc::clone(&walk.current.hooks);
    // Nothing beats a deny, so it ends the round. A defer waits until every later hook had the chance to deny.
    let mut deferred: Option<Refusal> = None;
    let mut intent = screened.valid.prepared.intent(&walk.call_context);
    for hook in hooks.iter() {
        if !hook.handles(HookEvent::PreToolUse, screened.valid.identity()) {
            continue;
        }
        let told = HookCall {
            moment: HookEvent::PreToolUse,
            call: &walk.call.id,
            tool: screened.valid.identity(),
            input: screened.valid.input(),
            intent: &intent,
            mode: walk.current.policy.mode(),
            context: &walk.call_context,
            question: None,
            result: None,
            ran_for: None,
        };
        let telling =
            walk.await_unless_stopped(async { Ok(hook::run_hook(hook.as_ref(), told).await) }).await?;
        walk.record.update_record(|record| record.hooks.push(telling.mark));
        let answer = match telling.result {
            Ok(answer) => answer,
            Err(failure) => match refusal_for(hook.as_ref(), &failure) {
                Some(refusal) => return Err(refusal),
                None => continue,
            },
        };
        walk.apply_hook_answer(hook.name(), &answer);
        if let Some(reason) = &answer.stop {
            return Err(Refusal::new(Code::HookStopped, format!("hook `{}`: {reason}", hook.name())));
        }
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
            let tool = Arc::clone(&screened.valid.tool);
            screened.valid = validate_object(tool, input).map_err(|refusal| {
                Refusal::new(
                    refusal.code,
                    format!("hook `{}` rewrote the input, and {}", hook.name(), refusal.reason),
                )
            })?;
            intent = screened.valid.prepared.intent(&walk.call_context);
            walk.record.set_input(screened.valid.input());
            walk.record.update_record(|record| record.revisions.push(format!("hook: {}", hook.name())));
            walk.hook_subject = Some(HookSubject::new(&screened.valid, &walk.current));
        }
    }
    match deferred {
        Some(refusal) => Err(refusal),
        None => Ok(screened),
    }
}

fn hook_refusal(code: Code, hook: &str, answer: &HookAnswer) -> Refusal {
    let reason = answer.reason.as_deref().unwrap_or("it gave no reason");
    Refusal::new(code, format!("hook `{hook}`: {reason}"))
}
