//! The shell analysis against the corpus, against real bash, and against itself.

#![expect(clippy::disallowed_methods, reason = "these tests run a real shell on real files")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that meets what it did not expect should stop"
)]

#[path = "shell/classes.rs"]
mod classes;
#[path = "shell/corpus.rs"]
mod corpus;
#[path = "shell/dice.rs"]
mod dice;
#[path = "shell/effects.rs"]
mod effects;
#[path = "shell/law.rs"]
mod law;
#[path = "shell/laws.rs"]
mod laws;
#[path = "shell/programs.rs"]
mod programs;
