//! What a fetched body is, by its type and its first bytes.

use super::charset::decode_text;
use toolgate_net::web::WebPage;

/// What a body is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageContent {
    /// A page to convert.
    Html(String),
    /// Text to show as it is.
    Text(String),
    /// An image.
    Image,
    /// A PDF file.
    Pdf,
    /// Bytes that cannot be shown.
    Binary,
}

/// Bytes at the start that are looked at.
const PROBE_BYTES: usize = 1_024;

/// Says what a body is. Types are believed, except where the first bytes are certainly something else.
pub(super) fn classify_content(page: &WebPage) -> PageContent {
    let media_type = media_type(page);
    let start = page.body.get(..PROBE_BYTES.min(page.body.len())).unwrap_or_default();
    if is_image(start) {
        return PageContent::Image;
    }
    if start.starts_with(b"%PDF-") {
        return PageContent::Pdf;
    }
    let decode = |is_html: bool| decode_text(&page.body, page.content_type.as_deref(), is_html);
    let is_binary =
        start.contains(&0) && !start.starts_with(&[0xff, 0xfe]) && !start.starts_with(&[0xfe, 0xff]);
    let is_unknown = matches!(media_type.as_str(), "" | "application/octet-stream" | "binary/octet-stream");
    if is_binary && (is_unknown || media_type.starts_with("text/")) {
        return PageContent::Binary;
    }
    match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => PageContent::Html(decode(true)),
        _ if is_unknown => {
            let text = decode(true);
            if looks_like_html(&text) { PageContent::Html(text) } else { PageContent::Text(text) }
        }
        other if is_text_type(other) => PageContent::Text(decode(false)),
        _ => PageContent::Binary,
    }
}

/// The type without parameters, in lower case.
pub(super) fn media_type(page: &WebPage) -> String {
    let given = page.content_type.as_deref().unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether content of a type can be shown as it is.
fn is_text_type(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || matches!(
            media_type,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-javascript"
                | "application/ecmascript"
                | "application/x-ndjson"
                | "application/jsonl"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/x-sh"
                | "application/sql"
                | "application/graphql"
                | "application/rtf"
                | "application/x-www-form-urlencoded"
        )
}

/// Whether a body begins like an image that models can be shown.
fn is_image(start: &[u8]) -> bool {
    matches!(start, [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] | [b'G', b'I', b'F', b'8', ..])
        || matches!(start, [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..])
}

/// Whether a text without a type is a page.
fn looks_like_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(200).collect::<String>().to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body", "<!--", "<script", "<title", "<h1", "<p>", "<div"]
        .iter()
        .any(|mark| start.starts_with(mark))
        || (start.starts_with("<?xml") && start.contains("<html"))
}
