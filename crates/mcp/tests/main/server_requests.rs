//! Lists, calls, progress and cancellation, in both eras.

use super::server_fixture::{Client, ServerFixture, meta};
use serde_json::{Value, json};
use toolgate_proto::{Code, OutcomeRecord};

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[tokio::test]
async fn a_legacy_client_lists_and_calls() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    let opened = client.initialize(json!({})).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25");
    let listed = client.ask(1, "tools/list", json!({})).await;
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["echo", "slow", "write"]);
    let tool = &listed["result"]["tools"][0];
    // What the protocol takes for granted, that it may destroy, is not said.
    assert_eq!(tool["annotations"], json!({ "readOnlyHint": false, "openWorldHint": false }));
    assert_eq!(tool["inputSchema"]["required"], json!(["text"]));
    assert!(listed["result"].get("resultType").is_none(), "that word is for the new era");

    let done = client.ask(2, "tools/call", call("echo", json!({ "text": "hi" }))).await;
    assert_eq!(done["result"]["content"], json!([{ "type": "text", "text": "hi" }]));
    assert!(done["result"].get("structuredContent").is_none(), "text is not sent twice");

    let unknown = client.ask(3, "tools/call", call("nope", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let invalid = client.ask(4, "tools/call", call("echo", json!({ "text": 3 }))).await;
    assert_eq!(invalid["result"]["isError"], true);
    // No approver: a refusal that says what to do, not an error of the protocol.
    let denied = client.ask(5, "tools/call", call("write", json!({ "text": "x" }))).await;
    assert_eq!(denied["result"]["isError"], true);
    assert_eq!(denied["result"]["_meta"]["toolgate/refusal"]["code"], Code::ApprovalUnavailable.to_string());
    let said = denied["result"]["content"][0]["text"].as_str().unwrap();
    // A rule `write` would be refused as a misspelled `Write`, so it is not advised.
    assert!(said.contains("the user has to approve each such call"), "{said}");
    client.end().await;
    assert_eq!(stage.records.records().len(), 4, "each call left one record");
}

#[tokio::test]
async fn a_modern_client_needs_no_opening() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    let found = client.ask(1, "server/discover", json!({ "_meta": meta(json!({})) })).await;
    assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    let listed = client.ask(2, "tools/list", json!({ "_meta": meta(json!({})) })).await;
    assert_eq!(listed["result"]["resultType"], "complete");
    assert!(listed["result"]["ttlMs"].is_u64());
    assert_eq!(listed["result"]["cacheScope"], "private");
    let bare = client.ask(3, "tools/call", call("echo", json!({ "text": "hi" }))).await;
    assert_eq!(bare["error"]["code"], -32602, "every request stands for itself");
    let mut params = call("echo", json!({ "text": "hi" }));
    params["_meta"] = meta(json!({}));
    let done = client.ask(4, "tools/call", params).await;
    assert_eq!(done["result"]["content"][0]["text"], "hi");
    client.end().await;
}

#[tokio::test]
async fn junk_does_not_end_the_connection() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    client.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    client.line("not json at all").await;
    assert_eq!(client.next().await["error"]["code"], -32700);
    client.initialize(json!({})).await;
    client.line(r#"{"jsonrpc":"2.0","id":7}"#).await;
    client.line("").await;
    client.line("[]").await;
    // Two ways to read it: refused with the key named, whichever reader would have won.
    client
        .line(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a","text":"b"}}}"#)
        .await;
    let refused = client.reply(8).await;
    assert_eq!(refused["result"]["_meta"]["toolgate/refusal"]["code"], Code::DuplicateKey.to_string());
    client
        .line(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","name":"write","arguments":{"text":"a"}}}"#)
        .await;
    assert_eq!(client.reply(9).await["error"]["code"], -32600);
    let done = client.ask(10, "tools/call", call("echo", json!({ "text": "still here" }))).await;
    assert_eq!(done["result"]["content"][0]["text"], "still here");
    client.end().await;
}

#[tokio::test]
async fn progress_grows_and_a_cancelled_call_ends() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    client.initialize(json!({})).await;
    let mut params = call("slow", json!({}));
    params["_meta"] = json!({ "progressToken": "p" });
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    // Clients are notified ten times a second at most, and no text is lost.
    let (mut last, mut said) = (0.0, String::new());
    while !said.contains("step 3") {
        let message = client.next().await;
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "p");
        let progress = message["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{message}");
        last = progress;
        said.push_str(message["params"]["message"].as_str().unwrap());
    }
    assert_eq!((last, said.as_str()), (75.0, "step 1step 2step 3"));
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    // Other calls go on meanwhile.
    let done = client.ask(2, "tools/call", call("echo", json!({ "text": "hi" }))).await;
    assert_eq!(done["result"]["content"][0]["text"], "hi");
    client.end().await;
    let records = stage.records.records();
    let cancelled = records.iter().find(|record| record.asked.as_str() == "slow").unwrap();
    assert!(
        matches!(&cancelled.outcome, OutcomeRecord::Cancelled { code: Code::Cancelled, .. }),
        "{:?}",
        cancelled.outcome
    );
}

#[tokio::test]
async fn sixty_four_calls_in_flight_get_sixty_four_replies() {
    let stage = ServerFixture::new();
    let mut client = stage.client();
    client.initialize(json!({})).await;
    for round in 0..8u64 {
        let ids: Vec<u64> = (0..64).map(|n| 100 + round * 64 + n).collect();
        let lines: Vec<String> = ids
            .iter()
            .map(|id| {
                let params = call("echo", json!({ "text": format!("{id} {}", "x".repeat(4096)) }));
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
            })
            .collect();
        // Written and read at once, as a client would: both ends are bounded.
        let (mut seen, mut sent) = (std::collections::BTreeSet::new(), 0);
        while seen.len() < ids.len() {
            while sent < lines.len() && sent - seen.len() < 8 {
                client.line(&lines[sent]).await;
                sent += 1;
            }
            let reply = client.next().await;
            let id = reply["id"].as_u64().unwrap();
            assert!(reply["result"]["content"][0]["text"].as_str().unwrap().starts_with(&id.to_string()));
            assert!(seen.insert(id), "{id} was answered twice");
        }
    }
    client.end().await;
}

#[tokio::test]
async fn lists_come_in_pages_and_news_of_changes_arrive() {
    let stage = ServerFixture::new();
    let mut client = Client::of(stage.server(2));
    client.initialize(json!({})).await;
    let first = client.ask(1, "tools/list", json!({})).await;
    let cursor = first["result"]["nextCursor"].as_str().unwrap().to_owned();
    let second = client.ask(2, "tools/list", json!({ "cursor": cursor })).await;
    assert_eq!(second["result"]["tools"][0]["name"], "write");
    assert!(second["result"].get("nextCursor").is_none());
    assert_eq!(client.ask(3, "tools/list", json!({ "cursor": "2" })).await["error"]["code"], -32602);
    // A hidden tool is gone from the list, and a call of it is a call of nothing.
    let visibility = toolgate_gate::Visibility::default().with_hidden(["write".to_owned()]);
    stage.gate.set_visibility(visibility);
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    let gone = client.ask(4, "tools/call", call("write", json!({ "text": "x" }))).await;
    assert_eq!(gone["error"]["code"], -32602);
    client.end().await;
}
