//! `Read`, `read_file` and `read_many_files`: their results, notes and refusals.

use super::file_fixture::FileFixture;
use serde_json::json;
use toolgate_proto::OutputBlock;

fn check(content: &[u8], input: &str, expected: &str) {
    let fixture = FileFixture::new();
    let path = fixture.put("f", content);
    let mut value: serde_json::Value = serde_json::from_str(input).unwrap();
    value["file_path"] = json!(path);
    let text = match fixture.call("Read", value) {
        Ok(output) => output.model_text(),
        Err(refusal) => format!("{}: {}", refusal.kind, refusal.reason.replace(&path, "f")),
    };
    assert_eq!(text, expected);
}

#[test]
fn lines_are_numbered_and_notes_describe_the_file() {
    check(b"one\ntwo\n", "{}", "     1\tone\n     2\ttwo\n");
    check(b"one", "{}", "     1\tone\n");
    check(b"", "{}", "[the file is empty]\n");
    check(
        b"a\nb\nc\n",
        r#"{"offset":2,"limit":1}"#,
        "     2\tb\n[this is a part of 3 lines; continue with `offset` 3]\n",
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
        "     1\tcaf\u{fffd}\n[invalid UTF-8 is shown as \u{fffd}; edits elsewhere keep the original bytes]\n",
    );
    check(b"\x7fELF\0\0\0\x01", "{}", "BinaryFileError: `f` is a binary file, not text");
    check(b"\xff\xfeh\0\0\xd8", "{}", "BinaryFileError: `f` is marked as UTF-16 text but is not valid");
}

#[test]
fn long_lines_and_long_results_are_truncated_with_a_note() {
    let fixture = FileFixture::new();
    let path = fixture.put("long", format!("{}\nshort\n", "é".repeat(2_500)));
    let text = fixture.call_text("Read", json!({ "file_path": path }));
    assert!(text.contains("é… [500 more characters]\n     2\tshort\n"), "{}", &text[text.len() - 200..]);
    let refusal = fixture.call_refusal("Write", json!({ "file_path": path, "content": "x" }));
    assert_eq!(refusal.kind, "FileNotReadError", "a truncated line is a partial view");

    let path = fixture.put("many", "x\n".repeat(5_000));
    let text = fixture.call_text("Read", json!({ "file_path": path }));
    assert!(text.ends_with("  2000\tx\n[this is a part of 5000 lines; continue with `offset` 2001]\n"));

    let path = fixture.put("wide", format!("{}\n", "y".repeat(1_000)).repeat(1_000));
    let output = fixture.call("Read", json!({ "file_path": path })).unwrap();
    let text = output.model_text();
    assert!(text.len() < 101_000 && text.contains("[the result is full: "), "{}", text.len());
    assert_eq!(output.structured.unwrap()["file"]["truncatedByTokenCap"], true);
    let plain = fixture.call("read_file", json!({ "path": "wide" })).unwrap();
    assert_eq!(plain.content.len(), 2, "the note is a block of its own");
}

#[test]
fn each_kind_of_path_that_is_not_a_file_has_its_own_refusal() {
    let fixture = FileFixture::new();
    fixture.put("dir/inner", "x");
    fixture.put("src/main.rs", "x");
    let refusal = fixture.call_refusal("Read", json!({ "file_path": fixture.path("dir") }));
    assert_eq!(
        (refusal.kind.as_str(), refusal.hint.as_str()),
        ("NotAFileError", "list it with `ls` instead")
    );
    let refusal = fixture.call_refusal("Read", json!({ "file_path": fixture.path("src/mian.rs") }));
    assert_eq!(refusal.kind, "FileNotFoundError");
    assert_eq!(refusal.hint, format!("did you mean `{}`?", fixture.path("src/main.rs")));
    let refusal = fixture.call_refusal("Read", json!({ "file_path": "src/main.rs" }));
    assert!(refusal.reason.contains("must be an absolute path"), "{refusal}");
    // A device needs approval, and no approver is available.
    let refusal = fixture.call_refusal("Read", json!({ "file_path": "/dev/zero" }));
    assert_eq!(refusal.kind, "ApprovalUnavailableError");
    let pdf = fixture.put("a.pdf", "%PDF-1.4 broken");
    assert!(fixture.call("Read", json!({ "file_path": pdf })).is_err());
}

#[test]
fn a_large_file_is_read_page_by_page() {
    let fixture = FileFixture::new();
    // 12 MB: larger than files that are read completely.
    let count = 400_000;
    let text: String = (1..=count).map(|n| format!("line number {n:>18}\n")).collect();
    let path = fixture.put("big", text);
    let line = |n: usize| format!("{n:>6}\tline number {n:>18}\n");
    for first in [1, 2, 77_777, 200_000, 399_999, 123_456, 200_002] {
        let text = fixture.call_text("Read", json!({ "file_path": path, "offset": first, "limit": 2 }));
        let expected = format!("{}{}", line(first), line(first + 1));
        assert!(text.starts_with(&expected), "{first}: {text}");
        assert_eq!(text.contains("continue with"), first + 2 <= count, "{text}");
    }
    let text = fixture.call_text("Read", json!({ "file_path": path, "offset": count }));
    assert_eq!(text, line(count));
    let refusal = fixture.call_refusal("Read", json!({ "file_path": path, "offset": count + 1 }));
    assert!(
        refusal.reason.ends_with(&format!("has {count} lines, so there is no line {}", count + 1)),
        "{refusal}"
    );
    // A partial read is enough for an edit, but not for a write.
    fixture.call_text(
        "Edit",
        json!({
            "file_path": path, "old_string": format!("number {:>18}\n", 5), "new_string": "number five\n"
        }),
    );
    let refusal = fixture.call_refusal("Write", json!({ "file_path": path, "content": "" }));
    assert_eq!(refusal.kind, "FileNotReadError");
    let text = fixture.call_text("Read", json!({ "file_path": path, "offset": 200_000, "limit": 1 }));
    assert!(text.starts_with(&line(200_000)), "the line index of a changed file is not used: {text}");
}

#[test]
fn images_are_shown_and_large_ones_scaled_down() {
    let fixture = FileFixture::new();
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(3, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let path = fixture.put("small.txt", png.into_inner());
    let output = fixture.call("Read", json!({ "file_path": path })).unwrap();
    let OutputBlock::Image { media_type, .. } = &output.content[0] else { panic!("{output:?}") };
    assert_eq!(media_type, "image/png", "detected by content, not by name");
    assert_eq!(output.structured.unwrap()["file"]["dimensions"]["originalWidth"], 3);

    for format in [image::ImageFormat::Jpeg, image::ImageFormat::WebP, image::ImageFormat::Gif] {
        let mut large = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(2_000, 1_000).write_to(&mut large, format).unwrap();
        fixture.put("large", large.into_inner());
        let output = fixture.call("read_file", json!({ "path": "large" })).unwrap();
        assert!(output.model_text().contains("2000×1000 pixels"), "{}", output.model_text());
        assert!(output.model_text().ends_with("shown at 1568×784"), "{}", output.model_text());
    }

    // A header that claims more pixels than fit into memory, and no image data.
    let mut bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xc3\x50\0\0\xc3\x50\x08\x02\0\0\0".to_vec();
    bomb.extend([0; 64]);
    let path = fixture.put("bomb.png", bomb);
    assert_eq!(fixture.call_refusal("Read", json!({ "file_path": path })).kind, "FileReadError");
}

#[test]
fn many_files_are_read_in_order_and_globs_are_expanded() {
    let fixture = FileFixture::new();
    for n in 0..40 {
        fixture.put(&format!("src/m{n:02}.rs"), format!("// {n}\n"));
    }
    fixture.put("src/.hidden.rs", "secret");
    fixture.put("src/deep/x.rs", "deep");
    fixture.put("[id].tsx", "literal");
    let text = fixture
        .call_text("read_many_files", json!({ "paths": ["src/m39.rs", "src/*.rs", "[id].tsx", "none/**"] }));
    let headers: Vec<&str> = text.lines().filter(|line| line.starts_with("===")).collect();
    assert_eq!(headers.len(), 42);
    assert_eq!(headers[0], "=== src/m39.rs ===");
    assert_eq!(headers[1], "=== src/m00.rs ===");
    assert_eq!(headers[41], "=== [id].tsx ===");
    assert!(!text.contains("secret") && !text.contains("deep"));
    let text = fixture.call_text("read_many_files", json!({ "paths": ["src/**/*.rs", "no*such"] }));
    assert!(text.contains("=== src/deep/x.rs ===\ndeep\n"), "{text}");
    assert!(text.ends_with("[no file matches `no*such`]"), "{text}");
    // A file that the result shows counts as read.
    fixture.call_text("Write", json!({ "file_path": fixture.path("src/deep/x.rs"), "content": "new" }));
}

#[test]
fn a_glob_withholds_files_that_may_hold_secrets_and_counts_them() {
    let fixture = FileFixture::new();
    fixture.put(".env", "S=hunter2");
    fixture.put(".editorconfig", "root = true");
    fixture.put("sub/id_rsa", "hunter2");
    fixture.put("sub/a.txt", "plain");
    let text = fixture.call_text("read_many_files", json!({ "paths": [".e*", "sub/*"] }));
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("root = true") && text.contains("plain"), "{text}");
    assert!(
        text.contains("withheld from `.e*`: 1 file") && text.contains("withheld from `sub/*`: 1 file"),
        "{text}"
    );
}

#[test]
fn a_hard_link_inside_the_workspace_needs_no_approval() {
    let fixture = FileFixture::with(toolgate_proto::Mode::AcceptEdits, Vec::new());
    fixture.put("a.txt", "one\n");
    std::fs::hard_link(fixture.path("a.txt"), fixture.path("b.txt")).unwrap();
    fixture.call_text("Read", json!({ "file_path": fixture.path("a.txt") }));
    fixture.call_text(
        "Edit",
        json!({ "file_path": fixture.path("a.txt"), "old_string": "one", "new_string": "two" }),
    );
    // A protected file needs approval under its other name as well.
    fixture.put(".git/config", "x\n");
    std::fs::hard_link(fixture.path(".git/config"), fixture.path("c.txt")).unwrap();
    fixture.call_text("Read", json!({ "file_path": fixture.path("c.txt") }));
    let edit = json!({ "file_path": fixture.path("c.txt"), "old_string": "x", "new_string": "y" });
    assert!(fixture.call_refusal("Edit", edit).reason.contains("protected"));
}
