//! The text of PDF files, page by page.
//!
//! The library that takes these files apart reads what strangers made, so it is kept at a distance: it works in a
//! thread of its own, page by page under a time limit, and a crash in it is a damaged file and nothing worse.

use super::FileReadHandle;
use serde_json::json;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use toolgate_files::run_blocking;
use toolgate_proto::{AbsPath, CallResult, Code, Output, Refusal};

const MAX_PDF_BYTES: u64 = 100 << 20;
const MAX_PAGES: u32 = 20;
const MAX_RESULT_CHARS: usize = 100_000;
const EXTRACT_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn read_pages(opened: FileReadHandle<'_>, pages: Option<&str>) -> CallResult {
    let asked = pages.map(parse_page_range).transpose()?;
    let cancel = opened.cleared.cancel().clone();
    let (bytes, path) = opened
        .read_bytes(MAX_PDF_BYTES, |path| {
            Refusal::new(
                Code::FileRead,
                format!("the PDF `{path}` is larger than {} MB", MAX_PDF_BYTES >> 20),
            )
        })
        .await?;
    let named = path.clone();
    let work = move || {
        let read = AssertUnwindSafe(|| extract_pages(&bytes, &path, asked, &|| cancel.is_cancelled()));
        catch_unwind(read).unwrap_or_else(|_| Err(damaged_pdf_refusal(&path)))
    };
    run_blocking(work)
        .await
        .map_err(|problem| crate::file_refusal::file_refusal(&named, &problem, Code::FileRead))?
}

/// `3`, `1-5` or `10-`.
fn parse_page_range(text: &str) -> Result<RangeInclusive<u32>, Refusal> {
    let wrong = |why: &str| {
        Refusal::new(Code::BadArgument, format!("`/pages` is `{text}`: {why}"))
            .hint("give a page `3`, a range `1-5`, or `10-` for all from there")
    };
    let number = |part: &str| part.trim().parse::<u32>().ok().filter(|page| *page > 0);
    let (first, last) = match text.split_once('-') {
        None => {
            let page = number(text).ok_or_else(|| wrong("that is no page"))?;
            (page, page)
        }
        Some((first, "")) => (number(first).ok_or_else(|| wrong("that is no page"))?, u32::MAX),
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last),
            (Some(_), Some(_)) => return Err(wrong("the range ends before it begins")),
            _ => return Err(wrong("that is no range")),
        },
    };
    if last != u32::MAX && last - first >= MAX_PAGES {
        return Err(wrong("that is more than 20 pages"));
    }
    Ok(first..=last)
}

fn extract_pages(
    bytes: &[u8],
    path: &AbsPath,
    asked: Option<RangeInclusive<u32>>,
    cancelled: &dyn Fn() -> bool,
) -> CallResult {
    let document = lopdf::Document::load_mem(bytes).map_err(|_| damaged_pdf_refusal(path))?;
    if document.is_encrypted() {
        return Err(Refusal::new(Code::FileRead, format!("the PDF `{path}` is locked with a password")));
    }
    let total = u32::try_from(document.get_pages().len()).unwrap_or(u32::MAX);
    if total == 0 {
        return Err(damaged_pdf_refusal(path));
    }
    let asked = asked.unwrap_or(1..=u32::MAX);
    let (first, last) = (*asked.start(), (*asked.end()).min(total));
    if first > total {
        let words = format!("the PDF `{path}` has {total} pages, so there is no page {first}");
        return Err(Refusal::new(Code::PastEnd, words));
    }
    let end = last.min(first.saturating_add(MAX_PAGES - 1));
    let deadline = Instant::now() + EXTRACT_TIMEOUT;
    let mut text = String::new();
    let mut pages = Vec::new();
    let mut next = first;
    while next <= end {
        if cancelled() {
            return Err(Refusal::new(Code::Cancelled, "the read was cancelled"));
        }
        if Instant::now() >= deadline || (text.len() > MAX_RESULT_CHARS && !pages.is_empty()) {
            break;
        }
        let found = match document.extract_text(&[next]) {
            Ok(found) if found.trim().is_empty() => "[no text on this page: it may be a picture]".to_owned(),
            Ok(found) => truncate_page(found.trim_end()),
            Err(_) => "[the text of this page cannot be read: its fonts are not understood]".to_owned(),
        };
        text.push_str(&format!("--- page {next} of {total} ---\n{found}\n"));
        pages.push(json!({ "page": next, "text": found }));
        next += 1;
    }
    if next <= last {
        text.push_str(&format!(
            "[there is more: go on with `pages` \"{next}-{}\"]\n",
            last.min(next + MAX_PAGES - 1)
        ));
    }
    let count = pages.len();
    let words = if count == 1 { "1 page".to_owned() } else { format!("{count} pages") };
    let structured = json!({
        "type": "pdf",
        "file": { "filePath": path, "originalSize": bytes.len(), "totalPages": total, "pages": pages },
    });
    Ok(Output::text(text).display(format!("read {words} of {path}")).structured(structured))
}

fn truncate_page(text: &str) -> String {
    match text.char_indices().nth(MAX_RESULT_CHARS) {
        Some((at, _)) => format!("{}… [cut]", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

fn damaged_pdf_refusal(path: &AbsPath) -> Refusal {
    Refusal::new(Code::FileRead, format!("`{path}` is no PDF file, or a damaged one"))
        .hint("get a whole copy of it, or turn it into text with another program")
}
