//! One page in a browser of its own.

use super::browser_hosts::BrowserHosts;
use super::browser_process::{BrowserLaunch, BrowserProcess, browser_failure};
use super::local_page::LocalPage;
use super::page_events::{PageDocument, PageEvents, PausedRequest};
use super::screen_capture::{CaptureWindow, ScreenCapture, capture_page};
use crate::web::untrusted_text::clean_line;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use toolgate_files::GrantedFiles;
use toolgate_proto::Refusal;

/// Chromium sometimes ends while it starts, on a busy machine above all; then it is started once more.
const MAX_BROWSER_STARTS: usize = 2;

/// How long requests that a page makes after it was loaded are waited for.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a page's text.
const MAX_HTML_BYTES: usize = 5 << 20;

/// A page in a browser. Dropping it kills the browser.
pub(crate) struct BrowserPage {
    /// The browser.
    process: BrowserProcess,
    /// The protocol's name of the page.
    session: String,
    /// The protocol's name of the main frame.
    frame: String,
    /// Requests that toolgate answers itself.
    paused: mpsc::Receiver<PausedRequest>,
    /// Which hosts it may reach.
    pub(crate) hosts: BrowserHosts,
}

/// What a navigation ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageStatus {
    /// The URL of the page, redirects followed.
    pub(crate) url: String,
    /// The status of the server's answer.
    pub(crate) status: u16,
}

impl BrowserPage {
    /// Starts a browser with an empty page.
    pub(crate) async fn start(
        launch: BrowserLaunch,
        hosts: BrowserHosts,
        options: CaptureWindow,
    ) -> Result<Self, Refusal> {
        let mut starts = 0;
        loop {
            starts += 1;
            let (process, paused) = BrowserProcess::start(launch.clone(), &hosts).await?;
            let problem = match attach_page(&process, options).await {
                Ok((session, frame)) => return Ok(Self { process, session, frame, paused, hosts }),
                Err(problem) => problem,
            };
            let message = process.explain(&format!("the browser does not answer: {problem}"));
            process.end().await;
            if starts == MAX_BROWSER_STARTS {
                return Err(browser_failure(message));
            }
        }
    }

    /// Sends a command to the page.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        self.process.pipe.call(Some(&self.session), method, params).await
    }

    /// Opens a URL and waits until the page is there. The caller limits the time.
    pub(crate) async fn open_url(&mut self, url: &str) -> Result<PageStatus, Refusal> {
        let loads = self.loads();
        let answer = self.call("Page.navigate", json!({ "url": url })).await;
        self.finish_navigation(url, loads, answer).await
    }

    /// Opens a page of local files, which `files` grants.
    pub(super) async fn open_local(
        &mut self,
        local: &LocalPage,
        files: &GrantedFiles,
    ) -> Result<PageStatus, Refusal> {
        let patterns =
            json!({ "patterns": [{ "urlPattern": format!("{}/*", super::local_page::LOCAL_ORIGIN) }] });
        self.call("Fetch.enable", patterns).await.map_err(|problem| self.failure(&problem))?;
        let (loads, url) = (self.loads(), local.url());
        let mut events = self.process.pipe.events();
        let navigation = async {
            let answer =
                self.process.pipe.call(Some(&self.session), "Page.navigate", json!({ "url": url })).await;
            if answer.is_ok() {
                let _ = events.wait_for(|events| is_over(events, loads)).await;
                let _ =
                    timeout(SETTLE_TIMEOUT, events.wait_for(|events| events.is_quiet() || events.has_ended))
                        .await;
            }
            answer
        };
        tokio::pin!(navigation);
        let answer = loop {
            tokio::select! {
                answer = &mut navigation => break answer,
                Some(request) = self.paused.recv() => {
                    let response = local.answer(&request, files);
                    let _ = self.process.pipe.call(Some(&self.session), "Fetch.fulfillRequest", response).await;
                }
            }
        };
        self.finish_navigation(&url, loads, answer).await
    }

    /// Answers requests for local files for a time.
    pub(super) async fn serve_local(&mut self, local: &LocalPage, files: &GrantedFiles, time: Duration) {
        let end = tokio::time::sleep(time);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                Some(request) = self.paused.recv() => {
                    let response = local.answer(&request, files);
                    let _ = self.call("Fetch.fulfillRequest", response).await;
                }
            }
        }
    }

    /// Waits until a navigation has ended, and says how.
    async fn finish_navigation(
        &self,
        url: &str,
        loads: u64,
        answer: Result<Value, String>,
    ) -> Result<PageStatus, Refusal> {
        let answer = answer.map_err(|problem| self.failure(&problem))?;
        match answer.get("errorText").and_then(Value::as_str) {
            // An error without a page of its own, for which the browser shows one.
            Some("net::ERR_HTTP_RESPONSE_CODE_FAILURE") | None => {}
            Some(problem) => return Err(self.navigation_refusal(url, problem)),
        }
        let mut events = self.process.pipe.events();
        let _ = events.wait_for(|events| is_over(events, loads)).await;
        self.settle().await?;
        let document = self.document().ok_or_else(|| self.failure("the page has no answer of a server"))?;
        if let Some(refusal) = document.refusal {
            return Err(browser_failure(clean_line(&refusal)).hint(HOST_HINT));
        }
        Ok(PageStatus { url: document.url, status: document.status })
    }

    /// Waits for the requests that the page has started, within a limit.
    pub(crate) async fn settle(&self) -> Result<(), Refusal> {
        let mut events = self.process.pipe.events();
        let quiet = events.wait_for(|events| events.is_quiet() || events.has_ended || events.has_crashed);
        // A page that never stops asking is shown as it is.
        let _ = timeout(SETTLE_TIMEOUT, quiet).await;
        let (has_ended, has_crashed) = {
            let events = events.borrow();
            (events.has_ended, events.has_crashed)
        };
        match (has_ended, has_crashed) {
            (true, _) => Err(self.failure("the browser has ended")),
            (false, true) => Err(self.failure("the page has crashed")),
            (false, false) => Ok(()),
        }
    }

    /// The page as HTML, after its scripts.
    pub(crate) async fn html(&self) -> Result<String, Refusal> {
        let html = async {
            let document = self.call("DOM.getDocument", json!({ "depth": 0 })).await?;
            let node = document.get("root").and_then(|root| root.get("nodeId")).cloned().unwrap_or_default();
            let html = self.call("DOM.getOuterHTML", json!({ "nodeId": node })).await?;
            Ok(html.get("outerHTML").and_then(Value::as_str).unwrap_or_default().to_owned())
        };
        let mut html: String = html.await.map_err(|problem: String| self.failure(&problem))?;
        if html.len() > MAX_HTML_BYTES {
            html.truncate(html.floor_char_boundary(MAX_HTML_BYTES));
        }
        Ok(html)
    }

    /// Images of the page.
    pub(crate) async fn capture(&self, options: CaptureWindow) -> Result<ScreenCapture, Refusal> {
        capture_page(self, options).await.map_err(|problem| self.failure(&problem))
    }

    /// Hosts that the page asked for and that were refused, in order.
    pub(crate) fn refused_hosts(&self) -> Vec<String> {
        // The browser asks for hosts of its own whatever its switches say; they are refused, and no business of the page.
        let events = self.process.pipe.events();
        let events = events.borrow();
        let refused = self.process.proxy.refused();
        refused.into_iter().map(|refused| refused.host).filter(|host| events.hosts.contains(host)).collect()
    }

    /// Whether it can be used no more.
    pub(crate) fn has_ended(&self) -> bool {
        let events = self.process.pipe.events();
        let events = events.borrow();
        events.has_ended || events.has_crashed
    }

    /// The protocol's name of the main frame.
    pub(super) fn main_frame(&self) -> &str {
        &self.frame
    }

    /// Ends the browser.
    pub(crate) async fn end(self) {
        self.process.end().await;
    }

    /// How often a page was loaded so far.
    fn loads(&self) -> u64 {
        self.process.pipe.events().borrow().loads
    }

    /// The answer that the main frame shows.
    fn document(&self) -> Option<PageDocument> {
        self.process.pipe.events().borrow().document_of(&self.frame).cloned()
    }

    /// The refusal for a browser that does not carry out a command.
    pub(super) fn failure(&self, problem: &str) -> Refusal {
        browser_failure(self.process.explain(&format!("the browser failed: {}", clean_line(problem))))
    }

    /// The refusal for a page that could not be opened: by the proxy, or by the network.
    fn navigation_refusal(&self, url: &str, problem: &str) -> Refusal {
        let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let host = host.unwrap_or_default();
        let events = self.process.pipe.events();
        let hosts = events.borrow().hosts.clone();
        let refused = self.process.proxy.refused();
        let refused = refused.iter().find(|refused| hosts.contains(&refused.host) || refused.host == host);
        match refused {
            Some(refused) => browser_failure(refused.message(None)).hint(HOST_HINT),
            None => {
                browser_failure(format!("`{}` could not be opened: {}", clean_line(url), clean_line(problem)))
                    .hint("check the URL, or fetch it with WebFetch to see more")
            }
        }
    }
}

/// What to do about a host that was refused.
const HOST_HINT: &str = "the host must be allowed by a rule `WebFetch(domain:HOST)`; one that is not public must be named with its port";

/// Whether the page was loaded again, or never will be.
fn is_over(events: &PageEvents, loads: u64) -> bool {
    events.loads > loads || events.has_ended || events.has_crashed
}

/// Makes a page and turns on what toolgate wants to know of it. Returns the names of its session and main frame.
async fn attach_page(process: &BrowserProcess, options: CaptureWindow) -> Result<(String, String), String> {
    let pipe = &process.pipe;
    let text = |answer: &Value, name: &str| -> Result<String, String> {
        let text = answer.get(name).and_then(Value::as_str);
        text.map(str::to_owned).ok_or_else(|| format!("no `{name}` in its answer"))
    };
    let blank = json!({ "url": "about:blank" });
    let target = text(&pipe.call(None, "Target.createTarget", blank).await?, "targetId")?;
    let attach = json!({ "targetId": target, "flatten": true });
    let session = text(&pipe.call(None, "Target.attachToTarget", attach).await?, "sessionId")?;
    let here = Some(session.as_str());
    let window =
        json!({ "width": options.width, "height": options.height, "deviceScaleFactor": 1, "mobile": false });
    let (page, network, inspector, metrics, downloads) = tokio::join!(
        pipe.call(here, "Page.enable", json!({})),
        pipe.call(here, "Network.enable", json!({})),
        pipe.call(here, "Inspector.enable", json!({})),
        pipe.call(here, "Emulation.setDeviceMetricsOverride", window),
        pipe.call(None, "Browser.setDownloadBehavior", json!({ "behavior": "deny" })),
    );
    for answer in [page, network, inspector, metrics, downloads] {
        answer?;
    }
    // The main frame of a page has the name of its target.
    Ok((session, target))
}
