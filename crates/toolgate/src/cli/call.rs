//! `toolgate call`: one call through the whole boundary.

use super::args::{CallArgs, ResultForm};
use super::out::Out;
use super::world::{Recording, World};
use super::{Exit, Failure, progress};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::{CallLimits, Closed, ToolCall, render};

pub(crate) fn run(world: &World, args: &CallArgs, out: &mut Out) -> Result<Exit, Failure> {
    let input = world.text(&args.input)?;
    let timeout = match args.timeout {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::Usage(format!("--timeout {seconds} is no length of time; give seconds, such as 30"))
        })?),
        None => None,
    };
    let Recording { toolgate, ledger, watched } = world.recording(out)?;
    let id = args.id.clone().unwrap_or_else(|| toolgate_os::fresh_id("call_"));
    let call = ToolCall::new(id, args.name.clone(), input);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let cancel = CancellationToken::new();
    let limits = CallLimits { cancel: cancel.clone(), timeout };
    // On a task of its own: a tool that is busy must not keep the interrupt from being heard.
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.cancel();
        }
    });
    let progress = progress::wanted(&world.global).then(|| runtime.spawn(progress::show(toolgate.events())));
    let closed = runtime.block_on(async {
        let closed = toolgate.call_within(call, limits).await;
        if let Some(progress) = progress {
            // It ends with the call; its line must be gone before the result is printed.
            let _ = tokio::time::timeout(Duration::from_millis(100), progress).await;
        }
        closed
    });
    // A tool that does not end must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(100));
    watched.finish(out);
    if let Some(trouble) = ledger.and_then(|ledger| ledger.trouble()) {
        out.note(&format!("this call is not in the ledger: {trouble}"));
    }
    print(world, args, &closed, out)?;
    Ok(match &closed.result {
        Ok(_) => Exit::Ok,
        Err(refusal) => Exit::of(refusal),
    })
}

fn print(world: &World, args: &CallArgs, closed: &Closed, out: &mut Out) -> Result<(), Failure> {
    let Closed { result, record } = closed;
    let form = if world.global.json { ResultForm::Json } else { args.form };
    let value = match form {
        ResultForm::Text => {
            match result {
                Ok(output) => out.line(&render::visible(&output.model_text()))?,
                Err(_) => out.failure(&render::terminal_text(result)),
            }
            return Ok(());
        }
        ResultForm::Anthropic => render::anthropic_result(&record.call, result),
        ResultForm::Openai => render::openai_message(&record.call, result),
        ResultForm::Mcp => render::mcp_result(result),
        ResultForm::Json => match result {
            Ok(output) => json!({ "output": output, "record": record }),
            Err(refusal) => json!({ "refusal": refusal, "record": record }),
        },
    };
    out.line(&value.to_string())?;
    Ok(())
}
