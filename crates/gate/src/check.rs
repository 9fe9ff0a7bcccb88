//! Judging a call without running it: what `toolgate check` and approval previews use.
//!
//! The stages are those of the pipeline, so that a check and a call cannot come to different judgements. Nothing is
//! recorded, no approver is asked and no tool runs.

use crate::call_context::{CallContext, PipelineContext};
use crate::call_options::CallOptions;
use crate::event_bus::EventBus;
use crate::gate::Gate;
use crate::hook::{HookCall, HookEvent, HookFailure, refusal_for};
use crate::pipeline::prepare;
use crate::record_builder::RecordBuilder;
use crate::session::Session;
use crate::stage::judge::IntendedCall;
use crate::stage::resolve::ResolvedTool;
use crate::stage::{judge, resolve, validate};
use std::sync::Arc;
use toolgate_policy::Judgement;
use toolgate_proto::{CallId, Refusal, ToolCall, ToolIdentity};

impl Gate {
    /// Judges a call without running it: resolve, validate, judge. No hook runs and nothing is recorded; the judgement
    /// names the hooks that would run.
    ///
    /// A tool that a deny rule hides is judged all the same, so that the rule can be named.
    pub fn check(&self, session: &Session, call: &ToolCall) -> Result<Judgement, Refusal> {
        self.check_intended(session, |gate| gate.derive_intent(session, call))
    }

    /// The same for an intent that `intend` derives, also of a tool that is not registered. The settings are brought up to
    /// date first, and a gate that is shut refuses.
    pub fn check_intended(
        &self,
        session: &Session,
        intend: impl FnOnce(&Self) -> Result<IntendedCall, Refusal>,
    ) -> Result<Judgement, Refusal> {
        self.refresh();
        let snapshot = self.current().limited_to(session);
        snapshot.check_open()?;
        let intended = intend(self)?;
        let hooks = snapshot.screening_hooks(&intended.tool);
        let policy = session.effective_policy(snapshot.policy);
        let mut judgement = judge::judge_intended(&policy, &session.workspace(), &intended);
        judgement.note_unasked_hooks(&hooks);
        Ok(judgement)
    }

    /// The names of the PreToolUse hooks that run for a tool in this session, in order.
    pub fn screening_hooks(&self, session: &Session, tool: &ToolIdentity) -> Vec<String> {
        self.current().limited_to(session).screening_hooks(tool)
    }

    /// The refusal of a call by a PreToolUse hook that cannot run, whatever policy says of the call. No hook runs.
    pub fn foresee_hook_refusal(&self, session: &Session, intended: &IntendedCall) -> Option<Refusal> {
        let snapshot = self.current().limited_to(session);
        let call = HookCall {
            event: HookEvent::PreToolUse,
            call: &CallId::from("check"),
            tool: &intended.tool,
            input: &intended.input,
            intent: &intended.intent,
            mode: session.effective_policy(snapshot.policy).mode(),
            context: &CallContext::of(session),
            question: None,
            result: None,
            ran_for: None,
            fields: None,
        };
        let hooks = snapshot.hooks.iter().filter(|hook| hook.handles(HookEvent::PreToolUse, &intended.tool));
        hooks
            .filter_map(|hook| Some((hook, hook.find_misconfiguration(&call)?)))
            .find_map(|(hook, why)| refusal_for(hook.as_ref(), &HookFailure::Misconfigured(why)))
    }

    /// Judges a call with the PreToolUse hooks: they run as for a real call, and may rewrite the input or refuse it.
    pub async fn check_with_hooks(&self, session: &Session, call: &ToolCall) -> Result<Judgement, Refusal> {
        let options = CallOptions::default();
        let context = PipelineContext::new(self, session, call, &options);
        // No sink and no subscriber learns of a call that is only checked.
        let mut record = RecordBuilder::new(EventBus::new(Vec::new()), session, call);
        let screened = prepare(&context, &mut record).await?;
        Ok(judge::judge(&context, context.effective_policy(), screened).judgement)
    }

    /// The effects that a call would have, without judging it.
    pub fn derive_intent(&self, session: &Session, call: &ToolCall) -> Result<IntendedCall, Refusal> {
        let context = CallContext::of(session);
        let snapshot = self.current().limited_to(session);
        let tool = resolve::resolve_ignoring_deny_rules(&snapshot, &call.name, &context)?;
        let valid = validate::validate(tool, &call.input)?;
        Ok(judge::intended_call(&valid, &context))
    }

    /// The same for every registered tool, also one that the session does not have now: hidden by a setting, or not
    /// enabled. `None` if no tool has the name.
    pub fn derive_registered_intent(
        &self,
        session: &Session,
        call: &ToolCall,
    ) -> Option<Result<IntendedCall, Refusal>> {
        let tool = Arc::clone(self.current().registry.get(call.name.as_str())?);
        let valid = validate::validate(ResolvedTool { tool }, &call.input);
        Some(valid.map(|valid| judge::intended_call(&valid, &CallContext::of(session))))
    }
}
