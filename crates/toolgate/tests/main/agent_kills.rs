//! Kills of the host, of the model server and of the program at random frames.

use std::path::Path;
use std::process::Command;

/// The short form of `scripts/host/kill_agent.py`; `TOOLGATE_KILLS` sets how many.
#[test]
fn a_kill_of_host_model_or_program_at_any_frame_leaves_a_session_that_resumes() {
    let kills = std::env::var("TOOLGATE_KILLS").unwrap_or_else(|_| "9".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/host/kill_agent.py");
    let output = Command::new("python3")
        .arg(script)
        .args([env!("CARGO_BIN_EXE_toolgate"), "--kills", &kills])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("{kills} kills")), "{text}");
}
