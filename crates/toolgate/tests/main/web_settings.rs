//! What settings and options change about the web tools, with the program itself.

use super::agent_fixture::ScriptedModel;
use super::cli_fixture::CliFixture;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Serves one answer for each path on loopback until the test binary ends, and keeps the bodies of requests.
fn serve(pages: Vec<(&'static str, &'static str, String)>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&bodies);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &pages, &log);
        }
    });
    (port, bodies)
}

fn answer(
    mut stream: &TcpStream,
    pages: &[(&'static str, &'static str, String)],
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    log.lock().unwrap().push(String::from_utf8_lossy(&body).into_owned());
    let path = first.split(' ').nth(1).unwrap_or_default();
    let found = pages.iter().find(|(known, _, _)| *known == path);
    let (status, kind, body) =
        found.map_or(("404 Not Found", "text/plain", ""), |(_, kind, body)| ("200 OK", *kind, body.as_str()));
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A whole answer of chat completions, as a stream.
fn chat_answer(text: &str) -> String {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        json!({ "id": "c1", "object": "chat.completion.chunk", "model": "small", "choices": [choice] })
    };
    let chunks = [
        chunk(json!({ "role": "assistant", "content": text }), Value::Null),
        chunk(json!({}), json!("stop")),
    ];
    let mut out: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    out.push_str("data: [DONE]\n\n");
    out
}

#[test]
fn a_model_of_the_settings_answers_the_prompt_of_a_fetch() {
    let page =
        "<title>Prices</title><main><h1>Widgets</h1><p>The widget costs 7 euros.</p></main>".to_owned();
    let (port, bodies) = serve(vec![
        ("/page", "text/html", page),
        ("/v1/chat/completions", "text/event-stream", chat_answer("It costs 7 euros.")),
    ]);
    let fixture = CliFixture::new();
    let settings = |base: String| json!({ "web": { "pageModel": { "model": "small", "api": "chat", "baseUrl": base } } });
    let rule = format!("WebFetch(domain:127.0.0.1:{port})");
    let url = format!("http://127.0.0.1:{port}/page");
    let input = json!({ "url": url, "prompt": "what does it cost?" }).to_string();
    let good = settings(format!("http://127.0.0.1:{port}/v1")).to_string();
    let run = fixture.run(&["--settings", &good, "--allowed-tools", &rule, "call", "WebFetch", &input]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("It costs 7 euros.") && !run.stdout.contains("# Widgets"), "{}", run.stdout);
    assert!(run.stdout.starts_with("[web content "), "the answer is marked as untrusted: {}", run.stdout);
    let sent = bodies.lock().unwrap().iter().find(|body| body.contains("\"messages\"")).cloned().unwrap();
    assert!(sent.contains("title: Prices"), "{sent}");
    assert!(sent.contains("The widget costs 7 euros.") && sent.contains("what does it cost?"), "{sent}");

    // Without a prompt, and without a model, the page itself comes back.
    let plain = json!({ "url": url }).to_string();
    let run = fixture.run(&["--settings", &good, "--allowed-tools", &rule, "call", "WebFetch", &plain]);
    assert!(run.stdout.contains("# Widgets"), "{}", run.stdout);
    let run = fixture.run(&["--allowed-tools", &rule, "call", "WebFetch", &input]);
    assert!(run.stdout.contains("# Widgets"), "{}", run.stdout);

    // A model that fails is an error, and not a page without a notice.
    let bad = settings(format!("http://127.0.0.1:{port}/nowhere")).to_string();
    let run = fixture.run(&["--settings", &bad, "--allowed-tools", &rule, "call", "WebFetch", &input]);
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert!(run.stderr.contains("the model that answers from the page failed"), "{}", run.stderr);

    // A project cannot choose the model, which would see every page.
    fixture.write(".toolgate/settings.json", &good);
    let args = ["--trust-workspace", "--allowed-tools", &rule, "call", "WebFetch", &input];
    let run = fixture.run(&args);
    assert!(!run.stdout.contains("It costs 7 euros."), "{}", run.stdout);
}

#[test]
fn browser_tools_are_there_only_where_the_user_wants_them() {
    let fixture = CliFixture::new();
    let listed = |args: &[&str]| {
        let run = fixture.run(args);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout.lines().filter(|line| line.to_ascii_lowercase().starts_with("browser")).count()
    };
    assert_eq!(listed(&["tools"]), 0);
    assert_eq!(listed(&["--chrome", "tools"]), 6);
    assert_eq!(listed(&["--chrome", "--toolset", "plain", "tools"]), 6);
    assert_eq!(listed(&["--settings", r#"{"web": {"browserTools": true}}"#, "tools"]), 6);
    let call = ["call", "BrowserOpen", r#"{"url": "http://127.0.0.1:1/"}"#];
    let hidden = fixture.run(&call);
    let unknown = fixture.run(&["call", "BrowserNothing", r#"{"url": "http://127.0.0.1:1/"}"#]);
    assert_eq!(hidden.code, unknown.code, "a hidden tool is as good as unknown: {}", hidden.stderr);
    fixture.write(".toolgate/settings.json", r#"{"web": {"browserTools": true}}"#);
    assert_eq!(listed(&["--trust-workspace", "tools"]), 0, "a project cannot turn them on");
}

#[test]
fn an_agent_fetches_only_urls_that_the_user_or_a_page_named() {
    let (port, _) = serve(vec![
        ("/start", "text/html", "<main><p>see <a href=/next>the next page</a></p></main>".to_owned()),
        ("/next", "text/plain", "the end".to_owned()),
        ("/other", "text/plain", "a secret".to_owned()),
    ]);
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let fetch = |path: &str| json!({ "tools": [{ "name": "WebFetch", "input": { "url": url(path) } }] });
    let turns = json!([fetch("/other"), fetch("/start"), fetch("/next"), { "text": "done" }]);
    let model = ScriptedModel::new(&json!({ "turns": turns }));
    let fixture = CliFixture::new();
    let rule = format!("WebFetch(domain:127.0.0.1:{port})");
    let settings = r#"{"web": {"onlyNamedUrls": true}}"#;
    let prompt = format!("read {} and go on from there", url("/start"));
    let args = ["--settings", settings, "--allowed-tools", &rule, "run", "-p", &prompt];
    let run = model.run(&fixture, "anthropic", &args);
    assert_eq!(run.stdout.trim(), "done", "{}", run.stderr);
    let results: Vec<String> = model
        .requests()
        .iter()
        .skip(1)
        .map(|request| request["messages"].as_array().unwrap().last().unwrap()["content"].to_string())
        .collect();
    assert!(results[0].contains("was named neither by the user"), "{}", results[0]);
    assert!(results[1].contains("the next page"), "{}", results[1]);
    assert!(results[2].contains("the end"), "{}", results[2]);
}

#[test]
fn nothing_of_a_page_bypasses_the_proxy() {
    let browsers = ["/usr/lib/chromium/chromium", "/usr/bin/chromium", "/opt/google/chrome/chrome"];
    if !browsers.iter().any(|path| Path::new(path).exists()) {
        let required = std::env::var_os("TOOLGATE_TEST_TOOLS").is_some_and(|value| value == "required");
        assert!(!required, "there is no Chromium; run scripts/install-test-tools.sh");
        println!("skipped: there is no Chromium; run scripts/install-test-tools.sh");
        return;
    }
    let fixture = CliFixture::new();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/web/browser_probe.py");
    let program = env!("CARGO_BIN_EXE_toolgate");
    let input = r#"{"url": "{page}", "wait": 4000, "timeout": 100}"#;
    let rule = "WebFetch(domain:127.0.0.1:{pageport})";
    let output = Command::new("python3")
        .arg(script)
        .args(["--seconds", "110", "--", program, "--allowed-tools", rule, "call", "Screenshot", input])
        .env("HOME", fixture.beside("home"))
        .env("TOOLGATE_STATE_DIR", fixture.beside("state"))
        .current_dir(fixture.path(""))
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{report}");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["direct"], &report["udp"]), (&json!([]), &json!([])));
}
