//! Changes by others are told, with what changed.

use super::files_room::Room;
use serde_json::json;
use std::time::{Duration, Instant};
use toolgate_tools::{ChangedFile, FileChange, changed_files_after_quiet, watch_reads};

/// Waits until something is told.
fn told(room: &Room) -> Vec<ChangedFile> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let changed = changed_files_after_quiet(&room.session, Duration::ZERO);
        if !changed.is_empty() || Instant::now() > end {
            return changed;
        }
        std::thread::yield_now();
    }
}

#[test]
fn what_others_change_is_told_once_and_own_writes_are_not() {
    let room = Room::new();
    let early = room.put("early", "one\n");
    let late = room.put("late", "1\n2\n3\n");
    room.put("unread", "x\n");
    room.said("Read", json!({ "file_path": early }));
    watch_reads(&room.session).unwrap();
    room.said("Read", json!({ "file_path": late }));

    // An own write, a touch and a file that was never read come first: none of them may be told.
    room.said("Edit", json!({ "file_path": late, "old_string": "1", "new_string": "one" }));
    std::fs::write(&early, "one\n").unwrap();
    std::fs::write(room.path("unread"), "y\n").unwrap();
    std::fs::write(&late, "one\ntwo\n3\n").unwrap();
    let changed = told(&room);
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(changed[0].path, room.top.join("late"));
    let FileChange::Modified { diff: Some(diff) } = &changed[0].what else { panic!("{changed:?}") };
    assert!(diff.ends_with("@@ -1,3 +1,3 @@\n one\n-2\n+two\n 3"), "{diff}");

    // What was told counts as seen.
    room.said("Write", json!({ "file_path": late, "content": "mine\n" }));
    std::fs::remove_file(&early).unwrap();
    let changed = told(&room);
    assert_eq!(changed, [ChangedFile { path: room.top.join("early"), what: FileChange::Deleted }]);

    // A diff that is too long to be shown whole does not make the file known.
    let long: String = (0..300).map(|n| format!("line {n}\n")).collect();
    std::fs::write(&late, long).unwrap();
    let changed = told(&room);
    let FileChange::Modified { diff: Some(diff) } = &changed[0].what else { panic!("{changed:?}") };
    assert!(diff.lines().count() <= 103, "{}", diff.lines().count());
    let refusal = room.refused("Write", json!({ "file_path": late, "content": "x" }));
    assert_eq!(refusal.kind, "FileNotReadError");
}
