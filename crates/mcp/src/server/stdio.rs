//! Serving over the process's standard streams.

use super::{GateServer, ProtocolHandler};
use crate::line_transport::LineTransport;
use rmcp::service::{ServerInitializeError, serve_server};
use std::io;
use toolgate_process::{ByteSink, ByteSource, standard_streams};

/// Serves until standard input ends. Calls that are in flight then may still answer for a moment.
pub async fn serve_stdio(server: GateServer) -> io::Result<()> {
    let (source, sink) = standard_streams()?;
    serve_streams(server, source, sink).await
}

/// The same over any two streams.
///
/// The handlers of requests are tasks that start in any order, so each call gets its place among the others when its
/// line is read.
pub async fn serve_streams(server: GateServer, source: ByteSource, sink: ByteSink) -> io::Result<()> {
    let scheduler = server.inner.scheduler.clone();
    let transport = LineTransport::new(source, sink).with_scheduler(scheduler);
    match serve_server(ProtocolHandler(server), transport).await {
        Ok(running) => {
            running.waiting().await.map_err(io::Error::other)?;
            Ok(())
        }
        // A client that closes the connection before its first request has done nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}
