//! HTTP requests to model providers: one POST, and an answer that is read piece by piece.
//!
//! Retries, timeouts between pieces and the meaning of a status are for the caller: this file only carries bytes.
//! No redirect is followed, because the request has a key in its headers.

use crate::http_client::install_tls_provider;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long to wait for a TCP and TLS connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How much of the body of an error is read.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// A client for model providers. Clones share its connections.
#[derive(Clone)]
pub struct ModelHttpClient {
    client: reqwest::Client,
}

/// One request.
#[derive(Clone)]
pub struct ModelHttpRequest {
    /// The address.
    pub url: String,
    /// The headers, the one with the key among them.
    pub headers: Vec<(String, String)>,
    /// The JSON body.
    pub body: Vec<u8>,
}

/// The start of an answer; the body follows by [`ModelHttpResponse::next_chunk`].
pub struct ModelHttpResponse {
    /// The status code.
    pub status: u16,
    /// The headers, names in lower case; those that are not text are left out.
    pub headers: BTreeMap<String, String>,
    response: reqwest::Response,
}

/// Why there is no answer, or no more of it. Never contains the address or a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelHttpError {
    /// The request could not be built: an invalid address or header. Nothing was sent.
    Invalid(String),
    /// The certificate of the server was refused. Another attempt would end the same way.
    Certificate(String),
    /// The connection was refused: no server listens at the address.
    NotListening,
    /// The server was not reached, or the connection broke.
    Broken(String),
}

impl fmt::Display for ModelHttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(f, "the request is invalid: {why}"),
            Self::Certificate(why) => write!(f, "the certificate of the model server was refused: {why}"),
            Self::NotListening => f.write_str(
                "no model server listens at the configured address (connection refused); start it, or correct the base URL",
            ),
            Self::Broken(why) => write!(f, "the connection to the model server failed: {why}"),
        }
    }
}

impl std::error::Error for ModelHttpError {}

impl ModelHttpClient {
    /// A client. `is_local` is for servers on this machine, which no proxy of the environment may get.
    pub fn new(is_local: bool) -> Result<Self, ModelHttpError> {
        install_tls_provider();
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true);
        if is_local {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ModelHttpError::Invalid(describe_error(&error)))?;
        Ok(Self { client })
    }

    /// Sends a request and waits for the headers of the answer.
    pub async fn post(&self, request: ModelHttpRequest) -> Result<ModelHttpResponse, ModelHttpError> {
        let mut builder = self.client.post(&request.url).header("content-type", "application/json");
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let response = builder.body(request.body).send().await.map_err(to_model_error)?;
        let headers = response.headers().iter().filter_map(|(name, value)| {
            Some((name.as_str().to_ascii_lowercase(), value.to_str().ok()?.to_owned()))
        });
        Ok(ModelHttpResponse { status: response.status().as_u16(), headers: headers.collect(), response })
    }
}

impl ModelHttpResponse {
    /// The next piece of the body, as it arrived; `None` at its end.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, ModelHttpError> {
        match self.response.chunk().await {
            Ok(chunk) => Ok(chunk.map(|bytes| bytes.to_vec())),
            Err(error) => Err(to_model_error(error)),
        }
    }

    /// The start of the body as text, for a message about an error.
    pub async fn read_error_text(mut self) -> String {
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY_BYTES {
            match self.next_chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) | Err(_) => break,
            }
        }
        body.truncate(MAX_ERROR_BODY_BYTES);
        String::from_utf8_lossy(&body).into_owned()
    }
}

/// The error without the address, which may contain a key.
fn to_model_error(error: reqwest::Error) -> ModelHttpError {
    let error = error.without_url();
    let text = describe_error(&error);
    if error.is_builder() {
        ModelHttpError::Invalid(text)
    } else if text.to_ascii_lowercase().contains("certificate") {
        ModelHttpError::Certificate(text)
    } else if error.is_connect() && is_refused(&error) {
        ModelHttpError::NotListening
    } else {
        ModelHttpError::Broken(text)
    }
}

/// Whether one of the causes is a refused connection.
fn is_refused(error: &dyn std::error::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::ConnectionRefused;
        }
        source = cause.source();
    }
    false
}

/// The innermost cause says most: the outer ones say that there was an error.
fn describe_error(error: &dyn std::error::Error) -> String {
    let mut last = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        last = cause.to_string();
        source = cause.source();
    }
    last
}
