//! Fuzz target for addresses; `cargo xtask fuzz urls` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Url, text));
