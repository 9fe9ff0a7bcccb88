//! Unified diffs between two versions of a text.
//!
//! Most edits touch one place of a large file.
//! The common prefix and suffix are therefore removed by comparing blocks of bytes, and only the middle is compared
//! line by line (Myers).
//! That comparison has a timeout, after which the rest of the middle counts as replaced: the diff is larger, but valid.

use crate::text_encoding::decode_text;
use serde::Serialize;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use std::time::{Duration, Instant};

/// Unchanged lines before and after each change.
const CONTEXT_LINES: usize = 3;
/// Time for the comparison of the middle.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);
/// Block size of the comparison of prefix and suffix: large enough for `memcmp`, small enough to end near the change.
const COMPARE_BLOCK_BYTES: usize = 4096;
/// Characters of a line that a rendered diff shows.
const MAX_LINE_CHARS: usize = 500;
/// End of a rendered diff that was truncated.
const TRUNCATION_SUFFIX: &str = "more lines of the diff not shown]";

/// One changed region with its context lines. The field names are those of the structured output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffHunk {
    /// First line in the old text, from 1; the line before the insertion if `old_lines` is 0.
    pub(crate) old_start: usize,
    /// Number of lines of the old text that the hunk covers.
    pub(crate) old_lines: usize,
    /// First line in the new text, from 1; the line before the removal if `new_lines` is 0.
    pub(crate) new_start: usize,
    /// Number of lines of the new text that the hunk covers.
    pub(crate) new_lines: usize,
    /// The lines, each prefixed with ` `, `-` or `+`.
    pub(crate) lines: Vec<String>,
}

/// The changed regions between two texts, in order.
pub(crate) fn diff_hunks(old: &[u8], new: &[u8]) -> Vec<DiffHunk> {
    let (start, old_end, new_end) = changed_range(old, new);
    let lines_before = memchr::memchr_iter(b'\n', old.get(..start).unwrap_or_default()).count();
    let old_lines: Vec<&[u8]> =
        old.get(start..old_end).unwrap_or_default().split_inclusive(is_newline).collect();
    let new_lines: Vec<&[u8]> =
        new.get(start..new_end).unwrap_or_default().split_inclusive(is_newline).collect();
    let deadline = Some(Instant::now() + DIFF_TIMEOUT);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, deadline);
    let groups = group_diff_ops(ops, CONTEXT_LINES);
    groups
        .iter()
        .filter(|group| group.iter().any(|op| op.tag() != DiffTag::Equal))
        .map(|group| build_hunk(group, lines_before, &old_lines, &new_lines))
        .collect()
}

/// Splits lines at LF only. A CR stays part of its line, so that a change of line endings appears in the diff.
fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

/// `lines_before` is the number of lines of the common prefix, which the operations do not count.
fn build_hunk(group: &[DiffOp], lines_before: usize, old: &[&[u8]], new: &[&[u8]]) -> DiffHunk {
    let mut hunk = DiffHunk { old_start: 0, old_lines: 0, new_start: 0, new_lines: 0, lines: Vec::new() };
    if let Some(op) = group.first() {
        hunk.old_start = lines_before + op.old_range().start + 1;
        hunk.new_start = lines_before + op.new_range().start + 1;
    }
    for op in group {
        hunk.old_lines += op.old_range().len();
        hunk.new_lines += op.new_range().len();
        let (removed, added) = match op.tag() {
            DiffTag::Equal => {
                push_lines(&mut hunk.lines, ' ', old.get(op.old_range()));
                continue;
            }
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => (op.old_range(), op.new_range()),
        };
        push_lines(&mut hunk.lines, '-', old.get(removed));
        push_lines(&mut hunk.lines, '+', new.get(added));
    }
    // The unified format gives the line before an empty side as its start.
    hunk.old_start -= usize::from(hunk.old_lines == 0 && hunk.old_start > 0);
    hunk.new_start -= usize::from(hunk.new_lines == 0 && hunk.new_start > 0);
    hunk
}

/// Appends lines with their prefix. A last line without a line feed gets the marker that `patch` expects.
fn push_lines(lines: &mut Vec<String>, sign: char, added: Option<&[&[u8]]>) {
    for line in added.unwrap_or_default() {
        let text = String::from_utf8_lossy(line);
        match text.strip_suffix('\n') {
            Some(text) => lines.push(format!("{sign}{text}")),
            None => {
                lines.push(format!("{sign}{text}"));
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
    }
}

/// The byte range that differs: its start in both texts, its end in the old one and its end in the new one, extended to
/// whole lines and to the context lines.
fn changed_range(old: &[u8], new: &[u8]) -> (usize, usize, usize) {
    let prefix =
        common_len(old.chunks(COMPARE_BLOCK_BYTES), new.chunks(COMPARE_BLOCK_BYTES), old.iter(), new.iter());
    let mut start = old.get(..prefix).unwrap_or_default().len();
    for _ in 0..=CONTEXT_LINES {
        start = memchr::memrchr(b'\n', old.get(..start).unwrap_or_default()).unwrap_or(0);
        if start == 0 {
            break;
        }
    }
    if start > 0 {
        start += 1;
    }
    let (old_rest, new_rest) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let mut suffix = common_len(
        old_rest.rchunks(COMPARE_BLOCK_BYTES),
        new_rest.rchunks(COMPARE_BLOCK_BYTES),
        old_rest.iter().rev(),
        new_rest.iter().rev(),
    );
    // The suffix must start after a line end, and leave the context lines to the middle.
    for _ in 0..=CONTEXT_LINES {
        let from = old_rest.len() - suffix;
        match memchr::memchr(b'\n', old_rest.get(from..).unwrap_or_default()) {
            Some(end) => suffix -= end + 1,
            None => {
                suffix = 0;
                break;
            }
        }
    }
    (start, old.len() - suffix, new.len() - suffix)
}

/// The number of equal bytes at the start of two iterators. Blocks are compared first: comparing byte by byte is an
/// order of magnitude slower on a file of several megabytes.
fn common_len<'a>(
    old_blocks: impl Iterator<Item = &'a [u8]>,
    new_blocks: impl Iterator<Item = &'a [u8]>,
    old: impl Iterator<Item = &'a u8>,
    new: impl Iterator<Item = &'a u8>,
) -> usize {
    let in_blocks: usize = old_blocks
        .zip(new_blocks)
        .take_while(|(one, other)| one == other)
        .map(|(block, _)| block.len())
        .sum();
    in_blocks + old.skip(in_blocks).zip(new.skip(in_blocks)).take_while(|(one, other)| one == other).count()
}

/// The number of added and of removed lines.
pub(crate) fn count_hunk_lines(hunks: &[DiffHunk]) -> (usize, usize) {
    let count =
        |sign| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.starts_with(sign)).count();
    (count('+'), count('-'))
}

/// Renders hunks in the unified format, truncated to `max_lines`.
pub(crate) fn render_hunks(hunks: &[DiffHunk], max_lines: usize) -> String {
    let mut lines = Vec::new();
    // If every line ends in CRLF, the carriage returns are noise; a mix of line endings is what the diff must show.
    let crlf = hunks.iter().flat_map(|hunk| &hunk.lines).all(|line| line.ends_with('\r'));
    for hunk in hunks {
        lines.push(format!(
            "@@ -{},{} +{},{} @@",
            hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines
        ));
        let shown =
            |line: &str| if crlf { truncate_line(line.trim_end_matches('\r')) } else { truncate_line(line) };
        lines.extend(hunk.lines.iter().map(|line| shown(line)));
    }
    let omitted = lines.len().saturating_sub(max_lines);
    lines.truncate(max_lines);
    if omitted > 0 {
        lines.push(format!("[{omitted} {TRUNCATION_SUFFIX}"));
    }
    lines.join("\n")
}

/// Whether [`render_hunks`] left out lines of this diff.
pub(crate) fn is_truncated_diff(diff: &str) -> bool {
    diff.ends_with(TRUNCATION_SUFFIX)
}

/// Leaves out the middle of a long line of a rendered diff; minified files have lines of megabytes. The end stays: what is
/// hidden from the user is hidden there.
fn truncate_line(line: &str) -> String {
    let count = line.chars().count();
    if count <= MAX_LINE_CHARS {
        return line.to_owned();
    }
    let tail = MAX_LINE_CHARS / 4;
    let first: String = line.chars().take(MAX_LINE_CHARS - tail).collect();
    let last: String = line.chars().skip(count - tail).collect();
    format!("{first} …⟨{} characters left out⟩… {last}", count - MAX_LINE_CHARS)
}

/// A unified diff of two versions of a file, truncated to `max_lines`. `None` is a version in which the file does not
/// exist. For binary content the diff gives only the sizes.
pub fn unified_diff(path: &str, old: Option<&[u8]>, new: Option<&[u8]>, max_lines: usize) -> String {
    let side = |content: Option<&[u8]>, letter| match content {
        Some(_) => format!("{letter}/{}", path.trim_start_matches('/')),
        None => "/dev/null".to_owned(),
    };
    let header = format!("--- {}\n+++ {}", side(old, 'a'), side(new, 'b'));
    let (before, after) = (decode_text(old.unwrap_or_default()), decode_text(new.unwrap_or_default()));
    match (before, after) {
        (Ok((old, _)), Ok((new, _))) => {
            format!("{header}\n{}", render_hunks(&diff_hunks(&old, &new), max_lines))
        }
        _ => format!("{header}\n[not text: {} bytes, then {} bytes]", content_len(old), content_len(new)),
    }
}

/// The number of added and of removed lines between two versions of a file; `None` if one of them is binary.
pub fn count_changed_lines(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    let ((old, _), (new, _)) = (decode_text(old).ok()?, decode_text(new).ok()?);
    Some(count_hunk_lines(&diff_hunks(&old, &new)))
}

/// The size for the diff of a binary file; 0 if the file does not exist.
fn content_len(content: Option<&[u8]>) -> usize {
    content.map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies the hunks to the old text, as `patch` does.
    fn apply_hunks(old: &str, hunks: &[DiffHunk]) -> String {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let mut out = String::new();
        let mut at = 0;
        for hunk in hunks {
            let start = if hunk.old_lines == 0 { hunk.old_start } else { hunk.old_start - 1 };
            out.extend(lines[at..start].iter().copied());
            at = start + hunk.old_lines;
            for (index, line) in hunk.lines.iter().enumerate() {
                if line.starts_with([' ', '+']) {
                    out.push_str(line.get(1..).unwrap());
                    if !hunk.lines.get(index + 1).is_some_and(|next| next.starts_with('\\')) {
                        out.push('\n');
                    }
                }
            }
        }
        out.extend(lines[at..].iter().copied());
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn a_diff_applied_to_the_old_text_gives_the_new_one(
            old in proptest::collection::vec("[ab]{0,2}", 0..30),
            new in proptest::collection::vec("[ab]{0,2}", 0..30),
            same in proptest::collection::vec("[c-z]{1,4}", 0..40),
            ends in any::<(bool, bool)>(),
        ) {
            let same: String = same.iter().map(|line| format!("{line}\n")).collect();
            let whole = |middle: &[String], end: bool| {
                let mut text = format!("{same}{}\n{same}", middle.join("\n"));
                if !end {
                    text.pop();
                }
                text
            };
            let (old, new) = (whole(&old, ends.0), whole(&new, ends.1));
            let hunks = diff_hunks(old.as_bytes(), new.as_bytes());
            prop_assert_eq!(apply_hunks(&old, &hunks), new.clone());
            prop_assert_eq!(hunks.is_empty(), old == new);
        }
    }

    #[test]
    fn carriage_returns_are_shown_only_where_line_endings_differ() {
        let diff = |old: &str, new: &str| render_hunks(&diff_hunks(old.as_bytes(), new.as_bytes()), 100);
        assert_eq!(diff("a\r\nb\r\n", "a\r\nc\r\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c");
        assert_eq!(diff("a\r\n", "a\n"), "@@ -1,1 +1,1 @@\n-a\r\n+a");
    }

    #[test]
    fn a_created_or_removed_file_is_shown_completely() {
        let diff = unified_diff("/a/f", None, Some(b"one\ntwo\n"), 100);
        assert_eq!(diff, "--- /dev/null\n+++ b/a/f\n@@ -0,0 +1,2 @@\n+one\n+two");
        let diff = unified_diff("/a/f", Some(b"one"), None, 100);
        assert_eq!(diff, "--- a/a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n\\ No newline at end of file");
    }
}
