//! What a server says by itself: its requests and notifications, and what is remembered of them.
//!
//! Every request is answered, because servers wait for the answers.
//! A request to apply an edit is refused: only a call through the gate changes files.

use crate::connection::ServerMessageHandler;
use crate::diagnostic_store::DiagnosticStore;
use crate::language_server::FileEvent;
use crate::message::{METHOD_NOT_FOUND_CODE, RpcError};
use crate::readiness::{ReadySignal, ServerReadiness};
use crate::uri_path::{to_path, to_uri};
use crate::watch_patterns::WatchPatterns;
use gen_lsp_types::PublishDiagnosticsParams;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use toolgate_proto::AbsPath;

/// The method that notifies a server of files that changed.
pub(crate) const WATCHED_FILES: &str = "workspace/didChangeWatchedFiles";
/// Dynamic registrations that are kept.
const MAX_REGISTRATIONS: usize = 1_000;
/// Messages for the user that are kept, the newest.
const MAX_LOG_LINES: usize = 20;
/// Characters of such a message.
const MAX_LOG_CHARS: usize = 300;

/// What a running server has sent so far, apart from answers.
pub(crate) struct LspServerState {
    /// The directory that the server serves.
    root: AbsPath,
    /// The answer to `workspace/configuration`.
    settings: Value,
    /// Whether it has indexed the project.
    readiness: Mutex<ServerReadiness>,
    /// What it has published.
    diagnostics: Mutex<DiagnosticStore>,
    /// Dynamic registrations, by id.
    registered: Mutex<BTreeMap<String, MethodRegistration>>,
    /// Its last messages for the user.
    log: Mutex<VecDeque<String>>,
    /// Counts what a waiting call may be interested in: progress, status, diagnostics.
    changes: watch::Sender<u64>,
}

/// A method that a server registered after its start.
struct MethodRegistration {
    /// The method.
    method: String,
    /// The files that it watches; empty for other methods.
    patterns: WatchPatterns,
    /// The name that its diagnostics are asked for with.
    identifier: Option<String>,
}

/// Locks a value; a panic of another thread cannot leave it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LspServerState {
    /// The state of a server that has sent nothing yet.
    pub(crate) fn new(root: AbsPath, settings: Value, signal: ReadySignal) -> Self {
        Self {
            root,
            settings,
            readiness: Mutex::new(ServerReadiness::new(signal)),
            diagnostics: Mutex::default(),
            registered: Mutex::default(),
            log: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Whether it has indexed the project.
    pub(crate) fn readiness(&self) -> MutexGuard<'_, ServerReadiness> {
        lock(&self.readiness)
    }

    /// What it has published.
    pub(crate) fn diagnostics(&self) -> MutexGuard<'_, DiagnosticStore> {
        lock(&self.diagnostics)
    }

    /// Whether the server registered a method after its start.
    pub(crate) fn is_registered(&self, method: &str) -> bool {
        lock(&self.registered).values().any(|registered| registered.method == method)
    }

    /// Whether the server registered for this event of a file.
    pub(crate) fn watches(&self, path: &AbsPath, event: FileEvent) -> bool {
        lock(&self.registered).values().any(|registered| registered.patterns.matches(path, event))
    }

    /// The name that a registration gives to the diagnostics that are asked for.
    pub(crate) fn diagnostics_identifier(&self) -> Option<String> {
        lock(&self.registered).values().find_map(|registered| registered.identifier.clone())
    }

    /// The directory that the server serves.
    pub(crate) fn root(&self) -> &AbsPath {
        &self.root
    }

    /// The last messages for the user, oldest first.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        lock(&self.log).iter().cloned().collect()
    }

    /// Waits until the server is ready, at most for `limit`. False if it is not.
    pub(crate) async fn wait_ready(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut changes = self.changes.subscribe();
        loop {
            let now = Instant::now();
            let ready_at = self.readiness().ready_at(now);
            let next = match ready_at {
                Some(at) if at <= now => return true,
                Some(at) => at.min(deadline),
                None => deadline,
            };
            if now >= deadline {
                return false;
            }
            let _ = timeout_at(next, changes.changed()).await;
        }
    }

    /// Waits until `check` has a result, asked again after each message of the server.
    pub(crate) async fn wait_for<T>(
        &self,
        deadline: Instant,
        check: impl Fn(&Self) -> Option<T>,
    ) -> Option<T> {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(found) = check(self) {
                return Some(found);
            }
            if timeout_at(deadline, changes.changed()).await.is_err() {
                return check(self);
            }
        }
    }

    /// Wakes calls that wait for the server.
    fn note_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Keeps dynamic registrations.
    fn register(&self, params: &Value) {
        let entries = params.get("registrations").and_then(Value::as_array).into_iter().flatten();
        let mut registered = lock(&self.registered);
        for entry in entries {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
            if let (Some(id), Some(method)) = (text("id"), text("method"))
                && registered.len() < MAX_REGISTRATIONS
            {
                let options = entry.get("registerOptions").unwrap_or(&Value::Null);
                let patterns = match method.as_str() {
                    WATCHED_FILES => WatchPatterns::read(options, &self.root),
                    _ => WatchPatterns::default(),
                };
                let identifier = options.get("identifier").and_then(Value::as_str).map(str::to_owned);
                let identifier = identifier.filter(|_| method == "textDocument/diagnostic");
                registered.insert(id, MethodRegistration { method, patterns, identifier });
            }
        }
    }

    /// Forgets dynamic registrations.
    fn unregister(&self, params: &Value) {
        // The protocol spells it `unregisterations`.
        let entries = params.get("unregisterations").and_then(Value::as_array).into_iter().flatten();
        let mut registered = lock(&self.registered);
        for id in entries.filter_map(|entry| entry.get("id").and_then(Value::as_str)) {
            registered.remove(id);
        }
    }

    /// The settings that one item of `workspace/configuration` asks for: the value at its dotted section.
    fn configuration(&self, item: &Value) -> Value {
        let section = item.get("section").and_then(Value::as_str).unwrap_or_default();
        let found = section
            .split('.')
            .filter(|part| !part.is_empty())
            .try_fold(&self.settings, |value, part| value.get(part));
        found.cloned().unwrap_or(Value::Null)
    }

    /// Keeps a message for the user.
    fn add_log(&self, params: &Value) {
        let Some(message) = params.get("message").and_then(Value::as_str) else { return };
        let mut log = lock(&self.log);
        if log.len() >= MAX_LOG_LINES {
            log.pop_front();
        }
        log.push_back(message.chars().take(MAX_LOG_CHARS).collect());
    }

    /// Keeps published diagnostics; those of other URIs than files are dropped.
    fn publish(&self, params: &RawValue) {
        let Ok(published) = serde_json::from_str::<PublishDiagnosticsParams>(params.get()) else { return };
        let Some(path) = to_path(&published.uri) else { return };
        self.diagnostics().publish(path, published.version, published.diagnostics);
        self.note_change();
    }
}

/// The parameters as JSON; `null` if there are none.
fn parse_params(params: Option<&RawValue>) -> Value {
    params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or(Value::Null)
}

impl ServerMessageHandler for LspServerState {
    fn handle_request(&self, method: &str, params: Option<&RawValue>) -> Result<Value, RpcError> {
        match method {
            "workspace/configuration" => {
                let params = parse_params(params);
                let items = params.get("items").and_then(Value::as_array);
                Ok(items.into_iter().flatten().map(|item| self.configuration(item)).collect())
            }
            "workspace/workspaceFolders" => {
                Ok(json!([{ "uri": to_uri(&self.root).0, "name": self.root.to_string() }]))
            }
            "client/registerCapability" => {
                self.register(&parse_params(params));
                self.note_change();
                Ok(Value::Null)
            }
            "client/unregisterCapability" => {
                self.unregister(&parse_params(params));
                Ok(Value::Null)
            }
            "workspace/applyEdit" => Ok(json!({
                "applied": false,
                "failureReason": "files change only through calls that were judged",
            })),
            "window/showDocument" => Ok(json!({ "success": false })),
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/inlineValue/refresh"
            | "workspace/codeLens/refresh"
            | "workspace/foldingRange/refresh" => Ok(Value::Null),
            _ => {
                Err(RpcError { code: METHOD_NOT_FOUND_CODE, message: format!("`{method}` is not supported") })
            }
        }
    }

    fn handle_notification(&self, method: &str, params: Option<&RawValue>) {
        match (method, params) {
            ("textDocument/publishDiagnostics", Some(params)) => self.publish(params),
            ("$/progress", params) => {
                self.readiness().note_progress(&parse_params(params));
                self.note_change();
            }
            ("experimental/serverStatus", params) => {
                self.readiness().note_status(&parse_params(params));
                self.note_change();
            }
            ("window/logMessage" | "window/showMessage", params) => {
                let params = parse_params(params);
                self.add_log(&params);
                self.readiness().note_log(&params);
                self.note_change();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> LspServerState {
        let settings = json!({ "python": { "analysis": { "typeCheckingMode": "strict" } } });
        LspServerState::new(AbsPath::root(), settings, ReadySignal::Immediate)
    }

    fn ask(state: &LspServerState, method: &str, params: &Value) -> Result<Value, RpcError> {
        let params = serde_json::value::to_raw_value(params).unwrap();
        state.handle_request(method, Some(&params))
    }

    #[test]
    fn a_server_never_applies_an_edit_by_itself() {
        let answer = ask(&state(), "workspace/applyEdit", &json!({ "edit": { "changes": {} } })).unwrap();
        assert_eq!(answer["applied"], false);
    }

    #[test]
    fn configuration_is_answered_item_by_item() {
        let items = json!({ "items": [{ "section": "python.analysis" }, { "section": "x" }, {}] });
        let answer = ask(&state(), "workspace/configuration", &items).unwrap();
        assert_eq!(answer[0], json!({ "typeCheckingMode": "strict" }));
        assert_eq!(answer[1], Value::Null);
        assert!(answer[2].get("python").is_some());
    }

    #[test]
    fn methods_are_registered_and_unregistered_and_unknown_requests_get_an_error() {
        let state = state();
        let method = "textDocument/diagnostic";
        ask(
            &state,
            "client/registerCapability",
            &json!({ "registrations": [{ "id": "1", "method": method }] }),
        )
        .unwrap();
        assert!(state.is_registered(method));
        ask(
            &state,
            "client/unregisterCapability",
            &json!({ "unregisterations": [{ "id": "1", "method": method }] }),
        )
        .unwrap();
        assert!(!state.is_registered(method));
        assert_eq!(ask(&state, "custom/thing", &Value::Null).unwrap_err().code, METHOD_NOT_FOUND_CODE);
    }
}
