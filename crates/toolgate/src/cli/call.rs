//! `toolgate call`: one call through the whole boundary.

use super::args::{CallArgs, ResultForm};
use super::mcp::Behind;
use super::out::Out;
use super::world::{Recording, World};
use super::{Exit, Failure, progress};
use serde_json::json;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolgate::{CallLimits, Closed, ToolCall, Toolgate, render};

pub(crate) fn run(world: &World, args: &CallArgs, out: &mut Out) -> Result<Exit, Failure> {
    let input = world.text(&args.input)?;
    let timeout = match args.timeout {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::Usage(format!("--timeout {seconds} is no length of time; give seconds, such as 30"))
        })?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let cancel = CancellationToken::new();
    // Listened for from the start, and on a task of its own: a tool that is busy must not keep an interrupt from
    // being heard.
    let mut interrupts = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    let interrupted = cancel.clone();
    runtime.spawn(async move {
        interrupts.recv().await;
        interrupted.cancel();
    });
    let Recording { toolgate, ledger, watched } = world.recording(out)?;
    let id = args.id.clone().unwrap_or_else(|| toolgate_os::fresh_id("call_"));
    let call = ToolCall::new(id, args.name.clone(), input);
    let limits = CallLimits { cancel, timeout };
    let progress = progress::wanted(&world.global).then(|| runtime.spawn(progress::show(toolgate.events())));
    let closed = runtime.block_on(async {
        let behind = servers_of(world, args, &toolgate, out)?;
        let closed = if behind.servers.is_empty() {
            toolgate.call_within(call, limits).await
        } else {
            let coordinator = behind.coordinator(world, toolgate.settings())?;
            coordinator.start(&toolgate.shared_gate()).map_err(|error| Failure::Usage(error.to_string()))?;
            coordinator.ready().await;
            // A server that is not there has no tools either; its own words say more than "no such tool".
            for state in coordinator.states() {
                if let Some(trouble) = state.trouble {
                    let refusal = trouble.refusal(&state.name);
                    out.note(&format!("{} ({})", refusal.reason, refusal.hint));
                }
                state
                    .problems
                    .iter()
                    .for_each(|problem| out.note(&format!("server `{}`: {problem}", state.name)));
            }
            let closed = toolgate.call_within(call, limits).await;
            coordinator.close().await;
            closed
        };
        if let Some(progress) = progress {
            // It ends with the call; its line must be gone before the result is printed.
            let _ = tokio::time::timeout(Duration::from_millis(100), progress).await;
        }
        Ok::<_, Failure>(closed)
    })?;
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

/// The servers that the call needs: the one whose tool it is, or all where it is about all.
fn servers_of(world: &World, args: &CallArgs, toolgate: &Toolgate, out: &mut Out) -> Result<Behind, Failure> {
    let server = args.name.strip_prefix("mcp__").and_then(|rest| Some(rest.split_once("__")?.0));
    if server.is_none() && !args.name.contains("McpResource") {
        return Ok(Behind { servers: Vec::new() });
    }
    let mut behind = Behind::look(world, toolgate.settings(), out)?;
    behind.servers.retain(|entry| server.is_none_or(|server| entry.name == server));
    behind.servers.iter_mut().for_each(|entry| entry.always_load = true);
    Ok(behind)
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
