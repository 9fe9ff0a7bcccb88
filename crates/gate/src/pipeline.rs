//! The path of one call. This is the file to open first.
//!
//! ```text
//! ToolCall ─resolve→ ResolvedTool ─validate→ ValidatedCall ─screen→ ScreenedCall ─judge→ JudgedCall
//!          ─settle→ GrantedCall ─guard→ PreparedCall (with a Cleared) ─run→ Output ─finish→ CallRecord
//! ```
//!
//! Each stage takes what the one before it made and returns the input of the next, or a [`Refusal`].
//! Order is the security property, so it stands here as code, not in a list that could be assembled otherwise.
//! A stage cannot be skipped, because nothing else makes its result: only `settle` issues a
//! [`Permit`](crate::Permit), only `guard` turns it into a [`Cleared`](crate::Cleared), and only that runs a tool.
//!
//! A [`PipelineContext`] goes in and never changes; a [`RecordBuilder`] collects.
//! The path has three parts, and [`Gate::call`] runs them in a row: [`prepare`] (resolve, validate, screen),
//! [`authorize`] (judge, settle) and [`execute`] (guard, run).
//! A batch runs the same three and waits for locks and a slot between them (`schedule/`), so scheduling stands around
//! the path and not inside it.

use crate::call_context::PipelineContext;
use crate::call_options::{CallOptions, CallOutcome};
use crate::catch_panic::catch_panic;
use crate::event_bus::EventBus;
use crate::gate::Gate;
use crate::hook::HookEvent;
use crate::record_builder::RecordBuilder;
use crate::session::Session;
use crate::stage::judge::IntendedCall;
use crate::stage::screen::ScreenedCall;
use crate::stage::settle::{GrantedCall, SettleOutcome};
use crate::stage::{finish, guard, judge, resolve, run, screen, settle, validate};
use toolgate_policy::Judgement;
use toolgate_proto::{CallResult, Code, Refusal, Stage, ToolCall, ToolIdentity};
use tracing::Instrument;

/// How often an approver may revise the input of one call.
pub(crate) const MAX_REVISIONS: usize = 8;

impl Gate {
    /// Takes one call through the boundary. Returns when it is over, one way or the other, and leaves exactly one
    /// record: also when the tool panics, runs out of time or is cancelled, or when this future is dropped.
    pub async fn call(&self, session: &Session, call: ToolCall, options: CallOptions) -> CallOutcome {
        let context = PipelineContext::new(self, session, &call, &options);
        let mut record = RecordBuilder::open(&context);
        let span = record.call_span();
        let result = catch_panic(run_pipeline(&context, &mut record).instrument(span)).await;
        let mut outcome = finish_call(&context, record, result).await;
        session.context().queue_commands(std::mem::take(&mut outcome.queued_commands));
        outcome
    }

    /// Judges a call without running it: resolve, validate, judge. No hook runs and nothing is recorded; the judgement
    /// names the hooks that would run.
    ///
    /// A tool that a deny rule hides is judged all the same, so that the rule can be named.
    pub fn check(&self, session: &Session, call: &ToolCall) -> Result<Judgement, Refusal> {
        self.check_intended(session, |gate| gate.derive_intent(session, call))
    }

    /// The same for an intent that `intend` derives, also of a tool that is not registered. This is the one path of
    /// every check: the settings are brought up to date first, and a gate that is shut refuses.
    pub fn check_intended(
        &self,
        session: &Session,
        intend: impl FnOnce(&Self) -> Result<IntendedCall, Refusal>,
    ) -> Result<Judgement, Refusal> {
        self.refresh();
        let snapshot = self.current();
        snapshot.check_open()?;
        let intended = intend(self)?;
        let mut judgement = judge::judge_intended(
            &session.effective_policy(snapshot.policy),
            &session.workspace(),
            &intended,
        );
        judgement.note_unasked_hooks(&self.screening_hooks(&intended.tool));
        Ok(judgement)
    }

    /// The names of the PreToolUse hooks that run for a tool, in order.
    pub fn screening_hooks(&self, tool: &ToolIdentity) -> Vec<String> {
        let snapshot = self.current();
        let hooks = snapshot.hooks.iter().filter(|hook| hook.handles(HookEvent::PreToolUse, tool));
        hooks.map(|hook| hook.name().to_owned()).collect()
    }

    /// The same, with the PreToolUse hooks: they run as for a real call, and may rewrite the input or refuse it.
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
        let context = crate::CallContext::of(session);
        let tool = resolve::resolve_ignoring_deny_rules(&self.current(), &call.name, &context)?;
        let valid = validate::validate(tool, &call.input)?;
        Ok(judge::intended_call(&valid, &context))
    }
}

async fn run_pipeline(context: &PipelineContext<'_>, record: &mut RecordBuilder) -> CallResult {
    let mut screened = prepare(context, record).await?;
    for _ in 0..=MAX_REVISIONS {
        match authorize(context, record, screened).await? {
            AuthorizationOutcome::Granted(granted) => return execute(context, record, *granted).await,
            AuthorizationOutcome::Revised(revised) => screened = *revised,
        }
    }
    Err(revised_too_often())
}

/// resolve, validate, screen: a visible tool, a valid input, and every hook has seen it.
pub(crate) async fn prepare(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
) -> Result<ScreenedCall, Refusal> {
    context.snapshot.check_open()?;
    context.gate.event_bus.check_recordable().map_err(|refusal| refusal.at_stage(Stage::Resolve))?;
    let tool = resolve::resolve_expected(context).await?;
    record.set_tool(tool.identity());

    enter(context, record, Stage::Validate)?;
    let valid = validate::validate(tool, &context.call.input)?;
    record.set_input(&valid);

    enter(context, record, Stage::Screen)?;
    screen::screen(context, record, valid).await
}

/// What became of a question whether a call may run.
pub(crate) enum AuthorizationOutcome {
    /// It may run, once.
    Granted(Box<GrantedCall>),
    /// An approver changed the input: it must be authorized as it is now.
    Revised(Box<ScreenedCall>),
}

/// judge, settle: policy decides, and an approver where policy asks.
pub(crate) async fn authorize(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    mut screened: ScreenedCall,
) -> Result<AuthorizationOutcome, Refusal> {
    let mut policy = context.effective_policy();
    let mut ticket = None;
    loop {
        enter(context, record, Stage::Judge)?;
        let judged = judge::judge(context, policy, screened);
        record.set_judgement(&judged);

        enter(context, record, Stage::Settle)?;
        match settle::settle(context, record, judged, &mut ticket).await? {
            SettleOutcome::Granted(granted) => return Ok(AuthorizationOutcome::Granted(granted)),
            SettleOutcome::Revised(revised) => return Ok(AuthorizationOutcome::Revised(revised)),
            SettleOutcome::PolicyChanged(unsettled, newer) => (screened, policy) = (*unsettled, newer),
        }
    }
}

/// guard, run: the tool's own preconditions, then the tool itself.
pub(crate) async fn execute(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    granted: GrantedCall,
) -> CallResult {
    enter(context, record, Stage::Guard)?;
    // Again: a question may have waited for its answer since.
    context.gate.event_bus.check_recordable()?;
    let prepared = guard::guard(context, granted).await?;

    enter(context, record, Stage::Run)?;
    run::run(context, record, prepared).await
}

/// finish, and the one record.
pub(crate) async fn finish_call(
    context: &PipelineContext<'_>,
    mut record: RecordBuilder,
    result: Result<CallResult, String>,
) -> CallOutcome {
    let crashed = |message: String, stage: Stage| {
        Refusal::new(Code::Internal, format!("crashed: {message}")).at_stage(stage)
    };
    let result = result.unwrap_or_else(|message| Err(crashed(message, record.stage())));
    record.enter(Stage::Finish);
    let span = record.call_span();
    let finished = catch_panic(finish::finish(context, &mut record, result).instrument(span)).await;
    record.close(finished.unwrap_or_else(|message| Err(crashed(message, Stage::Finish))))
}

/// Enters the next stage, unless the call is cancelled or out of time.
fn enter(context: &PipelineContext<'_>, record: &mut RecordBuilder, next: Stage) -> Result<(), Refusal> {
    record.enter(next);
    context.check_running(next)
}

pub(crate) fn revised_too_often() -> Refusal {
    Refusal::new(Code::Declined, "the input was revised too often")
}
