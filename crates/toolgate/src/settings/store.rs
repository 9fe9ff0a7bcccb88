//! A small private file of toolgate's own, read and written whole.

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
        message: format!("it cannot be read: {error}"),
        fix: "remove the file; what it remembered must then be trusted and granted anew".to_owned(),
    })
}

/// Writes a list.
pub(super) fn save<T: Serialize>(file: &AbsPath, list: &[T]) -> Result<(), SettingsError> {
    let failed = |problem: String| SettingsError {
        file: file.to_string(),
        line: 1,
        message: format!("it cannot be written: {problem}"),
        fix: "make the state directory writable, or set TOOLGATE_STATE_DIR".to_owned(),
    };
    let mut text = serde_json::to_string_pretty(list).map_err(|error| failed(error.to_string()))?;
    text.push('\n');
    toolgate_os::replace_own(file, text.as_bytes()).map_err(|problem| failed(problem.to_string()))
}
