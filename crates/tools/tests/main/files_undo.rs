//! Undo and redo of changes that tools made.

use super::file_fixture::FileFixture;
use serde_json::json;
use toolgate_files::{ConflictHandling, UndoSelector};
use toolgate_tools::unified_diff;

#[test]
fn a_change_of_three_files_by_three_tools_is_undone_and_redone() {
    let fixture = FileFixture::new();
    let a = fixture.put("a", "one\n");
    fixture.put("b", "two\n");
    fixture.call_text("Read", json!({ "file_path": a }));
    let call = |tool: &str, input| fixture.call_as(&fixture.session, "the-call", tool, input).unwrap();
    call("Edit", json!({ "file_path": a, "old_string": "one", "new_string": "1" }));
    call("edit_file", json!({ "path": "b", "edits": [{ "target": "two", "replacement": "2" }] }));
    call("Write", json!({ "file_path": fixture.path("c/d"), "content": "three\n" }));

    let which = UndoSelector::Call("the-call".into(), None);
    let plan = fixture.journal.plan_undo(&which).unwrap();
    let diffs: Vec<String> = plan
        .restores
        .iter()
        .map(|it| unified_diff(&it.path.to_string(), it.now.as_deref(), it.then.as_deref(), 100))
        .collect();
    assert!(diffs[0].ends_with("@@ -1,1 +1,1 @@\n-1\n+one"), "{diffs:?}");
    assert!(diffs[2].contains("+++ /dev/null"), "{diffs:?}");

    fixture.journal.undo(&which, ConflictHandling::Refuse).unwrap();
    assert_eq!((fixture.text("a"), fixture.text("b")), ("one\n".into(), "two\n".into()));
    assert!(!std::path::Path::new(&fixture.path("c/d")).exists());
    fixture.journal.redo(&which, ConflictHandling::Refuse).unwrap();
    assert_eq!(
        (fixture.text("a"), fixture.text("b"), fixture.text("c/d")),
        ("1\n".into(), "2\n".into(), "three\n".into())
    );

    // After an undo, what the model has read is stale, and a write is refused.
    fixture.journal.undo(&which, ConflictHandling::Refuse).unwrap();
    let refusal = fixture.call_refusal("Write", json!({ "file_path": a, "content": "x" }));
    assert_eq!(refusal.kind, "FileChangedError");
}
