//! `toolgate call`: one call through the whole boundary.

use super::args::{CallArgs, ResultForm};
use super::out::Out;
use super::world::{Recording, World};
use super::{Exit, Failure, call_batch, progress};
use serde_json::{Value, json};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolgate::{CallLimits, Closed, ToolCall, Toolgate, render};

pub(crate) fn run(world: &World, args: &CallArgs, out: &mut Out) -> Result<Exit, Failure> {
    if let Some(file) = &args.batch {
        return call_batch::run(world, args, file, out);
    }
    let input = world.text(&args.input)?;
    let started = start(world, args, out)?;
    let id = args.id.clone().unwrap_or_else(|| toolgate_os::fresh_id("call_"));
    let call = ToolCall::new(id, args.name.clone().unwrap_or_default(), input);
    let calling = |toolgate: Toolgate, limits| async move { vec![toolgate.call_within(call, limits).await] };
    let closed = started.run(1, calling, out);
    let mut exit = Exit::Ok;
    for closed in &closed {
        print(world, args, closed, out)?;
        if let Err(refusal) = &closed.result {
            exit = Exit::of(refusal);
        }
    }
    Ok(exit)
}

/// Everything that calls need, before the first is made.
pub(crate) struct Started {
    recording: Recording,
    runtime: Runtime,
    limits: CallLimits,
    shows_progress: bool,
}

pub(crate) fn start(world: &World, args: &CallArgs, out: &mut Out) -> Result<Started, Failure> {
    let timeout = match args.timeout {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::Usage(format!("--timeout {seconds} is no length of time; give seconds, such as 30"))
        })?),
        None => None,
    };
    let recording = world.recording(out)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let cancel = CancellationToken::new();
    let limits = CallLimits { cancel: cancel.clone(), timeout };
    // On a task of its own: a tool that is busy must not keep the interrupt from being heard.
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.cancel();
        }
    });
    Ok(Started { recording, runtime, limits, shows_progress: progress::wanted(&world.global) })
}

impl Started {
    /// Makes so many calls.
    pub(crate) fn run<F: Future<Output = Vec<Closed>>>(
        self,
        calls: usize,
        make: impl FnOnce(Toolgate, CallLimits) -> F,
        out: &mut Out,
    ) -> Vec<Closed> {
        let Self { recording: Recording { toolgate, ledger, watched }, runtime, limits, shows_progress } =
            self;
        let events = shows_progress.then(|| toolgate.events());
        let progress = events.map(|events| runtime.spawn(progress::show(events, calls)));
        let closed = runtime.block_on(async {
            let closed = make(toolgate, limits).await;
            if let Some(progress) = progress {
                // It ends with the last call; its line must be gone before a result is printed.
                let _ = tokio::time::timeout(Duration::from_millis(100), progress).await;
            }
            closed
        });
        // A tool that does not end must not keep the program.
        runtime.shutdown_timeout(Duration::from_millis(100));
        watched.finish(out);
        if let Some(trouble) = ledger.and_then(|ledger| ledger.trouble()) {
            out.note(&format!("not everything is in the ledger: {trouble}"));
        }
        closed
    }
}

fn print(world: &World, args: &CallArgs, closed: &Closed, out: &mut Out) -> Result<(), Failure> {
    let form = if world.global.json { ResultForm::Json } else { args.form };
    match (form, &closed.result) {
        (ResultForm::Text, Ok(output)) => out.line(&render::visible(&output.model_text()))?,
        (ResultForm::Text, Err(_)) => out.failure(&render::terminal_text(&closed.result)),
        (form, _) => out.line(&render_closed(form, closed).to_string())?,
    }
    Ok(())
}

/// A call that is over, for programs.
pub(crate) fn render_closed(form: ResultForm, closed: &Closed) -> Value {
    let Closed { result, record } = closed;
    match form {
        ResultForm::Anthropic => render::anthropic_result(&record.call, result),
        ResultForm::Openai => render::openai_message(&record.call, result),
        ResultForm::Mcp => render::mcp_result(result),
        ResultForm::Text | ResultForm::Json => match result {
            Ok(output) => json!({ "output": output, "record": record }),
            Err(refusal) => json!({ "refusal": refusal, "record": record }),
        },
    }
}
