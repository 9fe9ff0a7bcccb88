//! `toolgate check`: the decision, explained, one by one and in bulk.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};

#[test]
fn the_exit_code_is_the_verdict() {
    let fixture = CliFixture::new();
    for (args, code, expected) in [
        (vec!["check", "ls"], 0, "ALLOW"),
        (vec!["check", "ls", r#"{"path":"/etc"}"#], 4, "ASK"),
        (vec!["--disallowed-tools", "ls", "check", "ls"], 3, "DENY"),
    ] {
        let output = fixture.run(&args);
        assert_eq!(output.code, code, "{args:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.starts_with(expected), "{}", output.stdout);
    }
}

#[test]
fn check_names_the_file_and_line_of_a_rule() {
    let fixture = CliFixture::new();
    let file = fixture.write(
        ".toolgate/settings.json",
        "{\n  \"permissions\": {\n    \"deny\": [\n      \"ls\"\n    ]\n  }\n}\n",
    );
    let output = fixture.run(&["check", "ls"]);
    assert_eq!(output.code, 3);
    assert!(
        output.stdout.contains(&format!("deny rule `ls` from project, {}:4", file.display())),
        "{}",
        output.stdout
    );
    let value: Value = serde_json::from_str(&fixture.run(&["--json", "check", "ls"]).stdout).unwrap();
    assert_eq!(value["verdict"]["verdict"], "deny");
    assert_eq!(value["verdict"]["rule"]["line"], 4);
}

#[test]
fn check_batch_prints_one_answer_per_line_in_order() {
    let fixture = CliFixture::new();
    let lines = [
        json!({ "id": "a", "tool": "ls", "input": {} }),
        json!({ "id": "b", "tool": "ls", "input": {}, "settings": { "permissions": { "deny": ["ls"] } } }),
        json!({ "id": "c", "tool": "WebSearch", "input": { "query": "x" } }),
        json!({ "id": "d", "tool": "WebSearch", "input": { "query": "x" }, "mode": "dontAsk" }),
        json!({ "id": "e", "tool": "WebSearch", "input": { "query": "x" },
                "settings": { "permissions": { "allow": ["WebSearch"] } } }),
        json!({ "id": "f", "tool": "Nonsense", "input": {} }),
        json!({ "id": "g", "tool": "mcp__a__b", "input": {} }),
        json!({ "id": "h", "tool": "mcp__a__b__c", "input": {} }),
        json!({ "id": "i", "tool": "ls", "input": {}, "settings": { "permissions": { "deny": "ls" } } }),
        json!({ "id": "j", "tool": "Read", "input": { "file_path": 1 } }),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let output = fixture.run_with_input(&["check", "--batch", "-"], &input);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let answers: Vec<(String, String)> = output
        .stdout
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(!value["reason"].as_str().unwrap().is_empty());
            (value["id"].as_str().unwrap().to_owned(), value["verdict"].as_str().unwrap().to_owned())
        })
        .collect();
    let wanted = [
        ("a", "allow"),
        ("b", "deny"),
        ("c", "ask"),
        ("d", "deny"),
        ("e", "allow"),
        ("f", "deny"),
        ("g", "ask"),
        ("h", "deny"),
        ("i", "deny"),
        ("j", "deny"),
    ];
    assert_eq!(answers, wanted.map(|(id, verdict)| (id.to_owned(), verdict.to_owned())));
}

#[test]
fn an_invalid_line_is_denied_and_the_rest_is_judged() {
    let fixture = CliFixture::new();
    let file = fixture.write(
        "b.jsonl",
        "{\"id\":1,\"tool\":\"ls\"}\n{\"id\":2,\"id\":3}\n\n{\"id\":4,\"tool\":\"ls\",\"x\":1}\n",
    );
    let output = fixture.run(&["check", "--batch", file.to_str().unwrap()]);
    assert_eq!(output.code, 2);
    let verdicts: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), 3);
    assert_eq!(verdicts[0]["verdict"], "allow");
    assert_eq!(verdicts[1]["verdict"], "deny");
    assert!(verdicts[1]["reason"].as_str().unwrap().contains("more than once"));
    assert!(verdicts[2]["reason"].as_str().unwrap().contains("unknown field `x`"));
}
