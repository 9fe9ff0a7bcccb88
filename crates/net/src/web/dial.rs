//! Connections to vetted addresses, direct or through a tunnel of a proxy, with TLS where the URL says so.

use super::fetch_error::FetchError;
use super::proxy_table::WebProxy;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use toolgate_proto::host_pattern::{Host, host_address};

/// The most bytes of a proxy's answer to `CONNECT`.
const MAX_PROXY_ANSWER_BYTES: usize = 16 * 1024;

/// A connection of either kind.
pub(super) trait WebStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> WebStream for T {}

/// Where to connect to.
pub(super) struct DialTarget<'a> {
    /// The host, for TLS and for messages.
    pub(super) host: &'a Host<String>,
    /// The port.
    pub(super) port: u16,
    /// Whether the URL is https.
    pub(super) is_encrypted: bool,
    /// The addresses that were judged; no other is connected to.
    pub(super) addresses: &'a [IpAddr],
    /// The proxy to go through.
    pub(super) proxy: Option<&'a WebProxy>,
}

/// Connects to the first address that answers. `timeout` is for everything together.
pub(super) async fn dial(
    target: &DialTarget<'_>,
    timeout: Duration,
) -> Result<Box<dyn WebStream>, FetchError> {
    let deadline = Instant::now() + timeout;
    let connected = timeout_at(deadline, async {
        let stream = connect_any(target, deadline).await?;
        if !target.is_encrypted {
            return Ok(Box::new(stream) as Box<dyn WebStream>);
        }
        let name = match host_address(target.host) {
            Some(address) => ServerName::from(address),
            None => ServerName::try_from(target.host.to_string())
                .map_err(|error| unreachable(target, &format!("the name is not valid for TLS: {error}")))?,
        };
        let connector = TlsConnector::from(tls_config().map_err(|problem| unreachable(target, &problem))?);
        let stream = connector.connect(name, stream).await;
        let stream = stream.map_err(|error| unreachable(target, &format!("TLS: {error}")))?;
        Ok(Box::new(stream) as Box<dyn WebStream>)
    });
    connected.await.unwrap_or(Err(FetchError::TimedOut { what: "the connection", after: timeout }))
}

/// The error for a host that cannot be connected to.
fn unreachable(target: &DialTarget<'_>, problem: &str) -> FetchError {
    FetchError::Unreachable { host: format!("{}:{}", target.host, target.port), problem: problem.to_owned() }
}

/// Tries the addresses in turn, each for its share of the time.
async fn connect_any(target: &DialTarget<'_>, deadline: Instant) -> Result<TcpStream, FetchError> {
    let mut last = unreachable(target, "it has no address");
    for (tried, address) in target.addresses.iter().enumerate() {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let shares = u32::try_from(target.addresses.len() - tried).unwrap_or(1).min(4);
        let attempt = async {
            match target.proxy {
                Some(proxy) => tunnel(target, proxy, *address).await,
                None => TcpStream::connect(SocketAddr::new(*address, target.port))
                    .await
                    .map_err(|error| unreachable(target, &error.to_string())),
            }
        };
        match tokio::time::timeout(remaining / shares, attempt).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = FetchError::TimedOut { what: "the connection", after: remaining / shares },
        }
    }
    Err(last)
}

/// Asks a proxy for a tunnel to one vetted address. The name is not handed over: the proxy would resolve it again, and
/// could be answered differently.
async fn tunnel(target: &DialTarget<'_>, proxy: &WebProxy, address: IpAddr) -> Result<TcpStream, FetchError> {
    let failed = |problem: &dyn std::fmt::Display| {
        let text = format!("through the proxy {}:{}: {problem}", proxy.host, proxy.port);
        unreachable(target, &text)
    };
    let mut stream =
        TcpStream::connect((proxy.host.as_str(), proxy.port)).await.map_err(|error| failed(&error))?;
    let place = SocketAddr::new(address, target.port);
    let mut request = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n");
    if let Some(authorization) = &proxy.authorization {
        request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| failed(&error))?;
    let mut answer = Vec::new();
    // Byte by byte, so that nothing of what the server sends first is taken.
    while !answer.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.map_err(|error| failed(&error))?;
        answer.push(byte);
        if answer.len() > MAX_PROXY_ANSWER_BYTES {
            return Err(failed(&"its answer is too long"));
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split_whitespace().nth(1).unwrap_or_default();
    if status.starts_with('2') && status.len() == 3 {
        return Ok(stream);
    }
    let line: String =
        answer.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    Err(failed(&format_args!("it answered `{line}`")))
}

/// TLS with the certificates of the system, made once.
fn tls_config() -> Result<Arc<rustls::ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<rustls::ClientConfig>, String>> = OnceLock::new();
    let make = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_platform_verifier())
            .map_err(|error| error.to_string())?
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    };
    CONFIG.get_or_init(make).clone()
}
