//! One look at a page: a browser is started, the page opened, seen and left.

use super::browser_hosts::BrowserHosts;
use super::browser_page::{BrowserPage, PageStatus};
use super::browser_process::{BrowserLaunch, browser_failure};
use super::local_page::LocalPage;
use super::screen_capture::{CaptureWindow, CapturedImage};
use std::time::Duration;
use tokio::time::timeout;
use toolgate_gate::Cleared;
use toolgate_proto::Refusal;

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ViewSource {
    /// The page at a URL that the call was granted.
    Url(String),
    /// A page of local files that the call was granted.
    Local(LocalPage),
}

/// A look at a page.
#[derive(Debug, Clone)]
pub(crate) struct ViewRequest {
    /// Which page.
    pub(crate) source: ViewSource,
    /// The window.
    pub(crate) options: CaptureWindow,
    /// Take images.
    pub(crate) with_images: bool,
    /// Return the HTML after the scripts of the page.
    pub(crate) with_html: bool,
    /// How long scripts may work after the page was loaded.
    pub(crate) delay: Duration,
    /// For everything together.
    pub(crate) timeout: Duration,
}

/// What was seen.
#[derive(Debug, Clone)]
pub(crate) struct PageView {
    /// Where the page is.
    pub(crate) status: PageStatus,
    /// The images from top to bottom; empty if none were asked for.
    pub(crate) images: Vec<CapturedImage>,
    /// The part of the page that the images show.
    pub(crate) size: (u32, u32),
    /// The page goes on below the images.
    pub(crate) is_cut: bool,
    /// The HTML, if it was asked for.
    pub(crate) html: Option<String>,
    /// Hosts that the page requested and that were refused.
    pub(crate) refused_hosts: Vec<String>,
}

/// Looks at a page with a browser of its own, which is gone at the end.
pub(crate) async fn view_page(request: &ViewRequest, cleared: &Cleared) -> Result<PageView, Refusal> {
    let launch = BrowserLaunch::from_call(cleared)?;
    let hosts = BrowserHosts::default();
    if let ViewSource::Url(url) = &request.source {
        // A page of local files gets no rules, and so reaches no host: it could send away what it reads.
        hosts.set_rules(cleared.hosts());
        hosts.grant_url(url);
    }
    let seconds = request.timeout.as_secs();
    let out_of_time = |_| {
        browser_failure(format!("the page was not there after {seconds} s"))
            .hint("raise `timeout` (at most 120 seconds), or use another source")
    };
    let deadline = tokio::time::Instant::now() + request.timeout;
    let mut page = timeout(request.timeout, BrowserPage::start(launch, hosts, request.options))
        .await
        .map_err(out_of_time)??;
    let left = deadline.saturating_duration_since(tokio::time::Instant::now());
    let seen = timeout(left, read_view(&mut page, request, cleared)).await.map_err(out_of_time);
    page.end().await;
    seen?
}

/// Opens the page and takes from it what was asked for.
async fn read_view(
    page: &mut BrowserPage,
    request: &ViewRequest,
    cleared: &Cleared,
) -> Result<PageView, Refusal> {
    let status = match &request.source {
        ViewSource::Url(url) => page.open_url(url).await?,
        ViewSource::Local(local) => page.open_local(local, cleared.files()).await?,
    };
    if !request.delay.is_zero() {
        match &request.source {
            ViewSource::Url(_) => tokio::time::sleep(request.delay).await,
            ViewSource::Local(local) => page.serve_local(local, cleared.files(), request.delay).await,
        }
        page.settle().await?;
    }
    let html = if request.with_html { Some(page.html().await?) } else { None };
    let (images, size, is_cut) = if request.with_images {
        let capture = page.capture(request.options).await?;
        (capture.images, capture.size, capture.is_cut)
    } else {
        (Vec::new(), (0, 0), false)
    };
    Ok(PageView { status, images, size, is_cut, html, refused_hosts: page.refused_hosts() })
}
