//! How a language server is configured: an entry of `lspServers`, or of the table of well-known servers.

use crate::readiness::ReadySignal;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a server may take to answer `initialize`, unless its entry says otherwise.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(45);
/// How long it may take to answer `shutdown`.
pub const DEFAULT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take for one answer.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is restarted after a crash.
pub const DEFAULT_MAX_RESTARTS: u32 = 3;
/// The longest of these times that an entry may set.
const MAX_CONFIGURED_TIMEOUT: Duration = Duration::from_secs(600);

/// One configured language server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LspServerEntry {
    /// Its name.
    pub name: String,
    /// The program: a path, or a name that is looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables set for it.
    pub env: BTreeMap<String, String>,
    /// The language id of each file name extension, with the dot.
    pub languages: BTreeMap<String, String>,
    /// Files that mark the root of a project of this language.
    pub root_markers: Vec<String>,
    /// What `initialize` sends along.
    pub initialization_options: Value,
    /// The answer to `workspace/configuration`.
    pub settings: Value,
    /// The directory that the server serves, relative to the workspace root; absent, the root of the project is used.
    pub workspace_folder: Option<String>,
    /// The time limit of its start.
    pub startup_timeout: Duration,
    /// The time limit of its shutdown.
    pub shutdown_timeout: Duration,
    /// The time limit of each answer.
    pub request_timeout: Duration,
    /// Whether it is started again after a crash.
    pub restart_on_crash: bool,
    /// How often.
    pub max_restarts: u32,
    /// Whether its diagnostics are shown after edits.
    pub diagnostics: bool,
    /// Directories that it may write to: absolute, below `~/`, or relative to its root.
    pub writable: Vec<String>,
    /// How it shows that it is ready.
    pub ready: ReadySignal,
    /// The file that configures it; absent for the table of well-known servers.
    pub origin: Option<String>,
    /// How it is installed, for the message that it is missing.
    pub install: Option<String>,
}

impl LspServerEntry {
    /// An entry with the defaults.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            languages: BTreeMap::new(),
            root_markers: Vec::new(),
            initialization_options: Value::Null,
            settings: Value::Null,
            workspace_folder: None,
            startup_timeout: DEFAULT_STARTUP_TIMEOUT,
            shutdown_timeout: DEFAULT_SHUTDOWN_TIMEOUT,
            request_timeout: DEFAULT_REQUEST_TIMEOUT,
            restart_on_crash: true,
            max_restarts: DEFAULT_MAX_RESTARTS,
            diagnostics: true,
            writable: Vec::new(),
            ready: ReadySignal::default(),
            origin: None,
            install: None,
        }
    }

    /// The language id of a file, by the extension of its name.
    pub fn language_of(&self, file_name: &str) -> Option<&str> {
        let known = self.languages.iter().filter(|(extension, _)| file_name.ends_with(extension.as_str()));
        known.max_by_key(|(extension, _)| extension.len()).map(|(_, language)| language.as_str())
    }
}

/// Reads the value of `lspServers`. An invalid entry is left out with a message; the others are used.
pub fn read_servers(value: &Value, origin: &str) -> (Vec<LspServerEntry>, Vec<String>) {
    let mut servers = Vec::new();
    let mut problems = Vec::new();
    let Some(entries) = value.as_object() else {
        return (servers, vec![format!("{origin}: `lspServers` must be an object")]);
    };
    for (name, entry) in entries {
        match read_server(name, entry) {
            Ok(mut server) => {
                server.origin = Some(origin.to_owned());
                servers.push(server);
            }
            Err(problem) => problems.push(format!("{origin}: lspServers.{name}: {problem}")),
        }
    }
    (servers, problems)
}

/// Reads one entry. A server without an extension is rejected, because no file would ever reach it.
fn read_server(name: &str, entry: &Value) -> Result<LspServerEntry, String> {
    let entry = entry.as_object().ok_or("must be an object")?;
    let command = read_text(entry, "command")?.filter(|command| !command.is_empty());
    let mut server = LspServerEntry::new(name, command.ok_or("`command` is missing")?);
    server.args = read_texts(entry, "args")?;
    server.env = read_map(entry, "env")?;
    server.languages = read_map(entry, "extensionToLanguage")?;
    if server.languages.is_empty() {
        return Err("`extensionToLanguage` must name at least one extension".to_owned());
    }
    if let Some(extension) = server.languages.keys().find(|key| !key.starts_with('.') || key.len() < 2) {
        return Err(format!("extension `{extension}` must start with a dot"));
    }
    server.root_markers = read_texts(entry, "rootMarkers")?;
    server.writable = read_texts(entry, "writable")?;
    server.workspace_folder = read_text(entry, "workspaceFolder")?;
    server.initialization_options = entry.get("initializationOptions").cloned().unwrap_or(Value::Null);
    server.settings = entry.get("settings").cloned().unwrap_or(Value::Null);
    server.startup_timeout = read_millis(entry, "startupTimeout", DEFAULT_STARTUP_TIMEOUT)?;
    server.shutdown_timeout = read_millis(entry, "shutdownTimeout", DEFAULT_SHUTDOWN_TIMEOUT)?;
    server.request_timeout = read_millis(entry, "requestTimeout", DEFAULT_REQUEST_TIMEOUT)?;
    server.restart_on_crash = read_flag(entry, "restartOnCrash", true)?;
    server.diagnostics = read_flag(entry, "diagnostics", true)?;
    if let Some(restarts) = entry.get("maxRestarts") {
        let restarts = restarts.as_u64().and_then(|number| u32::try_from(number).ok());
        server.max_restarts = restarts.ok_or("`maxRestarts` must be a number")?;
    }
    Ok(server)
}

/// Reads an optional string; `null` counts as absent.
fn read_text(entry: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` must be a text")),
    }
}

/// Reads a list of strings; empty if absent.
fn read_texts(entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let invalid = || format!("`{key}` must be a list of texts");
    match entry.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(invalid)).collect()
        }
        Some(_) => Err(invalid()),
    }
}

/// Reads an object of strings; empty if absent.
fn read_map(entry: &Map<String, Value>, key: &str) -> Result<BTreeMap<String, String>, String> {
    let invalid = || format!("`{key}` must be an object of texts");
    match entry.get(key) {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(items)) => items
            .iter()
            .map(|(name, item)| Ok((name.clone(), item.as_str().ok_or_else(invalid)?.to_owned())))
            .collect(),
        Some(_) => Err(invalid()),
    }
}

/// Reads a boolean. Other types are rejected, so that `"false"` does not count as true.
fn read_flag(entry: &Map<String, Value>, key: &str, default: bool) -> Result<bool, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("`{key}` must be true or false")),
    }
}

/// A time in milliseconds.
fn read_millis(entry: &Map<String, Value>, key: &str, default: Duration) -> Result<Duration, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value
            .as_u64()
            .map(|millis| Duration::from_millis(millis).min(MAX_CONFIGURED_TIMEOUT))
            .ok_or_else(|| format!("`{key}` must be a number of milliseconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_invalid_entry_is_left_out_and_the_others_are_used() {
        let languages = json!({ ".vue": "vue" });
        let value = json!({
            "good": { "command": "vls", "args": ["--stdio"], "extensionToLanguage": languages, "maxRestarts": 1,
                      "startupTimeout": 1000, "transport": "socket" },
            "no-command": { "extensionToLanguage": languages },
            "no-language": { "command": "x" },
            "bad-extension": { "command": "x", "extensionToLanguage": { "vue": "vue" } },
            "bad-args": { "command": "x", "args": "y", "extensionToLanguage": languages },
            "text": "x",
        });
        let (servers, problems) = read_servers(&value, "settings.json");
        assert_eq!(servers.len(), 1);
        assert_eq!((servers[0].max_restarts, servers[0].startup_timeout), (1, Duration::from_secs(1)));
        assert_eq!(problems.len(), 5);
        assert!(problems[0].starts_with("settings.json: lspServers.no-command: "));
    }

    #[test]
    fn the_longest_extension_decides_the_language() {
        let mut server = LspServerEntry::new("x", "x");
        server.languages = [(".ts", "typescript"), (".d.ts", "declaration")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into();
        assert_eq!(server.language_of("a.ts"), Some("typescript"));
        assert_eq!(server.language_of("a.d.ts"), Some("declaration"));
        assert_eq!(server.language_of("a.js"), None);
    }
}
