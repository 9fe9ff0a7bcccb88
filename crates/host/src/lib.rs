//! The host edge: an agent that another program drives, over standard streams.
//!
//! Two protocols are spoken. The control protocol is that of the official agent SDKs: one JSON object a line, prompts and
//! requests in both directions. The agent client protocol (ACP) is that of editors, and is in the module `acp` behind the
//! feature of the same name.
//!
//! Three types matter most:
//!
//! - [`HostDriver`] runs a session of the control protocol: it queues prompts, runs one turn at a time, answers the host's
//!   requests while a turn goes on, and ends when the host closes its side.
//! - [`HostRuntime`] is what the embedding program provides: settings, MCP servers, and the agent itself.
//! - [`ControlChannel`] sends requests to the host and waits for their answers. [`HostApprover`] asks for permission over
//!   it.
//!
//! A lost host is a refusal: a host that is gone, that withdraws the question or that answers with an error has not
//! allowed anything.
//!
//! ```
//! use serde_json::json;
//! use toolgate_host::{ControlChannel, ControlError, FrameWriter, HostInput, parse_host_line};
//!
//! let line = r#"{"type":"control_cancel_request","request_id":"tg_1"}"#;
//! assert_eq!(parse_host_line(line), Ok(HostInput::Cancel("tg_1".to_owned())));
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let channel = ControlChannel::new(FrameWriter::start(Box::pin(tokio::io::sink())));
//! let (answer, ()) = tokio::join!(
//!     channel.request(json!({ "subtype": "can_use_tool", "tool_name": "Bash" })),
//!     // The host exits while the question is open.
//!     async { channel.close() },
//! );
//! assert_eq!(answer, Err(ControlError::Lost));
//! # });
//! ```
//!
//! The crate does not load settings, start servers, build agents or decide about a call: the runtime and the gate do. It
//! knows no terminal.

#![forbid(unsafe_code)]

#[cfg(feature = "acp")]
pub mod acp;
mod control_channel;
mod fit_frame;
mod frame_renderer;
mod frame_writer;
mod host_driver;
mod host_input;
mod host_server;
mod permission_answer;

pub use control_channel::{ControlChannel, ControlError};
pub use frame_renderer::{FrameRenderer, host_mode_name, result_frame};
pub use frame_writer::FrameWriter;
pub use host_driver::{HostControls, HostDriver, HostHandles, HostRuntime, HostedAgent};
pub use host_input::{HostInput, HostPrompt, PromptPriority, parse_host_line};
pub use host_server::open_host_server;
pub use permission_answer::{HostApprover, PermissionUpdater, TurnInterrupt, rule_update, update_rules};
