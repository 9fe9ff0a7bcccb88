//! Collects the lines of a page from chunks of a file.

use super::page::{FilePage, PageLines, PageRequest};
use std::borrow::Cow;

/// Each line counts this much more than its text, for the number and the tab that `Read` puts before it.
const LINE_PREFIX_BYTES: usize = 8;
/// UTF-8 needs at most this many bytes for a character.
const MAX_CHAR_BYTES: usize = 4;

/// Fills a page until it has the requested lines or is full.
pub(super) struct LineCollector<'p> {
    /// The page to fill.
    page: &'p mut FilePage,
    /// The limits of the page.
    request: PageRequest,
    /// Bytes of the page so far, prefixes included.
    used: usize,
    /// The start of a line whose end is in a later chunk.
    line: Vec<u8>,
    /// Bytes of that line beyond what a page shows; they are counted and not kept.
    dropped: usize,
}

impl<'p> LineCollector<'p> {
    /// A collector for an empty page.
    pub(super) fn new(page: &'p mut FilePage, request: PageRequest) -> Self {
        Self { page, request, used: 0, line: Vec::new(), dropped: 0 }
    }

    /// The fast path: copies all lines at once. False, with nothing collected, if the text is not valid UTF-8 or a line
    /// must be truncated.
    pub(super) fn take_valid_text(&mut self, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        let max_line_bytes = self.request.line_chars.unwrap_or(self.request.bytes);
        let (mut next, mut end, mut count, mut used, mut full) = (0, 0, 0, 0, false);
        while next < bytes.len() && (count as u64) < self.request.count {
            let rest = bytes.get(next..).unwrap_or_default();
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            if len > max_line_bytes {
                return false;
            }
            if used + len + LINE_PREFIX_BYTES > self.request.bytes && count > 0 {
                full = true;
                break;
            }
            used += len + LINE_PREFIX_BYTES;
            count += 1;
            end = next + len;
            next = end + 1;
        }
        self.page.lines = PageLines::from_joined(text.get(..end).unwrap_or_default().to_owned(), count);
        self.page.has_final_newline = end < bytes.len();
        self.page.full = full;
        true
    }

    /// Takes lines from a chunk. Returns the rest of the chunk when the page is complete, `None` while it needs more.
    pub(super) fn take_lines<'b>(&mut self, mut chunk: &'b [u8]) -> Option<&'b [u8]> {
        while !chunk.is_empty() {
            if self.page.lines.len() as u64 >= self.request.count {
                return Some(chunk);
            }
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                self.append_to_line(chunk);
                return None;
            };
            let (part, rest) = chunk.split_at_checked(end).unwrap_or((chunk, &[]));
            chunk = rest.get(1..).unwrap_or_default();
            let has_room = if self.line.is_empty() && self.dropped == 0 && part.len() <= self.max_line_bytes()
            {
                self.finish_line(part, 0, true)
            } else {
                self.append_to_line(part);
                self.finish_buffered_line(true)
            };
            if !has_room {
                return Some(chunk);
            }
        }
        None
    }

    /// Bytes of one line that are kept: enough for the characters that a page shows.
    fn max_line_bytes(&self) -> usize {
        self.request.line_chars.map_or(self.request.bytes, |chars| chars * MAX_CHAR_BYTES)
    }

    /// Keeps a part of a line that continues in the next chunk, up to the maximum.
    fn append_to_line(&mut self, part: &[u8]) {
        let room = self.max_line_bytes().saturating_sub(self.line.len()).min(part.len());
        self.line.extend_from_slice(part.get(..room).unwrap_or(part));
        self.dropped += part.len() - room;
    }

    /// Adds the line that was collected over several chunks.
    fn finish_buffered_line(&mut self, has_newline: bool) -> bool {
        let line = std::mem::take(&mut self.line);
        let dropped = std::mem::take(&mut self.dropped);
        self.finish_line(&line, dropped, has_newline)
    }

    /// Adds a line to the page. False if it did not fit.
    fn finish_line(&mut self, bytes: &[u8], dropped: usize, has_newline: bool) -> bool {
        // Validation alone is several times faster than lossy conversion, and most lines are valid.
        let mut line =
            std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
        // Dropping bytes may have split a character; that is not invalid UTF-8 in the file.
        if matches!(line, Cow::Owned(_)) && (dropped == 0 || !ends_inside_char(bytes)) {
            self.page.lossy = true;
        }
        if let Some(max_chars) = self.request.line_chars {
            // A line has at most as many characters as bytes, so most lines need no counting.
            let excess = if line.len() > max_chars { line.char_indices().nth(max_chars) } else { None };
            if let Some((end, _)) = excess {
                let omitted = line.chars().count() - max_chars + dropped;
                line = format!("{}… [{omitted} more characters]", line.get(..end).unwrap_or(&line)).into();
                self.page.truncated_line = true;
            }
        } else if dropped > 0 {
            self.page.truncated_line = true;
        }
        let size = line.len() + LINE_PREFIX_BYTES;
        if self.used + size > self.request.bytes && !self.page.lines.is_empty() {
            self.page.full = true;
            return false;
        }
        self.used += size;
        self.page.lines.push(&line);
        self.page.has_final_newline = has_newline;
        true
    }

    /// Adds the last line of a file that does not end in a line feed.
    pub(super) fn finish_file(&mut self) {
        if !self.line.is_empty() || self.dropped > 0 {
            self.finish_buffered_line(false);
        }
    }
}

/// Whether the bytes are valid UTF-8 except for an incomplete last character.
fn ends_inside_char(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
