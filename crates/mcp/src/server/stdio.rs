//! Serving over the process's standard streams.

use super::GateServer;
use crate::wire::Lines;
use rmcp::service::{ServerInitializeError, serve_server};
use std::io;
use toolgate_os::{ByteSink, ByteSource, standard_streams};

/// Serves until standard input ends. Calls that are under way then may still answer for a moment.
pub async fn serve_stdio(server: GateServer) -> io::Result<()> {
    let (source, sink) = standard_streams()?;
    serve_streams(server, source, sink).await
}

/// The same over any two streams.
pub async fn serve_streams(server: GateServer, source: ByteSource, sink: ByteSink) -> io::Result<()> {
    match serve_server(server, Lines::new(source, sink)).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            Ok(())
        }
        // A client that leaves before it has said anything has done nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}
