//! What the tests of several crates share: fakes for people and tools, and the laws that every extension must keep.
//!
//! Fakes stand in for models, people and clocks only; files, shells and servers are real in our tests.

#![forbid(unsafe_code)]

mod approver_laws;
mod fakes;
mod gate_fixture;
pub mod model;
mod source_laws;
mod tool_laws;

pub use approver_laws::{ApproverBehaviour, FakeApprover, check_approver_laws};
pub use fakes::{ProbeBehaviour, ProbeInput, ProbeTool, allow_all, gate_with, session_in, workspace_at};
pub use gate_fixture::{GateFixture, plain_gate};
pub use source_laws::check_source_laws;
pub use tool_laws::{check_tool_laws, tool_names};
