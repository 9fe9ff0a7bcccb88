//! `Edit`, `MultiEdit` and `edit_file`: what they replace, what they refuse, and what the refusal says.

use super::file_fixture::{FileFixture, session};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "file_path": path, "old_string": old, "new_string": new })
}

#[test]
fn an_edit_returns_a_diff_and_structured_output() {
    let fixture = FileFixture::new();
    let path = fixture.put("a.rs", "fn a() {\n    let x = 1;\n}\n");
    fixture.call_text("Read", json!({ "file_path": path }));
    let output = fixture.call("Edit", edit(&path, "let x = 1;", "let x = 2;")).unwrap();
    assert_eq!(
        output.model_text(),
        format!(
            "edited {path}: 1 replacement, +1 -1 lines\n@@ -1,3 +1,3 @@\n fn a() {{\n-    let x = 1;\n+    let x = 2;\n }}"
        )
    );
    let structured = output.structured.unwrap();
    assert_eq!(structured["oldString"], "let x = 1;");
    assert_eq!(structured["originalFile"], "fn a() {\n    let x = 1;\n}\n");
    assert_eq!(structured["replaceAll"], false);
    assert_eq!(structured["userModified"], false);
    assert_eq!(structured["structuredPatch"][0]["oldStart"], 1);
    fixture.call_text("Edit", edit(&path, "let x = 2;", "let x = 3;"));
}

#[test]
fn several_edits_are_all_made_or_none() {
    let fixture = FileFixture::new();
    let path = fixture.put("a", "one two three\n");
    fixture.call_text("Read", json!({ "file_path": path }));
    let edits = json!([
        { "old_string": "one", "new_string": "1" },
        { "old_string": "four", "new_string": "4" },
    ]);
    let refusal = fixture.call_refusal("MultiEdit", json!({ "file_path": path, "edits": edits }));
    assert_eq!(refusal.kind, "EditTargetNotFound");
    assert!(refusal.reason.starts_with("edit 2 of 2: "), "{refusal}");
    assert_eq!(fixture.text("a"), "one two three\n");
    let edits = json!([
        { "old_string": "one", "new_string": "two" },
        { "old_string": "two", "new_string": "2", "replace_all": true },
    ]);
    let text = fixture.call_text("MultiEdit", json!({ "file_path": path, "edits": edits }));
    assert!(text.contains("3 replacements"), "{text}");
    assert_eq!(fixture.text("a"), "2 2 three\n");
    let edits = json!([{ "target": "2", "replacement": "x", "lineHint": 1 }]);
    assert_eq!(
        fixture.call_refusal("edit_file", json!({ "path": "a", "edits": edits })).kind,
        "EditTargetAmbiguous"
    );
}

#[test]
fn a_line_hint_selects_an_occurrence_and_an_ambiguous_edit_lists_them() {
    let fixture = FileFixture::new();
    fixture.put("a", "x\n-\n-\n-\nx\n");
    let input = |hint: Option<u64>| {
        let mut one = json!({ "target": "x", "replacement": "y" });
        if let Some(hint) = hint {
            one["lineHint"] = json!(hint);
        }
        json!({ "path": "a", "edits": [one] })
    };
    let refusal = fixture.call_refusal("edit_file", input(None));
    assert!(refusal.reason.ends_with("2 times, at lines 1, 5"), "{refusal}");
    assert_eq!(refusal.partial.unwrap().model_text(), "     1\tx\n     5\tx");
    fixture.call_text("edit_file", input(Some(4)));
    assert_eq!(fixture.text("a"), "x\n-\n-\n-\ny\n");
}

#[test]
fn a_text_that_is_not_found_is_explained_with_the_nearest_lines() {
    let fixture = FileFixture::new();
    let path = fixture.put("a.go", "func a() {\r\n\tcall()\r\n\treturn 1\r\n}\r\n");
    let text = fixture.call_text("Read", json!({ "file_path": path }));
    let check = |old: &str, words: &str| {
        let refusal = fixture.call_refusal("Edit", edit(&path, old, "new"));
        assert_eq!(refusal.kind, "EditTargetNotFound");
        assert!(refusal.reason.contains(words), "{refusal}");
        let shown = refusal.partial.unwrap().model_text();
        assert!(shown.contains("     2\t\tcall()"), "{shown}");
    };
    check("    call()\n    return 1", "the file indents with tabs, the text with spaces");
    check(text.lines().take(2).collect::<Vec<_>>().join("\n").as_str(), "line numbers of Read");
    check("call( )", "line 2 is");
    // A text that differs only in line endings is found, and the file's endings are kept.
    let text =
        fixture.call_text("Edit", edit(&path, "\tcall()\n\treturn 1\n", "\tcall()\n\tmore()\n\treturn 2\n"));
    assert!(text.contains("line endings (CRLF) were kept"), "{text}");
    assert_eq!(fixture.text("a.go"), "func a() {\r\n\tcall()\r\n\tmore()\r\n\treturn 2\r\n}\r\n");
}

#[test]
fn encodings_and_invalid_bytes_survive_an_edit() {
    let fixture = FileFixture::new();
    let wide = |text: &str| -> Vec<u8> {
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let path = fixture.put("wide", wide("größe = 1\r\nfarbe = 2\r\n"));
    fixture.call_text("Read", json!({ "file_path": path }));
    fixture.call_text("Edit", edit(&path, "größe = 1", "größe = 3\nneu = 🦀"));
    assert_eq!(fixture.bytes("wide"), wide("größe = 3\r\nneu = 🦀\r\nfarbe = 2\r\n"));

    let path = fixture.put("marked", b"\xef\xbb\xbfa = 1\n");
    fixture.call_text("Read", json!({ "file_path": path }));
    fixture.call_text("Edit", edit(&path, "a = 1", "a = 2"));
    assert_eq!(fixture.bytes("marked"), b"\xef\xbb\xbfa = 2\n");

    let path = fixture.put("latin", b"caf\xe9\nprice = 1\n");
    fixture.call_text("Read", json!({ "file_path": path }));
    fixture.call_text("Edit", edit(&path, "price = 1", "price = 2"));
    assert_eq!(fixture.bytes("latin"), b"caf\xe9\nprice = 2\n");

    let path = fixture.put("binary", b"a\0b");
    let _ = fixture.call("Read", json!({ "file_path": path }));
    let edits = json!([{ "target": "a", "replacement": "c" }]);
    assert_eq!(
        fixture.call_refusal("edit_file", json!({ "path": "binary", "edits": edits })).kind,
        "BinaryFileError"
    );
}

#[test]
fn a_changed_file_is_edited_only_where_the_text_still_occurs_once() {
    let fixture = FileFixture::new();
    let path = fixture.put("a", "one\ntwo\nthree\n");
    let refusal = fixture.call_refusal("Edit", edit(&path, "one", "1"));
    assert_eq!((refusal.kind.as_str(), refusal.stage.as_str()), ("FileNotReadError", "guard"));
    fixture.call_text("Read", json!({ "file_path": path }));
    std::fs::write(&path, "one\n2\nthree\n").unwrap();
    let text = fixture.call_text("Edit", edit(&path, "three", "3"));
    assert!(text.contains("had changed since it was read"), "{text}");
    assert_eq!(fixture.text("a"), "one\n2\n3\n");
    std::fs::write(&path, "one\none\n3\n").unwrap();
    for old in ["one", "2"] {
        let refusal = fixture.call_refusal("Edit", edit(&path, old, "x"));
        assert_eq!(refusal.kind, "FileChangedError");
        assert!(refusal.partial.unwrap().model_text().contains("-2\n+one"));
    }
    let mut all = edit(&path, "one", "x");
    all["replace_all"] = json!(true);
    assert_eq!(fixture.call_refusal("Edit", all).kind, "FileChangedError");
}

#[test]
fn invalid_edits_have_their_own_refusals() {
    let fixture = FileFixture::new();
    let path = fixture.put("a", "text\n");
    fixture.call_text("Read", json!({ "file_path": path }));
    assert_eq!(fixture.call_refusal("Edit", edit(&path, "text", "text")).kind, "ValidationError");
    let refusal = fixture.call_refusal("Edit", edit(&path, "", "x"));
    assert!(refusal.reason.contains("the text to replace is empty"), "{refusal}");
    let refusal = fixture.call_refusal("Edit", edit(&fixture.path("none"), "a", "b"));
    assert_eq!(refusal.kind, "FileNotFoundError");
    fixture.call_text("Edit", edit(&fixture.path("sub/new"), "", "made\n"));
    assert_eq!(fixture.text("sub/new"), "made\n");
    fixture.call_text("Edit", edit(&fixture.path("sub/new"), "made", "made again"));
    assert_eq!(
        fixture.call_refusal("edit_file", json!({ "path": "a", "edits": [] })).kind,
        "ValidationError"
    );
}

#[test]
fn two_sessions_that_write_one_file_lose_no_update() {
    const ROUNDS: usize = 60;
    let fixture = FileFixture::new();
    let path = fixture.put("counter", "0\n");
    let won = [AtomicUsize::new(0), AtomicUsize::new(0)];
    std::thread::scope(|scope| {
        for (mine, name) in won.iter().zip(["left", "right"]) {
            let (fixture, path) = (&fixture, &path);
            scope.spawn(move || {
                let session = session(&fixture.top, name);
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let call = |tool: &str, input: Value| {
                    let call = toolgate_proto::ToolCall::new("c", tool, input.to_string());
                    runtime
                        .block_on(fixture.gate.call(&session, call, toolgate_gate::CallOptions::default()))
                        .result
                };
                while mine.load(Ordering::SeqCst) < ROUNDS {
                    let output = call("Read", json!({ "file_path": path })).unwrap();
                    let seen = output.structured.unwrap()["file"]["content"].as_str().unwrap().to_owned();
                    let next = seen.parse::<usize>().unwrap() + 1;
                    match call("Write", json!({ "file_path": path, "content": format!("{next}\n") })) {
                        Ok(_) => mine.fetch_add(1, Ordering::SeqCst),
                        // The other session was faster: read again.
                        Err(refusal) if refusal.kind == "FileChangedError" => 0,
                        Err(refusal) => panic!("{refusal:?}"),
                    };
                }
            });
        }
    });
    assert_eq!(fixture.text("counter"), format!("{}\n", 2 * ROUNDS));
}
