//! Edits that a server proposes: checked, turned into new contents of files, and kept until the call that applies them.
//!
//! A server names the files of a rename only when it is asked, so no intent can name them before.
//! The proposal is therefore a plan, and applying it is a call of its own: its intent names every file, each is judged by
//! the rules about writing, and one that is denied refuses the call before anything is written.

use crate::document_text::{ColumnUnit, DocumentText};
use crate::uri_path::to_path;
use gen_lsp_types::{DocumentChange, Edit, TextEdit, Uri, WorkspaceEdit};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_files::{FileProblem, GrantedFiles, generate_id};
use toolgate_proto::{AbsPath, Code, Refusal};

/// Files of one plan.
const MAX_PLANNED_FILES: usize = 5_000;
/// Bytes of all new contents of one plan.
const MAX_PLANNED_BYTES: usize = 128 << 20;
/// A larger file is not edited.
pub(crate) const MAX_EDITED_FILE_BYTES: u64 = 8 << 20;
/// Plans that a session keeps, the newest.
const MAX_KEPT_PLANS: usize = 8;

/// What a server wants to change.
#[derive(Debug)]
pub(crate) struct EditPlan {
    /// The id that `applyEdit` names.
    pub(crate) id: String,
    /// What it is, for the user: `rename `a` to `b``.
    pub(crate) title: String,
    /// The files that change, by path.
    pub(crate) files: Vec<PlannedFile>,
}

/// The new content of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedFile {
    /// The real path.
    pub(crate) path: AbsPath,
    /// The content that the plan was computed for; the file must still have it.
    pub(crate) before: String,
    /// The content after the change.
    pub(crate) after: String,
    /// How many places change.
    pub(crate) edits: usize,
}

/// The plans of a session that were not applied yet.
#[derive(Debug, Default)]
pub(crate) struct EditPlans {
    /// The oldest first.
    plans: Mutex<VecDeque<Arc<EditPlan>>>,
}

impl EditPlans {
    /// The plans; a panic of another thread cannot leave them half changed.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<EditPlan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a plan; the oldest goes.
    pub(crate) fn add(&self, title: String, files: Vec<PlannedFile>) -> Arc<EditPlan> {
        let plan = Arc::new(EditPlan { id: generate_id("edit_"), title, files });
        let mut plans = self.lock();
        if plans.len() >= MAX_KEPT_PLANS {
            plans.pop_front();
        }
        plans.push_back(Arc::clone(&plan));
        plan
    }

    /// The plan with this id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<EditPlan>> {
        self.lock().iter().find(|plan| plan.id == id).cloned()
    }

    /// Drops a plan that was applied or refused.
    pub(crate) fn remove(&self, id: &str) {
        self.lock().retain(|plan| plan.id != id);
    }
}

/// The text edits of a server, by file. Files that it wants to create, move or delete refuse the whole.
pub(crate) fn collect_edits(edit: WorkspaceEdit) -> Result<BTreeMap<AbsPath, Vec<TextEdit>>, Refusal> {
    let refuse = |what: &str| {
        Refusal::new(Code::LspFailed, format!("the language server wants to {what}, which is not supported"))
            .hint("make the change with the tools for files")
    };
    let mut files: BTreeMap<AbsPath, Vec<TextEdit>> = BTreeMap::new();
    let mut add = |uri: &Uri, edits: Vec<TextEdit>| {
        let path = to_path(uri).ok_or_else(|| refuse(&format!("change `{}`", uri.0)))?;
        files.entry(path).or_default().extend(edits);
        Ok::<_, Refusal>(())
    };
    if let Some(changes) = edit.document_changes {
        for change in changes {
            match change {
                DocumentChange::TextDocumentEdit(document) => {
                    let edits = document.edits.into_iter().map(|edit| match edit {
                        Edit::TextEdit(edit) => Ok(edit),
                        Edit::AnnotatedTextEdit(edit) => Ok(edit.text_edit),
                        Edit::SnippetTextEdit(_) => Err(refuse("insert a snippet")),
                    });
                    let uri = &document.text_document.text_document_identifier.uri;
                    add(uri, edits.collect::<Result<_, _>>()?)?;
                }
                DocumentChange::CreateFile(_) => return Err(refuse("create a file")),
                DocumentChange::RenameFile(_) => return Err(refuse("move a file")),
                DocumentChange::DeleteFile(_) => return Err(refuse("delete a file")),
            }
        }
    } else {
        for (uri, edits) in edit.changes.unwrap_or_default() {
            add(&uri, edits)?;
        }
    }
    Ok(files)
}

/// Computes the new contents. Blocks. A file that cannot be read refuses the whole.
pub(crate) fn plan_files(
    files: &GrantedFiles,
    edits: BTreeMap<AbsPath, Vec<TextEdit>>,
    unit: ColumnUnit,
) -> Result<Vec<PlannedFile>, Refusal> {
    if edits.len() > MAX_PLANNED_FILES {
        return Err(Refusal::new(
            Code::LspFailed,
            format!("the change touches {} files; the limit is {MAX_PLANNED_FILES}", edits.len()),
        ));
    }
    let mut planned = Vec::new();
    let mut bytes = 0;
    for (path, edits) in edits {
        let unreadable = |problem: &FileProblem| match problem {
            FileProblem::NotGranted => Refusal::new(
                Code::LspFailed,
                format!(
                    "the change would touch `{path}`, which is outside the workspace or hidden by a rule"
                ),
            ),
            other => Refusal::new(
                Code::LspFailed,
                format!("the change would touch `{path}`, which cannot be read: {other}"),
            ),
        };
        let snapshot = files.read(&path, MAX_EDITED_FILE_BYTES).map_err(|problem| unreadable(&problem))?;
        let before = String::from_utf8(snapshot.bytes)
            .map_err(|_| unreadable(&FileProblem::Other("it is not UTF-8".to_owned())))?;
        let index = DocumentText::new(before);
        let after = apply_text_edits(&index, &edits, unit).map_err(|problem| {
            Refusal::new(
                Code::LspFailed,
                format!("the language server sent edits for `{path}` that {problem}"),
            )
            .hint("the file may have changed meanwhile: call again")
        })?;
        if after == index.text() {
            continue;
        }
        bytes += after.len();
        if bytes > MAX_PLANNED_BYTES {
            return Err(Refusal::new(Code::LspFailed, "the change is too large to make at once"));
        }
        planned.push(PlannedFile { path, before: index.text().to_owned(), after, edits: edits.len() });
    }
    Ok(planned)
}

/// The text after all edits, which are given in positions of the text before. Edits must not overlap; insertions at the
/// same place keep their order.
fn apply_text_edits(index: &DocumentText, edits: &[TextEdit], unit: ColumnUnit) -> Result<String, String> {
    let mut changes = Vec::with_capacity(edits.len());
    for edit in edits {
        let range = index.offsets(&edit.range, unit).ok_or("lie outside the file")?;
        changes.push((range, edit.new_text.as_str()));
    }
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::new();
    let mut done = 0;
    for (range, text) in changes {
        let kept = index.text().get(done..range.start).ok_or("overlap")?;
        out.push_str(kept);
        out.push_str(text);
        done = range.end;
    }
    out.push_str(index.text().get(done..).unwrap_or_default());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gen_lsp_types::{Position, Range};
    use proptest::prelude::*;

    fn edit(start: (u32, u32), end: (u32, u32), text: &str) -> TextEdit {
        let position = |(line, character)| Position { line, character };
        TextEdit { range: Range { start: position(start), end: position(end) }, new_text: text.to_owned() }
    }

    #[test]
    fn edits_apply_together_in_the_positions_of_the_old_text() {
        let index = DocumentText::new("let a = '😀' + a;\na\n".to_owned());
        let edits = [edit((1, 0), (1, 1), "bc"), edit((0, 4), (0, 5), "bc"), edit((0, 15), (0, 16), "bc")];
        let apply = |edits: &[TextEdit]| apply_text_edits(&index, edits, ColumnUnit::Utf16);
        assert_eq!(apply(&edits).unwrap(), "let bc = '😀' + bc;\nbc\n");
        let inserts = [edit((0, 0), (0, 0), "1"), edit((0, 0), (0, 0), "2"), edit((0, 0), (0, 3), "var")];
        assert_eq!(apply(&inserts).unwrap(), "12var a = '😀' + a;\na\n");
        assert_eq!(apply(&[edit((0, 0), (0, 5), "x"), edit((0, 4), (0, 6), "y")]).unwrap_err(), "overlap");
        assert_eq!(apply(&[edit((9, 0), (9, 1), "x")]).unwrap_err(), "lie outside the file");
        assert_eq!(apply(&[edit((1, 1), (1, 0), "x")]).unwrap_err(), "lie outside the file");
        // The protocol lets a server address the whole text up to a line after the last.
        assert_eq!(apply(&[edit((0, 0), (3, 0), "x")]).unwrap(), "x");
    }

    proptest! {
        #[test]
        fn any_edits_give_a_text_or_an_error(
            text in "[ab😀\n]{0,30}",
            places in prop::collection::vec(((0_u32..5, 0_u32..8), (0_u32..5, 0_u32..8), "[xy]{0,3}"), 0..5),
        ) {
            let index = DocumentText::new(text);
            let edits: Vec<_> = places.iter().map(|(start, end, text)| edit(*start, *end, text)).collect();
            for unit in [ColumnUnit::Utf8, ColumnUnit::Utf16, ColumnUnit::Utf32] {
                let _ = apply_text_edits(&index, &edits, unit);
            }
        }
    }

    #[test]
    fn files_that_a_server_wants_to_create_move_or_delete_refuse_the_whole() {
        for change in [
            r#"{"kind":"create","uri":"file:///a"}"#,
            r#"{"kind":"rename","oldUri":"file:///a","newUri":"file:///b"}"#,
            r#"{"kind":"delete","uri":"file:///a"}"#,
        ] {
            let edit = format!(r#"{{"documentChanges":[{change}]}}"#);
            let edit: WorkspaceEdit = serde_json::from_str(&edit).unwrap();
            assert!(collect_edits(edit).unwrap_err().reason.contains("which is not supported"));
        }
        let edit: WorkspaceEdit = serde_json::from_str(r#"{"changes":{"https://x/y":[]}}"#).unwrap();
        assert!(collect_edits(edit).is_err());
    }
}
