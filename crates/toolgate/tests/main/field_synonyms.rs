//! A rule for a field of a built-in tool means the same field in the other toolset, and in every spelling of its value.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toolgate::{SourceId, Toolgate, Toolset};
use toolgate_proto::{field_synonyms, tool_synonyms};

/// The fields of each built-in tool of a toolset, with those of the items of its lists (`edits[].target`).
fn fields_of_tools(toolset: Toolset) -> BTreeMap<String, BTreeSet<String>> {
    let dir = tempfile::tempdir().unwrap();
    let toolgate = Toolgate::builder(dir.path()).toolset(toolset).tool_group("all").build().unwrap();
    let built_in = |source: &SourceId| *source == SourceId::Builtin;
    let tools = toolgate.tools().into_iter().filter(|tool| built_in(&tool.source));
    tools.map(|tool| (tool.name.to_string(), fields_of(&tool.input_schema))).collect()
}

fn fields_of(schema: &Value) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        fields.insert(name.clone());
        let parts = field["items"]["properties"].as_object().into_iter().flatten();
        fields.extend(parts.map(|(part, _)| format!("{name}[].{part}")));
    }
    fields
}

/// Fields that only one of the two tools has, and why no field of the other means the same.
const WITHOUT_SYNONYM: &[(&str, &str, &str)] = &[
    ("Bash", "dangerouslyDisableSandbox", "`shell` has no way out of the sandbox"),
    ("shell", "cwd", "`Bash` changes the directory with `cd`, which rules for commands judge"),
    ("Read", "limit", "a number of lines; `endLine` is the last line"),
    ("Read", "pages", "`read_file` gets a PDF as a whole"),
    ("read_file", "endLine", "the last line; `limit` is a number of lines"),
    ("write_file", "overwrite", "`Write` replaces a file if it was read"),
    ("Edit", "replace_all", "a target of `edit_file` occurs once"),
    ("edit_file", "edits[].lineHint", "`old_string` occurs once"),
    ("glob", "maxResults", "`Glob` has a fixed limit"),
    ("glob", "includeHidden", "`Glob` always does"),
    ("glob", "offset", "`Glob` has no pages"),
    ("glob", "absolutePaths", "only how a result is written"),
    ("Grep", "output_mode", "`grep` shows lines only"),
    ("Grep", "-B", "`grep` shows no context"),
    ("Grep", "-A", "`grep` shows no context"),
    ("Grep", "-C", "`grep` shows no context"),
    ("Grep", "context", "`grep` shows no context"),
    ("Grep", "-n", "only how a result is written"),
    ("Grep", "-i", "the opposite of `caseSensitive`: the same value means the contrary"),
    ("Grep", "-o", "only how a result is written"),
    ("Grep", "type", "`grep` selects files by `filePattern`"),
    ("Grep", "multiline", "`grep` matches in lines only"),
    ("grep", "caseSensitive", "the opposite of `-i`: the same value means the contrary"),
    ("grep", "absolutePaths", "only how a result is written"),
    ("WebFetch", "prompt", "`web_fetch` returns the page only"),
    ("WebSearch", "allowed_domains", "`web_search` does not select domains"),
    ("WebSearch", "blocked_domains", "`web_search` does not select domains"),
    ("web_search", "numResults", "`WebSearch` has a fixed number"),
    ("TodoWrite", "todos[].content", "compared as part of the text of `todos`, and with `task`"),
    ("TodoWrite", "todos[].activeForm", "`write_todos` has no such text"),
    ("write_todos", "todos[].description", "compared as part of the text of `todos`, and with `task`"),
    ("write_todos", "action", "`TodoWrite` always writes the whole list"),
    ("write_todos", "id", "`TodoWrite` has no ids"),
];

/// Whether a field of one tool is found in a call of the other: under its own name, another one, or as its parts.
fn is_found(tool: &str, field: &str, other_fields: &BTreeSet<String>) -> bool {
    let has =
        |place: &str| other_fields.contains(place) || other_fields.contains(place.trim_end_matches("[]"));
    // A rule cannot name a part of a list; its synonyms lead back to the fields that rules can name.
    has(field) || field_synonyms(tool, field, true).into_iter().any(has)
}

#[test]
fn every_field_that_means_the_same_in_both_toolsets_is_paired() {
    let (claude, plain) = (fields_of_tools(Toolset::Claude), fields_of_tools(Toolset::Plain));
    let mut unpaired: BTreeSet<(String, String)> = BTreeSet::new();
    let mut pairs = 0;
    for (claude_tool, claude_fields) in &claude {
        let synonyms = tool_synonyms(claude_tool);
        let others =
            plain.iter().filter(|(name, _)| *name != claude_tool && synonyms.contains(&name.as_str()));
        for (plain_tool, plain_fields) in others {
            pairs += 1;
            for (tool, fields, other) in
                [(claude_tool, claude_fields, plain_fields), (plain_tool, plain_fields, claude_fields)]
            {
                let missing = fields.iter().filter(|field| !is_found(tool, field, other));
                unpaired.extend(missing.map(|field| (tool.clone(), field.clone())));
            }
        }
    }
    assert!(pairs >= 8, "{pairs} pairs");
    let listed: BTreeSet<(String, String)> =
        WITHOUT_SYNONYM.iter().map(|(tool, field, _)| ((*tool).to_owned(), (*field).to_owned())).collect();
    assert_eq!(unpaired, listed, "unpaired on the left, listed on the right");
}

/// Calls that a rule or a book forbids, in both toolsets: `(settings, toolset, tool, input)`.
fn forbidden_calls(fixture: &CliFixture) -> Vec<(Value, &'static str, &'static str, Value)> {
    let file = fixture.write("prod.txt", "shown").display().to_string();
    let book = |tool: &str, param: &str, operator: &str, value: &str| {
        let condition = json!({ "param": param, "operator": operator, "value": value });
        json!({ "policy": { "rules": [{ "tool": tool, "action": "deny", "conditions": [condition] }] } })
    };
    let deny = |rule: &str| json!({ "permissions": { "deny": [rule] } });
    let float = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let edit = json!({ "file_path": file, "edits": [{ "old_string": "shown", "new_string": "a secret" }] });
    vec![
        (deny("Read(limit:2)"), "claude", "Read", json!({ "file_path": file, "limit": float("2.0") })),
        (deny("Read(limit:2.0)"), "claude", "Read", json!({ "file_path": file, "limit": 2 })),
        (deny("Read(offset:1)"), "plain", "read_file", json!({ "path": file, "startLine": float("1.0") })),
        (deny("Bash(timeout:600000)"), "claude", "Bash", json!({ "command": "ls", "timeout": float("6e5") })),
        (deny("Bash(timeout:6e5)"), "plain", "shell", json!({ "command": "ls", "timeout": 600_000 })),
        (
            book("Read", "limit", "equals", "2"),
            "claude",
            "Read",
            json!({ "file_path": file, "limit": float("2.0") }),
        ),
        (deny("MultiEdit(edits:*secret*)"), "claude", "MultiEdit", edit.clone()),
        (deny("Edit(new_string:*secret*)"), "claude", "MultiEdit", edit),
        (
            deny("Edit(new_string:*secret*)"),
            "plain",
            "edit_file",
            json!({ "path": file, "edits": [{ "target": "shown", "replacement": "a secret" }] }),
        ),
        (book("Read", "file_path", "contains", "prod"), "plain", "read_file", json!({ "path": "prod.txt" })),
        (book("Read", "file_path", "equals", &file), "plain", "read_file", json!({ "path": "prod.txt" })),
        (book("read_file", "path", "equals", "prod.txt"), "claude", "Read", json!({ "file_path": file })),
        (book("*", "file_path", "contains", "prod"), "plain", "read_file", json!({ "path": file })),
        (
            book("Write", "file_path", "contains", "prod"),
            "plain",
            "write_file",
            json!({ "path": file, "content": "x", "overwrite": true }),
        ),
        (
            deny("Bash(run_in_background:true)"),
            "plain",
            "shell",
            json!({ "command": "ls", "background": true }),
        ),
        (
            deny("shell(background:true)"),
            "claude",
            "Bash",
            json!({ "command": "ls", "run_in_background": true }),
        ),
    ]
}

#[test]
fn a_rule_for_a_field_is_enforced_in_both_toolsets_and_every_spelling() {
    let fixture = CliFixture::new();
    for (settings, toolset, tool, input) in forbidden_calls(&fixture) {
        let (settings, input) = (settings.to_string(), input.to_string());
        let args = ["--toolset", toolset, "--settings", &settings, "call", tool, &input];
        let run = fixture.run(&args);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(
            run.code != 0 && said.contains("TG-401"),
            "{toolset} {tool} {input} under {settings}: {run:?}"
        );
    }
}
