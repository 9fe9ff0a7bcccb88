//! A newcomer walks through the README and every page: each example is run with the built program, and what it prints is
//! compared with the page.
//!
//! A block marked `console` has commands (`$ …`) and their output, in which `…` stands for any text; a block marked `sh`
//! has commands that must be accepted; a `json` block with keys of a settings file must be valid settings. Paths of the
//! fixture are shown as `/home/me/project` and `/home/me`, and ids, counts and times are not compared.

use super::cli_fixture::CliFixture;
use regex::Regex;
use serde_json::Value;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Commands that are not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("toolgate mcp serve", "it does not end; `scripts/mcp/page.py` runs it"),
    ("toolgate mcp test", "it needs a server of another project; `scripts/mcp/page.py` runs it"),
    ("toolgate call mcp__", "it needs a server of another project; `scripts/mcp/page.py` runs it"),
    ("toolgate policy test --watch", "it does not end"),
    ("cargo ", "it builds a program"),
    ("docker ", "it starts a container"),
];

/// How long a command of a page may take before the test fails and names it.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(300);

/// A fenced block of a page.
pub(super) struct PageBlock {
    /// The page, for messages.
    pub(super) page: String,
    /// The line of the fence.
    pub(super) line: usize,
    /// What follows the fence, such as `console`.
    pub(super) mark: String,
    /// The lines of the block.
    pub(super) lines: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of every page: the README and `docs/*.md`.
pub(super) fn page_blocks() -> Vec<PageBlock> {
    let mut pages = vec![root().join("README.md")];
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    pages.extend(
        docs.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "md")),
    );
    pages.sort();
    let mut blocks: Vec<PageBlock> = Vec::new();
    for path in pages {
        let page = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut is_open = false;
        for (index, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            if let Some(mark) = line.strip_prefix("```") {
                if !is_open {
                    let mark = mark.trim().to_owned();
                    blocks.push(PageBlock { page: page.clone(), line: index + 1, mark, lines: Vec::new() });
                }
                is_open = !is_open;
            } else if is_open {
                blocks.last_mut().unwrap().lines.push(line.to_owned());
            }
        }
    }
    blocks
}

/// A project as the pages describe it, with changes that can be undone.
pub(super) fn project() -> CliFixture {
    let fixture = CliFixture::new();
    fixture.write("src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n");
    fixture.write("rules.md", "| call | verdict |\n|---|---|\n| `Bash ls` | allow |\n");
    fixture.write(".toolgate/policy.md", "| call | verdict |\n|---|---|\n| `Bash ls` | allow |\n");
    let main = fixture.path("src/main.rs");
    let batch = [
        serde_json::json!({ "tool": "Read", "input": { "file_path": main } }),
        serde_json::json!({ "tool": "MultiEdit", "input": { "file_path": main, "edits": [
            { "old_string": "    println!(\"hello\");\n", "new_string": "    a();\n    b();\n    c();\n" },
        ] } }),
    ];
    let lines: Vec<String> = batch.iter().map(Value::to_string).collect();
    fixture.write("batch.jsonl", &lines.join("\n"));
    let made = fixture
        .command(&["call", "--batch", "batch.jsonl", "--permission-mode", "bypass"])
        .env("TOOLGATE_SANDBOXED", "1")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    std::fs::remove_file(fixture.path("batch.jsonl")).unwrap();
    fixture
}

/// Whether a command is left out: it is listed, or it would leave this machine. Prints why.
#[expect(clippy::print_stdout, reason = "what is left out is said in the output of the test")]
pub(super) fn is_not_run(command: &str) -> bool {
    let listed = NOT_RUN.iter().find(|(prefix, _)| command.starts_with(prefix)).map(|(_, reason)| *reason);
    let reason = listed.or(command.contains("https://").then_some("it would leave this machine"));
    if let Some(reason) = reason {
        println!("not run: {command}: {reason}");
    }
    reason.is_some()
}

/// Starts a line in the shell, in a process group of its own, with the built program on the path; standard output and
/// standard error go to one file. A pipe would stay open for as long as anything that the line left behind.
fn start_line(fixture: &CliFixture, line: &str, output: &Path) -> Child {
    let program = Path::new(env!("CARGO_BIN_EXE_toolgate"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = File::create(output).unwrap();
    Command::new("sh")
        .args(["-c", line])
        .env_clear()
        .env("PATH", path)
        .env("HOME", fixture.beside("home"))
        .env("TOOLGATE_STATE_DIR", fixture.beside("state"))
        .current_dir(fixture.path(""))
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Runs a line in the shell; its exit code and what it printed.
fn run_line(fixture: &CliFixture, line: &str) -> (i32, String) {
    let output = fixture.beside("output");
    let mut shell = start_line(fixture, line, &output);
    let deadline = Instant::now() + COMMAND_TIMEOUT;
    let status = loop {
        if let Some(status) = shell.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            end_group(&mut shell);
            panic!("`{line}` did not end: {}", std::fs::read_to_string(&output).unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let printed = std::fs::read(&output).unwrap();
    (status.code().unwrap_or(-1), String::from_utf8_lossy(&printed).into_owned())
}

/// Ends a shell and everything in its process group.
fn end_group(shell: &mut Child) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", shell.id())]).status();
    shell.wait().unwrap();
}

/// A text in the terms of the pages.
pub(super) fn in_page_terms(fixture: &CliFixture, text: &str) -> String {
    let place = |name: &str| fixture.beside(name).display().to_string();
    let workspace = fixture.path("").display().to_string();
    text.replace(workspace.trim_end_matches('/'), "/home/me/project")
        .replace(&place("state"), "/home/me/.local/state/toolgate")
        .replace(&place("home"), "/home/me")
}

/// Whether what was printed is what the page shows.
pub(super) fn is_as_shown(shown: &[String], printed: &str) -> bool {
    let ids = Regex::new(r"(?<kind>(?:call|ses)_)[0-9a-f]+\b|\b[0-9a-f]{6,}\b|\b\d+\b").unwrap();
    let mask = |text: &str| ids.replace_all(text, "${kind}#").into_owned();
    let pattern = regex::escape(&mask(&shown.join("\n"))).replace('…', "(?s:.*)");
    Regex::new(&format!("^{pattern}\\s*$")).unwrap().is_match(mask(printed).trim_end())
}

#[test]
fn every_console_example_prints_what_the_page_shows() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for block in page_blocks().iter().filter(|block| block.mark == "console") {
        let fixture = project();
        let mut lines = block.lines.iter().peekable();
        while let Some(line) = lines.next() {
            let Some(command) = line.strip_prefix("$ ") else { continue };
            let mut shown = Vec::new();
            while let Some(output) = lines.next_if(|next| !next.starts_with("$ ")) {
                shown.push(output.clone());
            }
            if is_not_run(command) || block.page == "mcp.md" && command == "toolgate log" {
                continue;
            }
            count += 1;
            let (code, printed) = run_line(&fixture, command);
            // Notes go to standard error; the pages show the result.
            let is_result = |line: &&str| !line.starts_with("note: ");
            let printed = printed.lines().filter(is_result).collect::<Vec<_>>().join("\n");
            let printed = in_page_terms(&fixture, &printed);
            let is_usage_error = code == 2 && printed.starts_with("error:");
            if is_usage_error || (!shown.is_empty() && !is_as_shown(&shown, &printed)) {
                wrong.push(format!("{}:{} $ {command}\n{printed}", block.page, block.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 10, "only {count} commands were found");
}

#[test]
fn every_command_in_a_shell_block_is_accepted() {
    let mut wrong = Vec::new();
    for block in page_blocks().iter().filter(|block| block.mark == "sh") {
        let fixture = project();
        let mut servers = Vec::new();
        for line in &block.lines {
            let command = line.split(" #").next().unwrap_or_default().trim();
            if command.is_empty() || is_not_run(command) {
                continue;
            }
            if let Some(server) = command.strip_suffix('&') {
                servers.push(start_line(&fixture, server, &fixture.beside("server-output")));
                continue;
            }
            let (code, printed) = run_line(&fixture, command);
            // A refusal, and that there is nothing to remove, are results; a command line that is not understood is not.
            if code == 2 && printed.contains("try '--help'") {
                wrong.push(format!("{}:{} {command}\n{printed}", block.page, block.line));
            }
        }
        servers.iter_mut().for_each(end_group);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_settings_example_is_valid() {
    let fixture = CliFixture::new();
    let keys = ["\"permissions\"", "\"hooks\"", "\"policy\"", "\"sandbox\"", "\"mcpServers\""];
    let mut count = 0;
    for block in page_blocks().iter().filter(|block| block.mark == "json") {
        let text = block.lines.join("\n");
        if !text.starts_with('{') || !keys.iter().any(|key| text.contains(key)) {
            continue;
        }
        count += 1;
        fixture.write("page.json", &text);
        let output = fixture.run(&["settings", "check", "page.json"]);
        assert_ne!(output.code, 2, "{}:{}\n{}", block.page, block.line, output.stdout);
    }
    assert!(count >= 5, "only {count} blocks were found");
}
