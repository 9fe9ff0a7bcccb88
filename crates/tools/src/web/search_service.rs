//! The search services: how each is asked, and how its answer is read.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_net::web::WebRequest;
use url::Url;

/// A search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchService {
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
    /// Exa.
    Exa,
    /// Serper, which asks Google.
    Serper,
    /// A SearXNG server, such as one of your own.
    Searxng,
    /// Kagi.
    Kagi,
    /// Perplexity.
    Perplexity,
    /// Jina.
    Jina,
    /// The HTML page of DuckDuckGo, which has no contract for programs.
    Duckduckgo,
}

/// What is searched for.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchQuery {
    /// The words.
    pub(crate) text: String,
    /// The most results.
    pub(crate) count: usize,
    /// Only results of these domains.
    pub(crate) allowed: Vec<String>,
    /// No results of these domains.
    pub(crate) blocked: Vec<String>,
}

/// One result as the service gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchRow {
    /// The title, with markup.
    pub(super) title: String,
    /// The address, which may be anything.
    pub(super) url: String,
    /// A part of the page, with markup.
    pub(super) snippet: String,
}

impl SearchService {
    /// Every service.
    pub const ALL: [Self; 9] = [
        Self::Brave,
        Self::Tavily,
        Self::Exa,
        Self::Serper,
        Self::Searxng,
        Self::Kagi,
        Self::Perplexity,
        Self::Jina,
        Self::Duckduckgo,
    ];

    /// The name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::Exa => "exa",
            Self::Serper => "serper",
            Self::Searxng => "searxng",
            Self::Kagi => "kagi",
            Self::Perplexity => "perplexity",
            Self::Jina => "jina",
            Self::Duckduckgo => "duckduckgo",
        }
    }

    /// The address of the service; `None` for one that users run themselves.
    pub fn default_base(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Exa => Some("https://api.exa.ai"),
            Self::Serper => Some("https://google.serper.dev"),
            Self::Searxng => None,
            Self::Kagi => Some("https://kagi.com"),
            Self::Perplexity => Some("https://api.perplexity.ai"),
            Self::Jina => Some("https://s.jina.ai"),
            Self::Duckduckgo => Some("https://html.duckduckgo.com"),
        }
    }

    /// The environment variable with its key; `None` if it needs none.
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
            Self::Exa => Some("EXA_API_KEY"),
            Self::Serper => Some("SERPER_API_KEY"),
            Self::Kagi => Some("KAGI_API_KEY"),
            Self::Perplexity => Some("PERPLEXITY_API_KEY"),
            Self::Jina => Some("JINA_API_KEY"),
            Self::Searxng | Self::Duckduckgo => None,
        }
    }

    /// The request for a query. An error is a base address that is none.
    pub(super) fn request(self, base: &str, key: &str, query: &SearchQuery) -> Result<WebRequest, String> {
        let base = Url::parse(base).map_err(|error| format!("`web.search.baseUrl` is not a URL: {error}"))?;
        let text = add_site_operators(query);
        let count = query.count.clamp(1, 20);
        let get = |path: &str, pairs: &[(&str, &str)]| WebRequest::get(extend_url(&base, path, pairs));
        let post = |path: &str, body: Value| {
            WebRequest::post(extend_url(&base, path, &[]), "application/json", body.to_string().into_bytes())
        };
        let bearer = || format!("Bearer {key}");
        Ok(match self {
            Self::Brave => get("/res/v1/web/search", &[("q", &text), ("count", &count.to_string())])
                .header("x-subscription-token", key)
                .header("accept", "application/json"),
            Self::Tavily => post(
                "/search",
                json!({
                    "query": query.text, "max_results": count,
                    "include_domains": query.allowed, "exclude_domains": query.blocked,
                }),
            )
            .header("authorization", bearer()),
            Self::Exa => post("/search", exa_body(query, count)).header("x-api-key", key),
            Self::Serper => {
                post("/search", json!({ "q": text, "num": count.min(10) })).header("x-api-key", key)
            }
            Self::Searxng => {
                get("/search", &[("q", &text), ("format", "json")]).header("accept", "application/json")
            }
            Self::Kagi => get("/api/v0/search", &[("q", &text), ("limit", &count.to_string())])
                .header("authorization", format!("Bot {key}")),
            Self::Perplexity => {
                let filter: Vec<String> = if query.allowed.is_empty() {
                    query.blocked.iter().take(20).map(|domain| format!("-{domain}")).collect()
                } else {
                    query.allowed.iter().take(20).cloned().collect()
                };
                let mut body = json!({ "query": query.text, "max_results": count });
                if let (Value::Object(fields), false) = (&mut body, filter.is_empty()) {
                    fields.insert("search_domain_filter".to_owned(), json!(filter));
                }
                post("/search", body).header("authorization", bearer())
            }
            Self::Jina => get("/", &[("q", &text), ("count", &count.to_string())])
                .header("authorization", bearer())
                .header("accept", "application/json"),
            Self::Duckduckgo => {
                let form =
                    url::form_urlencoded::Serializer::new(String::new()).append_pair("q", &text).finish();
                let url = extend_url(&base, "/html/", &[]);
                WebRequest::post(url, "application/x-www-form-urlencoded", form.into_bytes())
            }
        })
    }

    /// The results of an answer. `None` if it is not an answer of this service.
    pub(super) fn read_rows(self, body: &[u8]) -> Option<Vec<SearchRow>> {
        if self == Self::Duckduckgo {
            return read_duckduckgo(&String::from_utf8_lossy(body));
        }
        let answer: Value = serde_json::from_slice(body).ok()?;
        let (list, url, snippet) = match self {
            Self::Brave => (answer.pointer("/web/results"), "url", "description"),
            Self::Tavily => (answer.get("results"), "url", "content"),
            Self::Exa => (answer.get("results"), "url", "text"),
            Self::Serper => (answer.get("organic"), "link", "snippet"),
            Self::Searxng => (answer.get("results"), "url", "content"),
            Self::Kagi => (answer.get("data"), "url", "snippet"),
            Self::Perplexity => (answer.get("results"), "url", "snippet"),
            Self::Jina => (answer.get("data"), "url", "description"),
            Self::Duckduckgo => (None, "", ""),
        };
        let Some(list) = list else {
            // Brave leaves the list out where there is no result.
            return (self == Self::Brave && answer.get("query").is_some()).then(Vec::new);
        };
        let text = |item: &Value, field: &str| {
            item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let rows = list.as_array()?.iter().map(|item| {
            let mut found = text(item, snippet);
            if found.is_empty() {
                let highlight = item.pointer("/highlights/0").and_then(Value::as_str);
                found = highlight.unwrap_or_default().to_owned();
            }
            SearchRow { title: text(item, "title"), url: text(item, url), snippet: found }
        });
        Some(rows.collect())
    }
}

/// The request of Exa, which has fields for domains.
fn exa_body(query: &SearchQuery, count: usize) -> Value {
    let mut body = json!({
        "query": query.text, "numResults": count, "type": "auto",
        "contents": { "highlights": true, "text": { "maxCharacters": 1000 } },
    });
    if let Value::Object(fields) = &mut body {
        if !query.allowed.is_empty() {
            fields.insert("includeDomains".to_owned(), json!(query.allowed));
        }
        if !query.blocked.is_empty() {
            fields.insert("excludeDomains".to_owned(), json!(query.blocked));
        }
    }
    body
}

/// The query with the domains as operators, for services that have no field for them.
fn add_site_operators(query: &SearchQuery) -> String {
    let mut text = query.text.clone();
    let sites: Vec<String> = query.allowed.iter().map(|domain| format!("site:{domain}")).collect();
    if !sites.is_empty() {
        text.push_str(&format!(" ({})", sites.join(" OR ")));
    }
    for domain in &query.blocked {
        text.push_str(&format!(" -site:{domain}"));
    }
    text
}

/// A path and parameters below a base address, which may have both of its own.
fn extend_url(base: &Url, path: &str, pairs: &[(&str, &str)]) -> String {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    url.to_string()
}

/// The results of DuckDuckGo's page, without advertisements. `None` if the page is something else.
fn read_duckduckgo(html: &str) -> Option<Vec<SearchRow>> {
    let document = dom_query::Document::from(html);
    if !document.select_single("#links, .no-results, .results").exists() {
        return None;
    }
    let mut rows = Vec::new();
    for result in document.select("div.result").iter() {
        let link = result.select_single("a.result__a");
        let href = link.attr("href").unwrap_or_default();
        if href.contains("duckduckgo.com/y.js") || result.has_class("result--ad") {
            continue;
        }
        let absolute = if href.starts_with("//") { format!("https:{href}") } else { href.to_string() };
        let target = Url::parse(&absolute).ok().and_then(|url| {
            url.query_pairs().find(|(name, _)| name == "uddg").map(|(_, target)| target.into_owned())
        });
        rows.push(SearchRow {
            title: link.text().to_string(),
            url: target.unwrap_or(absolute),
            snippet: result.select_single(".result__snippet").text().to_string(),
        });
    }
    Some(rows)
}
