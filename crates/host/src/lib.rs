//! The host edge: an agent driven by another program over standard streams.
//!
//! The control protocol is the one that the official agent SDKs speak: one JSON object a line, prompts and requests in,
//! messages and requests out.
//! [`HostDriver`] runs a session: it queues prompts, runs one turn at a time, answers the host's requests while a turn
//! goes on, and ends when the host closes its side.
//! What only the program around it can do (settings, servers, building the agent) it asks a [`HostRuntime`] for.
//!
//! A host that is gone, silent or answers with an error has not said yes to anything.

#![forbid(unsafe_code)]

#[cfg(feature = "acp")]
pub mod acp;
mod control_channel;
mod fit_frame;
mod frame_renderer;
mod frame_writer;
mod host_driver;
mod host_input;
mod host_questions;
mod host_server;
mod permission_answer;

pub use control_channel::{ControlChannel, ControlError};
pub use frame_renderer::{FrameRenderer, host_mode_name, result_frame};
pub use frame_writer::FrameWriter;
pub use host_driver::{HostControls, HostDriver, HostHandles, HostRuntime, HostedAgent};
pub use host_input::{HostInput, HostPrompt, parse_host_line};
pub use host_server::open_host_server;
pub use permission_answer::{HostApprover, PermissionUpdater, TurnInterrupt, rule_update, update_rules};
