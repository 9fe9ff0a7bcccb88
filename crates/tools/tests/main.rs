//! The built-in tools through the real gate, on real files.

#![expect(clippy::disallowed_methods, reason = "tests use real files")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![expect(
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests slice texts they know, and print their figures"
)]

mod main {
    mod bash_compatibility;
    mod bash_generated;
    mod bash_oracle;
    mod bash_persistence;
    mod bash_persistence_attempts;
    mod bash_persistence_files;
    mod bash_process_cleanup;
    mod bash_properties;
    mod bash_sandbox;
    mod bash_tasks;
    mod file_fixture;
    mod files_edit;
    mod files_fault_injection;
    mod files_notebook;
    mod files_path_corpus;
    #[cfg(feature = "pdf")]
    mod files_pdf;
    mod files_preview;
    mod files_properties;
    mod files_read;
    mod files_symlink_race;
    mod files_undo;
    mod files_watch;
    mod files_write;
    /// The check of the fuzz target, run with its seeds.
    #[cfg(feature = "web")]
    #[path = "../../../../fuzz/src/pages.rs"]
    mod fuzz_pages;
    mod git_oracle;
    mod git_repositories;
    mod memory_properties;
    mod monitors;
    mod plan_and_questions;
    /// Shared with the oracle of the policy crate, which runs the same command lines without a sandbox.
    #[expect(dead_code, reason = "the policy crate uses the rest")]
    #[path = "../../../policy/tests/shell/random_numbers.rs"]
    mod random_numbers;
    mod search_behaviour;
    mod search_model;
    mod search_properties;
    mod search_rg;
    mod shell_fixture;
    #[cfg(feature = "web")]
    mod socket_monitors;
    mod task_properties;
    #[cfg(feature = "web")]
    mod web_browser;
    #[cfg(feature = "web")]
    mod web_browser_tools;
    #[cfg(feature = "web")]
    mod web_fixture;
    #[cfg(feature = "web")]
    mod web_hostile;
    #[cfg(feature = "web")]
    mod web_properties;
    #[cfg(feature = "web")]
    mod web_search;
    mod worktrees;
}
