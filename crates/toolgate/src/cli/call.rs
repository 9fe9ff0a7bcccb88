//! `toolgate call`: one call through the whole boundary.

use super::args::{CallArgs, ResultForm};
use super::mcp::{UpstreamServers, parse_server_name};
use super::out::Out;
use super::world::{Recording, World};
use super::{Exit, Failure, call_batch, progress};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolgate::{CallLimits, Closed, Code, ToolCall, Toolgate, render};

/// How long hooks in the background may go on after the call.
const BACKGROUND: Duration = Duration::from_secs(10);

pub(crate) fn run(world: &World, args: &CallArgs, out: &mut Out) -> Result<Exit, Failure> {
    if let Some(file) = &args.batch {
        return call_batch::run(world, args, file, out);
    }
    let input = world.text(&args.input)?;
    let id = args.id.clone().unwrap_or_else(|| toolgate_os::fresh_id("call_"));
    let call = ToolCall::new(id, args.name.clone().unwrap_or_default(), input);
    let closed = make(world, args, Calls::One(call), out)?;
    let mut exit = Exit::Ok;
    for closed in &closed {
        print(world, args, closed, out)?;
        let structured = closed.result.as_ref().ok().and_then(|output| output.structured.as_ref());
        if structured.is_some_and(|value| value.get("backgroundTaskId").is_some()) {
            out.note(
                "each `toolgate call` is a session of its own, and what it left in the background has ended with it: \
                 use it in one --batch, or serve the tools with `toolgate mcp serve`",
            );
        }
        if let Err(refusal) = &closed.result {
            exit = Exit::of(refusal);
            if refusal.code == Code::NotRead {
                out.note(
                    "each `toolgate call` is a session of its own: make the read and the change together with \
                     --batch, or serve the tools with `toolgate mcp serve`",
                );
            }
        }
    }
    Ok(exit)
}

/// What is to be called.
pub(crate) enum Calls {
    One(ToolCall),
    Batch(Vec<ToolCall>),
}

impl Calls {
    fn all(&self) -> &[ToolCall] {
        match self {
            Self::One(call) => std::slice::from_ref(call),
            Self::Batch(calls) => calls,
        }
    }

    async fn run_on(self, toolgate: &Toolgate, limits: CallLimits) -> Vec<Closed> {
        match self {
            Self::One(call) => vec![toolgate.call_within(call, limits).await],
            Self::Batch(calls) => toolgate.call_batch(calls, limits).await,
        }
    }
}

/// Makes the calls, with everything around them: interrupts, progress, servers, the ledger.
pub(crate) fn make(
    world: &World,
    args: &CallArgs,
    calls: Calls,
    out: &mut Out,
) -> Result<Vec<Closed>, Failure> {
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
    let recording = world.recording(&cancel, out)?;
    let toolgate = &recording.toolgate;
    let limits = CallLimits { cancel, timeout, ..CallLimits::default() };
    let events = progress::wanted(&world.global).then(|| toolgate.events());
    let progress = events.map(|events| runtime.spawn(progress::show(events, calls.all().len())));
    let (closed, wait_for_background_hooks) = runtime.block_on(async {
        let behind = find_required_servers(world, calls.all(), toolgate, out)?;
        let closed = if behind.servers.is_empty() {
            recording.check_prompt_tool()?;
            calls.run_on(toolgate, limits).await
        } else {
            let coordinator = behind.coordinator(world, &toolgate.settings())?;
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
        Ok::<_, Failure>((closed, toolgate.wait_for_background_hooks(BACKGROUND).await))
    })?;
    // A tool that does not end must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let Recording { ledger, watched, .. } = recording;
    watched.finish(out);
    if let Some(trouble) = ledger.and_then(|ledger| ledger.trouble()) {
        out.note(&format!("not everything is in the ledger: {trouble}"));
    }
    if !wait_for_background_hooks {
        out.note("hooks that still ran in the background were stopped");
    }
    for closed in &closed {
        for message in &closed.messages {
            out.note(message);
        }
        if let Some(reason) = &closed.stop {
            out.note(&format!("a hook wants the agent to stop: {reason}"));
        }
    }
    Ok(closed)
}

/// The servers that the calls need: those whose tools they are, or all where one is about all.
fn find_required_servers(
    world: &World,
    calls: &[ToolCall],
    toolgate: &Toolgate,
    out: &mut Out,
) -> Result<UpstreamServers, Failure> {
    let settings = toolgate.settings();
    let mut named: BTreeSet<String> =
        calls.iter().filter_map(|call| parse_server_name(call.name.as_str())).map(str::to_owned).collect();
    let all = calls.iter().any(|call| call.name.as_str().contains("McpResource"));
    let prompt = world.global.permission_prompt_tool.as_deref().and_then(parse_server_name);
    if named.is_empty() && !all && prompt.is_none() && settings.hook_servers().is_empty() {
        return Ok(UpstreamServers { servers: Vec::new() });
    }
    let mut behind = UpstreamServers::look(world, &settings, out)?;
    named.append(&mut behind.need(world, &settings));
    behind.servers.retain(|entry| all || named.contains(&entry.name));
    behind.servers.iter_mut().for_each(|entry| entry.always_load = true);
    Ok(behind)
}

fn print(world: &World, args: &CallArgs, closed: &Closed, out: &mut Out) -> Result<(), Failure> {
    let form = if world.global.json { ResultForm::Json } else { args.form };
    match (form, &closed.result) {
        (ResultForm::Text, Ok(output)) => out.line(&render::visible(&output.model_text()))?,
        (ResultForm::Text, Err(_)) => out.failure(&render::terminal_text(&closed.result)),
        (form, _) => out.line(&render_outcome(form, closed).to_string())?,
    }
    Ok(())
}

/// A call that is over, for programs.
pub(crate) fn render_outcome(form: ResultForm, closed: &Closed) -> Value {
    let Closed { result, record, .. } = closed;
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
