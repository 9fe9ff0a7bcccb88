//! Asking a hook over HTTP, on this machine only.
//!
//! One request, one connection, no redirects, no TLS: a hook server is a neighbour process.
//! An address that is not loopback is refused before anything is sent, because what a hook is told (paths, commands,
//! file contents) must not cross a network in the clear.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;

/// Most bytes of an answer.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Whom to ask, and what.
#[derive(Debug, Clone)]
pub struct HookHttpRequest {
    /// The address; must be loopback.
    pub address: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// Path and query.
    pub target: String,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The JSON to send.
    pub body: Vec<u8>,
    /// How long all of it may take.
    pub timeout: Duration,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookHttpResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookHttpError {
    /// The address is not on this machine.
    NotLoopback(IpAddr),
    /// Nobody listens there, or the connection broke.
    Unreachable(String),
    /// The request cannot be made.
    BadRequest(String),
    /// No answer in time.
    TimedOut,
    /// More than an answer can be.
    TooMuchOutput,
}

/// Sends one request and reads the answer. Dropping the future closes the connection.
pub async fn post_hook(post: HookHttpRequest) -> Result<HookHttpResponse, HookHttpError> {
    if !post.address.ip().is_loopback() {
        return Err(HookHttpError::NotLoopback(post.address.ip()));
    }
    let limit = post.timeout;
    tokio::time::timeout(limit, send_request(post)).await.unwrap_or(Err(HookHttpError::TimedOut))
}

async fn send_request(post: HookHttpRequest) -> Result<HookHttpResponse, HookHttpError> {
    let unreachable = |error: &dyn std::fmt::Display| HookHttpError::Unreachable(error.to_string());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&post.target)
        .header("host", &post.host)
        .header("content-type", "application/json")
        .header("accept", "application/json");
    for (name, value) in &post.headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(post.body)))
        .map_err(|error| HookHttpError::BadRequest(error.to_string()))?;
    let stream = TcpStream::connect(post.address).await.map_err(|error| unreachable(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
    let asking = async {
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
    // The connection is driven here, not on a task of its own, so that dropping this drops it.
    tokio::pin!(asking);
    let mut connection = std::pin::pin!(connection);
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            answer = &mut asking => return answer,
            ended = &mut connection, if open => {
                // What was received before the end may still be read.
                open = false;
                if let Err(error) = ended {
                    tokio::select! {
                        biased;
                        answer = &mut asking => return answer,
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

    async fn serve(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(answer).await.unwrap();
        });
        address
    }

    fn post(address: SocketAddr) -> HookHttpRequest {
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
    async fn an_answer_is_read_and_every_break_is_a_problem() {
        let address = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        let reply = post_hook(post(address)).await.unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (200, &b"{}"[..]));
        for cut in [
            &b""[..],
            b"HTTP/1.1 200",
            b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{",
            b"nonsense\r\n\r\n",
        ] {
            let problem = post_hook(post(serve(cut).await)).await.unwrap_err();
            assert!(matches!(problem, HookHttpError::Unreachable(_)), "{problem:?}");
        }
    }

    #[tokio::test]
    async fn nothing_leaves_the_machine() {
        let away = "192.0.2.1:80".parse().unwrap();
        assert_eq!(
            post_hook(post(away)).await.unwrap_err(),
            HookHttpError::NotLoopback("192.0.2.1".parse().unwrap())
        );
    }

    #[tokio::test]
    async fn silence_ends_at_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut post = post(listener.local_addr().unwrap());
        post.timeout = Duration::from_millis(20);
        assert_eq!(post_hook(post).await.unwrap_err(), HookHttpError::TimedOut);
    }
}
