//! The path of one call. This is the file to open first.
//!
//! ```text
//! ToolCall ─resolve→ Found ─validate→ Valid ─screen→ Screened ─judge→ Judged ─settle→ Granted ─guard→ Cleared ─run→ Output ─finish→ CallRecord
//! ```
//!
//! Each stage takes what the one before it made and gives the next its input, or a [`Refusal`].
//! Order is the security property, so it stands here as one function, not in a list that could be assembled
//! otherwise.
//! A stage cannot be skipped, because nothing else makes its result: only `settle` issues a
//! [`Permit`](crate::Permit), only `guard` turns it into a [`Cleared`](crate::Cleared), and only that runs a tool.

use crate::gate::{Gate, GateSnapshot};
use crate::hook::{self, HookAnswer, HookEvent};
use crate::record_builder::RecordBuilder;
use crate::schedule::{PrevalidatedCall, ScheduleHandle};
use crate::session::{CallContext, Session};
use crate::stage::judge::IntendedCall;
use crate::stage::{finish, guard, judge, resolve, run, screen, settle, validate};
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolgate_policy::Judgement;
use toolgate_proto::{CallRecord, CallResult, Code, Event, Refusal, Stage, ToolCall};
use tracing::Instrument;

/// An approver may revise an input, which is then judged again; not for ever.
const MAX_REVISIONS: usize = 8;

/// How long a call may go on.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// Ends it after this long, all stages together.
    pub timeout: Option<Duration>,
    /// The caller has no use for the structured form of the result.
    pub plain: bool,
    /// The caller has called [`Gate::look`] since the call arrived.
    pub refreshed: bool,
}

/// A call that is over: its result, and its record.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    /// What the model gets.
    pub result: CallResult,
    /// What is remembered.
    pub record: CallRecord,
    /// A hook wants the agent to stop altogether, for this reason.
    pub stop: Option<String>,
    /// Words for the person, from hooks and about what was remembered.
    pub messages: Vec<String>,
}

/// One call on its way. What each stage may need beside the value it is handed.
pub(crate) struct CallState<'g> {
    pub(crate) gate: &'g Gate,
    pub(crate) current: GateSnapshot,
    pub(crate) call_context: CallContext,
    pub(crate) call: &'g ToolCall,
    pub(crate) record: RecordBuilder,
    pub(crate) cancel: CancellationToken,
    pub(crate) deadline: Option<Instant>,
    /// What hooks want the model to know beside the result.
    pub(crate) context: Vec<String>,
    /// Words for the person.
    pub(crate) messages: Vec<String>,
    /// Why a hook wants the agent to stop.
    pub(crate) stop: Option<String>,
    /// How long the tool ran.
    pub(crate) ran_for: Option<Duration>,
    /// Which hooks must be told of the end, and about what. Set once the input is valid.
    pub(crate) hook_subject: Option<finish::HookSubject>,
    /// Its place among other calls, where it is one of a batch.
    pub(crate) schedule: Option<ScheduleHandle>,
}

impl Gate {
    /// Takes one call through the boundary. Returns when it is over, one way or the other, and leaves exactly one
    /// record: also when the tool panics, runs out of time or is cancelled, or when this future is dropped.
    pub async fn call(&self, session: &Session, call: ToolCall, limits: CallOptions) -> CallOutcome {
        self.call_in_batch(session, &call, limits, None).await
    }

    /// The same for a call that asks a tool about another call: a hook's, or one in a person's place. Its input quotes
    /// the other call, so the paths in it are not taken for what the tool touches.
    pub async fn consult(&self, session: &Session, call: ToolCall, limits: CallOptions) -> CallOutcome {
        let scene = CallContext { consulted: true, ..CallContext::of(session) };
        self.call_with_context(scene, session, &call, limits, None).await
    }

    /// The same for a call whose turn has come in a batch.
    pub(crate) async fn call_in_batch(
        &self,
        session: &Session,
        call: &ToolCall,
        limits: CallOptions,
        turn: Option<ScheduleHandle>,
    ) -> CallOutcome {
        self.call_with_context(CallContext::of(session), session, call, limits, turn).await
    }

    async fn call_with_context(
        &self,
        scene: CallContext,
        session: &Session,
        call: &ToolCall,
        limits: CallOptions,
        turn: Option<ScheduleHandle>,
    ) -> CallOutcome {
        if !limits.refreshed {
            self.refresh();
        }
        let current = self.current();
        // Hooks are shown it.
        let plain = limits.plain && current.hooks.is_empty();
        let mut walk = CallState {
            gate: self,
            current,
            call_context: CallContext { plain, ..scene },
            call,
            record: RecordBuilder::open(self.event_bus.clone(), session, call),
            cancel: limits.cancel.child_token(),
            deadline: limits.timeout.map(|timeout| Instant::now() + timeout),
            context: Vec::new(),
            messages: Vec::new(),
            stop: None,
            ran_for: None,
            hook_subject: None,
            schedule: turn,
        };
        let span = walk.record.spans().0.clone();
        // On the heap: it is large, and would be copied each time a caller passes its own future on.
        let path = Box::pin(AssertUnwindSafe(walk.run_stages()).catch_unwind());
        let result = match path.instrument(span).await {
            Ok(result) => result,
            Err(panic) => Err(Refusal::new(Code::Internal, format!("crashed: {}", panic_message(&*panic)))
                .at_stage(walk.record.stage())),
        };
        let record = walk.record.close(&result);
        CallOutcome { result, record, stop: walk.stop, messages: walk.messages }
    }

    /// Judges a call without running it: resolve, validate, judge. Hooks are not told and nothing is recorded.
    ///
    /// A tool that a deny rule hides is judged all the same: whoever asks why wants to see the rule.
    pub fn check(&self, session: &Session, call: &ToolCall) -> Result<Judgement, Refusal> {
        self.refresh();
        self.current().check_open()?;
        let intended = self.derive_intent(session, call)?;
        Ok(judge::judge_intended(&self.current().policy, &session.workspace(), &intended))
    }

    /// Says what a call would do, without judging it.
    pub fn derive_intent(&self, session: &Session, call: &ToolCall) -> Result<IntendedCall, Refusal> {
        let found = resolve::resolve_ignoring_deny_rules(&self.current(), &call.name)?;
        let valid = validate::validate(found, &call.input)?;
        Ok(judge::intended_call(&valid, &CallContext::of(session)))
    }
}

impl CallState<'_> {
    async fn run_stages(&mut self) -> CallResult {
        let result = self.run_stages_before_finish().await;
        self.record.enter(Stage::Finish);
        finish::finish(self, result).await
    }

    async fn run_stages_before_finish(&mut self) -> CallResult {
        self.current.check_open()?;
        let found = resolve::resolve(&self.current, &self.call.name)?;
        self.record.set_tool(found.identity());

        self.enter(Stage::Validate)?;
        let foreseen = self.schedule.as_mut().and_then(ScheduleHandle::take_prevalidated);
        let valid = match foreseen.and_then(|foreseen: PrevalidatedCall| foreseen.for_tool(&found.tool)) {
            Some(read_ahead) => read_ahead?,
            None => validate::validate(found, &self.call.input)?,
        };
        self.record.set_input(valid.input());
        self.hook_subject = Some(finish::HookSubject::new(&valid, &self.current));

        self.enter(Stage::Screen)?;
        let mut screened =
            if hook::any_hook_handles(&self.current.hooks, HookEvent::PreToolUse, valid.identity()) {
                screen::screen(self, valid).await?
            } else {
                screen::skip_screening(valid)
            };

        let mut revisions = 0;
        let granted = loop {
            self.enter(Stage::Judge)?;
            let judged = judge::judge(&self.current, &self.call_context, screened)?;
            self.record.set_effects(&judged.intent.effects);
            self.record.set_judgement(judged.as_recorded());
            if self.wait_for_conflicts(&judged).await? {
                screened = judged.screened;
                continue;
            }

            self.enter(Stage::Settle)?;
            match settle::settle(self, judged).await? {
                settle::SettleOutcome::Granted(granted) => break *granted,
                settle::SettleOutcome::PolicyChanged(overtaken) => screened = *overtaken,
                settle::SettleOutcome::Revised(revised) if revisions < MAX_REVISIONS => {
                    revisions += 1;
                    screened = revised;
                }
                settle::SettleOutcome::Revised(_) => {
                    return Err(Refusal::new(Code::Declined, "the input was revised too often"));
                }
            }
        };

        self.enter(Stage::Guard)?;
        let cleared = guard::guard(self, granted).await?;

        self.enter(Stage::Run)?;
        let started = std::time::Instant::now();
        let result = run::run(self, cleared).await;
        self.ran_for = Some(started.elapsed());
        result
    }

    /// Takes what a hook says beside its decision.
    pub(crate) fn apply_hook_answer(&mut self, hook: &str, answer: &HookAnswer) {
        self.context.extend(answer.additional_context.clone());
        if let Some(text) = &answer.system_message {
            self.messages.push(text.clone());
            let (call, hook, text) = (&self.call.id, hook.to_owned(), text.clone());
            self.gate.event_bus.publish(|| Event::HookSaid { call: call.clone(), hook, text });
        }
        if let Some(reason) = &answer.stop {
            self.stop.get_or_insert(format!("hook `{hook}`: {reason}"));
        }
    }

    /// Goes on to the next stage, unless the call is cancelled or out of time.
    fn enter(&mut self, next: Stage) -> Result<(), Refusal> {
        self.record.enter(next);
        if self.cancel.is_cancelled() {
            return Err(cancelled_refusal().at_stage(next));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(deadline_refusal().at_stage(next));
        }
        Ok(())
    }

    /// Whether other calls of the batch stood in the way of what this one turned out to do.
    async fn wait_for_conflicts(&mut self, judged: &judge::JudgedCall) -> Result<bool, Refusal> {
        let Some(mut turn) = self.schedule.take() else { return Ok(false) };
        let tool = &judged.screened.valid.tool;
        let settling = turn.wait_for_effects(
            tool,
            &judged.intent.effects,
            &self.current.policy,
            &self.call_context.workspace,
        );
        let waited = self.await_unless_stopped(async { Ok(settling.await) }).await;
        self.schedule = Some(turn);
        waited
    }

    /// Takes a seat again, where the call gave up its own while a person was asked.
    pub(crate) async fn acquire_slot(&mut self) -> Result<(), Refusal> {
        let Some(mut turn) = self.schedule.take() else { return Ok(()) };
        let seated = self.await_unless_stopped(async {
            turn.acquire_slot().await;
            Ok(())
        });
        let seated = seated.await;
        self.schedule = Some(turn);
        seated
    }

    /// Takes over rules that were changed since the call arrived. False if there are none.
    pub(crate) fn refresh_policy(&mut self) -> bool {
        let policy = self.gate.current().policy;
        let changed = !Arc::ptr_eq(&policy, &self.current.policy);
        self.current.policy = policy;
        changed
    }

    /// Waits for a part of a stage, but no longer than the call may go on.
    pub(crate) async fn await_unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        tokio::select! {
            biased;
            refusal = self.wait_until_stopped() => Err(refusal.at_stage(self.record.stage())),
            done = work => done,
        }
    }

    /// Ends when the call is cancelled or out of time.
    pub(crate) async fn wait_until_stopped(&self) -> Refusal {
        match self.deadline {
            Some(deadline) => tokio::select! {
                () = self.cancel.cancelled() => cancelled_refusal(),
                () = sleep_until(deadline) => deadline_refusal(),
            },
            None => {
                self.cancel.cancelled().await;
                cancelled_refusal()
            }
        }
    }
}

fn cancelled_refusal() -> Refusal {
    Refusal::new(Code::Cancelled, "the call was cancelled")
}

fn deadline_refusal() -> Refusal {
    Refusal::new(Code::DeadlinePassed, "the call ran out of time")
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}
