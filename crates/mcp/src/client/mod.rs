//! Other servers' tools, brought behind the gate.
//!
//! The [`McpCoordinator`] owns the servers; [`GatewayFeatures`] offers their resources and prompts onwards.
//! A server is not trusted: its names must be unmistakable, its words are cut and cleaned, its schemas are held
//! against what it sends, and what was approved about it is pinned.

mod config;
mod coordinator;
mod desk;
#[cfg(feature = "http")]
mod http;
mod link;
#[cfg(feature = "http")]
mod oauth;
mod pins;
mod remote_tool;
mod resources;

pub use config::{
    CONNECT_TIMEOUT, DEFAULT_CALL_TIMEOUT, OauthHints, Origin, Reach, ServerEntry, check_name, read_server,
    read_servers,
};
pub use coordinator::{McpCoordinator, ServerState, Setup};
pub use desk::Answerer;
#[cfg(feature = "http")]
pub use http::Access;
pub use link::Trouble;
#[cfg(feature = "http")]
pub use oauth::{Callback, CredentialFile, SignIn, SignInBrowser};
pub use pins::{Held, Pin, PinStore};
pub use resources::GatewayFeatures;
