//! Configuration of the web tools of a session.

use super::search_service::SearchService;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How the web tools of a session work. The host sets it with [`set_web_config`](crate::set_web_config) when it creates the
/// session, and again when its settings change.
#[derive(Clone)]
#[non_exhaustive]
pub struct WebConfig {
    /// toolgate's own environment variables: proxies, and keys of search services.
    pub environment: BTreeMap<String, String>,
    /// Ask a site's `robots.txt` before a page of it is fetched.
    pub obey_robots: bool,
    /// Requests per minute to one host; 0 is no limit.
    pub requests_per_minute: u32,
    /// Fetch only URLs that the user wrote or that earlier results contained, so that a URL cannot be made up to carry data
    /// out.
    pub only_named_urls: bool,
    /// The program of the browser that renders pages; without it a Chromium of the system is looked for.
    pub browser: Option<String>,
    /// Offer the tools that open, read, click and type in a browser page.
    pub browser_tools: bool,
    /// The search service.
    pub search: SearchConfig,
    /// Answers the `prompt` of a fetch from the page; without one the page itself is the result.
    pub page_model: Option<Arc<dyn PageModel>>,
}

impl Default for WebConfig {
    /// Limits the request rate, but allows every URL that the rules allow.
    fn default() -> Self {
        Self {
            environment: BTreeMap::new(),
            obey_robots: false,
            requests_per_minute: 30,
            only_named_urls: false,
            browser: None,
            browser_tools: false,
            search: SearchConfig::default(),
            page_model: None,
        }
    }
}

/// Which service is asked for searches. There is no default: a query tells the service what the user works on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchConfig {
    /// The service.
    pub service: Option<SearchService>,
    /// Its address, in place of the usual one.
    pub base_url: Option<String>,
    /// The environment variable with its key, in place of the usual one.
    pub key_variable: Option<String>,
    /// A command line that prints the key.
    pub key_command: Option<String>,
    /// How long a search may take.
    pub timeout: Duration,
}

impl Default for SearchConfig {
    /// Selects no search service; the timeout applies once the user configures one.
    fn default() -> Self {
        Self {
            service: None,
            base_url: None,
            key_variable: None,
            key_command: None,
            timeout: Duration::from_secs(20),
        }
    }
}

/// Without the environment, which contains keys.
impl fmt::Debug for WebConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebConfig")
            .field("obey_robots", &self.obey_robots)
            .field("requests_per_minute", &self.requests_per_minute)
            .field("only_named_urls", &self.only_named_urls)
            .field("browser", &self.browser)
            .field("browser_tools", &self.browser_tools)
            .field("search", &self.search)
            .finish_non_exhaustive()
    }
}

/// A model of the host that answers a question from a page.
pub trait PageModel: Send + Sync {
    /// Answers `prompt` from `page`, which is Markdown from the web and not to be trusted. An error is a text for the user.
    fn answer<'a>(
        &'a self,
        prompt: &'a str,
        page: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;
}
