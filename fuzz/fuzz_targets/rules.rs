//! Fuzz target for permission rules; `cargo xtask fuzz rules` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Rule, text));
