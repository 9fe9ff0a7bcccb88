//! Applies replacements to a file under its lock, if the session has read it and it has not changed.
//!
//! The lock serializes the changes of all sessions in this process.
//! Another program does not take it, so the content is compared again when the file is replaced: `LockedFile::put`
//! fails if the file is not the one that was read here.

use super::replacement::{AppliedReplacements, FailedReplacement, TextReplacement, apply_replacements};
use super::replacement_refusal::replacement_refusal;
use crate::change_refusal::{change_refusal, changed_since_read_refusal, not_read_refusal};
use crate::diff::{DiffHunk, diff_hunks};
use crate::file_refusal::{file_refusal, missing_file_refusal};
use crate::preview_change::{PreviewedFile, preview_change};
use crate::read_state::{FileFreshness, ReadState};
use crate::render_change::{change_notes, changed_lines_summary, render_change, structured_text};
use crate::text_encoding::{TextDecodeError, TextEncoding, decode_text};
use std::borrow::Cow;
use std::sync::Arc;
use toolgate_files::{FileSnapshot, GrantedFiles, LockedFile};
use toolgate_gate::{CallContext, Cleared};
use toolgate_proto::{AbsPath, Code, Output, Refusal, format_count};

/// A larger file is not edited: it is read into memory as a whole.
const MAX_EDIT_BYTES: u64 = 256 << 20;

/// Whether the session must have read a file before it edits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadRequirement {
    /// The claude toolset: `Edit` refuses a file that was not read.
    Required,
    /// The plain toolset: the exact target is enough.
    Optional,
}

/// A completed edit.
pub(super) struct FileEditResult {
    /// The previous text; `None` if the file is new or too large for the structured output.
    pub(super) original: Option<String>,
    /// Whether the file existed before the edit.
    existed: bool,
    /// The changed regions, for the diff and the structured output.
    pub(super) hunks: Vec<DiffHunk>,
    /// The number of replaced occurrences over all replacements.
    pub(super) replacement_count: usize,
    /// What the model would not expect: adapted line endings, hard links, no undo.
    notes: Vec<String>,
}

impl FileEditResult {
    /// Renders the summary and diff. Notes go to the model only; the user's display omits them.
    pub(super) fn output(&self, path: &AbsPath) -> Output {
        let verb = if self.existed { "edited" } else { "created" };
        let count = format_count(self.replacement_count as u64, "replacement", "replacements");
        let headline = format!("{verb} {path}: {count}, {}", changed_lines_summary(&self.hunks));
        let display = render_change(headline.clone(), &[], &self.hunks);
        Output::text(render_change(headline, &self.notes, &self.hunks)).display(display)
    }
}

/// Makes all replacements or none. An empty old text, alone, creates the file.
pub(super) async fn edit_file(
    cleared: &Cleared,
    path: &AbsPath,
    replacements: Vec<TextReplacement>,
    read_requirement: ReadRequirement,
) -> Result<FileEditResult, Refusal> {
    let state = ReadState::of(&cleared.context().session);
    let cancel = cleared.cancel().clone();
    let requested = path.clone();
    let work = move |file: &LockedFile| {
        let request = FileEditRequest { path: &requested, replacements: &replacements, read_requirement };
        let operation = FileEditOperation { file, request, state: &state };
        let before = file
            .read(MAX_EDIT_BYTES)
            .map_err(|problem| file_refusal(&requested, &problem, Code::FileEdit))?;
        if cancel.is_cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the edit was cancelled; the file is unchanged"));
        }
        match before {
            Some(before) => before.hash_during(|| operation.apply_to(&before)),
            None => operation.create(),
        }
    };
    let result = cleared.files().change_file(path, work).await;
    let result = result.map_err(|problem| file_refusal(path, &problem, Code::FileEdit))?;
    result.map_err(|refusal| match refusal.code {
        Code::FileNotFound => missing_file_refusal(cleared.files(), path),
        _ => refusal,
    })
}

/// What the replacements would change; or the refusal that they would end in, if the session has read the file.
pub(super) async fn preview_edit(
    context: &CallContext,
    files: &GrantedFiles,
    path: &AbsPath,
    replacements: Vec<TextReplacement>,
    read_requirement: ReadRequirement,
) -> Result<Option<String>, Refusal> {
    let state = ReadState::of(&context.session);
    let (requested, granted) = (path.clone(), files.clone());
    let change = move |file: &PreviewedFile| {
        let request = FileEditRequest { path: &requested, replacements: &replacements, read_requirement };
        let Some(before) = &file.before else {
            return match request.created_content() {
                Some(content) => Ok(Some(content.as_bytes().to_vec())),
                None => Err(missing_file_refusal(&granted, &requested)),
            };
        };
        let freshness = match state.compare(&file.real, before) {
            FileFreshness::Changed { .. } => FileFreshness::Changed { diff: None },
            FileFreshness::Unseen => FileFreshness::Unseen,
            FileFreshness::Same { whole } => FileFreshness::Same { whole },
        };
        let after = request.replace_text(before).and_then(|(_, encoding, result)| {
            Ok(encoding.encode(request.check_freshness(result, &freshness)?.text))
        });
        match after {
            Ok(after) => Ok(Some(after)),
            // Whether a text occurs in a file that was not read is not for the model to know yet.
            Err(_) if freshness == FileFreshness::Unseen => Ok(None),
            Err(refusal) => Err(refusal),
        }
    };
    preview_change(files, path, change).await
}

/// The text of a file, its encoding, and what replacements make of it.
type ReplacedText<'v> = (Cow<'v, [u8]>, TextEncoding, Result<AppliedReplacements, FailedReplacement>);

/// What an edit is asked to do.
struct FileEditRequest<'a> {
    /// The path as the call gave it, for messages.
    path: &'a AbsPath,
    /// Applied in order, all or none.
    replacements: &'a [TextReplacement],
    /// Depends on the toolset, not on the file.
    read_requirement: ReadRequirement,
}

/// One edit of a file that is locked.
struct FileEditOperation<'a> {
    /// The file, or the place where it will be created.
    file: &'a LockedFile,
    /// What to do.
    request: FileEditRequest<'a>,
    /// What the session has read, updated after the edit.
    state: &'a Arc<ReadState>,
}

impl FileEditOperation<'_> {
    /// Edits an existing file.
    fn apply_to(&self, before: &FileSnapshot) -> Result<FileEditResult, Refusal> {
        let (text, encoding, result) = self.request.replace_text(before)?;
        // Compared only now, because it may wait for the hash, which another thread computes meanwhile.
        let freshness = self.state.compare(self.file.real_path(), before);
        let applied = self.request.check_freshness(result, &freshness)?;
        let mut notes = applied.notes;
        let whole = match freshness {
            FileFreshness::Changed { .. } => {
                notes.push(
                    "the file had changed since it was read, but the text still occurred exactly once"
                        .to_owned(),
                );
                false
            }
            FileFreshness::Same { whole } => whole,
            FileFreshness::Unseen => false,
        };
        let hunks = diff_hunks(&text, &applied.text);
        let original = structured_text(&text);
        let content = encoding.encode(applied.text);
        let change = self.file.put(Some(before), &content);
        let change = change.map_err(|problem| change_refusal(self.request.path, &problem, Code::FileEdit))?;
        notes.extend(change_notes(&change));
        let real = self.file.real_path().clone();
        self.state.record_write(real, change.fingerprint, &content, change.hash, whole);
        Ok(FileEditResult { original, existed: true, hunks, replacement_count: applied.count, notes })
    }

    /// Creates the file; a refusal if the request is not the form that creates one.
    fn create(&self) -> Result<FileEditResult, Refusal> {
        let Some(content) = self.request.created_content() else {
            return Err(Refusal::new(
                Code::FileNotFound,
                format!("there is no file `{}`", self.request.path),
            ));
        };
        let content = content.as_bytes();
        let change = self.file.put(None, content);
        let change = change.map_err(|problem| change_refusal(self.request.path, &problem, Code::FileEdit))?;
        let real = self.file.real_path().clone();
        self.state.record_write(real, change.fingerprint, content, change.hash, true);
        let hunks = diff_hunks(b"", content);
        let notes = change_notes(&change);
        Ok(FileEditResult { original: None, existed: false, hunks, replacement_count: 1, notes })
    }
}

impl FileEditRequest<'_> {
    /// The text of a file, and what the replacements make of it.
    fn replace_text<'v>(&self, before: &'v FileSnapshot) -> Result<ReplacedText<'v>, Refusal> {
        let (text, encoding) = self.decode_content(before)?;
        let result = match self.created_content() {
            Some(content) if text.is_empty() => Ok(AppliedReplacements {
                text: content.as_bytes().to_vec(),
                count: 1,
                unique: true,
                notes: Vec::new(),
            }),
            Some(_) => return Err(self.not_empty_refusal()),
            None => apply_replacements(&text, self.replacements),
        };
        Ok((text, encoding, result))
    }

    /// A file that changed since it was read may still be edited where the old text occurs exactly once: then the edit
    /// cannot hit another place than the one that was read.
    fn check_freshness(
        &self,
        result: Result<AppliedReplacements, FailedReplacement>,
        freshness: &FileFreshness,
    ) -> Result<AppliedReplacements, Refusal> {
        if *freshness == FileFreshness::Unseen && self.read_requirement == ReadRequirement::Required {
            return Err(not_read_refusal(self.path));
        }
        match (result, freshness) {
            // The cause is that the file changed, not that the text is missing.
            (Err(_), FileFreshness::Changed { diff }) => {
                Err(changed_since_read_refusal(self.path, diff.clone()))
            }
            (Ok(applied), FileFreshness::Changed { diff }) if !applied.unique => {
                Err(changed_since_read_refusal(self.path, diff.clone()))
            }
            (Err(failed), FileFreshness::Unseen | FileFreshness::Same { .. }) => {
                Err(replacement_refusal(self.path, self.replacements, &failed))
            }
            (Ok(applied), _) => Ok(applied),
        }
    }

    /// The content of a file to create: the new text of a single replacement whose old text is empty.
    fn created_content(&self) -> Option<&str> {
        match self.replacements {
            [TextReplacement { old, new, .. }] if old.is_empty() => Some(new),
            _ => None,
        }
    }

    /// The text of the file; a refusal if it is binary, because replacing bytes in it could corrupt it.
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

    /// The refusal for an empty old text in a file with content, where every position would match.
    fn not_empty_refusal(&self) -> Refusal {
        Refusal::new(
            Code::EditTargetAmbiguous,
            format!("the text to replace is empty, but the file `{}` is not", self.path),
        )
        .hint("give the text to replace; to replace the whole file, write it")
    }
}
