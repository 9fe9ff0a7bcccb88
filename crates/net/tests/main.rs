//! The web client against a server and a DNS server that misbehave on purpose.

#![cfg(feature = "web")]
#![expect(clippy::disallowed_methods, reason = "tests open sockets and start a server")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and prints its figures"
)]

mod main {
    mod encodings;
    mod hostile_dns;
    mod test_server;
}
