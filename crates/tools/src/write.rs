//! `Write` and `write_file`: create a file, or replace its whole content.
//!
//! Replacing content that the model has not seen loses work of others.
//! `Write` therefore requires a complete read, and `write_file`, whose models do not expect that, requires
//! `overwrite`; both refuse if the file changed after the session has read it.
//! The new content is written to a temporary file and renamed, so that a crash leaves the old or the new content.

use crate::change_refusal::{
    change_refusal, changed_since_read_refusal, not_read_refusal, partly_read_refusal,
};
use crate::diff::{DiffHunk, diff_hunks};
use crate::file_refusal::{check_absolute, file_refusal};
use crate::preview_change::{PreviewedFile, preview_change};
use crate::read_state::{FileFreshness, ReadState};
use crate::render_change::{change_notes, changed_lines_summary, render_change, structured_text};
use crate::text_encoding::{count_lines, decode_text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use toolgate_files::{FileSnapshot, GrantedFiles, LockedFile, resolve};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{
    AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, Refusal, WriteKind, format_count,
};

/// A larger existing file is not replaced: its content is read for the diff and for undo.
const MAX_COMPARED_BYTES: u64 = 256 << 20;

/// The adapter of the claude toolset: an existing file must have been read completely.
pub(crate) struct WriteTool;

/// Input of [`WriteTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteInput {
    /// The absolute path of the file.
    file_path: String,
    /// The complete content.
    content: String,
}

impl Tool for WriteTool {
    type Input = WriteInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Write",
            "Writes a file, creating missing directories. An existing file is replaced and must have been read \
             completely before; to change a part of it use Edit. The path must be absolute.",
        );
        spec.title = "Write file".to_owned();
        spec.aliases = vec!["FileWrite".to_owned()];
        spec.idempotent = true;
        spec.input_examples = vec![json!({ "file_path": "/project/notes.md", "content": "# Notes\n" })];
        spec
    }

    fn check(&self, input: &WriteInput) -> Result<(), Refusal> {
        check_absolute("file_path", &input.file_path)
    }

    fn intent(&self, input: &WriteInput, context: &CallContext) -> Intent {
        write_intent(context.absolute_path(&input.file_path))
    }

    /// Requires that an existing file was read completely, so that a model does not discard text it has not seen.
    async fn guard(&self, input: &WriteInput, context: &CallContext) -> Result<(), Refusal> {
        // An early refusal, before anything is locked. `check_may_replace` decides again under the file's lock.
        let path = context.absolute_path(&input.file_path);
        let fact = resolve(&path);
        if fact.kind != EntryKind::File {
            return Ok(());
        }
        match ReadState::of(&context.session).get(&fact.real) {
            None => Err(not_read_refusal(&path)),
            Some(seen) if !seen.whole => Err(partly_read_refusal(&path)),
            Some(_) => Ok(()),
        }
    }

    /// Computes the diff against the current content for the approval prompt.
    async fn preview(
        &self,
        input: &WriteInput,
        context: &CallContext,
        files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let path = context.absolute_path(&input.file_path);
        preview_write(context, files, &path, &input.content, OverwriteRule::ReadFirst).await
    }

    async fn run(&self, input: WriteInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file_path);
        let written = write_file(&cleared, &path, input.content.clone(), OverwriteRule::ReadFirst).await?;
        Ok(written.output(&path, &input.content))
    }
}

/// The adapter of the plain toolset: an existing file is replaced only with `overwrite`.
pub(crate) struct WriteFileTool;

/// Input of [`WriteFileTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFileInput {
    /// The path of the file, absolute or relative to the working directory.
    path: String,
    /// The complete content.
    content: String,
    /// Replace the file if it exists.
    #[serde(default)]
    overwrite: bool,
}

impl WriteFileInput {
    /// Maps the flag to a rule. Without it an existing file is never replaced.
    fn overwrite_rule(&self) -> OverwriteRule {
        if self.overwrite { OverwriteRule::Overwrite } else { OverwriteRule::NewOnly }
    }
}

impl Tool for WriteFileTool {
    type Input = WriteFileInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "write_file",
            "Writes a file, creating missing directories. An existing file is replaced only if `overwrite` is set.",
        );
        spec.title = "Write file".to_owned();
        spec.family = Some("Write".to_owned());
        spec.input_examples = vec![json!({ "path": "notes.md", "content": "# Notes\n" })];
        spec
    }

    fn intent(&self, input: &WriteFileInput, context: &CallContext) -> Intent {
        write_intent(context.absolute_path(&input.path))
    }

    /// Computes the diff for the approval prompt; refuses early if the file exists and may not be replaced.
    async fn preview(
        &self,
        input: &WriteFileInput,
        context: &CallContext,
        files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        let path = context.absolute_path(&input.path);
        preview_write(context, files, &path, &input.content, input.overwrite_rule()).await
    }

    async fn run(&self, input: WriteFileInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.path);
        let written = write_file(&cleared, &path, input.content.clone(), input.overwrite_rule()).await?;
        Ok(written.output(&path, &input.content))
    }
}

/// The effect: the file is created or replaced.
fn write_intent(path: AbsPath) -> Intent {
    Intent::new(format!("write {path}"), [Effect::Write { path, kind: WriteKind::Put }])
}

/// When an existing file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverwriteRule {
    /// If it was read completely and has not changed since.
    ReadFirst,
    /// Also if it was never read, because the call asks for it; but not if it changed after a read.
    Overwrite,
    /// Never.
    NewOnly,
}

/// A completed write.
struct FileWriteResult {
    /// The previous text, decoded to UTF-8 and empty if it was binary; `None` if the file is new.
    original: Option<Vec<u8>>,
    /// The changed regions; all lines for a new file.
    hunks: Vec<DiffHunk>,
    /// What the model would not expect: a new encoding, hard links, no undo.
    notes: Vec<String>,
    /// The file already had this content, so nothing was written.
    unchanged: bool,
}

impl FileWriteResult {
    /// The headline with the size, notes, and the diff of an existing file.
    fn output(self, path: &AbsPath, content: &str) -> Output {
        let lines = count_lines(content.as_bytes());
        let size = format!("{}, {} bytes", format_count(lines, "line", "lines"), content.len());
        let (kind, headline) = match (&self.original, self.unchanged) {
            (_, true) => ("update", format!("{path} already has this content: {size}")),
            (Some(_), false) => {
                ("update", format!("updated {path}: {size} ({})", changed_lines_summary(&self.hunks)))
            }
            (None, false) => ("create", format!("created {path}: {size}")),
        };
        // The diff of a new file is its content, which the model has just written.
        let shown: &[DiffHunk] = if self.original.is_some() { &self.hunks } else { &[] };
        let structured = json!({
            "type": kind,
            "filePath": path,
            "content": content,
            "structuredPatch": shown,
            "originalFile": self.original.as_deref().and_then(structured_text),
            "userModified": false,
        });
        let display = render_change(headline.clone(), &[], &self.hunks);
        Output::text(render_change(headline, &self.notes, shown)).display(display).structured(structured)
    }
}

/// Writes under the file's lock. `rule` decides about an existing file.
async fn write_file(
    cleared: &Cleared,
    path: &AbsPath,
    content: String,
    rule: OverwriteRule,
) -> Result<FileWriteResult, Refusal> {
    let state = ReadState::of(&cleared.context().session);
    let cancel = cleared.cancel().clone();
    let requested = path.clone();
    let work = move |file: &LockedFile| {
        let before = file
            .read(MAX_COMPARED_BYTES)
            .map_err(|problem| file_refusal(&requested, &problem, Code::FileWrite))?;
        if cancel.is_cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the write was cancelled; the file is unchanged"));
        }
        replace_content(file, &requested, before, content.as_bytes(), &state, rule)
    };
    let result = cleared.files().change_file(path, work).await;
    result.map_err(|problem| file_refusal(path, &problem, Code::FileWrite))?
}

/// What the write would change; or the refusal that it would end in.
async fn preview_write(
    context: &CallContext,
    files: &GrantedFiles,
    path: &AbsPath,
    content: &str,
    rule: OverwriteRule,
) -> Result<Option<String>, Refusal> {
    let state = ReadState::of(&context.session);
    let (requested, content) = (path.clone(), content.as_bytes().to_vec());
    let change = move |file: &PreviewedFile| {
        if let Some(before) = &file.before {
            check_may_replace(&file.real, &requested, before, &state, rule)
                .map_err(Refusal::without_partial)?;
        }
        Ok(Some(content))
    };
    preview_change(files, path, change).await
}

/// Replaces the content of a locked file, or leaves it if it is the same.
fn replace_content(
    file: &LockedFile,
    path: &AbsPath,
    before: Option<FileSnapshot>,
    content: &[u8],
    state: &Arc<ReadState>,
    rule: OverwriteRule,
) -> Result<FileWriteResult, Refusal> {
    if let Some(before) = &before {
        check_may_replace(file.real_path(), path, before, state, rule)?;
    }
    let unchanged = before.as_ref().is_some_and(|before| before.bytes == content);
    let old = before.as_ref().map(|before| decode_text(&before.bytes));
    let mut notes = Vec::new();
    let original = match &old {
        Some(Ok((text, encoding))) => {
            if let Some(name) = encoding.name() {
                notes.push(format!("the file was {name}; it is plain UTF-8 now"));
            }
            Some(text.to_vec())
        }
        Some(Err(_)) => Some(Vec::new()),
        None => None,
    };
    let hunks = match &old {
        Some(Err(_)) => Vec::new(),
        _ => diff_hunks(original.as_deref().unwrap_or_default(), content),
    };
    if !unchanged {
        let applied = file.put(before.as_ref(), content);
        let applied = applied.map_err(|problem| change_refusal(path, &problem, Code::FileWrite))?;
        notes.extend(change_notes(&applied));
        state.record_write(file.real_path().clone(), applied.fingerprint, content, applied.hash, true);
    }
    Ok(FileWriteResult { original, hunks, notes, unchanged })
}

/// Decides under the lock, on the content that is really there.
fn check_may_replace(
    real: &AbsPath,
    path: &AbsPath,
    before: &FileSnapshot,
    state: &ReadState,
    rule: OverwriteRule,
) -> Result<(), Refusal> {
    if rule == OverwriteRule::NewOnly {
        return Err(Refusal::new(Code::FileExists, format!("`{path}` already exists")));
    }
    match (state.compare(real, before), rule) {
        (FileFreshness::Changed { diff }, _) => Err(changed_since_read_refusal(path, diff)),
        (FileFreshness::Unseen, OverwriteRule::ReadFirst) => Err(not_read_refusal(path)),
        (FileFreshness::Same { whole: false }, OverwriteRule::ReadFirst) => Err(partly_read_refusal(path)),
        (FileFreshness::Same { .. } | FileFreshness::Unseen, _) => Ok(()),
    }
}
