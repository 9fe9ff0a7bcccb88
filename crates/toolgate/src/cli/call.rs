//! `toolgate call`: one call through the whole boundary.

use super::args::{CallArgs, ResultForm};
use super::context::{CliContext, RecordingToolgate};
use super::mcp::{UpstreamServers, parse_server_name};
use super::output::CliOutput;
use super::{CliError, CliExitCode, call_batch, progress};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolgate::{CallOptions, CallOutcome, Code, ToolCall, Toolgate, render};

/// How long hooks in the background may go on after the call.
const BACKGROUND_HOOKS_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(world: &CliContext, args: &CallArgs, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    if let Some(file) = &args.batch {
        return call_batch::run(world, args, file, out);
    }
    let input = world.read_argument(&args.input)?;
    let id = args.id.clone().unwrap_or_else(|| toolgate_files::generate_id("call_"));
    let call = ToolCall::new(id, args.name.clone().unwrap_or_default(), input);
    let closed = make_calls(world, args, RequestedCalls::One(call), out)?;
    let mut exit = CliExitCode::Ok;
    for closed in &closed {
        print(world, args, closed, out)?;
        let structured = closed.result.as_ref().ok().and_then(|output| output.structured.as_ref());
        if structured.is_some_and(|value| value.get("backgroundTaskId").is_some()) {
            out.print_note(
                "each `toolgate call` is a session of its own, and what it left in the background has ended with it: \
                 use it in one --batch, or serve the tools with `toolgate mcp serve`",
            );
        }
        if let Err(refusal) = &closed.result {
            exit = CliExitCode::of(refusal);
            if refusal.code == Code::NotRead {
                out.print_note(
                    "each `toolgate call` is a session of its own: make the read and the change together with \
                     --batch, or serve the tools with `toolgate mcp serve`",
                );
            }
        }
    }
    Ok(exit)
}

/// What is to be called.
pub(crate) enum RequestedCalls {
    One(ToolCall),
    Batch(Vec<ToolCall>),
}

impl RequestedCalls {
    fn as_slice(&self) -> &[ToolCall] {
        match self {
            Self::One(call) => std::slice::from_ref(call),
            Self::Batch(calls) => calls,
        }
    }

    async fn run_on(self, toolgate: &Toolgate, limits: CallOptions) -> Vec<CallOutcome> {
        match self {
            Self::One(call) => vec![toolgate.call_with_options(call, limits).await],
            Self::Batch(calls) => toolgate.call_batch(calls, limits).await,
        }
    }
}

/// Makes the calls, with everything around them: interrupts, progress, servers, the ledger.
pub(crate) fn make_calls(
    world: &CliContext,
    args: &CallArgs,
    calls: RequestedCalls,
    out: &mut CliOutput,
) -> Result<Vec<CallOutcome>, CliError> {
    let timeout = match args.timeout {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            CliError::Usage(format!("--timeout {seconds} is no length of time; give seconds, such as 30"))
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
    let recording = world.build_recording(&cancel, out)?;
    let toolgate = &recording.toolgate;
    let limits = CallOptions::default().with_cancel(cancel).with_timeout(timeout);
    let events = progress::is_wanted(&world.global).then(|| toolgate.events());
    let progress = events.map(|events| runtime.spawn(progress::show(events, calls.as_slice().len())));
    let (closed, wait_for_background_hooks) = runtime.block_on(async {
        let behind = find_required_servers(world, calls.as_slice(), toolgate, out)?;
        let closed = if behind.servers.is_empty() {
            recording.check_prompt_tool()?;
            calls.run_on(toolgate, limits).await
        } else {
            let coordinator = behind.into_coordinator(world, &toolgate.settings())?;
            toolgate.add_source(coordinator.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
            coordinator.wait_until_ready().await;
            // A server that is not there has no tools either; its own words say more than "no such tool".
            for state in coordinator.states() {
                if let Some(trouble) = state.error {
                    let refusal = trouble.refusal(&state.name);
                    out.print_note(&format!("{} ({})", refusal.reason, refusal.hint));
                }
                state
                    .problems
                    .iter()
                    .for_each(|problem| out.print_note(&format!("server `{}`: {problem}", state.name)));
            }
            let closed = match recording.check_prompt_tool() {
                Ok(()) => Ok(calls.run_on(toolgate, limits).await),
                Err(failure) => Err(failure),
            };
            coordinator.close().await;
            closed?
        };
        if let Some(progress) = progress {
            // It ends with the last call; its line must be gone before a result is printed.
            let _ = tokio::time::timeout(Duration::from_millis(100), progress).await;
        }
        Ok::<_, CliError>((closed, toolgate.wait_for_background_hooks(BACKGROUND_HOOKS_TIMEOUT).await))
    })?;
    // A tool that does not end must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let RecordingToolgate { ledger, telemetry: watched, .. } = recording;
    watched.finish(out);
    if let Some(trouble) = ledger.and_then(|ledger| ledger.last_error()) {
        out.print_note(&format!("not everything is in the ledger: {trouble}"));
    }
    if !wait_for_background_hooks {
        out.print_note("hooks that still ran in the background were stopped");
    }
    for closed in &closed {
        for message in &closed.messages {
            out.print_note(message);
        }
        if let Some(reason) = &closed.stop {
            out.print_note(&format!("a hook wants the agent to stop: {reason}"));
        }
    }
    Ok(closed)
}

/// The servers that the calls need: those whose tools they are, or all where one is about all.
fn find_required_servers(
    world: &CliContext,
    calls: &[ToolCall],
    toolgate: &Toolgate,
    out: &mut CliOutput,
) -> Result<UpstreamServers, CliError> {
    let settings = toolgate.settings();
    let mut named: BTreeSet<String> =
        calls.iter().filter_map(|call| parse_server_name(call.name.as_str())).map(str::to_owned).collect();
    let all = calls.iter().any(|call| call.name.as_str().contains("McpResource"));
    let prompt = world.global.permission_prompt_tool.as_deref().and_then(parse_server_name);
    if named.is_empty() && !all && prompt.is_none() && settings.hook_servers().is_empty() {
        return Ok(UpstreamServers { servers: Vec::new() });
    }
    let mut behind = UpstreamServers::discover(world, &settings, out)?;
    named.append(&mut behind.mark_required(world, &settings));
    behind.servers.retain(|entry| all || named.contains(&entry.name));
    behind.servers.iter_mut().for_each(|entry| entry.always_load = true);
    Ok(behind)
}

fn print(
    world: &CliContext,
    args: &CallArgs,
    closed: &CallOutcome,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    let form = if world.global.json { ResultForm::Json } else { args.form };
    match (form, &closed.result) {
        (ResultForm::Text, Ok(output)) => out.print_line(&render::escape_invisible(&output.model_text()))?,
        (ResultForm::Text, Err(_)) => out.print_failure(&render::terminal_text(&closed.result)),
        (form, _) => out.print_line(&render_outcome(form, closed).to_string())?,
    }
    Ok(())
}

/// A call that is over, for programs.
pub(crate) fn render_outcome(form: ResultForm, closed: &CallOutcome) -> Value {
    let CallOutcome { result, record, .. } = closed;
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
