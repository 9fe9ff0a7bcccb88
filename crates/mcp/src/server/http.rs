//! Serving over HTTP: the same server, with checks of host, origin and token.
//!
//! A local port can be reached by every page in the user's browser and by every user of the machine.
//! So `Host` and `Origin` are checked, TCP requires a token, and rate and size are limited.
//! A Unix socket is guarded by its file mode instead.

use super::{GateServer, ProtocolHandler};
use crate::line_transport::parse_raw_arguments;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_gate::ledger::sha256_hex;
use toolgate_proto::address::LOOPBACK_HOSTS;

/// Where to listen.
#[derive(Debug)]
pub enum HttpListener {
    /// A TCP port.
    Tcp(tokio::net::TcpListener),
    /// A Unix socket.
    Unix(tokio::net::UnixListener),
}

/// Which requests are accepted, and how many.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The path of the endpoint.
    pub path: String,
    /// Hosts that requests may be addressed to; loopback only where empty.
    pub hosts: Vec<String>,
    /// Origins that pages may have; none where empty.
    pub origins: Vec<String>,
    /// The bearer token that every request must carry.
    pub token: Option<String>,
    /// Most bytes of a request.
    pub max_request_bytes: usize,
    /// Most requests at once.
    pub max_concurrent_requests: usize,
    /// Most requests in a second, and as many saved up.
    pub max_requests_per_second: u32,
    /// Ends the serving.
    pub cancel: CancellationToken,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            token: None,
            max_request_bytes: 16 * 1024 * 1024,
            max_concurrent_requests: 256,
            max_requests_per_second: 2_000,
            cancel: CancellationToken::new(),
        }
    }
}

/// How long the headers of a request may take.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);

impl HttpOptions {
    /// Sets the path of the endpoint.
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the hosts that requests may be addressed to.
    pub fn with_hosts(mut self, hosts: Vec<String>) -> Self {
        self.hosts = hosts;
        self
    }

    /// Sets the origins that pages may have.
    pub fn with_origins(mut self, origins: Vec<String>) -> Self {
        self.origins = origins;
        self
    }

    /// Requires this bearer token of every request.
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets the limit on the size of a request.
    pub fn with_max_request_bytes(mut self, max_request_bytes: usize) -> Self {
        self.max_request_bytes = max_request_bytes;
        self
    }

    /// Sets the limit on requests at once.
    pub fn with_max_concurrent_requests(mut self, max_concurrent_requests: usize) -> Self {
        self.max_concurrent_requests = max_concurrent_requests;
        self
    }

    /// Sets the limit on the rate of requests.
    pub fn with_max_requests_per_second(mut self, max_requests_per_second: u32) -> Self {
        self.max_requests_per_second = max_requests_per_second;
        self
    }

    /// Sets the token that ends the serving.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }
}

/// The response body, of the type that the library's HTTP service uses.
type HttpServerBody = BoxBody<Bytes, Infallible>;

/// Serves until cancelled.
pub async fn serve_http(server: GateServer, listener: HttpListener, options: HttpOptions) -> io::Result<()> {
    let mut config = StreamableHttpServerConfig::default()
        .with_cancellation_token(options.cancel.child_token())
        .with_max_request_body_bytes(options.max_request_bytes)
        .enforce_origin_validation();
    match &listener {
        HttpListener::Tcp(_) if options.hosts.is_empty() => {}
        HttpListener::Tcp(_) => config = config.with_allowed_hosts(options.hosts.clone()),
        // The file mode lets only this user connect; the `Host` header is arbitrary here.
        HttpListener::Unix(_) => config = config.disable_allowed_hosts(),
    }
    let mut origins = options.origins.clone();
    if let HttpListener::Tcp(listener) = &listener {
        // A page served from this address has this origin; other pages do not.
        let port = listener.local_addr()?.port();
        origins.extend(LOOPBACK_HOSTS.map(|host| {
            if host.contains(':') {
                format!("http://[{host}]:{port}")
            } else {
                format!("http://{host}:{port}")
            }
        }));
    }
    config = config.with_allowed_origins(origins);
    let cancel = options.cancel.clone();
    let guard = Arc::new(HttpRequestGuard {
        service: StreamableHttpService::new(
            move || Ok(ProtocolHandler(server.clone())),
            Arc::new(LocalSessionManager::default()),
            config,
        ),
        token: options.token.as_deref().map(|token| sha256_hex(token.as_bytes())),
        request_slots: Arc::new(Semaphore::new(options.max_concurrent_requests)),
        bucket: Mutex::new(TokenBucket {
            left: f64::from(options.max_requests_per_second),
            at: Instant::now(),
        }),
        options,
    });
    loop {
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            accepted = accept(&listener) => {
                let stream = match accepted {
                    Ok(stream) => stream,
                    Err(error) => {
                        // A connection that was reset before it was accepted is no reason to stop; being out of file descriptors is
                        // no reason to spin.
                        tracing::debug!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                };
                let guard = Arc::clone(&guard);
                let cancel = cancel.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = serve_connection(stream, guard) => {}
                        () = cancel.cancelled() => {}
                    }
                });
            }
        }
    }
}

/// Answers the requests of one connection until it ends. How it ends does not matter to the server.
async fn serve_connection(stream: Box<dyn HttpServerStream>, guard: Arc<HttpRequestGuard>) {
    let service = hyper::service::service_fn(move |request| {
        let guard = Arc::clone(&guard);
        async move { Ok::<_, Infallible>(guard.handle_request(request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(hyper_util::rt::TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

/// A connection of either listener, so that one function serves both.
trait HttpServerStream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> HttpServerStream for T {}

/// Accepts one connection, boxed so that the caller does not depend on the kind of listener.
async fn accept(listener: &HttpListener) -> io::Result<Box<dyn HttpServerStream>> {
    match listener {
        HttpListener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            // Replies are small and awaited; they must not wait for more to come.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream))
        }
        HttpListener::Unix(listener) => {
            listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn HttpServerStream>)
        }
    }
}

/// The checks in front of the protocol service, shared by all connections.
struct HttpRequestGuard {
    /// The protocol service, which checks `Host` and `Origin`.
    service: StreamableHttpService<ProtocolHandler, LocalSessionManager>,
    /// Digest of the token: comparing digests gives away nothing about how much of it was right.
    token: Option<String>,
    /// The limit on concurrent requests; a request beyond it is refused instead of queued.
    request_slots: Arc<Semaphore>,
    /// The rate limit over all clients.
    bucket: Mutex<TokenBucket>,
    /// The limits and the path of the endpoint.
    options: HttpOptions,
}

/// A token bucket whose capacity is one second of requests.
struct TokenBucket {
    /// The tokens left; fractional, because the refill is proportional to time.
    left: f64,
    /// The time of the last refill.
    at: Instant,
}

impl HttpRequestGuard {
    /// Checks path, token, rate, concurrency and size before the request reaches the protocol service.
    async fn handle_request(&self, request: Request<Incoming>) -> Response<HttpServerBody> {
        if request.uri().path() != self.options.path {
            return text_response(StatusCode::NOT_FOUND, "there is nothing here");
        }
        if !self.is_authorized(request.headers()) {
            let mut response = text_response(StatusCode::UNAUTHORIZED, "a bearer token is wanted");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            return response;
        }
        if !self.try_take_token() {
            return text_response(StatusCode::TOO_MANY_REQUESTS, "too many requests; wait a second");
        }
        let Ok(_place) = self.request_slots.try_acquire() else {
            return text_response(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once; try again");
        };
        let (mut parts, body) = request.into_parts();
        let body = match Limited::new(body, self.options.max_request_bytes).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                return text_response(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
            }
            Err(_) => return text_response(StatusCode::BAD_REQUEST, "the request broke off"),
        };
        if parts.method == Method::POST
            && let Some(problem) = attach_raw_arguments(&body, &mut parts)
        {
            return text_response(StatusCode::BAD_REQUEST, &problem);
        }
        self.service.handle(Request::from_parts(parts, Full::new(body))).await
    }

    /// Checks the bearer token; always true if none is configured.
    fn is_authorized(&self, headers: &http::HeaderMap) -> bool {
        let Some(wanted) = &self.token else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given
            .and_then(|given| given.split_once(' '))
            .filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
        token.is_some_and(|(_, token)| sha256_hex(token.trim().as_bytes()) == *wanted)
    }

    /// Refills the bucket and takes one token; false if the rate limit is exceeded.
    fn try_take_token(&self) -> bool {
        let most = f64::from(self.options.max_requests_per_second);
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        bucket.left = (bucket.left + now.duration_since(bucket.at).as_secs_f64() * most).min(most);
        bucket.at = now;
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }
}

/// Keeps the arguments of a call as they arrived, for the gate to read. Says what is wrong where they can be read two
/// ways.
fn attach_raw_arguments(body: &[u8], parts: &mut http::request::Parts) -> Option<String> {
    /// The only field that decides whether a body is a call.
    #[derive(serde::Deserialize)]
    struct JsonRpcMethod<'a> {
        #[serde(borrow)]
        method: Option<std::borrow::Cow<'a, str>>,
    }
    let method = serde_json::from_slice::<JsonRpcMethod<'_>>(body).ok()?.method?;
    if method != "tools/call" {
        return None;
    }
    match parse_raw_arguments(body) {
        Ok(raw) => {
            parts.extensions.insert(raw);
            None
        }
        // What is malformed in other ways is answered by the protocol.
        Err(problem) if problem.contains("duplicate field") => Some(problem),
        Err(_) => None,
    }
}

/// Builds a plain-text response, for requests that end before the protocol.
fn text_response(status: StatusCode, text: &str) -> Response<HttpServerBody> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{text}\n"))).boxed());
    *response.status_mut() = status;
    response
}
