//! The built-in tools behind a real gate, on real files and with a real shell, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, and look at real files and processes"
)]

mod main {
    mod bash_desk;
    mod bash_properties;
    mod bash_sandbox;
    mod bash_survivors;
    mod bash_tasks;
}
