//! The protocol as clients and servers meet it: real streams, real processes, real ports.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails loudly, and arranges its own files and processes"
)]

mod main {
    mod elicitation;
    mod faults;
    mod http_limits;
    mod server_fixture;
    mod server_requests;
    mod upstream_servers;
}
