//! `toolgate policy`: lint, test cases in Markdown, and the import of Gemini CLI rules.

use super::cli_fixture::CliFixture;

const CASES: &str = "# Our rules\n\nNo pushes, and secrets stay secret.\n\n```json settings\n\
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
fn policy_test_runs_the_cases_of_a_markdown_file() {
    let fixture = CliFixture::new();
    fixture.write("rules.md", CASES);
    let output = fixture.run(&["policy", "test", "rules.md"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "8 passed, 0 failed\n"), "{}", output.stderr);
    fixture.write("rules.md", &CASES.replace("`Bash ls -la` | allow", "`Bash ls -la` | DENY"));
    let output = fixture.run(&["policy", "test", "rules.md"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stdout.contains("failed rules.md:14: `Bash ls -la`: expected deny, got allow"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.ends_with("7 passed, 1 failed\n"));
    fixture.write("empty.md", "# Nothing\n");
    let output = fixture.run(&["policy", "test", "empty.md"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("no cases found"), "{}", output.stderr);
}

#[test]
fn lint_reports_the_rule_its_file_and_a_fix() {
    let fixture = CliFixture::new();
    let file = fixture
        .write(".toolgate/settings.json", "{\n\"permissions\": {\n\"deny\": [\n\"Write(docs/**)\"\n]}}");
    let output = fixture.run(&["policy", "lint"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(output.stdout.contains(&format!("{}:4", file.display())), "{}", output.stdout);
    assert!(output.stdout.contains("write `Edit(…)`"), "{}", output.stdout);
    std::fs::remove_file(file).unwrap();
    assert_eq!(fixture.run(&["policy", "lint"]).code, 0);
}

#[test]
fn check_explains_each_command_of_a_line() {
    let fixture = CliFixture::new();
    let output = fixture.run(&["check", "Bash", r#"{"command":"ls | sort && npm publish"}"#]);
    assert_eq!(output.code, 4);
    for part in ["allow  ls", "allow  sort", "ask    npm publish", "to allow it: "] {
        assert!(output.stdout.contains(part), "{part} is not in\n{}", output.stdout);
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
    let fixture = CliFixture::new();
    fixture.write("team.toml", GEMINI);
    let output = fixture.run(&["policy", "import", "gemini", "team.toml"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains("team.toml:26: omitted: it applies only in some modes"),
        "{}",
        output.stderr
    );
    fixture.write("settings.json", &output.stdout);
    for (command, code) in [("npm test -- --watch", 0), ("git diff main && rm -rf x", 3), ("npm publish", 4)]
    {
        let input = serde_json::json!({ "command": command }).to_string();
        let output = fixture.run(&["--settings", "settings.json", "check", "Bash", &input]);
        assert_eq!(output.code, code, "{command}: {}", output.stdout);
    }
    let output = fixture.run(&[
        "--settings",
        "settings.json",
        "--permission-mode",
        "bypass",
        "check",
        "Bash",
        r#"{"command":"npm publish"}"#,
    ]);
    assert_eq!(output.code, 4, "{}", output.stdout);
    let output = fixture.run(&["--json", "policy", "import", "gemini", "team.toml"]);
    let value: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value["settings"]["permissions"]["deny"], serde_json::json!(["Bash(rm -rf *)"]));
    assert!(value["notes"].as_array().unwrap().iter().any(|note| note["line"] == 15), "{}", output.stdout);
}

#[test]
fn a_gemini_file_that_cannot_be_imported_is_refused_with_its_line() {
    let fixture = CliFixture::new();
    for (text, expected) in [
        ("[[rule]]\ntoolName = \"x\"\n", "team.toml:1: missing field `decision`"),
        ("[[rule]]\ntoolName = \"x\"\ndecision = \"deny\"\npriority = 1\nargsPatern = \"x\"\n", "argsPatern"),
        (
            "\n[[rule]]\ntoolName = \"read_file\"\ndecision = \"deny\"\npriority = 1\nargsPattern = \"x\"\n",
            "team.toml:2: `x` is not a condition on one field",
        ),
        ("[[safety_checker]]\ntoolName = \"x\"\n", "a safety checker is a program"),
        ("[[rule]\n", "team.toml:1:"),
    ] {
        fixture.write("team.toml", text);
        let output = fixture.run(&["policy", "import", "gemini", "team.toml"]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{text}");
        assert!(output.stderr.contains(expected), "{text}: {}", output.stderr);
    }
}
