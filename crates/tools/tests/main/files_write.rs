//! `Write` and `write_file`: creating and replacing files.

use super::file_fixture::{FileFixture, session};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use toolgate_proto::Mode;
use toolgate_tools::{SchemaCheck, seed_read_state};

#[test]
fn creation_and_update_are_reported_with_sizes_and_a_patch() {
    let fixture = FileFixture::new();
    let path = fixture.path("new/dir/a.txt");
    let output = fixture.call("Write", json!({ "file_path": path, "content": "one\ntwo\n" })).unwrap();
    assert_eq!(output.model_text(), format!("created {path}: 2 lines, 8 bytes"));
    let structured = output.structured.unwrap();
    assert_eq!(structured["type"], "create");
    assert_eq!(structured["originalFile"], json!(null));
    assert_eq!(structured["structuredPatch"], json!([]));

    let output = fixture.call("Write", json!({ "file_path": path, "content": "one\n2\n" })).unwrap();
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
    let text = fixture.call_text("Write", json!({ "file_path": path, "content": "one\n2\n" }));
    assert!(text.contains("already has this content"), "{text}");
}

#[test]
fn an_existing_file_must_have_been_read_completely_and_be_unchanged() {
    let fixture = FileFixture::new();
    let path = fixture.put("a", "one\ntwo\nthree\n");
    let write = || fixture.call("Write", json!({ "file_path": path, "content": "new\n" }));
    let refusal = write().unwrap_err();
    assert_eq!((refusal.kind.as_str(), refusal.stage.as_str()), ("FileNotReadError", "guard"));
    fixture.call_text("Read", json!({ "file_path": path, "offset": 2 }));
    assert!(write().unwrap_err().reason.contains("only a part"));
    fixture.call_text("Read", json!({ "file_path": path }));
    std::fs::write(&path, "one\n2\nthree\n").unwrap();
    let refusal = write().unwrap_err();
    assert_eq!(refusal.kind, "FileChangedError");
    let what = refusal.partial.unwrap().model_text();
    assert!(what.contains("-two\n+2"), "{what}");
    fixture.call_text("Read", json!({ "file_path": path }));
    // A new modification time is not a change.
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    write().unwrap();
    assert_eq!(fixture.text("a"), "new\n");
}

#[test]
fn a_host_can_seed_the_read_state_of_one_session() {
    let fixture = FileFixture::new();
    let path = fixture.put("a", "seen\n");
    let other = session(&fixture.top, "other");
    seed_read_state(&fixture.session, &fixture.top.join("a"), b"seen\n");
    let input = json!({ "file_path": path, "content": "new\n" });
    assert_eq!(fixture.call_in(&other, "Write", input.clone()).unwrap_err().kind, "FileNotReadError");
    fixture.call("Write", input).unwrap();
    assert_eq!(fixture.text("a"), "new\n");
}

#[test]
fn mode_symlinks_hard_links_and_encodings_are_respected() {
    let fixture = FileFixture::new();
    let path = fixture.put("run.sh", "echo\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&path, fixture.path("link")).unwrap();
    // Through a symlink the target changes and the symlink stays.
    fixture.call_text("write_file", json!({ "path": "link", "content": "echo 2\n", "overwrite": true }));
    assert_eq!(fixture.text("run.sh"), "echo 2\n");
    assert!(std::fs::symlink_metadata(fixture.path("link")).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);

    std::fs::hard_link(&path, fixture.path("hard")).unwrap();
    let text = fixture.call_text("write_file", json!({ "path": "hard", "content": "x", "overwrite": true }));
    assert!(text.contains("another hard link elsewhere"), "{text}");
    assert_eq!(fixture.text("run.sh"), "echo 2\n");

    fixture.put("wide", b"\xff\xfeh\0i\0");
    let text =
        fixture.call_text("write_file", json!({ "path": "wide", "content": "plain", "overwrite": true }));
    assert!(text.contains("was UTF-16 (little-endian); it is plain UTF-8 now"), "{text}");

    fixture.put("dir/f", "x");
    assert_eq!(
        fixture.call_refusal("write_file", json!({ "path": "dir", "content": "" })).kind,
        "NotAFileError"
    );
    assert!(fixture.call("write_file", json!({ "path": "dir/f/g", "content": "" })).is_err());
    assert_eq!(fixture.text("dir/f"), "x");
}

#[test]
fn every_tool_validates_a_file_with_a_schema() {
    let schema = json!({
        "type": "object",
        "properties": { "mode": { "type": "string", "enum": ["ask", "allow"] } },
        "additionalProperties": false,
    });
    let check =
        SchemaCheck::new(|| schema, |path| path.file_name().is_some_and(|name| name == "settings.json"));
    let fixture = FileFixture::with(Mode::Bypass, vec![Arc::new(check)]);
    let path = fixture.put("settings.json", "{ \"mode\": \"ask\" }\n");
    fixture.call_text("Read", json!({ "file_path": path }));
    for (content, expected) in
        [("{ \"mode\": 3 }", "`mode`"), ("{ \"mode\": ", "not valid JSON"), ("[]", "object")]
    {
        let refusal = fixture.call_refusal("Write", json!({ "file_path": path, "content": content }));
        assert!(refusal.reason.contains("is unchanged") && refusal.reason.contains(expected), "{refusal}");
    }
    let refusal = fixture
        .call_refusal("Edit", json!({ "file_path": path, "old_string": "ask", "new_string": "always" }));
    assert_eq!(refusal.kind, "FileEditError");
    assert_eq!(fixture.text("settings.json"), "{ \"mode\": \"ask\" }\n");
    fixture.call_text("Edit", json!({ "file_path": path, "old_string": "ask", "new_string": "allow" }));
    fixture.call_text("Write", json!({ "file_path": fixture.path("other.json"), "content": "not json" }));
}
