//! The built-in tools through the real gate, on real files.

#![expect(clippy::disallowed_methods, reason = "tests are made of real files")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]
#![expect(
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests cut texts they know, and tell their figures"
)]

mod main {
    mod bash_desk;
    mod bash_oracle;
    mod bash_ordinary;
    mod bash_planting;
    mod bash_planting_ways;
    mod bash_properties;
    mod bash_sandbox;
    mod bash_survivors;
    mod bash_tasks;
    /// Shared with the oracle of the policy crate, which runs the same lines without a sandbox.
    #[expect(dead_code, reason = "the policy crate uses the rest")]
    #[path = "../../../policy/tests/shell/dice.rs"]
    mod dice;
    mod files_corpus;
    mod files_edit;
    mod files_notebook;
    #[cfg(feature = "pdf")]
    mod files_pdf;
    mod files_properties;
    mod files_race;
    mod files_read;
    mod files_room;
    mod files_torture;
    mod files_undo;
    mod files_watch;
    mod files_write;
    mod git_oracle;
    mod git_repositories;
    mod search_behaviour;
    mod search_properties;
    mod search_rg;
    mod search_trees;
}
