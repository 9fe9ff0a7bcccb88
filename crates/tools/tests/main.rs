//! The tools, called through the gate.

#![expect(clippy::disallowed_methods, reason = "tests are made of real files")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests may"
)]

mod main {
    mod search_behaviour;
    mod search_properties;
    mod search_rg;
    mod search_trees;
}
