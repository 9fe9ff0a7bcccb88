//! run: the tool itself, under cancellation and deadline.

use super::guard::PreparedCall;
use super::settle::PromptLock;
use crate::call_context::PipelineContext;
use crate::catch_panic::panic_message;
use crate::record_builder::RecordBuilder;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use tokio::time::{Instant, timeout};
use toolgate_proto::{CallResult, Code, Refusal, Stage};
use tracing::Instrument;

/// Runs the tool, and records how long it ran and what was refused to its commands.
pub(crate) async fn run(
    context: &PipelineContext<'_>,
    record: &mut RecordBuilder,
    prepared: PreparedCall,
) -> CallResult {
    let progress = prepared.progress.clone();
    let started = std::time::Instant::now();
    let result = run_tool(context, prepared).instrument(record.stage_span()).await;
    progress.end();
    record.note_anomalies(progress.take_anomalies());
    record.note_journalled(progress.is_journalled(), progress.take_not_journalled());
    let hooks = progress.take_hooks();
    if !hooks.is_empty() {
        record.update_record(|record| record.hooks.extend(hooks));
    }
    record.set_run_time(started.elapsed());
    result
}

/// Runs the tool until it ends, panics, is cancelled or is out of time.
async fn run_tool(context: &PipelineContext<'_>, prepared: PreparedCall) -> CallResult {
    let PreparedCall { prepared, cleared, timeout: tool_timeout, asks, progress: _ } = prepared;
    let lock = asks.then(|| context.call_context.session.state::<PromptLock>());
    let _guard = match &lock {
        Some(lock) => {
            Some(context.await_unless_stopped(Stage::Run, async { Ok(lock.acquire().await) }).await?)
        }
        None => None,
    };
    // The tool's own timeout counts where the caller set no deadline.
    let deadline = context.deadline.or_else(|| tool_timeout.map(|time| Instant::now() + time));
    let mut running = AssertUnwindSafe(prepared.run(cleared)).catch_unwind();
    let stopped = tokio::select! {
        biased;
        refusal = context.wait_until_stopped(deadline) => refusal,
        ended = &mut running => {
            return ended.unwrap_or_else(|panic| Err(panic_refusal(&*panic))).map_err(with_run_stage);
        }
    };
    // The tool gets a grace period to end by itself: it may have processes to stop and output to hand over.
    context.cancel.cancel();
    let partial = match timeout(context.gate.grace, &mut running).await {
        Ok(Ok(Ok(output))) => Some(output),
        Ok(Ok(Err(refusal))) => refusal.partial.map(|partial| *partial),
        Ok(Err(_)) | Err(_) => None,
    };
    let refusal = stopped.at_stage(Stage::Run);
    Err(match partial {
        Some(partial) => refusal.with_partial(partial),
        None => refusal,
    })
}

/// A refusal that a tool made without setting the stage happened here.
fn with_run_stage(refusal: Refusal) -> Refusal {
    if refusal.stage < Stage::Run { refusal.at_stage(Stage::Run) } else { refusal }
}

/// The refusal of a call whose tool panicked.
fn panic_refusal(panic: &(dyn std::any::Any + Send)) -> Refusal {
    Refusal::new(Code::ToolPanicked, format!("the tool crashed: {}", panic_message(panic)))
}
