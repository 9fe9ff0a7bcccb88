//! Compares `Grep` and `Glob` with ripgrep and fd: the results must be the same, line by line.
//!
//! `scripts/install-test-tools.sh` installs both, and `cargo xtask ci` runs it. If one is missing, the test prints that
//! and is skipped.

use super::search_model::{create_tree, escape_path, gate, tree};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use toolgate_testkit::GateFixture;
use toolgate_tools::Toolset;

/// Comparisons per tree; fewer mean that the table of options below lost entries.
const MIN_COMBINATION_COUNT: usize = 80;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where `scripts/install-test-tools.sh` puts programs: in cargo's target directory.
fn test_tools_dir() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from);
    target.join("test-tools/bin")
}

/// A program on PATH or in the directory of the script.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain([test_tools_dir()])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var_os("TOOLGATE_TEST_TOOLS").is_some_and(|value| value == "required");
        assert!(!required, "`{name}` is not there to compare with; run scripts/install-test-tools.sh");
        eprintln!("skipped: `{name}` is not on PATH; run scripts/install-test-tools.sh");
    }
    found
}

fn run(program: &Path, at: &Path, arguments: &[String]) -> Vec<u8> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(at)
        .stdin(Stdio::null())
        .env_remove("RIPGREP_CONFIG_PATH")
        .output()
        .unwrap();
    assert!(output.status.code() != Some(2) || !output.stdout.is_empty(), "{arguments:?}: {output:?}");
    output.stdout
}

/// Creates a tree with unusual names, nested ignore files, symlinks, pipes and binary data.
fn odd_tree(at: &Path) {
    let mut runner = TestRunner::deterministic();
    for number in 0..60 {
        let nodes = tree().new_tree(&mut runner).unwrap().current();
        let below = at.join(format!("{}/{}", number % 7, number));
        std::fs::create_dir_all(&below).unwrap();
        create_tree(&below, &nodes);
    }
    std::fs::write(at.join(".gitignore"), "d.log\n/3/17\n**/with space/*.txt\n").unwrap();
    std::fs::write(at.join("utf16.txt"), utf16("hello needle\nHello World\n")).unwrap();
}

fn utf16(text: &str) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xfe];
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    bytes
}

/// Creates a tree like a project: 500 files of several types.
fn code_tree(at: &Path) {
    const WORDS: &[&str] = &[
        "fn",
        "main",
        "use",
        "std::fs",
        "let",
        "value",
        "TODO",
        "return",
        "needle",
        "Needle",
        "impl",
        "struct_name",
        "hello",
        "world",
        "=",
        "42",
        "(",
        ")",
        "{",
        "}",
        "\t",
        "é",
        "日本",
        "unwrap()",
        "\"text\"",
        "//",
    ];
    const KINDS: &[&str] = &["rs", "py", "md", "toml", "js", "ts", "yml", "log", "min.js", "c", "h", ""];
    let mut state = 7_u64;
    let mut next = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most
    };
    for number in 0..500 {
        let mut below = at.to_path_buf();
        for _ in 0..next(5) {
            below.push(["src", "tests", "lib", ".github", "vendor", "a-b", "target"][next(7)]);
        }
        std::fs::create_dir_all(&below).unwrap();
        let kind = KINDS[next(KINDS.len())];
        let dot = if next(12) == 0 { "." } else { "" };
        let name =
            if kind.is_empty() { format!("{dot}file{number}") } else { format!("{dot}file{number}.{kind}") };
        let mut text = String::new();
        for _ in 0..next(60) {
            let line: Vec<&str> = (0..next(9)).map(|_| WORDS[next(WORDS.len())]).collect();
            text.push_str(&line.join(" "));
            text.push_str(if next(15) == 0 { "\r\n" } else { "\n" });
        }
        if next(8) == 0 {
            text.pop();
        }
        if next(40) == 0 {
            text.push('\0');
        }
        std::fs::write(below.join(name), text).unwrap();
        if next(20) == 0 {
            let lines =
                ["*.log", "target/", "!file1*.log", "vendor", "/a-b", "*.min.js", "!.github", "file?.c"];
            let lines: Vec<&str> = (0..=next(3)).map(|_| lines[next(lines.len())]).collect();
            let name = [".gitignore", ".ignore", ".rgignore"][next(3)];
            std::fs::write(below.join(name), lines.join("\n")).unwrap();
        }
    }
}

/// The same options for `Grep` and for ripgrep.
struct GrepOptions {
    input: Value,
    arguments: Vec<&'static str>,
}

fn options() -> Vec<GrepOptions> {
    let content = |more: Value, arguments: &[&'static str]| {
        let mut input = json!({ "output_mode": "content" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        GrepOptions { input, arguments: [&["-n"], arguments].concat() }
    };
    let plain =
        |input: Value, arguments: &[&'static str]| GrepOptions { input, arguments: arguments.to_vec() };
    vec![
        plain(json!({}), &["-l"]),
        plain(json!({ "-i": true }), &["-l", "-i"]),
        plain(json!({ "output_mode": "count" }), &["-c"]),
        plain(json!({ "output_mode": "count", "-o": true }), &["-c", "-o"]),
        plain(json!({ "output_mode": "count", "multiline": true }), &["-c", "-U", "--multiline-dotall"]),
        plain(json!({ "glob": "*.rs" }), &["-l", "-g", "*.rs"]),
        plain(json!({ "glob": "!*.rs" }), &["-l", "-g", "!*.rs"]),
        plain(json!({ "glob": "*.{js,ts,log}" }), &["-l", "-g", "*.{js,ts,log}"]),
        plain(json!({ "glob": "**/src/**" }), &["-l", "-g", "**/src/**"]),
        plain(json!({ "glob": "src/**/*.rs" }), &["-l", "-g", "src/**/*.rs"]),
        plain(json!({ "glob": ".*" }), &["-l", "-g", ".*"]),
        plain(json!({ "glob": "*.rs, *.md !file1*" }), &["-l", "-g", "*.rs", "-g", "*.md", "-g", "!file1*"]),
        plain(json!({ "glob": "tests/" }), &["-l", "-g", "tests/"]),
        plain(json!({ "type": "rust" }), &["-l", "-t", "rust"]),
        plain(json!({ "type": "js", "-i": true }), &["-l", "-t", "js", "-i"]),
        plain(json!({ "type": "yaml" }), &["-l", "-t", "yaml"]),
        plain(json!({ "type": "md", "glob": "!**/lib/**" }), &["-l", "-t", "md", "-g", "!**/lib/**"]),
        plain(json!({ "output_mode": "count", "type": "py" }), &["-c", "-t", "py"]),
        content(json!({}), &[]),
        content(json!({ "-i": true }), &["-i"]),
        content(json!({ "-o": true }), &["-o"]),
        content(json!({ "-A": 2 }), &["-A", "2"]),
        content(json!({ "-B": 1 }), &["-B", "1"]),
        content(json!({ "-C": 2 }), &["-C", "2"]),
        content(json!({ "context": 3, "-A": 1 }), &["-C", "3", "-A", "1"]),
        content(json!({ "-C": 1, "glob": "*.md" }), &["-C", "1", "-g", "*.md"]),
        content(json!({ "multiline": true }), &["-U", "--multiline-dotall"]),
        content(json!({ "multiline": true, "-o": true }), &["-U", "--multiline-dotall", "-o"]),
        content(
            json!({ "multiline": true, "-A": 1, "-i": true }),
            &["-U", "--multiline-dotall", "-A", "1", "-i"],
        ),
    ]
}

const ODD_PATTERNS: &[&str] = &["needle", r"\w+\(\)", "[Hh]ello.*[Ww]orld$", r"e\s*\w"];
// These have few enough matches to compare every line, page by page.
const CODE_PATTERNS: &[&str] =
    &[r"needle\b.*42", r"unwrap\(\) \w+ //", "^(use|fn|let)\\b.*é", "日本 (hello|world)$"];
const REPOSITORY_PATTERNS: &[&str] = &[r"fn main\(", r"\bopenat2?\(", "^use rustix", "[Ww]orkplace::new"];

fn call_tool(fixture: &GateFixture, tool: &str, input: &Value) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let output =
        runtime.block_on(fixture.call(tool, input)).unwrap_or_else(|refusal| panic!("{input}: {refusal}"));
    output.structured.unwrap()
}

/// Every line of a result, from all pages.
fn all_lines(fixture: &GateFixture, input: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut page = input.clone();
        page["offset"] = json!(lines.len());
        page["head_limit"] = json!(0);
        let output = call_tool(fixture, "Grep", &page);
        let before = lines.len();
        match output.get("content").and_then(Value::as_str) {
            Some("") => {}
            Some(content) => lines.extend(content.split('\n').map(str::to_owned)),
            None => {
                let files = output["filenames"].as_array().unwrap();
                lines.extend(files.iter().map(|file| file.as_str().unwrap().to_owned()));
            }
        }
        if output.get("appliedLimit").is_none() {
            return lines;
        }
        assert!(lines.len() > before, "{input}: an empty page");
    }
}

/// Parses ripgrep's output, which has a NUL after each path, and escapes the paths as the tools do.
fn lines_of(output: &[u8], arguments: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = output;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(b"--\n") {
            lines.push("--".to_owned());
            rest = after;
            continue;
        }
        let nul = rest.iter().position(|byte| *byte == 0).unwrap_or_else(|| {
            panic!("no path in {}", String::from_utf8_lossy(rest));
        });
        let path = escape_path(rest[..nul].strip_prefix(b"./").unwrap_or(&rest[..nul]));
        rest = &rest[nul + 1..];
        if arguments.contains(&"-l") {
            lines.push(path);
            continue;
        }
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        let line = String::from_utf8_lossy(line).into_owned();
        rest = &rest[end + 1..];
        let mark =
            line.chars().find(|letter| !letter.is_ascii_digit()).filter(|_| !arguments.contains(&"-c"));
        lines.push(format!("{path}{}{line}", mark.unwrap_or(':')));
    }
    lines
}

fn check_grep_against_rg(rg: &Path, root: &Path, patterns: &[&str]) {
    let fixture = GateFixture::at(root, gate(Toolset::Claude)).unwrap();
    let mut combinations = 0;
    for pattern in patterns {
        for GrepOptions { input, arguments } in options() {
            let mut input = input.clone();
            input["pattern"] = json!(pattern);
            let fixed = ["--no-config", "--color=never", "--no-heading", "-H", "-0", "--sort=path"];
            let ignore = ["--no-require-git", "--no-ignore-global"];
            let last = ["-e", *pattern, "./"];
            let all = fixed.iter().chain(&ignore).chain(&arguments).chain(&last);
            let all: Vec<String> = all.map(|argument| (*argument).to_owned()).collect();
            let theirs = lines_of(&run(rg, root, &all), &arguments);
            let ours = all_lines(&fixture, &input);
            assert_eq!(ours, theirs, "{} {input}", root.display());
            combinations += 1;
        }
    }
    assert!(combinations >= MIN_COMBINATION_COUNT);
}

#[test]
fn grep_returns_the_same_as_rg_on_a_tree_of_unusual_names() {
    let Some(rg) = program("rg") else { return };
    let dir = tempfile::tempdir().unwrap();
    odd_tree(dir.path());
    check_grep_against_rg(&rg, dir.path(), ODD_PATTERNS);
}

#[test]
fn grep_returns_the_same_as_rg_on_a_project() {
    let Some(rg) = program("rg") else { return };
    let dir = tempfile::tempdir().unwrap();
    code_tree(dir.path());
    check_grep_against_rg(&rg, dir.path(), CODE_PATTERNS);
}

#[test]
fn grep_returns_the_same_as_rg_on_this_repository() {
    let Some(rg) = program("rg") else { return };
    check_grep_against_rg(&rg, &repository(), REPOSITORY_PATTERNS);
}

#[test]
fn glob_returns_the_same_as_rg_and_fd() {
    let (Some(rg), Some(fd)) = (program("rg"), program("fd")) else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, make) in [("odd", odd_tree as fn(&Path)), ("code", code_tree)] {
        let root = dir.path().join(name);
        std::fs::create_dir(&root).unwrap();
        make(&root);
        let claude = GateFixture::at(&root, gate(Toolset::Claude)).unwrap();
        let plain = GateFixture::at(&root, gate(Toolset::Plain)).unwrap();
        for pattern in [
            "*.rs",
            "**/*.md",
            "src/**",
            "**/lib/*.{rs,py}",
            "file1?.*",
            "**/[!a-f]*.txt",
            ".*",
            "1/**/a.rs",
            "**/.github/**",
            "*",
            "file[0-4]*",
        ] {
            let args = |list: &[&str]| list.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>();
            let theirs = run(
                &rg,
                &root,
                &args(&[
                    "--no-config",
                    "--files",
                    "-0",
                    "-uu",
                    "--no-messages",
                    "-g",
                    pattern,
                    "-g",
                    "!.git/",
                    "./",
                ]),
            );
            let theirs = paths(&theirs);
            let output = call_tool(&claude, "Glob", &json!({ "pattern": pattern }));
            let ours: Vec<String> = strings(&output["filenames"]);
            assert_eq!(output["totalMatches"], json!(theirs.len()), "{name} {pattern}");
            assert_eq!(ours.len(), theirs.len().min(100), "{name} {pattern}");
            assert!(ours.iter().all(|path| theirs.contains(path)), "{name} {pattern}");

            if !pattern.contains('/') {
                // fd respects ignore files and hidden files as the plain toolset does; `**/` makes the depth the same.
                let theirs = run(
                    &fd,
                    &root,
                    &args(&[
                        "--no-require-git",
                        "--no-global-ignore-file",
                        "-s",
                        "-t",
                        "f",
                        "-0",
                        "-E",
                        "node_modules/",
                        "-E",
                        ".git/",
                        "-g",
                        pattern,
                    ]),
                );
                let mut theirs: Vec<String> = paths(&theirs).into_iter().collect();
                // A negated pattern in an ignore file shows a hidden file in fd; the plain toolset keeps it hidden.
                theirs.retain(|path| !path.split('/').any(|name| name.starts_with('.')));
                let input = json!({ "pattern": format!("**/{pattern}"), "maxResults": 100_000 });
                let mut ours = strings(&call_tool(&plain, "glob", &input)["files"]);
                if pattern.starts_with('.') {
                    assert!(ours.is_empty());
                    continue;
                }
                ours.sort();
                theirs.sort();
                // fd does not read `.rgignore`.
                if !has_rgignore(&root) {
                    assert_eq!(ours, theirs, "{name} {pattern}");
                } else {
                    assert!(ours.iter().all(|path| theirs.contains(path)), "{name} {pattern}");
                }
            }
        }
    }
}

fn has_rgignore(at: &Path) -> bool {
    std::fs::read_dir(at).unwrap().map(Result::unwrap).any(|entry| {
        entry.file_name() == ".rgignore"
            || (entry.file_type().unwrap().is_dir() && has_rgignore(&entry.path()))
    })
}

fn paths(output: &[u8]) -> BTreeSet<String> {
    let paths = output.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| escape_path(path.strip_prefix(b"./").unwrap_or(path))).collect()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}
