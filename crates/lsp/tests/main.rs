//! The tool behind a real gate, with fake servers, and with real ones where they are installed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests fail by panicking, and use real files and servers"
)]

mod main {
    mod answers;
    mod edits;
    mod fake_server;
    mod faults;
    mod fuzz_seeds;
    mod real_edits;
    mod real_servers;
    mod write_tool;
}
