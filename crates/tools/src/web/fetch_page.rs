//! One fetch, from the URL to the result.

use super::browser::{CaptureWindow, PageView, ViewRequest, ViewSource, view_page};
use super::page_content::{PageContent, classify_content, media_type};
use super::page_text::{PageForm, convert_page};
use super::untrusted_text::{clean_line, clean_text, clean_title, wrap_untrusted_page};
use super::web_state::WebState;
use crate::read::render_image;
use crate::screenshot::{image_blocks, refused_note};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate_files::{FileProblem, run_blocking};
use toolgate_gate::{Cleared, HostRules, RedirectDecision};
use toolgate_net::web::{
    FetchError, FetchOptions, FetchOutcome, HopJudge, RedirectVerdict, StoredText, WebLimits, WebPage,
    WebSocketReader, status_text,
};
use toolgate_proto::address::is_certainly_remote;
use toolgate_proto::host_pattern::parse_host;
use toolgate_proto::{CallResult, Code, Output, OutputBlock, Refusal};

/// Asks for Markdown first: some sites have it, and it is what a model reads best.
const ACCEPTED_TYPES: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5";
/// Characters of a page in one result.
pub(crate) const DEFAULT_MAX_CHARS: usize = 100_000;

/// A fetch as a toolset adapter requests it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebPageRequest {
    /// The URL as it is requested.
    pub(crate) url: String,
    /// The question, for a model of the host.
    pub(crate) prompt: Option<String>,
    /// Only what this CSS selector matches.
    pub(crate) selector: Option<String>,
    /// The most characters of the result.
    pub(crate) max_chars: Option<usize>,
    /// Characters that were read before.
    pub(crate) offset: usize,
    /// `None` is the body as it was sent.
    pub(crate) form: Option<PageForm>,
    /// For everything together.
    pub(crate) timeout: Duration,
    /// The text of the page after its scripts, by a browser.
    pub(crate) with_scripts: bool,
    /// An image of the page beside its text.
    pub(crate) with_image: bool,
}

/// The rules of the call, as the client asks them.
pub(super) struct CallJudge<'a>(pub(super) &'a HostRules);

impl HopJudge for CallJudge<'_> {
    /// Reports a redirect to another host instead of following it, because the call was approved for one host.
    fn check_redirect(&self, from: &str, location: &str) -> RedirectVerdict {
        match self.0.judge_redirect(from, location) {
            RedirectDecision::Follow(url) => RedirectVerdict::Follow(url),
            RedirectDecision::OtherHost(url) => RedirectVerdict::Report(url),
            RedirectDecision::Refuse(reason) => RedirectVerdict::Refuse(reason),
        }
    }

    /// Checks all resolved addresses, since a public name can resolve to a private address.
    fn check_addresses(&self, url: &str, addresses: &[IpAddr]) -> Result<(), String> {
        self.0.check_addresses(url, addresses)
    }
}

/// The URL that is fetched for one that was given: http becomes https at a public name without a port. Servers on this
/// machine and in private networks are often reached by http only, and stay as they are.
pub fn upgrade_scheme(url: &str) -> String {
    let trimmed = url.trim();
    let parsed = url::Url::parse(trimmed).ok().filter(|parsed| parsed.scheme() == "http");
    let is_public = parsed.is_some_and(|parsed| {
        let host = parsed.host_str().and_then(parse_host);
        // As written: a parsed URL does not show the usual port.
        let authority = trimmed.split("//").nth(1).and_then(|rest| rest.split(['/', '?', '#', '\\']).next());
        let has_port = authority.is_none_or(|authority| authority.contains(':'));
        !has_port && host.is_some_and(|host| is_certainly_remote(&host))
    });
    match trimmed.split_once(':') {
        // The rest stays as it was written, so that policy sees what is unusual about it.
        Some((_, rest)) if is_public => format!("https:{rest}"),
        _ => trimmed.to_owned(),
    }
}

/// Fetches a page, by the client or by a browser, and adds an image if one was asked for.
pub(crate) async fn fetch_page(request: WebPageRequest, cleared: &Cleared) -> CallResult {
    if request.with_scripts {
        return fetch_rendered(&request, cleared).await;
    }
    let mut output = fetch_plain(&request, cleared).await?;
    let is_page = output.structured.as_ref().is_some_and(|fields| fields.get("redirect").is_none());
    if request.with_image && is_page {
        let view = view_page(&view_request(&request), cleared).await?;
        add_images(&mut output, &view);
    }
    Ok(output)
}

/// The look at a page that a fetch needs.
fn view_request(request: &WebPageRequest) -> ViewRequest {
    ViewRequest {
        source: ViewSource::Url(request.url.clone()),
        options: CaptureWindow::default(),
        with_images: request.with_image,
        with_html: request.with_scripts,
        delay: Duration::ZERO,
        timeout: request.timeout,
    }
}

/// Adds the images of a page and the notes about them.
fn add_images(output: &mut Output, view: &PageView) {
    let note = refused_note(&view.refused_hosts);
    if !note.is_empty() {
        output.content.push(OutputBlock::Text { text: note.trim_start().to_owned() });
    }
    output.content.extend(image_blocks(view));
}

/// Fetches a page with a browser, and takes the text that is there after its scripts.
async fn fetch_rendered(request: &WebPageRequest, cleared: &Cleared) -> CallResult {
    let started = Instant::now();
    let state = cleared.context().session.state::<WebState>();
    check_robots(&request.url, cleared).await?;
    let mut view = view_page(&view_request(request), cleared).await?;
    let html = view.html.take().unwrap_or_default();
    let mut facts = PageFacts {
        title: String::new(),
        url: view.status.url.clone(),
        status: view.status.status,
        content_type: Some("text/html".to_owned()),
        bytes: html.len(),
        is_cut: false,
        is_cached: false,
        started,
    };
    if !(200..300).contains(&facts.status) {
        return Err(status_refusal(facts.status, None, false));
    }
    let text = match request.form {
        Some(form) => {
            let (url, selector) = (facts.url.clone(), request.selector.clone());
            let converted = run_blocking(move || convert_page(&html, Some(&url), form, selector.as_deref()));
            let converted = converted.await.map_err(|problem| unread_refusal(&problem))?;
            facts.title = clean_title(&converted.title);
            clean_text(&converted.text)
        }
        None => clean_text(&html),
    };
    note_shown_urls(&state, &facts.title, &text);
    let mut output = render_text(request, &text, &facts, state.config().page_model.as_deref()).await?;
    add_images(&mut output, &view);
    Ok(output)
}

/// Asks a site's `robots.txt`, if the setting says so, before a browser opens a page of it.
pub(crate) async fn check_robots(url: &str, cleared: &Cleared) -> Result<(), Refusal> {
    let state = cleared.context().session.state::<WebState>();
    if !state.config().obey_robots {
        return Ok(());
    }
    let client = state.client().map_err(|problem| Refusal::new(Code::Fetch, problem))?;
    let asked = client.ask_robots(url, &FetchOptions::default(), &CallJudge(cleared.hosts())).await;
    asked.map_err(|error| fetch_refusal(&error))
}

/// Opens a WebSocket, under the rules for its host.
pub(crate) async fn open_socket(
    url: &str,
    protocols: &[String],
    cleared: &Cleared,
) -> Result<WebSocketReader, Refusal> {
    let client = cleared.context().session.state::<WebState>().client();
    let client = client.map_err(|problem| Refusal::new(Code::Fetch, problem))?;
    let (limits, judge) = (WebLimits::default(), CallJudge(cleared.hosts()));
    let opened = client.open_socket(url, protocols, &limits, &judge);
    tokio::select! {
        biased;
        () = cleared.cancel().cancelled() => Err(Refusal::new(Code::Cancelled, "the call was cancelled")),
        opened = opened => opened.map_err(|error| fetch_refusal(&error)),
    }
}

/// The refusal for a page whose text could not be made.
fn unread_refusal(problem: &FileProblem) -> Refusal {
    Refusal::new(Code::Fetch, format!("the page could not be read: {problem}"))
}

/// Fetches a page and renders the part of it that was asked for.
async fn fetch_plain(request: &WebPageRequest, cleared: &Cleared) -> CallResult {
    let started = Instant::now();
    let state = cleared.context().session.state::<WebState>();
    let config = state.config();
    let client = state.client().map_err(|problem| Refusal::new(Code::Fetch, problem))?;
    let judge = CallJudge(cleared.hosts());
    let (page, is_cached) = match client.cached(&request.url, &judge) {
        Some(cached) => (cached.map_err(|error| fetch_refusal(&error))?, true),
        None => {
            let mut options = FetchOptions::default();
            options.accept = Some(ACCEPTED_TYPES.to_owned());
            options.obey_robots = config.obey_robots;
            options.limits.total = request.timeout;
            let progress = cleared.progress().clone();
            let report = move |bytes: u64| progress.report(format!("{} KB\n", bytes.div_ceil(1_000)));
            let outcome = client.fetch(&request.url, &options, &judge, &report).await;
            match outcome.map_err(|error| fetch_refusal(&error))? {
                FetchOutcome::Page(page) => (page, false),
                FetchOutcome::OtherHost { from, to, status } => {
                    state.note_urls(&to);
                    return Ok(other_host_output(&from, &to, status));
                }
            }
        }
    };
    if page.status != 200 && !(200..300).contains(&page.status) {
        return Err(status_refusal(page.status, page.retry_after.as_deref(), page.is_challenge));
    }
    let mut facts = PageFacts::new(&page, is_cached, started);
    let form = request.form;
    let known = form.and_then(|form| page.stored_form(&form_name(form, request.selector.as_deref())));
    if let Some(known) = known {
        facts.title.clone_from(&known.title);
        return render_text(request, &known.text, &facts, config.page_model.as_deref()).await;
    }
    let work_page = Arc::clone(&page);
    let content = run_blocking(move || classify_content(&work_page)).await;
    let content = content.map_err(|problem| unread_refusal(&problem))?;
    let stored = match (content, form) {
        (PageContent::Image, _) => return render_image_page(&page, &facts).await,
        (PageContent::Pdf, _) => return render_pdf_page(&page, &facts, cleared).await,
        (PageContent::Binary, _) => return store_binary(&page, &facts, cleared),
        (PageContent::Html(html), Some(form)) => {
            convert_html(&page, html, form, request.selector.as_deref()).await?
        }
        (PageContent::Html(text) | PageContent::Text(text), _) => {
            Arc::new(StoredText::new(String::new(), clean_text(&text)))
        }
    };
    facts.title.clone_from(&stored.title);
    note_shown_urls(&state, &stored.title, &stored.text);
    render_text(request, &stored.text, &facts, config.page_model.as_deref()).await
}

/// Remembers the URLs of a result as named; a title is shown too, and may contain one.
fn note_shown_urls(state: &WebState, title: &str, text: &str) {
    state.note_urls(title);
    state.note_urls(text);
}

/// The notes about a page beside its text.
struct PageFacts {
    /// The title as it is shown; empty if there is none.
    title: String,
    /// Where it is, redirects followed.
    url: String,
    /// The status of the server's answer.
    status: u16,
    /// As the server says.
    content_type: Option<String>,
    /// The size of the page.
    bytes: usize,
    /// The page is larger than the limit.
    is_cut: bool,
    /// It was not fetched for this call.
    is_cached: bool,
    /// When the call began.
    started: Instant,
}

impl PageFacts {
    /// The notes about a page whose text is not made yet.
    fn new(page: &WebPage, is_cached: bool, started: Instant) -> Self {
        Self {
            title: String::new(),
            url: page.final_url().to_owned(),
            status: page.status,
            content_type: page.content_type.clone(),
            bytes: page.body.len(),
            is_cut: page.is_cut,
            is_cached,
            started,
        }
    }

    /// The structured result: the fields that hosts know, and those of ours.
    fn structured(&self, result: &str, is_truncated: bool) -> Value {
        json!({
            "bytes": self.bytes,
            "code": self.status,
            "codeText": status_text(self.status),
            "result": result,
            "durationMs": u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "url": self.url,
            "title": (!self.title.is_empty()).then_some(&self.title),
            "contentType": self.content_type,
            "truncated": is_truncated || self.is_cut,
            "cached": self.is_cached,
        })
    }
}

/// The name under which the page keeps a text that was made from it.
fn form_name(form: PageForm, selector: Option<&str>) -> String {
    format!("{form:?} {}", selector.unwrap_or_default())
}

/// Converts a page off the async threads, once for each form and selector.
async fn convert_html(
    page: &Arc<WebPage>,
    html: String,
    form: PageForm,
    selector: Option<&str>,
) -> Result<Arc<StoredText>, Refusal> {
    let name = form_name(form, selector);
    let (url, selector) = (page.final_url().to_owned(), selector.map(str::to_owned));
    let converted = run_blocking(move || convert_page(&html, Some(&url), form, selector.as_deref())).await;
    let converted = converted.map_err(|problem| unread_refusal(&problem))?;
    let stored = StoredText::new(clean_title(&converted.title), clean_text(&converted.text));
    let stored = Arc::new(stored);
    page.store_form(&name, Arc::clone(&stored));
    Ok(stored)
}

/// The part of a text that was asked for, marked as untrusted.
async fn render_text(
    request: &WebPageRequest,
    text: &str,
    facts: &PageFacts,
    model: Option<&dyn super::PageModel>,
) -> CallResult {
    let url = facts.url.as_str();
    let total = text.chars().count();
    if text.trim().is_empty() {
        let why = match &request.selector {
            Some(selector) => {
                format!("`{}` has no text that matches the selector `{selector}`", clean_line(url))
            }
            None if request.with_scripts => format!("`{}` has no text", clean_line(url)),
            None => {
                format!("`{}` has no text; set `render` to run its scripts in a browser", clean_line(url))
            }
        };
        return Ok(Output::text(why).display("Fetched 0 characters").structured(facts.structured("", false)));
    }
    if request.offset >= total {
        let reason = format!("the page has {total} characters, so there are none after {}", request.offset);
        return Err(Refusal::new(Code::PastEnd, reason).hint("use a smaller `offset`"));
    }
    let max_chars = request.max_chars.unwrap_or(DEFAULT_MAX_CHARS);
    let shown = cut_chars(text, request.offset, max_chars);
    let shown_count = shown.chars().count();
    let next = request.offset + shown_count;
    let omitted = total - next;
    if let (Some(model), Some(prompt), 0) = (model, &request.prompt, request.offset) {
        let page = match facts.title.as_str() {
            "" => shown.to_owned(),
            title => format!("title: {title}\n\n{shown}"),
        };
        let answer = model.answer(prompt, &page).await.map_err(|problem| {
            Refusal::new(Code::Fetch, format!("the model that answers from the page failed: {problem}"))
        })?;
        let answer = clean_text(&answer);
        let output = Output::text(wrap_untrusted_page(url, &facts.title, &answer))
            .display(format!("Fetched {shown_count} characters"));
        return Ok(output.structured(facts.structured(&answer, omitted > 0)));
    }
    let mut wrapped = wrap_untrusted_page(url, &facts.title, shown);
    if facts.is_cut {
        wrapped.push_str("\n[the page is larger than the limit, and what is beyond it was not fetched]");
    }
    if omitted > 0 {
        wrapped.push_str(&format!(
            "\n[to read on, set `offset` to {next}]\n\n[Content truncated: {omitted} characters omitted]"
        ));
    }
    let mut structured = facts.structured(shown, omitted > 0);
    if let (Value::Object(fields), true) = (&mut structured, omitted > 0) {
        fields.insert("nextOffset".to_owned(), json!(next));
    }
    Ok(Output::text(wrapped).display(format!("Fetched {shown_count} characters")).structured(structured))
}

/// A part of a text by characters.
fn cut_chars(text: &str, offset: usize, count: usize) -> &str {
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let start = places.nth(offset).unwrap_or(text.len());
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
    rest.get(..end).unwrap_or(rest)
}

/// An image, as `Read` shows one. Scaling one takes its time, so it is done off the async threads.
async fn render_image_page(page: &Arc<WebPage>, facts: &PageFacts) -> CallResult {
    let (url, work_page) = (clean_line(&facts.url), Arc::clone(page));
    let rendered = run_blocking(move || render_image(&url, work_page.body.clone())).await;
    let rendered = rendered.map_err(|problem| unread_refusal(&problem))?;
    let mut output = rendered.unwrap_or_else(|| Err(unreadable_refusal(facts, "an image")))?;
    output.display = Some(format!("Fetched an image of {} bytes", facts.bytes));
    output.structured = Some(facts.structured("", false));
    Ok(output)
}

/// The text of a PDF file, as `Read` shows it, marked as untrusted. Read off the async threads, like an image.
#[cfg(feature = "pdf")]
async fn render_pdf_page(page: &Arc<WebPage>, facts: &PageFacts, cleared: &Cleared) -> CallResult {
    let url = clean_line(&facts.url);
    let (cancel, work_page, name) = (cleared.cancel().clone(), Arc::clone(page), url.clone());
    let work = move || crate::read::render_pdf(&name, &work_page.body, &|| cancel.is_cancelled());
    let output = run_blocking(work).await.map_err(|problem| unread_refusal(&problem))??;
    let text = clean_text(&output.model_text());
    let display = format!("Fetched {} characters", text.chars().count());
    let structured = facts.structured(&text, false);
    Ok(Output::text(wrap_untrusted_page(&url, "", &text)).display(display).structured(structured))
}

/// The text of a PDF file, as `Read` shows it, marked as untrusted.
#[cfg(not(feature = "pdf"))]
async fn render_pdf_page(page: &Arc<WebPage>, facts: &PageFacts, cleared: &Cleared) -> CallResult {
    store_binary(page, facts, cleared)
}

/// Stores what cannot be shown. The name is ours: the server's could be that of a file that something else trusts.
fn store_binary(page: &WebPage, facts: &PageFacts, cleared: &Cleared) -> CallResult {
    let kind = media_type(page);
    let kind =
        if kind.is_empty() { "an unknown type".to_owned() } else { format!("`{}`", clean_line(&kind)) };
    let size = page.body.len();
    match cleared.store_result_file("bin", &page.body) {
        Some(Ok(path)) => {
            let text = format!(
                "the content is {kind}, {size} bytes, which cannot be shown; it is stored in `{path}`"
            );
            let mut output = Output::text(text.clone()).display(format!("Stored {size} bytes"));
            let uri = format!("file://{path}");
            output.content.push(OutputBlock::Resource { uri, name: path.to_string(), media_type: None });
            Ok(output.structured(facts.structured(&text, false)))
        }
        Some(Err(error)) => {
            Err(unreadable_refusal(facts, &kind).hint(format!("it could not be stored: {error}")))
        }
        None => Err(unreadable_refusal(facts, &kind)),
    }
}

/// The refusal for content that cannot be shown.
fn unreadable_refusal(facts: &PageFacts, kind: &str) -> Refusal {
    let url = clean_line(&facts.url);
    Refusal::new(Code::Fetch, format!("`{url}` is {kind}, which cannot be shown as text"))
        .hint("fetch a page, text, an image or a PDF")
}

/// The result for a redirect to another host: both addresses, and what to do.
fn other_host_output(from: &str, to: &str, status: u16) -> Output {
    let (from, to) = (clean_line(from), clean_line(to));
    let text = format!(
        "`{from}` redirects to another host, which was not asked: `{to}`. To fetch it, make a call with that URL."
    );
    let structured = json!({
        "bytes": 0, "code": status, "codeText": status_text(status), "result": text, "durationMs": 0, "url": from,
        "redirect": to, "truncated": false, "cached": false,
    });
    Output::text(text).display(format!("Redirected to {to}")).structured(structured)
}

/// How long a server asks to wait: a number of seconds, or until a date. `None` if it does not say.
pub(super) fn describe_wait(retry_after: &str) -> Option<String> {
    let wait = clean_line(retry_after);
    let wait = wait.trim();
    match wait {
        "" => None,
        seconds if seconds.bytes().all(|byte| byte.is_ascii_digit()) => Some(format!("{seconds} s")),
        date => Some(format!("until {date}")),
    }
}

/// The refusal for a page with an error status.
fn status_refusal(status: u16, retry_after: Option<&str>, is_challenge: bool) -> Refusal {
    let mut reason = format!("HTTP {status}: {}", status_text(status));
    if let Some(wait) = retry_after.and_then(describe_wait) {
        reason.push_str(&format!("; the server asks to wait {wait}"));
    }
    if is_challenge {
        reason.push_str("; the site answers automated requests with a challenge");
    }
    let refusal = Refusal::new(Code::Http, reason);
    match status {
        401 | 403 => refusal
            .hint("the page needs credentials, or does not want automated requests; use another source"),
        404 | 410 => refusal.hint("check the URL, or search for the page"),
        429 | 503 => refusal.hint("wait, then try once more"),
        _ => refusal,
    }
}

/// The refusal for a fetch without a result.
pub(super) fn fetch_refusal(error: &FetchError) -> Refusal {
    let refusal = Refusal::new(Code::Fetch, clean_line(&error.to_string()));
    match error {
        FetchError::TimedOut { .. } => refusal.hint("raise `timeout` (at most 120 seconds), or use another source"),
        FetchError::Paced { .. } => refusal.hint("wait, or fetch from other hosts meanwhile"),
        FetchError::Robots(_) => refusal.hint("use another source, or ask the user to fetch it"),
        FetchError::Unresolved { .. } => refusal.hint("check the spelling of the host"),
        FetchError::Unreachable { .. } => {
            refusal.hint("check the host and the port, and that the server runs")
        }
        FetchError::Incomplete { .. } => refusal.hint("fetch it again, or use another source"),
        FetchError::Refused(_) => refusal
            .hint("a host that is not public must be named in an allow rule `WebFetch(domain:HOST)` or in `preApproval.allowPrivate`"),
        _ => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_names_are_upgraded() {
        for (given, fetched) in [
            ("http://docs.rs/x", "https://docs.rs/x"),
            ("HTTP://docs.rs\\x", "https://docs.rs\\x"),
            ("https://docs.rs/", "https://docs.rs/"),
            ("http://docs.rs:80/", "http://docs.rs:80/"),
            ("http://docs.rs:8080/", "http://docs.rs:8080/"),
            ("http://localhost/", "http://localhost/"),
            ("http://127.0.0.1/", "http://127.0.0.1/"),
            ("http://app.test/", "http://app.test/"),
            ("http://nas.lan/", "http://nas.lan/"),
            ("ftp://docs.rs/", "ftp://docs.rs/"),
        ] {
            assert_eq!(upgrade_scheme(given), fetched, "{given}");
        }
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_or_a_date() {
        assert_eq!(describe_wait("7").as_deref(), Some("7 s"));
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        assert_eq!(describe_wait(date), Some(format!("until {date}")));
        assert_eq!(describe_wait(" "), None);
    }

    proptest::proptest! {
        #[test]
        fn parts_follow_each_other_without_gap(text in "(?s).{1,80}", count in 1usize..20) {
            let total = text.chars().count();
            let mut whole = String::new();
            let mut offset = 0;
            while offset < total {
                let part = cut_chars(&text, offset, count);
                proptest::prop_assert!(part.chars().count() <= count);
                whole.push_str(part);
                offset += part.chars().count();
            }
            proptest::prop_assert_eq!(whole, text);
        }
    }
}
