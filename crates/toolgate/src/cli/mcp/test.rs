//! `toolgate mcp test`: how a server is, measured.

use super::super::out::{Out, paint, style};
use super::super::world::World;
use super::super::{Exit, Failure};
use super::behind::UpstreamServers;
use serde_json::json;
use std::time::{Duration, Instant};
use toolgate::mcp::ProtocolEra;
use toolgate::mcp::client::{Callback, ServerState, SignIn, Trouble};
use toolgate::render::visible;
use toolgate::{Format, Toolgate};

/// How long a person may take to sign in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
pub(crate) struct McpTestArgs {
    /// The server; where absent, all of them
    name: Option<String>,
}

pub(crate) fn run(world: &World, args: &McpTestArgs, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.no_builtin_tools().build()?;
    let mut behind = UpstreamServers::look(world, &toolgate.settings(), out)?;
    if let Some(name) = &args.name {
        behind.named(name)?;
        behind.servers.retain(|server| server.name == *name);
    }
    // Whoever asks for a test waits for its outcome.
    behind.servers.iter_mut().for_each(|server| server.always_load = true);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let started = Instant::now();
    let states = runtime.block_on(async {
        let coordinator = behind.coordinator(world, &toolgate.settings())?;
        coordinator.start(&toolgate.shared_gate()).map_err(|error| Failure::Usage(error.to_string()))?;
        coordinator.ready().await;
        let states = coordinator.states();
        coordinator.close().await;
        Ok::<_, Failure>(states)
    })?;
    let took = started.elapsed();
    runtime.shutdown_timeout(Duration::from_millis(100));
    let well = states.iter().all(|state| state.era.is_some() && state.problems.is_empty());
    for state in &states {
        print(world, &toolgate, state, took, out)?;
    }
    Ok(if well { Exit::Ok } else { Exit::ToolFailed })
}

/// Signs in, and shows how the server is then.
pub(crate) fn login(world: &World, name: &str, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.no_builtin_tools().build()?;
    let mut behind = UpstreamServers::look(world, &toolgate.settings(), out)?;
    let port = behind.named(name)?.oauth.callback_port.unwrap_or(0);
    behind.servers.retain(|server| server.name == *name);
    behind.servers.iter_mut().for_each(|server| {
        server.always_load = true;
        server.connect_timeout = SIGN_IN_TIMEOUT;
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (tell, told) = std::sync::mpsc::channel::<String>();
    let started = Instant::now();
    let states = runtime.block_on(async {
        let browser = Callback::open(port, move |url| drop(tell.send(url.to_owned()))).await?;
        let sign_in = SignIn { browser: std::sync::Arc::new(browser), client_metadata_url: None };
        let coordinator = behind.into_coordinator_with(world, &toolgate.settings(), Some(sign_in))?;
        coordinator.start(&toolgate.shared_gate()).map_err(|error| Failure::Usage(error.to_string()))?;
        let ready = coordinator.ready();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                () = &mut ready => break,
                () = tokio::time::sleep(Duration::from_millis(50)) => {
                    if let Ok(url) = told.try_recv() {
                        out.failure(&format!("open this page in your browser:\n  {}", visible(&url)));
                    }
                }
            }
        }
        let states = coordinator.states();
        coordinator.close().await;
        Ok::<_, Failure>(states)
    })?;
    let took = started.elapsed();
    runtime.shutdown_timeout(Duration::from_millis(100));
    states.iter().try_for_each(|state| print(world, &toolgate, state, took, out))?;
    Ok(if states.iter().all(|state| state.era.is_some()) { Exit::Ok } else { Exit::ToolFailed })
}

fn print(
    world: &World,
    toolgate: &Toolgate,
    state: &ServerState,
    took: Duration,
    out: &mut Out,
) -> Result<(), Failure> {
    let definitions: Vec<_> = toolgate
        .tools()
        .into_iter()
        .filter(|tool| state.tools.iter().any(|name| name == tool.name.as_str()))
        .collect();
    let bytes = toolgate::render::render_definitions(&definitions, Format::Mcp).to_string().len();
    let trouble = state.trouble.as_ref().map(|trouble| {
        let refusal = trouble.refusal(&state.name);
        (refusal.reason, refusal.hint)
    });
    if world.global.json {
        let line = json!({
            "name": state.name, "connected": state.era.is_some(), "era": state.era, "tools": state.tools,
            "definitionBytes": bytes, "millis": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "trouble": trouble.map(|(reason, hint)| json!({ "reason": reason, "hint": hint })),
            "held": matches!(state.trouble, Some(Trouble::Held(_))), "problems": state.problems, "stderr": state.said,
        });
        out.line(&line.to_string())?;
        return Ok(());
    }
    let name = paint(style::BOLD, &state.name);
    match (&state.era, trouble) {
        (Some(era), _) => {
            let era = match era {
                ProtocolEra::Legacy => "2025-11-25 or older",
                ProtocolEra::Modern => "2026-07-28",
            };
            out.line(&format!(
                "{name}  {}  speaks {era}, {} tools, {bytes} bytes of definitions, ready in {} ms",
                paint(style::GOOD, "ok"),
                state.tools.len(),
                took.as_millis()
            ))?;
            for tool in &definitions {
                let first = tool.description.lines().next().unwrap_or_default();
                let short: String = first.chars().take(80).collect();
                out.line(&format!("  {}  {}", tool.name, visible(&short)))?;
            }
        }
        (None, Some((reason, hint))) => {
            out.line(&format!("{name}  {}  {}", paint(style::BAD, "bad"), visible(&reason)))?;
            out.line(&format!("  hint: {}", visible(&hint)))?;
        }
        (None, None) => {
            out.line(&format!("{name}  {}  it was not ready in time", paint(style::BAD, "bad")))?
        }
    }
    for problem in &state.problems {
        out.line(&format!("  {} {}", paint(style::ASK, "!"), visible(problem)))?;
    }
    if !state.said.trim().is_empty() && !world.global.quiet {
        out.line("  standard error:")?;
        for line in state.said.lines().rev().take(10).collect::<Vec<_>>().into_iter().rev() {
            out.line(&format!("  | {}", visible(line)))?;
        }
    }
    Ok(())
}
