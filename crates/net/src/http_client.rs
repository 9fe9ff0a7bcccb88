//! A client for HTTP, for those who must hand one to a library.

use std::sync::Once;
use std::time::Duration;

/// The client that libraries take.
pub type HttpClient = reqwest::Client;

static PROVIDER: Once = Once::new();

/// A client that follows no redirects: a redirect could lead a request with its headers to somebody else.
pub fn http_client() -> Result<HttpClient, String> {
    PROVIDER.call_once(|| {
        // An error means that the embedding program has chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .build()
        .map_err(|error| error.to_string())
}
