//! Network access of toolgate itself: requests to HTTP hooks, the HTTP client for MCP servers, listening sockets.
//!
//! [`post_hook`] posts a [`HookHttpRequest`] to a loopback address, with a timeout and a limit on the size of the
//! response, and follows no redirect.
//! [`listen_tcp`] and [`listen_unix`] bind the sockets on which toolgate serves MCP or waits for an OAuth redirect.
//! With the feature `http`, `http_client` creates the client for MCP servers, and `ModelHttpClient` posts requests to model
//! providers and hands out the answer piece by piece; both with TLS and without redirects.
//! With the feature `socket`, `open_local_socket` opens a WebSocket to a port of this machine.
//! With the feature `web`, `web::WebClient` fetches pages for tools.
//! It resolves names itself and connects only to addresses that the caller's judge has accepted; with `socket` as well, it
//! opens WebSockets the same way.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::time::Duration;
//! use toolgate_net::{HookHttpError, HookHttpRequest, post_hook};
//!
//! let request = HookHttpRequest {
//!     address: "192.0.2.1:80".parse().unwrap(),
//!     host: "example.org".to_owned(),
//!     target: "/hook".to_owned(),
//!     headers: Vec::new(),
//!     body: b"{}".to_vec(),
//!     timeout: Duration::from_secs(5),
//! };
//! // Not a loopback address, so nothing is sent.
//! let error = post_hook(request).await.unwrap_err();
//! assert!(matches!(error, HookHttpError::NotLoopback(_)));
//! # });
//! ```
//!
//! The crate does not decide which addresses a URL of a call may reach: that is policy.
//! Commands do not use it either; their network access goes through the proxy of the sandbox, in the crate `process`.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "this crate may open sockets")]

mod hook_http;
#[cfg(feature = "socket")]
mod local_socket;

mod listen;

#[cfg(feature = "http")]
mod http_client;
#[cfg(feature = "http")]
mod model_http;

#[cfg(feature = "web")]
pub mod web;

pub use hook_http::{HookHttpError, HookHttpRequest, HookHttpResponse, post_hook};
#[cfg(feature = "http")]
pub use http_client::{HttpClient, http_client};
pub use listen::{listen_tcp, listen_unix};
#[cfg(feature = "socket")]
pub use local_socket::open_local_socket;
#[cfg(feature = "http")]
pub use model_http::{ModelHttpClient, ModelHttpError, ModelHttpRequest, ModelHttpResponse};
