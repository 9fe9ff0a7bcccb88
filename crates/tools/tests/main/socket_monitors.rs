//! `Monitor` over a WebSocket: who is asked, where it may lead, what becomes of messages.

use super::shell_fixture::{ShellFixture, block_on_runtime, structured};
use futures_util::SinkExt;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver};
use toolgate_proto::{Code, Mode};
use toolgate_tools::take_monitor_events;

/// A server that sends these messages to each connection, then closes it or waits. Its port.
async fn serve(messages: Vec<Message>, closes: bool) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let messages = messages.clone();
            tokio::spawn(async move {
                let choose = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
                    if let Some(offered) = request.headers().get("sec-websocket-protocol") {
                        let first = offered.to_str().unwrap().split(',').next().unwrap().to_owned();
                        response.headers_mut().insert("sec-websocket-protocol", first.parse().unwrap());
                    }
                    Ok(response)
                };
                let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, choose).await else {
                    return;
                };
                for message in messages {
                    let _ = socket.send(message).await;
                }
                if closes {
                    let _ = socket.close(None).await;
                } else {
                    tokio::time::sleep(Duration::from_secs(600)).await;
                }
            });
        }
    });
    port
}

/// A user who agrees, and counts how often.
#[derive(Default)]
struct CountedUser {
    asked: AtomicUsize,
}

impl Approver for CountedUser {
    fn name(&self) -> &str {
        "user"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> futures_util::future::BoxFuture<'a, ApprovalAnswer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

/// A session in mode bypass whose rules name this machine, and a user.
fn fixture() -> (ShellFixture, Arc<CountedUser>) {
    let user = Arc::new(CountedUser::default());
    let fixture = ShellFixture::with_user(
        &["Bash", "Monitor", "WebFetch(domain:127.0.0.1:*)"],
        Arc::clone(&user) as Arc<dyn Approver>,
    );
    (fixture, user)
}

async fn events_until(fixture: &ShellFixture, text: &str) -> Vec<String> {
    let mut events: Vec<String> = Vec::new();
    let waiting = async {
        while !events.iter().any(|event| event.contains(text)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            events.extend(take_monitor_events(&fixture.session));
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    assert!(waited.is_ok(), "no event with {text}: {events:?}");
    events
}

#[test]
fn each_message_is_an_event_and_the_user_is_asked_each_time() {
    block_on_runtime(async {
        let (fixture, user) = fixture();
        let text = Message::text("build \u{1b}[31mfailed\nsecond line");
        let port = serve(vec![text, Message::binary(vec![0_u8; 7])], true).await;
        let input = json!({ "description": "builds", "ws": { "url": format!("ws://127.0.0.1:{port}/feed"), "protocols": ["v1", "v2"] } });
        let started = fixture.call("Monitor", input.clone()).await;
        let id = structured(&started)["taskId"].clone();
        let events = events_until(&fixture, "it has ended").await;
        assert!(events[0].contains("builds] build ") && events[0].contains("failed"), "{events:?}");
        assert!(events.iter().all(|event| !event.contains(['\u{1b}', '\n'])), "{events:?}");
        assert!(events[1].contains("[7 bytes that are not text]"), "{events:?}");
        assert!(events[2].contains("the server closed the connection"), "{events:?}");
        let read = fixture.call("TaskOutput", json!({ "task_id": id })).await.result.unwrap();
        assert!(read.model_text().contains("failed"), "{}", read.model_text());
        assert!(fixture.call("TaskOutput", json!({})).await.result.unwrap().model_text().contains("builds"));
        assert_eq!(user.asked.load(Ordering::SeqCst), 1, "in mode bypass, with rules for tool and host");
        fixture.call("Monitor", input).await.result.unwrap();
        assert_eq!(user.asked.load(Ordering::SeqCst), 2, "an answer is for one socket");
    });
}

#[test]
fn without_the_user_or_a_rule_that_names_the_host_no_socket_is_opened() {
    block_on_runtime(async {
        let port = serve(Vec::new(), false).await;
        let url = format!("ws://127.0.0.1:{port}/");
        let input = json!({ "description": "d", "ws": { "url": url } });
        let allow = ["Bash", "Monitor", "WebFetch(domain:127.0.0.1:*)"];
        let alone = ShellFixture::with_mode(Mode::Bypass, &allow, |_| ());
        assert_eq!(
            alone.call("Monitor", input.clone()).await.result.unwrap_err().code,
            Code::ApprovalUnavailable
        );
        // A private address is refused, and no user is asked; so is a public name with such an address.
        let user = Arc::new(CountedUser::default());
        let unnamed = ShellFixture::with_user(&["Bash", "Monitor"], Arc::clone(&user) as Arc<dyn Approver>);
        let refusal = unnamed.call("Monitor", input).await.result.unwrap_err();
        assert!(refusal.reason.contains("no allow rule names it"), "{refusal}");
        assert_eq!(user.asked.load(Ordering::SeqCst), 0);
        for (wrong, reason) in [
            (json!({ "description": "d" }), "either `command` or `ws`"),
            (json!({ "description": "d", "command": "true", "ws": { "url": "ws://a.example" } }), "either"),
            (json!({ "description": "d", "ws": { "url": "https://a.example" } }), "does not begin with"),
            (
                json!({ "description": "d", "ws": { "url": "ws://a.example", "protocols": ["a\r\nb"] } }),
                "name",
            ),
        ] {
            let refusal = unnamed.call("Monitor", wrong).await.result.unwrap_err();
            assert!(refusal.code == Code::BadArgument && refusal.reason.contains(reason), "{refusal}");
        }
    });
}

#[test]
fn a_socket_ends_at_its_timeout_when_it_is_stopped_and_at_a_message_that_is_too_long() {
    block_on_runtime(async {
        let (fixture, _) = fixture();
        let quiet = serve(Vec::new(), false).await;
        let input = |port: u16, timeout: u64| json!({ "description": "d", "timeout_ms": timeout, "ws": { "url": format!("ws://127.0.0.1:{port}") } });
        fixture.call("Monitor", input(quiet, 200)).await.result.unwrap();
        events_until(&fixture, "its time is over").await;
        let started = fixture.call("Monitor", input(quiet, 60_000)).await;
        let id = structured(&started)["taskId"].clone();
        let stopped = fixture.call("TaskStop", json!({ "task_id": id })).await.result.unwrap();
        assert!(stopped.model_text().starts_with("stopped"), "{}", stopped.model_text());
        let again = fixture.call("TaskStop", json!({ "task_id": id })).await.result.unwrap();
        assert!(again.model_text().contains("already ended"), "{}", again.model_text());
        let long = serve(vec![Message::text("x".repeat(2 * 1024 * 1024))], false).await;
        fixture.call("Monitor", input(long, 60_000)).await.result.unwrap();
        events_until(&fixture, "longer than 1048576 bytes").await;
        // No server at all is a refusal, not an event.
        let refusal = fixture.call("Monitor", input(9, 60_000)).await.result.unwrap_err();
        assert!(refusal.reason.contains("cannot connect"), "{refusal}");
    });
}
