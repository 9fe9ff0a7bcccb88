//! What the tool answers: places, withheld files, incomplete answers, missing servers.

use super::fake_server::{FakeFixture, FakeOptions, TestPermission};
use serde_json::json;
use std::time::Duration;
use toolgate_gate::GateParts;
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{AbsPath, Code};

#[tokio::test(flavor = "multi_thread")]
async fn places_are_shown_with_path_line_column_and_text() {
    let fake = FakeFixture::new("good");
    fake.write("a.fake", "😀 target\n  other\n  target = 2\n");
    let output = fake.references().await.unwrap();
    assert_eq!(output.model_text(), "a.fake:1:3: 😀 target\na.fake:3:3: target = 2");
    let structured = output.structured.unwrap();
    assert_eq!(structured["complete"], true);
    assert_eq!(structured["results"][1]["line"], 3);
    let hover = fake.ask("hover", json!({ "line": 1, "character": 3 })).await.unwrap();
    assert_eq!(hover.model_text(), "a text\n\n```fake\ntarget\n```");
    let symbols = fake.ask("documentSymbol", json!({})).await.unwrap();
    assert_eq!(symbols.model_text(), "symbol target [line 1]\nsymbol target [line 3]");
    let none = fake.ask("workspaceSymbol", json!({ "query": "x" })).await.unwrap();
    assert_eq!(none.model_text(), "workspaceSymbol: nothing found");
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_disk_is_seen_by_the_next_question() {
    let fake = FakeFixture::new("good");
    fake.write("a.fake", "target\n");
    assert_eq!(fake.references().await.unwrap().model_text().lines().count(), 1);
    fake.write("a.fake", "target target target\n");
    assert_eq!(fake.references().await.unwrap().model_text().lines().count(), 3);
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_characters_whatever_unit_the_server_uses() {
    for unit in ["utf-8", "utf-16", "utf-32"] {
        let fake = FakeFixture::new(unit);
        fake.write("a.fake", "target é😀 target\n");
        let text = fake.references().await.unwrap().model_text();
        assert_eq!(text, "a.fake:1:1: target é😀 target\na.fake:1:11: target é😀 target", "{unit}");
        assert_eq!(fake.pool.status()[0].instances[0].columns.as_deref(), Some(unit));
        fake.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_watches_files_learns_what_other_programs_do() {
    let fake = FakeFixture::new("watch");
    fake.write("a.fake", "target\n");
    fake.write("old.fake", "target\n");
    let symbols = || async {
        let output = fake.ask("workspaceSymbol", json!({ "query": "" })).await.unwrap();
        output.model_text()
    };
    // The server asks for the events after its start, at a time of its own.
    for _ in 0..6_000 {
        fake.write("probe.fake", "1\n");
        if symbols().await.contains("probe.fake") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::fs::create_dir(fake.fixture.root.join("sub")).unwrap();
    fake.write("sub/new.fake", "target\n");
    fake.write("sub/new.txt", "not watched\n");
    std::fs::remove_file(fake.fixture.root.join("old.fake")).unwrap();
    let mut text = String::new();
    for _ in 0..6_000 {
        text = symbols().await;
        if text.contains("1-new.fake") && text.contains("3-old.fake") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(text.contains("1-new.fake") && text.contains("3-old.fake"), "{text}");
    assert!(!text.contains("new.txt"), "{text}");
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_are_asked_for_at_a_server_that_registers_them() {
    let fake = FakeFixture::new("pull");
    fake.write("a.fake", "fine\nBAD one\n");
    // The registration may arrive after the first question, which then waits for published diagnostics that do not come.
    let mut text = String::new();
    for _ in 0..10 {
        if let Ok(output) = fake.ask("diagnostics", json!({})).await {
            text = output.model_text();
            break;
        }
    }
    assert_eq!(text, "a.fake:2:1: error[7]: bad: BAD one (fake)");
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_policy_hides_are_withheld_and_others_outside_have_no_text() {
    let mut rules = LayerRules::new(Layer::User, AbsPath::root());
    rules.deny.push("Read(//**/secret.fake)".into());
    let policy = RawPolicy::default().with_layers(vec![rules]);
    let parts = GateParts::default().with_policy(policy);
    let fake = FakeFixture::with("outside", FakeOptions { parts, ..FakeOptions::default() });
    fake.write("a.fake", "target\n");
    fake.write("secret.fake", "target password\n");
    let text = fake.references().await.unwrap().model_text();
    assert_eq!(text, "a.fake:1:1: target\n/etc/hostname:1\n[2 withheld by policy]");
    // A denied file is not opened at all.
    let input = json!({ "operation": "documentSymbol", "filePath": "secret.fake" });
    let refusal = fake.fixture.call("LSP", &input).await.unwrap_err();
    assert_eq!(refusal.code, Code::DeniedByRule);
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_before_the_index_is_finished_says_so() {
    let fake = FakeFixture::new("indexing");
    fake.write("a.fake", "target\n");
    let output = fake.references().await.unwrap();
    let text = output.model_text();
    assert!(text.starts_with("[still indexing: `fake` has not finished (Indexing)"), "{text}");
    assert_eq!(output.structured.unwrap()["complete"], false);
    // The symbols of one file need no index.
    let symbols = fake.ask("documentSymbol", json!({})).await.unwrap();
    assert_eq!(symbols.structured.unwrap()["complete"], true);
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_and_servers_that_are_missing_are_named() {
    let fake = FakeFixture::new("good");
    fake.write("a.fake", "target\n");
    fake.write("a.txt", "target\n");
    let refusal = fake.ask("goToImplementation", json!({ "line": 1, "symbol": "target" })).await.unwrap_err();
    assert!(
        refusal.reason.contains("`fake` (fake 1) does not offer `goToImplementation`"),
        "{}",
        refusal.reason
    );
    let input = json!({ "operation": "documentSymbol", "filePath": "a.txt" });
    let refusal = fake.fixture.call("LSP", &input).await.unwrap_err();
    assert!(refusal.reason.contains("no language server is configured for `a.txt`"), "{}", refusal.reason);
    fake.close().await;

    let permission = TestPermission::Refused;
    let fake = FakeFixture::with("good", FakeOptions { permission, ..FakeOptions::default() });
    fake.write("a.fake", "target\n");
    let refusal = fake.references().await.unwrap_err();
    assert_eq!(refusal.code, Code::LspUnavailable);
    assert!(refusal.reason.contains("this project is not trusted"));
    assert_eq!(fake.pid(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_are_those_of_the_current_text() {
    let fake = FakeFixture::new("good");
    fake.write("a.fake", "fine\nBAD one\n");
    let output = fake.ask("diagnostics", json!({})).await.unwrap();
    assert_eq!(output.model_text(), "a.fake:2:1: error[7]: bad: BAD one (fake)");
    fake.write("a.fake", "fine\n");
    assert_eq!(fake.ask("diagnostics", json!({})).await.unwrap().model_text(), "no problems in a.fake");
    fake.close().await;

    // A server that never publishes is a refusal, not "no problems".
    let fake = FakeFixture::new("mute");
    fake.write("a.fake", "BAD\n");
    let asked = tokio::time::timeout(Duration::from_secs(30), fake.ask("diagnostics", json!({})));
    let refusal = asked.await.unwrap().unwrap_err();
    assert!(refusal.reason.contains("reported no diagnostics"), "{}", refusal.reason);
    fake.close().await;
}
