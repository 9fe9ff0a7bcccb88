//! One search, from the query to the result.

use super::fetch_page::{CallJudge, describe_wait, fetch_refusal};
use super::search_service::{SearchQuery, SearchRow, SearchService};
use super::untrusted_text::{clean_line, wrap_untrusted};
use super::web_config::{SearchConfig, WebConfig};
use super::web_state::WebState;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use toolgate_gate::Cleared;
use toolgate_net::web::{WebLimits, WebResponse};
use toolgate_process::{HookCommand, HookProgram, run_hook};
use toolgate_proto::host_pattern::{HostPattern, parse_host};
use toolgate_proto::{CallResult, Code, Output, Refusal, format_count};
use url::Url;

/// Characters of a title.
const MAX_TITLE_CHARS: usize = 300;
/// Characters of a snippet.
const MAX_SNIPPET_CHARS: usize = 1_000;
/// A shorter key is not looked for in texts: it would be found in ordinary words.
const MIN_REDACTED_KEY_CHARS: usize = 8;
/// How long the program that prints a key may take.
const KEY_TIMEOUT: Duration = Duration::from_secs(10);

/// The service that is set, with its address; the refusal says how to set one.
pub(crate) fn search_service(config: &SearchConfig) -> Result<(SearchService, String), Refusal> {
    let Some(service) = config.service else {
        return Err(Refusal::new(Code::Search, "no search service is set").hint(
            "the user can set `web.search.provider` in `~/.config/toolgate/settings.json`: brave, tavily, exa, serper, \
             kagi, perplexity or jina with a key in the environment (such as BRAVE_API_KEY), or searxng with `web.search.baseUrl` for a server of your own \
             (`docker run -p 8888:8080 searxng/searxng`, with `json` in its `search.formats`)",
        ));
    };
    let base = config.base_url.clone().or_else(|| service.default_base().map(str::to_owned));
    let base = base.ok_or_else(|| {
        Refusal::new(Code::Search, format!("the search service {} has no address", service.as_str()))
            .hint("the user can set `web.search.baseUrl` in `~/.config/toolgate/settings.json`")
    })?;
    Ok((service, base))
}

/// Searches and renders the results.
pub(crate) async fn search_web(query: SearchQuery, cleared: &Cleared) -> CallResult {
    let started = Instant::now();
    let state = cleared.context().session.state::<WebState>();
    let config = state.config();
    let (service, base) = search_service(&config.search)?;
    let key = find_key(service, &config, cleared).await?;
    let redacted = |text: String| {
        if key.chars().count() >= MIN_REDACTED_KEY_CHARS { text.replace(&key, "[key]") } else { text }
    };
    let failed = |mut refusal: Refusal| {
        refusal.reason = redacted(refusal.reason);
        refusal
    };
    let client = state.client().map_err(|problem| Refusal::new(Code::Search, problem))?;
    let request =
        service.request(&base, &key, &query).map_err(|problem| Refusal::new(Code::Search, problem))?;
    let mut limits = WebLimits::default();
    limits.total = config.search.timeout;
    limits.idle = limits.idle.min(limits.total);
    let response = client.exchange(request, &limits, &CallJudge(cleared.hosts())).await.map_err(|error| {
        let refusal = fetch_refusal(&error);
        failed(Refusal::new(
            Code::Search,
            format!("{} cannot be asked: {}", service.as_str(), refusal.reason),
        ))
    })?;
    if response.status != 200 {
        return Err(failed(status_refusal(service, &response)));
    }
    let rows = if response.is_cut { None } else { service.read_rows(&response.body) };
    let Some(rows) = rows else {
        let reason = format!("{} did not answer with a list of results", service.as_str());
        return Err(
            Refusal::new(Code::Search, reason).hint("try again later, or ask the user to check the service")
        );
    };
    let rows: Vec<SearchRow> = select_rows(rows, &query)
        .into_iter()
        .map(|row| SearchRow {
            title: redacted(row.title),
            url: redacted(row.url),
            snippet: redacted(row.snippet),
        })
        .collect();
    let text = render_rows(&rows);
    state.note_urls(&text);
    let structured = structured_results(&rows, &query, cleared, started);
    let shown = if rows.is_empty() {
        "no results".to_owned()
    } else {
        wrap_untrusted(&format!("a search by {}", service.as_str()), &text)
    };
    Ok(Output::text(shown)
        .display(format!("Found {}", format_count(rows.len() as u64, "result", "results")))
        .structured(structured))
}

/// The machine-readable form of the results.
fn structured_results(rows: &[SearchRow], query: &SearchQuery, cleared: &Cleared, started: Instant) -> Value {
    let results: Vec<_> = rows
        .iter()
        .map(|row| json!({ "title": row.title, "url": row.url, "snippet": row.snippet }))
        .collect();
    json!({
        "query": query.text,
        "results": [{ "tool_use_id": cleared.call().as_str(), "content": results }],
        "durationSeconds": started.elapsed().as_secs_f64(),
        "searchCount": 1,
    })
}

/// The key of a service: printed by the configured program, or in its environment variable.
async fn find_key(service: SearchService, config: &WebConfig, cleared: &Cleared) -> Result<String, Refusal> {
    if let Some(command) = &config.search.key_command {
        let output = run_hook(HookCommand {
            program: HookProgram::Shell(command.clone()),
            cwd: cleared.context().workspace.cwd.clone(),
            env: config.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            stdin: Vec::new(),
            timeout: KEY_TIMEOUT,
            fault: None,
        });
        // What the program printed may be the key, so no part of it is shown.
        let failed = || {
            Refusal::new(Code::Search, "the program `web.search.keyCommand` printed no key").hint(
                "ask the user to run it in a terminal (`toolgate settings show` names the file that sets it)",
            )
        };
        let output = output.await.map_err(|_| failed())?;
        let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        return if key.is_empty() || output.code != Some(0) { Err(failed()) } else { Ok(key) };
    }
    let Some(variable) = config.search.key_variable.as_deref().or(service.key_variable()) else {
        return Ok(String::new());
    };
    let key = config.environment.get(variable).map(|key| key.trim()).filter(|key| !key.is_empty());
    key.map(str::to_owned).ok_or_else(|| {
        Refusal::new(Code::Search, format!("the search service {} needs a key", service.as_str()))
            .hint(format!("the user can set the environment variable {variable}"))
    })
}

/// The refusal for an answer that is no result. The service's own text is not shown: it may repeat the key.
fn status_refusal(service: SearchService, response: &WebResponse) -> Refusal {
    let name = service.as_str();
    let body = String::from_utf8_lossy(&response.body).to_ascii_lowercase();
    let is_used_up = matches!(response.status, 402 | 432 | 433)
        || body.contains("quota_limited")
        || body.contains("not enough credits");
    let refuse = |reason: String, hint: &str| Refusal::new(Code::Search, reason).hint(hint);
    match response.status {
        _ if is_used_up => refuse(
            format!("the credit at {name} is used up"),
            "ask the user to add credit or to set another service",
        ),
        429 => {
            let wait = response.retry_after.as_deref().and_then(describe_wait);
            let wait = wait.map(|wait| format!("; it asks to wait {wait}")).unwrap_or_default();
            refuse(format!("{name} limits how often it is asked{wait}"), "wait, then try once more")
        }
        202 => refuse(
            format!("{name} wants to know whether a human asks"),
            "ask the user to set another search service: this one has no contract for programs",
        ),
        403 if service == SearchService::Searxng => refuse(
            format!("{name} answered HTTP 403: it does not serve JSON"),
            "the user can add `json` to `search.formats` in the server's settings.yml",
        ),
        401 | 403 | 422 if service.key_variable().is_none() => refuse(
            format!("{name} refused the request (HTTP {})", response.status),
            "ask the user to check the service, or to set another one",
        ),
        401 | 403 | 422 => refuse(
            format!("{name} refused the request (HTTP {}): the key may be wrong", response.status),
            "ask the user to check the key of the search service",
        ),
        300..=399 => refuse(
            format!(
                "{name} answered with a redirect, which is not followed: it would carry the {} elsewhere",
                if service.key_variable().is_some() { "key" } else { "query" }
            ),
            "ask the user to check `web.search.baseUrl` (`toolgate settings show` names its file)",
        ),
        status => refuse(
            format!("{name} answered HTTP {status}"),
            "try again later, or ask the user to check the service",
        ),
    }
}

/// The results to show: addresses of the web, each once, of the domains that were asked for, cut and without markup.
fn select_rows(rows: Vec<SearchRow>, query: &SearchQuery) -> Vec<SearchRow> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for row in rows {
        let Some(url) =
            Url::parse(row.url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
        else {
            continue;
        };
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || !is_wanted(&url, query) || !seen.insert(url.to_string()) {
            continue;
        }
        let title = strip_markup(&row.title, MAX_TITLE_CHARS);
        let title = if title.is_empty() { url.host_str().unwrap_or("untitled").to_owned() } else { title };
        out.push(SearchRow {
            title,
            url: url.to_string(),
            snippet: strip_markup(&row.snippet, MAX_SNIPPET_CHARS),
        });
        if out.len() >= query.count {
            break;
        }
    }
    out
}

/// Whether a result is of an allowed domain and of no blocked one, label by label.
fn is_wanted(url: &Url, query: &SearchQuery) -> bool {
    let Some(host) = url.host_str().and_then(parse_host) else { return false };
    let is_of = |domain: &String| {
        let domain = domain.trim_start_matches("*.");
        [domain.to_owned(), format!("*.{domain}")]
            .iter()
            .any(|pattern| HostPattern::parse(pattern).is_ok_and(|pattern| pattern.matches(&host)))
    };
    (query.allowed.is_empty() || query.allowed.iter().any(is_of)) && !query.blocked.iter().any(is_of)
}

/// A text without tags, entities and control characters, on one line.
fn strip_markup(text: &str, max_chars: usize) -> String {
    let start: String = text.chars().take(max_chars * 4).collect();
    let plain = dom_query::Document::fragment(start.as_str()).text().to_string();
    let line = clean_line(&plain);
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(&line)),
        None => line,
    }
}

/// The results as numbered paragraphs.
fn render_rows(rows: &[SearchRow]) -> String {
    let lines: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| format!("{}. {}\n   {}\n   {}", index + 1, row.title, row.url, row.snippet))
        .collect();
    lines.join("\n\n")
}
