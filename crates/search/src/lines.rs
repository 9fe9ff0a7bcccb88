//! What is kept of one file in a search of contents: its lines, or how many there are.
//!
//! Which lines, matches and counts there are is ripgrep's definition: several matches in a line are one line; where
//! matches may span lines, they are counted and not the lines; a file in which binary data is met counts for nothing
//! in counts, and shows what came before in lines.

use crate::collect::{ResultLimit, ResultSize};
use grep_matcher::{Match, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkError, SinkFinish, SinkMatch};
use std::io;
use std::ops::Range;

/// Characters of a line that are kept; of a longer one, those around its first match.
const MAX_LINE_CHARS: usize = 2_000;
/// Of those, how many stand before the match.
const MAX_LEAD_CHARS: usize = 200;
/// How far past a match over several lines the engine may look to find it again, as in ripgrep.
const LOOK_AHEAD_BYTES: usize = 128;

/// What a search is to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentOutputKind {
    /// Which files have a match.
    Files,
    /// How many matching lines each file has.
    LineCounts,
    /// How many matches each file has.
    MatchCounts,
    /// The matching lines.
    Lines(LineOutputOptions),
}

/// Which lines, and what of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineOutputOptions {
    /// Lines before each match.
    pub before: usize,
    /// Lines after each match.
    pub after: usize,
    /// With their numbers.
    pub numbers: bool,
    /// Only the part that matches.
    pub only_matching: bool,
}

impl ContentOutputKind {
    pub(crate) fn has_line_numbers(&self) -> bool {
        matches!(self, Self::Lines(lines) if lines.numbers)
    }
}

/// What one file has to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHits {
    /// The lines, where lines were asked for.
    pub lines: Vec<ResultLine>,
    /// The count, where counts were asked for.
    pub count: u64,
    /// How many of the lines are matches.
    pub matching: usize,
    /// Binary data was met, so the rest was not searched.
    pub binary: bool,
    bytes: usize,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLine {
    /// Its number, from 1, where numbers were asked for.
    pub number: Option<u64>,
    /// Why it is here.
    pub kind: ResultLineKind,
    /// Its text without the end of the line, shortened where it is very long.
    pub text: String,
}

/// Why a line is part of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultLineKind {
    /// It matches.
    Match,
    /// It stands near one that matches.
    Context,
    /// Lines are left out here.
    Gap,
}

impl FileHits {
    /// The same with its path, which takes room as well.
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

/// Takes the engine's reports about one file.
pub(crate) struct MatchSink<'g> {
    matcher: &'g RegexMatcher,
    show: &'g ContentOutputKind,
    limit: ResultLimit,
    /// The file was named, so binary data does not rule it out.
    named: bool,
    hits: FileHits,
    has_match: bool,
}

impl<'g> MatchSink<'g> {
    pub(crate) fn new(
        matcher: &'g RegexMatcher,
        show: &'g ContentOutputKind,
        limit: ResultLimit,
        named: bool,
    ) -> Self {
        Self { matcher, show, limit, named, hits: FileHits::default(), has_match: false }
    }

    pub(crate) fn into_hits(self) -> Option<FileHits> {
        let counts = match self.show {
            ContentOutputKind::Files => self.has_match,
            ContentOutputKind::LineCounts | ContentOutputKind::MatchCounts => {
                self.hits.count > 0 && (self.named || !self.hits.binary)
            }
            ContentOutputKind::Lines(_) => {
                self.has_match && (!self.hits.lines.is_empty() || self.hits.binary)
            }
        };
        counts.then_some(self.hits)
    }

    fn push(&mut self, number: Option<u64>, kind: ResultLineKind, bytes: &[u8], at: usize) {
        let text = clip_line(without_line_end(bytes), at);
        self.hits.bytes += text.len() + 16;
        self.hits.lines.push(ResultLine { number, kind, text });
    }

    fn wants_more(&self) -> bool {
        self.hits.lines.len() < self.limit.units && self.hits.bytes < self.limit.bytes
    }

    /// Finds the matches again that the engine has reported as a range of lines, relative to that range.
    fn find_matches(&self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<Vec<Match>> {
        let range = found.bytes_range_in_buffer();
        let buffer = found.buffer();
        let until = if searcher.multi_line_with_matcher(self.matcher) {
            range.end.saturating_add(LOOK_AHEAD_BYTES).min(buffer.len())
        } else {
            // The end of the line must not be seen, or `$` might not match.
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

    fn first_match_offset(&self, line: &[u8]) -> usize {
        self.matcher.find(line).ok().flatten().map_or(0, |found| found.start())
    }

    /// The matching parts alone, each on a line; one that spans lines gives a line for each.
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
                // An empty match is a part of a line too, but not of every line that it touches.
                let shown = if spans_lines { from < to } else { from <= to };
                if shown && self.wants_more() {
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
        match self.show {
            ContentOutputKind::Files => return Ok(false),
            ContentOutputKind::LineCounts if searcher.multi_line_with_matcher(self.matcher) => {
                self.hits.count += self.find_matches(searcher, found)?.len().max(1) as u64;
            }
            ContentOutputKind::LineCounts => self.hits.count += 1,
            ContentOutputKind::MatchCounts => {
                self.hits.count += self.find_matches(searcher, found)?.len().max(1) as u64
            }
            // Lines of a named file that turns out to be binary would be noise.
            ContentOutputKind::Lines(_) if self.named && self.hits.binary => return Ok(false),
            ContentOutputKind::Lines(lines) if lines.only_matching => {
                self.push_matching_parts(searcher, found)?
            }
            ContentOutputKind::Lines(_) => self.push_lines(found),
        }
        Ok(self.wants_more())
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if let ContentOutputKind::Lines(lines) = self.show
            && !lines.only_matching
        {
            self.push(context.line_number(), ResultLineKind::Context, context.bytes(), 0);
        }
        Ok(self.wants_more())
    }

    fn context_break(&mut self, _searcher: &Searcher) -> io::Result<bool> {
        if matches!(self.show, ContentOutputKind::Lines(_)) {
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

fn slice(bytes: &[u8], range: Range<usize>) -> &[u8] {
    bytes.get(range).unwrap_or_default()
}

fn without_newline(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = without_newline(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line for the model: whole where it is short, else the part around byte `at`.
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
    let kept: String = text.chars().skip(skip).take(MAX_LINE_CHARS).collect();
    let rest = total - skip - MAX_LINE_CHARS;
    let lead = if skip > 0 { format!("[{skip} characters before] …") } else { String::new() };
    let tail = if rest > 0 { format!("… [{rest} more characters]") } else { String::new() };
    format!("{lead}{kept}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_shown_around_its_match() {
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
