//! OAuth: signing in to servers that require it.
//!
//! The flow itself (discovery, PKCE, registration, the checks of issuer and resource) is the library's; what is ours
//! is where credentials are stored, how the user gets to the sign-in page, and when that happens.
//! A call never opens a browser by itself: it is refused with a hint, and the user signs in with `toolgate mcp login`.

use super::server_entry::OauthHints;
use futures_util::future::BoxFuture;
use rmcp::service::ServiceError;
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationRequest,
    CredentialStore, OAuthState, StoredCredentials,
};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;
use toolgate_files::{lock_state_file, read_settings_text, write_private_file};
use toolgate_net::{HttpClient, http_client};
use toolgate_proto::AbsPath;

/// The size limit of the credential file, which holds a few tokens for each server.
const MAX_CREDENTIAL_FILE_BYTES: u64 = 1024 * 1024;

/// A manager of credentials that a connection uses.
pub(crate) type AuthManagerHandle = Arc<Mutex<AuthorizationManager>>;

/// Opens a sign-in page and waits for the redirect.
pub trait SignInBrowser: Send + Sync + std::fmt::Debug {
    /// The redirect URI.
    fn redirect_uri(&self) -> String;

    /// Opens the page; returns the URL to which it redirected.
    fn visit<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// How to sign in, for those who may.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SignInOptions {
    /// The way to the page.
    pub browser: Arc<dyn SignInBrowser>,
    /// Address of a document that describes this client, for servers that take one.
    pub client_metadata_url: Option<String>,
}

impl SignInOptions {
    /// Signs in by this browser.
    pub fn new(browser: Arc<dyn SignInBrowser>) -> Self {
        Self { browser, client_metadata_url: None }
    }

    /// Sets the address of a document that describes this client.
    pub fn with_client_metadata_url(mut self, client_metadata_url: Option<String>) -> Self {
        self.client_metadata_url = client_metadata_url;
        self
    }
}

/// Credentials in a file that only the user can read, by server.
#[derive(Debug, Clone)]
pub struct CredentialFile {
    /// The file; `None` keeps credentials in memory for the life of the process.
    file: Option<AbsPath>,
    /// Locked while the file is changed; the only store where there is no file.
    known: Arc<Mutex<BTreeMap<String, StoredCredentials>>>,
}

impl CredentialFile {
    /// Keeps credentials in this file, or in memory where there is no place for one.
    pub fn new(file: Option<AbsPath>) -> Self {
        Self { file, known: Arc::default() }
    }

    /// Narrows the file to one server, as the library's credential store expects.
    fn for_server(&self, url: &str) -> ServerCredentials {
        ServerCredentials { store: self.clone(), url: url.to_owned() }
    }

    /// Runs a change on the credentials under the file lock, and writes the file if the change reports `true`.
    ///
    /// A damaged file is an error: treating it as empty would overwrite the credentials of every other server.
    async fn with_credentials<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, StoredCredentials>) -> (T, bool),
    ) -> Result<T, AuthError> {
        let failed = |problem: String| AuthError::CredentialStoreError(problem);
        let mut known = self.known.lock().await;
        // Other processes sign in as well, so the file is held from reading it to writing it.
        let mut lock = None;
        if let Some(file) = &self.file {
            let named = |problem: String| failed(format!("{file}: {problem}"));
            lock = Some(lock_state_file(file).map_err(|problem| named(problem.to_string()))?);
            let text = read_settings_text(file, MAX_CREDENTIAL_FILE_BYTES)
                .map_err(|problem| named(problem.to_string()))?;
            *known = match text {
                Some(text) => serde_json::from_str(&text).map_err(|error| {
                    named(format!(
                        "the file is damaged: {error}; repair it, or move it away and sign in again"
                    ))
                })?,
                None => BTreeMap::new(),
            };
        }
        let (out, changed) = change(&mut known);
        if let (Some(file), true) = (&self.file, changed) {
            let text = serde_json::to_string_pretty(&*known).map_err(|error| failed(error.to_string()))?;
            write_private_file(file, text.as_bytes())
                .map_err(|problem| failed(format!("{file}: {problem}")))?;
        }
        drop(lock);
        Ok(out)
    }
}

/// The credentials of one server.
struct ServerCredentials {
    /// The file that all servers share.
    store: CredentialFile,
    /// The key of the server in the file.
    url: String,
}

#[async_trait::async_trait]
impl CredentialStore for ServerCredentials {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.store.with_credentials(|known| (known.get(&self.url).cloned(), false)).await
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.store.with_credentials(|known| (drop(known.insert(self.url.clone(), credentials)), true)).await
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.with_credentials(|known| (drop(known.remove(&self.url)), true)).await
    }
}

/// An authorization challenge of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthChallenge {
    /// No or invalid credentials.
    SignIn(String),
    /// Valid credentials without a scope that it requires.
    Scope { header: String, scope: Option<String> },
}

impl AuthChallenge {
    /// Finds it in what came of a request.
    pub(crate) fn from_service_error(error: &ServiceError) -> Option<Self> {
        match error {
            ServiceError::TransportSend(error) => Self::from_error_chain(error.error.as_ref()),
            _ => None,
        }
    }

    /// Finds it among the causes of an error.
    pub(crate) fn from_error_chain(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
                return Some(Self::SignIn(required.www_authenticate_header.clone()));
            }
            if let Some(scope) = error.downcast_ref::<InsufficientScopeError>() {
                let header = scope.www_authenticate_header.clone();
                return Some(Self::Scope { header, scope: scope.required_scope.clone() });
            }
            if let Some(AuthError::AuthorizationRequired) = error.downcast_ref::<AuthError>() {
                return Some(Self::SignIn(String::new()));
            }
            next = error.source();
        }
        None
    }
}

/// How often a server may send a challenge before a request succeeds.
const MAX_SIGN_IN_ATTEMPTS: u32 = 3;

/// Counts challenges since the last request that succeeded: a server that is never satisfied
/// must not make the user sign in for ever.
#[derive(Debug, Default)]
pub(crate) struct SignInAttempts(AtomicU32);

impl SignInAttempts {
    /// One more, if that is not too many.
    pub(crate) fn count_attempt(&self) -> Result<(), String> {
        if self.0.fetch_add(1, Ordering::Relaxed) < MAX_SIGN_IN_ATTEMPTS {
            return Ok(());
        }
        Err(format!("it was not content after signing in {MAX_SIGN_IN_ATTEMPTS} times"))
    }

    /// A request succeeded.
    pub(crate) fn reset_attempts(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A client with the credentials that are kept for a server, if there are any.
pub(crate) async fn load_stored_client(url: &str, store: &CredentialFile) -> Option<AuthClient<HttpClient>> {
    let held = store.for_server(url);
    held.load().await.ok().flatten()?;
    let mut manager = AuthorizationManager::new(url).await.ok()?;
    manager.set_credential_store(held);
    if !manager.initialize_from_store().await.ok()? {
        return None;
    }
    Some(AuthClient::new(http_client().ok()?, manager))
}

/// Signs in from the start.
pub(crate) async fn sign_in(
    url: &str,
    challenge: Option<&str>,
    hints: &OauthHints,
    how: &SignInOptions,
    store: &CredentialFile,
) -> Result<AuthClient<HttpClient>, String> {
    let said = |error: AuthError| error.to_string();
    let client = http_client()?;
    let mut manager = AuthorizationManager::new(url).await.map_err(said)?;
    // What an earlier issuer gave must not be shown to another.
    let held = store.for_server(url);
    held.clear().await.map_err(said)?;
    manager.set_credential_store(held);
    let mut state = OAuthState::Unauthorized(manager);
    let mut request = AuthorizationRequest::new(how.browser.redirect_uri())
        .with_client_name("toolgate")
        .with_initial_scope_selection();
    if let Some(challenge) = challenge.filter(|challenge| !challenge.is_empty()) {
        request = request.with_challenge(challenge);
    }
    if !hints.scopes.is_empty() {
        request = request.with_scopes(hints.scopes.clone());
    }
    if let Some(id) = &hints.client_id {
        request = request.with_preregistered_client(id);
    }
    if let Some(secret) = &hints.client_secret {
        request = request.with_client_secret(secret);
    }
    if let Some(document) = &how.client_metadata_url {
        request = request.with_client_metadata_url(document);
    }
    state.start_authorization(request).await.map_err(said)?;
    let page = state.get_authorization_url().await.map_err(said)?;
    let back = how.browser.visit(&page).await?;
    state.handle_callback_url(&back).await.map_err(said)?;
    let manager = state.into_authorization_manager().ok_or("the sign-in did not end")?;
    Ok(AuthClient::new(client, manager))
}

/// Asks for one more permission, beside those that were given.
pub(crate) async fn step_up(
    manager: &AuthManagerHandle,
    scope: &str,
    how: &SignInOptions,
) -> Result<(), String> {
    let said = |error: AuthError| error.to_string();
    let manager = manager.lock().await;
    let page = manager.request_scope_upgrade(scope).await.map_err(said)?;
    let back = how.browser.visit(&page).await?;
    let back = AuthorizationCallback::from_redirect_url(&back).map_err(said)?;
    manager
        .exchange_code_for_token_with_issuer(&back.code, &back.csrf_token, back.issuer.as_deref())
        .await
        .map_err(said)?;
    Ok(())
}

/// The user's browser: the URL is printed, and a loopback listener waits for the redirect.
pub struct OauthCallbackListener {
    /// The loopback socket; opened before the page is shown, so that the redirect cannot come too early.
    listener: tokio::net::TcpListener,
    /// The bound port, which differs from the requested one if that was 0.
    port: u16,
    /// The callback that shows the sign-in URL to the user.
    show_url: Box<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for OauthCallbackListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback").field("port", &self.port).finish_non_exhaustive()
    }
}

impl OauthCallbackListener {
    /// Opens the loopback listener. `tell` shows the URL of the page to the user.
    pub async fn open(port: u16, tell: impl Fn(&str) + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = toolgate_net::listen_tcp(([127, 0, 0, 1], port).into()).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port, show_url: Box::new(tell) })
    }
}

impl SignInBrowser for OauthCallbackListener {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    fn visit<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            (self.show_url)(url);
            loop {
                let (mut stream, _) = self.listener.accept().await.map_err(|error| error.to_string())?;
                let mut head = vec![0; 16 * 1024];
                let read = stream.read(&mut head).await.unwrap_or(0);
                head.truncate(read);
                let head = String::from_utf8_lossy(&head).into_owned();
                let target = head.strip_prefix("GET ").and_then(|rest| rest.split_whitespace().next());
                let found = target.filter(|target| target.starts_with("/callback?"));
                let (status, text) = match found {
                    Some(_) => ("200 OK", "You can close this page and go back to toolgate.\n"),
                    None => ("404 Not Found", "There is nothing here.\n"),
                };
                let reply = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                    text.len()
                );
                // The answer counts, not whether the page could be shown.
                let _ = stream.write_all(reply.as_bytes()).await;
                if let Some(target) = found {
                    return Ok(format!("http://127.0.0.1:{}{target}", self.port));
                }
            }
        })
    }
}
