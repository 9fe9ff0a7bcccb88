//! Connecting to servers over HTTP, with authorization where they require it.

use super::connection::{McpConnectionError, describe_initialize_error};
use super::in_flight::McpClientHandler;
use super::oauth::{
    AuthChallenge, AuthManagerHandle, CredentialFile, SignInAttempts, SignInOptions, load_stored_client,
    sign_in, step_up,
};
use super::server_entry::ServerEntry;
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpClientTransportConfig};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use toolgate_net::{HttpClient, http_client};

/// How to sign in, and where credentials are stored.
#[derive(Debug)]
#[non_exhaustive]
pub struct OauthOptions {
    /// How to sign in when a server wants it; where absent, such a server is refused.
    pub sign_in: Option<SignInOptions>,
    /// Where credentials are kept.
    pub credentials: CredentialFile,
}

impl Default for OauthOptions {
    fn default() -> Self {
        Self { sign_in: None, credentials: CredentialFile::new(None) }
    }
}

impl OauthOptions {
    /// Sets how to sign in; absent means that a server that wants it is refused.
    pub fn with_sign_in(mut self, sign_in: Option<SignInOptions>) -> Self {
        self.sign_in = sign_in;
        self
    }

    /// Sets where credentials are kept.
    pub fn with_credentials(mut self, credentials: CredentialFile) -> Self {
        self.credentials = credentials;
        self
    }
}

/// A server that was reached.
pub(crate) struct HttpConnection {
    /// The protocol service on top of the HTTP transport.
    pub(crate) service: RunningService<RoleClient, McpClientHandler>,
    /// The OAuth state; `None` if the server accepted requests without credentials.
    pub(crate) manager: Option<AuthManagerHandle>,
}

/// Opens a connection: with what is remembered, and signed in anew where that is wanted and allowed.
pub(crate) async fn connect_http(
    entry: &ServerEntry,
    (url, headers): (&str, &BTreeMap<String, String>),
    handler: &McpClientHandler,
    mode: &ClientLifecycleMode,
    access: &OauthOptions,
    (challenge, attempts): (Option<&AuthChallenge>, &SignInAttempts),
) -> Result<HttpConnection, McpConnectionError> {
    let custom = parse_headers(headers).map_err(McpConnectionError::Down)?;
    let config = || {
        StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(custom.clone())
            .reinit_on_expired_session(true)
    };
    let mut wanted = challenge.cloned();
    if wanted.is_none() {
        let tried = match load_stored_client(url, &access.credentials).await {
            Some(client) => connect_with_credentials(handler, client, config(), mode).await,
            None => {
                let client = http_client().map_err(McpConnectionError::Down)?;
                let service = serve_transport(handler, client, config(), mode).await;
                service.map(|service| HttpConnection { service, manager: None })
            }
        };
        match tried {
            Ok(reached) => return Ok(reached),
            Err(error) => match find_challenge(&error) {
                Some(challenge) => wanted = Some(challenge),
                None => return Err(McpConnectionError::Down(describe_initialize_error(&error))),
            },
        }
    }
    let Some(how) = &access.sign_in else {
        return Err(McpConnectionError::Auth("it requires authorization".to_owned()));
    };
    let header = match &wanted {
        Some(AuthChallenge::SignIn(header) | AuthChallenge::Scope { header, .. }) => Some(header.as_str()),
        None => None,
    };
    attempts.count_attempt().map_err(McpConnectionError::Auth)?;
    let client = sign_in(url, header, &entry.oauth, how, &access.credentials)
        .await
        .map_err(McpConnectionError::Auth)?;
    let mut reached = connect_with_credentials(handler, client, config(), mode).await;
    // A further permission may be wanted at once.
    while let Err(error) = &reached {
        let Some(AuthChallenge::Scope { scope: Some(scope), .. }) = find_challenge(error) else { break };
        attempts.count_attempt().map_err(McpConnectionError::Auth)?;
        let again = load_stored_client(url, &access.credentials)
            .await
            .ok_or_else(|| McpConnectionError::Auth(scope.clone()))?;
        step_up(&again.auth_manager, &scope, how).await.map_err(McpConnectionError::Auth)?;
        reached = connect_with_credentials(handler, again, config(), mode).await;
    }
    reached.map_err(|error| match find_challenge(&error) {
        Some(_) => McpConnectionError::Auth("it does not let us in although we signed in".to_owned()),
        None => McpConnectionError::Down(describe_initialize_error(&error)),
    })
}

/// Connects with a client that adds the access token, and keeps its OAuth state for a later step-up.
async fn connect_with_credentials(
    handler: &McpClientHandler,
    client: AuthClient<HttpClient>,
    config: StreamableHttpClientTransportConfig,
    mode: &ClientLifecycleMode,
) -> Result<HttpConnection, ClientInitializeError> {
    let manager = Arc::clone(&client.auth_manager);
    let service = serve_transport(handler, client, config, mode).await?;
    Ok(HttpConnection { service, manager: Some(manager) })
}

/// Does the handshake over streamable HTTP, with or without an authorizing client.
async fn serve_transport<C: StreamableHttpClient + Send + Sync + 'static>(
    handler: &McpClientHandler,
    client: C,
    config: StreamableHttpClientTransportConfig,
    mode: &ClientLifecycleMode,
) -> Result<RunningService<RoleClient, McpClientHandler>, ClientInitializeError> {
    let transport = StreamableHttpClientTransport::with_client(client, config);
    handler.clone().serve_with_lifecycle(transport, mode.clone()).await
}

/// Extracts the authorization challenge from a failed handshake, also from that of the legacy fallback.
fn find_challenge(error: &ClientInitializeError) -> Option<AuthChallenge> {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => find_challenge(fallback),
        ClientInitializeError::TransportError { error, .. } => {
            AuthChallenge::from_error_chain(error.error.as_ref())
        }
        _ => None,
    }
}

/// Validates the configured headers. Values are marked as sensitive, because they usually hold tokens and must not
/// appear in debug output.
fn parse_headers(
    headers: &BTreeMap<String, String>,
) -> Result<HashMap<http::HeaderName, http::HeaderValue>, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let name =
            http::HeaderName::try_from(name).map_err(|_| format!("`{name}` is not the name of a header"))?;
        let mut value = http::HeaderValue::try_from(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    Ok(custom)
}
