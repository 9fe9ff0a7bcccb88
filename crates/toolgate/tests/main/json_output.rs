//! `--json`: every command prints JSON with it, or its help says why not.

use super::cli_fixture::CliFixture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// The commands whose help says what they print instead.
const TEXT_COMMANDS: [&str; 3] = ["acp", "demo", "mcp serve"];

/// Commands that succeed, in an order in which each has something to show.
const SUCCEEDING: &[&[&str]] = &[
    &["init", "--dry-run"],
    &["init"],
    &["tools"],
    &["check", "ls"],
    &["call", "ls"],
    &["log"],
    &["log", "--verify"],
    &["log", "report", "ses_"],
    &["policy", "lint"],
    &["policy", "test"],
    &["policy", "fmt", "--check"],
    &["policy", "fmt"],
    &["policy", "import", "codex", "x.rules"],
    &["mcp", "add", "one", "/bin/true"],
    &["mcp", "add-json", "two", r#"{"command":"/bin/true"}"#],
    &["mcp", "list"],
    &["mcp", "get", "one"],
    &["mcp", "approve", "one"],
    &["mcp", "remove", "two"],
    &["settings", "show"],
    &["settings", "check"],
    &["settings", "schema"],
    &["settings", "schema", "settings.schema.json"],
    &["trust", "show"],
    &["trust", "add", "--yes"],
    &["trust", "list"],
    &["trust", "workspace", "--yes"],
    &["trust", "remove"],
    &["skill", "list"],
    &["skill", "show", "sample"],
    &["skill", "run", "sample"],
    &["skill", "lint"],
    &["plugin", "add", "plugin", "--yes"],
    &["plugin", "list"],
    &["plugin", "show", "sample"],
    &["plugin", "approve", "sample", "--yes"],
    &["plugin", "disable", "sample"],
    &["plugin", "enable", "sample"],
    &["plugin", "update", "--yes"],
    &["plugin", "validate", "plugin"],
    &["plugin", "remove", "sample"],
    &["schedule", "list"],
    &["tasks", "add", "a task"],
    &["tasks", "add", "another task"],
    &["tasks", "list"],
    &["tasks", "show", "1"],
    &["tasks", "edit", "1", "--status", "completed"],
    &["tasks", "lists"],
    &["tasks", "export", "--format", "markdown"],
    &["tasks", "remove", "1"],
    &["tasks", "clear"],
    &["memory", "set", "key", "text"],
    &["memory", "list"],
    &["memory", "show", "key"],
    &["memory", "search", "text"],
    &["memory", "path"],
    &["memory", "path", "key"],
    &["memory", "export"],
    &["memory", "forget", "key"],
    &["grants", "list"],
    &["doctor"],
    &["completions", "bash", "--install"],
];

/// Commands that cannot succeed here: the error is JSON.
const FAILING: &[&[&str]] = &[
    &["run", "-p", "hello", "--model", "none"],
    &["log", "show", "none"],
    &["undo", "none"],
    &["redo", "none"],
    &["mcp", "test", "one"],
    &["mcp", "login", "none"],
    &["schedule", "cancel", "none"],
    &["schedule", "run"],
    &["memory", "edit", "none"],
    &["grants", "revoke", "none"],
    &["ask"],
    &["trust", "add"],
];

/// Whether a text is one JSON value, or has one on each line.
fn is_json(text: &str) -> bool {
    let parses = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    parses(text) || text.lines().all(parses)
}

/// The commands without commands below them, from the generated reference.
fn leaf_commands(fixture: &CliFixture) -> Vec<String> {
    let reference = fixture.run(&["reference"]).stdout;
    let all: Vec<&str> = reference.lines().filter_map(|line| line.strip_prefix("## toolgate ")).collect();
    let is_leaf = |name: &&&str| !all.iter().any(|other| other.starts_with(&format!("{name} ")));
    all.iter().filter(is_leaf).map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_command_prints_json_with_json_or_says_in_its_help_why_not() {
    let fixture = CliFixture::new();
    fixture.write("x.rules", "prefix_rule(pattern = [\"ls\"], decision = \"allow\")\n");
    fixture.write("plugin/.claude-plugin/plugin.json", r#"{"name":"sample","version":"1.0.0"}"#);
    let skill = "---\nname: sample\ndescription: Greets the reader.\n---\nSay hello.\n";
    fixture.write(".claude/skills/sample/SKILL.md", skill);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut check = |args: &[&str], succeeds: bool| {
        let run = fixture.run(&[args, &["--json"]].concat());
        assert_eq!(run.code == 0, succeeds, "{args:?} {run:?}");
        assert!(is_json(&run.stdout), "{args:?} {run:?}");
        for count in 1..=args.len() {
            seen.insert(args[..count].join(" "));
        }
    };
    SUCCEEDING.iter().for_each(|args| check(args, true));
    FAILING.iter().for_each(|args| check(args, false));
    #[cfg(feature = "lsp")]
    {
        check(&["lsp", "status"], true);
        check(&["lsp", "restart"], true);
        check(&["lsp", "test", "none"], false);
    }
    // It never ends, so its first line is read.
    assert_eq!(fixture.run(&["tasks", "add", "a task"]).code, 0);
    let mut watch = fixture.command(&["tasks", "watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(!line.is_empty() && is_json(&line), "{line}");
    seen.insert("tasks watch".to_owned());
    for leaf in leaf_commands(&fixture) {
        if TEXT_COMMANDS.contains(&leaf.as_str()) || leaf == "completions" {
            let args: Vec<&str> = leaf.split(' ').chain(["--help"]).collect();
            let help = fixture.run(&args).stdout;
            let text = help.split("Global options").last().unwrap_or_default();
            let text =
                text.lines().filter(|line| !line.trim_start().starts_with("--json")).collect::<String>();
            assert!(text.contains("--json"), "{leaf}: {help}");
        } else {
            assert!(seen.contains(&leaf), "`{leaf}` is in no list of this test");
        }
    }
}
