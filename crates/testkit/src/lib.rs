//! What the tests of several crates share: fakes for people and tools, and the laws that every extension must keep.
//!
//! Fakes stand in for models, people and clocks only; files, shells and servers are real in our tests.

#![forbid(unsafe_code)]

mod approver_laws;
mod fakes;
pub mod model;
mod tool_laws;
mod workplace;

pub use approver_laws::{ApproverBehaviour, FakeApprover, approver_laws};
pub use fakes::{Probe, ProbeBehaviour, ProbeInput, allow_all, gate_with, session_in, workspace_at};
pub use tool_laws::{tool_laws, tool_names};
pub use workplace::{GateFixture, plain_gate};
