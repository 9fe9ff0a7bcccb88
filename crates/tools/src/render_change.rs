//! The result of a change to a file, as the model reads it: a headline, notes and the diff.

use crate::diff::{DiffHunk, count_hunk_lines, render_hunks};
use toolgate_files::{AppliedFileChange, UndoAvailability};

/// Lines of the diff in a result.
const MAX_DIFF_LINES: usize = 60;
/// Larger file content is left out of the structured output: it would double the size of every record.
const MAX_STRUCTURED_TEXT_BYTES: usize = 256 * 1024;

/// Renders the headline, the notes in brackets, and the diff.
pub(crate) fn render_change(headline: String, notes: &[String], hunks: &[DiffHunk]) -> String {
    let mut out = headline;
    for note in notes {
        out.push_str(&format!("\n[{note}]"));
    }
    if !hunks.is_empty() {
        out.push('\n');
        out.push_str(&render_hunks(hunks, MAX_DIFF_LINES));
    }
    out
}

/// `+3 -1 lines`.
pub(crate) fn changed_lines_summary(hunks: &[DiffHunk]) -> String {
    let (added, removed) = count_hunk_lines(hunks);
    format!("+{added} -{removed} lines")
}

/// Side effects of a change that the model would not expect.
pub(crate) fn change_notes(applied: &AppliedFileChange) -> Vec<String> {
    let mut notes = Vec::new();
    if applied.other_hard_links > 0 {
        let links = if applied.other_hard_links == 1 { "another hard link" } else { "other hard links" };
        notes.push(format!("the file has {links} elsewhere, with the previous content"));
    }
    if applied.undo == UndoAvailability::TooLarge {
        notes.push("the file is too large for the undo journal: this change cannot be undone".to_owned());
    }
    notes
}

/// File content for the structured output; `None` if it is too large.
pub(crate) fn structured_text(content: &[u8]) -> Option<String> {
    (content.len() <= MAX_STRUCTURED_TEXT_BYTES).then(|| String::from_utf8_lossy(content).into_owned())
}
