//! The results, notices and refusals of `Grep`, `Glob` and `ls`, for models and users.

use super::search_model::gate;
use serde_json::{Value, json};
use std::path::Path;
use tokio_util::sync::CancellationToken;
use toolgate_gate::CallOptions;
use toolgate_proto::{Code, Output, Refusal};
use toolgate_testkit::GateFixture;
use toolgate_tools::Toolset;

/// The files of a small project, with their content.
const PROJECT: &[(&str, &str)] = &[
    (".gitignore", "*.log\n/target/\n"),
    ("src/main.rs", "fn main() {\n    greet();\n}\n\nfn greet() {\n    println!(\"hello\");\n}\n"),
    ("src/lib.rs", "pub fn greet() {}\n"),
    ("docs/read me.md", "# Greeting\nsay hello\n"),
    ("debug.log", "hello from the log\n"),
    ("target/out.rs", "hello from the target\n"),
    (".env", "HELLO=secret\n"),
    ("web/a.ts", "interface{}\nconst hello = 1;\n"),
];

fn project(toolset: Toolset) -> GateFixture {
    let fixture = GateFixture::new(gate(toolset)).unwrap();
    for (name, text) in PROJECT {
        put(fixture.root.as_path(), name, text);
    }
    fixture
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn call(fixture: &GateFixture, tool: &str, input: &Value) -> Result<Output, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(fixture.call(tool, input))
}

/// Checks the text that the model reads.
fn check(fixture: &GateFixture, tool: &str, input: &Value, expected: &str) {
    let output = call(fixture, tool, input).unwrap_or_else(|refusal| panic!("{tool} {input}: {refusal}"));
    assert_eq!(output.model_text(), expected, "{tool} {input}");
}

fn check_refused(fixture: &GateFixture, tool: &str, input: &Value, code: Code, reason: &str, hint: &str) {
    let refusal = call(fixture, tool, input).expect_err("a refusal");
    assert_eq!(refusal.code, code, "{tool} {input}: {refusal}");
    assert!(refusal.reason.contains(reason), "{tool} {input}: {}", refusal.reason);
    assert!(refusal.hint.contains(hint), "{tool} {input}: {}", refusal.hint);
}

#[test]
fn grep_returns_paths_lines_or_counts() {
    let fixture = project(Toolset::Claude);
    let grep = |input: Value, expected: &str| check(&fixture, "Grep", &input, expected);
    grep(json!({ "pattern": "hello" }), "docs/read me.md\nsrc/main.rs\nweb/a.ts");
    grep(json!({ "pattern": "hello", "path": "src" }), "src/main.rs");
    grep(json!({ "pattern": "hello", "path": fixture.root.join("src/main.rs") }), "src/main.rs");
    grep(json!({ "pattern": "greet", "output_mode": "count" }), "src/lib.rs:1\nsrc/main.rs:2");
    grep(json!({ "pattern": "nothing here" }), "no matches found");
    grep(
        json!({ "pattern": "greet", "output_mode": "content" }),
        "src/lib.rs:1:pub fn greet() {}\nsrc/main.rs:2:    greet();\nsrc/main.rs:5:fn greet() {",
    );
    grep(
        json!({ "pattern": "greet", "output_mode": "content", "-n": false, "-o": true }),
        "src/lib.rs:greet\nsrc/main.rs:greet\nsrc/main.rs:greet",
    );
    grep(
        json!({ "pattern": "println", "output_mode": "content", "-B": 1, "-A": 1 }),
        "src/main.rs-5-fn greet() {\nsrc/main.rs:6:    println!(\"hello\");\nsrc/main.rs-7-}",
    );
    grep(
        json!({ "pattern": "main\\(\\) \\{.*greet", "output_mode": "content", "multiline": true, "path": "src" }),
        "src/main.rs:1:fn main() {\nsrc/main.rs:2:    greet();\nsrc/main.rs:3:}\nsrc/main.rs:4:\nsrc/main.rs:5:fn greet() {",
    );
    grep(
        json!({ "pattern": "greet", "output_mode": "content", "head_limit": 1, "offset": 1 }),
        "src/main.rs:2:    greet();\n[lines 2 to 2; more follow: continue with `offset` 2]",
    );
    grep(json!({ "pattern": "greet", "offset": 9 }), "[there are only 2 files]");
}

#[test]
fn a_binary_file_is_searched_only_if_the_call_names_it() {
    let fixture = project(Toolset::Claude);
    put(fixture.root.as_path(), "blob", "a needle\n\0 more\nneedle\n");
    let grep = |input: Value, expected: &str| check(&fixture, "Grep", &input, expected);
    grep(json!({ "pattern": "needle" }), "no matches found");
    grep(json!({ "pattern": "needle", "path": "blob" }), "blob");
    grep(json!({ "pattern": "needle", "path": "blob", "output_mode": "count" }), "blob:2");
    grep(
        json!({ "pattern": "needle", "path": "blob", "output_mode": "content" }),
        "[blob is a binary file with matches; the rest is not shown]",
    );
}

#[test]
fn paths_with_dots_and_symlinks_are_shortened() {
    let fixture = project(Toolset::Claude);
    std::os::unix::fs::symlink("src", fixture.root.join("link")).unwrap();
    let grep = |input: Value, expected: &str| check(&fixture, "Grep", &input, expected);
    grep(json!({ "pattern": "main", "path": "docs/../src" }), "src/main.rs");
    // A symlink that the call names is followed, because its target is judged; one inside the tree is not.
    grep(json!({ "pattern": "main", "path": "link" }), "link/main.rs");
    grep(json!({ "pattern": "main\\(" }), "src/main.rs");
}

#[test]
fn grep_returns_the_documented_structured_output() {
    let fixture = project(Toolset::Claude);
    let structured = |input: Value| call(&fixture, "Grep", &input).unwrap().structured.unwrap();
    assert_eq!(
        structured(json!({ "pattern": "greet" })),
        json!({ "mode": "files_with_matches", "numFiles": 2, "filenames": ["src/lib.rs", "src/main.rs"], "totalFiles": 2 })
    );
    assert_eq!(
        structured(json!({ "pattern": "greet", "output_mode": "count" })),
        json!({
            "mode": "count", "numFiles": 2, "filenames": ["src/lib.rs", "src/main.rs"],
            "content": "src/lib.rs:1\nsrc/main.rs:2", "numMatches": 3, "totalFiles": 2,
        })
    );
    assert_eq!(
        structured(json!({ "pattern": "greet", "output_mode": "content", "head_limit": 1, "offset": 1 })),
        json!({
            "mode": "content", "numFiles": 1, "filenames": ["src/main.rs"],
            "content": "src/main.rs:2:    greet();", "numLines": 1, "appliedLimit": 1, "appliedOffset": 1,
        })
    );
}

#[test]
fn an_invalid_pattern_is_explained() {
    let fixture = project(Toolset::Claude);
    let refused = |pattern: &str, reason: &str, hint: &str| {
        check_refused(&fixture, "Grep", &json!({ "pattern": pattern }), Code::Grep, reason, hint);
    };
    refused("interface{}", "    interface{}\n              ^", "`interface\\{\\}`");
    refused("(?<=a)b", "look-around", "without the assertion");
    refused("a\nb", "across the end of a line", "`multiline`");
    check_refused(
        &fixture,
        "Grep",
        &json!({ "pattern": "x", "type": "rusty" }),
        Code::Grep,
        "unknown file type `rusty`",
        "`rust`",
    );
    check_refused(
        &fixture,
        "Grep",
        &json!({ "pattern": "x", "glob": "a[" }),
        Code::Grep,
        "`a[` is not a valid glob",
        "`[abc]`",
    );
    check_refused(
        &fixture,
        "Grep",
        &json!({ "pattern": "x", "path": "sr" }),
        Code::FileNotFound,
        "there is no file",
        "/src`",
    );
}

#[test]
fn plain_grep_returns_lines_with_path_and_number() {
    let fixture = project(Toolset::Plain);
    let grep = |input: Value, expected: &str| check(&fixture, "grep", &input, expected);
    grep(
        json!({ "pattern": "HELLO" }),
        "docs/read me.md:2: say hello\nsrc/main.rs:6:     println!(\"hello\");\nweb/a.ts:2: const hello = 1;",
    );
    grep(json!({ "pattern": "HELLO", "caseSensitive": true }), "no matches found");
    grep(
        json!({ "pattern": "hello", "maxResults": 1, "filePattern": "*.{md,ts}" }),
        "docs/read me.md:2: say hello\n[matches 1 to 1; more follow: continue with `offset` 1]",
    );
    let absolute = format!("{}:2: const hello = 1;", fixture.root.join("web/a.ts"));
    grep(json!({ "pattern": "const", "absolutePaths": true }), &absolute);
    let bad = json!({ "pattern": "foo(" });
    check_refused(&fixture, "grep", &bad, Code::Grep, "unclosed group", "`foo\\(`");
    assert_eq!(call(&fixture, "grep", &bad).unwrap_err().kind, "GrepError");
}

#[test]
fn an_empty_glob_result_names_the_likely_cause() {
    let fixture = project(Toolset::Plain);
    let glob = |input: Value, expected: &str| check(&fixture, "glob", &input, expected);
    glob(json!({ "pattern": "**/*.rs" }), "src/lib.rs\nsrc/main.rs");
    glob(json!({ "pattern": "src/*.rs" }), "src/lib.rs\nsrc/main.rs");
    glob(json!({ "pattern": "./src/l*" }), "src/lib.rs");
    glob(json!({ "pattern": fixture.root.join("src/*.rs"), "maxResults": 1 }), {
        "src/lib.rs\n[files 1 to 1; more follow: continue with `offset` 1]"
    });
    glob(
        json!({ "pattern": "*.rs" }),
        "no files match `*.rs`\n[only the directory itself was searched; use `**/*.rs` for all below]",
    );
    glob(
        json!({ "pattern": "**/.e*" }),
        "no files match `**/.e*`\n[hidden files were excluded; set `includeHidden` to find them]",
    );
    glob(json!({ "pattern": "target/*" }), "no files match `target/*`");
    glob(json!({ "pattern": "*.rs", "directory": "target" }), "target/out.rs");
    check_refused(
        &fixture,
        "glob",
        &json!({ "pattern": "a{b" }),
        Code::Glob,
        "`a{b` is not a valid glob",
        "`{a,b}`",
    );
    check_refused(
        &fixture,
        "glob",
        &json!({ "pattern": "src/" }),
        Code::BadArgument,
        "must name files",
        "`src/**`",
    );

    let fixture = project(Toolset::Claude);
    let found = call(&fixture, "Glob", &json!({ "pattern": "*.rs" })).unwrap().structured.unwrap();
    assert_eq!(found["numFiles"], 3, "ignored files are found as well");
    check(&fixture, "Glob", &json!({ "pattern": "*.env" }), ".env");
    check(&fixture, "Glob", &json!({ "pattern": "nowhere/**/*.rs" }), "no files match `nowhere/**/*.rs`");
}

#[test]
fn glob_returns_the_100_most_recent_files_and_the_total() {
    let fixture = GateFixture::new(gate(Toolset::Claude)).unwrap();
    for number in 0..130_u64 {
        let path = fixture.root.as_path().join(format!("f{number}.txt"));
        let file = std::fs::File::create(path).unwrap();
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + number);
        file.set_modified(at).unwrap();
    }
    let output = call(&fixture, "Glob", &json!({ "pattern": "*.txt" })).unwrap();
    let structured = output.structured.as_ref().unwrap();
    let names: Vec<String> = (30..130).rev().map(|number| format!("f{number}.txt")).collect();
    assert_eq!(structured["filenames"], json!(names));
    assert_eq!((&structured["truncated"], &structured["totalMatches"]), (&json!(true), &json!(130)));
    assert!(output.model_text().ends_with(
        "[the 100 most recently modified of 130 files; use a narrower pattern or path to see others]"
    ));
    assert_eq!(output.display_text(), "found 130 files (showing 100)");
}

#[test]
fn ls_lists_a_tree_with_counts() {
    let fixture = project(Toolset::Claude);
    check(
        &fixture,
        "ls",
        &json!({}),
        "d docs/\nd src/\nd web/\n[3 directories; 2 hidden, 2 ignored by .gitignore]",
    );
    check(
        &fixture,
        "ls",
        &json!({ "path": "src", "recursive": true }),
        "- lib.rs (18 bytes)\n- main.rs (66 bytes)\n[2 files]",
    );
    check(
        &fixture,
        "ls",
        &json!({ "maxDepth": 1, "includeIgnored": true, "limit": 3 }),
        "- debug.log (19 bytes)\nd docs/\n  - read me.md (21 bytes)\n[4 directories, 6 files; 2 hidden]\n\
         [entries 1 to 3; more follow: continue with `offset` 3]",
    );
    std::fs::create_dir(fixture.root.join("empty")).unwrap();
    let empty = fixture.root.join("empty");
    check(&fixture, "ls", &json!({ "path": "empty" }), &format!("`{empty}` is empty"));
    check_refused(&fixture, "ls", &json!({ "offset": 50 }), Code::PastEnd, "4 entries", "");
    check_refused(&fixture, "ls", &json!({ "path": "src/main.rs" }), Code::List, "not a directory", "");
}

#[test]
fn a_huge_result_is_paged_between_lines() {
    let fixture = GateFixture::new(gate(Toolset::Claude)).unwrap();
    let text: String = (0..5_000).map(|number| format!("line {number} with a needle in it\n")).collect();
    put(fixture.root.as_path(), "big.txt", &text);
    let (mut offset, mut lines) = (0, Vec::new());
    loop {
        let input =
            json!({ "pattern": "needle", "output_mode": "content", "head_limit": 0, "offset": offset });
        let output = call(&fixture, "Grep", &input).unwrap();
        let structured = output.structured.as_ref().unwrap();
        assert!(output.model_text().chars().count() < 20_200);
        lines.extend(structured["content"].as_str().unwrap().lines().map(str::to_owned));
        if structured.get("appliedLimit").is_none() {
            break;
        }
        offset = lines.len();
        assert!(
            output.model_text().ends_with(&format!("of 5000; more follow: continue with `offset` {offset}]"))
        );
    }
    let expected: Vec<String> = (0..5_000)
        .map(|number| format!("big.txt:{}:line {number} with a needle in it", number + 1))
        .collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_cancelled_search_and_one_outside_the_workspace_are_refused() {
    let fixture = project(Toolset::Claude);
    let cancel = CancellationToken::new();
    let options = CallOptions::default().with_cancel(cancel.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let input = json!({ "pattern": "x" });
    let outcome = runtime.block_on(async {
        let calling = fixture.call_with("Grep", &input, options);
        cancel.cancel();
        calling.await
    });
    assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled);

    for (tool, input) in
        [("Grep", json!({ "pattern": "x", "path": "/etc" })), ("Glob", json!({ "pattern": "/etc/*" }))]
    {
        let refusal = call(&fixture, tool, &input).unwrap_err();
        assert!(
            refusal.kind == "PermissionError" || refusal.code == Code::ApprovalUnavailable,
            "{tool}: {refusal}"
        );
    }
}
