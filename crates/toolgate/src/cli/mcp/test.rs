//! `toolgate mcp test` and `toolgate mcp login`: connect to a server and report its protocol version, tools, problems and
//! standard error.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style};
use super::super::{CliError, CliExitCode};
use super::approve::{ToolChange, find_changes, print_changes};
use super::server_list::{NO_SERVERS, pin_key};
use super::upstreams::{UpstreamServers, open_pins};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use toolgate::mcp::ProtocolEra;
use toolgate::mcp::client::{McpConnectionError, OauthCallbackListener, ServerState, SignInOptions};
use toolgate::render::escape_invisible;
use toolgate::{DefinitionFormat, ToolDefinition, Toolgate};
use toolgate_proto::{format_count, shorten_text};

/// How long the user has to sign in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);

/// How many lines of a server's standard error are printed.
const MAX_STDERR_LINES: usize = 10;
/// How many characters of a tool's description are printed.
const MAX_DESCRIPTION_CHARS: usize = 80;
/// How long the command waits for the runtime's tasks at its end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Arguments of `toolgate mcp test`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpTestArgs {
    /// Name of the server (default: all servers)
    name: Option<String>,
}

/// Connects to the servers and prints a report for each. Fails if one is not connected or has problems.
pub(crate) fn run(
    context: &CliContext,
    args: &McpTestArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.no_builtin_tools().build()?;
    let mut upstreams = UpstreamServers::discover(context, &toolgate.settings(), out)?;
    if let Some(name) = &args.name {
        upstreams.find_server(name)?;
        upstreams.servers.retain(|server| server.name == *name);
    }
    // The other servers are tested all the same; a list that cannot be read fails a test of all servers.
    let has_problems = args.name.is_none() && !upstreams.problems.is_empty();
    if upstreams.servers.is_empty() && !has_problems && !context.global.json {
        out.print_line(NO_SERVERS)?;
    }
    let keys: BTreeMap<String, String> =
        upstreams.servers.iter().map(|server| (server.name.clone(), pin_key(server))).collect();
    let started = Instant::now();
    let states = upstreams.connect_once(context, &toolgate)?;
    let took = started.elapsed();
    let pins = open_pins(context)?;
    let all_connected =
        !has_problems && states.iter().all(|state| state.era.is_some() && state.problems.is_empty());
    for state in &states {
        let mut changes = match (keys.get(&state.name), &state.listed) {
            (Some(key), Some(listed)) => find_changes(&pins, key, listed),
            _ => Vec::new(),
        };
        changes.retain(ToolChange::is_of_approved_tool);
        print(context, &toolgate, state, &changes, took, out)?;
    }
    Ok(if all_connected { CliExitCode::Ok } else { CliExitCode::ToolFailed })
}

/// Signs in with the browser, and prints the report of the connected server.
pub(crate) fn login(context: &CliContext, name: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.no_builtin_tools().build()?;
    let mut upstreams = UpstreamServers::discover(context, &toolgate.settings(), out)?;
    let port = upstreams.find_server(name)?.oauth.callback_port.unwrap_or(0);
    upstreams.servers.retain(|server| server.name == *name);
    upstreams.servers.iter_mut().for_each(|server| {
        server.always_load = true;
        server.connect_timeout = SIGN_IN_TIMEOUT;
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (url_sender, url_receiver) = std::sync::mpsc::channel::<String>();
    let started = Instant::now();
    let states = runtime.block_on(async {
        let browser = OauthCallbackListener::open(port, move |url| drop(url_sender.send(url.to_owned()))).await?;
        let sign_in = SignInOptions::new(std::sync::Arc::new(browser));
        let coordinator = upstreams.into_coordinator_with(context, &toolgate.settings(), Some(sign_in))?;
        toolgate.add_source(coordinator.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
        let ready = coordinator.wait_until_ready();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                () = &mut ready => break,
                () = tokio::time::sleep(Duration::from_millis(50)) => {
                    if let Ok(url) = url_receiver.try_recv() {
                        out.print_failure(&format!("open this page in your browser to sign in:\n  {}", escape_invisible(&url)));
                    }
                }
            }
        }
        let states = coordinator.states();
        coordinator.close().await;
        Ok::<_, CliError>(states)
    })?;
    let took = started.elapsed();
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    states.iter().try_for_each(|state| print(context, &toolgate, state, &[], took, out))?;
    Ok(if states.iter().all(|state| state.era.is_some()) { CliExitCode::Ok } else { CliExitCode::ToolFailed })
}

/// Prints the report of one server, as text or JSON, with how its tools changed since they were approved.
fn print(
    context: &CliContext,
    toolgate: &Toolgate,
    state: &ServerState,
    changes: &[ToolChange],
    took: Duration,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    let definitions: Vec<ToolDefinition> = toolgate
        .tools()
        .into_iter()
        .filter(|tool| state.tools.iter().any(|name| name == tool.name.as_str()))
        .collect();
    let bytes = toolgate::render::render_definitions(&definitions, DefinitionFormat::Mcp).to_string().len();
    let error = state.error.as_ref().map(|error| error.refusal(&state.name));
    if context.global.json {
        let not_approved = matches!(state.error, Some(McpConnectionError::NotApproved(_)));
        let line = json!({
            "name": state.name, "connected": state.era.is_some(), "era": state.era, "tools": state.tools,
            "definitionBytes": bytes, "millis": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "trouble": error.map(|refusal| json!({ "reason": refusal.reason, "hint": refusal.hint })),
            "held": not_approved, "problems": state.problems, "stderr": state.stderr_tail,
            "changed": changes.iter().map(ToolChange::to_json).collect::<Vec<Value>>(),
        });
        out.print_line(&line.to_string())?;
        return Ok(());
    }
    let name = paint(style::BOLD, &state.name);
    match (&state.era, error) {
        (Some(era), _) => {
            let version = match era {
                ProtocolEra::Legacy => "2025-11-25 or older",
                ProtocolEra::Modern => "2026-07-28",
            };
            out.print_line(&format!(
                "{name}  {}  protocol {version}, {}, {bytes} bytes of definitions, ready in {} ms",
                paint(style::GOOD, "ok"),
                format_count(state.tools.len() as u64, "tool", "tools"),
                took.as_millis()
            ))?;
            print_tools(&definitions, out)?;
        }
        (None, Some(refusal)) => {
            let reason = escape_invisible(&refusal.reason);
            out.print_line(&format!("{name}  {}  {reason}", paint(style::BAD, "failed")))?;
            out.print_line(&format!("  hint: {}", escape_invisible(&refusal.hint)))?;
        }
        (None, None) => {
            out.print_line(&format!("{name}  {}  not ready in time", paint(style::BAD, "failed")))?
        }
    }
    print_problems(context, state, out)?;
    print_changes(changes, out)
}

/// Prints each tool with the start of its description.
fn print_tools(definitions: &[ToolDefinition], out: &mut CliOutput) -> Result<(), CliError> {
    for tool in definitions {
        let first = tool.description.lines().next().unwrap_or_default();
        let short = shorten_text(first, MAX_DESCRIPTION_CHARS);
        out.print_line(&format!("  {}  {}", tool.name, escape_invisible(&short)))?;
    }
    Ok(())
}

/// Prints the problems of a server and the end of its standard error.
fn print_problems(context: &CliContext, state: &ServerState, out: &mut CliOutput) -> Result<(), CliError> {
    for problem in &state.problems {
        out.print_line(&format!("  {} {}", paint(style::ASK, "!"), escape_invisible(problem)))?;
    }
    if !state.stderr_tail.trim().is_empty() && !context.global.quiet {
        out.print_line("  standard error:")?;
        let lines: Vec<&str> = state.stderr_tail.lines().collect();
        for line in lines.iter().skip(lines.len().saturating_sub(MAX_STDERR_LINES)) {
            out.print_line(&format!("  | {}", escape_invisible(line)))?;
        }
    }
    Ok(())
}
