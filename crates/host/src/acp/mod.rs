//! The agent client protocol: an editor drives the agent over standard streams.
//!
//! JSON-RPC, one message a line; the crate `agent-client-protocol` reads and writes it.
//! An editor opens sessions, each with an agent of its own, and sends prompts; text, thoughts, calls with their diffs, the
//! plan and the mode go back as updates, and what policy asks is asked in the editor.
//! The editor's own files and terminals are tools like any other ([`EditorSource`]): rules, approvals and records hold.
//!
//! An editor that is gone, does not answer, or answers with an error or `cancelled` has not allowed anything.

mod acp_approver;
mod acp_client;
mod acp_server;
mod acp_session;
mod acp_updates;
mod ask_in_editor;
mod call_content;
mod editor_servers;
mod editor_tools;
mod prompt_content;
mod replay_history;

pub use acp_approver::AcpApprover;
pub use acp_client::AcpClient;
pub use acp_server::{AcpRuntime, AcpServer, AcpSessionRequest, AcpStoredSession};
pub use acp_session::AcpSession;
pub use acp_updates::AcpUpdates;
pub use editor_tools::EditorSource;
