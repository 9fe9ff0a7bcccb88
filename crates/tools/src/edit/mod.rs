//! `Edit` and `edit_file`: replacing text in a file, exactly.

mod multi_edit;
mod nearest_match;
mod replacement;

use crate::change_report::{
    MAX_ORIGINAL_BYTES, change_notes, change_refusal, changed_lines_summary, changed_since_read_refusal,
    not_read_refusal, render_change,
};
use crate::diff::{DiffHunk, diff_hunks};
use crate::file_refusal::{check_absolute, file_refusal, missing_file_refusal};
use crate::read_state::{FileFreshness, ReadState};
use crate::text_encoding::{TextDecodeError, TextEncoding, decode_text};
pub(crate) use multi_edit::MultiEditTool;
use replacement::{
    AppliedReplacements, FailedReplacement, ReplacementError, TextReplacement, apply_replacements,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use toolgate_files::{FileSnapshot, LockedFile, resolve};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, EntryKind, Intent, Output, Refusal, WriteKind};

/// Larger files are not edited as text.
const MAX_EDIT_BYTES: u64 = 256 << 20;
/// Places that an ambiguous answer lists.
const MAX_LISTED_OCCURRENCES: usize = 20;

/// The claude face: one replacement.
pub(crate) struct EditTool;

/// Input of [`Edit`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditInput {
    /// The absolute path of the file.
    file_path: String,
    /// The text to replace, exactly as it is in the file.
    old_string: String,
    /// What to put in its place; must differ.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditTool {
    type Input = EditInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Edit",
            "Replaces text in a file. `old_string` must be exactly what the file has, indentation included and \
             without Read's line numbers, and must occur once, unless `replace_all` is set; give more of the \
             surrounding text to make it so. Read the file first. An empty `old_string` creates a file.",
        );
        spec.title = "Edit file".to_owned();
        spec.input_examples = vec![json!({
            "file_path": "/project/src/main.rs", "old_string": "let retries = 3;", "new_string": "let retries = 5;"
        })];
        spec
    }

    fn check(&self, input: &EditInput) -> Result<(), Refusal> {
        check_absolute("file_path", &input.file_path)?;
        check_differs("new_string", &input.old_string, &input.new_string)
    }

    fn intent(&self, input: &EditInput, scene: &CallContext) -> Intent {
        edit_intent(scene.absolute_path(&input.file_path))
    }

    async fn guard(&self, input: &EditInput, scene: &CallContext) -> Result<(), Refusal> {
        check_was_read(scene, &scene.absolute_path(&input.file_path))
    }

    async fn run(&self, input: EditInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.file_path);
        let replacement = TextReplacement {
            old: input.old_string.clone(),
            new: input.new_string.clone(),
            all: input.replace_all,
            line_hint: None,
        };
        let edited = edit_file(&cleared, &path, vec![replacement], ReadRequirement::Required).await?;
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

/// The plain face: several replacements, all or none.
pub(crate) struct EditFileTool;

/// Input of [`EditFileTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFileInput {
    /// The path of the file, absolute or from the working directory.
    path: String,
    /// The replacements, made one after the other; if one cannot be made, none is.
    #[schemars(length(min = 1))]
    edits: Vec<TargetedEdit>,
}

/// One replacement of the plain face.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TargetedEdit {
    /// The text to find, exactly as it is in the file.
    target: String,
    /// The text to put in its place.
    replacement: String,
    /// Near which line, where the target occurs more than once.
    #[serde(rename = "lineHint")]
    #[schemars(range(min = 1))]
    line_hint: Option<u64>,
}

impl Tool for EditFileTool {
    type Input = EditFileInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "edit_file",
            "Replaces text in a file: each `target` must be exactly what the file has and occur once, or be chosen by \
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

    fn check(&self, input: &EditFileInput) -> Result<(), Refusal> {
        for (index, edit) in input.edits.iter().enumerate() {
            check_not_empty(&format!("edits/{index}/target"), &edit.target)?;
            check_differs(&format!("edits/{index}/replacement"), &edit.target, &edit.replacement)?;
        }
        Ok(())
    }

    fn intent(&self, input: &EditFileInput, scene: &CallContext) -> Intent {
        edit_intent(scene.absolute_path(&input.path))
    }

    async fn run(&self, input: EditFileInput, cleared: Cleared) -> CallResult {
        let path = cleared.context().absolute_path(&input.path);
        let replacements = input
            .edits
            .into_iter()
            .map(|edit| TextReplacement {
                old: edit.target,
                new: edit.replacement,
                all: false,
                line_hint: edit.line_hint,
            })
            .collect();
        // The exact text of what it replaces shows that the model knows it; but what it has read must not be stale.
        let edited = edit_file(&cleared, &path, replacements, ReadRequirement::Optional).await?;
        let structured = json!({
            "filePath": path,
            "originalFile": edited.original,
            "structuredPatch": edited.hunks,
            "replacements": edited.places,
        });
        Ok(edited.output(&path).structured(structured))
    }
}

fn edit_intent(path: AbsPath) -> Intent {
    Intent::new(format!("edit {path}"), [Effect::Write { path, kind: WriteKind::Edit }])
}

fn check_differs(field: &str, old: &str, new: &str) -> Result<(), Refusal> {
    if old == new {
        return Err(Refusal::new(
            Code::BadArgument,
            format!("`/{field}` is the same as the text it replaces, so nothing would change"),
        ));
    }
    Ok(())
}

fn check_not_empty(field: &str, old: &str) -> Result<(), Refusal> {
    if old.is_empty() {
        return Err(Refusal::new(Code::BadArgument, format!("`/{field}` is empty, so it is everywhere")));
    }
    Ok(())
}

/// Whether a file must have been read before it is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadRequirement {
    Required,
    Optional,
}

/// The early answer. What counts is looked at again when the file is held.
fn check_was_read(scene: &CallContext, path: &AbsPath) -> Result<(), Refusal> {
    let fact = resolve(path);
    if fact.kind == EntryKind::File && ReadState::of(&scene.session).get(&fact.real).is_none() {
        return Err(not_read_refusal(path));
    }
    Ok(())
}

/// An edit that was made.
struct FileEditResult {
    /// The former text, where it is not too large to be told.
    original: Option<String>,
    existed: bool,
    hunks: Vec<DiffHunk>,
    places: usize,
    notes: Vec<String>,
}

impl FileEditResult {
    fn output(&self, path: &AbsPath) -> Output {
        let verb = if self.existed { "edited" } else { "created" };
        let times = if self.places == 1 {
            "1 replacement".to_owned()
        } else {
            format!("{} replacements", self.places)
        };
        let head = format!("{verb} {path}: {times}, {}", changed_lines_summary(&self.hunks));
        Output::text(render_change(head.clone(), &self.notes, &self.hunks)).display(render_change(
            head,
            &[],
            &self.hunks,
        ))
    }
}

async fn edit_file(
    cleared: &Cleared,
    path: &AbsPath,
    replacements: Vec<TextReplacement>,
    rule: ReadRequirement,
) -> Result<FileEditResult, Refusal> {
    let state = ReadState::of(&cleared.context().session);
    let cancel = cleared.cancel().clone();
    let asked = path.clone();
    let work = move |held: &LockedFile| {
        let change =
            FileEditOperation { held, path: &asked, state: &state, replacements: &replacements, rule };
        let before =
            held.read(MAX_EDIT_BYTES).map_err(|problem| file_refusal(&asked, &problem, Code::FileEdit))?;
        if cancel.is_cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the edit was cancelled; the file is as it was"));
        }
        match before {
            Some(before) => before.hash_during(|| change.apply_to(&before)),
            None => change.create(),
        }
    };
    let done = cleared.files().change_file(path, work).await;
    let done = done.map_err(|problem| file_refusal(path, &problem, Code::FileEdit))?;
    done.map_err(|refusal| match refusal.code {
        Code::FileNotFound => missing_file_refusal(cleared.files(), path),
        _ => refusal,
    })
}

struct FileEditOperation<'a> {
    held: &'a LockedFile,
    path: &'a AbsPath,
    state: &'a Arc<ReadState>,
    replacements: &'a [TextReplacement],
    rule: ReadRequirement,
}

impl FileEditOperation<'_> {
    fn apply_to(&self, before: &FileSnapshot) -> Result<FileEditResult, Refusal> {
        let (text, encoding) = self.decode_content(before)?;
        let result = match self.created_content() {
            Some(content) if text.is_empty() => Ok(AppliedReplacements {
                text: content.as_bytes().to_vec(),
                places: 1,
                unique: true,
                notes: Vec::new(),
            }),
            Some(_) => return Err(self.not_empty_refusal()),
            None => apply_replacements(&text, self.replacements),
        };
        // Not before, because it may have to wait for the hash.
        let freshness = self.state.compare(self.held.real_path(), before);
        if freshness == FileFreshness::Unseen && self.rule == ReadRequirement::Required {
            return Err(not_read_refusal(self.path));
        }
        let applied = match (result, &freshness) {
            // What the model knew is gone: that is the thing to tell, not that its text is not there.
            (Err(_), FileFreshness::Changed { diff }) => {
                return Err(changed_since_read_refusal(self.path, diff.clone()));
            }
            (Ok(applied), FileFreshness::Changed { diff }) if !applied.unique => {
                return Err(changed_since_read_refusal(self.path, diff.clone()));
            }
            (Err(missed), FileFreshness::Unseen | FileFreshness::Same { .. }) => {
                return Err(self.replacement_refusal(&missed));
            }
            (Ok(applied), _) => applied,
        };
        let mut notes = applied.notes;
        let whole = match freshness {
            FileFreshness::Changed { .. } => {
                notes.push(
                    "the file had changed since it was read, but the text was still there once".to_owned(),
                );
                false
            }
            FileFreshness::Same { whole } => whole,
            FileFreshness::Unseen => false,
        };
        let hunks = diff_hunks(&text, &applied.text);
        let original =
            (text.len() <= MAX_ORIGINAL_BYTES).then(|| String::from_utf8_lossy(&text).into_owned());
        let content = encoding.encode(applied.text);
        let put = self.held.put(Some(before), &content);
        let put = put.map_err(|problem| change_refusal(self.path, &problem, Code::FileEdit))?;
        notes.extend(change_notes(&put));
        self.state.record_write(self.held.real_path().clone(), put.fingerprint, &content, put.hash, whole);
        Ok(FileEditResult { original, existed: true, hunks, places: applied.places, notes })
    }

    /// The one form in which an edit makes a file: an empty old text.
    fn created_content(&self) -> Option<&str> {
        match self.replacements {
            [TextReplacement { old, new, .. }] if old.is_empty() => Some(new),
            _ => None,
        }
    }

    fn create(&self) -> Result<FileEditResult, Refusal> {
        let Some(content) = self.created_content() else {
            return Err(Refusal::new(Code::FileNotFound, format!("there is no file `{}`", self.path)));
        };
        let put = self.held.put(None, content.as_bytes());
        let put = put.map_err(|problem| change_refusal(self.path, &problem, Code::FileEdit))?;
        self.state.record_write(
            self.held.real_path().clone(),
            put.fingerprint,
            content.as_bytes(),
            put.hash,
            true,
        );
        let hunks = diff_hunks(b"", content.as_bytes());
        Ok(FileEditResult { original: None, existed: false, hunks, places: 1, notes: change_notes(&put) })
    }

    fn decode_content<'v>(&self, before: &'v FileSnapshot) -> Result<(Cow<'v, [u8]>, TextEncoding), Refusal> {
        decode_text(&before.bytes).map_err(|problem| match problem {
            TextDecodeError::Binary => {
                Refusal::new(Code::BinaryFile, format!("`{}` is a binary file, not text", self.path))
            }
            TextDecodeError::BrokenUtf16 => Refusal::new(
                Code::BinaryFile,
                format!("`{}` is marked as UTF-16 but is not valid, so an edit might damage it", self.path),
            ),
        })
    }

    fn not_empty_refusal(&self) -> Refusal {
        Refusal::new(
            Code::EditTargetAmbiguous,
            format!("the text to replace is empty, and `{}` is not", self.path),
        )
        .hint("give the text to replace; to replace the whole file, write it")
    }

    fn replacement_refusal(&self, missed: &FailedReplacement) -> Refusal {
        let which = match self.replacements.len() {
            1 => String::new(),
            _ => format!("edit {} of {}: ", missed.index + 1, self.replacements.len()),
        };
        let old = self.replacements.get(missed.index).map_or("", |replacement| replacement.old.as_str());
        match &missed.error {
            ReplacementError::Ambiguous(lines) => self.ambiguous_refusal(&which, lines, &missed.text),
            ReplacementError::NotFound => self.not_found_refusal(&which, old, &missed.text),
        }
    }

    fn ambiguous_refusal(&self, which: &str, lines: &[u64], text: &[u8]) -> Refusal {
        let mut numbers: Vec<u64> = lines.to_vec();
        numbers.dedup();
        let shown: Vec<String> = numbers.iter().take(MAX_LISTED_OCCURRENCES).map(u64::to_string).collect();
        let more = if numbers.len() > MAX_LISTED_OCCURRENCES { ", …" } else { "" };
        let word = if numbers.len() == 1 { "line" } else { "lines" };
        let text = String::from_utf8_lossy(text);
        let places: Vec<String> = text
            .split('\n')
            .enumerate()
            .map(|(at, line)| (at as u64 + 1, line))
            .filter(|(number, _)| numbers.iter().take(MAX_LISTED_OCCURRENCES).any(|line| line == number))
            .map(|(number, line)| format!("{number:>6}\t{}", line.trim_end()))
            .collect();
        Refusal::new(
            Code::EditTargetAmbiguous,
            format!(
                "{which}the text to replace is in `{}` {} times, at {word} {}{more}",
                self.path,
                lines.len(),
                shown.join(", "),
            ),
        )
        .with_partial(Output::text(places.join("\n")))
    }

    fn not_found_refusal(&self, which: &str, old: &str, text: &[u8]) -> Refusal {
        let reason = format!("{which}the text to replace is not in `{}`", self.path);
        match nearest_match::find_nearest(text, old) {
            Some(near) => {
                Refusal::new(Code::EditTargetNotFound, format!("{reason}; {}", near.difference)).with_partial(
                    Output::text(format!("nearest:\n{}", nearest_match::excerpt(text, near.lines))),
                )
            }
            None => Refusal::new(Code::EditTargetNotFound, reason),
        }
    }
}
