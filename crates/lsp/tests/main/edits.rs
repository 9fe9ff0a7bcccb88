//! Changes that servers compute: judged per file, written together or not at all, undone as one; and diagnostics after edits.

use super::fake_server::{FakeFixture, FakeOptions};
use super::write_tool::PutTool;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use toolgate_files::{ConflictHandling, Journal, JournalLimits, UndoFilter, UndoSelector};
use toolgate_gate::GateParts;
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{AbsPath, CallResult, Code, SourceId};

/// A policy that allows edits, with further deny rules.
pub(crate) fn policy(deny: &[&str]) -> RawPolicy {
    let mut rules = LayerRules::new(Layer::User, AbsPath::root());
    rules.allow.push("Edit(//**)".into());
    rules.deny.extend(deny.iter().map(|rule| (*rule).into()));
    RawPolicy::default().with_layers(vec![rules])
}

fn fixture(behaviour: &str, deny: &[&str]) -> FakeFixture {
    let parts = GateParts::default().with_policy(policy(deny));
    // On a busy machine a server that does publish needs more time than a user would wait.
    let wait_long = |options: &mut toolgate_lsp::PoolOptions| {
        options.diagnostics_timeout = Duration::from_secs(300);
    };
    let options = FakeOptions { parts, ..FakeOptions::default() };
    match behaviour {
        "good" => FakeFixture::with(behaviour, FakeOptions { change_pool: wait_long, ..options }),
        _ => FakeFixture::with(behaviour, options),
    }
}

async fn rename(fake: &FakeFixture) -> CallResult {
    fake.ask("rename", json!({ "line": 1, "symbol": "target", "newName": "goal" })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_over_200_files_is_one_undo() {
    let state = tempfile::tempdir().unwrap();
    let dir = AbsPath::new(state.path().canonicalize().unwrap()).unwrap();
    let journal = Arc::new(Journal::open(&dir, JournalLimits::default()).unwrap());
    let parts = GateParts::default().with_policy(policy(&[])).with_journal(Arc::clone(&journal));
    let fake = FakeFixture::with("good", FakeOptions { parts, ..FakeOptions::default() });
    fake.write("a.fake", "target 😀 target\n");
    for index in 0..199 {
        fake.write(&format!("f{index}.fake"), &format!("{index} target\n"));
    }
    let output = rename(&fake).await.unwrap();
    assert!(
        output.model_text().starts_with("rename to `goal`: 201 edits in 200 files\n"),
        "{}",
        output.model_text()
    );
    assert_eq!(fake.read("a.fake"), "goal 😀 goal\n");
    assert_eq!(fake.read("f198.fake"), "198 goal\n");
    // The server has the new text.
    let refusal = fake.references().await.unwrap_err();
    assert!(refusal.reason.contains("`target` is not on line 1"), "{}", refusal.reason);

    let undone = journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!((undone.calls.len(), undone.restores.len()), (1, 200));
    assert_eq!(fake.read("a.fake"), "target 😀 target\n");
    assert_eq!(fake.read("f198.fake"), "198 target\n");
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_denied_stops_the_whole_rename_before_anything_is_written() {
    for (rule, code) in [
        ("Edit(//**/m.fake)", Code::DeniedByRule),
        // Hidden files cannot be planned, because their text may not be read.
        ("Read(//**/m.fake)", Code::LspFailed),
    ] {
        let fake = fixture("good", &[rule]);
        for name in ["a.fake", "m.fake", "z.fake"] {
            fake.write(name, "target\n");
        }
        let refusal = rename(&fake).await.unwrap_err();
        assert_eq!(refusal.code, code, "{}", refusal.reason);
        assert!(refusal.reason.contains("m.fake"), "{}", refusal.reason);
        for name in ["a.fake", "m.fake", "z.fake"] {
            assert_eq!(fake.read(name), "target\n");
        }
        fake.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_without_permission_to_edit_changes_nothing() {
    let fake = FakeFixture::new("good");
    fake.write("a.fake", "target\n");
    assert_eq!(rename(&fake).await.unwrap_err().code, Code::ApprovalUnavailable);
    assert_eq!(fake.read("a.fake"), "target\n");
    // The id of an edit that is gone is refused, and so is one that never was.
    let refusal = fake.ask("applyEdit", json!({ "edit": "edit_1" })).await.unwrap_err();
    assert!(refusal.reason.contains("there is no such edit"), "{}", refusal.reason);
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn formatting_and_code_actions_are_edits_too() {
    let fake = fixture("good", &[]);
    fake.write("a.fake", "target\n");
    let output = fake.ask("formatting", json!({})).await.unwrap();
    assert!(output.model_text().contains("1 edit in 1 file"), "{}", output.model_text());
    assert_eq!(fake.read("a.fake"), "# formatted\ntarget\n");
    let actions = fake.ask("codeActions", json!({ "line": 2 })).await.unwrap();
    assert_eq!(actions.model_text(), "Fix it [quickfix], preferred\nRun it, cannot be applied here");
    fake.ask("applyCodeAction", json!({ "line": 2, "action": "Fix it" })).await.unwrap();
    assert_eq!(fake.read("a.fake"), "# formatted\nfixed\n");
    let refusal = fake.ask("applyCodeAction", json!({ "line": 2, "action": "Run it" })).await.unwrap_err();
    assert!(refusal.reason.contains("runs a command"), "{}", refusal.reason);
    let refusal = fake.ask("applyCodeAction", json!({ "line": 2, "action": "No" })).await.unwrap_err();
    assert!(refusal.reason.contains("there are: Fix it; Run it"), "{}", refusal.reason);
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_warns_gives_answers_that_say_so_and_renames_nothing() {
    let fake = fixture("warns", &[]);
    fake.write("a.fake", "target\n");
    let warning = "`fake` warns, so this answer may be incomplete: no standard library try installing it";
    // The warning comes after the start, at a time of the server's own.
    let mut answer = fake.references().await.unwrap();
    for _ in 0..6_000 {
        if answer.model_text().contains(warning) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        answer = fake.references().await.unwrap();
    }
    assert_eq!(answer.model_text(), format!("[{warning}]\na.fake:1:1: target"));
    assert_eq!(answer.structured.unwrap()["complete"], false);
    let refusal = rename(&fake).await.unwrap_err();
    assert!(refusal.reason.contains("incomplete: no standard library"), "{}", refusal.reason);
    assert_eq!(fake.read("a.fake"), "target\n");
    // What needs no more than the file is not affected.
    let symbols = fake.ask("documentSymbol", json!({})).await.unwrap();
    assert_eq!(symbols.structured.unwrap()["complete"], true);
    fake.ask("formatting", json!({})).await.unwrap();
    assert_eq!(fake.read("a.fake"), "# formatted\ntarget\n");
    fake.close().await;
}

async fn put(fake: &FakeFixture, text: &str) -> String {
    fake.fixture.call("Put", &json!({ "file": "a.fake", "text": text })).await.unwrap().model_text()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_of_an_edit_has_the_problems_that_it_introduced_and_no_others() {
    let fake = fixture("good", &[]);
    fake.fixture.gate.register(SourceId::Builtin, PutTool).unwrap();
    fake.write("a.fake", "target\nBAD old\n");
    // No server runs, and none is started.
    assert_eq!(put(&fake, "target\nBAD old\n\n").await, "written");
    assert_eq!(fake.pid(), None);
    fake.references().await.unwrap();
    let text = put(&fake, "BAD new\ntarget\nBAD old\n").await;
    assert_eq!(text, "written\n[problems after this change]\na.fake:1:1: new error[7]: bad: BAD new (fake)");
    // What was there before, at another line, is not new.
    assert_eq!(put(&fake, "target\n\n\nBAD old\nBAD new\n").await, "written");
    assert_eq!(put(&fake, "target\n").await, "written");
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_hangs_at_a_server_does_not_hold_up_an_edit_of_the_same_file() {
    let fake = fixture("hang", &[]);
    fake.fixture.gate.register(SourceId::Builtin, PutTool).unwrap();
    fake.write("a.fake", "target\n");
    let cancel = tokio_util::sync::CancellationToken::new();
    let input = json!({ "operation": "hover", "filePath": "a.fake", "line": 1, "symbol": "target" });
    let options = toolgate_gate::CallOptions::default().with_cancel(cancel.clone());
    let hanging = fake.fixture.call_with("LSP", &input, options);
    let editing = async {
        while fake.pid().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let text = tokio::time::timeout(Duration::from_secs(300), put(&fake, "goal\n")).await;
        cancel.cancel();
        text
    };
    let (outcome, text) = tokio::join!(hanging, editing);
    assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled);
    assert_eq!(text.unwrap(), "written");
    assert_eq!(fake.read("a.fake"), "goal\n");
    fake.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_delays_the_result_of_an_edit_no_longer_than_the_limit() {
    // One that publishes nothing, and one that asks to be asked again for ever.
    for behaviour in ["mute", "pull-busy"] {
        let parts = GateParts::default().with_policy(policy(&[]));
        let change_pool = |options: &mut toolgate_lsp::PoolOptions| {
            options.diagnostics_timeout = Duration::from_millis(300);
        };
        let fake = FakeFixture::with(behaviour, FakeOptions { parts, change_pool, ..FakeOptions::default() });
        fake.fixture.gate.register(SourceId::Builtin, PutTool).unwrap();
        fake.write("a.fake", "target\n");
        fake.references().await.unwrap();
        // Without the limit this would never end.
        let written = tokio::time::timeout(Duration::from_secs(300), put(&fake, "BAD\n")).await;
        assert_eq!(written.unwrap(), "written", "the limit does not hold");
        fake.close().await;
    }
}
