//! screen: PreToolUse hooks, in order. Each sees what the one before made of the input.

use super::finish::Told;
use super::validate::{Valid, accept};
use crate::hook::{self, HookAnswer, HookCall, HookDecision, Moment, refusal_for};
use crate::pipeline::Walk;
use std::sync::Arc;
use toolgate_policy::HookOpinion;
use toolgate_proto::{Code, Refusal};

/// A valid input that every hook has seen.
pub(crate) struct ScreenedCall {
    pub(crate) valid: Valid,
    pub(crate) opinions: Vec<HookOpinion>,
}

/// A call that no hook wants to see.
pub(crate) fn unscreened(valid: Valid) -> ScreenedCall {
    ScreenedCall { valid, opinions: Vec::new() }
}

pub(crate) async fn screen(walk: &mut Walk<'_>, valid: Valid) -> Result<ScreenedCall, Refusal> {
    let mut screened = unscreened(valid);
    let hooks = Arc::clone(&walk.current.hooks);
    // Nothing beats a deny, so it ends the round. A defer waits until every later hook had the chance to deny.
    let mut deferred: Option<Refusal> = None;
    let mut intent = screened.valid.prepared.intent(&walk.scene);
    for hook in hooks.iter() {
        if !hook.wants(Moment::PreToolUse, screened.valid.identity()) {
            continue;
        }
        let told = HookCall {
            moment: Moment::PreToolUse,
            call: &walk.call.id,
            tool: screened.valid.identity(),
            input: screened.valid.input(),
            intent: &intent,
            mode: walk.current.policy.mode(),
            scene: &walk.scene,
            question: None,
            result: None,
            ran_for: None,
        };
        let telling = walk.within(async { Ok(hook::tell(hook.as_ref(), told).await) }).await?;
        walk.trail.note(|record| record.hooks.push(telling.mark));
        let answer = match telling.said {
            Ok(answer) => answer,
            Err(failure) => match refusal_for(hook.as_ref(), &failure) {
                Some(refusal) => return Err(refusal),
                None => continue,
            },
        };
        walk.heard(hook.name(), &answer);
        if let Some(reason) = &answer.stop {
            return Err(Refusal::new(Code::HookStopped, format!("hook `{}`: {reason}", hook.name())));
        }
        match answer.decision {
            Some(HookDecision::Deny) => return Err(refusal(Code::HookDenied, hook.name(), &answer)),
            Some(HookDecision::Defer) => {
                deferred.get_or_insert(refusal(Code::HookDeferred, hook.name(), &answer));
            }
            Some(HookDecision::Allow | HookDecision::Ask) => {
                screened.opinions.extend(answer.opinion(hook.name()));
            }
            None => {}
        }
        if let Some(input) = answer.updated_input {
            let tool = Arc::clone(&screened.valid.tool);
            screened.valid = accept(tool, input).map_err(|refusal| {
                Refusal::new(
                    refusal.code,
                    format!("hook `{}` rewrote the input, and {}", hook.name(), refusal.reason),
                )
            })?;
            intent = screened.valid.prepared.intent(&walk.scene);
            walk.trail.read(screened.valid.input());
            walk.trail.note(|record| record.revisions.push(format!("hook: {}", hook.name())));
            walk.told = Some(Told::about(&screened.valid, &walk.current));
        }
    }
    match deferred {
        Some(refusal) => Err(refusal),
        None => Ok(screened),
    }
}

fn refusal(code: Code, hook: &str, answer: &HookAnswer) -> Refusal {
    let reason = answer.reason.as_deref().unwrap_or("it gave no reason");
    Refusal::new(code, format!("hook `{hook}`: {reason}"))
}
