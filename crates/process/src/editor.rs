//! The user's editor, for texts that people keep in files of toolgate.

use crate::ambient::AmbientEnvironment;
use std::process::Command;
use toolgate_proto::AbsPath;

/// The editor of a user who set none.
const DEFAULT_EDITOR: &str = "vi";

/// Opens a file in the editor that `VISUAL` or `EDITOR` names, and waits for its end. The error says what went wrong.
///
/// As with the pager, it is the user's own program with the user's environment, and is not started for calls.
#[expect(
    clippy::disallowed_methods,
    reason = "an editor is the user's program at the user's terminal, not a tool's"
)]
pub fn edit_file(ambient: &AmbientEnvironment, file: &AbsPath) -> Result<(), String> {
    let named = ["VISUAL", "EDITOR"].iter().find_map(|name| ambient.env.get(*name));
    let editor = named.map(|editor| editor.trim()).filter(|editor| !editor.is_empty());
    let editor = editor.unwrap_or(DEFAULT_EDITOR);
    // Through a shell, because the variable may have options: `code --wait`.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec {editor} \"$1\"")).arg("sh").arg(file.as_path());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor `{editor}` failed ({status}); set EDITOR to another one")),
        Err(error) => Err(format!("the editor `{editor}` could not be started: {error}; set EDITOR")),
    }
}
