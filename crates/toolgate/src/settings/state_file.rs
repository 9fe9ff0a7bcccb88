//! Lists in toolgate's own state files: updated under a lock and replaced atomically, so that concurrent processes lose
//! no change.

use super::SettingsError;
use super::load::read;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolgate_proto::AbsPath;

/// Reads a list; a missing file is an empty list.
pub(crate) fn load_state_file<T: DeserializeOwned>(file: &AbsPath) -> Result<Vec<T>, SettingsError> {
    let Some(text) = read(file)? else { return Ok(Vec::new()) };
    serde_json::from_str(&text).map_err(|error| SettingsError {
        file: file.to_string(),
        line: error.line(),
        message: format!("the file is damaged: {error}"),
        fix: "repair it, or move it away and grant what it contained again".to_owned(),
    })
}

/// Applies a change to the current content of a list. A damaged file is an error and stays unchanged.
pub(crate) fn update_state_file<T: Serialize + DeserializeOwned, R>(
    file: &AbsPath,
    change: impl FnOnce(&mut Vec<T>) -> R,
) -> Result<R, SettingsError> {
    try_update_state_file(file, |list| Ok(change(list)))
}

/// Applies a change that can fail; then nothing is written. The lock is held while `change` runs.
pub(crate) fn try_update_state_file<T: Serialize + DeserializeOwned, R>(
    file: &AbsPath,
    change: impl FnOnce(&mut Vec<T>) -> Result<R, SettingsError>,
) -> Result<R, SettingsError> {
    let _lock =
        toolgate_files::lock_state_file(file).map_err(|problem| write_error(file, &problem.to_string()))?;
    let mut list = load_state_file(file)?;
    let before = render_list(file, &list)?;
    let out = change(&mut list)?;
    let after = render_list(file, &list)?;
    if after != before {
        toolgate_files::replace_state_file(file, after.as_bytes())
            .map_err(|problem| write_error(file, &problem.to_string()))?;
    }
    Ok(out)
}

/// A list as the text of its file.
fn render_list<T: Serialize>(file: &AbsPath, list: &[T]) -> Result<String, SettingsError> {
    let mut text =
        serde_json::to_string_pretty(list).map_err(|error| write_error(file, &error.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// The error for a file that cannot be locked or written.
fn write_error(file: &AbsPath, problem: &str) -> SettingsError {
    SettingsError {
        file: file.to_string(),
        line: 1,
        message: format!("cannot write the file: {problem}"),
        fix: "make the state directory writable, or set TOOLGATE_STATE_DIR".to_owned(),
    }
}
