//! `LSP` and `lsp`: ask the language server of a file. Both toolsets use the same tool.
//!
//! The intent is a read of the file and of the tree that the server indexes, so that every rule about reading applies to
//! what an answer shows.
//! An answer that a server gives before it has indexed the project says so: it may be incomplete.

use crate::apply_plan::{apply_plan, find_plan, preview_plan, show_actions};
use crate::connection::RequestError;
use crate::diagnostic_store::CodeProblem;
use crate::document_text::DocumentText;
use crate::edit_plan::PlannedFile;
use crate::found_place::{PlaceReader, RawPlace, shown_path};
use crate::language_server::{LanguageServer, ServerUse};
use crate::lsp_input::{LspInput, LspOperation};
use crate::message::METHOD_NOT_FOUND_CODE;
use crate::server_pool::ServerPool;
use crate::server_query::{ServerQuery, call_place};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_files::{FileProblem, GrantedFiles, run_blocking};
use toolgate_gate::{CallContext, Cleared, SourceTools, Tool, ToolSpec};
use toolgate_proto::{
    AbsPath, CallResult, Code, Effect, Intent, Output, PathScope, Refusal, WriteKind, format_count,
};

/// The largest file that is sent to a server.
const MAX_DOCUMENT_BYTES: u64 = 8 << 20;
/// How long `diagnostics` waits for a server that publishes them.
const DIAGNOSTICS_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks language servers.
pub(crate) struct LspTool {
    /// `LSP`, or `lsp` in the plain toolset.
    pub(crate) name: &'static str,
    /// The servers.
    pub(crate) pool: Arc<ServerPool>,
    /// The gate for the calls that change files; set when the source starts.
    pub(crate) source_tools: Arc<OnceLock<Arc<SourceTools>>>,
}

/// The file of a call, at its server.
pub(crate) struct PreparedFile {
    /// The server of the file.
    pub(crate) server: ServerUse,
    /// The real path.
    pub(crate) path: AbsPath,
    /// The text that the server has.
    pub(crate) index: DocumentText,
    /// The workspace root that contains it.
    pub(crate) root: Option<AbsPath>,
    /// The server had indexed the project, as far as it says.
    pub(crate) ready: bool,
}

impl Tool for LspTool {
    type Input = LspInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            self.name,
            "Asks the language server of a file about code: definitions, references, types and documentation (hover), \
             symbols, implementations, call hierarchy, diagnostics; and lets it rename a symbol, format a file or make a \
             code action. More exact than a text search, because it knows \
             scopes and types. Lines and columns count from 1; instead of a column give the `symbol` on the line. An \
             answer marked \"still indexing\" may be incomplete: ask again later.",
        )
        .with_main_field("filePath");
        spec.title = "Language server".to_owned();
        spec.family = (self.name != "LSP").then(|| "LSP".to_owned());
        spec.timeout = Some(Duration::from_secs(120));
        spec.input_examples = vec![
            json!({ "operation": "findReferences", "filePath": "src/shape.ts", "line": 12, "symbol": "area" }),
            json!({ "operation": "workspaceSymbol", "filePath": "src/shape.ts", "query": "Circle" }),
        ];
        spec
    }

    fn check(&self, input: &LspInput) -> Result<(), Refusal> {
        input.check()
    }

    fn intent(&self, input: &LspInput, context: &CallContext) -> Intent {
        if input.operation == LspOperation::ApplyEdit {
            let plan = find_plan(input, context);
            let title = plan.as_ref().map_or_else(|| "apply an edit".to_owned(), |plan| plan.title.clone());
            let files = plan.iter().flat_map(|plan| &plan.files);
            let write = |file: &PlannedFile| Effect::Write { path: file.path.clone(), kind: WriteKind::Edit };
            let effects: Vec<Effect> = files.map(write).collect();
            return Intent::new(
                format!("{title} ({})", format_count(effects.len() as u64, "file", "files")),
                effects,
            );
        }
        let path = context.absolute_path(&input.file_path);
        let mut effects = vec![Effect::Read { path: path.clone(), scope: PathScope::Entry }];
        // The server reads the project, and an answer may show any of it.
        if let Some(root) = workspace_root(context, &path) {
            effects.push(Effect::Read { path: root, scope: PathScope::Tree });
        }
        // Which files change is known only when the server has answered; a second call names them. Until then no other call
        // of a batch may read what it will change.
        if input.operation.changes_files() {
            effects.push(Effect::State { name: "workspace".to_owned() });
        }
        Intent::new(format!("ask the language server: {} in {path}", input.operation.as_str()), effects)
    }

    async fn preview(
        &self,
        input: &LspInput,
        context: &CallContext,
        _files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        Ok(find_plan(input, context).map(|plan| preview_plan(&plan)))
    }

    async fn run(&self, input: LspInput, cleared: Cleared) -> CallResult {
        if input.operation == LspOperation::ApplyEdit {
            return apply_plan(&input, &cleared).await;
        }
        let mut file = self.prepare(&input, &cleared).await?;
        let result = match input.operation {
            LspOperation::Diagnostics => diagnostics(&mut file, &cleared).await,
            LspOperation::Hover => hover(&input, &file, &cleared).await,
            LspOperation::CodeActions => show_actions(&input, &file, &cleared).await,
            LspOperation::Rename | LspOperation::Formatting | LspOperation::ApplyCodeAction => {
                self.change(&input, &file, &cleared).await
            }
            _ => places(&input, &file, &cleared).await,
        };
        self.pool.publish_status();
        result
    }
}

impl LspTool {
    /// Starts the server of the file if needed, gives it the text of the file, and waits until it has indexed the project.
    pub(crate) async fn prepare(&self, input: &LspInput, cleared: &Cleared) -> Result<PreparedFile, Refusal> {
        let context = cleared.context();
        let asked = context.absolute_path(&input.file_path);
        let path = cleared.files().real_path(&asked).map_err(|problem| file_refusal(&asked, &problem))?;
        let text = read_text(cleared.files(), &asked).await?;
        let root = workspace_root(context, &path);
        let server_root = root.clone().unwrap_or_else(|| context.workspace.cwd.clone());
        let cancel = cleared.cancel();
        if self.pool.running_for(&path, &server_root).is_none() {
            cleared.progress().report("starting the language server");
        }
        let server = unless_cancelled(cancel, self.pool.ensure_running(&path, &server_root)).await??;
        let failed = |error: RequestError| request_refusal(&server, input.operation, &error);
        refresh_documents(&server, cleared.files()).await.map_err(failed)?;
        server.report_outside_changes().await.map_err(failed)?;
        server.sync_document(&path, &text).map_err(failed)?;
        let mut ready = true;
        if input.operation.needs_index() && !server.state.readiness().is_ready() {
            cleared.progress().report(format!("waiting for `{}` to index the project", server.entry.name));
            let limit = self.pool.options().ready_timeout;
            ready = unless_cancelled(cancel, server.wait_ready(limit)).await?;
        }
        if let Some(method) = input.operation.method()
            && !server.offers(method)
        {
            return Err(not_offered(&server, input.operation));
        }
        Ok(PreparedFile { server, path, index: DocumentText::new(text), root, ready })
    }
}

/// The workspace root that contains a path; of several the innermost.
pub(crate) fn workspace_root(context: &CallContext, path: &AbsPath) -> Option<AbsPath> {
    let roots = context.workspace.roots.iter().filter(|root| path.is_under(root));
    roots.max_by_key(|root| root.as_path().as_os_str().len()).cloned()
}

/// Waits for work, but not past a cancellation of the call.
async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Refusal::new(Code::Cancelled, "the call was cancelled")),
        done = work => Ok(done),
    }
}

/// The text of a granted file.
async fn read_text(files: &GrantedFiles, asked: &AbsPath) -> Result<String, Refusal> {
    let (granted, path) = (files.clone(), asked.clone());
    let read = run_blocking(move || granted.read(&path, MAX_DOCUMENT_BYTES)).await;
    let snapshot = read.and_then(|read| read).map_err(|problem| file_refusal(asked, &problem))?;
    String::from_utf8(snapshot.bytes)
        .map_err(|_| Refusal::new(Code::BinaryFile, format!("`{asked}` is not UTF-8 text")))
}

/// Sends the server what other programs changed in its open documents.
pub(crate) async fn refresh_documents(
    server: &LanguageServer,
    files: &GrantedFiles,
) -> Result<(), RequestError> {
    for path in server.take_changed_documents() {
        match read_text(files, &path).await {
            Ok(text) => drop(server.sync_document(&path, &text)?),
            // Deleted, or hidden by a rule by now.
            Err(_) => server.close_document(&path)?,
        }
    }
    Ok(())
}

/// Why the file of the call cannot be sent to a server.
fn file_refusal(path: &AbsPath, problem: &FileProblem) -> Refusal {
    let (code, reason) = match problem {
        FileProblem::Missing => (Code::FileNotFound, format!("`{path}` does not exist")),
        FileProblem::NotGranted => (Code::Undeclared, format!("`{path}` was not granted")),
        FileProblem::Special => (Code::NotAFile, format!("`{path}` is not a regular file")),
        other => (Code::FileRead, format!("`{path}` cannot be read: {other}")),
    };
    Refusal::new(code, reason)
}

/// The refusal of an operation that the server does not have.
fn not_offered(server: &LanguageServer, operation: LspOperation) -> Refusal {
    Refusal::new(
        Code::LspUnavailable,
        format!("`{}` ({}) does not offer `{}`", server.entry.name, server.title, operation.as_str()),
    )
    .hint("use another operation, or Grep and Read")
}

/// Why a request to a server gave nothing.
pub(crate) fn request_refusal(
    server: &LanguageServer,
    operation: LspOperation,
    error: &RequestError,
) -> Refusal {
    match error {
        RequestError::Cancelled => Refusal::new(Code::Cancelled, "the call was cancelled"),
        RequestError::Rejected(rejected) if rejected.code == METHOD_NOT_FOUND_CODE => {
            not_offered(server, operation)
        }
        RequestError::Closed(_) => {
            let name = &server.entry.name;
            Refusal::new(Code::LspFailed, format!("language server `{name}` ended during the call: {error}"))
                .hint("call again: it is restarted")
        }
        RequestError::TimedOut(_) | RequestError::Rejected(_) | RequestError::Invalid(_) => {
            Refusal::new(Code::LspFailed, format!("language server `{}`: {error}", server.entry.name))
                .hint("check the position, or use Grep and Read")
        }
    }
}

/// The sentence that an answer is not to be taken as complete.
fn incompleteness_note(operation: LspOperation, file: &PreparedFile) -> Option<String> {
    let (readiness, name) = (file.server.state.readiness(), &file.server.entry.name);
    if let Some(failure) = readiness.failure() {
        return Some(format!(
            "[`{name}` could not load the project, so this answer may be incomplete: {failure}]"
        ));
    }
    if !file.ready {
        let activity = readiness.activity().map(|what| format!(" ({what})")).unwrap_or_default();
        return Some(format!(
            "[still indexing: `{name}` has not finished{activity}, so this answer may be incomplete; ask again later]"
        ));
    }
    let warning = readiness.warning().filter(|_| operation.needs_index());
    warning.map(|warning| format!("[`{name}` warns, so this answer may be incomplete: {warning}]"))
}

/// A result with its note and its structured form.
fn finish(input: LspOperation, file: &PreparedFile, text: String, mut structured: Value) -> Output {
    let note = incompleteness_note(input, file);
    if let Value::Object(fields) = &mut structured {
        fields.insert("operation".to_owned(), json!(input.as_str()));
        fields.insert("server".to_owned(), json!(file.server.title));
        fields.insert("complete".to_owned(), json!(note.is_none()));
    }
    let text = match note {
        Some(note) if text.is_empty() => note,
        Some(note) => format!("{note}\n{text}"),
        None => text,
    };
    Output::text(text).structured(structured)
}

/// `hover`: a text.
async fn hover(input: &LspInput, file: &PreparedFile, cleared: &Cleared) -> CallResult {
    let query = ServerQuery {
        server: &file.server,
        path: &file.path,
        limit: file.server.entry.request_timeout,
        cancel: cleared.cancel(),
    };
    let position = input.position(&file.path, &file.index, file.server.unit)?;
    let text = query.hover(position).await;
    let text = text.map_err(|error| request_refusal(&file.server, input.operation, &error))?;
    let shown = match &text {
        Some(text) => text.clone(),
        None => "no information about this position".to_owned(),
    };
    Ok(finish(input.operation, file, shown, json!({ "text": text })))
}

/// `diagnostics`: the problems of the file as it is now.
async fn diagnostics(file: &mut PreparedFile, cleared: &Cleared) -> CallResult {
    let operation = LspOperation::Diagnostics;
    // A compiler that the server runs reports at its end.
    let idle = unless_cancelled(cleared.cancel(), file.server.wait_idle(DIAGNOSTICS_TIMEOUT)).await?;
    file.ready &= idle;
    let server = &file.server;
    let document = server.open_document(&file.path);
    let problems = match document {
        Some(document) => {
            let asked = server.problems(&file.path, document, DIAGNOSTICS_TIMEOUT, cleared.cancel()).await;
            asked.map_err(|error| request_refusal(server, operation, &error))?
        }
        None => None,
    };
    let Some(mut problems) = problems else {
        return Err(Refusal::new(
            Code::LspFailed,
            format!(
                "language server `{}` reported no diagnostics within {} s",
                server.entry.name,
                DIAGNOSTICS_TIMEOUT.as_secs()
            ),
        )
        .hint("it may still be indexing: ask again later"));
    };
    problems.sort_by_key(|problem| (problem.line, problem.character));
    let shown = shown_path(&file.path, &cleared.context().workspace.cwd);
    let lines: Vec<String> = problems.iter().map(|problem| render_problem(problem, &shown, file)).collect();
    let text = if lines.is_empty() { format!("no problems in {shown}") } else { lines.join("\n") };
    let list: Vec<Value> = problems.iter().map(|problem| problem_json(problem, file)).collect();
    Ok(finish(operation, file, text, json!({ "diagnostics": list, "filePath": file.path })))
}

/// Line and column of a problem, from 1.
fn problem_place(problem: &CodeProblem, file: &PreparedFile) -> (usize, usize) {
    let position = gen_lsp_types::Position { line: problem.line, character: problem.character };
    let place = file.index.character_position(position, file.server.unit);
    place.map_or((problem.line as usize + 1, 1), |(line, column)| (line + 1, column + 1))
}

/// A problem as one line.
fn render_problem(problem: &CodeProblem, shown: &str, file: &PreparedFile) -> String {
    let (line, column) = problem_place(problem, file);
    format!("{shown}:{line}:{column}: {}", problem.describe())
}

/// A problem in the structured form of a result.
fn problem_json(problem: &CodeProblem, file: &PreparedFile) -> Value {
    let (line, column) = problem_place(problem, file);
    json!({
        "line": line,
        "character": column,
        "severity": problem.severity.as_str(),
        "message": problem.message,
        "code": problem.code,
        "source": problem.source,
    })
}

/// The operations whose answer is a list of places.
async fn places(input: &LspInput, file: &PreparedFile, cleared: &Cleared) -> CallResult {
    let operation = input.operation;
    let query = ServerQuery {
        server: &file.server,
        path: &file.path,
        limit: file.server.entry.request_timeout,
        cancel: cleared.cancel(),
    };
    let found = find_places(input, &query, file).await?;
    let (depths, raw): (Vec<usize>, Vec<RawPlace>) = found.into_iter().unzip();
    let mut reader = PlaceReader::new(cleared.files().clone(), file.root.clone(), file.server.unit);
    let list = run_blocking(move || reader.read(raw)).await;
    let list = list.map_err(|problem| Refusal::new(Code::LspFailed, problem.to_string()))?;
    let cwd = &cleared.context().workspace.cwd;
    let text = if operation == LspOperation::DocumentSymbol {
        // All in one file: the path would be on every line.
        let lines = list.places.iter().zip(&depths).map(|(place, depth)| {
            let label = place.label.as_deref().unwrap_or_default();
            format!("{}{label} [line {}]", "  ".repeat(*depth), place.line.unwrap_or_default())
        });
        lines.collect::<Vec<_>>().join("\n")
    } else {
        list.render(cwd)
    };
    let text = if list.is_empty() { format!("{}: nothing found", operation.as_str()) } else { text };
    let structured = json!({
        "results": list.places.iter().map(|place| place.to_json()).collect::<Vec<_>>(),
        "total": list.places.len() + list.surplus + list.withheld,
        "withheld": list.withheld,
    });
    Ok(finish(operation, file, text, structured))
}

/// Places with their depth.
type FoundPlaces = Vec<(usize, RawPlace)>;

/// Asks the server; each place has its depth, which only the symbols of a file use.
async fn find_places(
    input: &LspInput,
    query: &ServerQuery<'_>,
    file: &PreparedFile,
) -> Result<FoundPlaces, Refusal> {
    let unit = file.server.unit;
    let flat = |places: Vec<RawPlace>| places.into_iter().map(|place| (0, place)).collect();
    let position = || input.position(&file.path, &file.index, unit);
    let found = match input.operation {
        LspOperation::GoToDefinition => {
            query.definitions("textDocument/definition", position()?).await.map(flat)
        }
        LspOperation::GoToImplementation => {
            query.definitions("textDocument/implementation", position()?).await.map(flat)
        }
        LspOperation::FindReferences => query.references(position()?).await.map(flat),
        LspOperation::WorkspaceSymbol => {
            query.workspace_symbols(input.query.as_deref().unwrap_or_default()).await.map(flat)
        }
        LspOperation::DocumentSymbol => query.document_symbols().await,
        LspOperation::PrepareCallHierarchy => query
            .call_items(position()?)
            .await
            .map(|items| items.iter().map(|item| (0, call_place(item))).collect()),
        LspOperation::IncomingCalls => match query.call_items(position()?).await {
            Ok(items) => query.incoming_calls(items).await.map(flat),
            Err(error) => Err(error),
        },
        LspOperation::OutgoingCalls => match query.call_items(position()?).await {
            Ok(items) => query.outgoing_calls(items).await.map(flat),
            Err(error) => Err(error),
        },
        // INVARIANT: these have answers of their own.
        LspOperation::Hover
        | LspOperation::Diagnostics
        | LspOperation::Rename
        | LspOperation::Formatting
        | LspOperation::CodeActions
        | LspOperation::ApplyCodeAction
        | LspOperation::ApplyEdit => Ok(Vec::new()),
    };
    found.map_err(|error| request_refusal(&file.server, input.operation, &error))
}
