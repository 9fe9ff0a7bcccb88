//! A page that was fetched.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// One request of a fetch, as it was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedHop {
    /// The URL.
    pub url: String,
    /// The addresses of its host, each of them judged.
    pub addresses: Vec<IpAddr>,
}

/// A text that was made from a page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredText {
    /// The title of the page; empty if it has none.
    pub title: String,
    /// The text.
    pub text: String,
}

impl StoredText {
    /// A text with its title.
    pub fn new(title: String, text: String) -> Self {
        Self { title, text }
    }
}

/// A page that was fetched: the decoded body and where it came from.
#[derive(Debug)]
pub struct WebPage {
    /// Each request, the last of which gave the page.
    pub hops: Vec<FetchedHop>,
    /// The status code.
    pub status: u16,
    /// The `Content-Type` header, as sent.
    pub content_type: Option<String>,
    /// The `Retry-After` header.
    pub retry_after: Option<String>,
    /// The server answers robots with a challenge.
    pub is_challenge: bool,
    /// The server asks not to keep the page.
    pub no_store: bool,
    /// The body, decompressed. Empty for an error status.
    pub body: Vec<u8>,
    /// The body was cut at the limit.
    pub is_cut: bool,
    /// Bytes of the body on the wire.
    pub wire_bytes: u64,
    /// Texts made from the body, so that a page from the cache is not converted again.
    forms: Mutex<BTreeMap<String, Arc<StoredText>>>,
}

impl WebPage {
    pub(super) fn new(hops: Vec<FetchedHop>, status: u16) -> Self {
        Self {
            hops,
            status,
            content_type: None,
            retry_after: None,
            is_challenge: false,
            no_store: false,
            body: Vec::new(),
            is_cut: false,
            wire_bytes: 0,
            forms: Mutex::default(),
        }
    }

    /// The URL of the page, after redirects.
    pub fn final_url(&self) -> &str {
        self.hops.last().map_or("", |hop| hop.url.as_str())
    }

    /// A text that was made from the body earlier.
    pub fn stored_form(&self, name: &str) -> Option<Arc<StoredText>> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Stores a text that was made from the body; at most four, because callers choose the names.
    pub fn store_form(&self, name: &str, text: Arc<StoredText>) {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if forms.len() >= 4 {
            forms.clear();
        }
        forms.insert(name.to_owned(), text);
    }

    /// The memory that the page takes, with the texts made from it.
    pub(super) fn size(&self) -> usize {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        self.body.len() + forms.values().map(|form| form.title.len() + form.text.len()).sum::<usize>() + 512
    }
}

/// The usual text of a status code, such as `Not Found`.
pub fn status_text(status: u16) -> &'static str {
    hyper::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("unknown status")
}
