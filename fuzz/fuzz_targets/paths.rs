//! Fuzz target for paths and path patterns; `cargo xtask fuzz paths` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Path, text));
