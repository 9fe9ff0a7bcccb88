//! What is known of a call before it starts: its input, read once, and what it lays hold of.

use super::claim::{LockSet, required_locks};
use crate::gate::Gate;
use crate::hook::{self, Moment};
use crate::registry::RegisteredTool;
use crate::scene::{Scene, Session};
use crate::stage::resolve::Found;
use crate::stage::validate::{Valid, validate};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use toolgate_proto::{Effect, Refusal, ToolCall};

/// What is known of a call before it starts.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) claim: LockSet,
    /// The effects that the claim was made from.
    pub(super) effects: Vec<Effect>,
    /// Nobody can change the effects before they are judged.
    pub(super) certain: bool,
    pub(super) foreseen: Option<PrevalidatedCall>,
}

/// The input as a tool read it. Reading depends on nothing but the tool and the text, so it need not be done twice.
pub(crate) struct PrevalidatedCall {
    tool: Arc<RegisteredTool>,
    outcome: Result<Valid, Refusal>,
}

impl PrevalidatedCall {
    /// What reading gave, if it was this tool that read.
    pub(crate) fn of(self, tool: &Arc<RegisteredTool>) -> Option<Result<Valid, Refusal>> {
        Arc::ptr_eq(&self.tool, tool).then_some(self.outcome)
    }
}

/// Looks ahead at a call. `before` is what an earlier look read.
pub(super) fn plan(
    gate: &Gate,
    session: &Session,
    call: &ToolCall,
    before: Option<PrevalidatedCall>,
) -> Plan {
    // A tool's own code runs here. Where it panics, it will panic again in its own call, which answers for it.
    catch_unwind(AssertUnwindSafe(|| look_ahead(gate, session, call, before)))
        .unwrap_or_else(|_| Plan { claim: LockSet { alone: true, ..LockSet::default() }, ..Plan::default() })
}

fn look_ahead(gate: &Gate, session: &Session, call: &ToolCall, before: Option<PrevalidatedCall>) -> Plan {
    let current = gate.current();
    // Whether the tool may be seen is for the call to say; one that will be refused claims more than it needs.
    let Some(tool) = current.registry.get(call.name.as_str()).cloned() else {
        return Plan { certain: true, ..Plan::default() };
    };
    let outcome = before
        .and_then(|before| before.of(&tool))
        .unwrap_or_else(|| validate(Found { tool: Arc::clone(&tool) }, &call.input));
    let mut plan = Plan { certain: true, ..Plan::default() };
    if let Ok(valid) = &outcome {
        let scene = Scene::of(session);
        plan.effects = valid.prepared.intent(&scene).effects;
        plan.claim = required_locks(&tool, &plan.effects, &current.policy, &scene.workspace);
        if hook::wants(&current.hooks, Moment::PreToolUse, &tool.identity) {
            plan.claim = plan.claim.widened(&tool);
            plan.certain = false;
        }
    }
    plan.foreseen = Some(PrevalidatedCall { tool, outcome });
    plan
}
