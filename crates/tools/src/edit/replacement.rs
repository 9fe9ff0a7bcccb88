//! Exact text replacement on bytes, with line endings adapted to the file.

use crate::text_encoding::{LineEndings, count_lines, to_crlf};
use memchr::memmem;
use std::borrow::Cow;

/// One requested replacement.
#[derive(Debug, Clone)]
pub(crate) struct TextReplacement {
    /// The text to find.
    pub(crate) old: String,
    /// The text to put in its place.
    pub(crate) new: String,
    /// Replace every occurrence instead of requiring exactly one.
    pub(crate) all: bool,
    /// Select the occurrence nearest to this line if there are several.
    pub(crate) line_hint: Option<u64>,
}

/// The result of applying all replacements.
#[derive(Debug)]
pub(crate) struct AppliedReplacements {
    /// The text after all replacements.
    pub(crate) text: Vec<u8>,
    /// The number of replaced occurrences.
    pub(crate) count: usize,
    /// Whether the old text of every replacement occurred exactly once.
    pub(crate) unique: bool,
    /// How the request was adapted, for the model.
    pub(crate) notes: Vec<String>,
}

/// Why a replacement failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReplacementError {
    /// The old text does not occur.
    NotFound,
    /// The old text occurs more than once, at these lines.
    Ambiguous(Vec<u64>),
}

/// The first replacement that failed.
#[derive(Debug)]
pub(crate) struct FailedReplacement {
    /// Its index in the request.
    pub(crate) index: usize,
    /// Why it failed.
    pub(crate) error: ReplacementError,
    /// The text in which it failed, with the replacements before it applied.
    pub(crate) text: Vec<u8>,
}

/// Applies all replacements, each to the result of the previous one, or none.
pub(crate) fn apply_replacements(
    text: &[u8],
    replacements: &[TextReplacement],
) -> Result<AppliedReplacements, FailedReplacement> {
    let mut applied = AppliedReplacements { text: Vec::new(), count: 0, unique: true, notes: Vec::new() };
    // The file may be large, so it is not copied before the first replacement succeeds.
    let mut current = Cow::Borrowed(text);
    for (index, replacement) in replacements.iter().enumerate() {
        match replace_one(&current, &mut applied, replacement) {
            Ok(next) => current = Cow::Owned(next),
            Err(error) => return Err(FailedReplacement { index, error, text: current.into_owned() }),
        }
    }
    applied.text = current.into_owned();
    Ok(applied)
}

/// Applies one replacement to `text` and adds its counts and notes to `applied`.
fn replace_one(
    text: &[u8],
    applied: &mut AppliedReplacements,
    replacement: &TextReplacement,
) -> Result<Vec<u8>, ReplacementError> {
    let AlignedReplacement { old, new, note } =
        align_line_endings(text, replacement).ok_or(ReplacementError::NotFound)?;
    let occurrences = find_occurrences(text, old.as_bytes());
    let selected: Vec<usize> = match (occurrences.as_slice(), replacement.all, replacement.line_hint) {
        ([], _, _) => return Err(ReplacementError::NotFound),
        ([one], _, _) => vec![*one],
        (_, true, _) => memmem::find_iter(text, &old).collect(),
        (several, false, Some(hint)) => vec![nearest_occurrence(text, several, hint)?],
        (several, false, None) => return Err(ReplacementError::Ambiguous(line_numbers(text, several))),
    };
    applied.unique &= occurrences.len() == 1;
    applied.count += selected.len();
    applied.notes.extend(note);
    let mut out = Vec::with_capacity(text.len() + new.len());
    let mut copied_to = 0;
    for start in selected {
        out.extend_from_slice(text.get(copied_to..start).unwrap_or_default());
        out.extend_from_slice(new.as_bytes());
        copied_to = start + old.len();
    }
    out.extend_from_slice(text.get(copied_to..).unwrap_or_default());
    Ok(out)
}

/// A replacement with the line endings of the file.
struct AlignedReplacement {
    /// The text to find.
    old: String,
    /// The text to insert.
    new: String,
    /// Set if the line endings differed from the request.
    note: Option<String>,
}

/// Models write LF whatever the file has, so a text that occurs with the other line endings counts as found. `None` if
/// it does not occur at all.
fn align_line_endings(text: &[u8], replacement: &TextReplacement) -> Option<AlignedReplacement> {
    let TextReplacement { old, new, .. } = replacement;
    let occurs = |old: &str| memmem::find(text, old.as_bytes()).is_some();
    if occurs(old) {
        let one_line = !old.contains('\n');
        // A one-line old text shows no line ending, so the new text takes that of the file.
        let new = if one_line && new.contains('\n') && LineEndings::of(text) == LineEndings::Crlf {
            to_crlf(new)
        } else {
            new.clone()
        };
        return Some(AlignedReplacement { old: old.clone(), new, note: None });
    }
    if !old.contains('\n') {
        return None;
    }
    let crlf = to_crlf(old);
    if occurs(&crlf) {
        let note = "the file's line endings (CRLF) were kept".to_owned();
        return Some(AlignedReplacement { old: crlf, new: to_crlf(new), note: Some(note) });
    }
    let lf = old.replace("\r\n", "\n");
    if occurs(&lf) {
        let note = "the file's line endings (LF) were kept".to_owned();
        return Some(AlignedReplacement { old: lf, new: new.replace("\r\n", "\n"), note: Some(note) });
    }
    None
}

/// The start of every occurrence, overlapping ones included: `aa` occurs twice in `aaa`, so it is ambiguous.
fn find_occurrences(text: &[u8], old: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(next) = text.get(start..).and_then(|rest| finder.find(rest)) {
        found.push(start + next);
        start += next + 1;
    }
    found
}

/// The line of each occurrence, from 1. The occurrences must be in order.
fn line_numbers(text: &[u8], occurrences: &[usize]) -> Vec<u64> {
    let mut line = 1;
    let mut counted_to = 0;
    let mut numbers = Vec::new();
    for start in occurrences {
        line += count_newlines(text.get(counted_to..*start).unwrap_or_default());
        counted_to = *start;
        numbers.push(line);
    }
    numbers
}

/// Counts LF bytes, from which the line numbers of occurrences follow.
fn count_newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The occurrence nearest to a line. Two at the same distance are ambiguous.
fn nearest_occurrence(text: &[u8], occurrences: &[usize], hint: u64) -> Result<usize, ReplacementError> {
    let lines = line_numbers(text, occurrences);
    let hint = hint.min(count_lines(text).max(1));
    let mut by_distance: Vec<(u64, usize)> =
        lines.iter().map(|line| line.abs_diff(hint)).zip(occurrences.iter().copied()).collect();
    by_distance.sort_unstable();
    match by_distance.as_slice() {
        [(_, start)] => Ok(*start),
        [(distance, start), (next_distance, _), ..] if distance < next_distance => Ok(*start),
        _ => Err(ReplacementError::Ambiguous(lines)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(old: &str, new: &str) -> TextReplacement {
        TextReplacement { old: old.into(), new: new.into(), all: false, line_hint: None }
    }

    fn check(
        text: &str,
        replacements: &[TextReplacement],
        expected: Result<&str, (usize, ReplacementError)>,
    ) {
        let got = apply_replacements(text.as_bytes(), replacements);
        let got = got.map(|applied| String::from_utf8(applied.text).unwrap());
        assert_eq!(got.map_err(|failed| (failed.index, failed.error)), expected.map(str::to_owned));
    }

    #[test]
    fn text_is_replaced_exactly_once_or_everywhere() {
        check("a b c", &[one("b", "x")], Ok("a x c"));
        check("a b c", &[one("d", "x")], Err((0, ReplacementError::NotFound)));
        check("a\nb\na", &[one("a", "x")], Err((0, ReplacementError::Ambiguous(vec![1, 3]))));
        check("aaa", &[one("aa", "x")], Err((0, ReplacementError::Ambiguous(vec![1, 1]))));
        check("aaa", &[TextReplacement { all: true, ..one("aa", "x") }], Ok("xa"));
        check("a\nb\na", &[TextReplacement { all: true, ..one("a", "x") }], Ok("x\nb\nx"));
        check("abc", &[one("abc", "")], Ok(""));
    }

    #[test]
    fn each_replacement_applies_to_the_result_of_the_previous_one_or_none_is_made() {
        check("a b", &[one("a", "b2"), one("b2", "c")], Ok("c b"));
        check("a b", &[one("a", "x"), one("a", "y")], Err((1, ReplacementError::NotFound)));
    }

    #[test]
    fn a_line_hint_selects_the_nearest_occurrence() {
        let at = |hint| TextReplacement { line_hint: Some(hint), ..one("a", "x") };
        check("a\n\n\n\na", &[at(1)], Ok("x\n\n\n\na"));
        check("a\n\n\n\na", &[at(4)], Ok("a\n\n\n\nx"));
        check("a\n\n\n\na", &[at(900)], Ok("a\n\n\n\nx"));
        check("a\n\n\n\na", &[at(3)], Err((0, ReplacementError::Ambiguous(vec![1, 5]))));
        check("b\na", &[at(900)], Ok("b\nx"));
    }

    #[test]
    fn line_endings_of_the_file_are_kept() {
        check("a\r\nb\r\nc\r\n", &[one("a\nb", "x\ny")], Ok("x\r\ny\r\nc\r\n"));
        check("a\r\nb\r\n", &[one("b", "x\ny")], Ok("a\r\nx\r\ny\r\n"));
        check("a\nb\n", &[one("a\r\nb", "x\r\ny")], Ok("x\ny\n"));
        check("a\r\nb\nc", &[one("b", "x\ny")], Ok("a\r\nx\ny\nc"));
    }
}
