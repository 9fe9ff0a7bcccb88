//! Figures of the sources that must stay within limits: file length, function length, share of doc comments.
//!
//! They cover `src/` of every crate and of xtask, each file up to its tests.

use super::names::code_lines;

/// Half of all files have at most this many lines.
const MAX_MEDIAN_LINES: usize = 180;
/// Nine of ten files have at most this many lines.
const MAX_P90_LINES: usize = 350;
/// How many functions may be longer than [`MAX_FUNCTION_LINES`].
const MAX_LONG_FUNCTION_COUNT: usize = 10;
/// A function that is longer counts as long.
const MAX_FUNCTION_LINES: usize = 60;
/// Of a hundred lines of code at least this many are doc comments.
const MIN_DOC_PERCENT: usize = 15;

/// What was counted so far.
#[derive(Default)]
pub(super) struct SourceFigures {
    /// The length of each file.
    file_lines: Vec<usize>,
    /// Lines that are doc comments.
    doc_lines: usize,
    /// Lines that are not empty.
    written_lines: usize,
    /// Functions over the limit, as lines of the report.
    long_functions: Vec<String>,
}

impl SourceFigures {
    /// Counts one file.
    pub(super) fn add(&mut self, file: &str, text: &str) {
        let lines: Vec<&str> = code_lines(text).map(|(_, line)| line).collect();
        self.file_lines.push(lines.len());
        self.written_lines += lines.iter().filter(|line| !line.trim().is_empty()).count();
        self.doc_lines += lines.iter().filter(|line| is_doc_comment(line)).count();
        for (index, line) in lines.iter().enumerate() {
            if is_function_start(line)
                && let Some(length) = function_length(&lines, index)
                && length > MAX_FUNCTION_LINES
            {
                self.long_functions.push(format!("{file}:{}: a function of {length} lines", index + 1));
            }
        }
    }

    /// Reports every limit that is exceeded.
    pub(super) fn check(mut self, broken: &mut Vec<String>) {
        self.file_lines.sort_unstable();
        let count = self.file_lines.len();
        for (what, at, max) in
            [("median", count / 2, MAX_MEDIAN_LINES), ("p90", count * 9 / 10, MAX_P90_LINES)]
        {
            let lines = self.file_lines.get(at).copied().unwrap_or_default();
            if lines > max {
                broken.push(format!("{what} of the files' lines: {lines}, at most {max}"));
            }
        }
        let percent = self.doc_lines * 100 / self.written_lines.max(1);
        if percent < MIN_DOC_PERCENT {
            broken.push(format!("doc comments: {percent} %, at least {MIN_DOC_PERCENT} %"));
        }
        if self.long_functions.len() > MAX_LONG_FUNCTION_COUNT {
            let (count, max) = (self.long_functions.len(), MAX_LONG_FUNCTION_COUNT);
            broken.push(format!("{count} functions over {MAX_FUNCTION_LINES} lines, at most {max}:"));
            broken.append(&mut self.long_functions);
        }
    }
}

/// Whether a line is a doc comment of an item or a module.
fn is_doc_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("///") || line.starts_with("//!")
}

/// Whether a function begins on this line, with any visibility and qualifiers.
fn is_function_start(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub")
            || word.ends_with(')')
            || matches!(*word, "in" | "const" | "async" | "unsafe" | "extern" | "\"C\"")
    });
    words.next() == Some("fn")
}

/// Lines from the signature to the closing brace of the same indentation; `None` for a declaration without a body.
fn function_length(lines: &[&str], start: usize) -> Option<usize> {
    let first = lines.get(start)?;
    let indent = first.len() - first.trim_start().len();
    for (offset, line) in lines.iter().skip(start).enumerate() {
        let ends_here = line.trim_end() == format!("{}}}", " ".repeat(indent))
            || offset == 0 && line.trim_end().ends_with('}');
        if ends_here {
            return Some(offset + 1);
        }
        if offset < 12
            && line.trim_end().ends_with(';')
            && !lines.get(start..=start + offset)?.concat().contains('{')
        {
            return None;
        }
    }
    None
}
