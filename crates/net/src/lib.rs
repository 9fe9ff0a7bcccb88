//! Network access of toolgate itself: HTTP requests to hooks, the HTTP client of MCP servers, listening sockets.
//!
//! [`post_hook`] posts a hook's payload with a limit on time and size and follows no redirect.
//! [`listen_tcp`] and [`listen_unix`] open the sockets on which `toolgate mcp serve` answers.
//! With the feature `http`, [`http_client`] makes the client for servers behind the gate.
//!
//! What commands reach is not decided here: they have the sandbox's proxy, in the crate `process`.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let listener = toolgate_net::listen_tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
//! assert!(listener.local_addr().unwrap().ip().is_loopback());
//! # });
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "this crate may open sockets")]

mod hook_http;
#[cfg(feature = "http")]
mod http_client;
mod listen;

pub use hook_http::{HookHttpError, HookHttpRequest, HookHttpResponse, post_hook};
#[cfg(feature = "http")]
pub use http_client::{HttpClient, http_client};
pub use listen::{listen_tcp, listen_unix};
