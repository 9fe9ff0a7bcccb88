//! Serving over the process's standard streams.

use super::GateServer;
use crate::wire::Lines;
use rmcp::service::{ServerInitializeError, serve_server};
use std::io;
use std::sync::Arc;
use toolgate_os::{ByteSink, ByteSource, standard_streams};

/// Serves until standard input ends. Calls that are under way then may still answer for a moment.
pub async fn serve_stdio(server: GateServer) -> io::Result<()> {
    let (source, sink) = standard_streams()?;
    let inner = Arc::clone(&server.inner);
    let _helped = inner.crew.shift();
    serve_streams(server, source, sink).await
}

/// The same over any two streams.
pub async fn serve_streams(server: GateServer, source: ByteSource, sink: ByteSink) -> io::Result<()> {
    // Many calls may arrive at once, and one look serves them all.
    let heard = server.clone();
    let lines = Lines::new(source, sink).hearing(move |messages| {
        heard.inner.gate.look();
        heard.inner.crew.read(messages);
    });
    match serve_server(server, lines).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            Ok(())
        }
        // A client that leaves before it has said anything has done nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}
