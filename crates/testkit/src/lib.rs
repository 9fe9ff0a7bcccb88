//! What the tests of several crates share: fakes, properties that every extension must have, and a model of policy.
//!
//! - [`ProbeTool`] and [`FakeApprover`] stand in for tools and users. Only models, users and clocks are faked; files,
//!   shells and servers are real in our tests.
//! - [`GateFixture`] is a real gate in front of a real temporary directory.
//! - [`check_tool_properties`] and [`check_approval_properties`] check what must hold for every tool and every approver,
//!   those of other projects as well.
//! - [`model`] is a second, slow implementation of policy, as an oracle for the engine.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use std::sync::Arc;
//! use toolgate_gate::ApprovalAnswer;
//! use toolgate_testkit::{ApproverBehaviour, FakeApprover, check_approval_properties};
//!
//! // An approver that never answers: the call is refused after the timeout, and the tool does not run.
//! let silent = Arc::new(FakeApprover(ApproverBehaviour::Silent));
//! let code = check_approval_properties(silent, false).await;
//! assert_eq!(code, Some(toolgate_proto::Code::ApprovalTimedOut));
//! # });
//! ```
//!
//! It has no assertions about particular tools, and no crate depends on it outside of tests.

#![forbid(unsafe_code)]

mod approval_properties;
mod gate_fixture;
pub mod model;
mod probe_tool;
mod source_properties;
mod tool_properties;

pub use approval_properties::{ApproverBehaviour, FakeApprover, check_approval_properties};
pub use gate_fixture::{GateFixture, plain_gate};
pub use probe_tool::{ProbeBehaviour, ProbeInput, ProbeTool, allow_all, gate_with, session_in, workspace_at};
pub use source_properties::check_source_properties;
pub use tool_properties::{check_tool_properties, tool_names};
