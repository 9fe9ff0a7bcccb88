//! Fuzz target for command lines; `cargo xtask fuzz shell` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Command, text));
