//! Diagnostics in the results of edits: a hook after every call that wrote a file whose server runs.
//!
//! A hook and not a part of the edit tools: tools and lsp are siblings, and so every tool that writes files is covered,
//! also one of the embedding program.
//! The server gets the new text, and the result gets the errors and warnings that the change introduced, if they are known
//! within the time limit.
//! No server is started for this.

use crate::diagnostic_store::{CodeProblem, ProblemLevel, new_problems};
use crate::document_text::DocumentText;
use crate::found_place::shown_path;
use crate::language_server::{FileEvent, LanguageServer};
use crate::lsp_tool::workspace_root;
use crate::server_pool::ServerPool;
use futures_util::future::BoxFuture;
use gen_lsp_types::Position;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_files::{FileProblem, GrantedAccess, GrantedFiles, PathGrant, resolve, run_blocking};
use toolgate_gate::{Hook, HookAnswer, HookCall, HookEvent, HookFailure, OnFailure};
use toolgate_proto::{AbsPath, Effect, PathScope, ToolIdentity, WriteKind};

/// Files of one call that are compared; a rename over the whole project is not.
const MAX_COMPARED_FILES: usize = 10;
/// Problems that a result shows.
const MAX_SHOWN_PROBLEMS: usize = 20;
/// A larger file is not sent.
const MAX_DOCUMENT_BYTES: u64 = 2 << 20;

/// Notifies servers of what calls wrote, and adds new problems to the results.
#[derive(Default)]
pub struct EditDiagnostics {
    /// Set after the gate is built, because the hook is a part of the gate.
    pool: OnceLock<Arc<ServerPool>>,
}

impl EditDiagnostics {
    /// Sets the servers that are notified. Before that the hook does nothing.
    pub fn connect(&self, pool: Arc<ServerPool>) {
        // A hook belongs to one gate, so a second connection has no effect.
        let _ = self.pool.set(pool);
    }

    /// Sends each written file to its server, and collects the problems that the change introduced.
    ///
    /// All files of a call share one deadline, so a call that writes many files is not delayed many times.
    async fn handle(&self, pool: &Arc<ServerPool>, call: HookCall<'_>) -> HookAnswer {
        let limit = pool.options().diagnostics_timeout;
        let deadline = Instant::now() + limit;
        let mut lines = Vec::new();
        let mut compared = 0;
        for effect in &call.intent.effects {
            let Effect::Write { path, kind } = effect else { continue };
            let real = resolve(path).real;
            let Some(root) = workspace_root(call.context, &real) else { continue };
            let Some(server) = pool.running_for(&real, &root) else { continue };
            if *kind == WriteKind::Delete {
                let _ = server.close_document(&real);
                let _ = server.notify_saved(&real, FileEvent::Deleted);
                continue;
            }
            let Ok(text) = read_written(&real).await else { continue };
            compared += 1;
            let is_compared = compared <= MAX_COMPARED_FILES && !limit.is_zero() && server.entry.diagnostics;
            let edit = WrittenFile { server: &server, path: &real, text: &text, deadline };
            if is_compared {
                let shown = shown_path(&real, &call.context.workspace.cwd);
                lines.extend(edit.compare(original_text(&call), &shown).await);
            } else {
                edit.send();
            }
        }
        if lines.is_empty() {
            return HookAnswer::empty();
        }
        let surplus = lines.len().saturating_sub(MAX_SHOWN_PROBLEMS);
        lines.truncate(MAX_SHOWN_PROBLEMS);
        if surplus > 0 {
            lines.push(format!("[{surplus} more are not shown]"));
        }
        HookAnswer::empty().with_context(format!("[problems after this change]\n{}", lines.join("\n")))
    }
}

/// The text of the file before the change, as results of edits carry it for hooks.
fn original_text<'a>(call: &HookCall<'a>) -> Option<&'a str> {
    let output = call.result?.as_ref().ok()?;
    output.structured.as_ref()?.get("originalFile").and_then(Value::as_str)
}

/// The text of a file that the call was granted for writing and has written.
async fn read_written(real: &AbsPath) -> Result<String, FileProblem> {
    let grant = PathGrant::new(real.clone(), real.clone(), PathScope::Entry, GrantedAccess::Read);
    let files = GrantedFiles::new(vec![grant], Vec::new());
    let path = real.clone();
    let snapshot = run_blocking(move || files.read(&path, MAX_DOCUMENT_BYTES)).await??;
    String::from_utf8(snapshot.bytes).map_err(|_| FileProblem::Other("it is not UTF-8".to_owned()))
}

/// A file that a call wrote.
struct WrittenFile<'a> {
    /// The server of the file.
    server: &'a LanguageServer,
    /// The real path.
    path: &'a AbsPath,
    /// The text after the change.
    text: &'a str,
    /// When the result of the call must be complete.
    deadline: Instant,
}

impl WrittenFile<'_> {
    /// Sends the text, without waiting for an answer.
    fn send(&self) {
        let event = if self.server.open_document(self.path).is_some() {
            let _ = self.server.sync_document(self.path, self.text);
            FileEvent::Changed
        } else {
            FileEvent::Created
        };
        let _ = self.server.notify_saved(self.path, event);
    }

    /// Sends the text, and returns what is new about the problems of the file, one line each.
    async fn compare(&self, original: Option<&str>, shown: &str) -> Vec<String> {
        // Without an original text the file is new, or the tool does not say; servers take both as new.
        let is_new = original.is_none() && self.server.open_document(self.path).is_none();
        let before = self.problems_before(original).await;
        let Ok(document) = self.server.sync_document(self.path, self.text) else { return Vec::new() };
        let event = if is_new { FileEvent::Created } else { FileEvent::Changed };
        let _ = self.server.notify_saved(self.path, event);
        let limit = self.deadline.saturating_duration_since(Instant::now());
        let cancel = CancellationToken::new();
        let Ok(Some(after)) = self.server.problems(self.path, document, limit, &cancel).await else {
            return Vec::new();
        };
        let is_serious = |problem: &CodeProblem| problem.severity <= ProblemLevel::Warning;
        let after: Vec<CodeProblem> = after.into_iter().filter(is_serious).collect();
        let (new, what) = match before {
            Some(before) => (new_problems(&before, &after), "new "),
            None => (after, ""),
        };
        let index = DocumentText::new(self.text.to_owned());
        new.iter().map(|problem| self.render(problem, &index, shown, what)).collect()
    }

    /// A problem as one line.
    fn render(&self, problem: &CodeProblem, index: &DocumentText, shown: &str, what: &str) -> String {
        let position = Position { line: problem.line, character: problem.character };
        let place = index.character_position(position, self.server.unit);
        let (line, column) =
            place.map_or((problem.line as usize + 1, 1), |(line, column)| (line + 1, column + 1));
        format!("{shown}:{line}:{column}: {what}{}", problem.describe())
    }

    /// The problems before the change: as the server knows them, or asked for with the original text, for half of the
    /// time that there is. `None` if they are not known.
    async fn problems_before(&self, original: Option<&str>) -> Option<Vec<CodeProblem>> {
        if let Some(document) = self.server.open_document(self.path) {
            let store = self.server.state.diagnostics();
            let known = store.known(self.path, document.version, document.sent);
            if known.is_some() {
                return known;
            }
        }
        let document = self.server.sync_document(self.path, original?).ok()?;
        let limit = self.deadline.saturating_duration_since(Instant::now()) / 2;
        let cancel = CancellationToken::new();
        self.server.problems(self.path, document, limit, &cancel).await.ok().flatten()
    }
}

impl Hook for EditDiagnostics {
    fn name(&self) -> &str {
        "language server diagnostics"
    }

    fn handles(&self, event: HookEvent, tool: &ToolIdentity) -> bool {
        event == HookEvent::PostToolUse
            && !tool.read_only
            && self.pool.get().is_some_and(|pool| pool.has_running())
    }

    fn on_failure(&self) -> OnFailure {
        OnFailure::Continue
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(async move {
            match self.pool.get() {
                Some(pool) => Ok(self.handle(pool, call).await),
                None => Ok(HookAnswer::empty()),
            }
        })
    }
}
