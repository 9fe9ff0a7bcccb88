//! Many calls at once.
//!
//! A model sends calls in batches, in an order that it takes for granted.
//! [`Gate::call_batch`] runs them together where they cannot tell the difference: a call starts as soon as no earlier
//! unfinished call conflicts with its effects, so that files and results come out as if each had waited for the one
//! before.
//!
//! - Two calls that only read never conflict; one that writes conflicts with any other that touches the same path, a
//!   path above it or one below it. Paths are compared as spelled, as resolved, and by every link on the way.
//! - A call of unknown effect, a command that is not known to read only, and a tool that says so are alone.
//! - At most [`GateParts::max_concurrency`](crate::GateParts) calls of a batch go on at once. One that waits for a
//!   person gives up its place meanwhile. A person is asked one question at a time.
//! - Cancelling a call or the batch ends what runs and keeps the rest from running; each call still gets its result
//!   and leaves its record.
//!
//! The schedule decides *when* a call starts, never what it does: that is [`Gate::call`], and nothing else.
//!
//! What it cannot promise: hooks that change files of their own accord are not among the effects; and where a person
//! changes the input of a call, the call does what the person said when it was said, beside calls that were started
//! before.

mod handle;
mod lock_set;
mod lock_table;
mod plan;
mod queue;

pub(crate) use handle::ScheduleHandle;
pub(crate) use plan::PrevalidatedCall;

use crate::gate::Gate;
use crate::hook::{BatchHookOutcome, BatchedCall};
use crate::pipeline::{CallOptions, CallOutcome, panic_message};
use crate::record_builder::RecordBuilder;
use crate::session::Session;
use crate::stage::finish::add_context;
use crate::truncate::truncate_batch;
use futures_util::FutureExt;
use futures_util::Stream;
use plan::{CallPlan, plan};
use queue::CallQueue;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_proto::json::{JsonLimits, parse_object};
use toolgate_proto::{CallId, Code, Refusal, ToolCall};

/// One call of a batch that is over.
#[derive(Debug, Clone)]
pub struct FinishedBatchCall {
    /// Its place in the batch, from 0.
    pub place: usize,
    /// Its result and record.
    pub closed: CallOutcome,
}

/// Calls that go on together. Made by [`Gate::batch`]; dropping it cancels what is not over.
///
/// Calls may be added while others run, as they come out of a model's stream.
/// As a [`Stream`] it yields each call as it ends; the stream ends when nothing is under way.
pub struct CallBatch {
    shared: Arc<BatchState>,
    limits: CallOptions,
    /// One for each call.
    cancels: Vec<(Arc<ToolCall>, CancellationToken)>,
    tasks: JoinSet<FinishedBatchCall>,
    done: Vec<Option<CallOutcome>>,
}

/// What the calls of a batch share.
pub(crate) struct BatchState {
    gate: Arc<Gate>,
    session: Session,
    queue: Mutex<CallQueue>,
    slots: Arc<Semaphore>,
}

impl Gate {
    /// Takes many calls through the boundary, together where they cannot tell the difference. The results are in the
    /// order of the calls.
    ///
    /// The limits hold for each call; cancelling them cancels all.
    /// Must be called inside a Tokio runtime; more threads let tools that block overlap as well.
    pub async fn call_batch(
        self: &Arc<Self>,
        session: &Session,
        calls: Vec<ToolCall>,
        limits: CallOptions,
    ) -> Vec<CallOutcome> {
        let mut batch = self.batch(session, limits);
        for call in calls {
            batch.push(call);
        }
        batch.finish().await
    }

    /// Starts an empty batch.
    pub fn batch(self: &Arc<Self>, session: &Session, limits: CallOptions) -> CallBatch {
        let cancel = limits.cancel.child_token();
        CallBatch {
            shared: Arc::new(BatchState {
                gate: Arc::clone(self),
                session: session.clone(),
                queue: Mutex::new(CallQueue::default()),
                slots: Arc::new(Semaphore::new(self.max_concurrency.clamp(1, Semaphore::MAX_PERMITS))),
            }),
            limits: CallOptions { cancel, ..limits },
            cancels: Vec::new(),
            tasks: JoinSet::new(),
            done: Vec::new(),
        }
    }
}

impl CallBatch {
    /// Adds a call. It may start at once. Returns its place, from 0.
    pub fn push(&mut self, call: ToolCall) -> usize {
        let call = Arc::new(call);
        let cancel = self.limits.cancel.child_token();
        self.cancels.push((Arc::clone(&call), cancel.clone()));
        self.done.push(None);
        let shared = Arc::clone(&self.shared);
        let (place, turn) = lock_queue(&shared.queue).push(Arc::clone(&call), &shared.planner());
        let limits = CallOptions { cancel, ..self.limits.clone() };
        let pending = PendingBatchCall { shared, place, call, started: false };
        self.tasks.spawn(pending.run(turn, limits));
        place
    }

    /// Cancels one call. False if there is none of that id.
    pub fn cancel(&self, call: &CallId) -> bool {
        let mut found = false;
        for (_, cancel) in self.cancels.iter().filter(|(made, _)| made.id == *call) {
            cancel.cancel();
            found = true;
        }
        found
    }

    /// Cancels the call at a place. False if there is none.
    pub fn cancel_at(&self, place: usize) -> bool {
        match self.cancels.get(place) {
            Some((_, cancel)) => {
                cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// Cancels every call.
    pub fn cancel_all(&self) {
        self.limits.cancel.cancel();
    }

    /// The next call that ends. `None` if nothing is under way.
    pub async fn next(&mut self) -> Option<FinishedBatchCall> {
        std::future::poll_fn(|context| self.poll_finished(context)).await
    }

    /// Waits for every call, and gives all results in the order of the calls, also of those that [`CallBatch::next`] gave
    /// before. Where all together are more than the batch may have, the largest are cut. Hooks are told.
    pub async fn finish(mut self) -> Vec<CallOutcome> {
        while std::future::poll_fn(|context| self.poll_joined(context)).await.is_some() {}
        let done = std::mem::take(&mut self.done);
        let mut calls: Vec<CallOutcome> = Vec::with_capacity(done.len());
        for (closed, (call, _)) in done.into_iter().zip(&self.cancels) {
            calls.push(closed.unwrap_or_else(|| self.shared.cancelled_outcome(&call.id)));
        }
        let gate = &self.shared.gate;
        truncate_batch(&mut calls, gate.batch_chars, gate.spill.as_deref(), &self.shared.session);
        let end = self.run_hooks(&calls).await;
        if let Some(last) = calls.last_mut() {
            add_context(&mut last.result, end.context);
            last.messages.extend(end.messages);
            last.stop = last.stop.take().or(end.stop);
        }
        calls
    }

    /// `PostToolBatch`, once. What the hooks say goes with the last call, which is what the model reads last.
    async fn run_hooks(&self, calls: &[CallOutcome]) -> BatchHookOutcome {
        let gate = &self.shared.gate;
        if calls.is_empty() || !gate.current().hooks.iter().any(|hook| hook.handles_batches()) {
            return BatchHookOutcome::default();
        }
        let batched: Vec<BatchedCall> = calls
            .iter()
            .zip(&self.cancels)
            .map(|(closed, (call, _))| BatchedCall {
                call: call.id.clone(),
                tool: call.name.clone(),
                // What could not be read as an object was refused before any hook saw it.
                input: parse_object(&call.input, JsonLimits::CALL).unwrap_or_default(),
                result: closed.result.clone(),
            })
            .collect();
        gate.run_batch_hooks(&self.shared.session, &batched, &self.limits.cancel).await
    }

    fn poll_finished(&mut self, context: &mut Context<'_>) -> Poll<Option<FinishedBatchCall>> {
        let place = ready!(self.poll_joined(context));
        Poll::Ready(place.and_then(|place| {
            let closed = self.done.get(place)?.clone()?;
            Some(FinishedBatchCall { place, closed })
        }))
    }

    fn poll_joined(&mut self, context: &mut Context<'_>) -> Poll<Option<usize>> {
        loop {
            match ready!(self.tasks.poll_join_next(context)) {
                Some(Ok(FinishedBatchCall { place, closed })) => {
                    if let Some(slot) = self.done.get_mut(place) {
                        *slot = Some(closed);
                    }
                    return Poll::Ready(Some(place));
                }
                // Only a runtime that shuts down ends a task so. `finish` fills the gap.
                Some(Err(_)) => {}
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Stream for CallBatch {
    type Item = FinishedBatchCall;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<FinishedBatchCall>> {
        self.poll_finished(context)
    }
}

impl Drop for CallBatch {
    fn drop(&mut self) {
        // Before the tasks go: a call that is dropped must not make room for another.
        lock_queue(&self.shared.queue).stop();
        self.limits.cancel.cancel();
    }
}

impl std::fmt::Debug for CallBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("calls", &self.cancels.len()).finish_non_exhaustive()
    }
}

impl BatchState {
    fn planner(&self) -> impl Fn(&ToolCall, Option<CallPlan>) -> CallPlan {
        |call, before| plan(&self.gate, &self.session, call, before.and_then(|before| before.prevalidated))
    }

    /// The end of a call that left no trace: its task was taken away.
    fn cancelled_outcome(&self, id: &CallId) -> CallOutcome {
        let call = ToolCall::new(id.clone(), "", "");
        let refusal = Refusal::new(Code::Cancelled, "the call was taken away with its runtime");
        let record = RecordBuilder::unsent_record(&self.session, &call, &refusal);
        CallOutcome { result: Err(refusal), record, stop: None, messages: Vec::new() }
    }
}

/// A call that has its place in the batch. If it is dropped before it started, it still leaves its record.
struct PendingBatchCall {
    shared: Arc<BatchState>,
    place: usize,
    call: Arc<ToolCall>,
    started: bool,
}

impl PendingBatchCall {
    async fn run(mut self, turn: oneshot::Receiver<CallPlan>, limits: CallOptions) -> FinishedBatchCall {
        // A cancelled call does not wait: it goes ahead and finds that it is cancelled.
        let plan = tokio::select! {
            biased;
            () = limits.cancel.cancelled() => CallPlan::default(),
            plan = turn => plan.unwrap_or_else(|_| {
                // Nobody is left who could give this call its turn.
                limits.cancel.cancel();
                CallPlan::default()
            }),
        };
        let seat = if plan.claim.needs_no_slot || limits.cancel.is_cancelled() {
            None
        } else {
            tokio::select! {
                biased;
                () = limits.cancel.cancelled() => None,
                seat = Arc::clone(&self.shared.slots).acquire_owned() => seat.ok(),
            }
        };
        let turn = ScheduleHandle::new(Arc::clone(&self.shared), self.place, plan, seat);
        self.started = true;
        let BatchState { gate, session, .. } = &*self.shared;
        let calling = AssertUnwindSafe(gate.call_in_batch(session, &self.call, limits, Some(turn)));
        let closed = match calling.catch_unwind().await {
            Ok(closed) => closed,
            // The call itself catches what tools and hooks do; this is a sink that crashed.
            Err(panic) => {
                let refusal = Refusal::new(Code::Internal, format!("crashed: {}", panic_message(&*panic)));
                let record = RecordBuilder::unsent_record(session, &self.call, &refusal);
                CallOutcome { result: Err(refusal), record, stop: None, messages: Vec::new() }
            }
        };
        FinishedBatchCall { place: self.place, closed }
    }
}

impl Drop for PendingBatchCall {
    fn drop(&mut self) {
        if !self.started {
            drop(RecordBuilder::open(self.shared.gate.event_bus.clone(), &self.shared.session, &self.call));
        }
        let planner = self.shared.planner();
        let commands = lock_queue(&self.shared.queue).finish(self.place, &planner);
        self.shared.session.context().queue_commands(commands);
    }
}

fn lock_queue(queue: &Mutex<CallQueue>) -> MutexGuard<'_, CallQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
