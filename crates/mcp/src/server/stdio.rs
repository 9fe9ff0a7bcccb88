//! Serving over the process's standard streams.

use super::{GateServer, ProtocolHandler};
use crate::line_transport::LineTransport;
use rmcp::service::{ServerInitializeError, serve_server};
use std::io;
use std::sync::Arc;
use toolgate_process::{ByteSink, ByteSource, standard_streams};

/// How many threads make the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallThreads {
    /// One. What a call opens and leaves open, such as the way to a server behind the gate, belongs to its runtime.
    One,
    /// Calls that arrive together and only read are shared with a second, whose runtime ends with the serving.
    Two,
}

/// Serves until standard input ends. Calls that are under way then may still answer for a moment.
pub async fn serve_stdio(server: GateServer, hands: CallThreads) -> io::Result<()> {
    let (source, sink) = standard_streams()?;
    let inner = Arc::clone(&server.inner);
    let _helped = (hands == CallThreads::Two).then(|| inner.crew.shift());
    serve_streams(server, source, sink).await
}

/// The same over any two streams.
pub async fn serve_streams(server: GateServer, source: ByteSource, sink: ByteSink) -> io::Result<()> {
    // Many calls may arrive at once, and one look serves them all.
    let heard = server.clone();
    let lines = LineTransport::new(source, sink).with_message_callback(move |messages| {
        heard.inner.gate.refresh();
        heard.inner.crew.read(messages);
    });
    match serve_server(ProtocolHandler(server), lines).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            Ok(())
        }
        // A client that leaves before it has said anything has done nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}
