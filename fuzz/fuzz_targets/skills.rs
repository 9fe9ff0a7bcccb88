//! Fuzz target for skills, agents and plugin manifests; `cargo xtask fuzz skills` runs it.

#![no_main]

use toolgate_fuzz::{InputKind, check};

libfuzzer_sys::fuzz_target!(|text: &str| check(InputKind::Skill, text));
