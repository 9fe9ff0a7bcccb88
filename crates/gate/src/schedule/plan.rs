//! What is known of a call before it starts: its effects, and the locks that they need.

use super::lock_set::{LockSet, required_locks};
use crate::call_context::CallContext;
use crate::gate::Gate;
use crate::hook::{self, HookEvent};
use crate::session::Session;
use crate::stage::resolve::ResolvedTool;
use crate::stage::validate::validate;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use toolgate_proto::{Effect, ToolCall};

/// What is known of a call before it starts.
#[derive(Default)]
pub(super) struct CallPlan {
    pub(super) locks: LockSet,
    /// The effects that the locks were derived from.
    pub(super) effects: Vec<Effect>,
    /// No hook can change the effects before they are judged.
    pub(super) is_certain: bool,
}

/// Plans a call. A tool's own code runs here; where it panics, it will panic again in its own call, which reports it.
pub(super) fn plan_call(gate: &Gate, session: &Session, call: &ToolCall) -> CallPlan {
    catch_unwind(AssertUnwindSafe(|| build_plan(gate, session, call)))
        .unwrap_or_else(|_| CallPlan { locks: LockSet::exclusive(), ..CallPlan::default() })
}

fn build_plan(gate: &Gate, session: &Session, call: &ToolCall) -> CallPlan {
    let snapshot = gate.current().limited_to(session);
    let mut plan = CallPlan { is_certain: true, ..CallPlan::default() };
    // Whether the tool is visible is for the call to find out; one that will be refused locks more than it needs.
    let Some(tool) = snapshot.registry.get(call.name.as_str()).cloned() else { return plan };
    let resolved = ResolvedTool { tool: Arc::clone(&tool) };
    // An input that is not valid has no effects: the call will be refused.
    let Ok(valid) = validate(resolved, &call.input) else { return plan };
    let context = CallContext::of(session);
    let intent = valid.prepared.intent(&context);
    plan.locks = required_locks(&tool, &intent, &snapshot.policy, &context.workspace);
    plan.effects = intent.effects;
    if hook::any_hook_handles(&snapshot.hooks, HookEvent::PreToolUse, &tool.identity) {
        plan.locks = plan.locks.widened(&tool);
        plan.is_certain = false;
    }
    plan
}
