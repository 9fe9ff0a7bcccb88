//! `toolgate mcp serve`: an MCP server whose tools are the built-in ones and those of the upstream servers.
//!
//! Questions go to the client as elicitations, because the terminal, if there is one, belongs to the client.

use super::super::context::{CliContext, RecordingToolgate};
use super::super::output::CliOutput;
use super::super::stop_signals::cancel_at_signal;
use super::super::{CliError, CliExitCode};
use super::upstreams::{UpstreamServers, follow_plugin_servers};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::Toolgate;
use toolgate::mcp::client::{GatewayFeatures, McpCoordinator};
use toolgate::mcp::{
    ClientApprover, GateServer, HttpListener, HttpOptions, ServerDescription, serve_http, serve_stdio,
};
use toolgate::skills::SkillPrompts;
use toolgate_proto::Principal;
use toolgate_proto::address::LOOPBACK_HOSTS;

/// More threads than this gain nothing: calls mostly wait for files and processes.
const MAX_WORKER_THREADS: usize = 4;

/// Environment variable with the bearer token for HTTP. An option would be visible in the process list.
const TOKEN_ENV: &str = "TOOLGATE_MCP_TOKEN";

/// How long the command waits for the runtime's tasks at its end: a tool that ignores cancellation must not block it.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Arguments of `toolgate mcp serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpServeArgs {
    /// Serve streamable HTTP on this address instead of standard input and output, such as localhost:8765
    #[arg(long, value_name = "ADDR", conflicts_with = "unix", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// Serve streamable HTTP on a Unix socket that only you can access
    #[arg(long, value_name = "PATH")]
    unix: Option<String>,
    /// Accept requests without a token; any program on this machine can then make calls
    #[arg(long, requires = "http")]
    no_token: bool,
    /// Accept connections from other machines
    #[arg(long, requires = "http")]
    allow_remote: bool,
    /// Value of the Host header to accept besides loopback names (repeatable)
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Value of the Origin header to accept, such as http://localhost:* (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Serve only the tools of the configured MCP servers
    #[arg(long)]
    no_builtin_tools: bool,
}

/// Parses an address; `localhost` is the loopback address, without a look-up that could answer otherwise.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric
        .parse()
        .map_err(|_| "give an address and a port, such as localhost:8765 or 127.0.0.1:8765".to_owned())
}

/// Serves until the client disconnects or a signal arrives.
pub(crate) fn run(
    context: &CliContext,
    args: &McpServeArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let name = context.ambient.env.get("USER").cloned();
    let recording = context.build_recording_with(out, |builder| {
        let builder =
            builder.principal(Principal::new("mcp").with_optional_name(name)).approver(ClientApprover);
        if args.no_builtin_tools { builder.no_builtin_tools() } else { builder }
    })?;
    let toolgate = &recording.toolgate;
    let mut upstreams = UpstreamServers::discover(context, &toolgate.settings(), out)?;
    let required = upstreams.mark_required(context, &toolgate.settings());
    let (gate, session) = (toolgate.shared_gate(), toolgate.session().clone());
    // What a client asks for first, made on another thread while this one opens the connection.
    let preparation = std::thread::Builder::new().spawn(move || gate.prepare_definitions(&session));
    let runtime = build_runtime(preparation.is_ok())?;
    let served = runtime.block_on(async {
        let coordinator = upstreams.into_coordinator(context, &toolgate.settings())?;
        toolgate.add_source(coordinator.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
        follow_plugin_servers(context, toolgate, &coordinator);
        let cancel = CancellationToken::new();
        // The upstream servers are stopped before the process exits.
        cancel_at_signal(cancel.clone())?;
        if !required.is_empty() {
            coordinator.wait_until_ready().await;
        }
        let served = match recording.check_prompt_tool() {
            Ok(()) => serve(context, args, toolgate, &coordinator, cancel, out).await,
            Err(error) => Err(error),
        };
        coordinator.close().await;
        served
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    // It has ended long ago, unless the client closed at once; then it must not keep the session beyond this function.
    let _ = preparation.map(std::thread::JoinHandle::join);
    let RecordingToolgate { ledger, telemetry, .. } = recording;
    telemetry.finish(out);
    if let Some(error) = ledger.and_then(|ledger| ledger.last_error()) {
        out.print_note(&format!("some records could not be written to the ledger: {error}"));
    }
    served.map(|()| CliExitCode::Ok)
}

/// A runtime with several threads, or with one where the system can start no other: then calls overlap only while they
/// wait. The library panics where a worker thread cannot be started, so the caller tries that first.
fn build_runtime(can_start_threads: bool) -> std::io::Result<tokio::runtime::Runtime> {
    let workers = toolgate_files::available_cores().clamp(1, MAX_WORKER_THREADS);
    let mut builder = if workers > 1 && can_start_threads {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.worker_threads(workers).enable_all().build()
}

/// Serves the gate over stdio, TCP or a Unix socket until the client disconnects or the token is cancelled. Rejects an
/// address that other machines can reach unless `--allow-remote` is given.
async fn serve(
    context: &CliContext,
    args: &McpServeArgs,
    toolgate: &Toolgate,
    coordinator: &McpCoordinator,
    cancel: CancellationToken,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    let mut description = ServerDescription::new("toolgate", env!("CARGO_PKG_VERSION"));
    description.instructions = Some(
        "Every call is checked against a policy. A refusal says why and what to do next; do not repeat a refused call \
         unchanged."
            .to_owned(),
    );
    let (gate, session) = (toolgate.shared_gate(), toolgate.session().clone());
    let gateway = GatewayFeatures::new(coordinator.clone(), Arc::clone(&gate), session.clone());
    let features = SkillPrompts::new(toolgate.clone(), Arc::new(gateway));
    let server = GateServer::new(gate, session, Arc::new(features), description)?;
    let listener = match (&args.http, &args.unix) {
        (None, None) => {
            tokio::select! {
                served = serve_stdio(server) => served?,
                () = cancel.cancelled() => {}
            }
            return Ok(());
        }
        (Some(address), _) => {
            if !address.ip().is_loopback() && !args.allow_remote {
                return Err(CliError::Usage(format!(
                    "{address} is reachable from other machines; add --allow-remote to permit that, and --allow-host \
                     with the name that clients use"
                )));
            }
            HttpListener::Tcp(
                toolgate_net::listen_tcp(*address)
                    .await
                    .map_err(|error| describe_failed_listen(&address.to_string(), &error))?,
            )
        }
        (None, Some(path)) => {
            let path = context.ambient.absolute_path(path);
            let listener = toolgate_net::listen_unix(&path);
            HttpListener::Unix(listener.map_err(|error| describe_failed_listen(&path.to_string(), &error))?)
        }
    };
    let mut options = HttpOptions::default().with_origins(args.allow_origin.clone()).with_cancel(cancel);
    if !args.allow_host.is_empty() {
        options.hosts = LOOPBACK_HOSTS.map(str::to_owned).to_vec();
        options.hosts.extend(args.allow_host.iter().cloned());
    }
    match &listener {
        HttpListener::Tcp(listener) => {
            let address = listener.local_addr()?;
            if !args.no_token {
                let token = choose_token(context, out)?;
                options.token = Some(token);
            }
            // The system may have chosen the port.
            out.print_required_note(&format!("serving on http://{address}{}", options.path));
        }
        HttpListener::Unix(_) => out.print_note("serving on a Unix socket that only you can access"),
    }
    serve_http(server, listener, options).await?;
    Ok(())
}

/// The bearer token, from the environment or random. A random one is printed, because no client could connect without it.
fn choose_token(context: &CliContext, out: &mut CliOutput) -> Result<String, CliError> {
    if let Some(token) = context.ambient.env.get(TOKEN_ENV).filter(|token| !token.is_empty()) {
        out.print_note(&format!("requests need the bearer token from {TOKEN_ENV}"));
        return Ok(token.clone());
    }
    let bytes = toolgate_files::random_bytes::<24>()?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    out.print_required_note(&format!(
        "requests need the header `Authorization: Bearer {token}` (set {TOKEN_ENV} to choose the token)"
    ));
    Ok(token)
}

/// Why an address or a socket cannot be listened on, and what to do.
fn describe_failed_listen(place: &str, error: &std::io::Error) -> CliError {
    let hint = match error.kind() {
        ErrorKind::NotFound => "create the directory of the socket first",
        ErrorKind::AddrInUse => "end the program that listens there, or choose another port or socket",
        ErrorKind::PermissionDenied => "choose a port from 1024, or a socket in a directory of yours",
        ErrorKind::AddrNotAvailable => "give an address of this machine, such as localhost:8765",
        ErrorKind::InvalidInput => {
            "choose a shorter path for the socket; the system allows about 100 characters"
        }
        _ => "choose another address",
    };
    CliError::Usage(format!("cannot listen on {place}: {error}\n  hint: {hint}"))
}
