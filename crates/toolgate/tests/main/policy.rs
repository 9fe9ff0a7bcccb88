//! `toolgate policy`: lint, formatting, test cases in Markdown, and the import of rules of other products.

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
    // A file without cases is named also beside others; the header may have capitals.
    fixture.write("rules.md", &CASES.replace("| call |", "| Call |"));
    assert_eq!(fixture.run(&["policy", "test", "rules.md"]).stdout, "8 passed, 0 failed\n");
    let output = fixture.run(&["policy", "test", "rules.md", "empty.md"]);
    assert!(output.code == 2 && output.stderr.contains("empty.md: no cases found"), "{}", output.stderr);
}

#[test]
fn a_policy_that_cannot_be_used_passes_no_case() {
    let fixture = CliFixture::new();
    for settings in [
        r#"{"permisions": {"deny": ["Bash(rm *)"]}}"#,
        r#"{"permissions": {"denny": ["Bash(rm *)"]}}"#,
        r#"{"permissions": {"deny": ["Bash(rm *"]}}"#,
    ] {
        let case = "| call | verdict |\n|---|---|\n| `Bash rm x` | DENY |\n";
        fixture.write("rules.md", &format!("```json settings\n{settings}\n```\n\n{case}"));
        let output = fixture.run(&["policy", "test", "rules.md"]);
        assert_eq!(output.code, 1, "{settings}: {}", output.stdout);
        assert!(output.stdout.contains("expected deny, got unusable settings: "), "{}", output.stdout);
    }
}

#[test]
fn the_page_about_rules_passes_the_test_that_it_teaches() {
    let fixture = CliFixture::new();
    fixture.write("policy.md", include_str!("../../../../docs/policy.md"));
    let output = fixture.run(&["policy", "test", "policy.md"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

/// The value of the main field in a case, where not every word is one; `None` for tools without such a field.
fn short_value(tool: &str) -> Option<&'static str> {
    match tool {
        "WebFetch" | "web_fetch" | "Screenshot" | "screenshot" | "BrowserOpen" | "browser_open" => {
            Some("https://a.example/")
        }
        "CronCreate" => Some("*/5 * * * *"),
        "ExitWorktree" => Some("keep"),
        "memory" => Some("list"),
        "Config" => Some("permissions.defaultMode"),
        "NotebookEdit" => Some("a.ipynb"),
        "CronList" | "EnterPlanMode" | "TaskList" | "BrowserScreenshot" | "browser_screenshot" => None,
        _ => Some("word"),
    }
}

/// A case whose input the tool refuses has no verdict, so the short form of no tool may be such an input.
#[test]
fn the_short_form_of_every_tool_is_an_input_of_it() {
    let fixture = CliFixture::new();
    let mut tools: Vec<String> = [
        "Agent",
        "Task",
        "SendMessage",
        "Skill",
        "LSP",
        "lsp",
        "ReadMcpResourceTool",
        "ListMcpResourcesTool",
        "FileRead",
        "replace",
        "run_shell_command",
        "PowerShell",
        "NotebookRead",
    ]
    .map(str::to_owned)
    .to_vec();
    for toolset in ["claude", "plain"] {
        let listed = fixture.run(&["--toolset", toolset, "--chrome", "tools", "--all", "--format", "json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        tools.extend(names.map(str::to_owned));
    }
    for name in ["read_many_files", "MultiEdit", "edit_file", "Monitor", "Screenshot", "BrowserOpen"] {
        assert!(tools.iter().any(|tool| tool == name), "{name} is not listed");
    }
    // Without a value too: then the case is about the name alone.
    let mut cases = "| call | verdict |\n|---|---|\n".to_owned();
    for tool in &tools {
        cases.extend(short_value(tool).map(|value| format!("| `{tool} {value}` | DENY |\n")));
        if !matches!(tool.as_str(), "PowerShell" | "NotebookRead") {
            cases.push_str(&format!("| `{tool}` | DENY |\n"));
        }
    }
    fixture.write("cases.md", &cases);
    let settings = r#"{"permissions": {"deny": ["*"]}}"#;
    for toolset in ["claude", "plain"] {
        let output =
            fixture.run(&["--toolset", toolset, "--settings", settings, "policy", "test", "cases.md"]);
        // A call that the tool refuses has no verdict, and fails.
        assert!(output.stdout.ends_with(" passed, 0 failed\n"), "{toolset}: {}", output.stdout);
    }
}

/// What a short form gives is what rules are about.
#[test]
fn a_short_form_is_judged_by_the_rules_for_its_value() {
    let fixture = CliFixture::new();
    let settings = serde_json::json!({ "permissions": {
        "allow": ["Bash(tail *)", "Agent(Explore)", "mcp__docs", "Edit(src/**)"],
        "deny": ["Read(private/**)", "Bash(rm *)", "mcp__mail"],
    } });
    let rows = [
        ("read_many_files src/a.txt", "allow"),
        ("read_many_files private/a.txt", "DENY"),
        ("MultiEdit src/a.txt", "allow"),
        ("MultiEdit a.txt", "ASK"),
        ("edit_file src/a.txt", "allow"),
        ("edit_file private/a.txt", "DENY"),
        ("NotebookEdit src/a.ipynb", "allow"),
        ("Monitor tail -f log", "allow"),
        ("Monitor rm -r src", "DENY"),
        ("grep src", "allow"),
        ("LSP private/a.rs", "DENY"),
        ("Agent Explore", "allow"),
        ("Agent Plan", "ASK"),
        ("ReadMcpResourceTool docs", "allow"),
        ("ReadMcpResourceTool mail", "DENY"),
        ("Screenshot https://a.example/", "ASK"),
    ];
    let rows: String = rows.iter().map(|(call, verdict)| format!("| `{call}` | {verdict} |\n")).collect();
    let text = format!("```json settings\n{settings}\n```\n\n| call | verdict |\n|---|---|\n{rows}");
    fixture.write("cases.md", &text);
    let output = fixture.run(&["policy", "test", "cases.md"]);
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

const LIVE_CASES: &str = "| call | verdict |\n|---|---|\n| `Bash git push` | DENY |\n| `Bash ls` | allow |\n";

#[test]
fn a_table_without_settings_is_judged_by_the_settings_in_force() {
    let fixture = CliFixture::new();
    fixture.write(".toolgate/policy.md", LIVE_CASES);
    let output = fixture.run(&["--json", "policy", "test"]);
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, &report["passed"], &report["failed"]), (1, &1.into(), &1.into()));
    let failure = &report["failures"][0];
    assert_eq!(
        (&failure["line"], &failure["expected"], &failure["actual"]),
        (&3.into(), &"deny".into(), &"ask".into())
    );
    fixture.write(".toolgate/settings.json", r#"{"permissions": {"deny": ["Bash(git push *)"]}}"#);
    let output = fixture.run(&["policy", "test"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "2 passed, 0 failed\n"), "{}", output.stderr);
}

#[test]
fn watching_runs_the_cases_again_after_a_change_of_settings_or_cases() {
    use std::io::BufRead;
    let fixture = CliFixture::new();
    fixture.write(".toolgate/policy.md", LIVE_CASES);
    let mut child = fixture
        .command(&["--json", "policy", "test", "--watch"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["failed"], 1);
    fixture.write(".toolgate/settings.json", r#"{"permissions": {"deny": ["Bash(git push *)"]}}"#);
    assert_eq!(next()["failed"], 0);
    fixture.write(".toolgate/policy.md", &LIVE_CASES.replace("| `Bash ls` | allow", "| `Bash ls` | DENY"));
    assert_eq!(next()["failed"], 1);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn fmt_gives_rules_one_spelling_and_keeps_trust() {
    let fixture = CliFixture::new();
    let text = "{\n  // ours\n  \"permissions\": { \"allow\": [\"Bash(npm run:*)\", \"Bash(npm run *)\", \"WebSearch\"] }\n}\n";
    let file = fixture.write(".toolgate/settings.json", text);
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    let output = fixture.run(&["policy", "fmt", "--check"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let output = fixture.run(&["policy", "fmt"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let formatted = std::fs::read_to_string(&file).unwrap();
    assert!(formatted.contains("// ours") && formatted.matches("npm run").count() == 1, "{formatted}");
    assert_eq!(fixture.run(&["policy", "fmt", "--check"]).code, 0);
    let check = fixture.run(&["check", "Bash", r#"{"command":"npm run lint"}"#]);
    assert_eq!(check.code, 0, "the project is still trusted: {} {}", check.stdout, check.stderr);
}

#[test]
fn rules_of_codex_and_goose_become_settings() {
    let fixture = CliFixture::new();
    fixture.write(
        "default.rules",
        "prefix_rule(pattern = [\"git\", [\"status\", \"diff\"]])\nprefix_rule(pattern = [\"rm\"], decision = \"forbidden\")\n",
    );
    let output = fixture.run(&["policy", "import", "codex", "default.rules"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    fixture.write("settings.json", &output.stdout);
    for (command, code) in [("git diff main", 0), ("git status && rm x", 3), ("npm publish", 4)] {
        let input = serde_json::json!({ "command": command }).to_string();
        let output = fixture.run(&["--settings", "settings.json", "check", "Bash", &input]);
        assert_eq!(output.code, code, "{command}: {}", output.stdout);
    }
    fixture.write("bad.rules", "prefix_rule(\n  pattern = [\"a b\"], decision = \"forbidden\")\n");
    let output = fixture.run(&["policy", "import", "codex", "bad.rules"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.contains("bad.rules:1: `a b` cannot be written as a rule"), "{}", output.stderr);

    let goose = "user:\n  always_allow:\n  - jira__search\n  ask_before: []\n  never_allow: [developer__shell]\n\
                 smart_approve:\n  always_allow: [x__y]\n  ask_before: []\n  never_allow: []\n";
    fixture.write("permission.yaml", goose);
    let output = fixture.run(&["--json", "policy", "import", "goose", "permission.yaml"]);
    let value: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let expected = serde_json::json!({ "allow": ["mcp__jira__search"], "deny": ["Bash"] });
    assert_eq!(value["settings"]["permissions"], expected);
    for (text, hint) in [
        ("user: [", ""),
        ("other: {}", "the sections `user` and `smart_approve`"),
        ("user:\n  sometimes: [a__b]\n", "the lists `always_allow`, `ask_before` and `never_allow`"),
        ("user:\n  never_allow: [1]\n", "each of names of tools"),
        ("user:\n  never_allow: [developer__mystery, x__y]\n", "remove the tool from a copy of the file"),
        ("user:\n  ask_before: [mystery, x__y]\n", "remove the tool from a copy of the file"),
    ] {
        fixture.write("permission.yaml", text);
        let output = fixture.run(&["policy", "import", "goose", "permission.yaml"]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{text}: {}", output.stderr);
        assert!(output.stderr.contains(hint), "{text}: {}", output.stderr);
        if hint.starts_with("remove") {
            let rest = text.replace("developer__mystery, ", "").replace("mystery, ", "");
            fixture.write("permission.yaml", &rest);
            let output = fixture.run(&["policy", "import", "goose", "permission.yaml"]);
            assert_eq!(output.code, 0, "the hint works: {}", output.stderr);
        }
    }
}

#[test]
fn lint_reports_the_rule_its_file_and_a_fix() {
    let fixture = CliFixture::new();
    let file =
        fixture.write(".toolgate/settings.json", "{\n\"permissions\": {\n\"deny\": [\n\"Bash(rm)\"\n]}}");
    let output = fixture.run(&["policy", "lint"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    assert!(output.stdout.contains(&format!("{}:4", file.display())), "{}", output.stdout);
    assert!(output.stdout.contains("did you mean `Bash(rm *)`?"), "{}", output.stdout);
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

#[test]
fn check_prints_the_effects_that_a_command_line_names() {
    let fixture = CliFixture::new();
    let output = fixture.run(&["check", "Bash", r#"{"command":"sort < notes.txt > sorted.txt"}"#]);
    let cwd = fixture.path("").to_string_lossy().trim_end_matches('/').to_owned();
    for effect in [format!("    read {cwd}/notes.txt\n"), format!("    write {cwd}/sorted.txt\n")] {
        assert!(output.stdout.contains(&effect), "{effect} is not in\n{}", output.stdout);
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

/// A mistake in a case file is named, and hides no other: neither of this file nor of one beside it.
#[test]
fn every_mistake_of_every_case_file_is_reported_and_nothing_passes() {
    let fixture = CliFixture::new();
    let table = "\n| call | verdict |\n|---|---|\n";
    fixture.write("a.md", &format!("{table}| `ls` | allowed |\n| `ls` | allow |\n| `ls` | denied |\n"));
    fixture.write("b.md", &format!("```json setings\n{{}}\n```\n{table}| `ls` | allow |\n"));
    fixture.write(
        "c.md",
        &format!("```json settings\n{{\n\"a\": 1,\n\"a\": 2 }}\n```\n{table}| `ls` | allow |\n"),
    );
    fixture.write(
        "e.md",
        &format!("```json settings\n{{\n\"mode\": \"plann\" }}\n```\n{table}| `ls` | allow |\n"),
    );
    let run = fixture.run(&["policy", "test", "a.md", "b.md", "c.md", "none.md", "e.md"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    for part in [
        "a.md:4: `allowed` is not a verdict; use allow, ask, deny",
        "a.md:6: ",
        "b.md:1: ",
        "c.md:",
        "none.md: no such",
        "e.md:3: the settings: unknown permission mode `plann`; use default,",
    ] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    fixture.write(
        "d.md",
        &format!("```jsonc settings\n{{ // no listings\n\"permissions\": {{ \"deny\": [\"ls\",] }} }}\n```\n{table}| `ls` | deny |\n"),
    );
    let run = fixture.run(&["policy", "test", "d.md"]);
    assert_eq!(run.stdout, "1 passed, 0 failed\n", "{run:?}");
}

/// A row passes only where policy gave its verdict: a misspelled tool or field would be refused under any settings.
#[test]
fn a_call_that_is_refused_before_policy_has_no_verdict() {
    let fixture = CliFixture::new();
    for (call, verdict, part) in [
        (
            "Bsah rm -rf x",
            "deny",
            "there is no tool `Bsah` here [TG-101 ToolNotFoundError]; did you mean `Bash`?",
        ),
        (r#"Bash {"comand":"ls"}"#, "deny", "unknown field `comand`; did you mean `command`?"),
        (r#"Read {"file_path":1}"#, "ASK", "TG-201"),
        ("mcp__a__b__c {}", "DENY", "can be split into server and tool in several ways"),
    ] {
        let text = format!(
            "```json settings\n{{}}\n```\n\n| call | verdict |\n|---|---|\n| `{call}` | {verdict} |\n"
        );
        for text in [text.as_str(), text.split("```\n\n").nth(1).unwrap()] {
            fixture.write("rules.md", text);
            let run = fixture.run(&["policy", "test", "rules.md"]);
            assert!(run.code == 1 && run.stdout.ends_with("0 passed, 1 failed\n"), "{call}: {run:?}");
            assert!(run.stdout.contains("got no verdict: the call is refused before policy"), "{run:?}");
            assert!(run.stdout.contains(part), "{call}: {run:?}");
        }
    }
    // Tools that this session does not have, of another toolset, product and of a server that is not connected.
    let known = "```json settings\n{\"permissions\": {\"deny\": [\"mcp__absent__post\", \"shell(rm *)\"]}}\n```\n\n\
        | call | verdict |\n|---|---|\n| `mcp__absent__post {}` | deny |\n| `mcp__absent__get {}` | ask |\n\
        | `shell rm x` | deny |\n| `PowerShell ls` | ask |\n";
    fixture.write("rules.md", known);
    let run = fixture.run(&["policy", "test", "rules.md"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "4 passed, 0 failed\n"), "{run:?}");
}

#[test]
fn a_key_of_a_block_that_has_no_effect_is_named() {
    let fixture = CliFixture::new();
    let case = "| call | verdict |\n|---|---|\n| `Bash rm x` | ask |\n";
    let write = |settings: &str| {
        fixture.write("rules.md", &format!("# Rules\n```json settings\n{settings}\n```\n\n{case}"));
        fixture.run(&["policy", "test", "rules.md"])
    };
    let run = write("{\n\"moed\": \"plan\" }");
    assert!(run.code == 2 && run.stderr.contains("rules.md:4: the settings: unknown key `moed`"), "{run:?}");
    assert!(run.stderr.contains("did you mean `mode`?"), "{run:?}");
    // Not a misspelling, so it may be meant for another program.
    let run = write(r#"{"permissions": {"frobnicate": ["Bash(rm *)"]}}"#);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("rules.md, below `Rules`: unknown key `permissions.frobnicate`"), "{run:?}");
    for settings in [r#"{"mode": "plan"}"#, r#"{"model": "m", "permissions": {"ask": ["Bash(rm *)"]}}"#] {
        let run = write(settings);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    }
}

/// What is almost a case is an error of the file, wherever in it; what is one is read in every form.
#[test]
fn a_case_that_would_be_skipped_is_an_error_of_its_file() {
    let fixture = CliFixture::new();
    let good = "| call | verdict |\n|---|---|\n| `Bash ls` | allow |\n\n";
    for (text, part) in [
        (
            "| calls | verdict |\n|---|---|\n| `Bash rm x` | deny |\n",
            "rules.md:5: the table looks like one of calls",
        ),
        ("> | call | verdict |\n> |---|---|\n", "rules.md:5: a table in a quote is not read"),
        ("| `Bash rm x` | deny |\n", "rules.md:5: the row is below no headings"),
        ("~~~json setings\n{}\n~~~\n", "rules.md:5: the block is marked `json setings`"),
        ("| rule | problem |\n|---|---|\n| denny `Bash(rm *)` | fatal |\n", "did you mean `deny`?"),
    ] {
        fixture.write("rules.md", &format!("{good}{text}"));
        let run = fixture.run(&["policy", "test", "rules.md"]);
        assert!(run.code == 2 && run.stdout.is_empty() && run.stderr.contains(part), "{text}: {run:?}");
    }
    let tildes = "~~~json settings\n{\"permissions\": {\"deny\": [\"Bash(ls *)\"]}}\n~~~\n\n\
        verdict | **Call:**\n---|---\ndeny | `Bash ls -l`\nallow | `Bash cat a`\n";
    fixture.write("rules.md", &format!("{good}{tildes}"));
    let run = fixture.run(&["policy", "test", "rules.md"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "3 passed, 0 failed\n"), "{run:?}");
}
