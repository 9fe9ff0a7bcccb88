//! Pages of the last minutes. A page from here must be judged again before it is used: rules may have changed.

use super::web_page::WebPage;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a page is kept.
pub(super) const CACHE_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// The memory of all pages together.
pub(super) const MAX_CACHE_BYTES: usize = 50_000_000;

/// A cache of pages by URL.
#[derive(Debug)]
pub struct PageCache {
    /// The memory of all pages.
    max_bytes: usize,
    /// How long a page is kept.
    timeout: Duration,
    /// By URL, without the fragment.
    pages: Mutex<HashMap<String, CachedPage>>,
}

#[derive(Debug, Clone)]
struct CachedPage {
    /// The page.
    page: Arc<WebPage>,
    /// When it was fetched.
    at: Instant,
}

impl Default for PageCache {
    fn default() -> Self {
        Self::new(MAX_CACHE_BYTES, CACHE_TIMEOUT)
    }
}

impl PageCache {
    /// A cache with limits of its own.
    pub fn new(max_bytes: usize, timeout: Duration) -> Self {
        Self { max_bytes, timeout, pages: Mutex::default() }
    }

    /// The page of a URL, if it is not too old.
    pub fn find(&self, url: &str) -> Option<Arc<WebPage>> {
        let pages = self.lock();
        let found = pages.get(cache_key(url))?;
        (found.at.elapsed() < self.timeout).then(|| Arc::clone(&found.page))
    }

    /// Keeps a page under the URL that was asked for, if it may be kept.
    pub fn store(&self, url: &str, page: &Arc<WebPage>) {
        if page.no_store || page.status != 200 || page.size() > self.max_bytes / 4 {
            return;
        }
        let mut pages = self.lock();
        let timeout = self.timeout;
        pages.retain(|_, cached| cached.at.elapsed() < timeout);
        pages.insert(cache_key(url).to_owned(), CachedPage { page: Arc::clone(page), at: Instant::now() });
        let mut total: usize = pages.values().map(|cached| cached.page.size()).sum();
        while total > self.max_bytes {
            let oldest = pages.iter().min_by_key(|(_, cached)| cached.at).map(|(url, _)| url.clone());
            let Some(removed) = oldest.and_then(|url| pages.remove(&url)) else { break };
            total = total.saturating_sub(removed.page.size());
        }
    }

    /// The pages; a panic of another thread cannot leave them half changed.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, CachedPage>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server does not see the fragment, so it does not count.
fn cache_key(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: usize) -> Arc<WebPage> {
        let mut page = WebPage::new(Vec::new(), 200);
        page.body = vec![b'x'; bytes];
        Arc::new(page)
    }

    #[test]
    fn the_oldest_pages_make_room() {
        let cache = PageCache::new(100_000, CACHE_TIMEOUT);
        for number in 0..20 {
            cache.store(&format!("https://a.example/{number}"), &page(10_000));
        }
        assert!(cache.find("https://a.example/0").is_none());
        assert!(cache.find("https://a.example/19#part").is_some());
        let total: usize = cache.lock().values().map(|cached| cached.page.size()).sum();
        assert!(total <= 100_000, "{total}");
    }

    #[test]
    fn what_may_not_be_kept_is_not_kept() {
        let cache = PageCache::default();
        let mut secret = WebPage::new(Vec::new(), 200);
        secret.no_store = true;
        cache.store("https://a.example/", &Arc::new(secret));
        cache.store("https://b.example/", &Arc::new(WebPage::new(Vec::new(), 404)));
        cache.store("https://c.example/", &page(20_000_000));
        let kept = |host: &str| cache.find(&format!("https://{host}/")).is_some();
        assert!(!kept("a.example") && !kept("b.example") && !kept("c.example"));
        let old = PageCache::new(MAX_CACHE_BYTES, Duration::ZERO);
        old.store("https://d.example/", &page(1));
        assert!(old.find("https://d.example/").is_none());
    }
}
