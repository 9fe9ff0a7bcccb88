//! Hooks for events that a running tool raises itself: a task was added, a task is about to be completed.

use super::{Hook, HookCall, HookDecision, HookEvent, any_hook_handles, refusal_for, run_hook};
use crate::call_context::CallContext;
use crate::progress::CallProgress;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_proto::{CallId, Code, Intent, Mode, Refusal, ToolIdentity};

/// The events that tools raise.
const RAISED_EVENTS: [HookEvent; 2] = [HookEvent::TaskCreated, HookEvent::TaskCompleted];

/// What hooks get to see of the call whose tool raises an event.
#[derive(Clone)]
pub(crate) struct RaisedHooks {
    hooks: Arc<[Arc<dyn Hook>]>,
    tool: ToolIdentity,
    input: Map<String, Value>,
    intent: Intent,
    mode: Mode,
}

impl std::fmt::Debug for RaisedHooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RaisedHooks").field("hooks", &self.hooks.len()).finish_non_exhaustive()
    }
}

impl RaisedHooks {
    /// The hooks that a call of this tool may need; `None` where there are none, which is the usual case.
    pub(crate) fn find(
        hooks: &Arc<[Arc<dyn Hook>]>,
        tool: &ToolIdentity,
        (input, intent, mode): (&Map<String, Value>, &Intent, Mode),
    ) -> Option<Self> {
        RAISED_EVENTS.iter().any(|event| any_hook_handles(hooks, *event, tool)).then(|| Self {
            hooks: Arc::clone(hooks),
            tool: tool.clone(),
            input: input.clone(),
            intent: intent.clone(),
            mode,
        })
    }

    /// Runs the hooks of an event, in order. The first that denies or fails ends the round with a refusal.
    pub(crate) async fn run(
        &self,
        (call, context, progress): (&CallId, &CallContext, &CallProgress),
        event: HookEvent,
        fields: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        for hook in self.hooks.iter().filter(|hook| hook.handles(event, &self.tool)) {
            let shown = HookCall {
                event,
                call,
                tool: &self.tool,
                input: &self.input,
                intent: &self.intent,
                mode: self.mode,
                context,
                question: None,
                result: None,
                ran_for: None,
                fields: Some(fields),
            };
            let ran = run_hook(progress.event_bus(), hook.as_ref(), shown).await;
            progress.report_hook(ran.mark);
            let answer = match ran.result {
                Ok(answer) => answer,
                Err(failure) => match refusal_for(hook.as_ref(), &failure) {
                    Some(refusal) => return Err(refusal),
                    None => continue,
                },
            };
            let reason = || answer.reason.as_deref().unwrap_or("it gave no reason");
            let refuse = |code: Code, reason: &str| {
                Err(Refusal::new(code, format!("hook `{}`: {reason}", hook.name())))
            };
            if let Some(stop) = &answer.stop {
                return refuse(Code::HookStopped, stop);
            }
            match answer.decision {
                Some(HookDecision::Deny | HookDecision::Ask | HookDecision::Defer) => {
                    return refuse(Code::HookDenied, reason());
                }
                Some(HookDecision::Allow) | None => {}
            }
        }
        Ok(())
    }
}
