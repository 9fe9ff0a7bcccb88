//! One running language server: its process, its connection, its documents.

use crate::connection::{RequestError, RpcConnection};
use crate::diagnostic_store::{CodeProblem, MAX_PER_FILE};
use crate::document_text::ColumnUnit;
use crate::launch_options::{LaunchOptions, LspSandbox, StartedProcess, start_process};
use crate::message::{CONTENT_MODIFIED_CODE, SERVER_CANCELLED_CODE};
use crate::open_documents::{DocumentSync, OpenDocument, OpenDocuments};
use crate::server_entry::LspServerEntry;
use crate::server_state::{LspServerState, WATCHED_FILES};
use crate::uri_path::to_uri;
use gen_lsp_types::{DocumentDiagnosticReport, PositionEncodingKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_files::{TreeChange, TreeWatcher, run_blocking};
use toolgate_process::ServerProcess;
use toolgate_proto::AbsPath;

/// How often a request is repeated when the server says that its content changed meanwhile.
const MAX_REQUEST_RETRIES: u32 = 3;
/// The wait before such a repetition.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// How often a server that watches no files is looked at again.
const WATCH_CHECK_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long published diagnostics may be followed by others for the same version.
const DIAGNOSTICS_SETTLE_TIMEOUT: Duration = Duration::from_millis(250);

/// A server that let this many requests time out in a row, and sent nothing meanwhile, hangs and is ended.
const MAX_SILENT_TIMEOUTS: u32 = 2;

/// A running server. Dropping it ends its process.
pub(crate) struct LanguageServer {
    /// How it is configured.
    pub(crate) entry: Arc<LspServerEntry>,
    /// The unit of its columns.
    pub(crate) unit: ColumnUnit,
    /// Its own name and version.
    pub(crate) title: String,
    /// What it has sent by itself.
    pub(crate) state: Arc<LspServerState>,
    /// When it was started.
    pub(crate) since: Instant,
    /// Requests and notifications.
    connection: RpcConnection,
    /// What it offers, by its answer to `initialize`.
    capabilities: Value,
    /// The files that are open at it.
    documents: Mutex<OpenDocuments>,
    /// Its process, until it is ended.
    process: Mutex<Option<StartedProcess>>,
    /// Sees what other programs do in its directory, from the moment that it asks for that; `None` if the system cannot.
    tree: OnceCell<Option<Arc<TreeWatcher>>>,
    /// Requests in a row that timed out while it sent nothing.
    silent_timeouts: AtomicU32,
    /// When a call used it last.
    last_used: Mutex<Instant>,
    /// How many calls use it.
    users: AtomicUsize,
}

/// A server that a call uses: it is not shut down as idle meanwhile.
pub(crate) struct ServerUse {
    server: Arc<LanguageServer>,
}

impl ServerUse {
    /// Counts a use.
    pub(crate) fn new(server: &Arc<LanguageServer>) -> Self {
        server.users.fetch_add(1, Ordering::SeqCst);
        Self { server: Arc::clone(server) }
    }
}

impl std::ops::Deref for ServerUse {
    type Target = LanguageServer;

    fn deref(&self) -> &LanguageServer {
        &self.server
    }
}

impl Drop for ServerUse {
    fn drop(&mut self) {
        self.server.touch();
        self.server.users.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Locks a value; a panic of another thread cannot leave it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LanguageServer {
    /// Starts a server for a directory, and waits until it is initialized. The error says why it is not.
    pub(crate) async fn start(
        entry: Arc<LspServerEntry>,
        root: AbsPath,
        options: &LaunchOptions,
        sandbox: Option<LspSandbox>,
    ) -> Result<Self, String> {
        let (process, output, input) = start_process(&entry, &root, options, sandbox).await?;
        let state = Arc::new(LspServerState::new(root.clone(), entry.settings.clone(), entry.ready));
        let connection = RpcConnection::open(output, input, Arc::clone(&state) as _);
        let params = initialize_params(&entry, &root);
        let cancel = CancellationToken::new();
        let answer = connection.request("initialize", &params, entry.startup_timeout, &cancel).await;
        let parsed = answer.and_then(|answer| parse_result::<Value>(&answer)).and_then(|answer| {
            let is_answer = answer.get("capabilities").is_some_and(Value::is_object);
            if is_answer {
                Ok(answer)
            } else {
                Err(RequestError::Invalid("it has no `capabilities`".to_owned()))
            }
        });
        let answer = match parsed {
            Ok(answer) => answer,
            Err(error) => {
                drop(connection);
                return Err(process.explain_failure(error.to_string()).await);
            }
        };
        connection.notify("initialized", &json!({})).map_err(|error| error.to_string())?;
        if !entry.settings.is_null() {
            let params = json!({ "settings": entry.settings });
            connection
                .notify("workspace/didChangeConfiguration", &params)
                .map_err(|error| error.to_string())?;
        }
        let capabilities = answer.get("capabilities").cloned().unwrap_or(Value::Null);
        let encoding = capabilities.get("positionEncoding").cloned().unwrap_or(Value::Null);
        let encoding: Option<PositionEncodingKind> = serde_json::from_value(encoding).ok();
        let info = |name: &str| answer.pointer(&format!("/serverInfo/{name}")).and_then(Value::as_str);
        let title = [info("name").unwrap_or(&entry.name), info("version").unwrap_or_default()].join(" ");
        let now = Instant::now();
        Ok(Self {
            unit: ColumnUnit::negotiated(encoding.as_ref()),
            title: title.trim().to_owned(),
            state,
            since: now,
            connection,
            capabilities,
            documents: Mutex::new(OpenDocuments::new()),
            process: Mutex::new(Some(process)),
            tree: OnceCell::new(),
            silent_timeouts: AtomicU32::new(0),
            last_used: Mutex::new(now),
            users: AtomicUsize::new(0),
            entry,
        })
    }

    /// Why the connection is closed; `None` while the server runs.
    pub(crate) fn closed_reason(&self) -> Option<String> {
        self.connection.closed_reason()
    }

    /// Waits until the server is gone.
    pub(crate) async fn wait_closed(&self) {
        self.connection.wait_closed().await;
    }

    /// Notes that it is used, which keeps it from being shut down as idle.
    pub(crate) fn touch(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    /// Whether no call uses it.
    pub(crate) fn is_unused(&self) -> bool {
        self.users.load(Ordering::SeqCst) == 0
    }

    /// When a call used it last.
    pub(crate) fn last_used(&self) -> Instant {
        *lock(&self.last_used)
    }

    /// Its process id, while it runs.
    pub(crate) fn process_id(&self) -> Option<u32> {
        lock(&self.process).as_ref().and_then(|started| started.process.id())
    }

    /// What its sandbox refused.
    pub(crate) fn sandbox_denials(&self) -> Vec<String> {
        let process = lock(&self.process);
        let denials = process.as_ref().map(|started| ServerProcess::denials(&started.process));
        denials.unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    /// Whether it offers a method, from the start or by a later registration.
    pub(crate) fn offers(&self, method: &str) -> bool {
        let key = match method {
            "textDocument/definition" => "definitionProvider",
            "textDocument/references" => "referencesProvider",
            "textDocument/hover" => "hoverProvider",
            "textDocument/documentSymbol" => "documentSymbolProvider",
            "textDocument/implementation" => "implementationProvider",
            "textDocument/prepareCallHierarchy"
            | "callHierarchy/incomingCalls"
            | "callHierarchy/outgoingCalls" => "callHierarchyProvider",
            "textDocument/diagnostic" => "diagnosticProvider",
            "textDocument/rename" => "renameProvider",
            "textDocument/formatting" => "documentFormattingProvider",
            "textDocument/codeAction" => "codeActionProvider",
            "workspace/symbol" => "workspaceSymbolProvider",
            _ => return false,
        };
        let stated = self.capabilities.get(key);
        stated.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
            || self.state.is_registered(method)
    }

    /// Sends a request. One that the server gave up because its content changed is repeated a few times.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<T, RequestError> {
        self.touch();
        let deadline = Instant::now() + limit;
        let received_before = self.connection.received_count();
        let mut attempt = 0;
        let answer = loop {
            attempt += 1;
            // The limit is that of the whole, not of each repetition.
            let left = deadline.saturating_duration_since(Instant::now());
            match self.connection.request(method, params, left, cancel).await {
                Err(RequestError::Rejected(error))
                    if matches!(error.code, CONTENT_MODIFIED_CODE | SERVER_CANCELLED_CODE)
                        && attempt <= MAX_REQUEST_RETRIES =>
                {
                    tokio::time::sleep(RETRY_DELAY.min(left)).await;
                }
                Err(RequestError::TimedOut(_)) => {
                    self.note_timeout(limit, received_before);
                    return Err(RequestError::TimedOut(limit));
                }
                answer => break answer?,
            }
        };
        self.silent_timeouts.store(0, Ordering::Relaxed);
        self.touch();
        parse_result(&answer)
    }

    /// Ends a server that hangs: one that let several requests time out in a row, and sent nothing at all meanwhile. One that
    /// reports progress is slow, and is left alone.
    fn note_timeout(&self, limit: Duration, received_before: u64) {
        // A shorter limit, as that of the diagnostics of an edit, says nothing about the server.
        if limit < self.entry.request_timeout {
            return;
        }
        if self.connection.received_count() != received_before {
            self.silent_timeouts.store(0, Ordering::Relaxed);
            return;
        }
        let count = self.silent_timeouts.fetch_add(1, Ordering::Relaxed) + 1;
        if count >= MAX_SILENT_TIMEOUTS {
            self.connection.close(&format!("it hangs: it left {count} requests unanswered"));
        }
    }

    /// Waits until the server has indexed the project, at most for `limit`. False if it has not, also if it ended.
    pub(crate) async fn wait_ready(&self, limit: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.connection.wait_closed() => false,
            ready = self.state.wait_ready(limit) => ready,
        }
    }

    /// Waits until the server has finished what it reports progress about, at most for `limit`: the compiler that
    /// rust-analyzer runs. False if it has not.
    pub(crate) async fn wait_idle(&self, limit: Duration) -> bool {
        let is_idle = |state: &LspServerState| (!state.readiness().is_busy()).then_some(());
        let deadline = Instant::now() + limit;
        tokio::select! {
            biased;
            () = self.connection.wait_closed() => false,
            idle = self.state.wait_for(deadline, is_idle) => idle.is_some(),
        }
    }

    /// Sees what other programs do in the directory of the server from the moment that the server asks for it, until the
    /// server ends.
    pub(crate) async fn watch_when_asked(&self) {
        let is_asked = |state: &LspServerState| state.is_registered(WATCHED_FILES).then_some(());
        let asked = async {
            while self.state.wait_for(Instant::now() + WATCH_CHECK_INTERVAL, is_asked).await.is_none() {}
        };
        tokio::select! {
            biased;
            () = self.connection.wait_closed() => {}
            () = asked => drop(self.tree_watcher().await),
        }
    }

    /// The watcher of its directory, which is made at the first call.
    async fn tree_watcher(&self) -> Option<Arc<TreeWatcher>> {
        let make = || async {
            let root = self.state.root().clone();
            let made = run_blocking(move || TreeWatcher::new(&root)).await;
            made.ok()?.ok().map(Arc::new)
        };
        self.tree.get_or_init(make).await.clone()
    }

    /// Notifies the server of what other programs did in its directory since the last call, as far as it asked for it.
    pub(crate) async fn report_outside_changes(&self) -> Result<(), RequestError> {
        if !self.state.is_registered(WATCHED_FILES) {
            return Ok(());
        }
        let Some(tree) = self.tree_watcher().await.filter(|tree| tree.has_changes()) else { return Ok(()) };
        let changes = run_blocking(move || tree.take_changes()).await.unwrap_or_default();
        let events: Vec<Value> = changes
            .into_iter()
            .map(|(path, change)| {
                let event = match change {
                    TreeChange::Created => FileEvent::Created,
                    TreeChange::Changed => FileEvent::Changed,
                    TreeChange::Deleted => FileEvent::Deleted,
                };
                (path, event)
            })
            .filter(|(path, event)| self.state.watches(path, *event))
            .map(|(path, event)| json!({ "uri": to_uri(&path).0, "type": event as u8 }))
            .collect();
        if events.is_empty() {
            return Ok(());
        }
        self.connection.notify(WATCHED_FILES, &json!({ "changes": events }))
    }

    /// Makes sure that the server has this text of a file.
    pub(crate) fn sync_document(&self, path: &AbsPath, text: &str) -> Result<OpenDocument, RequestError> {
        let (sync, document, surplus) = {
            let mut documents = lock(&self.documents);
            let (sync, document) = documents.sync(path, text);
            (sync, document, documents.take_surplus())
        };
        let uri = to_uri(path).0;
        match sync {
            DocumentSync::Current => {}
            DocumentSync::Open => {
                let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                let language = self.entry.language_of(&name).unwrap_or("plaintext");
                let document =
                    json!({ "uri": uri, "languageId": language, "version": document.version, "text": text });
                self.state.readiness().note_open();
                self.connection.notify("textDocument/didOpen", &json!({ "textDocument": document }))?;
            }
            DocumentSync::Change(version) => {
                let document = json!({ "uri": uri, "version": version });
                let params = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
                self.connection.notify("textDocument/didChange", &params)?;
            }
        }
        if let Some(surplus) = surplus {
            self.notify_closed(&surplus)?;
        }
        Ok(document)
    }

    /// Closes a document, if it is open.
    pub(crate) fn close_document(&self, path: &AbsPath) -> Result<(), RequestError> {
        let was_open = lock(&self.documents).remove(path);
        if was_open { self.notify_closed(path) } else { Ok(()) }
    }

    /// Notifies the server that a document is closed.
    fn notify_closed(&self, path: &AbsPath) -> Result<(), RequestError> {
        let document = json!({ "uri": to_uri(path).0 });
        self.connection.notify("textDocument/didClose", &json!({ "textDocument": document }))
    }

    /// Notifies the server that a file was written: what it does on save, and what it watches.
    pub(crate) fn notify_saved(&self, path: &AbsPath, change: FileEvent) -> Result<(), RequestError> {
        let uri = to_uri(path).0;
        if self.open_document(path).is_some() {
            let params = json!({ "textDocument": { "uri": uri } });
            self.connection.notify("textDocument/didSave", &params)?;
        }
        if self.state.watches(path, change) {
            let params = json!({ "changes": [{ "uri": uri, "type": change as u8 }] });
            self.connection.notify(WATCHED_FILES, &params)?;
        }
        Ok(())
    }

    /// What the server has of a file, if it is open.
    pub(crate) fn open_document(&self, path: &AbsPath) -> Option<OpenDocument> {
        lock(&self.documents).get(path)
    }

    /// How many files are open.
    pub(crate) fn open_document_count(&self) -> usize {
        lock(&self.documents).len()
    }

    /// The open documents whose files other programs may have changed.
    pub(crate) fn take_changed_documents(&self) -> Vec<AbsPath> {
        lock(&self.documents).take_changed()
    }

    /// The problems of a document in the version that was sent: asked for where the server answers that, else as it
    /// publishes them. `None` if it says nothing within the limit.
    pub(crate) async fn problems(
        &self,
        path: &AbsPath,
        document: OpenDocument,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Option<Vec<CodeProblem>>, RequestError> {
        let deadline = Instant::now() + limit;
        if self.offers("textDocument/diagnostic") {
            let mut params = json!({ "textDocument": { "uri": to_uri(path).0 } });
            let stated = self.capabilities.pointer("/diagnosticProvider/identifier").and_then(Value::as_str);
            let identifier = stated.map(str::to_owned).or_else(|| self.state.diagnostics_identifier());
            if let (Value::Object(params), Some(identifier)) = (&mut params, identifier) {
                params.insert("identifier".to_owned(), Value::String(identifier));
            }
            let asked = self.request("textDocument/diagnostic", &params, limit, cancel).await;
            let report: DocumentDiagnosticReport = match asked {
                Err(RequestError::TimedOut(_)) => return Ok(None),
                asked => asked?,
            };
            if let DocumentDiagnosticReport::RelatedFullDocumentDiagnosticReport(report) = report {
                let items = report.full_document_diagnostic_report.items;
                let problems: Vec<_> = items.into_iter().take(MAX_PER_FILE).map(CodeProblem::new).collect();
                let mut store = self.state.diagnostics();
                store.set_asked(path.clone(), document.version, problems);
                return Ok(store.known(path, document.version, document.sent));
            }
        }
        self.touch();
        tokio::select! {
            biased;
            () = self.connection.wait_closed() => Err(self.connection.closed_error()),
            published = self.published_problems(path, document, deadline) => Ok(published),
        }
    }

    /// The problems that the server publishes for the version of a document that was sent.
    async fn published_problems(
        &self,
        path: &AbsPath,
        document: OpenDocument,
        deadline: Instant,
    ) -> Option<Vec<CodeProblem>> {
        let published = |state: &LspServerState| {
            let store = state.diagnostics();
            let published = store.get(path)?;
            published.is_for(document.version, document.sent).then_some(published.at)
        };
        let mut at = self.state.wait_for(deadline, published).await?;
        // Servers publish in steps: the syntax first, then the rest.
        while Instant::now() < deadline {
            let settled = (at + DIAGNOSTICS_SETTLE_TIMEOUT).min(deadline);
            let newer = |state: &LspServerState| published(state).filter(|newer| *newer > at);
            match self.state.wait_for(settled, newer).await {
                Some(newer) => at = newer,
                None => break,
            }
        }
        self.state.diagnostics().get(path).map(|published| published.problems.clone())
    }

    /// Ends the server: `shutdown`, `exit`, then its process.
    pub(crate) async fn shut_down(&self) {
        let limit = self.entry.shutdown_timeout;
        let cancel = CancellationToken::new();
        if self.connection.request("shutdown", &Value::Null, limit, &cancel).await.is_ok() {
            let _ = self.connection.notify("exit", &Value::Null);
            // The process closes its output when it has read the message.
            let _ = tokio::time::timeout(limit, self.connection.wait_closed()).await;
        }
        self.connection.close("it was stopped");
        let process = lock(&self.process).take();
        if let Some(started) = process {
            started.process.stop().await;
        }
    }

    /// Ends the process of a server whose connection is closed, and says why it ended.
    pub(crate) async fn reap(&self) -> String {
        let reason = self.closed_reason().unwrap_or_default();
        let process = lock(&self.process).take();
        match process {
            Some(started) => started.explain_failure(reason).await,
            None => reason,
        }
    }
}

/// What happened to a file, as the protocol counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FileEvent {
    /// It is new.
    Created = 1,
    /// Its content changed.
    Changed = 2,
    /// It is gone.
    Deleted = 3,
}

/// Parses the result of a request.
fn parse_result<T: DeserializeOwned>(answer: &RawValue) -> Result<T, RequestError> {
    serde_json::from_str(answer.get()).map_err(|error| RequestError::Invalid(error.to_string()))
}

/// The parameters of `initialize`: what the client understands.
fn initialize_params(entry: &LspServerEntry, root: &AbsPath) -> Value {
    let uri = to_uri(root).0;
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
    json!({
        // The supervisor ends the server when toolgate is gone.
        "processId": null,
        "clientInfo": { "name": "toolgate", "version": env!("CARGO_PKG_VERSION") },
        "rootUri": uri,
        "rootPath": root,
        "workspaceFolders": [{ "uri": uri, "name": name.unwrap_or_else(|| "root".to_owned()) }],
        "initializationOptions": entry.initialization_options,
        "capabilities": {
            "general": { "positionEncodings": ["utf-8", "utf-32", "utf-16"] },
            "textDocument": {
                "synchronization": { "didSave": true },
                "definition": { "linkSupport": true },
                "implementation": { "linkSupport": true },
                "references": {},
                "hover": { "contentFormat": ["markdown", "plaintext"] },
                "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
                "callHierarchy": { "dynamicRegistration": true },
                "rename": { "prepareSupport": true },
                "formatting": { "dynamicRegistration": true },
                "codeAction": {
                    "codeActionLiteralSupport": { "codeActionKind": { "valueSet": [
                        "quickfix", "refactor", "refactor.extract", "refactor.inline", "refactor.rewrite", "source",
                        "source.organizeImports", "source.fixAll",
                    ] } },
                    "isPreferredSupport": true,
                    "disabledSupport": true,
                    "dataSupport": true,
                    "resolveSupport": { "properties": ["edit"] },
                },
                "publishDiagnostics": { "versionSupport": true, "relatedInformation": false },
                "diagnostic": { "dynamicRegistration": true },
            },
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeConfiguration": { "dynamicRegistration": true },
                "didChangeWatchedFiles": { "dynamicRegistration": true, "relativePatternSupport": true },
                "symbol": {},
                // Without resource operations: a rename or an action that creates or deletes files is not offered.
                "workspaceEdit": { "documentChanges": true, "resourceOperations": [] },
                "diagnostics": { "refreshSupport": true },
            },
            "window": { "workDoneProgress": true, "showMessage": {} },
            "experimental": { "serverStatusNotification": true },
        },
    })
}
