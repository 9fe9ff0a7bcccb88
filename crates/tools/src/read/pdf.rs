//! The text of PDF files, page by page.
//!
//! A PDF file is untrusted input for a complex parser.
//! The parser therefore runs on a blocking thread, page by page with a timeout, and a panic in it is reported as a
//! damaged PDF file.

use super::FileReadHandle;
use crate::file_refusal::file_refusal;
use serde_json::json;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use toolgate_files::run_blocking;
use toolgate_proto::{CallResult, Code, Output, Refusal, format_count};

/// A larger file is not parsed.
const MAX_PDF_BYTES: u64 = 100 << 20;
/// Pages per call.
const MAX_PAGES: u32 = 20;
/// Characters after which no further page is added.
const MAX_RESULT_CHARS: usize = 100_000;
/// After this time no further page is started; the result says how to continue.
const EXTRACT_TIMEOUT: Duration = Duration::from_secs(20);

/// Reads the requested pages, or the first ones.
pub(super) async fn read_pages(handle: FileReadHandle<'_>, pages: Option<&str>) -> CallResult {
    let requested = pages.map(parse_page_range).transpose()?;
    let cancel = handle.cleared.cancel().clone();
    let (bytes, path) = handle
        .read_bytes(MAX_PDF_BYTES, |path| {
            Refusal::new(
                Code::FileRead,
                format!("the PDF `{path}` is larger than {} MB", MAX_PDF_BYTES >> 20),
            )
        })
        .await?;
    let name = path.to_string();
    let work = move || read_document(&bytes, &name, requested, &|| cancel.is_cancelled());
    run_blocking(work).await.map_err(|problem| file_refusal(&path, &problem, Code::FileRead))?
}

/// The pages of a PDF that is not in a file, such as one from the web. `name` is for messages.
#[cfg(feature = "web")]
pub(crate) fn render_pdf(name: &str, bytes: &[u8], is_cancelled: &dyn Fn() -> bool) -> CallResult {
    read_document(bytes, name, None, is_cancelled)
}

/// A panic of the parser means that the file is damaged.
fn read_document(
    bytes: &[u8],
    name: &str,
    requested: Option<RangeInclusive<u32>>,
    is_cancelled: &dyn Fn() -> bool,
) -> CallResult {
    let extract = AssertUnwindSafe(|| extract_pages(bytes, name, requested, is_cancelled));
    catch_unwind(extract).unwrap_or_else(|_| Err(damaged_pdf_refusal(name)))
}

/// Parses `3`, `1-5` or `10-`.
fn parse_page_range(text: &str) -> Result<RangeInclusive<u32>, Refusal> {
    let refuse = |reason: &str| {
        Refusal::new(Code::BadArgument, format!("`pages` is `{text}`: {reason}"))
            .hint("give a page `3`, a range `1-5`, or `10-` for all pages from there")
    };
    let number = |part: &str| part.trim().parse::<u32>().ok().filter(|page| *page > 0);
    let (first, last) = match text.split_once('-') {
        None => {
            let page = number(text).ok_or_else(|| refuse("that is not a page number"))?;
            (page, page)
        }
        Some((first, "")) => (number(first).ok_or_else(|| refuse("that is not a page number"))?, u32::MAX),
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last),
            (Some(_), Some(_)) => return Err(refuse("the range ends before it begins")),
            _ => return Err(refuse("that is not a page range")),
        },
    };
    if last != u32::MAX && last - first >= MAX_PAGES {
        return Err(refuse("that is more than 20 pages"));
    }
    Ok(first..=last)
}

/// Extracts the text of the requested pages, up to the limits of pages, characters and time.
fn extract_pages(
    bytes: &[u8],
    path: &str,
    requested: Option<RangeInclusive<u32>>,
    is_cancelled: &dyn Fn() -> bool,
) -> CallResult {
    let document = lopdf::Document::load_mem(bytes).map_err(|_| damaged_pdf_refusal(path))?;
    if document.is_encrypted() {
        return Err(Refusal::new(Code::FileRead, format!("the PDF `{path}` is protected with a password")));
    }
    let total = u32::try_from(document.get_pages().len()).unwrap_or(u32::MAX);
    if total == 0 {
        return Err(damaged_pdf_refusal(path));
    }
    let requested = requested.unwrap_or(1..=u32::MAX);
    let (first, last) = (*requested.start(), (*requested.end()).min(total));
    if first > total {
        let reason = format!(
            "the PDF `{path}` has {}, so there is no page {first}",
            format_count(total as u64, "page", "pages")
        );
        return Err(Refusal::new(Code::PastEnd, reason));
    }
    let end = last.min(first.saturating_add(MAX_PAGES - 1));
    let deadline = Instant::now() + EXTRACT_TIMEOUT;
    let mut text = String::new();
    let mut pages = Vec::new();
    let mut next = first;
    while next <= end {
        if is_cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the read was cancelled"));
        }
        if Instant::now() >= deadline || (text.len() > MAX_RESULT_CHARS && !pages.is_empty()) {
            break;
        }
        let page_text = extract_page(&document, next);
        text.push_str(&format!("--- page {next} of {total} ---\n{page_text}\n"));
        pages.push(json!({ "page": next, "text": page_text }));
        next += 1;
    }
    if next <= last {
        let range_end = last.min(next + MAX_PAGES - 1);
        text.push_str(&format!("[more pages follow: continue with `pages` \"{next}-{range_end}\"]\n"));
    }
    let count = format_count(pages.len() as u64, "page", "pages");
    let structured = json!({
        "type": "pdf",
        "file": { "filePath": path, "originalSize": bytes.len(), "totalPages": total, "pages": pages },
    });
    Ok(Output::text(text).display(format!("read {count} of {path}")).structured(structured))
}

/// The text of one page, or a note in brackets why it has none.
fn extract_page(document: &lopdf::Document, page: u32) -> String {
    match document.extract_text(&[page]) {
        Ok(text) if text.trim().is_empty() => "[no text on this page: it may be a scanned image]".to_owned(),
        Ok(text) => truncate_page(text.trim_end()),
        Err(_) => "[the text of this page cannot be read: its fonts are not supported]".to_owned(),
    }
}

/// Truncates the text of one page.
fn truncate_page(text: &str) -> String {
    match text.char_indices().nth(MAX_RESULT_CHARS) {
        Some((end, _)) => format!("{}… [truncated]", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// The refusal for a file that the parser rejects or on which it panics.
fn damaged_pdf_refusal(path: &str) -> Refusal {
    Refusal::new(Code::FileRead, format!("`{path}` is not a PDF file, or is damaged"))
        .hint("get an intact copy of it, or convert it to text with another program")
}
