//! The stores, in one process and in many.

#![expect(clippy::disallowed_methods, reason = "tests use real files and processes")]
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod main {
    mod memory_files;
    mod schedule_claims;
    mod task_model;
    mod task_processes;
}
