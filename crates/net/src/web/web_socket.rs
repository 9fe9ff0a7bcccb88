//! A WebSocket that is listened to: nothing is sent but what the protocol itself needs.
//!
//! It is opened like a page is fetched: the name is resolved once, the judge sees every address, and the connection goes
//! to one of exactly these. A redirect is not followed.

use super::dial::{DialTarget, WebStream, dial};
use super::fetch_error::FetchError;
use super::web_client::{HopJudge, WebClient, WebLimits, WebPlace};
use futures_util::StreamExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

/// The most bytes of a message; a longer one ends the connection.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// A message of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketMessage {
    /// Text.
    Text(String),
    /// Bytes, of which only the number is reported.
    Binary(usize),
}

/// A WebSocket that is open. Dropping it closes the connection.
pub struct WebSocketReader {
    socket: WebSocketStream<Box<dyn WebStream>>,
}

impl std::fmt::Debug for WebSocketReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocketReader").finish_non_exhaustive()
    }
}

impl WebSocketReader {
    /// The next message. An error is the end of the connection, in words.
    pub async fn next_message(&mut self) -> Result<SocketMessage, String> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(SocketMessage::Text(text.to_string())),
                Some(Ok(Message::Binary(bytes))) => return Ok(SocketMessage::Binary(bytes.len())),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err(format!("the server closed the connection with code {}", frame.code));
                }
                Some(Ok(Message::Close(None))) | None => {
                    return Err("the server closed the connection".to_owned());
                }
                // Answered by the library.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                    return Err(format!("a message was longer than {MAX_MESSAGE_BYTES} bytes"));
                }
                Some(Err(error)) => return Err(format!("the connection broke: {error}")),
            }
        }
    }
}

/// The URL of the request that opens a WebSocket: the one that a judge and rules about hosts understand.
/// `None` if the scheme is neither `ws` nor `wss`.
fn socket_request_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "ws" => "http",
        "wss" => "https",
        _ => return None,
    };
    Some(format!("{scheme}://{rest}"))
}

impl WebClient {
    /// Opens a WebSocket, with the subprotocols that the caller offers.
    pub async fn open_socket(
        &self,
        url: &str,
        protocols: &[String],
        limits: &WebLimits,
        judge: &dyn HopJudge,
    ) -> Result<WebSocketReader, FetchError> {
        let invalid = |problem: String| FetchError::InvalidUrl(problem);
        let request_url = socket_request_url(url)
            .ok_or_else(|| invalid("a WebSocket has a URL with the scheme ws or wss".to_owned()))?;
        let opened = async {
            let place = WebPlace::parse(&request_url)?;
            let addresses = self.vet(&place, judge, limits).await?;
            self.wait_for_turn(&place, &addresses).await?;
            let target = DialTarget {
                host: &place.host,
                port: place.port,
                is_encrypted: place.url.scheme() == "https",
                addresses: &addresses,
                proxy: self.config.proxies.find(place.url.scheme(), &place.host, &addresses),
            };
            let stream = dial(&target, limits.connect).await?;
            // From the parsed URL, so that the request goes to the host that was judged.
            let scheme = if target.is_encrypted { "wss" } else { "ws" };
            let text = format!("{scheme}://{}{}", place.authority(), place.target());
            let mut request = text.into_client_request().map_err(|error| invalid(error.to_string()))?;
            let header = |text: &str| HeaderValue::from_str(text).map_err(|error| invalid(error.to_string()));
            request.headers_mut().insert("user-agent", header(&self.config.user_agent)?);
            if !protocols.is_empty() {
                request.headers_mut().insert("sec-websocket-protocol", header(&protocols.join(", "))?);
            }
            let config = WebSocketConfig::default()
                .max_message_size(Some(MAX_MESSAGE_BYTES))
                .max_frame_size(Some(MAX_MESSAGE_BYTES));
            let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config))
                .await
                .map_err(handshake_error)?;
            Ok(WebSocketReader { socket })
        };
        let opened = tokio::time::timeout(limits.total, opened).await;
        opened.unwrap_or(Err(FetchError::TimedOut { what: "the WebSocket", after: limits.total }))
    }
}

/// Why the server did not open a WebSocket.
fn handshake_error(error: Error) -> FetchError {
    match error {
        Error::Http(response) => {
            let status = response.status().as_u16();
            FetchError::Protocol(format!("the server answered with status {status} in place of a WebSocket"))
        }
        other => FetchError::Protocol(format!("the server opened no WebSocket: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::socket_request_url;

    #[test]
    fn a_socket_is_judged_by_the_url_of_its_request() {
        assert_eq!(socket_request_url("wss://a.example/x?y"), Some("https://a.example/x?y".to_owned()));
        assert_eq!(socket_request_url(" WS://a.example:8080"), Some("http://a.example:8080".to_owned()));
        for other in ["https://a.example", "file:///etc/passwd", "a.example", "wss"] {
            assert_eq!(socket_request_url(other), None, "{other}");
        }
    }
}
