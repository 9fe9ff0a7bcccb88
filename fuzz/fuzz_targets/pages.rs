//! Fuzz target for HTML pages; `cargo xtask fuzz pages` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Page, text));
