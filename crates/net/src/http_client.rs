//! The HTTP client for MCP servers, which the MCP library takes as an argument.

use std::sync::Once;
use std::time::Duration;

/// The client type of the MCP library, so that other crates need not depend on reqwest.
pub type HttpClient = reqwest::Client;

/// How long to wait for a TCP and TLS connection. The response itself has no timeout here: streams stay open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Installs the TLS provider once per process.
static TLS_PROVIDER: Once = Once::new();

/// Creates a client that follows no redirects: a redirect would send the request, with its authorization headers, to a host
/// that the settings do not name.
pub fn http_client() -> Result<HttpClient, String> {
    install_tls_provider();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| error.to_string())
}

/// Installs the TLS provider for every client of this process.
pub(crate) fn install_tls_provider() {
    TLS_PROVIDER.call_once(|| {
        // An error means that the embedding program has already installed one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
