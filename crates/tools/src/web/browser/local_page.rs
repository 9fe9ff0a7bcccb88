//! A page of local files. The browser never opens them: it asks for them under a name that no server has, and toolgate
//! answers with what the call was granted to read.

use super::page_events::PausedRequest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use toolgate_files::{FileProblem, GrantedFiles};
use toolgate_proto::AbsPath;

/// The name under which a page of local files is shown. `invalid` is reserved: no server has such a name.
pub(super) const LOCAL_ORIGIN: &str = "http://local-files.invalid";
/// Bytes of one file of a page.
const MAX_LOCAL_FILE_BYTES: u64 = 20 << 20;
/// What must be written in another way in a path of a URL.
const PATH_CHARACTERS: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'`').add(b'%').add(b'\\');
/// The types of files that pages are made of, by the ends of their names.
const CONTENT_TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("htm", "text/html"),
    ("xhtml", "application/xhtml+xml"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("json", "application/json"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/x-icon"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("ttf", "font/ttf"),
    ("otf", "font/otf"),
    ("wasm", "application/wasm"),
    ("xml", "text/xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("md", "text/plain; charset=utf-8"),
    ("csv", "text/plain; charset=utf-8"),
    ("log", "text/plain; charset=utf-8"),
];

/// A page of local files: its name, and the directory that it may load others from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalPage {
    /// The name of the page in its directory.
    name: String,
    /// The real path of the directory, which the call was granted as a tree.
    directory: AbsPath,
}

impl LocalPage {
    /// The page for a file that a call was granted with its directory. An error is a file that cannot be read.
    pub(crate) fn new(file: &AbsPath, files: &GrantedFiles) -> Result<Self, FileProblem> {
        // Opened by its own grant: a file that holds secrets may be granted by its name only.
        files.open(file)?;
        let real = files.real_path(file)?;
        let (Some(directory), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(FileProblem::IsDirectory);
        };
        Ok(Self { name: name.to_string_lossy().into_owned(), directory })
    }

    /// The URL under which the browser asks for it.
    pub(super) fn url(&self) -> String {
        format!("{LOCAL_ORIGIN}/{}", utf8_percent_encode(&self.name, PATH_CHARACTERS))
    }

    /// The answer to a request of the page, as the browser takes it.
    pub(super) fn answer(&self, request: &PausedRequest, files: &GrantedFiles) -> Value {
        let content = match request.method.as_str() {
            "GET" => self.read(&request.url, files),
            _ => None,
        };
        let respond = |status: u16, kind: &str, body: &[u8]| {
            json!({
                "requestId": request.id,
                "responseCode": status,
                "responseHeaders": [{ "name": "Content-Type", "value": kind }, { "name": "Cache-Control", "value": "no-store" }],
                "body": STANDARD.encode(body),
            })
        };
        match content {
            Some((kind, body)) => respond(200, kind, &body),
            None => respond(404, "text/plain", b"there is no such file that this call may read\n"),
        }
    }

    /// A file of the directory with its type; `None` if there is none that the call may read.
    fn read(&self, url: &str, files: &GrantedFiles) -> Option<(&'static str, Vec<u8>)> {
        let url = url::Url::parse(url).ok()?;
        let path = percent_decode_str(url.path()).decode_utf8().ok()?;
        let path = path.trim_start_matches('/');
        let name = if path.is_empty() || path.ends_with('/') {
            format!("{path}index.html")
        } else {
            path.to_owned()
        };
        let is_plain = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        let file = self.directory.join(&name);
        // The page itself was granted by its name, and what it loads only as part of a tree.
        let is_withheld = name != self.name && files.may_hold_secrets(&file);
        if !is_plain || is_withheld || name.contains('\0') {
            return None;
        }
        let content = files.read(&file, MAX_LOCAL_FILE_BYTES).ok()?;
        let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        let kind = CONTENT_TYPES.iter().find(|(known, _)| *known == end).map(|(_, kind)| *kind);
        Some((kind.unwrap_or("application/octet-stream"), content.bytes))
    }
}
