//! The example programs run, since each is where a reader starts.

use std::process::Command;

#[test]
fn every_example_runs() {
    // Built beside the test by `cargo test`.
    let dir = std::path::Path::new(env!("CARGO_BIN_EXE_toolgate")).with_file_name("examples");
    for name in ["tool", "source", "hook", "approver", "sink", "agent_loop"] {
        let status = Command::new(dir.join(name)).status().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(status.success(), "{name}");
    }
}
