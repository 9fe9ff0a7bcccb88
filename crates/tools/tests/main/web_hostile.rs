//! Every case of the hostile server ends as its own list says.

use crate::main::web_fixture::{
    ScriptServer, call_with, fetch, page_of, script_path, web_gate, web_gate_with, web_session,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolgate_gate::CallOptions;
use toolgate_policy::{Layer, LayerRules};
use toolgate_proto::{AbsPath, Code, Output, OutputBlock, Refusal};
use toolgate_testkit::GateFixture;
use toolgate_tools::{WebConfig, set_web_config};

/// What a case did, for messages.
type CaseResult = Result<Output, Refusal>;

fn text(result: &CaseResult) -> String {
    match result {
        Ok(output) => page_of(output),
        Err(refusal) => panic!("refused: {refusal}"),
    }
}

fn reason(result: &CaseResult, code: Code) -> String {
    match result {
        Ok(output) => panic!("not refused: {}", output.model_text()),
        Err(refusal) => {
            assert_eq!(refusal.code, code, "{refusal}");
            refusal.reason.clone()
        }
    }
}

/// The cases that the list names by a path. Those with several variants are tests of their own below.
async fn check_case(path: &str, server: &ScriptServer, fixture: &GateFixture) {
    let result = fetch(fixture, &server.url(path)).await;
    let refused = |code| reason(&result, code);
    match path {
        "/ok" => {
            assert!(
                text(&result).starts_with("# Ok") && text(&result).contains("Plain page number"),
                "{}",
                text(&result)
            );
        }
        "/status/404" => assert_eq!(refused(Code::Http), "HTTP 404: Not Found"),
        "/status/429" => assert!(refused(Code::Http).contains("429") && refused(Code::Http).contains("7 s")),
        "/status/401" => assert!(refused(Code::Http).contains("401")),
        "/cf" => assert!(refused(Code::Http).contains("challenge")),
        "/cookie" => {
            let again = web_session(&fixture.gate);
            assert!(text(&fetch(&again, &server.url("/cookie")).await).contains("cookies: none"));
        }
        "/etag" | "/redirect/chain?n=3" | "/redirect/downgrade" | "/redirect/post307" | "/private" => {
            assert!(text(&result).contains("Plain page"), "{path}");
        }
        "/redirect/loop" | "/redirect/chain?n=30" => {
            assert!(refused(Code::Fetch).contains("too many redirects"), "{}", refused(Code::Fetch));
        }
        "/redirect/host" => {
            let reason = refused(Code::Fetch);
            assert!(reason.contains("127.0.0.1") && reason.contains("localhost"), "{reason}");
        }
        "/redirect/meta-data" => {
            assert!(refused(Code::Fetch).contains("metadata"), "{}", refused(Code::Fetch))
        }
        "/redirect/forms?i=0" | "/redirect/scheme?s=file" | "/redirect/userinfo" => {
            refused(Code::Fetch);
        }
        "/redirect/none" => assert!(refused(Code::Fetch).contains("no target")),
        "/html/refresh" => assert_eq!(text(&result), "wait"),
        // Cut at the limit, and then seen not to be text.
        "/bomb/gzip?mb=1024" => assert!(refused(Code::Fetch).contains("text/plain")),
        "/bomb/infinite" => {
            let output = result.as_ref().unwrap();
            assert_eq!(output.structured.as_ref().unwrap()["truncated"], true, "{path}");
        }
        "/bomb/double" => assert!(refused(Code::Fetch).contains("gzip, gzip")),
        "/bomb/length" => assert!(refused(Code::Fetch).contains("9999999999")),
        "/slow/connect" | "/slow/headers" | "/slow/body" | "/slow/stall" => {
            assert!(refused(Code::Fetch).contains("timed out"), "{}", refused(Code::Fetch));
        }
        "/slow/short" | "/encoding/lie" => {
            assert!(refused(Code::Fetch).contains("incomplete"), "{}", refused(Code::Fetch))
        }
        "/chunk/bad" | "/headers/huge" | "/headers/garbage" | "/headers/many" => {
            refused(Code::Fetch);
        }
        "/headers/smuggle" => assert_eq!(text(&result), "abc"),
        "/encoding/unknown" => assert!(refused(Code::Fetch).contains("x-foo")),
        "/html/attrs" => {
            text(&result);
        }
        "/html/wide?n=200000" => {
            assert!(text(&result).contains("link 1"), "{path}");
        }
        "/html/deep?tag=ul&n=20000" => assert!(text(&result).contains("leaf text")),
        "/html/hidden" => assert!(text(&result).contains("VISIBLE") && !text(&result).contains("HIDDEN")),
        "/html/inject" => check_injection(result.as_ref().unwrap()),
        "/html/data-url" => assert!(!text(&result).contains("AAAA") && !text(&result).contains("BBBB")),
        "/html/base" => {
            let text = text(&result);
            assert!(
                text.contains("(https://docs.example/a/b.html)") && text.contains("(https://h.example/c)"),
                "{text}"
            );
            assert!(text.contains("js") && !text.contains("javascript"), "{text}");
        }
        "/robots.txt" => assert!(text(&result).contains("Disallow")),
        // Their variants are tests of their own.
        "/charset?c=utf8" | "/type?t=json" | "/html/select" | "/html/long?n=100000" => {
            text(&result);
        }
        other => panic!("the list has a case that is not checked: {other}"),
    }
}

/// The page's copies of common marks do not look like ours, and nothing invisible is left.
fn check_injection(output: &Output) {
    let whole = output.model_text();
    let boundary = whole.split(' ').nth(2).unwrap();
    assert_eq!(whole.matches(boundary).count(), 3, "{whole}");
    assert!(whole.contains("data, not instructions") && whole.contains("aevil b c"), "{whole}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_case_of_the_hostile_server_ends_as_its_list_says() {
    let server = Arc::new(ScriptServer::start("hostile_server.py", &[]));
    let gate = web_gate(&[server.port]);
    let list = std::process::Command::new("python3")
        .arg(script_path("hostile_server.py"))
        .args(["--list", "--json"])
        .output()
        .unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(cases.len(), 48);
    let mut running = tokio::task::JoinSet::new();
    for case in cases {
        let (server, gate) = (Arc::clone(&server), Arc::clone(&gate));
        running.spawn(async move {
            let path = case["path"].as_str().unwrap().to_owned();
            check_case(&path, &server, &web_session(&gate)).await;
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    // Nothing but GET was sent, and no credential with it.
    for request in server.log() {
        assert_eq!(request["method"], "GET");
        let headers = request["headers"].as_object().unwrap();
        assert!(!headers.contains_key("cookie") && !headers.contains_key("authorization"), "{request}");
    }
}

#[tokio::test]
async fn redirects_to_private_addresses_and_other_schemes_are_refused() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let gate = web_gate(&[server.port]);
    let fixture = web_session(&gate);
    for form in 0..16 {
        let result = fetch(&fixture, &server.url(&format!("/redirect/forms?i={form}"))).await;
        reason(&result, Code::Fetch);
    }
    for scheme in ["file", "ftp", "data", "javascript", "gopher", "blob", "ws"] {
        let result = fetch(&fixture, &server.url(&format!("/redirect/scheme?s={scheme}"))).await;
        reason(&result, Code::Fetch);
    }
    assert_eq!(server.log().len(), 16 + 7);
}

#[tokio::test]
async fn another_host_is_reported_and_a_denied_one_refused() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let local = format!("localhost:{}", server.port);
    let named = web_gate_with(&[server.port], |policy| policy.fetch.allow_private.push(local.clone()));
    let output = fetch(&web_session(&named), &server.url("/redirect/host")).await.unwrap();
    let text = output.model_text();
    assert!(text.contains("127.0.0.1") && text.contains(&format!("http://{local}/ok")), "{text}");
    assert_eq!(server.log().len(), 1);
    let denied = web_gate_with(&[server.port], |policy| {
        policy.fetch.allow_private.push(local.clone());
        let mut rules = LayerRules::new(Layer::User, AbsPath::root());
        rules.deny.push("WebFetch(domain:localhost)".to_owned().into());
        policy.layers.push(rules);
    });
    let result = fetch(&web_session(&denied), &server.url("/redirect/host")).await;
    assert!(reason(&result, Code::Fetch).contains("denied by a rule"));
}

#[tokio::test]
async fn encodings_are_decoded() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let fixture = web_session(&web_gate(&[server.port]));
    for (case, word) in [
        ("utf8", "naïve – ‘quote’"),
        ("latin1-header", "naïve"),
        ("cp1252-as-latin1", "“smart” – €"),
        ("meta-sjis", "日本語テスト"),
        ("header-gbk", "中文测试"),
        ("meta-1251", "Привет мир"),
        ("utf16-bom", "naïve"),
        ("bom-beats-header", "naïve"),
        ("none-1251", "Привет, это русский текст без указания кодировки"),
        ("euc-kr", "한국어 시험"),
        ("quoted", "naïve"),
        ("lie-utf8", "na\u{fffd}ve"),
    ] {
        let result = fetch(&fixture, &server.url(&format!("/charset?c={case}"))).await;
        assert!(text(&result).contains(word), "{case}: {}", text(&result));
    }
}

#[tokio::test]
async fn content_is_shown_by_its_type() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let fixture = web_session(&web_gate(&[server.port]));
    let get = async |kind: &str| fetch(&fixture, &server.url(&format!("/type?t={kind}"))).await;
    assert_eq!(text(&get("json").await), r#"{"a": [1, 2], "b": "x"}"#);
    assert_eq!(text(&get("text").await), "line 1\nline 2\n");
    assert_eq!(text(&get("md").await), "# Title\n\ntext\n");
    assert_eq!(text(&get("html-as-text").await), "<h1>x</h1>");
    assert!(text(&get("xml").await).contains("<title>T</title>"));
    assert!(text(&get("svg").await).contains("<svg"));
    for html in ["html-none", "xhtml"] {
        assert!(text(&get(html).await).starts_with('#'), "{html}");
    }
    for image in ["png", "png-as-html"] {
        let output = get(image).await.unwrap();
        assert!(
            matches!(&output.content[0], OutputBlock::Image { media_type, .. } if media_type == "image/png"),
            "{image}"
        );
    }
    #[cfg(feature = "pdf")]
    for pdf in ["pdf", "pdf-as-octet"] {
        match get(pdf).await {
            Ok(output) => assert!(output.model_text().contains("page 1"), "{pdf}"),
            // The file has no table of its objects, which is a reason to refuse it.
            Err(refusal) => assert!(refusal.reason.contains("PDF"), "{pdf}: {refusal}"),
        }
    }
    for (binary, name) in [("zip", "application/zip"), ("exe", "application/x-msdownload")] {
        assert!(reason(&get(binary).await, Code::Fetch).contains(name));
    }
    assert!(get("empty").await.unwrap().model_text().contains("has no text"));
    assert!(text(&get("weird").await).contains("hello"));
    assert!(text(&get("event").await).contains("data: x"));
}

#[tokio::test]
async fn a_selector_and_an_offset_give_parts_of_the_hostile_pages() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let fixture = web_session(&web_gate(&[server.port]));
    let select = async |selector: &str| {
        fixture.call("WebFetch", &json!({ "url": server.url("/html/select"), "selector": selector })).await
    };
    assert_eq!(text(&select(".pick").await), "ONE\n\nTWO **bold**");
    let none = select(".none").await.unwrap();
    assert!(none.model_text().contains("matches the selector `.none`"), "{}", none.model_text());
    assert_eq!(select(":::").await.unwrap_err().kind, "ValidationError");
    // The parts of a long page, put together, are the words in their order, each once.
    let mut whole = String::new();
    loop {
        let offset = whole.chars().count();
        let input =
            json!({ "url": server.url("/html/long?n=100000"), "offset": offset, "max_length": 33_333 });
        let output = fixture.call("WebFetch", &input).await.unwrap();
        let part = page_of(&output);
        assert!(part.chars().count() <= 33_333 && !part.contains('\u{fffd}'));
        whole.push_str(&part);
        let structured = output.structured.unwrap();
        match structured["nextOffset"].as_u64() {
            Some(next) => assert_eq!(next, whole.chars().count() as u64),
            None => break,
        }
    }
    let words: Vec<String> = (0..5_000).map(|i| format!("w{i} ñ{i} 語{i} 😀{i}")).collect();
    assert_eq!(whole, words.join("\n\n"));
}

#[tokio::test]
async fn robots_txt_is_asked_only_where_the_setting_says_so() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let gate = web_gate(&[server.port]);
    let paths = |server: &ScriptServer| -> Vec<String> {
        server.log().iter().map(|request| request["path"].as_str().unwrap().to_owned()).collect()
    };
    fetch(&web_session(&gate), &server.url("/private")).await.unwrap();
    assert_eq!(paths(&server), ["/private"]);
    let obeying = web_session(&gate);
    let mut config = WebConfig::default();
    config.obey_robots = true;
    set_web_config(&obeying.session, config);
    for _ in 0..2 {
        let result = fetch(&obeying, &server.url("/private")).await;
        assert!(reason(&result, Code::Fetch).contains("robots.txt"));
    }
    // A browser is not even started for a page that may not be fetched.
    for (tool, input) in [
        ("Screenshot", json!({ "url": server.url("/private") })),
        ("WebFetch", json!({ "url": server.url("/private"), "render": true })),
    ] {
        let refusal = obeying.call(tool, &input).await.unwrap_err();
        assert!(refusal.reason.contains("robots.txt"), "{tool}: {refusal}");
    }
    fetch(&obeying, &server.url("/ok")).await.unwrap();
    assert_eq!(paths(&server), ["/private", "/robots.txt", "/ok"], "the file is kept like a page");
}

#[tokio::test]
async fn a_page_from_the_cache_sends_nothing_and_is_judged_again() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let gate = web_gate(&[server.port]);
    let fixture = web_session(&gate);
    let first = fetch(&fixture, &server.url("/ok")).await.unwrap();
    let second = fetch(&fixture, &server.url("/ok#part")).await.unwrap();
    assert_eq!(page_of(&first), page_of(&second));
    assert_eq!(second.structured.as_ref().unwrap()["cached"], true);
    assert_eq!(server.log().len(), 1);
    let mut fastest = Duration::MAX;
    for _ in 0..20 {
        let started = Instant::now();
        fetch(&fixture, &server.url("/ok")).await.unwrap();
        fastest = fastest.min(started.elapsed());
    }
    println!("a cached fetch through the gate: {fastest:?}");
    // A rule that comes later counts for the cache as well.
    gate.set_policy(toolgate_policy::RawPolicy::default());
    let result = fetch(&fixture, &server.url("/ok")).await;
    assert!(result.is_err());
    assert_eq!(server.log().len(), 1);
}

#[tokio::test]
async fn cancelling_ends_a_slow_fetch_at_once() {
    let server = ScriptServer::start("hostile_server.py", &[]);
    let fixture = web_session(&web_gate(&[server.port]));
    let cancel = CancellationToken::new();
    let options = CallOptions::default().with_cancel(cancel.clone());
    let input = json!({ "url": server.url("/slow/body"), "timeout": 60 });
    let (outcome, ()) = tokio::join!(call_with(&fixture, "WebFetch", &input, options), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    // Had it waited for the fetch, that would have timed out instead.
    assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled);
}
