//! What a session keeps for its web tools: the client with its cache, and the URLs that were named.

use super::web_config::WebConfig;
use crate::shell::proxy_variables;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_net::web::{ProxyTable, WebClient, WebClientConfig};

/// URLs that are remembered as named.
const MAX_NAMED_URLS: usize = 100_000;

/// State of the web tools of a session.
#[derive(Default)]
pub(crate) struct WebState {
    /// Behind a lock, because calls overlap.
    inner: Mutex<WebStateInner>,
}

/// What is behind the lock.
#[derive(Default)]
struct WebStateInner {
    /// How the tools work.
    config: Arc<WebConfig>,
    /// Made at first use.
    client: Option<Arc<WebClient>>,
    /// URLs of the user and of results.
    named: HashSet<String>,
}

impl WebState {
    /// Sets the configuration. The client stays, with its cache, if nothing changed for it.
    pub(crate) fn set_config(&self, config: WebConfig) {
        let mut inner = self.lock();
        let is_same_client = inner.config.requests_per_minute == config.requests_per_minute
            && proxy_variables(&inner.config.environment) == proxy_variables(&config.environment);
        if !is_same_client {
            inner.client = None;
        }
        inner.config = Arc::new(config);
    }

    /// The configuration.
    pub(crate) fn config(&self) -> Arc<WebConfig> {
        Arc::clone(&self.lock().config)
    }

    /// The client, made at first use. An error is a proxy that cannot be used.
    pub(crate) fn client(&self) -> Result<Arc<WebClient>, String> {
        let mut inner = self.lock();
        if let Some(client) = &inner.client {
            return Ok(Arc::clone(client));
        }
        let mut config = WebClientConfig::default();
        config.proxies = ProxyTable::from_environment(&inner.config.environment)?;
        config.requests_per_minute = inner.config.requests_per_minute;
        let client = Arc::new(WebClient::new(config));
        inner.client = Some(Arc::clone(&client));
        Ok(client)
    }

    /// Remembers the URLs in a text.
    pub(crate) fn note_urls(&self, text: &str) {
        let mut inner = self.lock();
        for url in find_urls(text) {
            if inner.named.len() < MAX_NAMED_URLS {
                inner.named.insert(url);
            }
        }
    }

    /// Whether a URL was named.
    pub(crate) fn is_named(&self, url: &str) -> bool {
        url::Url::parse(url).is_ok_and(|url| self.lock().named.contains(&comparable_url(url)))
    }

    /// The state; a panic of another thread cannot leave it half changed.
    fn lock(&self) -> MutexGuard<'_, WebStateInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The URLs in a text, in a form that can be compared.
fn find_urls(text: &str) -> impl Iterator<Item = String> + '_ {
    let starts = text.match_indices("http").filter_map(|(at, _)| text.get(at..));
    starts.filter(|rest| rest.starts_with("http://") || rest.starts_with("https://")).filter_map(|rest| {
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | ')' | '|'));
        let url = rest.get(..end.unwrap_or(rest.len()).min(4_096))?;
        let url = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', ']']);
        url::Url::parse(url).ok().map(comparable_url)
    })
}

/// Without fragment and trailing slash, and with https for http, which a fetch may change.
fn comparable_url(mut url: url::Url) -> String {
    url.set_fragment(None);
    let text = url.to_string();
    let text = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")).unwrap_or(&text);
    text.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_in_texts_are_named() {
        let state = WebState::default();
        state.note_urls("see https://a.example/x?y=1#z, [b](http://b.example/) and <https://c.example/d>.");
        for url in ["https://a.example/x?y=1", "https://b.example", "http://c.example/d#e"] {
            assert!(state.is_named(url), "{url}");
        }
        for url in ["https://a.example/x?y=2", "https://a.example/", "https://d.example/"] {
            assert!(!state.is_named(url), "{url}");
        }
    }
}
