//! The gate's properties, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking and make their own files"
)]

mod main {
    mod approval_bus;
    mod approvals;
    mod batch_equivalence;
    mod boundary;
    mod fussy_tool;
    mod hook_events;
    mod hooks;
    mod invocation;
    mod ledger;
    mod questions;
    mod registry;
    mod result_truncation;
    mod schedule;
    mod spans;
    mod stage_details;
    mod stage_outcomes;
    mod stages;
    mod stream;
    mod writers;
}
