//! The properties of the web tools, in both toolsets, over real HTTP on loopback.

use crate::main::web_fixture::{page_of, web_gate, web_session};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use toolgate_testkit::GateFixture;

/// A server whose pages a test sets.
struct ChangingPageServer {
    port: u16,
    pages: Arc<Mutex<HashMap<String, String>>>,
}

impl ChangingPageServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let pages: Arc<Mutex<HashMap<String, String>>> = Arc::default();
        let served = Arc::clone(&pages);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut line = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let _ = reader.read_line(&mut line);
                let mut header = String::new();
                while reader.read_line(&mut header).is_ok_and(|read| read > 2) {
                    header.clear();
                }
                let path = line.split(' ').nth(1).unwrap_or_default();
                let body = served.lock().unwrap().get(path).cloned().unwrap_or_default();
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{body}"
                );
            }
        });
        Self { port, pages }
    }

    fn serve(&self, body: &str) -> String {
        let mut pages = self.pages.lock().unwrap();
        let path = format!("/{}", pages.len());
        pages.insert(path.clone(), body.to_owned());
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

const TOOLS: [(&str, &str); 2] = [("WebFetch", "max_length"), ("web_fetch", "maxLength")];

fn run(
    cases: u32,
    test: impl Fn(&ChangingPageServer, &GateFixture, &mut TestRunner, &tokio::runtime::Runtime),
) {
    let server = ChangingPageServer::start();
    let fixture = web_session(&web_gate(&[server.port]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    test(&server, &fixture, &mut runner, &runtime);
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-zñ語😀]{1,8}", 1..30)
}

#[test]
fn property_29_web_fetch_content_retrieval() {
    run(256, |server, fixture, runner, runtime| {
        runner
            .run(&words(), |words| {
                let url = server.serve(&format!("<html><body><p>{}</p></body></html>", words.join(" ")));
                for (tool, _) in TOOLS {
                    let output = runtime.block_on(fixture.call(tool, &json!({ "url": url }))).unwrap();
                    prop_assert_eq!(page_of(&output), words.join(" "));
                    prop_assert_eq!(&output.structured.as_ref().unwrap()["code"], &json!(200));
                    let count = words.join(" ").chars().count();
                    prop_assert_eq!(output.display_text(), format!("Fetched {count} characters"));
                }
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn property_30_web_fetch_css_selector() {
    run(256, |server, fixture, runner, runtime| {
        let paragraphs = prop::collection::vec(("[a-z]{1,8}", any::<bool>()), 1..12);
        runner
            .run(&paragraphs, |paragraphs| {
                let mut page = String::new();
                for (word, picked) in &paragraphs {
                    let class = if *picked { "pick x" } else { "y" };
                    page.push_str(&format!("<div><p class='{class}'>{word}</p></div>"));
                }
                let url = server.serve(&page);
                let expected: Vec<&str> =
                    paragraphs.iter().filter(|(_, picked)| *picked).map(|(word, _)| word.as_str()).collect();
                for (tool, _) in TOOLS {
                    let input = json!({ "url": url, "selector": ".pick" });
                    let output = runtime.block_on(fixture.call(tool, &input)).unwrap();
                    if expected.is_empty() {
                        prop_assert!(output.model_text().contains("matches the selector"));
                    } else {
                        prop_assert_eq!(page_of(&output), expected.join("\n\n"));
                    }
                    let wrong = json!({ "url": url, "selector": ":::" });
                    let refusal = runtime.block_on(fixture.call(tool, &wrong)).unwrap_err();
                    prop_assert_eq!(refusal.kind, "ValidationError");
                }
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn property_31_web_fetch_truncation() {
    run(256, |server, fixture, runner, runtime| {
        runner
            .run(&(words(), 1usize..40), |(words, max)| {
                let whole = words.join(" ");
                let total = whole.chars().count();
                let url = server.serve(&format!("<p>{whole}</p>"));
                for (tool, field) in TOOLS {
                    let mut read = String::new();
                    while read.chars().count() < total {
                        let offset = read.chars().count();
                        let input = json!({ "url": url, field: max, "offset": offset });
                        let output = runtime.block_on(fixture.call(tool, &input)).unwrap();
                        let part = page_of(&output);
                        prop_assert!(part.chars().count() <= max);
                        let left = total - offset - part.chars().count();
                        let mark = format!("\n\n[Content truncated: {left} characters omitted]");
                        prop_assert_eq!(output.model_text().ends_with(&mark), left > 0);
                        prop_assert_eq!(&output.structured.as_ref().unwrap()["truncated"], &json!(left > 0));
                        read.push_str(&part);
                    }
                    prop_assert_eq!(&read, &whole);
                    let past: Value = json!({ "url": url, "offset": total });
                    prop_assert!(runtime.block_on(fixture.call(tool, &past)).is_err());
                }
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn the_title_of_a_page_is_one_line_of_the_header_and_not_of_the_text() {
    run(64, |server, fixture, runner, runtime| {
        let titles = prop::collection::vec("[a-z\\]\\[#\r\n\u{202e}]{1,12}|\\[end [0-9a-f]{12}\\]", 0..40);
        runner
            .run(&titles, |titles| {
                let title = titles.join(" ");
                let body = "<main><p>words of the page</p></main>";
                let url = server.serve(&format!("<title>{title}</title>{body}"));
                let seen: String = title.chars().filter(|c| *c != '\u{202e}').collect();
                let seen = seen.split_whitespace().collect::<Vec<_>>().join(" ");
                // The second call of each tool is answered from the cache.
                for (tool, _) in [TOOLS, TOOLS].concat() {
                    let output = runtime.block_on(fixture.call(tool, &json!({ "url": url }))).unwrap();
                    prop_assert_eq!(page_of(&output), "words of the page");
                    let text = output.model_text();
                    let header: Vec<&str> = text.split("\n\n").next().unwrap().lines().collect();
                    let given = &output.structured.as_ref().unwrap()["title"];
                    if seen.is_empty() {
                        prop_assert_eq!((header.len(), given), (1, &Value::Null));
                        continue;
                    }
                    prop_assert_eq!(header.len(), 2);
                    let shown = header[1].strip_prefix("title: ").unwrap();
                    prop_assert_eq!(given, &json!(shown));
                    prop_assert!(shown.chars().count() <= 201);
                    prop_assert!(seen.starts_with(shown.trim_end_matches('…')));
                    let boundary = text.split(' ').nth(2).unwrap();
                    prop_assert!(!shown.contains(boundary));
                }
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn the_seeds_of_the_fuzz_target_are_converted() {
    let seeds = include_str!("../../../../fuzz/seeds/pages.jsonl");
    for line in seeds.lines() {
        let page: String = serde_json::from_str(line).unwrap();
        crate::main::fuzz_pages::check(&page);
    }
}
