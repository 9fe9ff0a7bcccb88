//! The key `web`, applied to the configuration of the web tools.

use super::LoadedSettings;
use super::values::SearchProvider;
use toolgate_tools::{SearchService, WebConfig};

impl LoadedSettings {
    /// Applies the merged settings to a configuration of the web tools. What the configuration restricts stays restricted.
    pub fn apply_to_web_config(&self, config: &mut WebConfig) {
        let web = &self.merged().web;
        config.obey_robots |= web.obey_robots == Some(true);
        config.only_named_urls |= web.only_named_urls == Some(true);
        config.requests_per_minute = web.requests_per_minute.unwrap_or(config.requests_per_minute);
        config.browser = web.browser.clone().or(config.browser.take());
        config.browser_tools = web.browser_tools.unwrap_or(config.browser_tools);
        let search = &mut config.search;
        search.service = web.search.provider.map(search_service).or(search.service);
        search.base_url = web.search.base_url.clone().or(search.base_url.take());
        search.key_variable = web.search.key_variable.clone().or(search.key_variable.take());
        search.key_command = web.search.key_command.clone().or(search.key_command.take());
    }
}

/// The service of a provider that settings name.
fn search_service(provider: SearchProvider) -> SearchService {
    match provider {
        SearchProvider::Brave => SearchService::Brave,
        SearchProvider::Tavily => SearchService::Tavily,
        SearchProvider::Exa => SearchService::Exa,
        SearchProvider::Serper => SearchService::Serper,
        SearchProvider::Searxng => SearchService::Searxng,
        SearchProvider::Kagi => SearchService::Kagi,
        SearchProvider::Perplexity => SearchService::Perplexity,
        SearchProvider::Jina => SearchService::Jina,
        SearchProvider::Duckduckgo => SearchService::Duckduckgo,
    }
}
