//! MCP servers inside the host's own program, reached by `mcp_message`.
//!
//! To the MCP client such a server is a pair of byte streams with one JSON-RPC message a line, as any other.

use crate::control_channel::ControlChannel;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolgate_process::{ByteSink, ByteSource};

/// The buffer of one direction.
const MAX_BUFFERED_BYTES: usize = 256 * 1024;

/// Opens a connection to a server of the host. Must be called inside a runtime; the connection ends when the streams
/// are dropped.
pub fn open_host_server(channel: &ControlChannel, server: &str) -> (ByteSource, ByteSink) {
    let (ours, theirs) = tokio::io::duplex(MAX_BUFFERED_BYTES);
    let (from_host, to_host) = tokio::io::split(ours);
    tokio::spawn(carry_messages(channel.clone(), server.to_owned(), theirs));
    (Box::pin(from_host), Box::pin(to_host))
}

/// Carries messages both ways until one side is gone.
async fn carry_messages(channel: ControlChannel, server: String, stream: tokio::io::DuplexStream) {
    let (reader, writer) = tokio::io::split(stream);
    let writer = std::sync::Arc::new(tokio::sync::Mutex::new(writer));
    let mut lines = BufReader::new(reader).lines();
    let mut calls = tokio::task::JoinSet::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (channel, server, writer) = (channel.clone(), server.clone(), writer.clone());
        let carry = async move {
            let id = message.get("id").cloned();
            let answer = channel
                .request(json!({ "subtype": "mcp_message", "server_name": server, "message": message }))
                .await;
            // Notifications are answered by hosts too, and the answer means nothing.
            let Some(id) = id else { return };
            let reply = match answer {
                Ok(answer) => answer
                    .get("mcp_response")
                    .cloned()
                    .filter(Value::is_object)
                    .unwrap_or_else(|| error_reply(&id, "the host gave no answer of the protocol")),
                Err(error) => error_reply(&id, &error.to_string()),
            };
            let mut line = reply.to_string();
            line.push('\n');
            // An error means that the client has gone.
            let _ = writer.lock().await.write_all(line.as_bytes()).await;
        };
        // Order matters for the handshake, and calls may overlap.
        if line.contains("\"tools/call\"") {
            calls.spawn(carry);
        } else {
            carry.await;
        }
    }
}

/// An error of the protocol, as the server would have sent it.
fn error_reply(id: &Value, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": message } })
}
