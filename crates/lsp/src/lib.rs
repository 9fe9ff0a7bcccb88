//! Language servers behind toolgate's gate: the tool that asks them, and diagnostics in the results of edits.
//!
//! Three types matter most:
//!
//! - [`ServerPool`] knows which server serves which file, starts a server at the first call that needs it, restarts it
//!   after a crash and shuts it down when it is idle.
//! - [`LspSource`] brings the tool `LSP` behind a gate: definitions, references, hover, symbols, renames.
//! - [`EditDiagnostics`] is the hook that adds new problems to the results of calls that write files.
//!
//! ```
//! use serde_json::json;
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//! use toolgate_lsp::{LaunchOptions, LspSandbox, LspServerEntry, PoolOptions, ServerPool, StartPermission, read_servers};
//! use toolgate_proto::AbsPath;
//!
//! /// Lets no server start.
//! struct Refuse;
//! impl StartPermission for Refuse {
//!     fn check_start(&self, entry: &LspServerEntry) -> Result<Option<LspSandbox>, String> {
//!         Err(format!("`{}` is not trusted", entry.name))
//!     }
//! }
//!
//! let settings = json!({
//!     "pyright": { "command": "pyright-langserver", "args": ["--stdio"], "extensionToLanguage": { ".py": "python" } },
//!     "broken": { "command": "no-extensions" },
//! });
//! // An invalid entry is reported, and the others are used.
//! let (servers, problems) = read_servers(&settings, "settings.json");
//! assert_eq!(servers[0].language_of("main.py"), Some("python"));
//! assert_eq!(problems.len(), 1);
//!
//! let launch = LaunchOptions::new(BTreeMap::new(), AbsPath::new("/tmp").unwrap(), Arc::new(Refuse));
//! let pool = ServerPool::new(PoolOptions::new(servers, launch));
//! // Nothing is started before a call needs it.
//! assert!(!pool.has_running() && pool.status().len() == 1);
//! ```
//!
//! A server is not trusted. Its messages are limited in size and number (`framing.rs`, `connection.rs`), its answers are
//! checked against policy before they are shown (`found_place.rs`), its edits are a call of their own that names every
//! file (`edit_plan.rs`), and its process runs in a sandbox that the embedding program chooses ([`StartPermission`]).
//!
//! The crate does not know rules, terminals or any language: what is special about a server is a row in
//! `known_servers.rs`.

#![forbid(unsafe_code)]

mod apply_plan;
mod connection;
mod diagnostic_store;
mod document_text;
mod edit_diagnostics;
mod edit_plan;
mod found_place;
mod framing;
mod known_servers;
mod language_server;
mod launch_options;
mod lsp_input;
mod lsp_source;
mod lsp_tool;
mod message;
mod open_documents;
mod readiness;
mod server_entry;
mod server_pool;
mod server_program;
mod server_query;
mod server_state;
mod server_status;
mod uri_path;
mod watch_patterns;

// Positions and ranges are types of this crate in our signatures.
pub use gen_lsp_types;

pub use connection::RequestError;
pub use diagnostic_store::{CodeProblem, ProblemLevel};
pub use document_text::{ColumnUnit, DocumentText};
pub use edit_diagnostics::EditDiagnostics;
pub use framing::{
    FrameScan, FramingError, MAX_BODY_BYTES, MAX_HEADER_BYTES, MessageReader, frame_message, scan_frame,
};
pub use known_servers::known_servers;
pub use launch_options::{LaunchOptions, LspSandbox, StartPermission};
pub use lsp_input::{LspInput, LspOperation};
pub use lsp_source::{LspSource, register_without_servers};
pub use message::{RpcError, ServerMessage, parse_message};
pub use readiness::ReadySignal;
pub use server_entry::{
    DEFAULT_MAX_RESTARTS, DEFAULT_REQUEST_TIMEOUT, DEFAULT_SHUTDOWN_TIMEOUT, DEFAULT_STARTUP_TIMEOUT,
    LspServerEntry, read_servers,
};
pub use server_pool::{DEFAULT_IDLE_TIMEOUT, PoolOptions, ServerPool};
pub use server_program::find_server_program;
pub use server_status::{InstanceStatus, RunningServer, ServerStatus, read_running_servers};
