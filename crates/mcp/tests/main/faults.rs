//! Servers that hang, die, flood and lie: calls get a refusal in time, others go on, and no process stays.

use super::upstream_servers::{GatewayFixture, alive, fake};
use serde_json::json;
use std::time::Duration;
use toolgate_mcp::client::McpConnectionError;
use toolgate_proto::Code;

/// How long any call may take here before it counts as never answered.
const NEVER: Duration = Duration::from_secs(120);

/// A server for which everything may take as long as a busy machine needs.
fn patient(mode: &str) -> serde_json::Value {
    let mut entry = fake(mode, None);
    entry["timeout"] = json!(60_000);
    entry["connectTimeout"] = json!(60_000);
    entry
}

/// One bad server and one good one; the good one must not notice.
async fn check(mode: &str, bad: serde_json::Value, expected: Option<Code>) {
    let servers = json!({ "bad": bad, "good": patient("ok") });
    let gateway = GatewayFixture::with(servers, &["mcp__bad__say", "mcp__good__say"], None).await;
    let input = json!({ "text": "1" });
    let good = gateway.call("mcp__good__say", input.clone());
    if gateway.state("bad").tools.is_empty() {
        let state = gateway.state("bad");
        assert!(state.error.is_some() || !state.problems.is_empty(), "{mode}: {state:?}");
        assert_eq!(good.await.result.unwrap().model_text(), "1", "{mode}");
        return gateway.close().await;
    }
    let bad = gateway.call("mcp__bad__say", input.clone());
    let (bad, good) = tokio::join!(tokio::time::timeout(NEVER, bad), good);
    let bad = bad.unwrap_or_else(|_| panic!("{mode}: the call was never answered"));
    let code = bad.result.as_ref().err().map(|refusal| refusal.code);
    assert_eq!(code, expected, "{mode}: {:?}", bad.result);
    if let Err(refusal) = &bad.result {
        assert!(!refusal.reason.is_empty() && !refusal.hint.is_empty(), "{mode}: {refusal}");
    }
    assert!(good.result.is_ok(), "{mode}: the other server's call failed: {:?}", good.result);
    gateway.close().await;
}

#[tokio::test]
async fn servers_that_never_come_up() {
    for mode in [
        "hang_at_start",
        "die_at_start",
        "hang_at_initialize",
        "die_at_initialize",
        "error_at_initialize",
        "junk_at_initialize",
        "endless_line_at_initialize",
        "hang_at_list",
        "die_at_list",
        "junk_at_list",
    ] {
        let mut bad = fake(mode, None);
        bad["connectTimeout"] = json!(1_500);
        check(mode, bad, None).await;
    }
}

#[tokio::test]
async fn servers_that_fail_in_the_middle() {
    for (mode, expected) in [
        ("hang_at_call", Some(Code::DeadlinePassed)),
        ("die_at_call", Some(Code::RemoteUnavailable)),
        ("no_result", Some(Code::RemoteFailed)),
        ("error", Some(Code::RemoteFailed)),
    ] {
        let mut bad = patient(mode);
        if expected == Some(Code::DeadlinePassed) {
            bad["timeout"] = json!(1_500);
        }
        check(mode, bad, expected).await;
    }
}

#[tokio::test]
async fn servers_that_write_too_much_are_still_read() {
    for mode in ["flood", "flood_at_start", "junk", "huge", "twice"] {
        check(mode, patient(mode), None).await;
    }
}

#[tokio::test]
async fn a_list_without_end_is_not_read_for_ever() {
    check("endless_list", fake("endless_list", None), None).await;
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_dropped() {
    let mut late = patient("late");
    late["timeout"] = json!(1_500);
    let gateway = GatewayFixture::with(json!({ "bad": late }), &["mcp__bad__say"], None).await;
    let first = gateway.call("mcp__bad__say", json!({ "text": "late" })).await.result.unwrap_err();
    assert_eq!(first.code, Code::DeadlinePassed);
    let second = gateway.call("mcp__bad__say", json!({ "text": "mine" })).await.result.unwrap();
    assert_eq!(second.model_text(), "mine");
    gateway.close().await;
}

#[tokio::test]
async fn a_tool_that_turns_while_it_is_in_use_is_held_back() {
    let dir = tempfile::tempdir().unwrap();
    let words = dir.path().join("words");
    let turns = fake("turns", words.to_str());
    let gateway = GatewayFixture::with(json!({ "bad": turns }), &["mcp__bad__say"], None).await;
    let mut news = gateway.gate.watch_tool_changes();
    assert!(gateway.call("mcp__bad__say", json!({ "text": "1" })).await.result.is_ok());
    while gateway.gate.definition("mcp__bad__say").is_some() {
        tokio::time::timeout(NEVER, news.changed()).await.unwrap().unwrap();
    }
    while gateway.state("bad").problems.is_empty() {
        tokio::task::yield_now().await;
    }
    let refused = gateway.call("mcp__bad__say", json!({ "text": "1" })).await.result.unwrap_err();
    assert_eq!(refused.code, Code::RemoteUnavailable);
    assert!(refused.reason.contains("changed since it was approved"), "{}", refused.reason);
    gateway.close().await;
}

#[tokio::test]
async fn a_server_that_died_is_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let died = dir.path().join("died");
    let mut once = fake("die_once", died.to_str());
    once["timeout"] = json!(60_000);
    let gateway = GatewayFixture::with(json!({ "bad": once }), &["mcp__bad__say"], None).await;
    let first = gateway.state("bad").process.unwrap();
    let refused = gateway.call("mcp__bad__say", json!({ "text": "1" })).await.result.unwrap_err();
    assert_eq!(refused.code, Code::RemoteUnavailable);
    assert!(refused.hint.contains("toolgate mcp test bad"), "{}", refused.hint);
    // Its tools stay listed, and the next call finds a server again.
    assert!(gateway.gate.definition("mcp__bad__say").is_some());
    let again = gateway.call("mcp__bad__say", json!({ "text": "1" })).await.result.unwrap();
    assert_eq!(again.model_text(), "1");
    let second = gateway.state("bad").process.unwrap();
    assert!(second != first && !alive(first));
    gateway.close().await;
    assert!(!alive(second));
}

/// The last answer of a server is read even if its process has ended.
#[tokio::test]
async fn no_answer_is_lost_when_a_server_ends_right_after_it() {
    let gateway =
        GatewayFixture::with(json!({ "bad": patient("last_words") }), &["mcp__bad__say"], None).await;
    for round in 0..4 {
        let process = loop {
            match gateway.state("bad").process {
                Some(process) => break Some(process),
                None => tokio::task::yield_now().await,
            }
        };
        let said = gateway.call("mcp__bad__say", json!({ "text": round.to_string() })).await.result.unwrap();
        assert_eq!(said.model_text(), round.to_string());
        // A call that is made before it is known that the server ended is another matter.
        while gateway.state("bad").process.is_none_or(|now| Some(now) == process) {
            tokio::task::yield_now().await;
        }
    }
    gateway.close().await;
}

#[tokio::test]
async fn servers_that_do_not_want_to_end_are_ended_with_all_they_started() {
    for (mode, started) in [("deaf", 1), ("breeds", 3)] {
        let gateway = GatewayFixture::with(json!({ "bad": patient(mode) }), &[], None).await;
        // A process that is just becoming another program shows no command line.
        for _ in 0..400 {
            if gateway.processes().len() == started {
                break;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert_eq!(gateway.processes().len(), started, "{mode}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn many_calls_at_once_get_one_answer_each() {
    let gateway = GatewayFixture::with(json!({ "one": patient("ok") }), &["mcp__one__say"], None).await;
    let calls = (0..64).map(|number| {
        let gateway = &gateway;
        async move {
            let said = gateway.call("mcp__one__say", json!({ "text": number.to_string() })).await;
            assert_eq!(said.result.unwrap().model_text(), number.to_string());
        }
    });
    tokio::time::timeout(NEVER, futures_util::future::join_all(calls)).await.unwrap();
    gateway.close().await;
}

#[tokio::test]
async fn what_kept_a_server_from_starting_is_said() {
    let gateway = GatewayFixture::with(json!({ "bad": fake("die_at_start", None) }), &[], None).await;
    let Some(McpConnectionError::Down(why)) = gateway.state("bad").error else {
        panic!("{:?}", gateway.state("bad"))
    };
    assert!(why.contains("no licence file"), "{why}");
    gateway.close().await;
}
