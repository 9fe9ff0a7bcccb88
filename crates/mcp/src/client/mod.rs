//! Other servers' tools, brought behind the gate.
//!
//! The [`McpCoordinator`] owns the servers; [`GatewayFeatures`] offers their resources and prompts onwards.
//! A server is not trusted: its names must be unmistakable, its words are cut and cleaned, its schemas are held
//! against what it sends, and what was approved about it is pinned.

mod config;
mod connection;
mod coordinator;
#[cfg(feature = "http")]
mod http;
mod in_flight;
#[cfg(feature = "http")]
mod oauth;
mod pins;
mod remote_tool;
mod resources;

pub use config::{
    DEFAULT_CALL_TIMEOUT, DEFAULT_CONNECT_TIMEOUT, OauthHints, ServerEntry, ServerListOrigin,
    ServerTransport, check_server_name, read_server, read_servers,
};
pub use connection::McpConnectionError;
pub use coordinator::{CoordinatorOptions, McpCoordinator, ServerState};
#[cfg(feature = "http")]
pub use http::OauthOptions;
pub use in_flight::ServerRequestHandler;
#[cfg(feature = "http")]
pub use oauth::{CredentialFile, OauthCallbackListener, SignInBrowser, SignInOptions};
pub use pins::{PinStore, ServerApprovalError, ServerPin};
pub use resources::GatewayFeatures;
