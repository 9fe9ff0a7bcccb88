//! What changed between two texts.
//!
//! Most edits touch one place of a large file, so what is the same at both ends is cut off before the lines are
//! compared, and the comparison itself is given up after a while: then the whole middle counts as replaced.

use crate::text_encoding::decode_text;
use serde::Serialize;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use std::time::{Duration, Instant};

const CONTEXT_LINES: usize = 3;
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// One place that changed, with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffHunk {
    pub(crate) old_start: usize,
    pub(crate) old_lines: usize,
    pub(crate) new_start: usize,
    pub(crate) new_lines: usize,
    /// Each with ` `, `-` or `+` before it.
    pub(crate) lines: Vec<String>,
}

/// The places that changed.
pub(crate) fn diff_hunks(old: &[u8], new: &[u8]) -> Vec<DiffHunk> {
    let (start, old_end, new_end) = changed_range(old, new);
    let first = memchr::memchr_iter(b'\n', old.get(..start).unwrap_or_default()).count();
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
        .map(|group| build_hunk(group, first, &old_lines, &new_lines))
        .collect()
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

fn build_hunk(group: &[DiffOp], first: usize, old: &[&[u8]], new: &[&[u8]]) -> DiffHunk {
    let mut out = DiffHunk { old_start: 0, old_lines: 0, new_start: 0, new_lines: 0, lines: Vec::new() };
    if let Some(op) = group.first() {
        out.old_start = first + op.old_range().start + 1;
        out.new_start = first + op.new_range().start + 1;
    }
    for op in group {
        out.old_lines += op.old_range().len();
        out.new_lines += op.new_range().len();
        let (removed, added) = match op.tag() {
            DiffTag::Equal => {
                push_lines(&mut out.lines, ' ', old.get(op.old_range()));
                continue;
            }
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => (op.old_range(), op.new_range()),
        };
        push_lines(&mut out.lines, '-', old.get(removed));
        push_lines(&mut out.lines, '+', new.get(added));
    }
    // By custom an empty side is said to start at the line before.
    out.old_start -= usize::from(out.old_lines == 0 && out.old_start > 0);
    out.new_start -= usize::from(out.new_lines == 0 && out.new_start > 0);
    out
}

fn push_lines(lines: &mut Vec<String>, sign: char, some: Option<&[&[u8]]>) {
    for line in some.unwrap_or_default() {
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

/// Where the two begin and cease to differ, widened to whole lines and some lines of context.
fn changed_range(old: &[u8], new: &[u8]) -> (usize, usize, usize) {
    let same = common_len(old.chunks(4096), new.chunks(4096), old.iter(), new.iter());
    let mut start = old.get(..same).unwrap_or_default().len();
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
    let mut tail = common_len(
        old_rest.rchunks(4096),
        new_rest.rchunks(4096),
        old_rest.iter().rev(),
        new_rest.iter().rev(),
    );
    // The tail must begin after a line end, and leave the context to the middle.
    for _ in 0..=CONTEXT_LINES {
        let from = old_rest.len() - tail;
        match memchr::memchr(b'\n', old_rest.get(from..).unwrap_or_default()) {
            Some(end) => tail -= end + 1,
            None => {
                tail = 0;
                break;
            }
        }
    }
    (start, old.len() - tail, new.len() - tail)
}

/// How many bytes are the same: by large pieces first, which compares at the speed of memory.
fn common_len<'a>(
    old_pieces: impl Iterator<Item = &'a [u8]>,
    new_pieces: impl Iterator<Item = &'a [u8]>,
    old: impl Iterator<Item = &'a u8>,
    new: impl Iterator<Item = &'a u8>,
) -> usize {
    let whole: usize = old_pieces
        .zip(new_pieces)
        .take_while(|(one, other)| one == other)
        .map(|(piece, _)| piece.len())
        .sum();
    whole + old.skip(whole).zip(new.skip(whole)).take_while(|(one, other)| one == other).count()
}

/// Added and removed lines.
pub(crate) fn count_hunk_lines(hunks: &[DiffHunk]) -> (usize, usize) {
    let count =
        |sign| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.starts_with(sign)).count();
    (count('+'), count('-'))
}

/// Hunks as people and models know them, at most so many lines.
pub(crate) fn render_hunks(hunks: &[DiffHunk], most_lines: usize) -> String {
    let mut lines = Vec::new();
    // Where every line ends in CRLF the carriage returns say nothing.
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
    let left = lines.len().saturating_sub(most_lines);
    lines.truncate(most_lines);
    if left > 0 {
        lines.push(format!("[{left} more lines of the diff not shown]"));
    }
    lines.join("\n")
}

fn truncate_line(line: &str) -> String {
    match line.char_indices().nth(500) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(line)),
        None => line.to_owned(),
    }
}

/// A unified diff of two contents of a file, at most so many lines long. Contents that are no text are only named.
pub fn unified_diff(path: &str, old: Option<&[u8]>, new: Option<&[u8]>, most_lines: usize) -> String {
    let side = |content: Option<&[u8]>, letter| match content {
        Some(_) => format!("{letter}/{}", path.trim_start_matches('/')),
        None => "/dev/null".to_owned(),
    };
    let head = format!("--- {}\n+++ {}", side(old, 'a'), side(new, 'b'));
    let (before, after) = (decode_text(old.unwrap_or_default()), decode_text(new.unwrap_or_default()));
    match (before, after) {
        (Ok((old, _)), Ok((new, _))) => {
            format!("{head}\n{}", render_hunks(&diff_hunks(&old, &new), most_lines))
        }
        _ => format!("{head}\n[not text: {} bytes, then {} bytes]", content_len(old), content_len(new)),
    }
}

/// Added and removed lines between two texts; `None` where one is no text.
pub fn count_changed_lines(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    let ((old, _), (new, _)) = (decode_text(old).ok()?, decode_text(new).ok()?);
    Some(count_hunk_lines(&diff_hunks(&old, &new)))
}

fn content_len(content: Option<&[u8]>) -> usize {
    content.map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Makes the new text of the old one and the hunks, as `patch` would.
    fn patched(old: &str, hunks: &[DiffHunk]) -> String {
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
            prop_assert_eq!(patched(&old, &hunks), new.clone());
            prop_assert_eq!(hunks.is_empty(), old == new);
        }
    }

    #[test]
    fn carriage_returns_are_shown_only_where_they_tell_something() {
        let diff = |old: &str, new: &str| render_hunks(&diff_hunks(old.as_bytes(), new.as_bytes()), 100);
        assert_eq!(diff("a\r\nb\r\n", "a\r\nc\r\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c");
        assert_eq!(diff("a\r\n", "a\n"), "@@ -1,1 +1,1 @@\n-a\r\n+a");
    }

    #[test]
    fn a_creation_and_a_removal_are_whole() {
        let diff = unified_diff("/a/f", None, Some(b"one\ntwo\n"), 100);
        assert_eq!(diff, "--- /dev/null\n+++ b/a/f\n@@ -0,0 +1,2 @@\n+one\n+two");
        let diff = unified_diff("/a/f", Some(b"one"), None, 100);
        assert_eq!(diff, "--- a/a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n\\ No newline at end of file");
    }
}
