//! `Edit`, `MultiEdit` and `edit_file`: replace exact text in a file.
//!
//! The adapters check their input and build [`TextReplacement`]s; [`edit_file()`] applies them under the file's lock,
//! all or none.
//!
//! Matching is exact, byte by byte.
//! A fuzzy match would save a retry now and then, and would sometimes change the wrong place without a trace.
//! Instead a refusal says what differs and shows the nearest lines, so that the next call can be exact.
//! The one exception are line endings: models write LF for files with CRLF, and the file's endings are kept.

mod edit_file;
mod multi_edit;
mod nearest_match;
mod replacement;
mod replacement_refusal;

use crate::change_refusal::not_read_refusal;
use crate::file_refusal::check_absolute;
use crate::read_state::ReadState;
use edit_file::{ReadRequirement, edit_file, preview_edit};
pub(crate) use multi_edit::MultiEditTool;
use replacement::TextReplacement;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_files::{GrantedFiles, resolve};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Refusal, WriteKind};

/// The adapter of the claude toolset: one replacement.
pub(crate) struct EditTool;

/// Input of [`EditTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditInput {
    /// The absolute path of the file.
    file_path: String,
    /// The text to replace, exactly as in the file.
    old_string: String,
    /// The replacement; must differ.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl EditInput {
    /// Converts the input to the form that all edit tools share.
    fn replacements(&self) -> Vec<TextReplacement> {
        vec![TextReplacement {
            old: self.old_string.clone(),
            new: self.new_string.clone(),
            all: self.replace_all,
            line_hint: None,
        }]
    }
}

impl Tool for EditTool {
    type Input = EditInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Edit",
            "Replaces text in a file. `old_string` must match the file exactly, including indentation and without \
             Read's line numbers, and must occur once unless `replace_all` is set; include more of the surrounding \
             text to make it unique. Read the file first; if another program changed it since, a unique `old_string` is \
             still replaced. An empty `old_string` creates a file.",
        );
        spec.title = "Edit file".to_owned();
        spec.aliases = vec!["FileEdit".to_owned()];
        spec.input_examples = vec![json!({
            "file_path": "/project/src/main.rs", "old_string": "let retries = 3;", "new_string": "let retries = 5;"
        })];
        spec
    }

    /// Requires an absolute path and a replacement that differs from the old text.
    fn check(&self, input: &EditInput) -> Result<(), Refusal> {
        check_absolute("file_path", &input.file_path)?;
        check_differs("new_string", &input.old_string, &input.new_string)
    }

    fn intent(&self, input: &EditInput, context: &CallContext) -> Intent {
        edit_intent(context.absolute_path(&input.file_path))
    }

    /// Refuses a file that the session has not read, before the user is asked for approval.
    async fn guard(&self, input: &EditInput, context: &CallContext) -> Result<(), Refusal> {
        check_was_read(context, &context.absolute_path(&input.file_path))
    }

    /// Computes the diff for the approval prompt. `run` repeats the edit on the content that it finds under the lock.
    async fn preview(
        &self,
        input: &EditInput,
        context: &CallContext,
        files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let path = context.absolute_path(&input.file_path);
        preview_edit(context, files, &path, input.replacements(), ReadRequirement::Required).await
    }

    async fn run(&self, input: EditInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file_path);
        let replacements = input.replacements();
        let edited = edit_file(&cleared, &path, replacements, ReadRequirement::Required).await?;
        let structured = json!({
            "filePath": path,
            "oldString": input.old_string,
            "newString": input.new_string,
            "originalFile": edited.original,
            "structuredPatch": edited.hunks,
            "userModified": false,
            "replaceAll": input.replace_all,
        });
        Ok(edited.output(&path).structured(structured))
    }
}

/// The adapter of the plain toolset: several replacements, all or none.
pub(crate) struct EditFileTool;

/// Input of [`EditFileTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFileInput {
    /// The path of the file, absolute or relative to the working directory.
    path: String,
    /// The replacements, applied in order; if one fails, none is made.
    #[schemars(length(min = 1))]
    edits: Vec<TargetedEdit>,
}

/// One replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TargetedEdit {
    /// The text to replace, exactly as in the file.
    target: String,
    /// The replacement.
    replacement: String,
    /// The approximate line of the target, if it occurs more than once.
    #[serde(rename = "lineHint")]
    #[schemars(range(min = 1))]
    line_hint: Option<u64>,
}

impl EditFileInput {
    /// Converts each edit. A target always names one occurrence, chosen by the line hint if there are several.
    fn replacements(&self) -> Vec<TextReplacement> {
        let replacement = |edit: &TargetedEdit| TextReplacement {
            old: edit.target.clone(),
            new: edit.replacement.clone(),
            all: false,
            line_hint: edit.line_hint,
        };
        self.edits.iter().map(replacement).collect()
    }
}

impl Tool for EditFileTool {
    type Input = EditFileInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "edit_file",
            "Replaces text in a file: each `target` must match the file exactly and occur once, or be selected by \
             `lineHint`. All edits are made or none.",
        );
        spec.title = "Edit file".to_owned();
        spec.family = Some("Edit".to_owned());
        spec.input_examples = vec![json!({
            "path": "src/main.rs",
            "edits": [{ "target": "let retries = 3;", "replacement": "let retries = 5;", "lineHint": 12 }],
        })];
        spec
    }

    /// Rejects empty targets: this toolset creates files with `write_file`.
    fn check(&self, input: &EditFileInput) -> Result<(), Refusal> {
        for (index, edit) in input.edits.iter().enumerate() {
            check_not_empty(&format!("edits/{index}/target"), &edit.target)?;
            check_differs(&format!("edits/{index}/replacement"), &edit.target, &edit.replacement)?;
        }
        Ok(())
    }

    fn intent(&self, input: &EditFileInput, context: &CallContext) -> Intent {
        edit_intent(context.absolute_path(&input.path))
    }

    /// Computes the diff for the approval prompt. A previous read is not required.
    async fn preview(
        &self,
        input: &EditFileInput,
        context: &CallContext,
        files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let path = context.absolute_path(&input.path);
        preview_edit(context, files, &path, input.replacements(), ReadRequirement::Optional).await
    }

    async fn run(&self, input: EditFileInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.path);
        // An exact target shows that the model knows the text; but a file that was read must not have changed since.
        let edited = edit_file(&cleared, &path, input.replacements(), ReadRequirement::Optional).await?;
        let structured = json!({
            "filePath": path,
            "originalFile": edited.original,
            "structuredPatch": edited.hunks,
            "replacements": edited.replacement_count,
        });
        Ok(edited.output(&path).structured(structured))
    }
}

/// The effect of every edit: a change of one existing file, or its creation.
fn edit_intent(path: AbsPath) -> Intent {
    Intent::new(format!("edit {path}"), [Effect::Write { path, kind: WriteKind::Edit }])
}

/// Rejects a replacement that changes nothing: it is a mistake of the model, and a success would hide it.
fn check_differs(field: &str, old: &str, new: &str) -> Result<(), Refusal> {
    if old == new {
        return Err(Refusal::new(
            Code::BadArgument,
            format!("`{field}` is the same as the text it replaces, so nothing would change"),
        ));
    }
    Ok(())
}

/// An empty text occurs at every position, so no position could be meant.
fn check_not_empty(field: &str, old: &str) -> Result<(), Refusal> {
    if old.is_empty() {
        return Err(Refusal::new(Code::BadArgument, format!("`{field}` is empty; give the text to replace")));
    }
    Ok(())
}

/// An early refusal, before anything is locked. [`edit_file()`] decides again under the file's lock.
fn check_was_read(context: &CallContext, path: &AbsPath) -> Result<(), Refusal> {
    let fact = resolve(path);
    if fact.kind == EntryKind::File && ReadState::of(&context.session).get(&fact.real).is_none() {
        return Err(not_read_refusal(path));
    }
    Ok(())
}
