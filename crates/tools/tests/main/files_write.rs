//! Writing whole files.

use super::files_room::{Room, session};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use toolgate_proto::Mode;
use toolgate_tools::{SchemaCheck, seed_read_state};

#[test]
fn creation_and_update_are_reported_with_sizes_and_a_patch() {
    let room = Room::new();
    let path = room.path("new/dir/a.txt");
    let output = room.call("Write", json!({ "file_path": path, "content": "one\ntwo\n" })).unwrap();
    assert_eq!(output.model_text(), format!("created {path}: 2 lines, 8 bytes"));
    let structured = output.structured.unwrap();
    assert_eq!(structured["type"], "create");
    assert_eq!(structured["originalFile"], json!(null));
    assert_eq!(structured["structuredPatch"], json!([]));

    let output = room.call("Write", json!({ "file_path": path, "content": "one\n2\n" })).unwrap();
    let text = output.model_text();
    assert_eq!(
        text,
        format!("updated {path}: 2 lines, 6 bytes (+1 -1 lines)\n@@ -1,2 +1,2 @@\n one\n-two\n+2")
    );
    let structured = output.structured.unwrap();
    assert_eq!(structured["type"], "update");
    assert_eq!(structured["originalFile"], "one\ntwo\n");
    assert_eq!(
        structured["structuredPatch"],
        json!([{ "oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+2"] }])
    );
    let said = room.said("Write", json!({ "file_path": path, "content": "one\n2\n" }));
    assert!(said.contains("has this content already"), "{said}");
}

#[test]
fn an_existing_file_must_have_been_read_as_a_whole_and_be_the_same() {
    let room = Room::new();
    let path = room.put("a", "one\ntwo\nthree\n");
    let write = || room.call("Write", json!({ "file_path": path, "content": "new\n" }));
    let refusal = write().unwrap_err();
    assert_eq!((refusal.kind.as_str(), refusal.stage.as_str()), ("FileNotReadError", "guard"));
    room.said("Read", json!({ "file_path": path, "offset": 2 }));
    assert!(write().unwrap_err().reason.contains("only a part"));
    room.said("Read", json!({ "file_path": path }));
    std::fs::write(&path, "one\n2\nthree\n").unwrap();
    let refusal = write().unwrap_err();
    assert_eq!(refusal.kind, "FileChangedError");
    let what = refusal.partial.unwrap().model_text();
    assert!(what.contains("-two\n+2"), "{what}");
    room.said("Read", json!({ "file_path": path }));
    // A touch is no change.
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    write().unwrap();
    assert_eq!(room.text("a"), "new\n");
}

#[test]
fn a_host_can_tell_what_its_model_has_seen_and_another_session_has_seen_nothing() {
    let room = Room::new();
    let path = room.put("a", "seen\n");
    let other = session(&room.top, "other");
    seed_read_state(&room.session, &room.top.join("a"), b"seen\n");
    let input = json!({ "file_path": path, "content": "new\n" });
    assert_eq!(room.call_in(&other, "Write", input.clone()).unwrap_err().kind, "FileNotReadError");
    room.call("Write", input).unwrap();
    assert_eq!(room.text("a"), "new\n");
}

#[test]
fn mode_links_and_encodings_are_minded() {
    let room = Room::new();
    let path = room.put("run.sh", "echo\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&path, room.path("link")).unwrap();
    // Through the link: the file behind it changes, the link stays.
    room.said("write_file", json!({ "path": "link", "content": "echo 2\n", "overwrite": true }));
    assert_eq!(room.text("run.sh"), "echo 2\n");
    assert!(std::fs::symlink_metadata(room.path("link")).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);

    std::fs::hard_link(&path, room.path("hard")).unwrap();
    let said = room.said("write_file", json!({ "path": "hard", "content": "x", "overwrite": true }));
    assert!(said.contains("another name elsewhere"), "{said}");
    assert_eq!(room.text("run.sh"), "echo 2\n");

    room.put("wide", b"\xff\xfeh\0i\0");
    let said = room.said("write_file", json!({ "path": "wide", "content": "plain", "overwrite": true }));
    assert!(said.contains("was UTF-16 (little-endian); it is plain UTF-8 now"), "{said}");

    room.put("dir/f", "x");
    assert_eq!(room.refused("write_file", json!({ "path": "dir", "content": "" })).kind, "NotAFileError");
    assert!(room.call("write_file", json!({ "path": "dir/f/g", "content": "" })).is_err());
    assert_eq!(room.text("dir/f"), "x");
}

#[test]
fn a_file_with_a_schema_stays_valid_whatever_tool_changes_it() {
    let schema = json!({
        "type": "object",
        "properties": { "mode": { "type": "string", "enum": ["ask", "allow"] } },
        "additionalProperties": false,
    });
    let check =
        SchemaCheck::new(|| schema, |path| path.file_name().is_some_and(|name| name == "settings.json"));
    let room = Room::with(Mode::Bypass, vec![Arc::new(check)]);
    let path = room.put("settings.json", "{ \"mode\": \"ask\" }\n");
    room.said("Read", json!({ "file_path": path }));
    for (content, words) in
        [("{ \"mode\": 3 }", "`/mode`"), ("{ \"mode\": ", "no valid JSON"), ("[]", "object")]
    {
        let refusal = room.refused("Write", json!({ "file_path": path, "content": content }));
        assert!(refusal.reason.contains("is as it was") && refusal.reason.contains(words), "{refusal}");
    }
    let refusal =
        room.refused("Edit", json!({ "file_path": path, "old_string": "ask", "new_string": "always" }));
    assert_eq!(refusal.kind, "FileEditError");
    assert_eq!(room.text("settings.json"), "{ \"mode\": \"ask\" }\n");
    room.said("Edit", json!({ "file_path": path, "old_string": "ask", "new_string": "allow" }));
    room.said("Write", json!({ "file_path": room.path("other.json"), "content": "not json" }));
}
