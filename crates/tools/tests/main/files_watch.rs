//! Changes of other programs to files that the session has read are reported with a diff.

use super::file_fixture::FileFixture;
use serde_json::json;
use std::time::{Duration, Instant};
use toolgate_tools::{ChangedFile, FileChange, changed_files_after_quiet, watch_reads};

/// Waits until a change is reported.
fn wait_for_changes(fixture: &FileFixture) -> Vec<ChangedFile> {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let changed = changed_files_after_quiet(&fixture.session, Duration::ZERO);
        if !changed.is_empty() || Instant::now() > deadline {
            return changed;
        }
        std::thread::yield_now();
    }
}

#[test]
fn changes_of_other_programs_are_reported_once_and_own_writes_are_not() {
    let fixture = FileFixture::new();
    let early = fixture.put("early", "one\n");
    let late = fixture.put("late", "1\n2\n3\n");
    fixture.put("unread", "x\n");
    fixture.call_text("Read", json!({ "file_path": early }));
    watch_reads(&fixture.session).unwrap();
    fixture.call_text("Read", json!({ "file_path": late }));

    // Not reported: a write by the session, a save without a change, and a file that was never read.
    fixture.call_text("Edit", json!({ "file_path": late, "old_string": "1", "new_string": "one" }));
    std::fs::write(&early, "one\n").unwrap();
    std::fs::write(fixture.path("unread"), "y\n").unwrap();
    std::fs::write(&late, "one\ntwo\n3\n").unwrap();
    let changed = wait_for_changes(&fixture);
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(changed[0].path, fixture.top.join("late"));
    let FileChange::Modified { diff: Some(diff) } = &changed[0].what else { panic!("{changed:?}") };
    assert!(diff.ends_with("@@ -1,3 +1,3 @@\n one\n-2\n+two\n 3"), "{diff}");

    // A reported change counts as read.
    fixture.call_text("Write", json!({ "file_path": late, "content": "mine\n" }));
    std::fs::remove_file(&early).unwrap();
    let changed = wait_for_changes(&fixture);
    let changed: Vec<_> = changed.into_iter().map(|file| (file.path, file.what)).collect();
    assert_eq!(changed, [(fixture.top.join("early"), FileChange::Deleted)]);

    // A truncated diff does not count as a complete read.
    let long: String = (0..300).map(|n| format!("line {n}\n")).collect();
    std::fs::write(&late, long).unwrap();
    let changed = wait_for_changes(&fixture);
    let FileChange::Modified { diff: Some(diff) } = &changed[0].what else { panic!("{changed:?}") };
    assert!(diff.lines().count() <= 103, "{}", diff.lines().count());
    let refusal = fixture.call_refusal("Write", json!({ "file_path": late, "content": "x" }));
    assert_eq!(refusal.kind, "FileNotReadError");
}
