//! Replacing text exactly.

use crate::text_encoding::{LineEndings, count_lines, to_crlf};
use memchr::memmem;
use std::borrow::Cow;

/// One replacement.
#[derive(Debug, Clone)]
pub(crate) struct TextReplacement {
    pub(crate) old: String,
    pub(crate) new: String,
    /// All places, not the only one.
    pub(crate) all: bool,
    /// Near which line, where several places are equal.
    pub(crate) line_hint: Option<u64>,
}

/// All replacements, made.
#[derive(Debug)]
pub(crate) struct AppliedReplacements {
    pub(crate) text: Vec<u8>,
    /// How many places changed.
    pub(crate) places: usize,
    /// Each replacement had exactly one place it could mean.
    pub(crate) unique: bool,
    /// What was taken differently from how it was written.
    pub(crate) notes: Vec<String>,
}

/// Why a replacement could not be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReplacementError {
    /// The text is not there.
    NotFound,
    /// It is there more than once, at these lines.
    Ambiguous(Vec<u64>),
}

/// A replacement that could not be made: which one, why, and in what text it was looked for.
#[derive(Debug)]
pub(crate) struct FailedReplacement {
    pub(crate) index: usize,
    pub(crate) error: ReplacementError,
    pub(crate) text: Vec<u8>,
}

/// Makes all replacements, each in what the ones before it left, or none.
pub(crate) fn apply_replacements(
    text: &[u8],
    replacements: &[TextReplacement],
) -> Result<AppliedReplacements, FailedReplacement> {
    let mut applied = AppliedReplacements { text: Vec::new(), places: 0, unique: true, notes: Vec::new() };
    // A file may be large: it is not copied before there is something to change.
    let mut current = Cow::Borrowed(text);
    for (index, replacement) in replacements.iter().enumerate() {
        match replace_one(&current, &mut applied, replacement) {
            Ok(next) => current = Cow::Owned(next),
            Err(miss) => return Err(FailedReplacement { index, error: miss, text: current.into_owned() }),
        }
    }
    applied.text = current.into_owned();
    Ok(applied)
}

fn replace_one(
    text: &[u8],
    applied: &mut AppliedReplacements,
    replacement: &TextReplacement,
) -> Result<Vec<u8>, ReplacementError> {
    let AlignedReplacement { old, new, note } =
        align_line_endings(text, replacement).ok_or(ReplacementError::NotFound)?;
    let places = find_occurrences(text, old.as_bytes());
    let chosen: Vec<usize> = match (places.as_slice(), replacement.all, replacement.line_hint) {
        ([], _, _) => return Err(ReplacementError::NotFound),
        ([one], _, _) => vec![*one],
        (_, true, _) => memmem::find_iter(text, &old).collect(),
        (several, false, Some(hint)) => vec![nearest_occurrence(text, several, hint)?],
        (several, false, None) => return Err(ReplacementError::Ambiguous(line_numbers(text, several))),
    };
    applied.unique &= places.len() == 1;
    applied.places += chosen.len();
    applied.notes.extend(note);
    let mut out = Vec::with_capacity(text.len() + new.len());
    let mut at = 0;
    for place in chosen {
        out.extend_from_slice(text.get(at..place).unwrap_or_default());
        out.extend_from_slice(new.as_bytes());
        at = place + old.len();
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Ok(out)
}

/// Old and new text with the line ends of the file.
struct AlignedReplacement {
    old: String,
    new: String,
    note: Option<String>,
}

/// Models write line feeds whatever a file has. A text that is there with other line ends is there.
fn align_line_endings(text: &[u8], replacement: &TextReplacement) -> Option<AlignedReplacement> {
    let TextReplacement { old, new, .. } = replacement;
    let there = |old: &str| memmem::find(text, old.as_bytes()).is_some();
    if there(old) {
        let one_line = !old.contains('\n');
        // Nothing in the old text says how lines end here; the file does.
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
    if there(&crlf) {
        let note = "the file's line ends (CRLF) were kept".to_owned();
        return Some(AlignedReplacement { old: crlf, new: to_crlf(new), note: Some(note) });
    }
    let lf = old.replace("\r\n", "\n");
    if there(&lf) {
        let note = "the file's line ends (LF) were kept".to_owned();
        return Some(AlignedReplacement { old: lf, new: new.replace("\r\n", "\n"), note: Some(note) });
    }
    None
}

/// Every place where the text begins, overlapping ones too: `aa` is in `aaa` twice.
fn find_occurrences(text: &[u8], old: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| finder.find(rest)) {
        found.push(at + next);
        at += next + 1;
    }
    found
}

fn line_numbers(text: &[u8], places: &[usize]) -> Vec<u64> {
    let mut line = 1;
    let mut from = 0;
    let mut out = Vec::new();
    for place in places {
        line += count_newlines(text.get(from..*place).unwrap_or_default());
        from = *place;
        out.push(line);
    }
    out
}

fn count_newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The place nearest to a line. Two that are equally near are ambiguous.
fn nearest_occurrence(text: &[u8], places: &[usize], hint: u64) -> Result<usize, ReplacementError> {
    let lines = line_numbers(text, places);
    let hint = hint.min(count_lines(text).max(1));
    let mut by_distance: Vec<(u64, usize)> =
        lines.iter().map(|line| line.abs_diff(hint)).zip(places.iter().copied()).collect();
    by_distance.sort_unstable();
    match by_distance.as_slice() {
        [(_, place)] => Ok(*place),
        [(one, place), (other, _), ..] if one < other => Ok(*place),
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
        assert_eq!(got.map_err(|missed| (missed.index, missed.error)), expected.map(str::to_owned));
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
    fn several_are_made_one_in_the_result_of_the_other_or_not_at_all() {
        check("a b", &[one("a", "b2"), one("b2", "c")], Ok("c b"));
        check("a b", &[one("a", "x"), one("a", "y")], Err((1, ReplacementError::NotFound)));
    }

    #[test]
    fn a_line_hint_chooses_among_equals() {
        let at = |hint| TextReplacement { line_hint: Some(hint), ..one("a", "x") };
        check("a\n\n\n\na", &[at(1)], Ok("x\n\n\n\na"));
        check("a\n\n\n\na", &[at(4)], Ok("a\n\n\n\nx"));
        check("a\n\n\n\na", &[at(900)], Ok("a\n\n\n\nx"));
        check("a\n\n\n\na", &[at(3)], Err((0, ReplacementError::Ambiguous(vec![1, 5]))));
        check("b\na", &[at(900)], Ok("b\nx"));
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        check("a\r\nb\r\nc\r\n", &[one("a\nb", "x\ny")], Ok("x\r\ny\r\nc\r\n"));
        check("a\r\nb\r\n", &[one("b", "x\ny")], Ok("a\r\nx\r\ny\r\n"));
        check("a\nb\n", &[one("a\r\nb", "x\r\ny")], Ok("x\ny\n"));
        check("a\r\nb\nc", &[one("b", "x\ny")], Ok("a\r\nx\ny\nc"));
    }
}
