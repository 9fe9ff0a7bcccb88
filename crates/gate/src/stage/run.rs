//! run: the tool itself, under cancellation and deadline.

use super::guard::PreparedCall;
use super::settle::PromptLock;
use crate::pipeline::{CallState, panic_message};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use tokio::time::{Instant, timeout};
use toolgate_proto::{CallResult, Code, Refusal, Stage};
use tracing::Instrument;

pub(crate) async fn run(walk: &mut CallState<'_>, ready: PreparedCall) -> CallResult {
    let progress = ready.progress.clone();
    let span = walk.record.spans().1.clone();
    let result = run_tool(walk, ready).instrument(span).await;
    progress.end();
    walk.record.note_anomalies(progress.take_anomalies());
    result
}

async fn run_tool(walk: &mut CallState<'_>, ready: PreparedCall) -> CallResult {
    let PreparedCall { prepared, cleared, timeout: own, asks, progress: _ } = ready;
    let ear = asks.then(|| walk.call_context.session.state::<PromptLock>());
    let _held = match &ear {
        Some(ear) => Some(walk.await_unless_stopped(async { Ok(ear.acquire().await) }).await?),
        None => None,
    };
    if let (None, Some(own)) = (walk.deadline, own) {
        walk.deadline = Some(Instant::now() + own);
    }
    let mut running = AssertUnwindSafe(prepared.run(cleared)).catch_unwind();
    let stopped = tokio::select! {
        biased;
        refusal = walk.wait_until_stopped() => refusal,
        ended = &mut running => return ended.unwrap_or_else(|panic| Err(panic_refusal(&*panic))).map_err(with_run_stage),
    };
    // The tool gets a moment to end by itself: it may have processes to stop and output to hand over.
    walk.cancel.cancel();
    let partial = match timeout(walk.gate.grace, &mut running).await {
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

/// A refusal that a tool made without minding the stage happened here.
fn with_run_stage(refusal: Refusal) -> Refusal {
    if refusal.stage < Stage::Run { refusal.at_stage(Stage::Run) } else { refusal }
}

fn panic_refusal(panic: &(dyn std::any::Any + Send)) -> Refusal {
    Refusal::new(Code::ToolPanicked, format!("the tool crashed: {}", panic_message(panic)))
}
