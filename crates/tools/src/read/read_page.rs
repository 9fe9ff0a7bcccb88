//! Reads a page of a file in constant memory, however large the file is.
//!
//! A file of ordinary size is read completely: then its hash is known, and a later change can be detected.
//! Of a large file only the requested lines are kept.
//! The lines before them are counted with `memchr`, and the line index stores where they start, so that reading the
//! next page does not count them again.

use super::line_collector::LineCollector;
use super::line_index::{LineIndex, LineStart};
use super::page::{FilePage, PageError, PageLines, PageRequest};
use crate::read_state::{ReadState, SeenFile, copy_if_small};
use crate::text_encoding::{
    ENCODING_PROBE_BYTES, LineEndings, TextDecodeError, TextEncoding, TextEncodingKind, count_lines,
    decode_text,
};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use toolgate_files::{ContentHash, FileFingerprint, FileProblem};
use toolgate_proto::AbsPath;

/// A file up to this size is read and hashed completely.
const MAX_WHOLE_READ_BYTES: u64 = 8 << 20;
/// UTF-16 lines cannot be counted by bytes, so such a file is always read completely.
const MAX_UTF16_BYTES: u64 = 64 << 20;
/// Size of the buffer for files that are read in parts.
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// Reads a page and records it in the read state.
pub(crate) fn read_page(
    (mut file, fingerprint): (File, FileFingerprint),
    real: &AbsPath,
    request: PageRequest,
    state: &ReadState,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<FilePage, PageError> {
    let mut bytes = Vec::new();
    if fingerprint.bytes > MAX_WHOLE_READ_BYTES {
        (&mut file).take(ENCODING_PROBE_BYTES as u64).read_to_end(&mut bytes)?;
        let encoding = TextEncoding::detect(&bytes).ok_or(PageError::NotText(TextDecodeError::Binary))?;
        if encoding.kind == TextEncodingKind::Utf8 {
            let large_file = LargeFile { file, fingerprint, encoding, real, index: state.line_index() };
            let page = large_file.read_page(request, is_cancelled)?;
            state.record_read(
                real.clone(),
                SeenFile {
                    fingerprint: Some(fingerprint),
                    hash: None,
                    whole: page.is_whole(),
                    content: None,
                },
            );
            return Ok(page);
        }
        if fingerprint.bytes > MAX_UTF16_BYTES {
            return Err(PageError::File(FileProblem::Other("it is too large for UTF-16 text".to_owned())));
        }
    }
    // `take` with the known size saves two system calls: `read_to_end` on a file asks for its size, and reads once more
    // to see the end.
    bytes.reserve(usize::try_from(fingerprint.bytes).unwrap_or_default());
    // Files in /proc and the like report size 0 and have content.
    let rest = match fingerprint.bytes {
        0 => u64::MAX,
        size => size.saturating_sub(bytes.len() as u64),
    };
    file.take(rest).read_to_end(&mut bytes)?;
    let hash = ContentHash::of(&bytes);
    let content = copy_if_small(&bytes);
    let (text, encoding) = decode_text(&bytes).map_err(PageError::NotText)?;
    let mut page = page_from_text(&text, real, request)?;
    page.encoding = encoding;
    page.line_endings = LineEndings::of(&text);
    page.hash = Some(hash);
    state.record_read(
        real.clone(),
        SeenFile { fingerprint: Some(fingerprint), hash: Some(hash), whole: page.is_whole(), content },
    );
    Ok(page)
}

/// The page of a text that is completely in memory.
fn page_from_text(text: &[u8], real: &AbsPath, request: PageRequest) -> Result<FilePage, PageError> {
    let mut page = FilePage::new(real, request);
    let total = count_lines(text);
    page.total = Some(total);
    if request.first > total.max(1) {
        return Err(PageError::PastEnd(total));
    }
    let mut start = 0;
    for _ in 1..request.first {
        start += memchr::memchr(b'\n', text.get(start..).unwrap_or_default()).map_or(0, |end| end + 1);
    }
    let mut collector = LineCollector::new(&mut page, request);
    let rest = text.get(start..).unwrap_or_default();
    if !collector.take_valid_text(rest) && collector.take_lines(rest).is_none() {
        collector.finish_file();
    }
    page.reached_end = page.first - 1 + page.lines.len() as u64 >= total;
    Ok(page)
}

/// A file that is too large to read completely.
struct LargeFile<'a> {
    /// Open at any position; the read seeks first.
    file: File,
    /// The key under which line starts are valid.
    fingerprint: FileFingerprint,
    /// UTF-8, with or without a byte order mark.
    encoding: TextEncoding,
    /// The real path, the other part of the key.
    real: &'a AbsPath,
    /// Line starts from earlier pages.
    index: &'a LineIndex,
}

impl LargeFile<'_> {
    /// Reads from the nearest known line start, counts lines up to the first requested one and collects from there.
    fn read_page(
        mut self,
        request: PageRequest,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<FilePage, PageError> {
        let mut page = FilePage::new(self.real, request);
        page.encoding = self.encoding;
        let top = self.encoding.bom_len() as u64;
        let LineStart { mut line, byte } =
            self.index.nearest_before(self.real, &self.fingerprint, request.first, top);
        let mut position = self.file.seek(SeekFrom::Start(byte))?;
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        let mut ends_with_newline = true;
        let mut collector = LineCollector::new(&mut page, request);
        loop {
            if is_cancelled() {
                return Err(PageError::Cancelled);
            }
            let len = self.file.read(&mut buffer)?;
            let mut chunk = buffer.get(..len).unwrap_or_default();
            if len == 0 {
                collector.finish_file();
                if page.lines.is_empty() {
                    return Err(PageError::PastEnd(line - 1 + u64::from(!ends_with_newline)));
                }
                page.total = Some(request.first - 1 + page.lines.len() as u64);
                page.reached_end = true;
                break;
            }
            position += len as u64;
            ends_with_newline = chunk.ends_with(b"\n");
            if line < request.first {
                let Some(rest) = skip_to_line(chunk, &mut line, request.first) else { continue };
                self.record_line_start(line, position - rest.len() as u64);
                chunk = rest;
            }
            if let Some(rest) = collector.take_lines(chunk) {
                if !page.full {
                    let next = request.first + page.lines.len() as u64;
                    self.record_line_start(next, position - rest.len() as u64);
                }
                break;
            }
        }
        if memchr::memchr(0, page.lines.text().as_bytes()).is_some() {
            return Err(PageError::NotText(TextDecodeError::Binary));
        }
        page.line_endings = line_endings_of(&page.lines);
        Ok(page)
    }

    /// Stores where a line starts, for the next page.
    fn record_line_start(&self, line: u64, byte: u64) {
        self.index.record_start(self.real, &self.fingerprint, LineStart { line, byte });
    }
}

/// The line endings of lines whose line feeds are gone.
fn line_endings_of(lines: &PageLines) -> LineEndings {
    match lines.iter().filter(|line| line.ends_with('\r')).count() {
        0 => LineEndings::Lf,
        all if all == lines.len() => LineEndings::Crlf,
        _ => LineEndings::Mixed,
    }
}

/// The part of a chunk from line `wanted` on; `None` if the chunk ends before it. `line` is the line in which the chunk
/// starts, and is advanced.
fn skip_to_line<'p>(chunk: &'p [u8], line: &mut u64, wanted: u64) -> Option<&'p [u8]> {
    let newlines = memchr::memchr_iter(b'\n', chunk).count() as u64;
    if *line + newlines < wanted {
        *line += newlines;
        return None;
    }
    let nth = usize::try_from(wanted - *line - 1).unwrap_or(usize::MAX);
    let end = memchr::memchr_iter(b'\n', chunk).nth(nth)?;
    *line = wanted;
    chunk.get(end + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// `take_valid_text` is a shortcut of `take_lines`: both give the same page of any text.
        #[test]
        fn the_fast_path_and_the_slow_path_collect_the_same_lines(
            text in "([a-zé]{0,9}(\n|\r\n)?){0,12}",
            first in 1_u64..6,
            count in 0_u64..8,
            line_chars in proptest::option::of(3_usize..20),
            bytes in 20_usize..200,
        ) {
            let real = AbsPath::root();
            let request = PageRequest { first, count, line_chars, bytes };
            let Ok(page) = page_from_text(text.as_bytes(), &real, request) else {
                return Ok(());
            };
            let mut slow = FilePage::new(&real, request);
            let mut collector = LineCollector::new(&mut slow, request);
            let rest: Vec<&str> = text.split_inclusive('\n').skip(first as usize - 1).collect();
            if collector.take_lines(rest.concat().as_bytes()).is_none() {
                collector.finish_file();
            }
            prop_assert_eq!(page.lines.iter().collect::<Vec<_>>(), slow.lines.iter().collect::<Vec<_>>());
            prop_assert_eq!(page.lines.text(), slow.lines.text());
            if !page.lines.is_empty() {
                prop_assert_eq!(
                    (page.has_final_newline, page.full, page.truncated_line),
                    (slow.has_final_newline, slow.full, slow.truncated_line)
                );
            }
        }
    }
}
