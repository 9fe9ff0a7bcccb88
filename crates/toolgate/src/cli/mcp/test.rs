//! `toolgate mcp test`: how a server is, measured.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style};
use super::super::{CliError, CliExitCode};
use super::upstreams::UpstreamServers;
use serde_json::json;
use std::time::{Duration, Instant};
use toolgate::mcp::ProtocolEra;
use toolgate::mcp::client::{McpConnectionError, OauthCallbackListener, ServerState, SignInOptions};
use toolgate::render::escape_invisible;
use toolgate::{DefinitionFormat, Toolgate};

/// How long a person may take to sign in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
pub(crate) struct McpTestArgs {
    /// The server; where absent, all of them
    name: Option<String>,
}

pub(crate) fn run(
    world: &CliContext,
    args: &McpTestArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let toolgate = world.builder()?.no_builtin_tools().build()?;
    let mut behind = UpstreamServers::discover(world, &toolgate.settings(), out)?;
    if let Some(name) = &args.name {
        behind.find_server(name)?;
        behind.servers.retain(|server| server.name == *name);
    }
    // Whoever asks for a test waits for its outcome.
    behind.servers.iter_mut().for_each(|server| server.always_load = true);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let started = Instant::now();
    let states = runtime.block_on(async {
        let coordinator = behind.into_coordinator(world, &toolgate.settings())?;
        toolgate.add_source(coordinator.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
        coordinator.wait_until_ready().await;
        let states = coordinator.states();
        coordinator.close().await;
        Ok::<_, CliError>(states)
    })?;
    let took = started.elapsed();
    runtime.shutdown_timeout(Duration::from_millis(100));
    let well = states.iter().all(|state| state.era.is_some() && state.problems.is_empty());
    for state in &states {
        print(world, &toolgate, state, took, out)?;
    }
    Ok(if well { CliExitCode::Ok } else { CliExitCode::ToolFailed })
}

/// Signs in, and shows how the server is then.
pub(crate) fn login(world: &CliContext, name: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = world.builder()?.no_builtin_tools().build()?;
    let mut behind = UpstreamServers::discover(world, &toolgate.settings(), out)?;
    let port = behind.find_server(name)?.oauth.callback_port.unwrap_or(0);
    behind.servers.retain(|server| server.name == *name);
    behind.servers.iter_mut().for_each(|server| {
        server.always_load = true;
        server.connect_timeout = SIGN_IN_TIMEOUT;
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (tell, told) = std::sync::mpsc::channel::<String>();
    let started = Instant::now();
    let states = runtime.block_on(async {
        let browser = OauthCallbackListener::open(port, move |url| drop(tell.send(url.to_owned()))).await?;
        let sign_in = SignInOptions::new(std::sync::Arc::new(browser));
        let coordinator = behind.into_coordinator_with(world, &toolgate.settings(), Some(sign_in))?;
        toolgate.add_source(coordinator.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
        let ready = coordinator.wait_until_ready();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                () = &mut ready => break,
                () = tokio::time::sleep(Duration::from_millis(50)) => {
                    if let Ok(url) = told.try_recv() {
                        out.print_failure(&format!("open this page in your browser:\n  {}", escape_invisible(&url)));
                    }
                }
            }
        }
        let states = coordinator.states();
        coordinator.close().await;
        Ok::<_, CliError>(states)
    })?;
    let took = started.elapsed();
    runtime.shutdown_timeout(Duration::from_millis(100));
    states.iter().try_for_each(|state| print(world, &toolgate, state, took, out))?;
    Ok(if states.iter().all(|state| state.era.is_some()) { CliExitCode::Ok } else { CliExitCode::ToolFailed })
}

fn print(
    world: &CliContext,
    toolgate: &Toolgate,
    state: &ServerState,
    took: Duration,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    let definitions: Vec<_> = toolgate
        .tools()
        .into_iter()
        .filter(|tool| state.tools.iter().any(|name| name == tool.name.as_str()))
        .collect();
    let bytes = toolgate::render::render_definitions(&definitions, DefinitionFormat::Mcp).to_string().len();
    let trouble = state.error.as_ref().map(|trouble| {
        let refusal = trouble.refusal(&state.name);
        (refusal.reason, refusal.hint)
    });
    if world.global.json {
        let line = json!({
            "name": state.name, "connected": state.era.is_some(), "era": state.era, "tools": state.tools,
            "definitionBytes": bytes, "millis": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "trouble": trouble.map(|(reason, hint)| json!({ "reason": reason, "hint": hint })),
            "held": matches!(state.error, Some(McpConnectionError::NotApproved(_))), "problems": state.problems, "stderr": state.stderr_tail,
        });
        out.print_line(&line.to_string())?;
        return Ok(());
    }
    let name = paint(style::BOLD, &state.name);
    match (&state.era, trouble) {
        (Some(era), _) => {
            let era = match era {
                ProtocolEra::Legacy => "2025-11-25 or older",
                ProtocolEra::Modern => "2026-07-28",
            };
            out.print_line(&format!(
                "{name}  {}  speaks {era}, {} tools, {bytes} bytes of definitions, ready in {} ms",
                paint(style::GOOD, "ok"),
                state.tools.len(),
                took.as_millis()
            ))?;
            for tool in &definitions {
                let first = tool.description.lines().next().unwrap_or_default();
                let short: String = first.chars().take(80).collect();
                out.print_line(&format!("  {}  {}", tool.name, escape_invisible(&short)))?;
            }
        }
        (None, Some((reason, hint))) => {
            out.print_line(&format!("{name}  {}  {}", paint(style::BAD, "bad"), escape_invisible(&reason)))?;
            out.print_line(&format!("  hint: {}", escape_invisible(&hint)))?;
        }
        (None, None) => {
            out.print_line(&format!("{name}  {}  it was not ready in time", paint(style::BAD, "bad")))?
        }
    }
    for problem in &state.problems {
        out.print_line(&format!("  {} {}", paint(style::ASK, "!"), escape_invisible(problem)))?;
    }
    if !state.stderr_tail.trim().is_empty() && !world.global.quiet {
        out.print_line("  standard error:")?;
        for line in state.stderr_tail.lines().rev().take(10).collect::<Vec<_>>().into_iter().rev() {
            out.print_line(&format!("  | {}", escape_invisible(line)))?;
        }
    }
    Ok(())
}
