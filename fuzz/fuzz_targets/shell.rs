//! `cargo xtask fuzz shell`.

#![no_main]

use toolgate_fuzz::{Kind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(Kind::ShellKind, text));
