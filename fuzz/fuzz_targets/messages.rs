//! Fuzz target for messages of language servers; `cargo xtask fuzz messages` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Message, text));
