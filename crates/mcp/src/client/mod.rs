//! Other servers' tools, brought behind the gate.
//!
//! The [`McpCoordinator`] owns the servers; [`GatewayFeatures`] offers their resources and prompts onwards.
//! A server is not trusted: its names must be unmistakable, its descriptions are truncated and cleaned, its results are checked
//! against its schemas, and what was approved about it is pinned.

mod approved_launch;
mod connection;
mod coordinator;
#[cfg(feature = "http")]
mod http;
mod in_flight;
mod joined_name;
#[cfg(feature = "http")]
mod oauth;
mod pinned_definition;
mod pins;
mod remote_tool;
mod resources;
mod restart_server;
mod server_entry;
mod tool_filter;
mod tool_list;
mod unread_keys;

pub use connection::McpConnectionError;
pub use coordinator::{CoordinatorOptions, McpCoordinator, ServerState};
#[cfg(feature = "http")]
pub use http::OauthOptions;
pub use in_flight::ServerRequestHandler;
#[cfg(feature = "http")]
pub use oauth::{CredentialFile, OauthCallbackListener, SignInBrowser, SignInOptions};
pub use pinned_definition::PinnedDefinition;
pub use pins::{PinStore, ServerApprovalError, ServerPin, ToolApproval};
pub use resources::GatewayFeatures;
pub use server_entry::{
    DEFAULT_CALL_TIMEOUT, DEFAULT_CONNECT_TIMEOUT, OauthHints, ServerEntry, ServerListOrigin,
    ServerTransport, StreamOpener, are_confusable_names, check_server_name, read_server, read_servers,
};
