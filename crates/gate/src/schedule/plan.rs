//! What is known of a call before it starts: its input, read once, and what it lays hold of.

use super::lock_set::{LockSet, required_locks};
use crate::gate::Gate;
use crate::hook::{self, HookEvent};
use crate::registry::RegisteredTool;
use crate::session::{CallContext, Session};
use crate::stage::resolve::ResolvedTool;
use crate::stage::validate::{ValidatedCall, validate};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use toolgate_proto::{Effect, Refusal, ToolCall};

/// What is known of a call before it starts.
#[derive(Default)]
pub(super) struct CallPlan {
    pub(super) claim: LockSet,
    /// The effects that the claim was made from.
    pub(super) effects: Vec<Effect>,
    /// Nobody can change the effects before they are judged.
    pub(super) certain: bool,
    pub(super) prevalidated: Option<PrevalidatedCall>,
}

/// The input as a tool read it. Reading depends on nothing but the tool and the text, so it need not be done twice.
pub(crate) struct PrevalidatedCall {
    tool: Arc<RegisteredTool>,
    outcome: Result<ValidatedCall, Refusal>,
}

impl PrevalidatedCall {
    /// What reading gave, if it was this tool that read.
    pub(crate) fn for_tool(self, tool: &Arc<RegisteredTool>) -> Option<Result<ValidatedCall, Refusal>> {
        Arc::ptr_eq(&self.tool, tool).then_some(self.outcome)
    }
}

/// Looks ahead at a call. `before` is what an earlier look read.
pub(super) fn plan(
    gate: &Gate,
    session: &Session,
    call: &ToolCall,
    before: Option<PrevalidatedCall>,
) -> CallPlan {
    // A tool's own code runs here. Where it panics, it will panic again in its own call, which answers for it.
    catch_unwind(AssertUnwindSafe(|| build_plan(gate, session, call, before))).unwrap_or_else(|_| CallPlan {
        claim: LockSet { alone: true, ..LockSet::default() },
        ..CallPlan::default()
    })
}

fn build_plan(gate: &Gate, session: &Session, call: &ToolCall, before: Option<PrevalidatedCall>) -> CallPlan {
    let current = gate.current();
    // Whether the tool may be seen is for the call to say; one that will be refused claims more than it needs.
    let Some(tool) = current.registry.get(call.name.as_str()).cloned() else {
        return CallPlan { certain: true, ..CallPlan::default() };
    };
    let outcome = before
        .and_then(|before| before.for_tool(&tool))
        .unwrap_or_else(|| validate(ResolvedTool { tool: Arc::clone(&tool) }, &call.input));
    let mut plan = CallPlan { certain: true, ..CallPlan::default() };
    if let Ok(valid) = &outcome {
        let scene = CallContext::of(session);
        plan.effects = valid.prepared.intent(&scene).effects;
        plan.claim = required_locks(&tool, &plan.effects, &current.policy, &scene.workspace);
        if hook::any_hook_handles(&current.hooks, HookEvent::PreToolUse, &tool.identity) {
            plan.claim = plan.claim.widened(&tool);
            plan.certain = false;
        }
    }
    plan.prevalidated = Some(PrevalidatedCall { tool, outcome });
    plan
}
