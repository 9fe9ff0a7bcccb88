//! Searches against stand-ins of the services, with every way in which they answer.

use crate::main::web_fixture::{ScriptServer, web_gate, web_gate_with, web_session};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::Duration;
use toolgate_gate::CallOptions;
use toolgate_policy::{Layer, LayerRules};
use toolgate_proto::{AbsPath, Code, Output, Refusal};
use toolgate_testkit::GateFixture;
use toolgate_tools::{SearchService, WebConfig, set_web_config};

/// Sets the service of a session, with the key that tells the stand-in how to behave.
fn configure(fixture: &GateFixture, service: SearchService, port: u16, key: &str) {
    let mut config = WebConfig::default();
    config.search.service = Some(service);
    let place = match service {
        SearchService::Jina => "jina/s",
        other => other.as_str(),
    };
    let query = if service.key_variable().is_none() { format!("?stub={key}") } else { String::new() };
    config.search.base_url = Some(format!("http://127.0.0.1:{port}/{place}{query}"));
    config.search.timeout = Duration::from_secs(if key == "slow" { 1 } else { 20 });
    if let Some(variable) = service.key_variable() {
        config.environment.insert(variable.to_owned(), key.to_owned());
    }
    set_web_config(&fixture.session, config);
}

async fn search(fixture: &GateFixture, input: Value) -> Result<Output, Refusal> {
    fixture.call("WebSearch", &input).await
}

fn rows(output: &Output) -> Vec<Value> {
    output.structured.as_ref().unwrap()["results"][0]["content"].as_array().unwrap().clone()
}

/// The rules that let searches through without a question.
fn search_rules(policy: &mut toolgate_policy::RawPolicy) {
    let mut rules = LayerRules::new(Layer::User, AbsPath::root());
    rules.allow.push("WebSearch".to_owned().into());
    policy.layers.push(rules);
}

#[tokio::test]
async fn every_service_is_asked_and_its_failures_are_told_apart() {
    let server = ScriptServer::start("search_stub.py", &[]);
    let gate = web_gate_with(&[server.port], search_rules);
    let fixture = web_session(&gate);
    for service in SearchService::ALL {
        let has_key = service.key_variable().is_some();
        configure(&fixture, service, server.port, "good");
        let output = search(&fixture, json!({ "query": "rust" })).await.unwrap();
        assert_eq!(rows(&output).len(), 10, "{service:?}");
        assert_eq!(rows(&output)[0]["url"], "https://site1.example/page1", "{service:?}");
        assert_eq!(output.display_text(), "Found 10 results");
        let text = output.model_text();
        assert!(
            text.contains("1. Title 1\n   https://site1.example/page1\n   Snippet 1 of the page."),
            "{text}"
        );
        configure(&fixture, service, server.port, "none");
        let output = search(&fixture, json!({ "query": "rust" })).await.unwrap();
        assert_eq!(output.model_text(), "no results", "{service:?}");
        // Two services have no key and no credit, and refuse in a way of their own.
        let (bad, limit, quota) = match service {
            SearchService::Searxng => ("does not serve JSON", "it asks to wait 3 s", "does not serve JSON"),
            SearchService::Duckduckgo => {
                ("refused the request (HTTP 403)", "whether a human asks", "HTTP 403")
            }
            _ => ("key may be wrong", "it asks to wait 3 s", "used up"),
        };
        for (key, said) in [
            ("bad", bad),
            ("limit", limit),
            ("quota", quota),
            ("junk", "did not answer with a list"),
            ("huge", "did not answer with a list"),
            ("redir", "redirect"),
            ("slow", "timed out"),
        ] {
            configure(&fixture, service, server.port, key);
            let refusal = search(&fixture, json!({ "query": "rust" })).await.unwrap_err();
            assert_eq!(refusal.code, Code::Search, "{service:?} {key}: {refusal}");
            assert!(refusal.reason.contains(said), "{service:?} {key}: {refusal}");
            assert!(has_key || !refusal.to_string().contains("key"), "{service:?} {key}: {refusal}");
            assert!(!refusal.hint.is_empty(), "{service:?} {key}");
        }
    }
}

#[tokio::test]
async fn hostile_results_are_cleaned_and_domains_applied_again() {
    let server = ScriptServer::start("search_stub.py", &[]);
    let fixture = web_session(&web_gate_with(&[server.port], search_rules));
    for service in SearchService::ALL {
        configure(&fixture, service, server.port, "evil");
        let output = search(&fixture, json!({ "query": "x" })).await.unwrap();
        let urls: Vec<String> =
            rows(&output).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect();
        assert!(
            urls.iter().all(|url| url.starts_with("http") && !url.contains('@')),
            "{service:?}: {urls:?}"
        );
        assert_eq!(urls.iter().filter(|url| *url == "https://ok.example/1").count(), 1, "{service:?}");
        let text = output.model_text();
        assert!(
            text.contains("bold & title") && !text.contains('\u{202e}') && !text.contains('\x1b'),
            "{text}"
        );
        assert!(text.len() < 10_000, "{service:?}: {}", text.len());
        let allowed =
            search(&fixture, json!({ "query": "x", "allowed_domains": ["ok.example"] })).await.unwrap();
        assert!(
            rows(&allowed).iter().all(|row| row["url"].as_str().unwrap().starts_with("https://ok.example/"))
        );
        assert!(!rows(&allowed).is_empty(), "{service:?}");
        let blocked =
            search(&fixture, json!({ "query": "x", "blocked_domains": ["ok.example"] })).await.unwrap();
        assert!(rows(&blocked).iter().all(|row| !row["url"].as_str().unwrap().contains("ok.example")));
    }
}

#[tokio::test]
async fn without_a_service_or_a_key_the_refusal_says_how_to_set_one() {
    let server = ScriptServer::start("search_stub.py", &[]);
    let fixture = web_session(&web_gate_with(&[server.port], search_rules));
    let refusal = search(&fixture, json!({ "query": "rust" })).await.unwrap_err();
    assert!(
        refusal.hint.contains("web.search.provider") && refusal.hint.contains("searxng"),
        "{}",
        refusal.hint
    );
    configure(&fixture, SearchService::Kagi, server.port, "");
    let refusal = search(&fixture, json!({ "query": "rust" })).await.unwrap_err();
    assert!(refusal.hint.contains("KAGI_API_KEY"), "{}", refusal.hint);
    let mut config = WebConfig::default();
    config.search.service = Some(SearchService::Brave);
    config.search.base_url = Some(format!("http://127.0.0.1:{}/brave", server.port));
    config.search.key_command = Some("echo good".to_owned());
    config.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    set_web_config(&fixture.session, config);
    assert_eq!(rows(&search(&fixture, json!({ "query": "rust" })).await.unwrap()).len(), 10);
}

#[tokio::test]
async fn a_search_is_judged_as_a_fetch_of_its_service() {
    let server = ScriptServer::start("search_stub.py", &[]);
    let denied = web_gate_with(&[server.port], |policy| {
        search_rules(policy);
        let mut rules = LayerRules::new(Layer::User, AbsPath::root());
        rules.deny.push("WebFetch(domain:127.0.0.1)".to_owned().into());
        policy.layers.push(rules);
    });
    for gate in [denied, web_gate(&[])] {
        let fixture = web_session(&gate);
        configure(&fixture, SearchService::Searxng, server.port, "good");
        assert!(search(&fixture, json!({ "query": "rust" })).await.is_err());
    }
    assert!(server.log().is_empty());
}

#[test]
fn property_32_web_search_result_count() {
    let server = ScriptServer::start("search_stub.py", &[]);
    let fixture = web_session(&web_gate_with(&[server.port], search_rules));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() });
    runner
        .run(&(1usize..=20, "[a-z]{2,9}", 0..SearchService::ALL.len()), |(count, query, service)| {
            configure(&fixture, SearchService::ALL[service], server.port, "good");
            let input = json!({ "query": query, "numResults": count });
            let output = runtime.block_on(fixture.call("web_search", &input)).unwrap();
            prop_assert!(rows(&output).len() <= count);
            let output = runtime.block_on(fixture.call("web_search", &json!({ "query": query }))).unwrap();
            prop_assert_eq!(rows(&output).len(), 5);
            let output = runtime.block_on(fixture.call("WebSearch", &json!({ "query": query }))).unwrap();
            prop_assert_eq!(rows(&output).len(), 10);
            Ok(())
        })
        .unwrap();
}

/// A service that answers with any status and repeats all that it was sent, the key included.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            // The query is the status.
            let said = format!("{head}{}", String::from_utf8_lossy(&body));
            let status = (200..600).find(|status| said.contains(&format!("status{status}"))).unwrap_or(200);
            let row = json!({ "title": said, "url": "https://a.example/", "link": "https://a.example/", "snippet": said,
                              "content": said, "description": said, "text": said });
            let answer = json!({ "results": [row], "data": [row], "organic": [row], "web": { "results": [row] },
                                 "error": said, "query": "x" });
            let answer = if status == 299 { said.clone() } else { answer.to_string() };
            let extra = if status / 100 == 3 {
                format!("Location: http://127.0.0.1:1/{}\r\n", said.len())
            } else {
                String::new()
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{extra}Connection: close\r\n\r\n{answer}",
                answer.len()
            );
        }
    });
    port
}

#[test]
fn no_byte_of_a_key_is_in_any_output() {
    let port = echo_server();
    let fixture = web_session(&web_gate_with(&[port], search_rules));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() });
    let statuses = prop::sample::select(vec![
        200, 202, 204, 299, 301, 302, 307, 400, 401, 402, 403, 404, 422, 429, 432, 500, 503,
    ]);
    let keys = "[A-Za-z0-9_-]{12,40}";
    runner
        .run(
            &(keys, statuses, 0..SearchService::ALL.len(), any::<bool>()),
            |(key, status, service, is_reached)| {
                let service = SearchService::ALL[service];
                configure(&fixture, service, if is_reached { port } else { 1 }, &key);
                let input = json!({ "query": format!("status{status}") });
                let outcome =
                    runtime.block_on(fixture.call_with("WebSearch", &input, CallOptions::default()));
                let shown = format!("{:?} {:?}", outcome.result, outcome.record);
                if service.key_variable().is_some() {
                    prop_assert!(!shown.contains(&key), "{}: {}", service.as_str(), shown);
                }
                Ok(())
            },
        )
        .unwrap();
}
