//! The connection to one server: opened when needed, reopened with a backoff after a failure, with a retry limit in time.
//!
//! The protocol era of a server is detected without delaying a call.
//! A new server gets the legacy `initialize`, which every server answers at once; whether it also speaks
//! the modern era is probed in the background, and remembered for the next start.
//! The other order costs ten seconds with servers that never answer what they do not know.

use super::in_flight::{InFlightCalls, McpClientHandler, ServerRequestHandler};
use super::pins::{PinStore, ServerApprovalError};
use super::server_entry::{ServerEntry, ServerTransport};
use crate::line_transport::LineTransport;
use crate::server::ProtocolEra;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, RequestMetaObject};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use toolgate_process::ServerProcess;
use toolgate_proto::{AbsPath, Code, Refusal};

/// The first wait after a failure; it doubles up to [`MAX_RECONNECT_BACKOFF`].
const MIN_RECONNECT_BACKOFF: Duration = Duration::from_millis(500);
/// The upper bound of the backoff: a server that is repaired is found again within a minute.
const MAX_RECONNECT_BACKOFF: Duration = Duration::from_secs(60);
/// The timeout of the probe for the other era. No call waits for it.
const ERA_PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a server cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpConnectionError {
    /// It was not approved, or it changed since it was approved.
    NotApproved(String),
    /// It requires authorization.
    Auth(String),
    /// It does not start, does not answer or sends invalid messages.
    Down(String),
}

impl McpConnectionError {
    /// The refusal of a call of one of its tools.
    pub fn refusal(&self, server: &str) -> Refusal {
        match self {
            Self::NotApproved(why) => {
                Refusal::new(Code::RemoteUnavailable, format!("server `{server}` is held back: {why}"))
                    .hint(format!("look at it, then run `toolgate mcp approve {server}`"))
            }
            Self::Auth(why) => {
                Refusal::new(Code::RemoteAuth, format!("server `{server}` wants you to sign in: {why}")).hint(
                    format!(
                        "give it a token in `headers`, or run `toolgate mcp login {server}`, then call again"
                    ),
                )
            }
            Self::Down(why) => {
                Refusal::new(Code::RemoteUnavailable, format!("server `{server}` is not there: {why}"))
                    .hint(format!(
                        "correct its entry (`toolgate mcp get {server}` shows it), then run `toolgate mcp test {server}`"
                    ))
            }
        }
    }
}

/// An open connection.
pub(crate) struct OpenConnection {
    /// The handle for requests and notifications; clones share the connection.
    pub(crate) peer: Peer<RoleClient>,
    /// The calls that the server works on, with the client that each belongs to.
    pub(crate) in_flight: Arc<InFlightCalls>,
    /// The protocol era that the handshake negotiated.
    pub(crate) era: ProtocolEra,
    /// The protocol service; taken out once, by `shut_down`.
    service: Mutex<Option<RunningService<RoleClient, McpClientHandler>>>,
    /// The server's process; `None` over HTTP and over in-process streams.
    process: Mutex<Option<ServerProcess>>,
    /// The OAuth state of an HTTP connection that signed in; a step-up needs it to request a further scope.
    #[cfg(feature = "http")]
    manager: Option<super::oauth::AuthManagerHandle>,
}

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("era", &self.era).finish_non_exhaustive()
    }
}

impl OpenConnection {
    /// Whether the transport still works; a broken one is replaced by the next `ensure_open`.
    pub(crate) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }

    /// What the server wrote to standard error last.
    pub(crate) fn stderr_tail(&self) -> String {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.as_ref().map(ServerProcess::stderr_tail).unwrap_or_default()
    }

    /// Returns the process id for the status display.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.id()
    }

    /// Ends the service first and the process second, so that the server sees the end of its standard input before it
    /// is killed.
    async fn shut_down(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(service) = service {
            // The transport goes with it, and so the server's standard input is closed.
            let _ = service.cancel().await;
        }
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            process.stop().await;
        }
    }
}

/// What all links share.
#[derive(Debug)]
pub(crate) struct McpConnectionContext {
    /// The environment of toolgate, from which a server process inherits the harmless part.
    pub(crate) env: BTreeMap<String, String>,
    /// The workspace roots, for servers whose entry asks for them.
    pub(crate) roots: Vec<AbsPath>,
    /// The approvals, and the remembered era of each server.
    pub(crate) pins: PinStore,
    /// The fallback for server requests that belong to no client.
    pub(crate) answerer: Option<Arc<dyn ServerRequestHandler>>,
    /// The OAuth settings of HTTP servers.
    #[cfg(feature = "http")]
    pub(crate) access: super::http::OauthOptions,
}

/// One configured server.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    /// The configuration of the server.
    pub(crate) entry: ServerEntry,
    /// The parts shared with the connections to other servers.
    context: Arc<McpConnectionContext>,
    /// An async mutex, because it is held while the connection opens: concurrent calls share one attempt.
    state: tokio::sync::Mutex<McpConnectionState>,
    /// The last error, to show without waiting.
    last_error: Mutex<Option<McpConnectionError>>,
    /// The last authorization challenge, for the next sign-in.
    #[cfg(feature = "http")]
    challenge: Mutex<Option<super::oauth::AuthChallenge>>,
    /// The sign-in counter that stops a server from challenging for ever.
    #[cfg(feature = "http")]
    pub(crate) attempts: super::oauth::SignInAttempts,
}

/// The part of a connection that changes when it opens, fails or closes.
#[derive(Debug, Default)]
struct McpConnectionState {
    /// The last connection that opened; it may have died since.
    live: Option<Arc<OpenConnection>>,
    /// The number of failed attempts in a row; the exponent of the backoff.
    failures: u32,
    /// The end of the backoff. Until then a call gets the last error without another attempt.
    not_before: Option<Instant>,
    /// Set by `close`, so that a late call does not start the server again.
    closed: bool,
}

impl ServerConnection {
    /// Prepares a connection without opening it.
    pub(crate) fn new(entry: ServerEntry, context: Arc<McpConnectionContext>) -> Self {
        Self {
            entry,
            context,
            state: tokio::sync::Mutex::default(),
            last_error: Mutex::default(),
            #[cfg(feature = "http")]
            challenge: Mutex::default(),
            #[cfg(feature = "http")]
            attempts: super::oauth::SignInAttempts::default(),
        }
    }

    /// Builds the key of the pins. It includes the origin, so that two files may use the same server name without
    /// sharing an approval.
    pub(crate) fn key(&self) -> String {
        format!("{}#{}", self.entry.origin, self.entry.name)
    }

    /// Gives access to the approvals, for the check of tool digests.
    pub(crate) fn pins(&self) -> &PinStore {
        &self.context.pins
    }

    /// The open connection, opened if needed. After a failure there is a backoff before the next retry: a call gets its refusal at
    /// once instead of waiting for a server that just did not start.
    pub(crate) async fn ensure_open(&self) -> Result<Arc<OpenConnection>, McpConnectionError> {
        let mut state = self.state.lock().await;
        if let Some(live) = state.live.as_ref().filter(|live| live.is_open()) {
            return Ok(Arc::clone(live));
        }
        if state.closed {
            return Err(McpConnectionError::Down("toolgate is ending".to_owned()));
        }
        if let Some(gone) = state.live.take() {
            gone.shut_down().await;
        }
        if state.not_before.is_some_and(|until| Instant::now() < until)
            && let Some(trouble) = self.last_error()
        {
            return Err(trouble);
        }
        match self.open().await {
            Ok(live) => {
                let live = Arc::new(live);
                state.live = Some(Arc::clone(&live));
                (state.failures, state.not_before) = (0, None);
                self.set_last_error(None);
                Ok(live)
            }
            Err(trouble) => {
                let wait = MIN_RECONNECT_BACKOFF
                    .saturating_mul(1 << state.failures.min(10))
                    .min(MAX_RECONNECT_BACKOFF);
                state.failures += 1;
                state.not_before = Some(Instant::now() + wait);
                self.set_last_error(Some(trouble.clone()));
                Err(trouble)
            }
        }
    }

    /// Handles an authorization challenge: a further scope, or another sign-in. True if the call
    /// may be retried.
    #[cfg(feature = "http")]
    pub(crate) async fn reauthorize(
        &self,
        live: &OpenConnection,
        challenge: super::oauth::AuthChallenge,
    ) -> Result<bool, McpConnectionError> {
        use super::oauth::{AuthChallenge, step_up};
        let Some(how) = &self.context.access.sign_in else { return Ok(false) };
        if let (AuthChallenge::Scope { scope: Some(scope), .. }, Some(manager)) = (&challenge, &live.manager)
        {
            self.attempts.count_attempt().map_err(McpConnectionError::Auth)?;
            step_up(manager, scope, how).await.map_err(McpConnectionError::Auth)?;
            return Ok(true);
        }
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge);
        let gone = self.state.lock().await.live.take();
        if let Some(gone) = gone {
            gone.shut_down().await;
        }
        Ok(true)
    }

    /// How long until the next retry.
    pub(crate) async fn retry_delay(&self) -> Duration {
        let until = self.state.lock().await.not_before;
        until.map_or(MIN_RECONNECT_BACKOFF, |until| {
            until.saturating_duration_since(Instant::now()).max(MIN_RECONNECT_BACKOFF)
        })
    }

    /// Copies the last error, so that no lock is held while it is rendered.
    pub(crate) fn last_error(&self) -> Option<McpConnectionError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the last error; `None` after a success.
    pub(crate) fn set_last_error(&self, trouble: Option<McpConnectionError>) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// The connection if it is open now. Never waits.
    pub(crate) fn current_open(&self) -> Option<Arc<OpenConnection>> {
        self.state.try_lock().ok()?.live.clone().filter(|live| live.is_open())
    }

    /// Lets a connection that was closed be opened again, at once.
    pub(crate) async fn reopen(&self) {
        let mut state = self.state.lock().await;
        (state.closed, state.failures, state.not_before) = (false, 0, None);
        self.set_last_error(None);
    }

    /// Ends the server; it stays ended until [`ServerConnection::reopen`].
    pub(crate) async fn close(&self) {
        let live = {
            let mut state = self.state.lock().await;
            state.closed = true;
            state.live.take()
        };
        if let Some(live) = live {
            live.shut_down().await;
        }
    }

    /// Checks the approval, opens the connection within the timeout, and remembers the era.
    ///
    /// A server that fails with a remembered modern era gets one more attempt with the legacy handshake.
    async fn open(&self) -> Result<OpenConnection, McpConnectionError> {
        let key = self.key();
        let launch = self.entry.launch_digest();
        self.context.pins.check_may_start(&key, &launch, self.entry.trusted).map_err(|held| {
            McpConnectionError::NotApproved(match held {
                ServerApprovalError::NeverApproved => {
                    format!("the project configures it ({}), and it is not approved", self.entry.origin)
                }
                ServerApprovalError::LaunchChanged => {
                    "it is launched in another way than when it was approved".to_owned()
                }
            })
        })?;
        let known = match self.entry.transport {
            // Nothing is remembered about a server that is part of the program around us.
            ServerTransport::Streams(_) => Some(ProtocolEra::Legacy),
            ServerTransport::Stdio(_) | ServerTransport::Http { .. } => self.context.pins.era(&key),
        };
        let opening = timeout(self.entry.connect_timeout, self.open_with_era(known)).await;
        let live = match opening {
            Ok(Ok(live)) => live,
            // The remembered era may be wrong: the server was changed.
            Ok(Err(McpConnectionError::Down(_))) if known == Some(ProtocolEra::Modern) => {
                timeout(self.entry.connect_timeout, self.open_with_era(Some(ProtocolEra::Legacy)))
                    .await
                    .unwrap_or_else(|_| Err(self.connect_timeout_error()))?
            }
            Ok(Err(trouble)) => return Err(trouble),
            Err(_) => return Err(self.connect_timeout_error()),
        };
        if known.is_none() && live.era == ProtocolEra::Legacy {
            let peer = live.peer.clone();
            let around = Arc::clone(&self.context);
            tokio::spawn(async move {
                let meta = RequestMetaObject::with_client_context(
                    ProtocolVersion::V_2026_07_28,
                    rmcp::model::Implementation::new("toolgate", env!("CARGO_PKG_VERSION")),
                    rmcp::model::ClientCapabilities::default(),
                );
                let era = match timeout(ERA_PROBE_TIMEOUT, peer.discover(meta)).await {
                    Ok(Ok(found)) if found.supported_versions.contains(&ProtocolVersion::V_2026_07_28) => {
                        ProtocolEra::Modern
                    }
                    // A connection that broke says nothing about the era.
                    _ if peer.is_transport_closed() => return,
                    _ => ProtocolEra::Legacy,
                };
                around.pins.remember_era(&key, &launch, era);
            });
        } else if known != Some(live.era) {
            self.context.pins.remember_era(&key, &launch, live.era);
        }
        Ok(live)
    }

    /// Builds the error of both attempts, which have the same timeout.
    fn connect_timeout_error(&self) -> McpConnectionError {
        McpConnectionError::Down(format!(
            "it was not ready within {} ms",
            self.entry.connect_timeout.as_millis()
        ))
    }

    /// Opens the transport of the entry and does the handshake of this era; `None` is an era not known yet.
    async fn open_with_era(&self, era: Option<ProtocolEra>) -> Result<OpenConnection, McpConnectionError> {
        let roots = if self.entry.roots { self.context.roots.clone() } else { Vec::new() };
        let in_flight = Arc::new(InFlightCalls::new(&self.entry.name, roots, self.context.answerer.clone()));
        let handler = McpClientHandler(Arc::clone(&in_flight));
        let modern = vec![ProtocolVersion::V_2026_07_28];
        match &self.entry.transport {
            ServerTransport::Stdio(launch) => {
                let (process, stdout, stdin) =
                    ServerProcess::start(launch, &self.context.env).map_err(|error| {
                        McpConnectionError::Down(format!("`{}` cannot be started: {error}", launch.command))
                    })?;
                let mode = match era {
                    Some(ProtocolEra::Modern) => ClientLifecycleMode::Discover { preferred_versions: modern },
                    Some(ProtocolEra::Legacy) | None => ClientLifecycleMode::Initialize,
                };
                let lines = LineTransport::<RoleClient>::new(Box::pin(stdout), Box::pin(stdin));
                match handler.serve_with_lifecycle(lines, mode).await {
                    Ok(service) => Ok(new_open_connection(service, in_flight, Some(process))),
                    Err(error) => Err(start_error(describe_initialize_error(&error), process).await),
                }
            }
            #[cfg(feature = "http")]
            ServerTransport::Http { url, headers } => {
                let mode = match era {
                    Some(ProtocolEra::Legacy) => ClientLifecycleMode::Initialize,
                    Some(ProtocolEra::Modern) => ClientLifecycleMode::Discover { preferred_versions: modern },
                    // Over HTTP a server that does not know the question says so at once.
                    None => ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None },
                };
                let challenge = self.challenge.lock().unwrap_or_else(PoisonError::into_inner).take();
                let access = &self.context.access;
                let place = (url.as_str(), headers);
                let reached = super::http::connect_http(
                    &self.entry,
                    place,
                    &handler,
                    &mode,
                    access,
                    (challenge.as_ref(), &self.attempts),
                )
                .await?;
                let mut live = new_open_connection(reached.service, in_flight, None);
                live.manager = reached.manager;
                Ok(live)
            }
            ServerTransport::Streams(opener) => {
                let (source, sink) = opener.open();
                let lines = LineTransport::<RoleClient>::new(source, sink);
                match handler.serve_with_lifecycle(lines, ClientLifecycleMode::Initialize).await {
                    Ok(service) => Ok(new_open_connection(service, in_flight, None)),
                    Err(error) => Err(McpConnectionError::Down(describe_initialize_error(&error))),
                }
            }
            #[cfg(not(feature = "http"))]
            ServerTransport::Http { .. } => {
                Err(McpConnectionError::Down("this build has no HTTP client".to_owned()))
            }
        }
    }
}

/// Why a process did not become a server: its exit status if it ended, and its last line on standard error.
async fn start_error(mut reason: String, mut process: ServerProcess) -> McpConnectionError {
    if let Some(ended) = process.exit_status().await {
        reason = format!("it ended ({ended})");
    }
    if let Some(last) = process.stderr_tail().lines().rev().find(|line| !line.trim().is_empty()) {
        reason.push_str(&format!("; its last output: {}", last.trim()));
    }
    McpConnectionError::Down(reason)
}

/// Wraps a service whose handshake is done. The era is read from the negotiated version, not from the mode that was
/// requested.
fn new_open_connection(
    service: RunningService<RoleClient, McpClientHandler>,
    in_flight: Arc<InFlightCalls>,
    process: Option<ServerProcess>,
) -> OpenConnection {
    let peer = service.peer().clone();
    let modern = ProtocolVersion::V_2026_07_28;
    let era = match peer.peer_info() {
        Some(info) if info.protocol_version.as_str() >= modern.as_str() => ProtocolEra::Modern,
        _ => ProtocolEra::Legacy,
    };
    OpenConnection {
        peer,
        in_flight,
        era,
        service: Mutex::new(Some(service)),
        process: Mutex::new(process),
        #[cfg(feature = "http")]
        manager: None,
    }
}

/// The error as text, without type names of the library.
pub(super) fn describe_initialize_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        other => {
            let mut said = other.to_string();
            let mut source = std::error::Error::source(other);
            while let Some(error) = source {
                let more = error.to_string();
                if !said.contains(&more) {
                    said.push_str(&format!(": {more}"));
                }
                source = error.source();
            }
            said
        }
    }
}
