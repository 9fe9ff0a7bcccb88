//! The client itself: one exchange at a time, and the loop that follows redirects.

use super::decode_body::ContentCoding;
use super::dial::{DialTarget, dial};
use super::fetch_error::FetchError;
use super::host_pace::HostPace;
use super::name_resolver::{NameResolver, SystemResolver};
use super::page_cache::{CACHE_TIMEOUT, PageCache};
use super::proxy_table::ProxyTable;
use super::read_body::{ReadBody, read_body};
use super::robots::RobotsFile;
use super::web_page::{FetchedHop, WebPage};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use toolgate_proto::host_pattern::{Host, host_address, parse_host};
use url::Url;

/// The most headers of a response.
const MAX_HEADERS: usize = 200;
/// The most bytes of the headers of a response.
const MAX_HEADER_BYTES: usize = 256 * 1024;
/// A body is refused at once if it is announced with more than this many times the limit; below that it is cut.
const MAX_STATED_FACTOR: u64 = 10;
/// The longest wait for a host's next turn; beyond it the fetch fails.
const MAX_PACE_WAIT: Duration = Duration::from_secs(5);
/// The most bytes of a `robots.txt` that are read.
const MAX_ROBOTS_BYTES: usize = 500 * 1024;

/// The limits of one fetch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebLimits {
    /// Bytes of the body after decompression; the rest is cut.
    pub body_bytes: usize,
    /// Bytes of the body on the wire; the rest is cut.
    pub wire_bytes: u64,
    /// Time for name resolution, and again for connecting.
    pub connect: Duration,
    /// Time between two parts of the body.
    pub idle: Duration,
    /// Time for everything together.
    pub total: Duration,
    /// The most redirects.
    pub redirects: usize,
}

impl Default for WebLimits {
    fn default() -> Self {
        Self {
            body_bytes: 5_000_000,
            wire_bytes: 10_000_000,
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(10),
            total: Duration::from_secs(30),
            redirects: 5,
        }
    }
}

/// What a judge says about a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectVerdict {
    /// It stays at the same host: follow it, to this absolute URL.
    Follow(String),
    /// It leads to another host: do not follow it, but report this absolute URL.
    Report(String),
    /// It is refused; the reason.
    Refuse(String),
}

/// Decides about every hop of a fetch. The first URL was allowed before the fetch began.
pub trait HopJudge: Send + Sync {
    /// Judges a redirect by its text, before anything is resolved.
    fn check_redirect(&self, from: &str, location: &str) -> RedirectVerdict;

    /// Judges the addresses of a URL's host: all of them, because any of them could be connected to. An error is the reason.
    fn check_addresses(&self, url: &str, addresses: &[IpAddr]) -> Result<(), String>;
}

/// What a client is made of.
#[non_exhaustive]
pub struct WebClientConfig {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The proxies.
    pub proxies: ProxyTable,
    /// The resolver of names.
    pub resolver: Arc<dyn NameResolver>,
    /// Requests per minute to one host that is not this machine; 0 is no limit.
    pub requests_per_minute: u32,
}

impl Default for WebClientConfig {
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self {
            user_agent: format!("toolgate/{version} (+{})", env!("CARGO_PKG_REPOSITORY")),
            proxies: ProxyTable::default(),
            resolver: Arc::new(SystemResolver),
            requests_per_minute: 30,
        }
    }
}

/// How a page is fetched.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FetchOptions {
    /// The limits.
    pub limits: WebLimits,
    /// The `Accept` header.
    pub accept: Option<String>,
    /// Ask the site's `robots.txt` first.
    pub obey_robots: bool,
}

/// The end of a fetch that did not fail.
#[derive(Debug, Clone)]
pub enum FetchOutcome {
    /// A response, whatever its status.
    Page(Arc<WebPage>),
    /// The server redirects to another host, which was not asked.
    OtherHost {
        /// The URL that redirects.
        from: String,
        /// Where to.
        to: String,
        /// The status code.
        status: u16,
    },
}

/// One request that is not followed anywhere: a query of a service.
#[derive(Clone)]
#[non_exhaustive]
pub struct WebRequest {
    /// The URL.
    pub url: String,
    /// Further headers, credentials among them. They are sent to this URL's host and no other.
    pub headers: Vec<(String, String)>,
    /// The content type and the body; with one the request is a POST.
    pub body: Option<(String, Vec<u8>)>,
}

impl WebRequest {
    /// A GET request.
    pub fn get(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), body: None }
    }

    /// A POST request.
    pub fn post(url: impl Into<String>, content_type: &str, body: Vec<u8>) -> Self {
        Self { url: url.into(), headers: Vec::new(), body: Some((content_type.to_owned(), body)) }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// The response to a [`WebRequest`].
#[derive(Debug, Clone)]
pub struct WebResponse {
    /// The status code.
    pub status: u16,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// The body was cut at the limit.
    pub is_cut: bool,
}

/// A URL with its parsed host.
pub(super) struct WebPlace {
    /// The URL.
    pub(super) url: Url,
    /// Its host, as rules compare it.
    pub(super) host: Host<String>,
    /// The port to connect to.
    pub(super) port: u16,
}

impl WebPlace {
    /// Parses a URL of the web; an error is the reason why it cannot be fetched.
    pub(super) fn parse(text: &str) -> Result<Self, FetchError> {
        let invalid = |problem: String| FetchError::InvalidUrl(problem);
        let url = Url::parse(text).map_err(|error| invalid(format!("the URL is not valid: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format!("scheme `{}` is not supported; use http or https", url.scheme())));
        }
        let host = url.host_str().and_then(|host| parse_host(host.trim_matches(['[', ']'])));
        let host = host.ok_or_else(|| invalid("the URL has no valid host".to_owned()))?;
        let port = url.port_or_known_default().unwrap_or(0);
        Ok(Self { url, host, port })
    }

    /// The `Host` header.
    pub(super) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }

    /// Path and query.
    pub(super) fn target(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

type ProgressFn<'a> = &'a (dyn Fn(u64) + Send + Sync);

/// The web client of a session.
pub struct WebClient {
    /// What it is made of.
    pub(super) config: WebClientConfig,
    /// The pages of the last minutes.
    cache: PageCache,
    /// The limit on requests per host.
    pace: Mutex<HostPace>,
    /// The rules of sites, by origin.
    robots: Mutex<HashMap<String, (RobotsFile, Instant)>>,
}

impl std::fmt::Debug for WebClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebClient").field("user_agent", &self.config.user_agent).finish_non_exhaustive()
    }
}

impl Default for WebClient {
    fn default() -> Self {
        Self::new(WebClientConfig::default())
    }
}

impl WebClient {
    /// A client with an empty cache.
    pub fn new(config: WebClientConfig) -> Self {
        let pace = Mutex::new(HostPace::new(config.requests_per_minute));
        Self { config, cache: PageCache::default(), pace, robots: Mutex::default() }
    }

    /// A page of the last minutes, judged as if it were fetched now.
    pub fn cached(&self, url: &str, judge: &dyn HopJudge) -> Option<Result<Arc<WebPage>, FetchError>> {
        let page = self.cache.find(url)?;
        let mut before: Option<&FetchedHop> = None;
        for hop in &page.hops {
            let verdict = before.map(|before| judge.check_redirect(&before.url, &hop.url));
            if let Some(RedirectVerdict::Refuse(reason) | RedirectVerdict::Report(reason)) = verdict {
                return Some(Err(FetchError::Refused(reason)));
            }
            if let Err(reason) = judge.check_addresses(&hop.url, &hop.addresses) {
                return Some(Err(FetchError::Refused(reason)));
            }
            before = Some(hop);
        }
        Some(Ok(page))
    }

    /// Fetches a page and follows redirects as the judge says. Dropping the future closes the connection.
    pub async fn fetch(
        &self,
        url: &str,
        options: &FetchOptions,
        judge: &dyn HopJudge,
        progress: ProgressFn<'_>,
    ) -> Result<FetchOutcome, FetchError> {
        let total = options.limits.total;
        let followed = async {
            if options.obey_robots {
                self.check_robots(url, options, judge).await?;
            }
            self.follow(url, options, judge, progress).await
        };
        let outcome = tokio::time::timeout(total, followed).await;
        let outcome =
            outcome.unwrap_or(Err(FetchError::TimedOut { what: "the whole page", after: total }))?;
        if let FetchOutcome::Page(page) = &outcome {
            self.cache.store(url, page);
        }
        Ok(outcome)
    }

    /// Makes one request after another until a page, a redirect elsewhere or a refusal.
    async fn follow(
        &self,
        url: &str,
        options: &FetchOptions,
        judge: &dyn HopJudge,
        progress: ProgressFn<'_>,
    ) -> Result<FetchOutcome, FetchError> {
        let mut hops: Vec<FetchedHop> = Vec::new();
        let mut next = url.to_owned();
        loop {
            let place = WebPlace::parse(&next)?;
            let addresses = self.vet(&place, judge, &options.limits).await?;
            if hops.is_empty() {
                self.wait_for_turn(&place, &addresses).await?;
            }
            let mut request = WebRequest::get(next.clone());
            if let Some(accept) = &options.accept {
                request = request.header("accept", accept.clone());
            }
            let mut exchange = self.send(&place, &addresses, request, &options.limits).await?;
            hops.push(FetchedHop { url: place.url.to_string(), addresses });
            let status = exchange.response.status().as_u16();
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                let page = read_page(hops, exchange, &options.limits, progress).await?;
                return Ok(FetchOutcome::Page(Arc::new(page)));
            }
            let location = exchange.response.headers_mut().remove("location");
            let location = location.ok_or(FetchError::RedirectWithoutTarget(status))?;
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            match judge.check_redirect(place.url.as_str(), &location) {
                RedirectVerdict::Follow(_) if hops.len() > options.limits.redirects => {
                    return Err(FetchError::TooManyRedirects(options.limits.redirects));
                }
                RedirectVerdict::Follow(absolute) => next = absolute,
                RedirectVerdict::Report(to) => {
                    return Ok(FetchOutcome::OtherHost { from: place.url.to_string(), to, status });
                }
                RedirectVerdict::Refuse(reason) => return Err(FetchError::Refused(reason)),
            }
        }
    }

    /// Sends one request and reads the response, without following it anywhere.
    pub async fn exchange(
        &self,
        request: WebRequest,
        limits: &WebLimits,
        judge: &dyn HopJudge,
    ) -> Result<WebResponse, FetchError> {
        let exchanged = async {
            let place = WebPlace::parse(&request.url)?;
            let addresses = self.vet(&place, judge, limits).await?;
            let exchange = self.send(&place, &addresses, request, limits).await?;
            let status = exchange.response.status().as_u16();
            let retry_after = header_text(exchange.response.headers(), "retry-after");
            let body = exchange.read(limits, &|_| ()).await?;
            Ok(WebResponse { status, retry_after, body: body.bytes, is_cut: body.is_cut })
        };
        let outcome = tokio::time::timeout(limits.total, exchanged).await;
        outcome.unwrap_or(Err(FetchError::TimedOut { what: "the answer", after: limits.total }))
    }

    /// Resolves a host once and has every address judged.
    pub(super) async fn vet(
        &self,
        place: &WebPlace,
        judge: &dyn HopJudge,
        limits: &WebLimits,
    ) -> Result<Vec<IpAddr>, FetchError> {
        let addresses = match host_address(&place.host) {
            Some(address) => vec![address],
            None => {
                let host = place.host.to_string();
                let unresolved = |problem: String| FetchError::Unresolved { host: host.clone(), problem };
                tokio::time::timeout(limits.connect, self.config.resolver.resolve(&host))
                    .await
                    .map_err(|_| FetchError::TimedOut { what: "name resolution", after: limits.connect })?
                    .map_err(unresolved)?
            }
        };
        if addresses.is_empty() {
            let host = place.host.to_string();
            return Err(FetchError::Unresolved { host, problem: "it has no address".to_owned() });
        }
        judge.check_addresses(place.url.as_str(), &addresses).map_err(FetchError::Refused)?;
        Ok(addresses)
    }

    /// Waits for the host's turn, if that is soon. This machine's own servers need no such care.
    pub(super) async fn wait_for_turn(
        &self,
        place: &WebPlace,
        addresses: &[IpAddr],
    ) -> Result<(), FetchError> {
        if addresses.iter().all(IpAddr::is_loopback) {
            return Ok(());
        }
        let host = place.host.to_string();
        let take = || self.pace.lock().unwrap_or_else(PoisonError::into_inner).take(&host, Instant::now());
        for _ in 0..3 {
            match take() {
                Ok(()) => return Ok(()),
                Err(wait) if wait > MAX_PACE_WAIT => return Err(FetchError::Paced { host, wait }),
                Err(wait) => tokio::time::sleep(wait).await,
            }
        }
        take().map_err(|wait| FetchError::Paced { host, wait })
    }

    /// Refuses a URL that the site's `robots.txt` forbids, for one that is fetched by other means, such as a browser. The
    /// page itself is not fetched.
    pub async fn ask_robots(
        &self,
        url: &str,
        options: &FetchOptions,
        judge: &dyn HopJudge,
    ) -> Result<(), FetchError> {
        let total = options.limits.total;
        let checked = tokio::time::timeout(total, self.check_robots(url, options, judge)).await;
        checked.unwrap_or(Err(FetchError::TimedOut { what: "the site's robots.txt", after: total }))
    }

    /// Refuses a URL that the site's `robots.txt` forbids. The file is kept as long as a page.
    async fn check_robots(
        &self,
        url: &str,
        options: &FetchOptions,
        judge: &dyn HopJudge,
    ) -> Result<(), FetchError> {
        let place = WebPlace::parse(url)?;
        let origin = format!("{}://{}", place.url.scheme(), place.authority());
        let known = {
            let robots = self.robots.lock().unwrap_or_else(PoisonError::into_inner);
            robots.get(&origin).filter(|(_, at)| at.elapsed() < CACHE_TIMEOUT).map(|(file, _)| file.clone())
        };
        let file = match known {
            Some(file) => file,
            None => {
                let mut options = options.clone();
                options.limits.body_bytes = MAX_ROBOTS_BYTES;
                options.accept = Some("text/plain, */*;q=0.5".to_owned());
                let fetched = self.follow(&format!("{origin}/robots.txt"), &options, judge, &|_| ()).await?;
                let file = read_robots(&fetched, &self.config.user_agent);
                let mut robots = self.robots.lock().unwrap_or_else(PoisonError::into_inner);
                robots.retain(|_, (_, at)| at.elapsed() < CACHE_TIMEOUT);
                robots.insert(origin, (file.clone(), Instant::now()));
                file
            }
        };
        if file.allows(&place.target()) { Ok(()) } else { Err(FetchError::Robots(place.url.to_string())) }
    }

    /// Connects to a vetted address and sends one request.
    async fn send(
        &self,
        place: &WebPlace,
        addresses: &[IpAddr],
        request: WebRequest,
        limits: &WebLimits,
    ) -> Result<WebExchange, FetchError> {
        let request = self.build_request(place, request)?;
        let target = DialTarget {
            host: &place.host,
            port: place.port,
            is_encrypted: place.url.scheme() == "https",
            addresses,
            proxy: self.config.proxies.find(place.url.scheme(), &place.host, addresses),
        };
        let stream = dial(&target, limits.connect).await?;
        let broken = |error: hyper::Error| match (error.is_parse(), error.is_parse_too_large()) {
            (_, true) => FetchError::Protocol("the headers are too large".to_owned()),
            (true, false) => FetchError::Protocol(error.to_string()),
            (false, false) => FetchError::Unreachable { host: place.authority(), problem: error.to_string() },
        };
        let mut builder = http1::Builder::new();
        builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEADER_BYTES);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // Dropped with the exchange, which ends the task and closes the connection.
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            let _ = connection.await;
        });
        let response = sender.send_request(request).await.map_err(broken)?;
        Ok(WebExchange { response, _driver: driver })
    }

    /// Puts a request together: our own headers, then those of the caller.
    fn build_request(
        &self,
        place: &WebPlace,
        request: WebRequest,
    ) -> Result<Request<Full<Bytes>>, FetchError> {
        let invalid = |problem: &str| FetchError::InvalidUrl(format!("the request is not valid: {problem}"));
        let method = if request.body.is_some() { Method::POST } else { Method::GET };
        let mut builder = Request::builder()
            .method(method)
            .uri(place.target())
            .header("host", place.authority())
            .header("user-agent", &self.config.user_agent)
            .header("accept-encoding", ContentCoding::OFFERED)
            .header("connection", "close");
        for (name, value) in &request.headers {
            // The value may be a key, so it is not named.
            let name = HeaderName::try_from(name).map_err(|_| invalid("a header name"))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| invalid("the value of a header"))?;
            value.set_sensitive(true);
            builder = builder.header(name, value);
        }
        let body = match request.body {
            Some((content_type, body)) => {
                builder = builder.header("content-type", content_type);
                Full::new(Bytes::from(body))
            }
            None => Full::default(),
        };
        builder.body(body).map_err(|error| invalid(&error.to_string()))
    }
}

/// A response whose body is not read yet, with the task that drives its connection.
struct WebExchange {
    /// The head of the response.
    response: Response<Incoming>,
    /// Ends with the exchange, and closes the connection.
    _driver: JoinSet<()>,
}

impl WebExchange {
    /// Reads the body within the limits.
    async fn read(self, limits: &WebLimits, progress: ProgressFn<'_>) -> Result<ReadBody, FetchError> {
        let coding = header_text(self.response.headers(), "content-encoding");
        let coding = ContentCoding::parse(coding.as_deref()).map_err(FetchError::UnknownCoding)?;
        let stated = header_text(self.response.headers(), "content-length");
        if let Some(stated) = stated.and_then(|text| text.parse::<u64>().ok())
            && stated > limits.wire_bytes.saturating_mul(MAX_STATED_FACTOR)
        {
            return Err(FetchError::TooLarge { stated, limit: limits.wire_bytes });
        }
        read_body(self.response.into_body(), coding, limits, progress).await
    }
}

/// Reads the page of the last hop. The body of an error is not read: it is not the page that was asked for.
async fn read_page(
    hops: Vec<FetchedHop>,
    exchange: WebExchange,
    limits: &WebLimits,
    progress: ProgressFn<'_>,
) -> Result<WebPage, FetchError> {
    let mut page = WebPage::new(hops, exchange.response.status().as_u16());
    let headers = exchange.response.headers();
    page.content_type = header_text(headers, "content-type");
    page.retry_after = header_text(headers, "retry-after");
    page.is_challenge = header_text(headers, "cf-mitigated").is_some_and(|value| value == "challenge");
    let cache_control = header_text(headers, "cache-control").unwrap_or_default().to_ascii_lowercase();
    page.no_store = cache_control.contains("no-store");
    if page.status < 400 {
        let body = exchange.read(limits, progress).await?;
        (page.body, page.is_cut, page.wire_bytes) = (body.bytes, body.is_cut, body.wire_bytes);
    }
    Ok(page)
}

/// A header as text; bytes that are not UTF-8 become the replacement character. Several headers of one name are joined,
/// so that a second `Content-Encoding` is noticed.
fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Vec<_> =
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// What a site's answer to a request of `robots.txt` means: no file allows everything, a file that may not be read and a
/// server that fails allow nothing.
fn read_robots(fetched: &FetchOutcome, user_agent: &str) -> RobotsFile {
    let agent = user_agent.split('/').next().unwrap_or(user_agent);
    match fetched {
        FetchOutcome::Page(page) => match page.status {
            200 => RobotsFile::parse(&String::from_utf8_lossy(&page.body), agent),
            401 | 403 | 500.. => RobotsFile::forbid_all(),
            _ => RobotsFile::default(),
        },
        FetchOutcome::OtherHost { .. } => RobotsFile::default(),
    }
}
