//! `toolgate policy`: rules looked over and put to the test.

use super::desk::Desk;

const CASES: &str = "# Our rules\n\nNobody pushes, and secrets stay secret.\n\n```json settings\n\
    {\"permissions\": {\"allow\": [\"Bash(npm run *)\"], \"deny\": [\"Bash(git push *)\", \"Read(.env)\"]}}\n```\n\n\
    | call | verdict |\n|---|---|\n\
    | `Bash npm run lint` | allow |\n\
    | `Bash npm run lint && git push` | DENY |\n\
    | `Bash cat .env` | DENY |\n\
    | `Bash ls -la` | allow |\n\
    | `Read src/.env` | DENY |\n\
    | `Read src/main.rs` | allow |\n\
    | `Write src/main.rs` | ASK |\n\
    | `WebFetch https://example.com/` | ASK |\n";

#[test]
fn a_markdown_file_is_manual_and_test_in_one() {
    let desk = Desk::new();
    desk.write("rules.md", CASES);
    let said = desk.run(&["policy", "test", "rules.md"]);
    assert_eq!((said.code, said.out.as_str()), (0, "8 passed, 0 failed\n"), "{}", said.err);
    desk.write("rules.md", &CASES.replace("`Bash ls -la` | allow", "`Bash ls -la` | DENY"));
    let said = desk.run(&["policy", "test", "rules.md"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("wrong rules.md:14: `Bash ls -la` gives allow, not deny"), "{}", said.out);
    assert!(said.out.ends_with("7 passed, 1 failed\n"));
    desk.write("empty.md", "# Nothing\n");
    let said = desk.run(&["policy", "test", "empty.md"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("no cases found"), "{}", said.err);
}

#[test]
fn lint_names_the_rule_the_file_and_what_to_write() {
    let desk = Desk::new();
    let file =
        desk.write(".toolgate/settings.json", "{\n\"permissions\": {\n\"deny\": [\n\"Write(docs/**)\"\n]}}");
    let said = desk.run(&["policy", "lint"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.out.contains(&format!("{}:4", file.display())), "{}", said.out);
    assert!(said.out.contains("write `Edit(…)`"), "{}", said.out);
    std::fs::remove_file(file).unwrap();
    assert_eq!(desk.run(&["policy", "lint"]).code, 0);
}

#[test]
fn a_command_is_explained_part_by_part() {
    let desk = Desk::new();
    let said = desk.run(&["check", "Bash", r#"{"command":"ls | sort && npm publish"}"#]);
    assert_eq!(said.code, 4);
    for part in ["allow  ls", "allow  sort", "ask    npm publish", "to allow it"] {
        assert!(said.out.contains(part), "{part} is not in\n{}", said.out);
    }
}

const GEMINI: &str = r#"# ~/.gemini/policies/team.toml
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["git status", "git diff", "npm test"]
decision = "allow"
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = "rm -rf"
decision = "deny"
priority = 900
denyMessage = "Deletion is permanent"

[[rule]]
toolName = "run_shell_command"
decision = "ask_user"
priority = 10

[[rule]]
mcpName = "jira"
toolName = "search"
decision = "allow"
priority = 200

[[rule]]
toolName = ["write_file", "replace"]
decision = "allow"
priority = 15
modes = ["autoEdit"]
"#;

#[test]
fn rules_of_the_gemini_cli_become_settings() {
    let desk = Desk::new();
    desk.write("team.toml", GEMINI);
    let said = desk.run(&["policy", "import", "gemini", "team.toml"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("team.toml:26: omitted: it applies only in some modes"), "{}", said.err);
    desk.write("settings.json", &said.out);
    for (command, code) in [("npm test -- --watch", 0), ("git diff main && rm -rf x", 3), ("npm publish", 4)]
    {
        let input = serde_json::json!({ "command": command }).to_string();
        let said = desk.run(&["--settings", "settings.json", "check", "Bash", &input]);
        assert_eq!(said.code, code, "{command}: {}", said.out);
    }
    let said = desk.run(&[
        "--settings",
        "settings.json",
        "--permission-mode",
        "bypass",
        "check",
        "Bash",
        r#"{"command":"npm publish"}"#,
    ]);
    assert_eq!(said.code, 4, "{}", said.out);
    let said = desk.run(&["--json", "policy", "import", "gemini", "team.toml"]);
    let value: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(value["settings"]["permissions"]["deny"], serde_json::json!(["Bash(rm -rf *)"]));
    assert!(value["notes"].as_array().unwrap().iter().any(|note| note["line"] == 15), "{}", said.out);
}

#[test]
fn a_gemini_file_that_cannot_be_kept_is_refused_with_its_line() {
    let desk = Desk::new();
    for (text, says) in [
        ("[[rule]]\ntoolName = \"x\"\n", "team.toml:1: missing field `decision`"),
        ("[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\npriority = 1\nargsPatern = \"x\"\n", "argsPatern"),
        (
            "\n[[rule]]\ntoolName = \"read_file\"\ndecision = \"deny\"\npriority = 1\nargsPattern = \"x\"\n",
            "team.toml:2: `x` is not a condition on one field",
        ),
        ("[[safety_checker]]\ntoolName = \"x\"\n", "a safety checker is a program"),
        ("[[rule]\n", "team.toml:1:"),
    ] {
        desk.write("team.toml", text);
        let said = desk.run(&["policy", "import", "gemini", "team.toml"]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{text}");
        assert!(said.err.contains(says), "{text}: {}", said.err);
    }
}
