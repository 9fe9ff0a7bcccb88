//! The web client: fetches pages for tools, and lets a judge decide about every hop and every address.
//!
//! A name is resolved once per hop, every address of the answer is judged, and the connection goes to one of exactly these
//! addresses; a second look-up could be answered differently (DNS rebinding).
//! Redirects are followed here, one at a time, because each is a new request to a place that the server chose.
//! Connections are not kept: a connection that was allowed for one call must not serve another.
//!
//! The client is built on hyper and not on reqwest: reqwest neither connects to an address behind a proxy that the caller
//! vetted, nor counts bytes before decompression.

mod decode_body;
mod dial;
mod fetch_error;
mod host_pace;
mod name_resolver;
mod page_cache;
mod proxy_table;
mod read_body;
mod robots;
mod web_client;
mod web_page;
#[cfg(feature = "socket")]
mod web_socket;

pub use fetch_error::FetchError;
pub use name_resolver::{NameResolver, SystemResolver};
pub use page_cache::PageCache;
pub use proxy_table::{ProxyTable, WebProxy};
pub use robots::RobotsFile;
pub use web_client::{
    FetchOptions, FetchOutcome, HopJudge, RedirectVerdict, WebClient, WebClientConfig, WebLimits, WebRequest,
    WebResponse,
};
pub use web_page::{FetchedHop, StoredText, WebPage, status_text};
#[cfg(feature = "socket")]
pub use web_socket::{SocketMessage, WebSocketReader};
