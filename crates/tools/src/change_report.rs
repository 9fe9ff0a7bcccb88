//! What models are told when a file is changed, or is not.

use crate::diff::{DiffHunk, count_hunk_lines, render_hunks};
use crate::file_refusal::file_refusal;
use toolgate_files::{AppliedFileChange, ChangeProblem, UndoAvailability};
use toolgate_proto::{AbsPath, Code, Refusal};

/// Lines of a diff that a result shows.
const MAX_DIFF_LINES: usize = 60;
/// Original content up to this size goes into the structured output.
pub(crate) const MAX_ORIGINAL_BYTES: usize = 256 * 1024;

/// The refusal for a change that could not be made.
pub(crate) fn change_refusal(path: &AbsPath, problem: &ChangeProblem, otherwise: Code) -> Refusal {
    match problem {
        ChangeProblem::File(problem) => file_refusal(path, problem, otherwise),
        ChangeProblem::Changed => Refusal::new(
            Code::ChangedSinceRead,
            format!("`{path}` was changed by somebody else at the same moment; theirs was kept"),
        ),
        ChangeProblem::InvalidContent(words) => {
            let mut words = words.clone();
            let more = words.len().saturating_sub(10);
            words.truncate(10);
            if more > 0 {
                words.push(format!("and {more} more"));
            }
            Refusal::new(
                otherwise,
                format!("`{path}` is as it was: its new content is not valid: {}", words.join("; ")),
            )
            .hint("make the content valid, then repeat the change")
        }
        ChangeProblem::Unrecorded(words) => Refusal::new(
            otherwise,
            format!("`{path}` is as it was: the change could not be recorded for undo ({words})"),
        )
        .hint("see that the state directory can be written and has room, then repeat the change"),
    }
}

/// The refusal for a file that was not read before.
pub(crate) fn not_read_refusal(path: &AbsPath) -> Refusal {
    Refusal::new(Code::NotRead, format!("`{path}` exists and was not read in this session"))
}

/// The refusal for a file of which only a part was read.
pub(crate) fn partly_read_refusal(path: &AbsPath) -> Refusal {
    Refusal::new(Code::NotRead, format!("only a part of `{path}` was read, and all of it would be replaced"))
        .hint("read the whole file first, or change only the part you know with an edit")
}

/// The refusal for a file that is not what was read.
pub(crate) fn changed_since_read_refusal(path: &AbsPath, diff: Option<String>) -> Refusal {
    let refusal = Refusal::new(Code::ChangedSinceRead, format!("`{path}` has changed since it was read"));
    match diff {
        Some(diff) => refusal.with_partial(toolgate_proto::Output::text(format!("what changed:\n{diff}"))),
        None => refusal,
    }
}

/// A result: what happened, what is worth knowing, and the diff.
pub(crate) fn render_change(head: String, notes: &[String], hunks: &[DiffHunk]) -> String {
    let mut out = head;
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

/// What is worth knowing about how a change was made.
pub(crate) fn change_notes(made: &AppliedFileChange) -> Vec<String> {
    let mut notes = Vec::new();
    if made.other_hard_links > 0 {
        let names = if made.other_hard_links == 1 { "another name" } else { "other names" };
        notes.push(format!("the file has {names} elsewhere, which keeps the former content"));
    }
    if made.undo == UndoAvailability::TooLarge {
        notes.push("the file is too large for the journal: this change cannot be undone".to_owned());
    }
    notes
}
