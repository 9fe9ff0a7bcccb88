//! The keys of a settings file about the web: which addresses need no approval, and how pages are fetched and searched.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Addresses that may be fetched without approval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PreApprovalSection {
    /// Domains that may be fetched without approval.
    pub allowed_domains: Vec<String>,
    /// Domains that may not be fetched.
    pub blocked_domains: Vec<String>,
    /// Private and loopback addresses that may be fetched, with a port (`127.0.0.1:8080`) if only that one is meant.
    pub allow_private: Vec<String>,
    /// A list of hosts that may be fetched without approval: `documentation` or `common`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<PreApprovalProfile>,
    /// Allows fetching public addresses over HTTPS without approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_approve_https: Option<bool>,
}

/// A list of hosts that may be fetched without approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreApprovalProfile {
    /// docs.rs, doc.rust-lang.org, crates.io, developer.mozilla.org and docs.python.org: hosts with one publisher.
    Documentation,
    /// docs.rs, crates.io, github.com, stackoverflow.com and developer.mozilla.org. Anyone can publish on some of them.
    Common,
}

/// Fetching pages and searching the web.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WebSection {
    /// Asks a site's `robots.txt` before a page of it is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obey_robots: Option<bool>,
    /// Fetches only URLs that the user wrote or that earlier results contained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_named_urls: Option<bool>,
    /// Requests per minute to one host; 30 by default, 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// The program of the browser that renders pages; without it a Chromium of the system is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
    /// Offers the tools that open, read, click and type in a browser page, as `--chrome` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_tools: Option<bool>,
    /// The model that answers the `prompt` of a fetch from the page.
    pub page_model: PageModelSection,
    /// The search service.
    pub search: WebSearchSection,
}

/// The model that answers the `prompt` of a fetch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PageModelSection {
    /// The name of the model; without one the page itself is the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The API that its provider speaks: anthropic (the default), chat or responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<PageModelApi>,
    /// The address of the provider, up to but without the last part of the path (`http://127.0.0.1:11434/v1`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable with the key, in place of `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
}

/// The API of a provider of models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PageModelApi {
    /// Anthropic's Messages.
    #[default]
    Anthropic,
    /// OpenAI's chat completions, which most servers speak.
    Chat,
    /// OpenAI's responses.
    Responses,
}

/// The search service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct WebSearchSection {
    /// The service that searches: brave, tavily, exa, serper, searxng, kagi, perplexity, jina or duckduckgo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<SearchProvider>,
    /// The address of the service, in place of the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable with the key, in place of the usual one (`BRAVE_API_KEY`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// A command line that prints the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_command: Option<String>,
}

/// A search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchProvider {
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
    /// Exa.
    Exa,
    /// Serper.
    Serper,
    /// A SearXNG server.
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
