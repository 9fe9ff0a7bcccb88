//! Field rules and conditions of policy books: what they restrict is found in every spelling of a value, and under the
//! names of both toolsets; what a book allows is the same value only.

use super::fake_workspace::{FakeWorkspace, Node, compile, identity};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use toolgate_proto::{Effect, Intent, SourceId, ToolIdentity, ToolName};

/// A tool of the plain toolset, as it is registered.
fn plain(name: &str, family: &str) -> ToolIdentity {
    ToolIdentity::new(ToolName::new(name), SourceId::Builtin).with_also(vec![family.to_owned()])
}

/// The verdict about a call of which the effects are unknown, so that only rules for its name and input count.
fn judge(settings: &Value, tool: &ToolIdentity, input: &Value) -> &'static str {
    let world = FakeWorkspace::new("/ws");
    let (policy, problems) = compile(settings, &world);
    assert!(problems.is_empty(), "{settings}: {problems:?}");
    let input: Map<String, Value> = input.as_object().cloned().unwrap();
    let intent = Intent::new("call", [Effect::Opaque]);
    world.judge_intent(&policy, tool, &input, &intent, &[]).verdict.as_str()
}

/// A book with one rule, which has one condition.
fn book(tool: &str, action: &str, param: &str, operator: &str, value: &str) -> Value {
    let condition = json!({ "param": param, "operator": operator, "value": value });
    json!({ "policy": { "rules": [{ "tool": tool, "action": action, "conditions": [condition] }] } })
}

/// A rule of this action for a field of `mcp__files__post`, and a book that says the same. Books also allow.
fn settings_for(action: &str, value: &str) -> Vec<Value> {
    let book = book("mcp__files__post", action, "n", "equals", value);
    let rule = json!({ "permissions": { action: [format!("mcp__files__post(n:{value})")] } });
    if action == "allow" { vec![book] } else { vec![book, rule] }
}

/// Spellings of an integer as a JSON number.
fn spellings(integer: i64) -> Vec<String> {
    let exponent = if integer != 0 && integer % 1000 == 0 {
        format!("{}e3", integer / 1000)
    } else {
        format!("{integer}E0")
    };
    vec![
        integer.to_string(),
        format!("{integer}.0"),
        format!("{integer}.000"),
        format!("{integer}e+0"),
        exponent,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_number_is_the_same_however_it_is_spelled(
        wanted in -5_000_i64..5_000,
        scale in select(vec![1_i64, 10, 1000, 1_000_000_000]),
        (in_rule, in_input) in (0..5_usize, 0..5_usize),
        action in select(vec!["deny", "ask", "allow"]),
        difference in -1_i64..=1,
    ) {
        let tool = identity("mcp__files__post");
        let rule_value = spellings(wanted * scale)[in_rule].clone();
        let spelled = spellings(wanted * scale + difference)[in_input].clone();
        let input: Value = serde_json::from_str(&format!("{{\"n\":{spelled}}}")).unwrap();
        for settings in settings_for(action, &rule_value) {
            let found = judge(&settings, &tool, &input) == action;
            // Where no rule decides, a tool with unknown effects asks.
            let expected = difference == 0 || action == "ask";
            prop_assert_eq!(found, expected, "{} {}", &settings, &input);
        }
    }

    #[test]
    fn an_allow_rule_never_holds_for_another_number(
        near in select(vec![1_i64 << 53, (1 << 53) + 1, (1 << 53) - 1, i64::MAX, i64::MIN, 0]),
        difference in 1_i64..3,
    ) {
        let tool = identity("mcp__files__post");
        let input = json!({ "n": near });
        for other in [near.checked_add(difference), near.checked_sub(difference)].into_iter().flatten() {
            for spelled in [other.to_string(), format!("{other}.0"), format!("{other}.5")] {
                for settings in settings_for("allow", &spelled) {
                    prop_assert_eq!(judge(&settings, &tool, &input), "ask", "{} {}", &settings, &input);
                }
            }
        }
        for settings in settings_for("allow", &format!("{near}.0")) {
            prop_assert_eq!(judge(&settings, &tool, &input), "allow");
        }
    }

    #[test]
    fn what_a_rule_forbids_is_found_in_lists_and_objects(
        word in "[a-z \"\\\\]{1,6}",
        wrap in 0..5_usize,
    ) {
        let value = match wrap {
            0 => json!(word),
            1 => json!([word]),
            2 => json!({ "a": word }),
            3 => json!({ &word: [null, 1] }),
            _ => json!([{ "a": [{ "b": format!("x{word}y") }] }, 2]),
        };
        let tool = identity("mcp__files__post");
        let settings = json!({ "policy": book("mcp__files__post", "deny", "n", "contains", &word)["policy"] });
        prop_assert_eq!(judge(&settings, &tool, &json!({ "n": value })), "deny", "{}", &value);
        // A backslash escapes parentheses in the syntax of rules.
        if !word.contains('\\') {
            let settings = json!({ "permissions": { "deny": [format!("mcp__files__post(n:*{word}*)")] } });
            prop_assert_eq!(judge(&settings, &tool, &json!({ "n": value })), "deny", "{}", &value);
        }
    }
}

#[test]
fn large_and_unusual_numbers_are_compared_as_numbers() {
    let tool = identity("mcp__files__post");
    for (rule, input, verdict) in [
        ("9007199254740993", "9007199254740993", "deny"),
        ("9007199254740993", "9007199254740995", "ask"),
        ("18446744073709551615", "18446744073709551615", "deny"),
        ("1000000000000000000", "1e18", "deny"),
        ("1e18", "1000000000000000000", "deny"),
        // The call has only the float that is nearest to what its author wrote.
        ("12345678901234567890", "12345678901234567890.0", "deny"),
        ("0", "-0.0", "deny"),
        ("-0.0", "0", "deny"),
        ("-1", "-1.0", "deny"),
        ("2.5", "25e-1", "deny"),
        ("2", "2.5", "ask"),
        ("2", "\"2.0\"", "ask"),
        ("2.0", "\"2.0\"", "deny"),
        ("2*", "2e3", "deny"),
        ("NaN", "\"NaN\"", "deny"),
        ("inf", "1", "ask"),
    ] {
        let input: Value = serde_json::from_str(&format!("{{\"n\":{input}}}")).unwrap();
        for settings in settings_for("deny", rule).into_iter().skip(usize::from(rule.contains('*'))) {
            assert_eq!(judge(&settings, &tool, &input), verdict, "{settings} {input}");
        }
    }
}

#[test]
fn an_object_is_the_same_in_every_order_for_rules_that_restrict() {
    let tool = identity("mcp__files__post");
    let input = json!({ "n": { "b": [1.0], "a": "x" } });
    for (action, value, verdict) in [
        ("deny", r#"{"a":"x","b":[1]}"#, "deny"),
        ("deny", r#"{ "b": [1.0], "a": "x" }"#, "deny"),
        ("deny", r#"{"a":"x","b":[2]}"#, "ask"),
        ("allow", r#"{"b":[1],"a":"x"}"#, "allow"),
        ("allow", r#"{"a":"x","b":[1]}"#, "ask"),
    ] {
        for settings in settings_for(action, value) {
            assert_eq!(judge(&settings, &tool, &input), verdict, "{settings}");
        }
    }
}

/// Tools of both toolsets with inputs that mean the same.
#[test]
fn a_rule_for_a_field_holds_in_both_toolsets() {
    let shell = plain("shell", "Bash");
    let read_file = plain("read_file", "Read");
    let write_file = plain("write_file", "Write");
    let edit_file = plain("edit_file", "Edit");
    let many = plain("read_many_files", "Read");
    let edits = |old: &str, new: &str| json!({ "edits": [{ "target": "a", "replacement": "b" }, { "target": old, "replacement": new }] });
    for (tool, names, operator, value, calls) in [
        (
            "Bash",
            ["run_in_background", "background"],
            "equals",
            "true",
            vec![
                (identity("Bash"), json!({ "run_in_background": true })),
                (shell.clone(), json!({ "background": true })),
            ],
        ),
        (
            "Write",
            ["file_path", "path"],
            "contains",
            "prod",
            vec![
                (identity("Write"), json!({ "file_path": "/ws/prod/a" })),
                (write_file.clone(), json!({ "path": "prod/a" })),
            ],
        ),
        (
            "Write",
            ["file_path", "path"],
            "startsWith",
            "/ws/prod/",
            vec![
                (identity("Write"), json!({ "file_path": "/ws/prod/a" })),
                (write_file.clone(), json!({ "path": "prod/a" })),
                (write_file, json!({ "path": "x/../prod/a" })),
            ],
        ),
        (
            "Read",
            ["file_path", "path"],
            "equals",
            "src/a",
            vec![
                (identity("Read"), json!({ "file_path": "/ws/src/a" })),
                (read_file.clone(), json!({ "path": "src/a" })),
                (many, json!({ "paths": ["b", "src/a"] })),
            ],
        ),
        (
            "Read",
            ["offset", "startLine"],
            "equals",
            "2.0",
            vec![(identity("Read"), json!({ "offset": 2 })), (read_file, json!({ "startLine": 2 }))],
        ),
        (
            "Edit",
            ["new_string", "new_string"],
            "contains",
            "secret",
            vec![
                (identity("Edit"), json!({ "old_string": "x", "new_string": "a secret" })),
                (edit_file.clone(), edits("x", "a secret")),
            ],
        ),
        (
            "Edit",
            ["edits", "edits"],
            "contains",
            "secret",
            vec![
                (identity("Edit"), json!({ "old_string": "secret", "new_string": "x" })),
                (edit_file, edits("x", "a secret")),
            ],
        ),
    ] {
        for (identity, input) in &calls {
            for name in names {
                for action in ["deny", "ask"] {
                    for named in [tool, "*"] {
                        let mut settings = book(named, action, name, operator, value);
                        settings["policy"]["defaultAction"] = json!("allow");
                        settings["permissions"] = json!({ "allow": [tool] });
                        let world = FakeWorkspace::new("/ws");
                        let policy = compile(&settings, &world).0;
                        let input: Map<String, Value> = input.as_object().cloned().unwrap();
                        let intent = Intent::new("call", [Effect::Opaque]);
                        let judged = world.judge_intent(&policy, identity, &input, &intent, &[]);
                        assert_eq!(judged.verdict.as_str(), action, "{settings} {} {input:?}", identity.name);
                    }
                }
                // The same field of a tool of another source has its name by chance.
                let foreign = ToolIdentity::new(identity.name.clone(), SourceId::Sdk);
                let other = names.into_iter().find(|other| !input.as_object().unwrap().contains_key(*other));
                if let Some(other) = other.filter(|_| operator == "contains") {
                    let settings = book("*", "deny", other, operator, value);
                    assert_eq!(judge(&settings, &foreign, input), "ask", "{settings} {}", foreign.name);
                }
            }
        }
    }
}

#[test]
fn what_a_book_allows_in_a_field_it_allows_in_the_same_field_of_that_tool_only() {
    let write_file = plain("write_file", "Write");
    for (settings, tool, input, verdict) in [
        (
            book("Write", "allow", "file_path", "equals", "/ws/a"),
            write_file.clone(),
            json!({ "path": "/ws/a" }),
            "allow",
        ),
        (
            book("Write", "allow", "file_path", "equals", "/ws/a"),
            write_file.clone(),
            json!({ "path": "a" }),
            "ask",
        ),
        // A tool with both fields must have the value in both.
        (
            book("Write", "allow", "file_path", "equals", "/ws/a"),
            write_file.clone(),
            json!({ "path": "/ws/a", "file_path": "/ws/b" }),
            "ask",
        ),
        (
            book("write_file", "allow", "path", "equals", "a"),
            identity("Write"),
            json!({ "file_path": "a" }),
            "ask",
        ),
        (
            book("Edit", "allow", "new_string", "contains", "x"),
            plain("edit_file", "Edit"),
            json!({ "edits": [{ "target": "a", "replacement": "x" }] }),
            "ask",
        ),
        (
            book("Bash", "allow", "timeout", "equals", "2"),
            identity("Monitor"),
            json!({ "timeout_ms": 2 }),
            "ask",
        ),
    ] {
        assert_eq!(judge(&settings, &tool, &input), verdict, "{settings} {} {input}", tool.name);
    }
}

/// The verdict of a book with one rule about a call of a tool that declares its paths. `/ws/docs/out` is a symlink to a
/// directory outside of the workspace, and `/ws/docs/in` one to a file below `/ws/docs`.
fn judge_path(
    action: &str,
    tool: &str,
    field: &str,
    operator: &str,
    value: &str,
    path: &str,
) -> &'static str {
    let world = FakeWorkspace::new("/ws")
        .with("/ws/docs/out", Node::Link("/outside".to_owned()))
        .with("/ws/docs/in", Node::Link("/ws/docs/a.md".to_owned()));
    let (policy, problems) = compile(&book(tool, action, field, operator, value), &world);
    assert!(problems.is_empty(), "{problems:?}");
    world.judge(&policy, tool, &json!({ "file_path": path, "content": "" })).verdict.as_str()
}

#[test]
fn what_a_book_allows_by_a_path_holds_wherever_the_path_leads() {
    for (operator, value, path, verdict) in [
        ("startsWith", "/ws/docs/", "/ws/docs/a.md", "allow"),
        ("startsWith", "/ws/docs/", "/ws/docs/in", "allow"),
        ("startsWith", "/ws/docs/", "/ws/docs/../../outside/x", "ask"),
        ("startsWith", "/ws/docs/", "/ws/docs/../src/x", "ask"),
        ("startsWith", "/ws/docs/", "/ws/docs/x/../a.md", "allow"),
        ("startsWith", "/ws/docs/", "/ws/docs/out/x", "ask"),
        ("matches", "^/ws/docs/.*[.]md$", "/ws/docs/out/x.md", "ask"),
        ("matches", "[.]md$", "/ws/docs/in", "ask"),
        ("startsWith", "docs/", "docs/a.md", "allow"),
        ("startsWith", "docs/", "docs/out/x", "ask"),
        ("startsWith", "docs/", "docs/../x", "ask"),
        ("startsWith", "~/notes/", "~/notes/a", "allow"),
        ("startsWith", "~/notes/", "~/notes/../a", "ask"),
        ("equals", "/ws/docs/out/x", "/ws/docs/out/x", "ask"),
    ] {
        let found = judge_path("allow", "Write", "file_path", operator, value, path);
        assert_eq!(found, verdict, "{operator} {value}: {path}");
    }
    // A list of paths is compared as a whole, so none of them may lead elsewhere.
    let many = plain("read_many_files", "Read");
    let settings = book("read_many_files", "allow", "paths", "contains", "/ws/docs/");
    for (paths, verdict) in [(json!(["/ws/docs/a"]), "allow"), (json!(["/ws/docs/../../x"]), "ask")] {
        assert_eq!(judge(&settings, &many, &json!({ "paths": paths })), verdict, "{paths}");
    }
    // Where a tool of a server begins is not known.
    let post = identity("mcp__files__post");
    for (path, verdict) in
        [("/ws/docs/a..b", "allow"), ("/ws/docs/../../x", "ask"), ("/ws/docs/\\..\\x", "ask")]
    {
        let settings = book("mcp__files__post", "allow", "path", "startsWith", "/ws/docs/");
        assert_eq!(judge(&settings, &post, &json!({ "path": path })), verdict, "{path}");
    }
}

#[test]
fn the_directory_of_a_command_is_a_path() {
    let world = FakeWorkspace::new("/ws")
        .with("/ws/docs/link", Node::Link("/ws/src".to_owned()))
        .with("/ws/docs/in", Node::Link("/ws/docs/sub".to_owned()));
    for (action, value, cwd, verdict) in [
        ("allow", "docs", "docs/sub", "allow"),
        ("allow", "docs", "docs/in", "allow"),
        ("allow", "docs", "docs/link", "ask"),
        ("allow", "docs", "docs/../src", "ask"),
        ("allow", "/ws/docs", "/ws/docs/link", "ask"),
        ("allow", "/ws/docs", "/ws/docs/../src", "ask"),
        ("deny", "/ws/src", "src", "deny"),
        ("deny", "/ws/src", "docs/link", "deny"),
        ("deny", "/ws/src", "docs/../src", "deny"),
        ("deny", "/ws/src", "docs", "ask"),
    ] {
        let (policy, problems) = compile(&book("Bash", action, "cwd", "startsWith", value), &world);
        assert!(problems.is_empty(), "{problems:?}");
        let input = json!({ "command": "touch x", "cwd": cwd });
        assert_eq!(world.judge(&policy, "Bash", &input).verdict.as_str(), verdict, "{action} {value}: {cwd}");
    }
}

#[test]
fn what_a_book_forbids_by_a_path_holds_behind_symlinks_and_below_home() {
    for (value, path) in [
        ("/outside/", "/ws/docs/out/x"),
        ("/ws/docs/a.md", "docs/in"),
        ("/home/u/.ssh/", "~/.ssh/id"),
        ("~/.ssh/", "/home/u/.ssh/id"),
        ("/home/u/.ssh/", "/ws/../home/u/.ssh/id"),
    ] {
        for action in ["deny", "ask"] {
            let found = judge_path(action, "Write", "file_path", "startsWith", value, path);
            assert_eq!(found, action, "{value}: {path}");
        }
    }
}

#[test]
fn a_rule_finds_a_field_under_its_older_and_shorter_names() {
    let multi_edit =
        ToolIdentity::new(ToolName::new("MultiEdit"), SourceId::Builtin).with_also(vec!["Edit".to_owned()]);
    let edits =
        json!({ "edits": [{ "old_string": "x", "new_string": "an evil text", "replace_all": true }] });
    for (rule, tool, input) in [
        ("MultiEdit(new_string:*evil*)", &multi_edit, edits.clone()),
        ("Edit(new_string:*evil*)", &multi_edit, edits.clone()),
        ("MultiEdit(replace_all:true)", &multi_edit, edits.clone()),
        ("Edit(replace_all:true)", &multi_edit, edits),
        ("TaskStop(task_id:1)", &identity("TaskStop"), json!({ "shell_id": "1" })),
        ("KillShell(shell_id:1)", &identity("TaskStop"), json!({ "task_id": "1" })),
        ("TaskOutput(task_id:1)", &identity("TaskOutput"), json!({ "bash_id": "1" })),
        ("Grep(context:5)", &identity("Grep"), json!({ "-C": 5 })),
        ("Grep(-C:5)", &identity("Grep"), json!({ "context": 5 })),
        ("Grep(-i:true)", &identity("Grep"), json!({ "-i": true })),
    ] {
        let settings = json!({ "permissions": { "deny": [rule] } });
        assert_eq!(judge(&settings, tool, &input), "deny", "{rule} {input}");
    }
}

#[test]
fn a_book_names_a_skill_with_and_without_a_slash() {
    for (value, given) in [("deploy", "/deploy"), ("/deploy", "deploy"), ("deploy", "deploy")] {
        let settings = book("Skill", "deny", "skill", "equals", value);
        assert_eq!(
            judge(&settings, &identity("Skill"), &json!({ "skill": given })),
            "deny",
            "{value} {given}"
        );
    }
}
