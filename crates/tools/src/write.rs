//! `Write` and `write_file`: putting a whole file in place.

use crate::change_report::{
    MAX_ORIGINAL_BYTES, change_notes, change_refusal, changed_lines_summary, changed_since_read_refusal,
    not_read_refusal, partly_read_refusal, render_change,
};
use crate::diff::{DiffHunk, diff_hunks};
use crate::file_refusal::{check_absolute, file_refusal};
use crate::read_state::{FileFreshness, ReadState};
use crate::text_encoding::{count_lines, decode_text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use toolgate_files::{FileSnapshot, LockedFile, resolve};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, Refusal, WriteKind};

/// What a larger file held is not compared with what comes.
const MAX_COMPARED_BYTES: u64 = 256 << 20;

/// The claude face: an existing file must have been read as a whole.
pub(crate) struct WriteTool;

/// Input of [`Write`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteInput {
    /// The absolute path of the file.
    file_path: String,
    /// The whole content.
    content: String,
}

impl Tool for WriteTool {
    type Input = WriteInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Write",
            "Writes a whole file, and the directories it needs. A file that exists is replaced, and must have been \
             read before as a whole; to change a part of it use Edit. The path must be absolute.",
        );
        spec.title = "Write file".to_owned();
        spec.idempotent = true;
        spec.input_examples = vec![json!({ "file_path": "/project/notes.md", "content": "# Notes\n" })];
        spec
    }

    fn check(&self, input: &WriteInput) -> Result<(), Refusal> {
        check_absolute("file_path", &input.file_path)
    }

    fn intent(&self, input: &WriteInput, scene: &CallContext) -> Intent {
        write_intent(scene.absolute_path(&input.file_path))
    }

    async fn guard(&self, input: &WriteInput, scene: &CallContext) -> Result<(), Refusal> {
        // The early answer. What counts is looked at again when the file is held.
        let path = scene.absolute_path(&input.file_path);
        let fact = resolve(&path);
        if fact.kind != EntryKind::File {
            return Ok(());
        }
        match ReadState::of(&scene.session).get(&fact.real) {
            None => Err(not_read_refusal(&path)),
            Some(seen) if !seen.whole => Err(partly_read_refusal(&path)),
            Some(_) => Ok(()),
        }
    }

    async fn run(&self, input: WriteInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file_path);
        let written = write_file(&cleared, &path, input.content.clone(), OverwriteRule::ReadFirst).await?;
        Ok(written.output(&path, &input.content))
    }
}

/// The plain face: an existing file is replaced where `overwrite` says so.
pub(crate) struct WriteFileTool;

/// Input of [`WriteFileTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFileInput {
    /// The path of the file, absolute or from the working directory.
    path: String,
    /// The whole content.
    content: String,
    /// Replace the file if it exists.
    #[serde(default)]
    overwrite: bool,
}

impl Tool for WriteFileTool {
    type Input = WriteFileInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "write_file",
            "Writes a whole file, and the directories it needs. A file that exists is replaced only if `overwrite` is \
             set.",
        );
        spec.title = "Write file".to_owned();
        spec.family = Some("Write".to_owned());
        spec.input_examples = vec![json!({ "path": "notes.md", "content": "# Notes\n" })];
        spec
    }

    fn intent(&self, input: &WriteFileInput, scene: &CallContext) -> Intent {
        write_intent(scene.absolute_path(&input.path))
    }

    async fn run(&self, input: WriteFileInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.path);
        let rule = if input.overwrite { OverwriteRule::Overwrite } else { OverwriteRule::NewOnly };
        let written = write_file(&cleared, &path, input.content.clone(), rule).await?;
        Ok(written.output(&path, &input.content))
    }
}

fn write_intent(path: AbsPath) -> Intent {
    Intent::new(format!("write {path}"), [Effect::Write { path, kind: WriteKind::Put }])
}

/// When a file that exists may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverwriteRule {
    /// When all of it was read, and it is still the same.
    ReadFirst,
    /// When the call says so; but what was read must not be stale.
    Overwrite,
    /// Never.
    NewOnly,
}

/// A file that was written.
struct FileWriteResult {
    original: Option<Vec<u8>>,
    hunks: Vec<DiffHunk>,
    notes: Vec<String>,
    same: bool,
}

impl FileWriteResult {
    fn output(self, path: &AbsPath, content: &str) -> Output {
        let lines = count_lines(content.as_bytes());
        let word = if lines == 1 { "line" } else { "lines" };
        let size = format!("{lines} {word}, {} bytes", content.len());
        let (kind, head) = match (&self.original, self.same) {
            (_, true) => ("update", format!("{path} has this content already: {size}")),
            (Some(_), false) => {
                ("update", format!("updated {path}: {size} ({})", changed_lines_summary(&self.hunks)))
            }
            (None, false) => ("create", format!("created {path}: {size}")),
        };
        // A new file's diff is its content, which the model has just written.
        let shown: &[DiffHunk] = if self.original.is_some() { &self.hunks } else { &[] };
        let original = self.original.as_ref().filter(|original| original.len() <= MAX_ORIGINAL_BYTES);
        let structured = json!({
            "type": kind,
            "filePath": path,
            "content": content,
            "structuredPatch": if self.original.is_some() { self.hunks.as_slice() } else { &[] },
            "originalFile": original.map(|original| String::from_utf8_lossy(original)),
            "userModified": false,
        });
        let display = render_change(head.clone(), &[], &self.hunks);
        Output::text(render_change(head, &self.notes, shown)).display(display).structured(structured)
    }
}

async fn write_file(
    cleared: &Cleared,
    path: &AbsPath,
    content: String,
    rule: OverwriteRule,
) -> Result<FileWriteResult, Refusal> {
    let state = ReadState::of(&cleared.context().session);
    let cancel = cleared.cancel().clone();
    let asked = path.clone();
    let work = move |held: &LockedFile| {
        let before = held
            .read(MAX_COMPARED_BYTES)
            .map_err(|problem| file_refusal(&asked, &problem, Code::FileWrite))?;
        if cancel.is_cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the write was cancelled; the file is as it was"));
        }
        replace_content(held, &asked, before, content.as_bytes(), &state, rule)
    };
    let done = cleared.files().change_file(path, work).await;
    done.map_err(|problem| file_refusal(path, &problem, Code::FileWrite))?
}

fn replace_content(
    held: &LockedFile,
    path: &AbsPath,
    before: Option<FileSnapshot>,
    content: &[u8],
    state: &Arc<ReadState>,
    rule: OverwriteRule,
) -> Result<FileWriteResult, Refusal> {
    if let Some(before) = &before {
        check_may_replace(held, path, before, state, rule)?;
    }
    let same = before.as_ref().is_some_and(|before| before.bytes == content);
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
    if !same {
        let put = held.put(before.as_ref(), content);
        let put = put.map_err(|problem| change_refusal(path, &problem, Code::FileWrite))?;
        notes.extend(change_notes(&put));
        state.record_write(held.real_path().clone(), put.fingerprint, content, put.hash, true);
    }
    Ok(FileWriteResult { original, hunks, notes, same })
}

fn check_may_replace(
    held: &LockedFile,
    path: &AbsPath,
    before: &FileSnapshot,
    state: &ReadState,
    rule: OverwriteRule,
) -> Result<(), Refusal> {
    if rule == OverwriteRule::NewOnly {
        return Err(Refusal::new(Code::FileExists, format!("`{path}` exists already")));
    }
    match (state.compare(held.real_path(), before), rule) {
        (FileFreshness::Changed { diff }, _) => Err(changed_since_read_refusal(path, diff)),
        (FileFreshness::Unseen, OverwriteRule::ReadFirst) => Err(not_read_refusal(path)),
        (FileFreshness::Same { whole: false }, OverwriteRule::ReadFirst) => Err(partly_read_refusal(path)),
        (FileFreshness::Same { .. } | FileFreshness::Unseen, _) => Ok(()),
    }
}
