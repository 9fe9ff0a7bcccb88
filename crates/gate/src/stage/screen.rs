//! screen: PreToolUse hooks, in order. Each sees what the one before made of the input.

use super::validate::{Valid, accept};
use crate::gate::Gate;
use crate::hook::{HookCall, HookDecision, Moment, refusal_for};
use crate::pipeline::{Walk, words_of};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use toolgate_policy::Opinion;
use toolgate_proto::{Code, Refusal, ToolIdentity};

/// A valid input that every hook has seen.
pub(crate) struct Screened {
    pub(crate) valid: Valid,
    pub(crate) opinions: Vec<Opinion>,
}

/// A call that no hook wants to see.
pub(crate) fn unscreened(valid: Valid) -> Screened {
    Screened { valid, opinions: Vec::new() }
}

impl Gate {
    pub(crate) fn hooks_want(&self, moment: Moment, tool: &ToolIdentity) -> bool {
        self.hooks.iter().any(|hook| hook.wants(moment, tool))
    }
}

pub(crate) async fn screen(walk: &mut Walk<'_>, valid: Valid) -> Result<Screened, Refusal> {
    let mut screened = unscreened(valid);
    let gate = walk.gate;
    for hook in &gate.hooks {
        if !hook.wants(Moment::PreToolUse, screened.valid.identity()) {
            continue;
        }
        let told = HookCall {
            moment: Moment::PreToolUse,
            call: &walk.call.id,
            tool: screened.valid.identity(),
            input: screened.valid.input(),
            scene: &walk.scene,
            result: None,
        };
        let telling = async { Ok(AssertUnwindSafe(hook.tell(told)).catch_unwind().await) };
        let answer = match walk.within(telling).await? {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => match refusal_for(hook.as_ref(), &failure) {
                Some(refusal) => return Err(refusal),
                None => continue,
            },
            Err(panic) => {
                let failure = crate::hook::HookFailure::Crashed(words_of(&*panic).to_owned());
                match refusal_for(hook.as_ref(), &failure) {
                    Some(refusal) => return Err(refusal),
                    None => continue,
                }
            }
        };
        walk.context.extend(answer.additional_context.clone());
        match answer.decision {
            Some(HookDecision::Deny) => {
                let reason = answer.reason.as_deref().unwrap_or("it gave no reason");
                return Err(Refusal::new(Code::HookDenied, format!("hook `{}`: {reason}", hook.name())));
            }
            Some(HookDecision::Defer) => {
                let reason = answer.reason.as_deref().unwrap_or("it gave no reason");
                return Err(Refusal::new(Code::HookDeferred, format!("hook `{}`: {reason}", hook.name())));
            }
            Some(HookDecision::Allow | HookDecision::Ask) | None => {}
        }
        screened.opinions.extend(answer.opinion(hook.name()));
        if let Some(input) = answer.updated_input {
            let tool = Arc::clone(&screened.valid.tool);
            screened.valid = accept(tool, input).map_err(|refusal| {
                Refusal::new(
                    refusal.code,
                    format!("hook `{}` rewrote the input, and {}", hook.name(), refusal.reason),
                )
            })?;
            walk.trail.read(screened.valid.input());
            walk.trail.note(|record| record.revisions.push(format!("hook: {}", hook.name())));
            walk.told = Some(super::finish::Told::about(&screened.valid, gate));
        }
    }
    Ok(screened)
}
