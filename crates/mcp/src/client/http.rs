//! Reaching servers over HTTP, signed in where they want it.

use super::config::ServerEntry;
use super::desk::McpClientHandler;
use super::link::{Trouble, words};
use super::oauth::{
    AuthChallenge, AuthManagerHandle, CredentialFile, SignIn, SignInAttempts, remembered, sign_in, step_up,
};
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpClientTransportConfig};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use toolgate_os::{HttpClient, http_client};

/// Who may sign in, and where credentials are kept.
#[derive(Debug)]
pub struct Access {
    /// How to sign in when a server wants it; where absent, such a server is refused.
    pub sign_in: Option<SignIn>,
    /// Where credentials are kept.
    pub credentials: CredentialFile,
}

impl Default for Access {
    fn default() -> Self {
        Self { sign_in: None, credentials: CredentialFile::new(None) }
    }
}

/// A server that was reached.
pub(crate) struct HttpConnection {
    pub(crate) service: RunningService<RoleClient, McpClientHandler>,
    pub(crate) manager: Option<AuthManagerHandle>,
}

/// Opens a connection: with what is remembered, and signed in anew where that is wanted and allowed.
pub(crate) async fn open(
    entry: &ServerEntry,
    (url, headers): (&str, &BTreeMap<String, String>),
    handler: &McpClientHandler,
    mode: &ClientLifecycleMode,
    access: &Access,
    (challenge, attempts): (Option<&AuthChallenge>, &SignInAttempts),
) -> Result<HttpConnection, Trouble> {
    let custom = parse_headers(headers).map_err(Trouble::Down)?;
    let config = || {
        StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(custom.clone())
            .reinit_on_expired_session(true)
    };
    let mut wanted = challenge.cloned();
    if wanted.is_none() {
        let tried = match remembered(url, &access.credentials).await {
            Some(client) => signed(handler, client, config(), mode).await,
            None => {
                let client = http_client().map_err(Trouble::Down)?;
                let service = serve(handler, client, config(), mode).await;
                service.map(|service| HttpConnection { service, manager: None })
            }
        };
        match tried {
            Ok(reached) => return Ok(reached),
            Err(error) => match find_challenge(&error) {
                Some(challenge) => wanted = Some(challenge),
                None => return Err(Trouble::Down(words(&error))),
            },
        }
    }
    let Some(how) = &access.sign_in else {
        return Err(Trouble::Auth("it lets in nobody whom it does not know".to_owned()));
    };
    let header = match &wanted {
        Some(AuthChallenge::SignIn(header) | AuthChallenge::Scope { header, .. }) => Some(header.as_str()),
        None => None,
    };
    attempts.another().map_err(Trouble::Auth)?;
    let client = sign_in(url, header, &entry.oauth, how, &access.credentials).await.map_err(Trouble::Auth)?;
    let mut reached = signed(handler, client, config(), mode).await;
    // A further permission may be wanted at once.
    while let Err(error) = &reached {
        let Some(AuthChallenge::Scope { scope: Some(scope), .. }) = find_challenge(error) else { break };
        attempts.another().map_err(Trouble::Auth)?;
        let again = remembered(url, &access.credentials).await.ok_or_else(|| Trouble::Auth(scope.clone()))?;
        step_up(&again.auth_manager, &scope, how).await.map_err(Trouble::Auth)?;
        reached = signed(handler, again, config(), mode).await;
    }
    reached.map_err(|error| match find_challenge(&error) {
        Some(_) => Trouble::Auth("it does not let us in although we signed in".to_owned()),
        None => Trouble::Down(words(&error)),
    })
}

async fn signed(
    handler: &McpClientHandler,
    client: AuthClient<HttpClient>,
    config: StreamableHttpClientTransportConfig,
    mode: &ClientLifecycleMode,
) -> Result<HttpConnection, ClientInitializeError> {
    let manager = Arc::clone(&client.auth_manager);
    let service = serve(handler, client, config, mode).await?;
    Ok(HttpConnection { service, manager: Some(manager) })
}

async fn serve<C: StreamableHttpClient + Send + Sync + 'static>(
    handler: &McpClientHandler,
    client: C,
    config: StreamableHttpClientTransportConfig,
    mode: &ClientLifecycleMode,
) -> Result<RunningService<RoleClient, McpClientHandler>, ClientInitializeError> {
    let transport = StreamableHttpClientTransport::with_client(client, config);
    handler.clone().serve_with_lifecycle(transport, mode.clone()).await
}

fn find_challenge(error: &ClientInitializeError) -> Option<AuthChallenge> {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => find_challenge(fallback),
        ClientInitializeError::TransportError { error, .. } => AuthChallenge::of(error.error.as_ref()),
        _ => None,
    }
}

fn parse_headers(
    headers: &BTreeMap<String, String>,
) -> Result<HashMap<http::HeaderName, http::HeaderValue>, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let name =
            http::HeaderName::try_from(name).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = http::HeaderValue::try_from(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    Ok(custom)
}
