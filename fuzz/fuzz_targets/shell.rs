//! Any text has an answer, always the same, soon, and what is doubted or hidden never looks harmless.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::{Duration, Instant};
use toolgate_policy::Workspace;
use toolgate_policy::shell::analyse;
use toolgate_proto::{AbsPath, CommandLine, Shell};

fuzz_target!(|text: &str| {
    let root = AbsPath::new("/ws").expect("absolute");
    let workspace = Workspace { cwd: root.clone(), roots: vec![root.clone()], home: AbsPath::new("/home/ann").ok() };
    let line = CommandLine { text: text.to_owned(), shell: Shell::Bash, cwd: root, unsandboxed: false };
    let start = Instant::now();
    let analysis = analyse(&line, &workspace);
    // Far above what an unsanitised build needs for the longest input.
    assert!(start.elapsed() < Duration::from_millis(500), "slow: {} bytes", text.len());
    for part in &analysis.parts {
        assert!(!part.read_only || part.allow_text.is_some());
        assert!(!part.deny_texts.is_empty() || part.allow_text.is_none() || part.program.is_none());
    }
});
