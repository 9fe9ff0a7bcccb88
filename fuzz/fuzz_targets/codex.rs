//! Fuzz target for rules files of Codex; `cargo xtask fuzz codex` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Codex, text));
