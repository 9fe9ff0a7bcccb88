//! The user's pager, for long output at a terminal.

use crate::ambient::AmbientEnvironment;
use std::io::Write;
use std::process::{Command, Stdio};

/// The pager of a user who set none: quits at once if the text fits, keeps colours, leaves the text on the screen.
const DEFAULT_PAGER: &str = "less -FRX";

/// Shows text in the pager that `TOOLGATE_PAGER` or `PAGER` names, and waits for its end. Returns false if it could not
/// be started, or if it is set to nothing or to `cat`.
///
/// The pager comes from the user's environment and gets it unchanged: it is the user's own program, at the user's own
/// terminal, and is not started for calls.
#[expect(
    clippy::disallowed_methods,
    reason = "a pager is the user's program at the user's terminal, not a tool's"
)]
pub fn page_text(ambient: &AmbientEnvironment, text: &str) -> bool {
    let named = ["TOOLGATE_PAGER", "PAGER"].iter().find_map(|name| ambient.env.get(*name));
    let pager = named.map_or(DEFAULT_PAGER, |pager| pager.trim());
    if pager.is_empty() || pager == "cat" {
        return false;
    }
    let started = Command::new("sh").arg("-c").arg(format!("exec {pager}")).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = started else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A pager that the user ends before the end of the text closes the pipe.
        let _ = input.write_all(text.as_bytes());
    }
    // Without `less`, the shell ends with 127 and has shown nothing.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}
