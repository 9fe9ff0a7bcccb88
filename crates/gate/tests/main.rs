//! The gate's properties, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and make their own files"
)]

mod main {
    mod approvals;
    mod boundary;
    mod bus;
    mod hook_events;
    mod hooks;
    mod invocation;
    mod law;
    mod ledger;
    mod questions;
    mod registry;
    mod schedule;
    mod shaping;
    mod spans;
    mod stage_details;
    mod stage_outcomes;
    mod stages;
    mod stream;
    mod writers;
}
