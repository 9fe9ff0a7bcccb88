//! Some lines of a file, in constant memory however large it is.
//!
//! A file of ordinary size is read as a whole: then its hash is known, and with it whether it changes later.
//! Of a large one only the part that was asked for is kept; the lines before it are counted at the speed of memory,
//! and where they are is remembered, so that going on does not count them again.

use super::line_index::{LineIndex, LineStart};
use crate::read_state::{ReadState, SeenFile, copy_if_small};
use crate::text_encoding::{
    LineEndings, TextDecodeError, TextEncoding, TextEncodingKind, count_lines, decode_text,
};
use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use toolgate_files::{ContentHash, FileFingerprint, FileProblem};
use toolgate_proto::AbsPath;

/// Up to this size a file is read and hashed as a whole.
const MAX_WHOLE_READ_BYTES: u64 = 8 << 20;
/// UTF-16 cannot be counted by bytes, so it is always read as a whole.
const MAX_UTF16_BYTES: u64 = 64 << 20;
const READ_BUFFER_BYTES: usize = 256 * 1024;
/// A number and a tab before each line count as well.
const LINE_PREFIX_BYTES: usize = 8;

/// Which lines, and how much of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRequest {
    /// From 1.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Characters of a line, where there is such a limit.
    pub(crate) line_chars: Option<usize>,
    /// Bytes of everything.
    pub(crate) bytes: usize,
}

/// Lines of a file.
#[derive(Debug)]
pub(crate) struct FilePage {
    pub(crate) first: u64,
    pub(crate) lines: PageLines,
    /// The last line of the file is among them, or the file is empty.
    pub(crate) reached_end: bool,
    /// The last of these lines ends.
    pub(crate) ends: bool,
    /// There was no room for more.
    pub(crate) full: bool,
    /// Some line was cut.
    pub(crate) cut: bool,
    /// How many lines the file has, where that is known.
    pub(crate) total: Option<u64>,
    pub(crate) encoding: TextEncoding,
    pub(crate) line_ends: LineEndings,
    /// Some bytes are no UTF-8.
    pub(crate) lossy: bool,
    /// Hash of the whole file, where it was read.
    pub(crate) hash: Option<ContentHash>,
    /// Where the file really is.
    pub(crate) real: AbsPath,
}

/// Lines without their ends, one after another; a carriage return stays. What is no UTF-8 is replaced.
#[derive(Debug, Default)]
pub(crate) struct PageLines {
    /// With a line feed between them.
    text: String,
    count: usize,
}

impl PageLines {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them, with a line feed between them.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let ends = memchr::memchr_iter(b'\n', self.text.as_bytes()).chain([self.text.len()]);
        let mut start = 0;
        ends.take(self.count).filter_map(move |end| {
            let line = self.text.get(start..end);
            start = end + 1;
            line
        })
    }

    fn push(&mut self, line: &str) {
        if self.count > 0 {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.count += 1;
    }
}

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum PageError {
    File(FileProblem),
    NotText(TextDecodeError),
    /// The file has only so many lines.
    PastEnd(u64),
    Cancelled,
}

impl From<std::io::Error> for PageError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error.into())
    }
}

impl FilePage {
    /// All of the file is here, uncut.
    pub(crate) fn is_whole(&self) -> bool {
        self.first == 1 && self.reached_end && !self.full && !self.cut
    }
}

/// Reads a page and remembers that it was seen.
pub(crate) fn read_page(
    (mut file, mark): (File, FileFingerprint),
    real: &AbsPath,
    wanted: PageRequest,
    state: &ReadState,
    cancelled: &dyn Fn() -> bool,
) -> Result<FilePage, PageError> {
    let mut start = Vec::new();
    if mark.bytes > MAX_WHOLE_READ_BYTES {
        (&mut file).take(8192).read_to_end(&mut start)?;
        let encoding = TextEncoding::detect(&start).ok_or(PageError::NotText(TextDecodeError::Binary))?;
        if encoding.kind == TextEncodingKind::Utf8 {
            let page =
                read_large_page(&mut file, mark, encoding, wanted, state.line_index(), real, cancelled)?;
            state.record_read(
                real.clone(),
                SeenFile { mark: Some(mark), hash: None, whole: page.is_whole(), content: None },
            );
            return Ok(page);
        }
        if mark.bytes > MAX_UTF16_BYTES {
            return Err(PageError::File(FileProblem::Other("it is too large for UTF-16 text".to_owned())));
        }
    }
    // Its size is known: `read_to_end` of a file would ask for it again, and at the end whether it is the end.
    start.reserve(usize::try_from(mark.bytes).unwrap_or_default());
    // Files that the system makes up have no size, and yet something in them.
    let left = if mark.bytes == 0 { u64::MAX } else { mark.bytes.saturating_sub(start.len() as u64) };
    file.take(left).read_to_end(&mut start)?;
    let bytes = start;
    let hash = ContentHash::of(&bytes);
    let content = copy_if_small(&bytes);
    let (text, encoding) = decode_text(&bytes).map_err(PageError::NotText)?;
    let mut page = page_from_text(&text, real, wanted)?;
    page.encoding = encoding;
    page.line_ends = LineEndings::of(&text);
    page.hash = Some(hash);
    state.record_read(
        real.clone(),
        SeenFile { mark: Some(mark), hash: Some(hash), whole: page.is_whole(), content },
    );
    Ok(page)
}

fn empty_page(real: &AbsPath, wanted: PageRequest) -> FilePage {
    FilePage {
        real: real.clone(),
        first: wanted.first,
        lines: PageLines::default(),
        reached_end: false,
        ends: false,
        full: false,
        cut: false,
        total: None,
        encoding: TextEncoding::UTF8,
        line_ends: LineEndings::Lf,
        lossy: false,
        hash: None,
    }
}

/// The page of a text that is all here.
fn page_from_text(text: &[u8], real: &AbsPath, wanted: PageRequest) -> Result<FilePage, PageError> {
    let mut page = empty_page(real, wanted);
    let total = count_lines(text);
    page.total = Some(total);
    if wanted.first > total.max(1) {
        return Err(PageError::PastEnd(total));
    }
    let mut from = 0;
    for _ in 1..wanted.first {
        from += memchr::memchr(b'\n', text.get(from..).unwrap_or_default()).map_or(0, |end| end + 1);
    }
    let mut collector = LineCollector { page: &mut page, wanted, used: 0, line: Vec::new(), dropped: 0 };
    let rest = text.get(from..).unwrap_or_default();
    if !collector.take_valid_text(rest) && collector.take_lines(rest).is_none() {
        collector.finish_file();
    }
    page.reached_end = page.first - 1 + page.lines.len() as u64 >= total;
    Ok(page)
}

/// The page of a file that is too large to be held.
fn read_large_page(
    file: &mut File,
    mark: FileFingerprint,
    encoding: TextEncoding,
    wanted: PageRequest,
    index: &LineIndex,
    real: &AbsPath,
    cancelled: &dyn Fn() -> bool,
) -> Result<FilePage, PageError> {
    let mut page = empty_page(real, wanted);
    page.encoding = encoding;
    let LineStart { mut line, byte } =
        index.nearest_before(real, &mark, wanted.first, encoding.bom_len() as u64);
    let mut at = file.seek(SeekFrom::Start(byte))?;
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    let mut ended = true;
    let mut collector = LineCollector { page: &mut page, wanted, used: 0, line: Vec::new(), dropped: 0 };
    loop {
        if cancelled() {
            return Err(PageError::Cancelled);
        }
        let got = file.read(&mut buffer)?;
        let mut piece = buffer.get(..got).unwrap_or_default();
        if got == 0 {
            collector.finish_file();
            if page.lines.is_empty() {
                return Err(PageError::PastEnd(line - 1 + u64::from(!ended)));
            }
            page.total = Some(wanted.first - 1 + page.lines.len() as u64);
            page.reached_end = true;
            break;
        }
        ended = piece.ends_with(b"\n");
        if line < wanted.first {
            match skip_to_line(piece, &mut line, wanted.first) {
                Some(rest) => {
                    let start = at + (got - rest.len()) as u64;
                    index.record_start(real, &mark, LineStart { line, byte: start });
                    piece = rest;
                }
                None => {
                    at += got as u64;
                    continue;
                }
            }
        }
        at += got as u64;
        if let Some(rest) = collector.take_lines(piece) {
            if !page.full {
                let line = wanted.first + page.lines.len() as u64;
                index.record_start(real, &mark, LineStart { line, byte: at - rest.len() as u64 });
            }
            break;
        }
    }
    if memchr::memchr(0, page.lines.text().as_bytes()).is_some() {
        return Err(PageError::NotText(TextDecodeError::Binary));
    }
    let crlf = page.lines.iter().filter(|line| line.ends_with('\r')).count();
    page.line_ends = match crlf {
        0 => LineEndings::Lf,
        all if all == page.lines.len() => LineEndings::Crlf,
        _ => LineEndings::Mixed,
    };
    Ok(page)
}

/// Goes on to a line. What is left of the piece begins there; `None` where the piece ends before it.
fn skip_to_line<'p>(piece: &'p [u8], line: &mut u64, wanted: u64) -> Option<&'p [u8]> {
    let ends = memchr::memchr_iter(b'\n', piece).count() as u64;
    if *line + ends < wanted {
        *line += ends;
        return None;
    }
    let nth = usize::try_from(wanted - *line - 1).unwrap_or(usize::MAX);
    let end = memchr::memchr_iter(b'\n', piece).nth(nth)?;
    *line = wanted;
    piece.get(end + 1..)
}

/// Gathers lines until there are enough.
struct LineCollector<'p> {
    page: &'p mut FilePage,
    wanted: PageRequest,
    used: usize,
    line: Vec<u8>,
    /// Bytes of the line that are not kept.
    dropped: usize,
}

impl LineCollector<'_> {
    /// Takes the lines of a text in one piece, where that comes to the same: it is valid and no line is too long.
    fn take_valid_text(&mut self, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        let most = self.wanted.line_chars.unwrap_or(self.wanted.bytes);
        let (mut next, mut end, mut count, mut used, mut full) = (0, 0, 0, 0, false);
        while next < bytes.len() && (count as u64) < self.wanted.count {
            let rest = bytes.get(next..).unwrap_or_default();
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            if len > most {
                return false;
            }
            if used + len + LINE_PREFIX_BYTES > self.wanted.bytes && count > 0 {
                full = true;
                break;
            }
            used += len + LINE_PREFIX_BYTES;
            count += 1;
            end = next + len;
            next = end + 1;
        }
        self.page.lines = PageLines { text: text.get(..end).unwrap_or_default().to_owned(), count };
        self.page.ends = end < bytes.len();
        self.page.full = full;
        true
    }

    /// Takes lines from a piece. What it leaves is `None` while more is wanted.
    fn take_lines<'b>(&mut self, mut piece: &'b [u8]) -> Option<&'b [u8]> {
        while !piece.is_empty() {
            if self.page.lines.len() as u64 >= self.wanted.count {
                return Some(piece);
            }
            let Some(end) = memchr::memchr(b'\n', piece) else {
                self.append_to_line(piece);
                return None;
            };
            let (part, rest) = piece.split_at_checked(end).unwrap_or((piece, &[]));
            piece = rest.get(1..).unwrap_or_default();
            let room = if self.line.is_empty() && self.dropped == 0 && part.len() <= self.max_line_bytes() {
                self.finish_line(part, 0, true)
            } else {
                self.append_to_line(part);
                self.finish_buffered_line(true)
            };
            if !room {
                return Some(piece);
            }
        }
        None
    }

    /// Bytes of one line that are kept: four hold any character.
    fn max_line_bytes(&self) -> usize {
        self.wanted.line_chars.map_or(self.wanted.bytes, |chars| chars * 4)
    }

    /// Keeps a part of a line that goes on in the next piece; what is beyond the most is only counted.
    fn append_to_line(&mut self, part: &[u8]) {
        let room = self.max_line_bytes().saturating_sub(self.line.len()).min(part.len());
        self.line.extend_from_slice(part.get(..room).unwrap_or(part));
        self.dropped += part.len() - room;
    }

    fn finish_buffered_line(&mut self, ends: bool) -> bool {
        let line = std::mem::take(&mut self.line);
        let dropped = std::mem::take(&mut self.dropped);
        self.finish_line(&line, dropped, ends)
    }

    /// True while there is room.
    fn finish_line(&mut self, bytes: &[u8], dropped: usize, ends: bool) -> bool {
        // Checking alone is several times as fast as replacing, and mostly nothing is to be replaced.
        let mut line =
            std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
        // What was dropped may have begun in the middle of a character; that is not the file's fault.
        if matches!(line, Cow::Owned(_)) && (dropped == 0 || !is_cut_inside_char(bytes)) {
            self.page.lossy = true;
        }
        if let Some(most) = self.wanted.line_chars {
            // No more characters than bytes: most lines need no counting.
            let over = if line.len() > most { line.char_indices().nth(most) } else { None };
            if let Some((at, _)) = over {
                let more = line.chars().count() - most + dropped;
                line = format!("{}… [{more} more characters]", line.get(..at).unwrap_or(&line)).into();
                self.page.cut = true;
            }
        } else if dropped > 0 {
            self.page.cut = true;
        }
        let size = line.len() + LINE_PREFIX_BYTES;
        if self.used + size > self.wanted.bytes && !self.page.lines.is_empty() {
            self.page.full = true;
            return false;
        }
        self.used += size;
        self.page.lines.push(&line);
        self.page.ends = ends;
        true
    }

    fn finish_file(&mut self) {
        if !self.line.is_empty() || self.dropped > 0 {
            self.finish_buffered_line(false);
        }
    }
}

/// The bytes are UTF-8 but for a last character that is not all there.
fn is_cut_inside_char(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The short way and the long way give the same page of any text.
        #[test]
        fn lines_in_one_piece_are_the_lines_one_by_one(
            text in "([a-zé]{0,9}(\n|\r\n)?){0,12}",
            first in 1_u64..6,
            count in 0_u64..8,
            line_chars in proptest::option::of(3_usize..20),
            bytes in 20_usize..200,
        ) {
            let real = AbsPath::root();
            let wanted = PageRequest { first, count, line_chars, bytes };
            let Ok(page) = page_from_text(text.as_bytes(), &real, wanted) else {
                return Ok(());
            };
            let mut slow = empty_page(&real, wanted);
            let mut collector = LineCollector { page: &mut slow, wanted, used: 0, line: Vec::new(), dropped: 0 };
            let rest: Vec<&str> = text.split_inclusive('\n').skip(first as usize - 1).collect();
            if collector.take_lines(rest.concat().as_bytes()).is_none() {
                collector.finish_file();
            }
            prop_assert_eq!(page.lines.iter().collect::<Vec<_>>(), slow.lines.iter().collect::<Vec<_>>());
            prop_assert_eq!(page.lines.text(), slow.lines.text());
            if !page.lines.is_empty() {
                prop_assert_eq!((page.ends, page.full, page.cut), (slow.ends, slow.full, slow.cut));
            }
        }
    }
}
