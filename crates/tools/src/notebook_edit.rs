//! `NotebookEdit`: replace, insert or delete one cell of a Jupyter notebook.
//!
//! A text edit of the JSON would work as well, but models get the quoting of sources wrong, and outputs of a changed
//! cell would stay.
//! The tool keeps everything else of the file: metadata, indentation and the final line end.

use crate::change_refusal::{change_refusal, changed_since_read_refusal, not_read_refusal};
use crate::diff::diff_hunks;
use crate::file_refusal::{check_absolute, file_refusal, missing_file_refusal};
use crate::notebook::{JupyterNotebook, multiline_to_string, string_to_multiline};
use crate::preview_change::{PreviewedFile, preview_change};
use crate::read_state::{FileFreshness, ReadState};
use crate::render_change::{change_notes, changed_lines_summary, render_change, structured_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_files::{ContentHash, FileSnapshot, GrantedFiles, LockedFile, resolve};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, Refusal, WriteKind};

/// A larger notebook is not edited: it is parsed in memory.
const MAX_NOTEBOOK_BYTES: u64 = 100 << 20;
/// Cell ids that the refusal for an unknown id lists.
const MAX_LISTED_ID_COUNT: usize = 20;
/// Length of the id of a new cell.
const CELL_ID_CHARS: usize = 8;

/// Edits one cell of a notebook.
pub(crate) struct NotebookEditTool;

/// Input of [`NotebookEditTool`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotebookEditInput {
    /// The absolute path of the notebook.
    notebook_path: String,
    /// The new source of the cell; ignored when a cell is deleted.
    new_source: String,
    /// The id of the cell; a new cell goes after it, or to the start without it.
    cell_id: Option<String>,
    /// Required for a new cell.
    cell_type: Option<NotebookCellType>,
    /// Default: `replace`.
    edit_mode: Option<NotebookEditMode>,
}

/// The type of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NotebookCellType {
    /// Source code.
    Code,
    /// Formatted text.
    Markdown,
}

/// The edit to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NotebookEditMode {
    /// Replaces the source.
    Replace,
    /// Inserts a cell.
    Insert,
    /// Deletes the cell.
    Delete,
}

impl NotebookCellType {
    /// The name in the notebook format.
    fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

impl NotebookEditInput {
    /// The edit to make.
    fn mode(&self) -> NotebookEditMode {
        self.edit_mode.unwrap_or(NotebookEditMode::Replace)
    }
}

impl Tool for NotebookEditTool {
    type Input = NotebookEditInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "NotebookEdit",
            "Edits one cell of a notebook (.ipynb): replaces its source, inserts a cell after it, or deletes it. Use \
             the cell ids that Read shows. A new source clears the outputs. Read the notebook first.",
        );
        spec.title = "Edit notebook".to_owned();
        spec.family = Some("Edit".to_owned());
        spec.input_examples = vec![json!({
            "notebook_path": "/project/a.ipynb", "cell_id": "cell-2", "new_source": "print(1)"
        })];
        spec
    }

    /// Requires a `.ipynb` path and the fields of the edit mode.
    fn check(&self, input: &NotebookEditInput) -> Result<(), Refusal> {
        check_absolute("notebook_path", &input.notebook_path)?;
        if !input.notebook_path.ends_with(".ipynb") {
            return Err(Refusal::new(Code::BadArgument, "`notebook_path` must name a `.ipynb` file")
                .hint("use Edit for other files"));
        }
        match input.mode() {
            NotebookEditMode::Insert if input.cell_type.is_none() => {
                Err(Refusal::new(Code::BadArgument, "`cell_type` is missing: a new cell needs one"))
            }
            NotebookEditMode::Replace | NotebookEditMode::Delete if input.cell_id.is_none() => {
                Err(Refusal::new(Code::BadArgument, "`cell_id` is missing: it selects the cell"))
            }
            NotebookEditMode::Insert | NotebookEditMode::Replace | NotebookEditMode::Delete => Ok(()),
        }
    }

    fn intent(&self, input: &NotebookEditInput, context: &CallContext) -> Intent {
        let path = context.absolute_path(&input.notebook_path);
        Intent::new(format!("edit {path}"), [Effect::Write { path, kind: WriteKind::Edit }])
    }

    /// Refuses a notebook that the session has not read: cell ids are known only from a read.
    async fn guard(&self, input: &NotebookEditInput, context: &CallContext) -> Result<(), Refusal> {
        let path = context.absolute_path(&input.notebook_path);
        let fact = resolve(&path);
        if fact.kind == EntryKind::File && ReadState::of(&context.session).get(&fact.real).is_none() {
            return Err(not_read_refusal(&path));
        }
        Ok(())
    }

    /// Computes the diff for the approval prompt and refuses a notebook that changed after the session read it.
    async fn preview(
        &self,
        input: &NotebookEditInput,
        context: &CallContext,
        files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let path = context.absolute_path(&input.notebook_path);
        let state = ReadState::of(&context.session);
        let (requested, granted, input) = (path.clone(), files.clone(), input.clone());
        let change = move |file: &PreviewedFile| {
            let Some(before) = &file.before else { return Err(missing_file_refusal(&granted, &requested)) };
            check_freshness(&file.real, &requested, before, &state).map_err(Refusal::without_partial)?;
            let (_, content, _) = change_notebook(&requested, before, &input)?;
            Ok(Some(content))
        };
        preview_change(files, &path, change).await
    }

    /// Edits the notebook under the lock of the file. A missing notebook is not created.
    async fn run(&self, input: NotebookEditInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.notebook_path);
        let state = ReadState::of(&cleared.context().session);
        let requested = path.clone();
        let work = move |file: &LockedFile| {
            let before = file
                .read(MAX_NOTEBOOK_BYTES)
                .map_err(|problem| file_refusal(&requested, &problem, Code::FileEdit))?;
            let Some(before) = before else { return Ok(None) };
            edit_notebook(file, &requested, &before, &input, &state).map(Some)
        };
        let result = cleared.files().change_file(&path, work).await;
        match result.map_err(|problem| file_refusal(&path, &problem, Code::FileEdit))?? {
            Some(output) => Ok(output),
            None => Err(missing_file_refusal(cleared.files(), &path)),
        }
    }
}

/// The edited cell, for the result.
struct CellChange {
    /// The id of the cell; the new one for a new cell.
    id: String,
    /// The `cell_type` after the edit; before it for a deleted cell.
    kind: String,
    /// The source before the edit; `None` for a new cell.
    old_source: Option<String>,
}

/// Edits a notebook under its lock and writes it.
fn edit_notebook(
    file: &LockedFile,
    path: &AbsPath,
    before: &FileSnapshot,
    input: &NotebookEditInput,
    state: &ReadState,
) -> CallResult {
    let whole = check_freshness(file.real_path(), path, before, state)?;
    let (notebook, content, change) = change_notebook(path, before, input)?;
    let mode = input.mode();
    let applied = file.put(Some(before), &content);
    let applied = applied.map_err(|problem| change_refusal(path, &problem, Code::FileEdit))?;
    state.record_write(file.real_path().clone(), applied.fingerprint, &content, applied.hash, whole);
    let hunks = diff_hunks(&before.bytes, &content);
    let verb = match mode {
        NotebookEditMode::Replace => "replaced",
        NotebookEditMode::Insert => "inserted",
        NotebookEditMode::Delete => "deleted",
    };
    let headline = format!("{verb} cell `{}` of {path}: {}", change.id, changed_lines_summary(&hunks));
    let structured = json!({
        "new_source": input.new_source,
        "old_source": change.old_source,
        "cell_id": change.id,
        "cell_type": change.kind,
        "language": notebook.language(),
        "edit_mode": mode,
        "notebook_path": path,
        "original_file": structured_text(&before.bytes),
        "updated_file": structured_text(&content),
    });
    Ok(Output::text(render_change(headline.clone(), &change_notes(&applied), &hunks))
        .display(headline)
        .structured(structured))
}

/// Refuses a notebook that was not read or has changed since. Returns whether all of it was read.
fn check_freshness(
    real: &AbsPath,
    path: &AbsPath,
    before: &FileSnapshot,
    state: &ReadState,
) -> Result<bool, Refusal> {
    match state.compare(real, before) {
        FileFreshness::Unseen => Err(not_read_refusal(path)),
        // Ids of older notebooks are indices: after a change they may select another cell.
        FileFreshness::Changed { diff } => Err(changed_since_read_refusal(path, diff)),
        FileFreshness::Same { whole } => Ok(whole),
    }
}

/// The notebook after the edit, as a value and as bytes, and the cell that was edited.
fn change_notebook(
    path: &AbsPath,
    before: &FileSnapshot,
    input: &NotebookEditInput,
) -> Result<(JupyterNotebook, Vec<u8>, CellChange), Refusal> {
    let mut notebook =
        JupyterNotebook::parse(&before.bytes).map_err(|reason| invalid_notebook_refusal(path, &reason))?;
    let change = edit_cell(&mut notebook, path, input, input.mode(), before)?;
    let content = notebook.render(&before.bytes).map_err(|reason| Refusal::new(Code::FileEdit, reason))?;
    Ok((notebook, content, change))
}

/// Makes the edit in the parsed notebook. `before` seeds the id of a new cell.
fn edit_cell(
    notebook: &mut JupyterNotebook,
    path: &AbsPath,
    input: &NotebookEditInput,
    mode: NotebookEditMode,
    before: &FileSnapshot,
) -> Result<CellChange, Refusal> {
    let position = match &input.cell_id {
        Some(id) => {
            Some(notebook.cell_position(id).ok_or_else(|| cell_not_found_refusal(notebook, path, id))?)
        }
        None => None,
    };
    let new_id = notebook.has_ids().then(|| new_cell_id(notebook, before));
    let broken = || invalid_notebook_refusal(path, "a cell is not an object");
    let cells = notebook.cells_mut().ok_or_else(broken)?;
    match mode {
        NotebookEditMode::Insert => {
            let kind = input.cell_type.unwrap_or(NotebookCellType::Code);
            let index = position.map_or(0, |position| position + 1);
            cells.insert(index, new_cell(kind, &input.new_source, new_id.as_deref()));
            let id = new_id.unwrap_or_else(|| format!("cell-{index}"));
            Ok(CellChange { id, kind: kind.as_str().to_owned(), old_source: None })
        }
        NotebookEditMode::Delete => {
            let position = position.filter(|position| *position < cells.len()).ok_or_else(broken)?;
            let id = JupyterNotebook::cell_id(cells.get(position).ok_or_else(broken)?, position);
            let cell = cells.remove(position);
            let kind = multiline_to_string(cell.get("cell_type"));
            Ok(CellChange { id, kind, old_source: Some(multiline_to_string(cell.get("source"))) })
        }
        NotebookEditMode::Replace => {
            let position = position.ok_or_else(broken)?;
            let cell = cells.get_mut(position).ok_or_else(broken)?;
            let id = JupyterNotebook::cell_id(cell, position);
            let cell = cell.as_object_mut().ok_or_else(broken)?;
            let old_source = Some(multiline_to_string(cell.get("source")));
            let kind = replace_source(cell, input);
            Ok(CellChange { id, kind, old_source })
        }
    }
}

/// Sets the source and the fields that the format requires for the cell's type. Returns that type.
fn replace_source(cell: &mut Map<String, Value>, input: &NotebookEditInput) -> String {
    cell.insert("source".to_owned(), string_to_multiline(&input.new_source));
    let kind = match input.cell_type {
        Some(kind) => kind.as_str().to_owned(),
        None => multiline_to_string(cell.get("cell_type")),
    };
    cell.insert("cell_type".to_owned(), json!(kind));
    if kind == "code" {
        cell.insert("outputs".to_owned(), json!([]));
        cell.insert("execution_count".to_owned(), Value::Null);
    } else {
        cell.shift_remove("outputs");
        cell.shift_remove("execution_count");
    }
    kind
}

/// A new cell with the fields that the format requires, in the order in which Jupyter writes them.
fn new_cell(kind: NotebookCellType, source: &str, id: Option<&str>) -> Value {
    let mut cell = Map::new();
    cell.insert("cell_type".to_owned(), json!(kind.as_str()));
    if kind == NotebookCellType::Code {
        cell.insert("execution_count".to_owned(), Value::Null);
    }
    if let Some(id) = id {
        cell.insert("id".to_owned(), json!(id));
    }
    cell.insert("metadata".to_owned(), json!({}));
    if kind == NotebookCellType::Code {
        cell.insert("outputs".to_owned(), json!([]));
    }
    cell.insert("source".to_owned(), string_to_multiline(source));
    Value::Object(cell)
}

/// An id that no cell has. It is derived from the content hash instead of a random number, so that the same edit gives
/// the same file.
fn new_cell_id(notebook: &JupyterNotebook, before: &FileSnapshot) -> String {
    let mut hash = ContentHash::of(before.hash().to_string().as_bytes()).to_string();
    loop {
        let id: String = hash.chars().take(CELL_ID_CHARS).collect();
        if notebook.cell_position(&id).is_none() {
            return id;
        }
        hash = ContentHash::of(hash.as_bytes()).to_string();
    }
}

/// The refusal for a file that is not a notebook of format 4.
fn invalid_notebook_refusal(path: &AbsPath, reason: &str) -> Refusal {
    Refusal::new(Code::FileEdit, format!("`{path}` is not a valid notebook: {reason}"))
}

/// Lists the ids of the first cells, so that the next call can use a valid one.
fn cell_not_found_refusal(notebook: &JupyterNotebook, path: &AbsPath, id: &str) -> Refusal {
    let ids: Vec<String> = notebook
        .cells()
        .iter()
        .enumerate()
        .take(MAX_LISTED_ID_COUNT)
        .map(|(index, cell)| format!("`{}`", JupyterNotebook::cell_id(cell, index)))
        .collect();
    Refusal::new(Code::EditTargetNotFound, format!("`{path}` has no cell `{id}`")).hint(if ids.is_empty() {
        "the notebook has no cells".to_owned()
    } else {
        format!("its cells are {}", ids.join(", "))
    })
}
