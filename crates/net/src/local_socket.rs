//! A WebSocket on this machine, as a stream of bytes with one text message a line.

use futures_util::{SinkExt, StreamExt};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

/// The buffer of one direction.
const MAX_BUFFERED_BYTES: usize = 256 * 1024;
/// The longest message that is taken.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Opens a WebSocket to a port of this machine, with these headers. The stream ends when the connection cannot be opened
/// or breaks, and the connection ends when the stream is dropped. Must be called inside a runtime.
pub fn open_local_socket(port: u16, headers: Vec<(&'static str, String)>) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(MAX_BUFFERED_BYTES);
    tokio::spawn(async move {
        // An error ends the stream; that is all there is to tell to its reader.
        let _ = carry_messages(port, headers, theirs).await;
    });
    ours
}

/// Carries messages both ways until one side is gone.
async fn carry_messages(
    port: u16,
    headers: Vec<(&'static str, String)>,
    stream: DuplexStream,
) -> Result<(), Error> {
    let mut request = format!("ws://127.0.0.1:{port}/").into_client_request()?;
    for (name, value) in headers {
        let value = HeaderValue::from_str(&value).map_err(|error| Error::HttpFormat(error.into()))?;
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE_BYTES));
    let connection = TcpStream::connect(address).await?;
    let (socket, _) = tokio_tungstenite::client_async_with_config(request, connection, Some(config)).await?;
    let (mut outgoing, mut incoming) = socket.split();
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => outgoing.send(Message::text(line)).await?,
                None => return outgoing.close().await,
            },
            message = incoming.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    // A line end inside a message would be read as two.
                    let line = text.replace(['\r', '\n'], " ");
                    writer.write_all(line.as_bytes()).await?;
                    writer.write_all(b"\n").await?;
                }
                Some(Ok(Message::Close(_))) | None => return Ok(()),
                // Pings are answered by the library; what is not text is not of this protocol.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
            },
        }
    }
}
