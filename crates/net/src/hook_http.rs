//! HTTP requests to hook servers, on the loopback interface only.
//!
//! One request per connection, no redirects, no TLS: a hook server is a process on the same machine.
//! An address that is not loopback is refused before anything is sent, because the payload of a hook (paths, commands,
//! file contents) must not cross a network unencrypted.
//! A general HTTP client such as reqwest would bring redirects, proxies and connection pools that all had to be turned
//! off.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;

/// Limit on the body of a response. A hook's answer is a small JSON object.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A POST request to a hook server.
#[derive(Debug, Clone)]
pub struct HookHttpRequest {
    /// The resolved address; must be loopback.
    pub address: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// Path and query of the URL.
    pub target: String,
    /// Further headers from the hook's settings, such as authorization.
    pub headers: Vec<(String, String)>,
    /// The JSON payload.
    pub body: Vec<u8>,
    /// Limit on the whole exchange: connect, send and receive.
    pub timeout: Duration,
}

/// The response of a hook server. Any status is a response; what it means is for the caller to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookHttpResponse {
    /// The status code.
    pub status: u16,
    /// The whole body, at most 1 MiB.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookHttpError {
    /// The address is not loopback; nothing was sent.
    NotLoopback(IpAddr),
    /// The connection was refused or broke, or the response is not HTTP.
    Unreachable(String),
    /// The request is invalid, for example a header with a line end; nothing was sent.
    BadRequest(String),
    /// No complete response within [`HookHttpRequest::timeout`].
    TimedOut,
    /// The body is larger than the limit.
    TooMuchOutput,
}

/// Sends one request and reads the whole response. Dropping the future closes the connection, so a cancelled call does not
/// leave a request behind.
pub async fn post_hook(request: HookHttpRequest) -> Result<HookHttpResponse, HookHttpError> {
    if !request.address.ip().is_loopback() {
        return Err(HookHttpError::NotLoopback(request.address.ip()));
    }
    let timeout = request.timeout;
    tokio::time::timeout(timeout, send_request(request)).await.unwrap_or(Err(HookHttpError::TimedOut))
}

async fn send_request(hook_request: HookHttpRequest) -> Result<HookHttpResponse, HookHttpError> {
    let unreachable = |error: &dyn std::fmt::Display| HookHttpError::Unreachable(error.to_string());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&hook_request.target)
        .header("host", &hook_request.host)
        .header("content-type", "application/json")
        .header("accept", "application/json");
    for (name, value) in &hook_request.headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(hook_request.body)))
        .map_err(|error| HookHttpError::BadRequest(error.to_string()))?;
    let stream = TcpStream::connect(hook_request.address).await.map_err(|error| unreachable(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| unreachable(&error))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_BODY_BYTES).collect().await.map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                HookHttpError::TooMuchOutput
            } else {
                HookHttpError::Unreachable(error.to_string())
            }
        })?;
        Ok(HookHttpResponse { status, body: body.to_bytes().to_vec() })
    };
    // The connection is driven here and not on a task of its own, so that dropping this future closes it.
    tokio::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            response = &mut exchange => return response,
            ended = &mut connection, if is_open => {
                // The server closed the connection; what it sent before can still be read.
                is_open = false;
                if let Err(error) = ended {
                    tokio::select! {
                        biased;
                        response = &mut exchange => return response,
                        () = tokio::task::yield_now() => return Err(unreachable(&error)),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server that sends these bytes to its first client and closes the connection.
    async fn serve(response: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(response).await.unwrap();
        });
        address
    }

    fn new_request(address: SocketAddr) -> HookHttpRequest {
        HookHttpRequest {
            address,
            host: "localhost".to_owned(),
            target: "/hook".to_owned(),
            headers: Vec::new(),
            body: b"{}".to_vec(),
            timeout: Duration::from_secs(20),
        }
    }

    #[tokio::test]
    async fn a_response_is_read_and_a_truncated_one_is_an_error() {
        let address = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        let response = post_hook(new_request(address)).await.unwrap();
        assert_eq!((response.status, response.body.as_slice()), (200, &b"{}"[..]));
        for truncated in [
            &b""[..],
            b"HTTP/1.1 200",
            b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{",
            b"nonsense\r\n\r\n",
        ] {
            let problem = post_hook(new_request(serve(truncated).await)).await.unwrap_err();
            assert!(matches!(problem, HookHttpError::Unreachable(_)), "{problem:?}");
        }
    }

    #[tokio::test]
    async fn an_address_that_is_not_loopback_is_refused() {
        let remote = "192.0.2.1:80".parse().unwrap();
        assert_eq!(
            post_hook(new_request(remote)).await.unwrap_err(),
            HookHttpError::NotLoopback("192.0.2.1".parse().unwrap())
        );
    }

    #[tokio::test]
    async fn a_server_that_does_not_respond_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut request = new_request(listener.local_addr().unwrap());
        request.timeout = Duration::from_millis(20);
        assert_eq!(post_hook(request).await.unwrap_err(), HookHttpError::TimedOut);
    }
}
