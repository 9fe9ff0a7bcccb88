//! What Read gives, and what it says when it cannot.

use super::files_room::Room;
use serde_json::json;
use toolgate_proto::OutputBlock;

fn check(content: &[u8], input: &str, expected: &str) {
    let room = Room::new();
    let path = room.put("f", content);
    let mut value: serde_json::Value = serde_json::from_str(input).unwrap();
    value["file_path"] = json!(path);
    let said = match room.call("Read", value) {
        Ok(output) => output.model_text(),
        Err(refusal) => format!("{}: {}", refusal.kind, refusal.reason.replace(&path, "f")),
    };
    assert_eq!(said, expected);
}

#[test]
fn lines_are_numbered_and_notes_say_what_else_there_is() {
    check(b"one\ntwo\n", "{}", "     1\tone\n     2\ttwo\n");
    check(b"one", "{}", "     1\tone\n");
    check(b"", "{}", "[the file is empty]\n");
    check(
        b"a\nb\nc\n",
        r#"{"offset":2,"limit":1}"#,
        "     2\tb\n[there is more: this is only a part of 3 lines; go on with `offset` 3]\n",
    );
    check(b"a\nb\nc\n", r#"{"offset":3}"#, "     3\tc\n");
    check(b"a\nb\n", r#"{"offset":4}"#, "RangeError: `f` has 2 lines, so there is no line 4");
    check(b"a\r\nb\r\n", "{}", "     1\ta\n     2\tb\n[lines end in CRLF; edits keep that]\n");
    check(b"a\r\nb\n", "{}", "     1\ta\r\n     2\tb\n[some lines end in CRLF and some in LF]\n");
    check(
        b"\xef\xbb\xbfa\n",
        "{}",
        "     1\ta\n[the file is UTF-8 with a byte order mark; edits keep that]\n",
    );
    check(b"\xff\xfeh\0i\0\n\0", "{}", "     1\thi\n[the file is UTF-16 (little-endian); edits keep that]\n");
    check(
        b"caf\xe9\n",
        "{}",
        "     1\tcaf\u{fffd}\n[bytes that are no UTF-8 are shown as \u{fffd}; edits elsewhere leave them alone]\n",
    );
    check(b"\x7fELF\0\0\0\x01", "{}", "BinaryFileError: `f` is a binary file, not text");
    check(b"\xff\xfeh\0\0\xd8", "{}", "BinaryFileError: `f` is marked as UTF-16 text but is not valid");
}

#[test]
fn long_lines_and_long_results_are_cut_and_say_how_to_go_on() {
    let room = Room::new();
    let path = room.put("long", format!("{}\nshort\n", "é".repeat(2_500)));
    let said = room.said("Read", json!({ "file_path": path }));
    assert!(said.contains("é… [500 more characters]\n     2\tshort\n"), "{}", &said[said.len() - 200..]);
    let refusal = room.refused("Write", json!({ "file_path": path, "content": "x" }));
    assert_eq!(refusal.kind, "FileNotReadError", "a cut line is a partial view");

    let path = room.put("many", "x\n".repeat(5_000));
    let said = room.said("Read", json!({ "file_path": path }));
    assert!(said.ends_with(
        "  2000\tx\n[there is more: this is only a part of 5000 lines; go on with `offset` 2001]\n"
    ));

    let path = room.put("wide", format!("{}\n", "y".repeat(1_000)).repeat(1_000));
    let output = room.call("Read", json!({ "file_path": path })).unwrap();
    let said = output.model_text();
    assert!(said.len() < 101_000 && said.contains("[the result is full: "), "{}", said.len());
    assert_eq!(output.structured.unwrap()["file"]["truncatedByTokenCap"], true);
    let plain = room.call("read_file", json!({ "path": "wide" })).unwrap();
    assert_eq!(plain.content.len(), 2, "the note stands apart from the raw text");
}

#[test]
fn what_is_no_file_is_told_apart() {
    let room = Room::new();
    room.put("dir/inner", "x");
    room.put("src/main.rs", "x");
    let refusal = room.refused("Read", json!({ "file_path": room.path("dir") }));
    assert_eq!(
        (refusal.kind.as_str(), refusal.hint.as_str()),
        ("NotAFileError", "list it with `ls` instead")
    );
    let refusal = room.refused("Read", json!({ "file_path": room.path("src/mian.rs") }));
    assert_eq!(refusal.kind, "FileNotFoundError");
    assert_eq!(refusal.hint, format!("did you mean `{}`?", room.path("src/main.rs")));
    let refusal = room.refused("Read", json!({ "file_path": "src/main.rs" }));
    assert!(refusal.reason.contains("must be an absolute path"), "{refusal}");
    // A device never comes to the tool: policy asks first, and here nobody can be asked.
    let refusal = room.refused("Read", json!({ "file_path": "/dev/zero" }));
    assert_eq!(refusal.kind, "ApprovalUnavailableError");
    let pdf = room.put("a.pdf", "%PDF-1.4 broken");
    assert!(room.call("Read", json!({ "file_path": pdf })).is_err());
}

#[test]
fn a_file_larger_than_memory_should_hold_is_read_by_parts() {
    let room = Room::new();
    // 12 MB: past the size up to which files are read as a whole.
    let count = 400_000;
    let text: String = (1..=count).map(|n| format!("line number {n:>18}\n")).collect();
    let path = room.put("big", text);
    let line = |n: usize| format!("{n:>6}\tline number {n:>18}\n");
    for first in [1, 2, 77_777, 200_000, 399_999, 123_456, 200_002] {
        let said = room.said("Read", json!({ "file_path": path, "offset": first, "limit": 2 }));
        let expected = format!("{}{}", line(first), line(first + 1));
        assert!(said.starts_with(&expected), "{first}: {said}");
        assert_eq!(said.contains("go on with"), first + 2 <= count, "{said}");
    }
    let said = room.said("Read", json!({ "file_path": path, "offset": count }));
    assert_eq!(said, line(count));
    let refusal = room.refused("Read", json!({ "file_path": path, "offset": count + 1 }));
    assert!(
        refusal.reason.ends_with(&format!("has {count} lines, so there is no line {}", count + 1)),
        "{refusal}"
    );
    // An edit after a partial view of it is fine, a write is not.
    room.said(
        "Edit",
        json!({
            "file_path": path, "old_string": format!("number {:>18}\n", 5), "new_string": "number five\n"
        }),
    );
    let refusal = room.refused("Write", json!({ "file_path": path, "content": "" }));
    assert_eq!(refusal.kind, "FileNotReadError");
    let said = room.said("Read", json!({ "file_path": path, "offset": 200_000, "limit": 1 }));
    assert!(said.starts_with(&line(200_000)), "what was known of a file that changed is not used: {said}");
}

#[test]
fn pictures_are_shown_and_large_ones_made_smaller() {
    let room = Room::new();
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(3, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let path = room.put("small.txt", png.into_inner());
    let output = room.call("Read", json!({ "file_path": path })).unwrap();
    let OutputBlock::Image { media_type, .. } = &output.content[0] else { panic!("{output:?}") };
    assert_eq!(media_type, "image/png", "told by content, not by name");
    assert_eq!(output.structured.unwrap()["file"]["dimensions"]["originalWidth"], 3);

    for format in [image::ImageFormat::Jpeg, image::ImageFormat::WebP, image::ImageFormat::Gif] {
        let mut large = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(2_000, 1_000).write_to(&mut large, format).unwrap();
        room.put("large", large.into_inner());
        let output = room.call("read_file", json!({ "path": "large" })).unwrap();
        assert!(output.model_text().contains("2000×1000 pixels"), "{}", output.model_text());
        assert!(output.model_text().ends_with("shown at 1568×784"), "{}", output.model_text());
    }

    // A header that promises more pixels than anybody has memory for, and nothing after it.
    let mut bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xc3\x50\0\0\xc3\x50\x08\x02\0\0\0".to_vec();
    bomb.extend([0; 64]);
    let path = room.put("bomb.png", bomb);
    assert_eq!(room.refused("Read", json!({ "file_path": path })).kind, "FileReadError");
}

#[test]
fn many_files_keep_their_order_and_patterns_find_files() {
    let room = Room::new();
    for n in 0..40 {
        room.put(&format!("src/m{n:02}.rs"), format!("// {n}\n"));
    }
    room.put("src/.hidden.rs", "secret");
    room.put("src/deep/x.rs", "deep");
    room.put("[id].tsx", "literal");
    let said =
        room.said("read_many_files", json!({ "paths": ["src/m39.rs", "src/*.rs", "[id].tsx", "none/**"] }));
    let headers: Vec<&str> = said.lines().filter(|line| line.starts_with("===")).collect();
    assert_eq!(headers.len(), 42);
    assert_eq!(headers[0], "=== src/m39.rs ===");
    assert_eq!(headers[1], "=== src/m00.rs ===");
    assert_eq!(headers[41], "=== [id].tsx ===");
    assert!(!said.contains("secret") && !said.contains("deep"));
    let said = room.said("read_many_files", json!({ "paths": ["src/**/*.rs", "no*such"] }));
    assert!(said.contains("=== src/deep/x.rs ===\ndeep\n"), "{said}");
    assert!(said.ends_with("[no file matches `no*such`]"), "{said}");
    // What it showed counts as read.
    room.said("Write", json!({ "file_path": room.path("src/deep/x.rs"), "content": "new" }));
}

#[test]
fn a_pattern_withholds_files_that_may_hold_secrets_and_counts_them() {
    let room = Room::new();
    room.put(".env", "S=hunter2");
    room.put(".editorconfig", "root = true");
    room.put("sub/id_rsa", "hunter2");
    room.put("sub/a.txt", "plain");
    let said = room.said("read_many_files", json!({ "paths": [".e*", "sub/*"] }));
    assert!(!said.contains("hunter2"), "{said}");
    assert!(said.contains("root = true") && said.contains("plain"), "{said}");
    assert!(
        said.contains("withheld from `.e*`: 1 file") && said.contains("withheld from `sub/*`: 1 file"),
        "{said}"
    );
}

#[test]
fn a_hard_link_between_two_files_of_the_workspace_is_no_question() {
    let room = Room::with(toolgate_proto::Mode::AcceptEdits, Vec::new());
    room.put("a.txt", "one\n");
    std::fs::hard_link(room.path("a.txt"), room.path("b.txt")).unwrap();
    room.said("Read", json!({ "file_path": room.path("a.txt") }));
    room.said("Edit", json!({ "file_path": room.path("a.txt"), "old_string": "one", "new_string": "two" }));
    // A name that is protected is asked about under whatever other name.
    room.put(".git/config", "x\n");
    std::fs::hard_link(room.path(".git/config"), room.path("c.txt")).unwrap();
    room.said("Read", json!({ "file_path": room.path("c.txt") }));
    let edit = json!({ "file_path": room.path("c.txt"), "old_string": "x", "new_string": "y" });
    assert!(room.refused("Edit", edit).reason.contains("protected"));
}
