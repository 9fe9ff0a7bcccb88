//! Tests of real processes and of the sandbox, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and look at real files and processes"
)]

mod main {
    mod ordinary_commands;
    mod process_bench;
    mod process_ends;
    mod process_runs;
    mod sandbox_escapes;
    mod sandbox_rights;
}
