//! HTTP hooks: the effect of each kind of response.

use super::hook_fixture::{HookFixture, text};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use toolgate::Code;

/// Answers every request with these bytes, and records the requests.
fn serve(answer: impl Into<Vec<u8>>) -> (String, Arc<Mutex<Vec<String>>>) {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            // The body ends with the closing brace of its JSON.
            while let Ok(count) = stream.read(&mut chunk) {
                request.extend_from_slice(&chunk[..count]);
                if count == 0 || request.ends_with(b"}") {
                    break;
                }
            }
            kept.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            let _ = stream.write_all(&answer);
        }
    });
    (url, seen)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn hook(url: &str, more: Value) -> Value {
    let mut handler = json!({ "type": "http", "url": url, "timeout": 20 });
    handler.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    HookFixture::hook("PreToolUse", handler)
}

#[test]
fn only_a_successful_json_response_decides_and_every_error_refuses() {
    let fixture = HookFixture::new();
    let redirect = "HTTP/1.1 302 Found\r\nlocation: http://example.com/\r\ncontent-length: 0\r\n\r\n";
    let cases: Vec<(String, Option<Code>)> = vec![
        (ok("{}"), None),
        (ok(""), None),
        (ok(r#"{"decision":"approve"}"#), None),
        (ok(r#"{"decision":"block","reason":"no"}"#), Some(Code::HookDenied)),
        (ok(r#"{"hookSpecificOutput":{"permissionDecision":"deny"}}"#), Some(Code::HookDenied)),
        (ok("{broken"), Some(Code::HookUnreadable)),
        (ok(&format!("{{\"reason\":\"{}\"}}", "x".repeat(2 << 20))), Some(Code::HookUnreadable)),
        ("HTTP/1.1 500 Oops\r\ncontent-length: 2\r\n\r\n{}".to_owned(), Some(Code::HookFailed)),
        ("HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\n{}".to_owned(), Some(Code::HookFailed)),
        (redirect.to_owned(), Some(Code::HookFailed)),
        (String::new(), Some(Code::HookFailed)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\n{}".to_owned(), Some(Code::HookFailed)),
        ("hello".to_owned(), Some(Code::HookFailed)),
    ];
    for (answer, code) in cases {
        let shown: String = answer.chars().take(80).collect();
        let (url, _) = serve(answer);
        let outcome = HookFixture::call(&fixture.toolgate(&hook(&url, json!({}))), "ship");
        assert_eq!(
            outcome.result.as_ref().err().map(|refusal| refusal.code),
            code,
            "{shown}: {}",
            text(&outcome)
        );
    }
}

#[test]
fn an_unreachable_or_silent_server_refuses_unless_on_failure_is_continue() {
    let fixture = HookFixture::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", gone.local_addr().unwrap());
    let silent = hook(&url, json!({ "timeout": 0.1 }));
    assert_eq!(
        HookFixture::call(&fixture.toolgate(&silent), "x").result.unwrap_err().code,
        Code::HookTimedOut
    );
    drop(gone);
    let outcome = HookFixture::call(&fixture.toolgate(&hook(&url, json!({}))), "x");
    assert_eq!(outcome.record.hooks[0].ended, "unreachable");
    assert_eq!(outcome.result.unwrap_err().code, Code::HookFailed);
    let advisory = hook(&url, json!({ "onFailure": "continue" }));
    assert!(HookFixture::call(&fixture.toolgate(&advisory), "x").result.is_ok());
}

#[test]
fn an_http_hook_gets_the_event_and_only_allowed_headers() {
    let fixture = HookFixture::new();
    let (url, seen) = serve(ok("{}"));
    let mut settings = hook(
        &url,
        json!({ "headers": { "x-key": "k=$KEY", "x-other": "o=$OTHER" }, "allowedEnvVars": ["KEY"] }),
    );
    settings["env"] = json!({ "KEY": "secret", "OTHER": "hidden" });
    assert!(HookFixture::call(&fixture.toolgate(&settings), "ship").result.is_ok());
    let request = seen.lock().unwrap().join("");
    for part in [
        "POST /hook HTTP/1.1",
        "x-key: k=secret",
        "content-type: application/json",
        "\"hook_event_name\":\"PreToolUse\"",
    ] {
        assert!(request.contains(part), "{part} is not in {request}");
    }
    assert!(!request.contains("hidden"), "{request}");
    // The list in the settings restricts the hook's own list.
    settings["httpHookAllowedEnvVars"] = json!([]);
    assert!(HookFixture::call(&fixture.toolgate(&settings), "ship").result.is_ok());
    assert!(!seen.lock().unwrap()[1].contains("secret"));
    settings["allowedHttpHookUrls"] = json!(["http://127.0.0.1:1/*"]);
    assert_eq!(
        HookFixture::call(&fixture.toolgate(&settings), "ship").result.unwrap_err().code,
        Code::HookFailed,
        "a URL that is not on the list is not used"
    );
}
