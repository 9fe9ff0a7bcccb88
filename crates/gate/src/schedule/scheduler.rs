//! The scheduler of one session: calls in order of arrival, each as soon as its locks are free.

use super::lock_set::required_locks;
use super::plan::{CallPlan, plan_call};
use super::queue::CallQueue;
use crate::approve::QuestionTicket;
use crate::call_admission::CallAdmission;
use crate::call_context::PipelineContext;
use crate::call_options::{CallOptions, CallOutcome};
use crate::catch_panic::panic_message;
use crate::gate::Gate;
use crate::pipeline::run_call;
use crate::record_builder::RecordBuilder;
use crate::session::Session;
use crate::stage::screen::ScreenedCall;
use crate::stage::settle::PromptLock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use toolgate_proto::{Code, Refusal, Stage, ToolCall};

/// Runs the calls of one session in an order that keeps their results as if they ran one by one. Clones share it.
#[derive(Clone)]
pub struct CallScheduler {
    state: Arc<SchedulerState>,
}

/// What the calls of a scheduler share.
struct SchedulerState {
    gate: Arc<Gate>,
    session: Session,
    queue: Mutex<CallQueue>,
    /// Taken while hooks or the tool of a call run.
    slots: Arc<Semaphore>,
}

impl Gate {
    /// A scheduler for the calls of a session. It may live as long as the session.
    pub fn scheduler(self: &Arc<Self>, session: &Session) -> CallScheduler {
        CallScheduler {
            state: Arc::new(SchedulerState {
                gate: Arc::clone(self),
                session: session.clone(),
                queue: Mutex::new(CallQueue::default()),
                slots: Arc::new(Semaphore::new(self.max_concurrency.clamp(1, Semaphore::MAX_PERMITS))),
            }),
        }
    }
}

impl CallScheduler {
    /// Adds a call behind all that were added or reserved before. It makes progress while the future is polled; a future
    /// that is dropped cancels its call.
    pub fn submit(&self, call: ToolCall, options: CallOptions) -> ScheduledCall {
        self.reserve().submit(call, options)
    }

    /// Reserves the next place, for an edge that knows the order of calls before it has read them. Later calls wait until
    /// the place is used or dropped.
    pub fn reserve(&self) -> CallReservation {
        let (index, start) = self.state.lock_queue().reserve();
        CallReservation {
            place: Some(QueuePlace { state: Arc::clone(&self.state), index }),
            start: Some(start),
        }
    }

    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.state.gate
    }

    pub(super) fn session(&self) -> &Session {
        &self.state.session
    }

    /// Starts no further call.
    pub(super) fn stop(&self) {
        self.state.lock_queue().stop();
    }
}

impl std::fmt::Debug for CallScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallScheduler").field("session", self.state.session.id()).finish_non_exhaustive()
    }
}

/// A place in the order of calls. Dropping it gives it up.
pub struct CallReservation {
    place: Option<QueuePlace>,
    start: Option<oneshot::Receiver<CallPlan>>,
}

impl CallReservation {
    /// Uses the place for this call.
    pub fn submit(mut self, call: ToolCall, options: CallOptions) -> ScheduledCall {
        let call = Arc::new(call);
        let (Some(place), Some(start)) = (self.place.take(), self.start.take()) else {
            // INVARIANT: both are there until this, which consumes the reservation.
            return ScheduledCall(Box::pin(std::future::pending()));
        };
        place.state.lock_queue().fill(place.index, Arc::clone(&call), &place.state.planner());
        let ticket = place.state.session.state::<PromptLock>().questions().expect_call();
        let pending = PendingCall { place, call, started: false };
        ScheduledCall(Box::pin(pending.run(start, options, ticket)))
    }
}

impl std::fmt::Debug for CallReservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallReservation").finish_non_exhaustive()
    }
}

/// A call on its way: a future of its outcome.
pub struct ScheduledCall(BoxFuture<'static, CallOutcome>);

impl Future for ScheduledCall {
    type Output = CallOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        self.0.as_mut().poll(context)
    }
}

impl std::fmt::Debug for ScheduledCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScheduledCall").finish_non_exhaustive()
    }
}

impl SchedulerState {
    fn lock_queue(&self) -> MutexGuard<'_, CallQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn planner(&self) -> impl Fn(&ToolCall) -> CallPlan {
        |call| plan_call(&self.gate, &self.session, call)
    }
}

/// A place in the queue, given up when it is dropped.
struct QueuePlace {
    state: Arc<SchedulerState>,
    index: usize,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let commands = self.state.lock_queue().finish(self.index, &self.state.planner());
        self.state.session.context().queue_commands(commands);
    }
}

/// A call that has its place. If it is dropped before it started, it still leaves its record.
struct PendingCall {
    place: QueuePlace,
    call: Arc<ToolCall>,
    started: bool,
}

impl PendingCall {
    /// Runs the call when its turn comes. `ticket` tells the prompts of other calls that this one is not judged yet.
    async fn run(
        mut self,
        start: oneshot::Receiver<CallPlan>,
        options: CallOptions,
        ticket: QuestionTicket,
    ) -> CallOutcome {
        // A cancelled call does not wait: it goes ahead and finds that it is cancelled.
        let plan = tokio::select! {
            biased;
            () = options.cancel.cancelled() => CallPlan::default(),
            plan = start => plan.unwrap_or_else(|_| {
                // The scheduler was stopped before the call's turn came.
                options.cancel.cancel();
                CallPlan::default()
            }),
        };
        self.started = true;
        // Stages catch what tools and hooks do; a panic here is one of a sink.
        let outcome = match AssertUnwindSafe(self.run_path(plan, &options, ticket)).catch_unwind().await {
            Ok(outcome) => outcome,
            Err(panic) => {
                let refusal = Refusal::new(Code::Internal, format!("crashed: {}", panic_message(&*panic)));
                unrecorded_outcome(&self.place.state.session, &self.call, refusal)
            }
        };
        drop(self);
        outcome
    }

    async fn run_path(&self, plan: CallPlan, options: &CallOptions, ticket: QuestionTicket) -> CallOutcome {
        let SchedulerState { gate, session, .. } = &*self.place.state;
        let context = PipelineContext::new(gate, session, &self.call, options);
        let mut admission = ScheduledAdmission { place: &self.place, plan, ticket: Some(ticket) };
        let mut outcome = run_call(&context, &mut admission).await;
        let commands = std::mem::take(&mut outcome.queued_commands);
        self.place.state.lock_queue().defer_commands(self.place.index, commands);
        outcome
    }
}

/// The admission of a call that has its turn: a slot while hooks or the tool run, and the locks of its effects.
struct ScheduledAdmission<'a> {
    place: &'a QueuePlace,
    plan: CallPlan,
    ticket: Option<QuestionTicket>,
}

impl CallAdmission for ScheduledAdmission<'_> {
    /// None for a call that only prompts the user.
    type Slot = Option<OwnedSemaphorePermit>;

    async fn acquire_slot(&self, context: &PipelineContext<'_>, stage: Stage) -> Result<Self::Slot, Refusal> {
        if self.plan.locks.needs_no_slot {
            return Ok(None);
        }
        let slots = Arc::clone(&self.place.state.slots);
        // INVARIANT: the semaphore is never closed.
        context.await_unless_stopped(stage, async { Ok(slots.acquire_owned().await.ok()) }).await
    }

    /// Changes the locks to what the call turned out to do: a hook or an approver may have changed the input.
    async fn lock_effects(
        &mut self,
        context: &PipelineContext<'_>,
        screened: &ScreenedCall,
    ) -> Result<(), Refusal> {
        let intent = screened.valid.prepared.intent(&context.call_context);
        if self.plan.is_certain && self.plan.effects == intent.effects {
            return Ok(());
        }
        let (policy, workspace) = (&context.snapshot.policy, &context.call_context.workspace);
        let locks = required_locks(&screened.valid.tool, &intent, policy, workspace);
        self.plan = CallPlan { locks: locks.clone(), effects: intent.effects, is_certain: true };
        let state = &self.place.state;
        let waiting = state.lock_queue().update_locks(self.place.index, locks, &state.planner());
        match waiting {
            Some(resumed) => {
                // An error means that the scheduler is gone; the call is about to be cancelled.
                let resumed = async {
                    let _ = resumed.await;
                    Ok(())
                };
                context.await_unless_stopped(Stage::Screen, resumed).await
            }
            None => Ok(()),
        }
    }

    fn take_ticket(&mut self) -> Option<QuestionTicket> {
        self.ticket.take()
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if !self.started {
            let SchedulerState { gate, session, .. } = &*self.place.state;
            drop(RecordBuilder::new(gate.event_bus.clone(), session, &self.call));
        }
    }
}

/// The outcome of a call whose record could not be followed to its end. No sink gets it.
pub(super) fn unrecorded_outcome(session: &Session, call: &ToolCall, refusal: Refusal) -> CallOutcome {
    let record = RecordBuilder::unsent_record(session, call, &refusal);
    CallOutcome {
        result: Err(refusal),
        record,
        stop: None,
        messages: Vec::new(),
        queued_commands: Vec::new(),
    }
}
