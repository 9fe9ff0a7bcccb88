//! A page: consecutive lines of a text file, with what is known about the file.

use crate::text_encoding::{LineEndings, TextDecodeError, TextEncoding};
use toolgate_files::{ContentHash, FileProblem};
use toolgate_proto::AbsPath;

/// The lines to read, and the limits of the result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRequest {
    /// The first line, from 1.
    pub(crate) first: u64,
    /// The number of lines; fewer are returned at the end of the file or when the page is full.
    pub(crate) count: u64,
    /// Characters of one line, after which it is truncated; `None` for lines as they are.
    pub(crate) line_chars: Option<usize>,
    /// Bytes of all lines together.
    pub(crate) bytes: usize,
}

/// Lines of a file.
#[derive(Debug)]
pub(crate) struct FilePage {
    /// The number of the first line, from 1.
    pub(crate) first: u64,
    /// The lines, at most as many as requested.
    pub(crate) lines: PageLines,
    /// The page contains the last line of the file, or the file is empty.
    pub(crate) reached_end: bool,
    /// The last line of the page ends in a line feed in the file.
    pub(crate) has_final_newline: bool,
    /// The page ended early because of its byte limit.
    pub(crate) full: bool,
    /// At least one line was truncated.
    pub(crate) truncated_line: bool,
    /// The number of lines of the file; `None` for a large file whose end was not reached.
    pub(crate) total: Option<u64>,
    /// The encoding of the file, which edits keep.
    pub(crate) encoding: TextEncoding,
    /// The line endings of the file; of the page alone for a large file.
    pub(crate) line_endings: LineEndings,
    /// Invalid UTF-8 was replaced with U+FFFD.
    pub(crate) lossy: bool,
    /// The hash of the whole file; `None` for a large file.
    pub(crate) hash: Option<ContentHash>,
    /// The real path of the file, with symlinks resolved.
    pub(crate) real: AbsPath,
}

impl FilePage {
    /// A page without lines, for a collector to fill.
    pub(super) fn new(real: &AbsPath, request: PageRequest) -> Self {
        Self {
            real: real.clone(),
            first: request.first,
            lines: PageLines::default(),
            reached_end: false,
            has_final_newline: false,
            full: false,
            truncated_line: false,
            total: None,
            encoding: TextEncoding::UTF8,
            line_endings: LineEndings::Lf,
            lossy: false,
            hash: None,
        }
    }

    /// Whether the page is the complete file with no line truncated.
    pub(crate) fn is_whole(&self) -> bool {
        self.first == 1 && self.reached_end && !self.full && !self.truncated_line
    }
}

/// Lines without their line feeds, in one buffer. A carriage return stays; invalid UTF-8 is replaced.
#[derive(Debug, Default)]
pub(crate) struct PageLines {
    /// The lines, joined with line feeds.
    text: String,
    /// The number of lines, which `text` alone does not give: no line and one empty line have the same text.
    count: usize,
}

impl PageLines {
    /// Lines that are already joined with line feeds.
    pub(super) fn from_joined(text: String, count: usize) -> Self {
        Self { text, count }
    }

    /// The number of lines.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether the page has no line: the file is empty, or nothing was requested.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The lines, joined with line feeds.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The lines one by one, without line feeds.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let ends = memchr::memchr_iter(b'\n', self.text.as_bytes()).chain([self.text.len()]);
        let mut start = 0;
        ends.take(self.count).filter_map(move |end| {
            let line = self.text.get(start..end);
            start = end + 1;
            line
        })
    }

    /// Appends a line, which must not contain a line feed.
    pub(super) fn push(&mut self, line: &str) {
        if self.count > 0 {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.count += 1;
    }
}

/// Why a page could not be read.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The file could not be opened or read.
    File(FileProblem),
    /// The file is binary, or its encoding is broken.
    NotText(TextDecodeError),
    /// The first line is after the end of the file, which has this many lines.
    PastEnd(u64),
    /// The call was cancelled during the read.
    Cancelled,
}

impl From<std::io::Error> for PageError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error.into())
    }
}
