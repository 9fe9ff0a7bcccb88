//! toolgate and the Model Context Protocol: a server, a client, and the two together as a gateway.
//!
//! As a server ([`GateServer`]) it lets any MCP client use the tools of a gate: each call crosses the boundary, a
//! denial is a result that says why, and a question is put to the person at the other end.
//! As a client (the coordinator) it brings the tools of other servers behind the same boundary.
//! Both together are a gateway: one policy in front of any number of servers.
//!
//! The protocol has two living eras.
//! Up to 2025-11-25 a connection is opened by `initialize` and both sides may ask; from 2026-07-28 on every request
//! stands for itself and the server never asks.
//! Both are spoken, on the same endpoint.
//!
//! This crate knows the protocol; it knows no tool, opens no file and starts no process: the machine crates (`files`, `process`, `net`) do.

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
