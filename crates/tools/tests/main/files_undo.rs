//! What tools change can be undone.

use super::files_room::Room;
use serde_json::json;
use toolgate_files::{ConflictHandling, UndoSelector};
use toolgate_tools::unified_diff;

#[test]
fn a_change_of_three_files_by_three_tools_is_undone_and_redone() {
    let room = Room::new();
    let a = room.put("a", "one\n");
    room.put("b", "two\n");
    room.said("Read", json!({ "file_path": a }));
    let call = |tool: &str, input| room.call_as(&room.session, "the-call", tool, input).unwrap();
    call("Edit", json!({ "file_path": a, "old_string": "one", "new_string": "1" }));
    call("edit_file", json!({ "path": "b", "edits": [{ "target": "two", "replacement": "2" }] }));
    call("Write", json!({ "file_path": room.path("c/d"), "content": "three\n" }));

    let which = UndoSelector::Call("the-call".into(), None);
    let plan = room.journal.plan_undo(&which).unwrap();
    let diffs: Vec<String> = plan
        .restores
        .iter()
        .map(|it| unified_diff(&it.path.to_string(), it.now.as_deref(), it.then.as_deref(), 100))
        .collect();
    assert!(diffs[0].ends_with("@@ -1,1 +1,1 @@\n-1\n+one"), "{diffs:?}");
    assert!(diffs[2].contains("+++ /dev/null"), "{diffs:?}");

    room.journal.undo(&which, ConflictHandling::Refuse).unwrap();
    assert_eq!((room.text("a"), room.text("b")), ("one\n".into(), "two\n".into()));
    assert!(!std::path::Path::new(&room.path("c/d")).exists());
    room.journal.redo(&which, ConflictHandling::Refuse).unwrap();
    assert_eq!(
        (room.text("a"), room.text("b"), room.text("c/d")),
        ("1\n".into(), "2\n".into(), "three\n".into())
    );

    // The model's view is stale after an undo, and it is told.
    room.journal.undo(&which, ConflictHandling::Refuse).unwrap();
    let refusal = room.refused("Write", json!({ "file_path": a, "content": "x" }));
    assert_eq!(refusal.kind, "FileChangedError");
}
