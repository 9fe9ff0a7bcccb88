//! The browser tools on one page, with a real browser.

use crate::main::web_browser::{FixedPageServer, has_browser};
use crate::main::web_fixture::web_session;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, Gate, GateParts, QuestionAnswer, QuestionOutcome,
    QuestionRequest,
};
use toolgate_policy::RawPolicy;
use toolgate_policy::url::FetchSettings;
use toolgate_proto::{Code, OutputBlock};
use toolgate_tools::{BROWSER_TOOLS, Toolset, register};

const HTML: &str = "text/html; charset=utf-8";

/// A user who answers questions in one way, and remembers them.
struct AnsweringUser {
    answer: String,
    asked: Mutex<Vec<String>>,
}

impl Approver for AnsweringUser {
    fn name(&self) -> &str {
        "user"
    }

    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::No { message: None }))
    }

    fn ask_questions<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        self.asked.lock().unwrap().extend(request.questions.iter().map(|question| question.question.clone()));
        let answer = QuestionAnswer::new(vec![self.answer.clone()]);
        Box::pin(std::future::ready(QuestionOutcome::Answered(vec![answer])))
    }
}

fn gate_with_user(port: u16, answer: &str) -> (Arc<Gate>, Arc<AnsweringUser>) {
    let hosts = vec![format!("127.0.0.1:{port}")];
    let fetch = FetchSettings::default().with_allowed_domains(hosts.clone()).with_allow_private(hosts);
    let user = Arc::new(AnsweringUser { answer: answer.to_owned(), asked: Mutex::default() });
    let approver: Arc<dyn Approver> = Arc::clone(&user) as Arc<dyn Approver>;
    let parts = GateParts::default()
        .with_policy(RawPolicy::default().with_fetch(fetch))
        .with_approvers(vec![approver])
        .with_approval_timeout(Duration::from_secs(30));
    let gate = Gate::new(parts);
    register(&gate, Toolset::Claude).unwrap();
    register(&gate, Toolset::Plain).unwrap();
    (Arc::new(gate), user)
}

fn shop() -> FixedPageServer {
    FixedPageServer::start(&[
        (
            "/",
            HTML,
            "<title>Shop</title><h1>Welcome</h1><form action=/found><input name=q placeholder='what'>\
             <input type=password id=pw><button>Search</button></form><button onclick=\"setTimeout(() => late.textContent = 'It is late', 300)\">\
             Go on</button><p id=late></p><a href=/second>Second page</a><a href='http://localhost:$PORT/'>Away</a>",
        ),
        ("/second", HTML, "<title>Two</title><h1>The second page</h1><p>with text</p>"),
        ("/found", HTML, "<title>Found</title><h1>What was found</h1>"),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_opened_read_clicked_and_typed_into() {
    if !has_browser() {
        return;
    }
    let server = shop();
    let (gate, user) = gate_with_user(server.port, "Do not type it");
    let fixture = web_session(&gate);
    let refusal = fixture.call("BrowserRead", &json!({})).await.unwrap_err();
    assert!(refusal.reason.contains("no page is open"), "{refusal}");

    let opened = fixture.call("BrowserOpen", &json!({ "url": server.url("/") })).await.unwrap().model_text();
    assert!(opened.starts_with("[web content ") && opened.contains("Welcome"), "{opened}");
    assert!(opened.contains("`input[name=\"q\"]` what") && opened.contains("Go on"), "{opened}");

    // What a click changes is waited for.
    fixture.call("BrowserClick", &json!({ "text": "Go on" })).await.unwrap();
    fixture.call("BrowserWait", &json!({ "text": "It is late", "timeout": 30 })).await.unwrap();
    let read = fixture.call("browser_read", &json!({ "selector": "#late" })).await.unwrap().model_text();
    assert!(read.contains("It is late"), "{read}");
    let shown = fixture.call("BrowserScreenshot", &json!({})).await.unwrap();
    assert!(shown.content.iter().any(|block| matches!(block, OutputBlock::Image { .. })));

    // A password field asks, and a no is a no.
    let secret = json!({ "selector": "#pw", "text": "hunter2" });
    let refusal = fixture.call("BrowserType", &secret).await.unwrap_err();
    assert_eq!(refusal.code, Code::Declined, "{refusal}");
    assert_eq!(user.asked.lock().unwrap().len(), 1);
    assert!(!format!("{refusal:?}").contains("hunter2"));

    // An ordinary field does not.
    let typed = json!({ "selector": "input[name=q]", "text": "rust", "submit": true });
    let found = fixture.call("BrowserType", &typed).await.unwrap().model_text();
    assert!(found.contains("What was found") && found.contains("/found?q=rust"), "{found}");
    assert_eq!(user.asked.lock().unwrap().len(), 1);
    assert!(server.seen().iter().any(|line| line.starts_with("GET /found?q=rust")), "{:?}", server.seen());

    // A click that leads to a host that no rule allows ends there.
    fixture.call("BrowserOpen", &json!({ "url": server.url("/") })).await.unwrap();
    let away = fixture.call("BrowserClick", &json!({ "text": "Away" })).await;
    let text = away.map_or_else(|refusal| refusal.to_string(), |output| output.model_text());
    assert!(text.contains("localhost") && !text.contains("Welcome"), "{text}");
    let refusal = fixture.call("BrowserRead", &json!({})).await.unwrap_err();
    assert!(refusal.code != Code::Fetch, "the page is judged where it is now: {refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_lets_text_into_a_password_field() {
    if !has_browser() {
        return;
    }
    let server = shop();
    let (gate, user) = gate_with_user(server.port, "Type it");
    let fixture = web_session(&gate);
    fixture.call("browser_open", &json!({ "url": server.url("/") })).await.unwrap();
    fixture.call("browser_click", &json!({ "text": "Second page" })).await.unwrap();
    let read = fixture.call("browser_read", &json!({})).await.unwrap().model_text();
    assert!(read.contains("The second page"), "{read}");
    fixture.call("browser_open", &json!({ "url": server.url("/") })).await.unwrap();
    fixture.call("browser_type", &json!({ "selector": "#pw", "text": "x" })).await.unwrap();
    assert_eq!(user.asked.lock().unwrap().len(), 1);
    let refusal = fixture.call("browser_click", &json!({ "selector": "#nothing" })).await.unwrap_err();
    assert!(refusal.reason.contains("has no element"), "{refusal}");
}

#[test]
fn every_browser_tool_is_in_the_list_that_hosts_hide() {
    for toolset in Toolset::ALL {
        let gate = Gate::new(GateParts::default());
        register(&gate, toolset).unwrap();
        let names = gate.registered_names();
        let found: Vec<&String> =
            names.iter().filter(|name| name.to_ascii_lowercase().starts_with("browser")).collect();
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(found.iter().all(|name| BROWSER_TOOLS.contains(&name.as_str())), "{found:?}");
    }
}
