//! Servers that crash, hang, flood or lie: each ends in a refusal or a restart, and no process is left.

use super::fake_server::{FakeFixture, FakeOptions, TestPermission, processes_in, wait_gone};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_gate::CallOptions;
use toolgate_proto::Code;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_start_is_a_refusal_with_its_reason() {
    for (behaviour, reason) in [
        ("crash-start", "it ended (exit status: 3); its last output: cannot load the plugin"),
        ("giant-length", "it announced a message of 99999999999 bytes"),
        ("bad-length", "it sent the invalid message length `-5`"),
        ("endless-header", "it sent more than 64 KiB without a message header"),
        ("bad-json", "it sent a message that is not JSON-RPC"),
        ("partial", "it closed its output in the middle of a message"),
        ("nonsense-start", "its answer is invalid: it has no `capabilities`"),
    ] {
        let fake = FakeFixture::new(behaviour);
        fake.write("a.fake", "target\n");
        let refusal = fake.references().await.unwrap_err();
        assert_eq!(refusal.code, Code::LspUnavailable, "{behaviour}");
        assert!(refusal.reason.contains(reason), "{behaviour}: {}", refusal.reason);
        assert_eq!(processes_in(&fake.fixture.root), 0, "{behaviour}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_in_time_is_a_refusal() {
    for behaviour in ["hang-start", "wrong-id"] {
        let change_entry =
            |entry: &mut toolgate_lsp::LspServerEntry| entry.startup_timeout = Duration::from_millis(700);
        let fake = FakeFixture::with(behaviour, FakeOptions { change_entry, ..FakeOptions::default() });
        fake.write("a.fake", "target\n");
        let refusal = fake.references().await.unwrap_err();
        assert!(refusal.reason.contains("did not answer within 0.7 s"), "{}", refusal.reason);
        assert_eq!(processes_in(&fake.fixture.root), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_server_that_hangs_can_be_cancelled_and_others_go_on() {
    let fake = FakeFixture::new("hang");
    fake.write("a.fake", "target\n");
    let cancel = CancellationToken::new();
    let input = json!({ "operation": "hover", "filePath": "a.fake", "line": 1, "symbol": "target" });
    let options = CallOptions::default().with_cancel(cancel.clone());
    let hanging = fake.fixture.call_with("LSP", &input, options);
    let cancelling = async {
        while fake.pid().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Another call of the same tool is refused by itself, while the first still waits.
        let other = fake.ask("hover", json!({ "line": 9, "symbol": "x" })).await.unwrap_err();
        assert_eq!(other.code, Code::PastEnd);
        cancel.cancel();
    };
    // The server never answers: only the cancellation ends the call.
    let both = async { tokio::join!(hanging, cancelling) };
    let (outcome, ()) = tokio::time::timeout(Duration::from_secs(300), both).await.unwrap();
    assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled);
    let pid = fake.pid().unwrap();
    fake.close().await;
    wait_gone(pid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_is_restarted_and_given_up_after_too_many_crashes() {
    let fake = FakeFixture::new("crash-once");
    fake.write("a.fake", "target target\n");
    let refusal = fake.references().await.unwrap_err();
    assert_eq!(refusal.code, Code::LspFailed);
    assert!(refusal.reason.contains("ended during the call"), "{}", refusal.reason);
    let output = fake.references().await.unwrap();
    assert_eq!(output.model_text().lines().count(), 2, "{}", output.model_text());
    fake.close().await;

    let change_entry = |entry: &mut toolgate_lsp::LspServerEntry| entry.max_restarts = 1;
    let fake = FakeFixture::with("crash", FakeOptions { change_entry, ..FakeOptions::default() });
    fake.write("a.fake", "target\n");
    for _ in 0..2 {
        assert_eq!(fake.references().await.unwrap_err().code, Code::LspFailed);
    }
    let refusal = fake.references().await.unwrap_err();
    assert!(refusal.reason.contains("it failed 2 times and is not restarted any more"), "{}", refusal.reason);
    // A restart by the user is a new start.
    fake.pool.restart(None).await;
    assert_eq!(fake.references().await.unwrap_err().code, Code::LspFailed);
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_double_answers_and_lines_of_text_do_no_harm() {
    for behaviour in ["flood", "ask-flood", "double", "log-lines", "modified", "stderr-flood"] {
        let fake = FakeFixture::new(behaviour);
        fake.write("a.fake", "target target\n");
        let result = fake.references().await;
        match (behaviour, result) {
            // Its questions may outrun its own reading of the answers; then it is given up, with the reason.
            ("ask-flood", Err(refusal)) => {
                assert!(refusal.reason.contains("does not read its input"), "{}", refusal.reason);
            }
            (_, result) => {
                let output = result.unwrap_or_else(|refusal| panic!("{behaviour}: {}", refusal.reason));
                assert_eq!(output.model_text().lines().count(), 2, "{behaviour}: {}", output.model_text());
            }
        }
        let root = fake.fixture.root.clone();
        fake.close().await;
        assert_eq!(processes_in(&root), 0, "{behaviour}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_type_and_an_error_are_refusals() {
    for (behaviour, reason) in [("nonsense", "its answer is invalid"), ("error", "stack trace (code 1)")] {
        let fake = FakeFixture::new(behaviour);
        fake.write("a.fake", "target\n");
        let refusal = fake.references().await.unwrap_err();
        assert_eq!(refusal.code, Code::LspFailed);
        assert!(refusal.reason.contains(reason), "{}", refusal.reason);
        fake.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_applies_edits_by_itself_changes_nothing() {
    let fake = FakeFixture::new("apply-edit");
    fake.write("a.fake", "target\n");
    fake.references().await.unwrap();
    let reply = fake.ask("hover", json!({ "line": 1, "symbol": "target" })).await.unwrap().model_text();
    assert!(reply.contains(r#""applied": false"#), "{reply}");
    fake.close().await;
    assert_eq!(fake.read("a.fake"), "target\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_ended_after_two_requests_and_started_again() {
    let change_entry =
        |entry: &mut toolgate_lsp::LspServerEntry| entry.request_timeout = Duration::from_millis(300);
    let fake = FakeFixture::with("hang", FakeOptions { change_entry, ..FakeOptions::default() });
    fake.write("a.fake", "target\n");
    let ask = || fake.ask("hover", json!({ "line": 1, "symbol": "target" }));
    let refusal = ask().await.unwrap_err();
    assert_eq!(refusal.code, Code::LspFailed);
    assert!(refusal.reason.contains("it did not answer within 0.3 s"), "{}", refusal.reason);
    let first = fake.pid().unwrap();
    assert_eq!(ask().await.unwrap_err().code, Code::LspFailed);
    wait_gone(first).await;
    let refusal = ask().await.unwrap_err();
    assert!(refusal.reason.contains("it did not answer within 0.3 s"), "{}", refusal.reason);
    let instance = fake.pool.status()[0].instances[0].clone();
    assert_ne!(instance.pid, Some(first));
    assert_eq!(instance.crashes, 1);
    let error = instance.last_error.unwrap();
    assert!(error.contains("it hangs: it left 2 requests unanswered"), "{error}");
    let root = fake.fixture.root.clone();
    fake.close().await;
    assert_eq!(processes_in(&root), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_while_it_indexes_is_a_refusal_and_not_a_long_wait() {
    let change_pool =
        |options: &mut toolgate_lsp::PoolOptions| options.ready_timeout = Duration::from_secs(3_600);
    let fake = FakeFixture::with("crash-indexing", FakeOptions { change_pool, ..FakeOptions::default() });
    fake.write("a.fake", "target\n");
    for operation in ["findReferences", "diagnostics"] {
        let rest =
            if operation == "diagnostics" { json!({}) } else { json!({ "line": 1, "symbol": "target" }) };
        let asked = tokio::time::timeout(Duration::from_secs(60), fake.ask(operation, rest));
        let refusal = asked.await.unwrap().unwrap_err();
        assert_eq!(refusal.code, Code::LspFailed, "{}", refusal.reason);
        assert!(refusal.reason.contains("ended during the call"), "{}", refusal.reason);
    }
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_is_left_whatever_the_server_started_and_however_it_ends() {
    for behaviour in ["good", "children", "hang-shutdown"] {
        let fake = FakeFixture::new(behaviour);
        fake.write("a.fake", "target\n");
        fake.references().await.unwrap();
        let pid = fake.pid().unwrap();
        let root = fake.fixture.root.clone();
        fake.close().await;
        wait_gone(pid).await;
        assert_eq!(processes_in(&root), 0, "{behaviour}");
        let refusal = fake.fixture.call("LSP", &json!({})).await.unwrap_err();
        assert_eq!(refusal.code, Code::UnknownTool, "a closed source has no tools");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_is_shut_down_and_started_again_when_needed() {
    let change_pool =
        |options: &mut toolgate_lsp::PoolOptions| options.idle_timeout = Duration::from_millis(300);
    let fake = FakeFixture::with("good", FakeOptions { change_pool, ..FakeOptions::default() });
    fake.write("a.fake", "target\n");
    fake.references().await.unwrap();
    wait_gone(fake.pid().unwrap()).await;
    while fake.pool.has_running() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fake.references().await.unwrap();
    let crashes = fake.pool.status()[0].instances[0].crashes;
    assert_eq!(crashes, 0, "a shutdown is not a crash");
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandboxed_server_answers_and_writes_only_where_it_may() {
    let permission = TestPermission::Sandboxed;
    // The fault writes a file into its root before it crashes.
    let fake = FakeFixture::with("crash-once", FakeOptions { permission, ..FakeOptions::default() });
    fake.write("a.fake", "target\n");
    for _ in 0..2 {
        assert_eq!(fake.references().await.unwrap_err().code, Code::LspFailed);
        assert!(!fake.fixture.root.join(".crashed").as_path().exists());
    }
    fake.close().await;

    let change_entry =
        |entry: &mut toolgate_lsp::LspServerEntry| entry.writable = vec![".crashed".to_owned()];
    let options = FakeOptions { permission, change_entry, ..FakeOptions::default() };
    let fake = FakeFixture::with("crash-once", options);
    fake.write("a.fake", "target\n");
    assert_eq!(fake.references().await.unwrap_err().code, Code::LspFailed);
    assert_eq!(fake.references().await.unwrap().model_text(), "a.fake:1:1: target");
    assert!(fake.fixture.root.join(".crashed").as_path().exists());
    fake.close().await;
}
