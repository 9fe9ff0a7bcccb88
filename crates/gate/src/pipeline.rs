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
//! The path has three parts: [`prepare`] (resolve, validate, screen), [`authorize`] (judge, settle) and [`execute`]
//! (guard, run). Before each of them a scheduled call may wait for locks and a slot ([`CallAdmission`], `schedule/`), and
//! only there, so stages know nothing of other calls. `check.rs` judges a call without running it, with the same stages.

use crate::approve::QuestionTicket;
use crate::call_admission::{CallAdmission, ImmediateAdmission};
use crate::call_context::PipelineContext;
use crate::call_options::{CallOptions, CallOutcome};
use crate::catch_panic::catch_panic;
use crate::gate::Gate;
use crate::record_builder::RecordBuilder;
use crate::session::Session;
use crate::stage::screen::ScreenedCall;
use crate::stage::settle::{GrantedCall, SettleOutcome};
use crate::stage::{finish, guard, judge, resolve, run, screen, settle, validate};
use toolgate_proto::{CallResult, Code, Refusal, Stage, ToolCall};
use tracing::Instrument;

/// How often an approver may revise the input of one call.
const MAX_REVISIONS: usize = 8;

impl Gate {
    /// Takes one call through the boundary. Returns when it is over, one way or the other, and leaves exactly one
    /// record: also when the tool panics, runs out of time or is cancelled, or when this future is dropped.
    pub async fn call(&self, session: &Session, call: ToolCall, options: CallOptions) -> CallOutcome {
        let context = PipelineContext::new(self, session, &call, &options);
        let mut outcome = run_call(&context, &mut ImmediateAdmission).await;
        session.context().queue_commands(std::mem::take(&mut outcome.queued_commands));
        outcome
    }
}

/// Runs one call, by itself or scheduled, from its first stage to its record.
pub(crate) async fn run_call(
    context: &PipelineContext<'_>,
    admission: &mut impl CallAdmission,
) -> CallOutcome {
    let mut record = RecordBuilder::open(context);
    let span = record.call_span();
    let result = catch_panic(run_pipeline(context, &mut record, admission).instrument(span)).await;
    finish_call(context, record, result).await
}

/// The stages before `finish`, in order. An approver may revise the input; it is then judged again, a bounded number of
/// times.
async fn run_pipeline(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    admission: &mut impl CallAdmission,
) -> CallResult {
    let mut screened = {
        let _slot = admission.acquire_slot(context, Stage::Resolve).await?;
        prepare(context, record).await?
    };
    for _ in 0..=MAX_REVISIONS {
        admission.lock_effects(context, &screened).await?;
        match authorize(context, record, screened, admission.take_ticket()).await? {
            AuthorizationOutcome::Granted(granted) => {
                let _slot = admission.acquire_slot(context, Stage::Guard).await?;
                return execute(context, record, *granted).await;
            }
            AuthorizationOutcome::Revised(revised) => screened = *revised,
        }
    }
    Err(Refusal::new(Code::Declined, "the input was revised too often"))
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
enum AuthorizationOutcome {
    /// It may run, once.
    Granted(Box<GrantedCall>),
    /// An approver changed the input: it must be authorized as it is now.
    Revised(Box<ScreenedCall>),
}

/// judge, settle: policy decides, and an approver where policy asks. `ticket` counts a call of a batch until it is settled.
async fn authorize(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    mut screened: ScreenedCall,
    mut ticket: Option<QuestionTicket>,
) -> Result<AuthorizationOutcome, Refusal> {
    let mut policy = context.effective_policy();
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
async fn execute(
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
async fn finish_call(
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
