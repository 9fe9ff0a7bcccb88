//! toolgate and the Model Context Protocol: a server, a client, and the two together as a gateway.
//!
//! - [`GateServer`] is the server: it lets any MCP client use the tools of a gate. Each call crosses the boundary, a denial
//!   is a result that says why, and a question goes to the client's user as an elicitation. [`serve_stdio`] serves
//!   standard streams, and `serve_http` (feature `http`) streamable HTTP.
//! - [`client::McpCoordinator`] is the client: a source that brings the tools of other servers behind the same gate.
//! - Both together are a gateway: one policy in front of any number of servers.
//!
//! The protocol has two eras. Up to 2025-11-25 a connection is opened by `initialize` and both sides may send requests;
//! from 2026-07-28 on every request is complete in itself and the server sends none. Both are served on the same endpoint.
//!
//! ```
//! use std::sync::Arc;
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//! use toolgate_gate::{FnTool, Gate, GateParts, Session, ToolSpec};
//! use toolgate_mcp::{GateServer, ServerDescription, ToolsOnly, serve_streams};
//! use toolgate_proto::{AbsPath, Output, Principal, SourceId, Workspace};
//!
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # #[serde(deny_unknown_fields)]
//! # struct Greet {}
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let gate = Arc::new(Gate::new(GateParts::default()));
//! let greet = FnTool::new(ToolSpec::new("greet", "Greets."), |_: Greet, _| async { Ok(Output::text("hello")) });
//! gate.register(SourceId::Sdk, greet)?;
//! # let root = AbsPath::root();
//! # let workspace = Workspace::new(root);
//! let session = Session::new("s1".into(), Principal::new("mcp"), workspace);
//! let server = GateServer::new(gate, session, Arc::new(ToolsOnly), ServerDescription::new("demo", "1"))?;
//!
//! // A pipe instead of standard input and output.
//! let (client, streams) = tokio::io::duplex(1 << 16);
//! let (source, sink) = tokio::io::split(streams);
//! tokio::spawn(serve_streams(server, Box::pin(source), Box::pin(sink)));
//! let (answers, mut requests) = tokio::io::split(client);
//! let mut answers = BufReader::new(answers).lines();
//! let opening = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!     "capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
//! requests.write_all((opening.replace('\n', "") + "\n").as_bytes()).await?;
//! assert!(answers.next_line().await?.unwrap().contains("serverInfo"));
//! requests.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await?;
//! requests.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n").await?;
//! assert!(answers.next_line().await?.unwrap().contains("greet"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! This crate knows the protocol. It knows no tool, judges no call, opens no file and starts no process: the gate and the
//! machine crates (`files`, `process`, `net`) do.

#![forbid(unsafe_code)]

pub mod client;
mod line_transport;
mod protocol_value;
mod server;

pub use protocol_value::{
    ClientInputRequest, CompletionRequest, CompletionValues, PromptEntry, PromptRequest, PromptResult,
    ProtocolError, ResourceEntry, ResourceReadResult, ResourceTemplateEntry,
};
pub use server::{
    ClientApprover, ClientConversation, GateServer, ProtocolEra, ServerDescription, ServerFeatureError,
    ServerFeatureSet, ServerFeatures, ToolsOnly, serve_stdio, serve_streams,
};
#[cfg(feature = "http")]
pub use server::{HttpListener, HttpOptions, serve_http};
