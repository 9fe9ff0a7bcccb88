//! What a page did, as its browser tells.

use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

/// Requests in flight that are counted; a page with more is not waited for.
const MAX_COUNTED_REQUESTS: usize = 1_000;
/// Hosts that are remembered.
const MAX_REQUESTED_HOSTS: usize = 200;

/// What a page did since its navigation, bounded whatever the page does.
#[derive(Debug, Clone, Default)]
pub(super) struct PageEvents {
    /// How often the page, with what it embeds, has finished loading.
    pub(super) loads: u64,
    /// The requests that have no answer yet.
    in_flight: HashSet<String>,
    /// The frames that load a document.
    loading: HashSet<String>,
    /// Hosts that the page asked for.
    pub(super) hosts: BTreeSet<String>,
    /// The answer to the last request for a whole page, in the main frame or another.
    pub(super) documents: Vec<PageDocument>,
    /// The renderer of the page is gone.
    pub(super) has_crashed: bool,
    /// The browser is gone.
    pub(super) has_ended: bool,
}

/// The answer to a request for a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageDocument {
    /// The frame.
    pub(super) frame: String,
    /// Its status.
    pub(super) status: u16,
    /// Its URL, redirects followed.
    pub(super) url: String,
    /// What the proxy of the sandbox says, if the answer is the proxy's own.
    pub(super) refusal: Option<String>,
}

/// A request of a page that toolgate answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PausedRequest {
    /// The browser's number for it.
    pub(super) id: String,
    /// What is asked for.
    pub(super) url: String,
    /// How.
    pub(super) method: String,
}

impl PausedRequest {
    /// The request of an event; `None` if a field is missing.
    pub(super) fn from_event(params: &Value) -> Option<Self> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let request = params.get("request")?;
        Some(Self {
            id: text(params.get("requestId"))?,
            url: text(request.get("url"))?,
            method: text(request.get("method"))?,
        })
    }
}

impl PageEvents {
    /// Whether no document is loaded and no request of the page is without an answer.
    pub(super) fn is_quiet(&self) -> bool {
        let is_busy = |names: &HashSet<String>| !names.is_empty() && names.len() < MAX_COUNTED_REQUESTS;
        !is_busy(&self.in_flight) && !is_busy(&self.loading)
    }

    /// The last document of a frame.
    pub(super) fn document_of(&self, frame: &str) -> Option<&PageDocument> {
        self.documents.iter().rev().find(|document| document.frame == frame)
    }

    /// Applies an event; whether it changed anything.
    pub(super) fn apply(&mut self, method: &str, params: &Value) -> bool {
        let text = |name: &str| params.get(name).and_then(Value::as_str);
        match method {
            "Page.loadEventFired" => self.loads += 1,
            "Page.frameStartedLoading" | "Page.frameStartedNavigating" => {
                let frame = text("frameId").filter(|_| self.loading.len() < MAX_COUNTED_REQUESTS);
                return frame.is_some_and(|frame| self.loading.insert(frame.to_owned()));
            }
            "Page.frameStoppedLoading" | "Page.frameDetached" => {
                return text("frameId").is_some_and(|frame| self.loading.remove(frame));
            }
            "Inspector.targetCrashed" => self.has_crashed = true,
            "Network.requestWillBeSent" => {
                let url =
                    params.get("request").and_then(|request| request.get("url")).and_then(Value::as_str);
                let url = url.and_then(|url| url::Url::parse(url).ok());
                let host = url.as_ref().and_then(|url| url.host_str());
                if let Some(host) = host.filter(|_| self.hosts.len() < MAX_REQUESTED_HOSTS) {
                    self.hosts.insert(host.trim_matches(['[', ']']).to_owned());
                }
                if let Some(id) = text("requestId").filter(|_| self.in_flight.len() < MAX_COUNTED_REQUESTS) {
                    self.in_flight.insert(id.to_owned());
                }
            }
            "Network.loadingFinished" | "Network.loadingFailed" => {
                return text("requestId").is_some_and(|id| self.in_flight.remove(id));
            }
            "Network.responseReceived" if text("type") == Some("Document") => {
                let Some(response) = params.get("response") else { return false };
                let (Some(frame), Some(url)) = (text("frameId"), response.get("url").and_then(Value::as_str))
                else {
                    return false;
                };
                let status = response.get("status").and_then(Value::as_u64).unwrap_or_default();
                let refusal = response.get("headers").and_then(|headers| {
                    let mut headers = headers.as_object()?.iter();
                    let (_, value) =
                        headers.find(|(name, _)| name.eq_ignore_ascii_case("toolgate-refusal"))?;
                    value.as_str().map(str::to_owned)
                });
                let document = PageDocument {
                    frame: frame.to_owned(),
                    status: u16::try_from(status).unwrap_or_default(),
                    url: url.to_owned(),
                    refusal,
                };
                self.documents.retain(|known| known.frame != document.frame);
                if self.documents.len() < MAX_COUNTED_REQUESTS {
                    self.documents.push(document);
                }
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_counted_until_they_end() {
        let mut events = PageEvents::default();
        assert!(events.is_quiet());
        let request = json!({ "requestId": "1", "request": { "url": "http://[::1]:80/x" } });
        assert!(events.apply("Network.requestWillBeSent", &request));
        assert!(!events.is_quiet());
        assert!(events.hosts.contains("::1"));
        assert!(events.apply("Network.loadingFailed", &json!({ "requestId": "1" })));
        assert!(events.is_quiet());
        assert!(!events.apply("Network.dataReceived", &json!({ "requestId": "1" })));
    }

    #[test]
    fn a_page_cannot_fill_the_memory() {
        let mut events = PageEvents::default();
        for number in 0..5_000 {
            let url = format!("http://h{number}.example/");
            let request = json!({ "requestId": number.to_string(), "request": { "url": url } });
            events.apply("Network.requestWillBeSent", &request);
            let response =
                json!({ "type": "Document", "frameId": number.to_string(), "response": { "url": url } });
            events.apply("Network.responseReceived", &response);
        }
        assert_eq!(events.hosts.len(), MAX_REQUESTED_HOSTS);
        assert_eq!(events.in_flight.len(), MAX_COUNTED_REQUESTS);
        assert_eq!(events.documents.len(), MAX_COUNTED_REQUESTS);
        assert!(events.is_quiet());
    }
}
