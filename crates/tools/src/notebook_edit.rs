//! `NotebookEditTool`: changing one cell of a notebook.

use crate::change_report::{
    MAX_ORIGINAL_BYTES, change_notes, change_refusal, changed_lines_summary, changed_since_read_refusal,
    not_read_refusal, render_change,
};
use crate::diff::diff_hunks;
use crate::file_refusal::{check_absolute, file_refusal, missing_file_refusal};
use crate::notebook::{JupyterNotebook, multiline_to_string, string_to_multiline};
use crate::read_state::{FileFreshness, ReadState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_files::{ContentHash, FileSnapshot, LockedFile, resolve};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, Refusal, WriteKind};

const MAX_NOTEBOOK_BYTES: u64 = 100 << 20;

/// The tool.
pub(crate) struct NotebookEditTool;

/// Input of [`NotebookEditTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotebookEditInput {
    /// The absolute path of the notebook.
    notebook_path: String,
    /// The new source of the cell; ignored when a cell is deleted.
    new_source: String,
    /// The cell's id; a new cell is put after it, or at the start without it.
    cell_id: Option<String>,
    /// What the cell is; needed for a new cell.
    cell_type: Option<NotebookCellType>,
    /// What to do; `replace` where absent.
    edit_mode: Option<NotebookEditMode>,
}

/// A kind of cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NotebookCellType {
    /// Runs.
    Code,
    /// Is read.
    Markdown,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NotebookEditMode {
    /// Gives the cell a new source.
    Replace,
    /// Adds a cell.
    Insert,
    /// Removes the cell.
    Delete,
}

impl NotebookCellType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

impl Tool for NotebookEditTool {
    type Input = NotebookEditInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "NotebookEdit",
            "Changes one cell of a notebook (.ipynb): replaces its source, inserts a cell after it, or deletes \
             it. Cells go by the ids that Read shows. A new source removes the outputs. Read the notebook first.",
        );
        spec.title = "Edit notebook".to_owned();
        spec.family = Some("Edit".to_owned());
        spec.input_examples = vec![json!({
            "notebook_path": "/project/a.ipynb", "cell_id": "cell-2", "new_source": "print(1)"
        })];
        spec
    }

    fn check(&self, input: &NotebookEditInput) -> Result<(), Refusal> {
        check_absolute("notebook_path", &input.notebook_path)?;
        if !input.notebook_path.ends_with(".ipynb") {
            return Err(Refusal::new(Code::BadArgument, "`/notebook_path` must name a `.ipynb` file")
                .hint("use Edit for other files"));
        }
        let mode = input.edit_mode.unwrap_or(NotebookEditMode::Replace);
        match mode {
            NotebookEditMode::Insert if input.cell_type.is_none() => {
                Err(Refusal::new(Code::BadArgument, "`/cell_type` is needed for a new cell"))
            }
            NotebookEditMode::Replace | NotebookEditMode::Delete if input.cell_id.is_none() => {
                Err(Refusal::new(Code::BadArgument, "`/cell_id` is needed: it says which cell"))
            }
            NotebookEditMode::Insert | NotebookEditMode::Replace | NotebookEditMode::Delete => Ok(()),
        }
    }

    fn intent(&self, input: &NotebookEditInput, scene: &CallContext) -> Intent {
        let path = scene.absolute_path(&input.notebook_path);
        Intent::new(format!("edit {path}"), [Effect::Write { path, kind: WriteKind::Edit }])
    }

    async fn guard(&self, input: &NotebookEditInput, scene: &CallContext) -> Result<(), Refusal> {
        let path = scene.absolute_path(&input.notebook_path);
        let fact = resolve(&path);
        if fact.kind == EntryKind::File && ReadState::of(&scene.session).get(&fact.real).is_none() {
            return Err(not_read_refusal(&path));
        }
        Ok(())
    }

    async fn run(&self, input: NotebookEditInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.notebook_path);
        let state = ReadState::of(&cleared.context().session);
        let asked = path.clone();
        let work = move |held: &LockedFile| {
            let before = held
                .read(MAX_NOTEBOOK_BYTES)
                .map_err(|problem| file_refusal(&asked, &problem, Code::FileEdit))?;
            let Some(before) = before else { return Ok(None) };
            change_notebook(held, &asked, &before, &input, &state).map(Some)
        };
        let done = cleared.files().change_file(&path, work).await;
        match done.map_err(|problem| file_refusal(&path, &problem, Code::FileEdit))?? {
            Some(output) => Ok(output),
            None => Err(missing_file_refusal(cleared.files(), &path)),
        }
    }
}

/// What happened to the cell.
struct CellChange {
    id: String,
    kind: String,
    old_source: Option<String>,
}

fn change_notebook(
    held: &LockedFile,
    path: &AbsPath,
    before: &FileSnapshot,
    input: &NotebookEditInput,
    state: &ReadState,
) -> CallResult {
    let whole = match state.compare(held.real_path(), before) {
        FileFreshness::Unseen => return Err(not_read_refusal(path)),
        // Cells go by ids and numbers: in a notebook that changed, those may mean another cell.
        FileFreshness::Changed { diff } => return Err(changed_since_read_refusal(path, diff)),
        FileFreshness::Same { whole } => whole,
    };
    let mut notebook = JupyterNotebook::parse(&before.bytes)
        .map_err(|words| Refusal::new(Code::FileEdit, format!("`{path}` is no valid notebook: {words}")))?;
    let mode = input.edit_mode.unwrap_or(NotebookEditMode::Replace);
    let done = edit_cell(&mut notebook, path, input, mode, before)?;
    let content = notebook.render(&before.bytes).map_err(|words| Refusal::new(Code::FileEdit, words))?;
    let put = held.put(Some(before), &content);
    let put = put.map_err(|problem| change_refusal(path, &problem, Code::FileEdit))?;
    state.record_write(held.real_path().clone(), put.fingerprint, &content, put.hash, whole);
    let hunks = diff_hunks(&before.bytes, &content);
    let verb = match mode {
        NotebookEditMode::Replace => "replaced",
        NotebookEditMode::Insert => "inserted",
        NotebookEditMode::Delete => "deleted",
    };
    let head = format!("{verb} cell `{}` of {path}: {}", done.id, changed_lines_summary(&hunks));
    let text = |bytes: &[u8]| {
        (bytes.len() <= MAX_ORIGINAL_BYTES).then(|| String::from_utf8_lossy(bytes).into_owned())
    };
    let structured = json!({
        "new_source": input.new_source,
        "old_source": done.old_source,
        "cell_id": done.id,
        "cell_type": done.kind,
        "language": notebook.language(),
        "edit_mode": mode,
        "notebook_path": path,
        "original_file": text(&before.bytes),
        "updated_file": text(&content),
    });
    Ok(Output::text(render_change(head.clone(), &change_notes(&put), &hunks))
        .display(head)
        .structured(structured))
}

fn edit_cell(
    notebook: &mut JupyterNotebook,
    path: &AbsPath,
    input: &NotebookEditInput,
    mode: NotebookEditMode,
    before: &FileSnapshot,
) -> Result<CellChange, Refusal> {
    let at = match &input.cell_id {
        Some(id) => {
            Some(notebook.cell_position(id).ok_or_else(|| cell_not_found_refusal(notebook, path, id))?)
        }
        None => None,
    };
    let fresh = notebook.has_ids().then(|| new_cell_id(notebook, before));
    let broken = || Refusal::new(Code::FileEdit, format!("`{path}` is no valid notebook"));
    let cells = notebook.cells_mut().ok_or_else(broken)?;
    match mode {
        NotebookEditMode::Insert => {
            let kind = input.cell_type.unwrap_or(NotebookCellType::Code);
            let index = at.map_or(0, |at| at + 1);
            cells.insert(index, new_cell(kind, &input.new_source, fresh.as_deref()));
            let id = fresh.unwrap_or_else(|| format!("cell-{index}"));
            Ok(CellChange { id, kind: kind.as_str().to_owned(), old_source: None })
        }
        NotebookEditMode::Delete => {
            let at = at.filter(|at| *at < cells.len()).ok_or_else(broken)?;
            let id = JupyterNotebook::cell_id(cells.get(at).ok_or_else(broken)?, at);
            let cell = cells.remove(at);
            let kind = multiline_to_string(cell.get("cell_type"));
            Ok(CellChange { id, kind, old_source: Some(multiline_to_string(cell.get("source"))) })
        }
        NotebookEditMode::Replace => {
            let at = at.ok_or_else(broken)?;
            let cell = cells.get_mut(at).ok_or_else(broken)?;
            let id = JupyterNotebook::cell_id(cell, at);
            let cell = cell.as_object_mut().ok_or_else(broken)?;
            let old_source = Some(multiline_to_string(cell.get("source")));
            let kind = replace_source(cell, input);
            Ok(CellChange { id, kind, old_source })
        }
    }
}

/// A new source, and what the format wants for the kind of cell it is then.
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

/// An id that no cell has, made from the content so that the same edit gives the same file.
fn new_cell_id(notebook: &JupyterNotebook, before: &FileSnapshot) -> String {
    let mut hash = ContentHash::of(before.hash().to_string().as_bytes()).to_string();
    loop {
        let id: String = hash.chars().take(8).collect();
        if notebook.cell_position(&id).is_none() {
            return id;
        }
        hash = ContentHash::of(hash.as_bytes()).to_string();
    }
}

fn cell_not_found_refusal(notebook: &JupyterNotebook, path: &AbsPath, id: &str) -> Refusal {
    let ids: Vec<String> = notebook
        .cells()
        .iter()
        .enumerate()
        .take(20)
        .map(|(index, cell)| format!("`{}`", JupyterNotebook::cell_id(cell, index)))
        .collect();
    Refusal::new(Code::EditTargetNotFound, format!("`{path}` has no cell `{id}`")).hint(if ids.is_empty() {
        "the notebook has no cells".to_owned()
    } else {
        format!("its cells are {}", ids.join(", "))
    })
}
