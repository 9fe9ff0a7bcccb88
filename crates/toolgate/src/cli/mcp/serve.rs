//! `toolgate mcp serve`: the gate as an MCP server, with other servers behind it.

use super::super::context::{CliContext, RecordingToolgate};
use super::super::output::CliOutput;
use super::super::{CliError, CliExitCode};
use super::upstreams::UpstreamServers;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::Toolgate;
use toolgate::mcp::client::{GatewayFeatures, McpCoordinator};
use toolgate::mcp::{
    CallThreads, ClientApprover, GateServer, HttpListener, HttpOptions, ServerDescription, serve_http,
    serve_stdio,
};
use toolgate_process::spin_for_input;
use toolgate_proto::Principal;
use toolgate_proto::address::LOOPBACK_HOSTS;

/// The variable that holds the token for HTTP, so that it need not be typed where others can see it.
const TOKEN_ENV: &str = "TOOLGATE_MCP_TOKEN";

#[derive(Debug, clap::Args)]
pub(crate) struct McpServeArgs {
    /// Serve streamable HTTP on this address instead, such as 127.0.0.1:8765
    #[arg(long, value_name = "ADDR", conflicts_with = "unix")]
    http: Option<SocketAddr>,
    /// Serve streamable HTTP on a Unix socket instead
    #[arg(long, value_name = "PATH")]
    unix: Option<String>,
    /// Take requests without a token (anyone on this machine can make calls)
    #[arg(long, requires = "http")]
    no_token: bool,
    /// Let other machines reach the address
    #[arg(long, requires = "http")]
    allow_remote: bool,
    /// A host that requests may be addressed to, beside loopback (repeatable)
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// An origin that pages may have, such as http://localhost:* (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Serve only the tools of the servers behind the gate
    #[arg(long)]
    no_builtin_tools: bool,
}

pub(crate) fn run(
    world: &CliContext,
    args: &McpServeArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let name = world.ambient.env.get("USER").cloned();
    let recording = world.build_recording_with(out, |builder| {
        let builder = builder.principal(Principal { edge: "mcp".to_owned(), name }).approver(ClientApprover);
        if args.no_builtin_tools { builder.no_builtin_tools() } else { builder }
    })?;
    let toolgate = &recording.toolgate;
    let mut behind = UpstreamServers::discover(world, &toolgate.settings(), out)?;
    let needed = behind.mark_required(world, &toolgate.settings());
    // What is opened to a server belongs to one thread, and so do calls that may open it.
    let hands = if behind.servers.is_empty() { CallThreads::Two } else { CallThreads::One };
    // Over standard streams one thread reads and answers: calls overlap where they wait, and short ones run where they
    // arrive, without a hop.
    let mut runtime = match (&args.http, &args.unix) {
        (None, None) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    // Only what writes to standard output is ever looked out after.
    let runtime = runtime.worker_threads(2).on_thread_park(spin_for_input).enable_all().build()?;
    let served = runtime.block_on(async {
        let coordinator = behind.into_coordinator(world, &toolgate.settings())?;
        coordinator.start(&toolgate.shared_gate()).map_err(|error| CliError::Usage(error.to_string()))?;
        let cancel = CancellationToken::new();
        tokio::spawn(cancel_on_signal(cancel.clone()));
        if !needed.is_empty() {
            coordinator.wait_until_ready().await;
        }
        let served = match recording.check_prompt_tool() {
            Ok(()) => serve(world, args, toolgate, (&coordinator, hands), cancel, out).await,
            Err(failure) => Err(failure),
        };
        coordinator.close().await;
        served
    });
    // A tool that does not end must not keep the program.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let RecordingToolgate { ledger, telemetry: watched, .. } = recording;
    watched.finish(out);
    if let Some(trouble) = ledger.and_then(|ledger| ledger.last_error()) {
        out.print_note(&format!("not every call is in the ledger: {trouble}"));
    }
    served.map(|()| CliExitCode::Ok)
}

async fn serve(
    world: &CliContext,
    args: &McpServeArgs,
    toolgate: &Toolgate,
    (coordinator, hands): (&McpCoordinator, CallThreads),
    cancel: CancellationToken,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    let mut about = ServerDescription::new("toolgate", env!("CARGO_PKG_VERSION"));
    about.instructions = Some(
        "Every call crosses a policy. A refusal says why and what to do next; do not repeat a refused call unchanged."
            .to_owned(),
    );
    let (gate, session) = (toolgate.shared_gate(), toolgate.session().clone());
    let gateway = GatewayFeatures::new(coordinator.clone(), Arc::clone(&gate), session.clone());
    let server = GateServer::new(gate, session, Arc::new(gateway), about)?;
    let door = match (&args.http, &args.unix) {
        (None, None) => {
            tokio::select! {
                served = serve_stdio(server, hands) => served?,
                () = cancel.cancelled() => {}
            }
            return Ok(());
        }
        (Some(address), _) => {
            if !address.ip().is_loopback() && !args.allow_remote {
                return Err(CliError::Usage(format!(
                    "{address} can be reached from other machines; add --allow-remote if that is meant, and \
                     --allow-host for the name they use"
                )));
            }
            HttpListener::Tcp(toolgate_net::listen_tcp(*address).await?)
        }
        (None, Some(path)) => {
            HttpListener::Unix(toolgate_net::listen_unix(&world.ambient.absolute_path(path))?)
        }
    };
    let mut options = HttpOptions { origins: args.allow_origin.clone(), cancel, ..HttpOptions::default() };
    if !args.allow_host.is_empty() {
        options.hosts = LOOPBACK_HOSTS.map(str::to_owned).to_vec();
        options.hosts.extend(args.allow_host.iter().cloned());
    }
    match &door {
        HttpListener::Tcp(listener) => {
            let address = listener.local_addr()?;
            if !args.no_token {
                let (token, said) = choose_token(world)?;
                options.token = Some(token);
                out.print_note(&said);
            }
            out.print_note(&format!("serving on http://{address}{}", options.path));
        }
        HttpListener::Unix(_) => out.print_note("serving on a Unix socket that only you can reach"),
    }
    serve_http(server, door, options).await?;
    Ok(())
}

/// The token, and what to tell the person about it.
fn choose_token(world: &CliContext) -> Result<(String, String), CliError> {
    if let Some(token) = world.ambient.env.get(TOKEN_ENV).filter(|token| !token.is_empty()) {
        return Ok((token.clone(), format!("requests need the bearer token from {TOKEN_ENV}")));
    }
    let bytes = toolgate_files::random_bytes::<24>()?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let said = format!("requests need `Authorization: Bearer {token}` (set {TOKEN_ENV} for one of your own)");
    Ok((token, said))
}

/// Ends the serving in order: servers that were started must not be left behind.
async fn cancel_on_signal(cancel: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    cancel.cancel();
}
