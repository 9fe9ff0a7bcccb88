//! Operations that change files: rename, formatting, code actions. Each makes a plan, and a second call through the gate
//! applies it.

use crate::connection::RequestError;
use crate::edit_plan::{EditPlan, EditPlans, MAX_EDITED_FILE_BYTES, PlannedFile, collect_edits, plan_files};
use crate::found_place::shown_path;
use crate::lsp_input::{LspInput, LspOperation};
use crate::lsp_tool::{LspTool, PreparedFile, request_refusal};
use crate::uri_path::to_uri;
use gen_lsp_types::{CodeAction, CodeActionResponse, TextEdit, WorkspaceEdit};
use serde_json::{Value, json};
use similar::TextDiff;
use std::collections::HashMap;
use std::sync::Arc;
use toolgate_files::{FileProblem, LockedFile, run_blocking};
use toolgate_gate::{CallContext, CallOptions, Cleared};
use toolgate_proto::{AbsPath, CallResult, Code, Output, Refusal, ToolCall};

/// Files that a result lists.
const MAX_LISTED_FILES: usize = 100;
/// Lines of the diff that an approver sees.
const MAX_PREVIEW_LINES: usize = 400;
/// The width of an indentation for formatters.
const TAB_SIZE: u32 = 4;

/// The plan that an input names.
pub(crate) fn find_plan(input: &LspInput, context: &CallContext) -> Option<Arc<EditPlan>> {
    context.session.state::<EditPlans>().get(input.edit.as_deref()?)
}

/// What a plan would change, as a unified diff.
pub(crate) fn preview_plan(plan: &EditPlan) -> String {
    let mut text = String::new();
    for file in &plan.files {
        let diff = TextDiff::from_lines(&file.before, &file.after);
        let name = file.path.to_string();
        text.push_str(&diff.unified_diff().context_radius(1).header(&name, &name).to_string());
        if text.lines().count() > MAX_PREVIEW_LINES {
            text.push_str(&format!("[{} files in all]\n", plan.files.len()));
            break;
        }
    }
    text
}

/// Why a change would be incomplete, in the server's own words. A warning, about a part of the project that could not be
/// loaded, ends a rename only: a use that is not found stays as it was, and breaks the program.
fn load_problem(operation: LspOperation, file: &PreparedFile) -> Option<String> {
    let readiness = file.server.state.readiness();
    let warning = readiness.warning().filter(|_| operation == LspOperation::Rename);
    let failure = readiness.failure().filter(|_| operation.needs_index());
    failure.or(warning).map(str::to_owned)
}

impl LspTool {
    /// Asks for the edits of an operation, and applies them by a call of its own.
    pub(crate) async fn change(
        &self,
        input: &LspInput,
        file: &PreparedFile,
        cleared: &Cleared,
    ) -> CallResult {
        let failed = |error: RequestError| request_refusal(&file.server, input.operation, &error);
        let (title, edit) = match input.operation {
            LspOperation::Rename => rename(input, file, cleared).await?,
            LspOperation::Formatting => format(file, cleared).await.map_err(failed)?,
            _ => code_action(input, file, cleared).await?,
        };
        let edits = collect_edits(edit)?;
        let (files, unit) = (cleared.files().clone(), file.server.unit);
        let planned = run_blocking(move || plan_files(&files, edits, unit)).await;
        let planned = planned.map_err(|problem| Refusal::new(Code::LspFailed, problem.to_string()))??;
        if planned.is_empty() {
            return Ok(Output::text(format!("{title}: nothing to change")).structured(json!({ "files": [] })));
        }
        if !file.ready {
            return Err(Refusal::new(
                Code::LspFailed,
                format!("`{}` is still indexing, so the change would be incomplete", file.server.entry.name),
            )
            .hint("nothing was changed; call again later"));
        }
        if let Some(problem) = load_problem(input.operation, file) {
            return Err(Refusal::new(
                Code::LspFailed,
                format!(
                    "`{}` could not load the project, so the change would be incomplete: {problem}",
                    file.server.entry.name,
                ),
            )
            .hint("nothing was changed; repair the project, or make the change with the tools for files"));
        }
        let plan = cleared.context().session.state::<EditPlans>().add(title, planned);
        self.call_apply(input, &plan, cleared).await
    }

    /// Makes the call that applies a plan: it is judged by the files that it names, asked about, recorded and undone as one.
    async fn call_apply(&self, input: &LspInput, plan: &EditPlan, cleared: &Cleared) -> CallResult {
        let gate = self.source_tools.get().and_then(|tools| tools.gate());
        let Some(gate) = gate else {
            return Err(Refusal::new(Code::LspFailed, "the gate was closed"));
        };
        let apply = json!({ "operation": "applyEdit", "filePath": input.file_path, "edit": plan.id });
        let id = format!("{}_edit", cleared.call());
        let call = ToolCall::new(id.as_str(), self.name, apply.to_string());
        let options = CallOptions::default().with_cancel(cleared.cancel().clone());
        // Boxed, because the call may be one of this very tool.
        let outcome = Box::pin(gate.call(&cleared.context().session, call, options)).await;
        cleared.context().session.state::<EditPlans>().remove(&plan.id);
        outcome.result
    }
}

/// `rename`: the edit of the server.
async fn rename(
    input: &LspInput,
    file: &PreparedFile,
    cleared: &Cleared,
) -> Result<(String, WorkspaceEdit), Refusal> {
    let position = input.position(&file.path, &file.index, file.server.unit)?;
    let name = input.new_name.as_deref().unwrap_or_default();
    let params = json!({
        "textDocument": { "uri": to_uri(&file.path).0 }, "position": position, "newName": name,
    });
    let edit: Option<WorkspaceEdit> = file
        .server
        .request("textDocument/rename", &params, file.server.entry.request_timeout, cleared.cancel())
        .await
        .map_err(|error| request_refusal(&file.server, input.operation, &error))?;
    let edit = edit.ok_or_else(|| {
        Refusal::new(Code::LspFailed, "there is nothing at this position that can be renamed")
            .hint("give the `symbol` to rename and its line")
    })?;
    Ok((format!("rename to `{name}`"), edit))
}

/// `formatting`: the edits of the server, with the indentation that the file has.
async fn format(file: &PreparedFile, cleared: &Cleared) -> Result<(String, WorkspaceEdit), RequestError> {
    let indented = file.index.text().lines().find(|line| line.starts_with([' ', '\t']));
    let with_spaces = indented.is_none_or(|line| line.starts_with(' '));
    let params = json!({
        "textDocument": { "uri": to_uri(&file.path).0 },
        "options": { "tabSize": TAB_SIZE, "insertSpaces": with_spaces },
    });
    let method = "textDocument/formatting";
    let edits: Option<Vec<TextEdit>> =
        file.server.request(method, &params, file.server.entry.request_timeout, cleared.cancel()).await?;
    let changes = HashMap::from([(to_uri(&file.path), edits.unwrap_or_default())]);
    let edit = WorkspaceEdit { changes: Some(changes), document_changes: None, change_annotations: None };
    Ok((format!("format {}", file.path), edit))
}

/// The code actions at the position or on the line.
async fn list_actions(
    input: &LspInput,
    file: &PreparedFile,
    cleared: &Cleared,
) -> Result<Vec<CodeActionResponse>, Refusal> {
    let range = input.range(&file.path, &file.index, file.server.unit)?;
    let document = file.server.open_document(&file.path);
    let known = match document {
        Some(document) => {
            let limit = std::time::Duration::from_secs(5);
            file.server.problems(&file.path, document, limit, cleared.cancel()).await.ok().flatten()
        }
        None => None,
    };
    let known = known.unwrap_or_default();
    let lines = range.start.line..=range.end.line;
    let diagnostics: Vec<Value> = known
        .iter()
        .filter(|problem| lines.contains(&problem.line))
        .map(|problem| problem.to_lsp())
        .collect();
    let params = json!({
        "textDocument": { "uri": to_uri(&file.path).0 },
        "range": range,
        "context": { "diagnostics": diagnostics, "triggerKind": 1 },
    });
    let asked: Result<Option<Vec<CodeActionResponse>>, _> = file
        .server
        .request("textDocument/codeAction", &params, file.server.entry.request_timeout, cleared.cancel())
        .await;
    let actions = asked.map_err(|error| request_refusal(&file.server, input.operation, &error))?;
    Ok(actions.unwrap_or_default())
}

/// `codeActions`: the list, by title.
pub(crate) async fn show_actions(input: &LspInput, file: &PreparedFile, cleared: &Cleared) -> CallResult {
    let actions = list_actions(input, file, cleared).await?;
    let describe = |action: &CodeActionResponse| match action {
        CodeActionResponse::Command(command) => (command.title.clone(), None, false, false),
        CodeActionResponse::CodeAction(action) => (
            action.title.clone(),
            action.kind.clone().map(String::from),
            action.is_preferred == Some(true),
            action.disabled.is_none() && (action.edit.is_some() || action.command.is_none()),
        ),
    };
    let mut lines = Vec::new();
    let mut list = Vec::new();
    for (title, kind, is_preferred, can_apply) in actions.iter().map(describe) {
        let kind_text = kind.as_ref().map(|kind| format!(" [{kind}]")).unwrap_or_default();
        let preferred = if is_preferred { ", preferred" } else { "" };
        let only_command = if can_apply { "" } else { ", cannot be applied here" };
        lines.push(format!("{title}{kind_text}{preferred}{only_command}"));
        list.push(
            json!({ "title": title, "kind": kind, "preferred": is_preferred, "applicable": can_apply }),
        );
    }
    let text = if lines.is_empty() { "no code actions here".to_owned() } else { lines.join("\n") };
    Ok(Output::text(text).structured(json!({ "actions": list })))
}

/// `applyCodeAction`: the edit of the action with this title.
async fn code_action(
    input: &LspInput,
    file: &PreparedFile,
    cleared: &Cleared,
) -> Result<(String, WorkspaceEdit), Refusal> {
    let wanted = input.action.as_deref().unwrap_or_default();
    let actions = list_actions(input, file, cleared).await?;
    let title = |action: &CodeActionResponse| match action {
        CodeActionResponse::Command(command) => command.title.clone(),
        CodeActionResponse::CodeAction(action) => action.title.clone(),
    };
    let titles: Vec<String> = actions.iter().map(title).collect();
    let Some(found) = actions.into_iter().find(|action| title(action) == wanted) else {
        return Err(Refusal::new(
            Code::BadArgument,
            format!("there is no code action `{wanted}` here; there are: {}", titles.join("; ")),
        )
        .hint("list them with `codeActions`"));
    };
    let runs_command = || {
        Refusal::new(
            Code::LspFailed,
            format!("`{wanted}` runs a command in the language server, which could change anything"),
        )
        .hint("make the change with the tools for files")
    };
    let CodeActionResponse::CodeAction(mut action) = found else { return Err(runs_command()) };
    if action.edit.is_none() {
        let resolved: Result<CodeAction, _> = file
            .server
            .request("codeAction/resolve", &action, file.server.entry.request_timeout, cleared.cancel())
            .await;
        action = resolved.map_err(|error| request_refusal(&file.server, input.operation, &error))?;
    }
    let edit = action.edit.ok_or_else(runs_command)?;
    Ok((format!("code action `{wanted}`"), edit))
}

/// `applyEdit`: writes every file of the plan, or none.
pub(crate) async fn apply_plan(input: &LspInput, cleared: &Cleared) -> CallResult {
    let Some(plan) = find_plan(input, cleared.context()) else {
        return Err(Refusal::new(Code::BadArgument, "there is no such edit; it was applied or dropped")
            .hint("call `rename`, `formatting` or `applyCodeAction` again"));
    };
    // All are compared before the first is written: a file that changed is found while nothing has to be taken back.
    for file in &plan.files {
        let (files, path) = (cleared.files().clone(), file.path.clone());
        let now = run_blocking(move || files.read(&path, MAX_EDITED_FILE_BYTES)).await.and_then(|now| now);
        let now = now.map_err(|problem| write_refusal(&file.path, &problem.to_string()))?;
        if now.bytes != file.before.as_bytes() {
            return Err(Refusal::new(
                Code::ChangedSinceRead,
                format!("`{}` changed after the edit was computed; nothing was written", file.path),
            )
            .hint("call the operation again"));
        }
    }
    for (index, file) in plan.files.iter().enumerate() {
        if let Err(refusal) = write_file(cleared, file, &file.before, &file.after).await {
            let left = restore_written(cleared, plan.files.get(..index).unwrap_or_default()).await;
            return Err(match left.is_empty() {
                true => refusal,
                false => refusal.hint(format!("these files stay changed: {}", left.join(", "))),
            });
        }
    }
    cleared.context().session.state::<EditPlans>().remove(&plan.id);
    Ok(render_applied(&plan, &cleared.context().workspace.cwd))
}

/// Replaces the content of one file, which must still be `before`.
async fn write_file(cleared: &Cleared, file: &PlannedFile, before: &str, after: &str) -> Result<(), Refusal> {
    let (before, after) = (before.to_owned(), after.to_owned());
    let work = move |locked: &LockedFile| {
        let now = locked.read(MAX_EDITED_FILE_BYTES).map_err(|problem| problem.to_string())?;
        match now {
            Some(now) if now.bytes == before.as_bytes() => {
                locked.put(Some(&now), after.as_bytes()).map(drop).map_err(|problem| problem.to_string())
            }
            _ => Err("it changed meanwhile".to_owned()),
        }
    };
    let written = cleared.files().change_file(&file.path, work).await;
    written
        .map_err(|problem: FileProblem| write_refusal(&file.path, &problem.to_string()))?
        .map_err(|problem| write_refusal(&file.path, &problem))
}

/// Restores files that were written before another one failed. Returns those that could not be restored.
async fn restore_written(cleared: &Cleared, written: &[PlannedFile]) -> Vec<String> {
    let mut left = Vec::new();
    for file in written {
        if write_file(cleared, file, &file.after, &file.before).await.is_err() {
            left.push(format!("`{}`", file.path));
        }
    }
    left
}

/// Why a file of a plan was not written.
fn write_refusal(path: &AbsPath, problem: &str) -> Refusal {
    Refusal::new(Code::FileWrite, format!("`{path}` cannot be written: {problem}"))
        .hint("nothing was changed; call the operation again")
}

/// The result: what was done, and in which files.
fn render_applied(plan: &EditPlan, cwd: &AbsPath) -> Output {
    let edits: usize = plan.files.iter().map(|file| file.edits).sum();
    let count =
        |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let mut lines = vec![format!(
        "{}: {} in {}",
        plan.title,
        count(edits, "edit", "edits"),
        count(plan.files.len(), "file", "files")
    )];
    for file in plan.files.iter().take(MAX_LISTED_FILES) {
        lines.push(format!("{}: {}", shown_path(&file.path, cwd), count(file.edits, "edit", "edits")));
    }
    let surplus = plan.files.len().saturating_sub(MAX_LISTED_FILES);
    if surplus > 0 {
        lines.push(format!("[{surplus} more files]"));
    }
    let files: Vec<Value> =
        plan.files.iter().map(|file| json!({ "filePath": file.path, "edits": file.edits })).collect();
    Output::text(lines.join("\n")).structured(json!({
        "operation": LspOperation::ApplyEdit.as_str(), "title": plan.title, "files": files,
    }))
}
