//! Fuzz target for settings files; `cargo xtask fuzz settings` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Settings, text));
