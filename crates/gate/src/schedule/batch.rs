//! Batches: calls that a model made together, with their results in order.

use super::scheduler::{CallScheduler, ScheduledCall, unrecorded_outcome};
use crate::call_options::{CallOptions, CallOutcome};
use crate::gate::Gate;
use crate::hook::{BatchHookOutcome, BatchedCall};
use crate::session::Session;
use crate::stage::finish::add_context;
use crate::truncate::truncate_batch;
use futures_util::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate_proto::json::{JsonLimits, parse_object};
use toolgate_proto::{CallId, Code, Refusal, ToolCall};

/// One call of a batch that is over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinishedBatchCall {
    /// Its place in the batch, from 0.
    pub place: usize,
    /// Its result and record.
    pub outcome: CallOutcome,
}

/// Calls that go on together. Made by [`Gate::batch`]; dropping it cancels what is not over.
///
/// Calls may be added while others run, as they come out of a model's stream.
/// As a [`Stream`] it yields each call as it ends; the stream ends when nothing is under way.
pub struct CallBatch {
    scheduler: CallScheduler,
    options: CallOptions,
    /// Each call with its own cancellation.
    cancels: Vec<(ToolCall, CancellationToken)>,
    tasks: JoinSet<FinishedBatchCall>,
    done: Vec<Option<CallOutcome>>,
}

impl Gate {
    /// Takes many calls through the boundary, together where they cannot tell the difference. The results are in the
    /// order of the calls.
    ///
    /// The options apply to each call; cancelling them cancels all.
    /// Must be called inside a Tokio runtime; more threads let tools that block overlap as well.
    pub async fn call_batch(
        self: &Arc<Self>,
        session: &Session,
        calls: Vec<ToolCall>,
        options: CallOptions,
    ) -> Vec<CallOutcome> {
        let mut batch = self.batch(session, options);
        // All have their place before the first one starts, so that its question knows of the others.
        let submitted: Vec<(usize, ScheduledCall)> =
            calls.into_iter().map(|call| batch.submit(call)).collect();
        submitted.into_iter().for_each(|(place, call)| batch.start(place, call));
        batch.finish().await
    }

    /// Starts an empty batch.
    pub fn batch(self: &Arc<Self>, session: &Session, options: CallOptions) -> CallBatch {
        let cancel = options.cancel.child_token();
        CallBatch {
            scheduler: self.scheduler(session),
            options: CallOptions { cancel, ..options },
            cancels: Vec::new(),
            tasks: JoinSet::new(),
            done: Vec::new(),
        }
    }
}

impl CallBatch {
    /// Adds a call. It may start at once. Returns its place, from 0.
    pub fn push(&mut self, call: ToolCall) -> usize {
        let (place, scheduled) = self.submit(call);
        self.start(place, scheduled);
        place
    }

    /// Gives a call its place, and the place in the order of the session.
    fn submit(&mut self, call: ToolCall) -> (usize, ScheduledCall) {
        let cancel = self.options.cancel.child_token();
        let place = self.cancels.len();
        self.cancels.push((call.clone(), cancel.clone()));
        self.done.push(None);
        (place, self.scheduler.submit(call, CallOptions { cancel, ..self.options.clone() }))
    }

    /// Starts a call that has its place.
    fn start(&mut self, place: usize, scheduled: ScheduledCall) {
        self.tasks.spawn(async move { FinishedBatchCall { place, outcome: scheduled.await } });
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
        self.options.cancel.cancel();
    }

    /// The next call that ends. `None` if nothing is under way.
    pub async fn next(&mut self) -> Option<FinishedBatchCall> {
        std::future::poll_fn(|context| self.poll_finished(context)).await
    }

    /// Waits for every call, and gives all results in the order of the calls, also of those that [`CallBatch::next`] gave
    /// before. Where all together are more than the batch may have, the largest are truncated. Batch hooks run.
    pub async fn finish(mut self) -> Vec<CallOutcome> {
        while std::future::poll_fn(|context| self.poll_joined(context)).await.is_some() {}
        let done = std::mem::take(&mut self.done);
        let (gate, session) = (self.scheduler.gate(), self.scheduler.session());
        let mut calls: Vec<CallOutcome> = Vec::with_capacity(done.len());
        for (outcome, (call, _)) in done.into_iter().zip(&self.cancels) {
            calls.push(outcome.unwrap_or_else(|| {
                let refusal = Refusal::new(Code::Cancelled, "the call was cancelled with its runtime");
                unrecorded_outcome(session, call, refusal)
            }));
        }
        truncate_batch(&mut calls, gate.batch_chars, gate.spill.as_deref(), session);
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
        let gate = self.scheduler.gate();
        if calls.is_empty() || !gate.current().hooks.iter().any(|hook| hook.handles_batches()) {
            return BatchHookOutcome::default();
        }
        let batched: Vec<BatchedCall> = calls
            .iter()
            .zip(&self.cancels)
            .map(|(outcome, (call, _))| BatchedCall {
                call: call.id.clone(),
                tool: call.name.clone(),
                // What could not be read as an object was refused before any hook saw it.
                input: parse_object(&call.input, JsonLimits::CALL).unwrap_or_default(),
                result: outcome.result.clone(),
            })
            .collect();
        gate.run_batch_hooks(self.scheduler.session(), &batched, &self.options.cancel).await
    }

    fn poll_finished(&mut self, context: &mut Context<'_>) -> Poll<Option<FinishedBatchCall>> {
        let place = ready!(self.poll_joined(context));
        Poll::Ready(place.and_then(|place| {
            let outcome = self.done.get(place)?.clone()?;
            Some(FinishedBatchCall { place, outcome })
        }))
    }

    fn poll_joined(&mut self, context: &mut Context<'_>) -> Poll<Option<usize>> {
        loop {
            match ready!(self.tasks.poll_join_next(context)) {
                Some(Ok(FinishedBatchCall { place, outcome })) => {
                    if let Some(slot) = self.done.get_mut(place) {
                        *slot = Some(outcome);
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
        self.scheduler.stop();
        self.options.cancel.cancel();
    }
}

impl std::fmt::Debug for CallBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallBatch").field("calls", &self.cancels.len()).finish_non_exhaustive()
    }
}
