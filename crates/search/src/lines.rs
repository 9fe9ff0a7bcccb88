//! The hits of one file in a search of content: its lines, or their number.
//!
//! Lines, matches and counts are defined as in ripgrep: several matches in a line are one line; if matches may span
//! lines, matches are counted and not lines; a file with binary data has no count, and shows the lines before that
//! data.

use crate::collect::{ResultLimit, ResultSize};
use grep_matcher::{Match, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkError, SinkFinish, SinkMatch};
use std::io;
use std::ops::Range;

/// How many characters of a line are returned; of a longer one, those around its first match.
const MAX_LINE_CHARS: usize = 2_000;
/// How many of these are before the match.
const MAX_LEAD_CHARS: usize = 200;
/// How far past the reported lines the engine may look when it finds a match over several lines again, as in ripgrep.
const LOOK_AHEAD_BYTES: usize = 128;

/// What a search returns of each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentOutputKind {
    /// Only that it has a match.
    Files,
    /// The number of matching lines.
    LineCounts,
    /// The number of matches.
    MatchCounts,
    /// The matching lines.
    Lines(LineOutputOptions),
}

/// Which lines a search returns, and in which form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineOutputOptions {
    /// How many lines of context before each match.
    pub before: usize,
    /// How many lines of context after each match.
    pub after: usize,
    /// Whether lines have numbers. Counting them costs a pass over the file.
    pub numbers: bool,
    /// Whether to return only the matching part of each line.
    pub only_matching: bool,
}

impl ContentOutputKind {
    /// Whether lines are counted, which costs a pass over each file.
    pub(crate) fn has_line_numbers(&self) -> bool {
        matches!(self, Self::Lines(lines) if lines.numbers)
    }
}

/// What was found in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHits {
    /// The lines, for [`ContentOutputKind::Lines`].
    pub lines: Vec<ResultLine>,
    /// The count, for [`ContentOutputKind::LineCounts`] and [`ContentOutputKind::MatchCounts`].
    pub count: u64,
    /// How many of `lines` are matches and not context.
    pub matching: usize,
    /// Whether binary data was found. The rest of the file was not searched, unless the call names the file.
    pub binary: bool,
    /// About how many bytes of output this is.
    bytes: usize,
}

/// One line of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLine {
    /// Its number from 1, if [`LineOutputOptions::numbers`] is set.
    pub number: Option<u64>,
    /// Why it is in the result.
    pub kind: ResultLineKind,
    /// Its text without the line end, truncated if it is very long.
    pub text: String,
}

/// Why a line is part of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultLineKind {
    /// It has a match.
    Match,
    /// It is context of a line with a match.
    Context,
    /// Not a line: lines are left out here.
    Gap,
}

impl FileHits {
    /// Adds the size of the path, which is part of the output.
    pub(crate) fn with_path_bytes(mut self, path: &[u8]) -> Self {
        self.bytes += path.len() + 16;
        self
    }
}

impl ResultSize for FileHits {
    fn units(&self) -> usize {
        self.lines.len().max(1)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Receives the matches of one file from the engine.
pub(crate) struct MatchSink<'g> {
    /// Finds matches within the lines that the engine reports.
    matcher: &'g RegexMatcher,
    /// What to collect.
    output: &'g ContentOutputKind,
    /// When there is enough.
    limit: ResultLimit,
    /// Whether the call names the file, so that binary data does not exclude it.
    is_single_file: bool,
    /// What was found so far.
    hits: FileHits,
    /// Whether there was a match, also one that was not collected.
    has_match: bool,
}

impl<'g> MatchSink<'g> {
    pub(crate) fn new(
        matcher: &'g RegexMatcher,
        output: &'g ContentOutputKind,
        limit: ResultLimit,
        is_single_file: bool,
    ) -> Self {
        Self { matcher, output, limit, is_single_file, hits: FileHits::default(), has_match: false }
    }

    /// The hits; `None` if the file has nothing for the result.
    pub(crate) fn into_hits(self) -> Option<FileHits> {
        let is_result = match self.output {
            ContentOutputKind::Files => self.has_match,
            ContentOutputKind::LineCounts | ContentOutputKind::MatchCounts => {
                self.hits.count > 0 && (self.is_single_file || !self.hits.binary)
            }
            ContentOutputKind::Lines(_) => {
                self.has_match && (!self.hits.lines.is_empty() || self.hits.binary)
            }
        };
        is_result.then_some(self.hits)
    }

    /// Adds a line, truncated around byte `at` if it is too long.
    fn push(&mut self, number: Option<u64>, kind: ResultLineKind, bytes: &[u8], at: usize) {
        let text = clip_line(without_line_end(bytes), at);
        self.hits.bytes += text.len() + 16;
        self.hits.lines.push(ResultLine { number, kind, text });
    }

    /// Whether the limits leave room for another line.
    fn wants_more(&self) -> bool {
        self.hits.lines.len() < self.limit.units && self.hits.bytes < self.limit.bytes
    }

    /// The matches within the lines that the engine reports, with positions relative to the first of these lines. The engine
    /// reports only the lines, so the matches are searched again.
    fn find_matches(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<Vec<Match>> {
        let range = found.bytes_range_in_buffer();
        let buffer = found.buffer();
        let until = if searcher.multi_line_with_matcher(self.matcher) {
            range.end.saturating_add(LOOK_AHEAD_BYTES).min(buffer.len())
        } else {
            // Without the line end, or `$` might not match.
            range.start + without_newline(slice(buffer, range.clone())).len()
        };
        let mut matches = Vec::new();
        self.matcher
            .find_iter_at(slice(buffer, 0..until), range.start, |found| {
                let inside = found.start() < range.end;
                if inside {
                    matches.push(Match::new(found.start() - range.start, found.end() - range.start));
                }
                inside
            })
            .map_err(io::Error::error_message)?;
        if matches.last().is_some_and(|last| last.is_empty() && last.start() >= range.len()) {
            matches.pop();
        }
        Ok(matches)
    }

    /// Adds the lines of a match.
    fn push_lines(&mut self, found: &SinkMatch<'_>) {
        let mut number = found.line_number();
        for line in found.lines() {
            if !self.wants_more() {
                return;
            }
            let at = if line.len() > MAX_LINE_CHARS { self.first_match_offset(line) } else { 0 };
            self.push(number, ResultLineKind::Match, line, at);
            self.hits.matching += 1;
            number = number.map(|number| number + 1);
        }
    }

    /// Where the first match of a line begins.
    fn first_match_offset(&self, line: &[u8]) -> usize {
        self.matcher.find(line).ok().flatten().map_or(0, |found| found.start())
    }

    /// Adds only the matching parts; one that spans lines is split at line ends.
    fn push_matching_parts(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<()> {
        let matches = self.find_matches(searcher, found)?;
        let spans_lines = searcher.multi_line_with_matcher(self.matcher);
        let bytes = found.bytes();
        let mut number = found.line_number();
        let mut start = 0;
        for line in found.lines() {
            let end = start + if spans_lines { without_newline(line).len() } else { line.len() };
            for part in &matches {
                let (from, to) = (part.start().max(start), part.end().min(end));
                // Within a line an empty match is a result; at the border of two lines it would be one twice.
                let is_shown = if spans_lines { from < to } else { from <= to };
                if is_shown && self.wants_more() {
                    self.push(number, ResultLineKind::Match, slice(bytes, from..to), 0);
                    self.hits.matching += 1;
                }
            }
            start += line.len();
            number = number.map(|number| number + 1);
        }
        Ok(())
    }
}

impl Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.has_match = true;
        match self.output {
            ContentOutputKind::Files => return Ok(false),
            ContentOutputKind::LineCounts if searcher.multi_line_with_matcher(self.matcher) => {
                self.hits.count += self.find_matches(searcher, found)?.len().max(1) as u64;
            }
            ContentOutputKind::LineCounts => self.hits.count += 1,
            ContentOutputKind::MatchCounts => {
                self.hits.count += self.find_matches(searcher, found)?.len().max(1) as u64
            }
            // The lines of a binary file are of no use, even if the call names it.
            ContentOutputKind::Lines(_) if self.is_single_file && self.hits.binary => return Ok(false),
            ContentOutputKind::Lines(lines) if lines.only_matching => {
                self.push_matching_parts(searcher, found)?
            }
            ContentOutputKind::Lines(_) => self.push_lines(found),
        }
        Ok(self.wants_more())
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if let ContentOutputKind::Lines(lines) = self.output
            && !lines.only_matching
        {
            self.push(context.line_number(), ResultLineKind::Context, context.bytes(), 0);
        }
        Ok(self.wants_more())
    }

    fn context_break(&mut self, _searcher: &Searcher) -> io::Result<bool> {
        if matches!(self.output, ContentOutputKind::Lines(_)) {
            self.push(None, ResultLineKind::Gap, b"", 0);
        }
        Ok(self.wants_more())
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> io::Result<bool> {
        self.hits.binary = true;
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.hits.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A range of bytes; empty where it is out of bounds.
fn slice(bytes: &[u8], range: Range<usize>) -> &[u8] {
    bytes.get(range).unwrap_or_default()
}

/// The line without its newline.
fn without_newline(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// The line without its newline and carriage return.
fn without_line_end(line: &[u8]) -> &[u8] {
    let line = without_newline(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as text, truncated to the part around byte `at` if it is too long.
fn clip_line(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line);
    if line.len() <= MAX_LINE_CHARS {
        return text.into_owned();
    }
    let total = text.chars().count();
    if total <= MAX_LINE_CHARS {
        return text.into_owned();
    }
    let before = String::from_utf8_lossy(slice(line, 0..at)).chars().count();
    let skip = if before + MAX_LEAD_CHARS <= MAX_LINE_CHARS { 0 } else { before - MAX_LEAD_CHARS };
    let skip = skip.min(total - MAX_LINE_CHARS);
    let shown: String = text.chars().skip(skip).take(MAX_LINE_CHARS).collect();
    let rest = total - skip - MAX_LINE_CHARS;
    let prefix = if skip > 0 { format!("[{skip} characters before] …") } else { String::new() };
    let suffix = if rest > 0 { format!("… [{rest} more characters]") } else { String::new() };
    format!("{prefix}{shown}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_truncated_around_its_match() {
        let line = format!("{}needle{}", "a".repeat(10_000), "b".repeat(10_000));
        let text = clip_line(line.as_bytes(), 10_000);
        assert!(text.starts_with("[9800 characters before] …aaa"), "{text}");
        assert!(text.contains("needle") && text.ends_with("b… [8206 more characters]"), "{text}");

        let line = format!("needle{}", "é".repeat(5_000));
        let text = clip_line(line.as_bytes(), 0);
        assert!(text.starts_with("needleé") && text.ends_with("… [3006 more characters]"), "{text}");
        assert_eq!(clip_line("é".repeat(2_000).as_bytes(), 0), "é".repeat(2_000));
    }
}
