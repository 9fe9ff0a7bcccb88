//! What the user is shown before a file changes, and when no user is asked at all.

use super::file_fixture::session;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Gate, GateParts, Session};
use toolgate_proto::{AbsPath, ApprovalCard, CallResult, Code, ToolCall};
use toolgate_tools::{Toolset, register, unified_diff};

/// Approves everything, and keeps what it was shown.
#[derive(Default)]
struct KeepingApprover(Mutex<Vec<ApprovalCard>>);

impl Approver for KeepingApprover {
    fn name(&self) -> &str {
        "keeping"
    }

    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        self.0.lock().unwrap().push(request.card.clone());
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

/// Both toolsets in mode default, where every change asks.
struct PreviewFixture {
    top: AbsPath,
    gate: Gate,
    session: Session,
    approver: Arc<KeepingApprover>,
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

impl PreviewFixture {
    fn new() -> Self {
        let dir = super::file_fixture::memory_dir();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let approver = Arc::new(KeepingApprover::default());
        let shared: Arc<dyn Approver> = approver.clone();
        let gate = Gate::new(GateParts::default().with_approvers(vec![shared]));
        register(&gate, Toolset::Claude).unwrap();
        register(&gate, Toolset::Plain).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { session: session(&top, "one"), top, gate, approver, runtime, _dir: dir }
    }

    fn put(&self, name: &str, content: &str) -> String {
        std::fs::write(self.top.join(name), content).unwrap();
        self.top.join(name).to_string()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.top.join(name)).unwrap()
    }

    fn call(&self, tool: &str, input: Value) -> CallResult {
        let call = ToolCall::new("c", tool, input.to_string());
        self.runtime.block_on(self.gate.call(&self.session, call, CallOptions::default())).result
    }

    /// The cards since the last time.
    fn take_cards(&self) -> Vec<ApprovalCard> {
        std::mem::take(&mut self.approver.0.lock().unwrap())
    }
}

fn notebook(source: &str) -> String {
    let cell = json!({ "cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "execution_count": null,
        "source": [source] });
    json!({ "cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string()
}

/// One change of `f`, whose content is `old`, to a content that contains `new`, by each tool that makes changes.
fn changes(path: &str, old: &str, new: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("Write", json!({ "file_path": path, "content": format!("{new}\n") })),
        ("write_file", json!({ "path": path, "content": format!("{new}\n"), "overwrite": true })),
        ("Edit", json!({ "file_path": path, "old_string": old, "new_string": new })),
        ("MultiEdit", json!({ "file_path": path, "edits": [{ "old_string": old, "new_string": new }] })),
        ("edit_file", json!({ "path": "f", "edits": [{ "target": old, "replacement": new }] })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// The diff on the card is the change that is then made, and stands for the arguments.
    #[test]
    fn the_card_shows_the_change_that_is_made(
        before in proptest::collection::vec("[a-z]{0,8}", 0..12), old in "OLD[a-z]{1,8}", new in "NEW[a-z\n]{1,8}",
    ) {
        let fixture = PreviewFixture::new();
        let content = format!("{}\n{old}\nlast\n", before.join("\n"));
        for (tool, input) in changes(&fixture.top.join("f").to_string(), &old, &new) {
            let path = fixture.put("f", &content);
            fixture.call("Read", json!({ "file_path": path })).unwrap();
            fixture.call(tool, input).unwrap_or_else(|refusal| panic!("{tool}: {refusal:?}"));
            let [card]: [ApprovalCard; 1] = fixture.take_cards().try_into().unwrap();
            let made = unified_diff(&path, Some(content.as_bytes()), Some(fixture.text("f").as_bytes()), 10_000);
            prop_assert_eq!(card.diff.as_deref(), Some(made.as_str()), "{}", tool);
            prop_assert!(card.arguments.is_empty() && card.effects.is_empty(), "{:?}", card);
        }
    }
}

#[test]
fn a_new_file_and_a_notebook_have_a_preview_too() {
    let fixture = PreviewFixture::new();
    let path = fixture.top.join("new").to_string();
    fixture.call("Write", json!({ "file_path": path, "content": "one\ntwo\n" })).unwrap();
    let diff = fixture.take_cards().remove(0).diff.unwrap();
    assert!(diff.starts_with("--- /dev/null\n") && diff.ends_with("+one\n+two"), "{diff}");

    let path = fixture.put("a.ipynb", &notebook("print(1)"));
    fixture.call("Read", json!({ "file_path": path })).unwrap();
    let input = json!({ "notebook_path": path, "cell_id": "one", "new_source": "print(2)" });
    fixture.call("NotebookEdit", input).unwrap();
    let diff = fixture.take_cards().remove(0).diff.unwrap();
    assert!(diff.contains("print(1)") && diff.contains("print(2)"), "{diff}");
}

#[test]
fn no_user_is_asked_about_a_change_that_is_refused_anyway() {
    let fixture = PreviewFixture::new();
    let path = fixture.put("f", "one\ntwo\ntwo\n");
    let edit = |old: &str| json!({ "file_path": path, "old_string": old, "new_string": "x" });
    let cell = json!({ "notebook_path": fixture.put("a.ipynb", &notebook("1")), "cell_id": "two", "new_source": "" });
    let gone = fixture.top.join("gone").to_string();
    let refused = |calls: &[(&str, Value, Code)]| {
        for (tool, input, code) in calls {
            let refusal = fixture.call(tool, input.clone()).unwrap_err();
            assert_eq!(refusal.code, *code, "{tool} {input}: {refusal:?}");
            assert!(fixture.take_cards().is_empty(), "{tool} {input}");
        }
    };
    refused(&[
        ("Edit", edit("one"), Code::NotRead),
        ("Write", json!({ "file_path": path, "content": "" }), Code::NotRead),
        ("NotebookEdit", cell.clone(), Code::NotRead),
        ("write_file", json!({ "path": path, "content": "" }), Code::FileExists),
        ("Edit", json!({ "file_path": gone, "old_string": "a", "new_string": "b" }), Code::FileNotFound),
    ]);
    fixture.call("Read", json!({ "file_path": path })).unwrap();
    fixture.call("Read", json!({ "file_path": cell["notebook_path"] })).unwrap();
    refused(&[
        ("Edit", edit("two"), Code::EditTargetAmbiguous),
        ("Edit", edit("three"), Code::EditTargetNotFound),
        ("NotebookEdit", cell, Code::EditTargetNotFound),
    ]);
    fixture.put("f", "changed\n");
    refused(&[("Edit", edit("one"), Code::ChangedSinceRead)]);
    assert!(fixture.call("Edit", edit("one")).unwrap_err().partial.is_none());
}

/// What is in a file that the session has not read stays unknown until the user has agreed.
#[test]
fn a_file_that_was_not_read_is_not_described_before_the_answer() {
    for target in ["secret", "guess"] {
        let fixture = PreviewFixture::new();
        fixture.put("f", "secret\n");
        let input = json!({ "path": "f", "edits": [{ "target": target, "replacement": "x" }] });
        let result = fixture.call("edit_file", input);
        let [card]: [ApprovalCard; 1] = fixture.take_cards().try_into().unwrap();
        assert_eq!((card.diff.is_some(), result.is_ok()), (target == "secret", target == "secret"));
    }
}
