//! `Monitor`: lines of a background command as events, under the rules of `Bash`.

use super::shell_fixture::{ShellFixture, block_on_runtime, structured};
use serde_json::json;
use std::time::Duration;
use toolgate_tools::take_monitor_events;

/// Collects events until one contains a text. Bounded, so that a lost event fails the test.
async fn events_until(fixture: &ShellFixture, text: &str) -> Vec<String> {
    let mut events = Vec::new();
    let waiting = async {
        while !events.iter().any(|event: &String| event.contains(text)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            events.extend(take_monitor_events(&fixture.session));
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    assert!(waited.is_ok(), "no event with {text}: {events:?}");
    events
}

#[test]
fn each_line_is_an_event_and_the_end_is_one() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let command =
            "echo one; echo; printf 'two\\x1b[31m\\n'; until [ -e go ]; do sleep 0.01; done; printf three";
        let started = fixture.call("Monitor", json!({ "description": "counting", "command": command })).await;
        assert_eq!(structured(&started)["timeoutMs"], json!(300_000));
        let first = events_until(&fixture, "two").await;
        assert!(first[0].ends_with("counting] one"), "{first:?}");
        assert!(first.iter().all(|event| !event.contains('\u{1b}')), "{first:?}");
        std::fs::write(fixture.path("ws/go"), "").unwrap();
        let rest = events_until(&fixture, "it has ended").await;
        assert!(rest[0].ends_with("] three"), "{rest:?}");
        assert!(take_monitor_events(&fixture.session).is_empty());
    });
}

#[test]
fn a_watched_command_ends_at_its_timeout() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let input = json!({ "description": "d", "command": "echo begun; sleep 1000", "timeout_ms": 300 });
        fixture.call("Monitor", input).await.result.unwrap();
        let events = events_until(&fixture, "its time is over").await;
        assert!(!events.is_empty(), "{events:?}");
        assert_eq!(fixture.live_processes(), Vec::<String>::new());
    });
}

#[test]
fn a_flood_of_lines_keeps_the_newest() {
    block_on_runtime(async {
        let fixture = ShellFixture::new();
        let input = json!({ "description": "d", "command": "seq 1 5000" });
        let started = fixture.call("Monitor", input).await;
        let id = structured(&started)["taskId"].clone();
        // Nothing is taken before the command is over.
        fixture.call("TaskOutput", json!({ "task_id": id })).await.result.unwrap();
        let mut events = events_until(&fixture, "it has ended").await;
        events.retain(|event| !event.contains("it has ended"));
        assert!(events.last().unwrap().ends_with(" 5000"), "{:?}", events.last());
    });
}
