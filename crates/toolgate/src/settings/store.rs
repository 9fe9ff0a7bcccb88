//! A small private file of toolgate's own: changed under a lock, replaced wholly or not at all.

use super::SettingsError;
use super::locate::read;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolgate_proto::AbsPath;

/// Reads a list; a file that is not there is an empty one.
pub(super) fn load<T: DeserializeOwned>(file: &AbsPath) -> Result<Vec<T>, SettingsError> {
    let Some(text) = read(file)? else { return Ok(Vec::new()) };
    serde_json::from_str(&text).map_err(|error| SettingsError {
        file: file.to_string(),
        line: error.line(),
        message: format!("the file is damaged: {error}"),
        fix: "repair it, or move it away; what it remembered must then be trusted and granted again"
            .to_owned(),
    })
}

/// Changes a list as it is in the file now. Several processes may do so at once, and no change is lost; a file that is
/// damaged stays as it is.
pub(super) fn update<T: Serialize + DeserializeOwned, R>(
    file: &AbsPath,
    change: impl FnOnce(&mut Vec<T>) -> R,
) -> Result<R, SettingsError> {
    update_with(file, |list| Ok(change(list)))
}

/// The same for a change that can fail; nothing is written then. The lock is held until the change is done.
pub(super) fn update_with<T: Serialize + DeserializeOwned, R>(
    file: &AbsPath,
    change: impl FnOnce(&mut Vec<T>) -> Result<R, SettingsError>,
) -> Result<R, SettingsError> {
    let _lock =
        toolgate_files::lock_state_file(file).map_err(|problem| write_error(file, &problem.to_string()))?;
    let mut list = load(file)?;
    let before = render_list(file, &list)?;
    let out = change(&mut list)?;
    let after = render_list(file, &list)?;
    if after != before {
        toolgate_files::replace_state_file(file, after.as_bytes())
            .map_err(|problem| write_error(file, &problem.to_string()))?;
    }
    Ok(out)
}

fn render_list<T: Serialize>(file: &AbsPath, list: &[T]) -> Result<String, SettingsError> {
    let mut text =
        serde_json::to_string_pretty(list).map_err(|error| write_error(file, &error.to_string()))?;
    text.push('\n');
    Ok(text)
}

fn write_error(file: &AbsPath, problem: &str) -> SettingsError {
    SettingsError {
        file: file.to_string(),
        line: 1,
        message: format!("it cannot be written: {problem}"),
        fix: "make the state directory writable, or set TOOLGATE_STATE_DIR".to_owned(),
    }
}
