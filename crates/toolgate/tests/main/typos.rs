//! Typos in settings and rules: nothing runs, and the message says what was meant and where.

use super::cli_fixture::CliFixture;
use serde_json::Value;

/// Settings with one typo, the line of the typo, and the part of the message that says what was meant.
const TYPOS: &[(&str, usize, &str)] = &[
    ("{\n\"permisions\": {\"deny\": [\"Read(.env)\"]}}", 2, "did you mean `permissions`?"),
    ("{\"permissions\": {\n\"denny\": [\"Read(.env)\"]}}", 2, "did you mean `permissions.deny`?"),
    ("{\n\"deny\": [\"Read(.env)\"]}", 2, "did you mean `permissions.deny`?"),
    ("{\"hooks\": {\n\n\"PreTolUse\": []}}", 3, "did you mean `PreToolUse`?"),
    (
        "{\"hooks\": {\"PreToolUse\": [{\n\"matchr\": \"Bash\"}]}}",
        2,
        "did you mean `hooks.PreToolUse[0].matcher`?",
    ),
    ("{\"permissions\": {\"deny\": [\n\"Reed(.env)\"]}}", 2, "did you mean `Read`?"),
    ("{\"permissions\": {\"deny\": [\"Bash(rm *)\",\n\n\"mcp_files\"]}}", 3, "did you mean `mcp__files`?"),
    ("{\"permissions\": {\"ask\": [\n\"Bsah(rm *)\"]}}", 2, "did you mean `Bash`?"),
    ("{\"permissions\": {\"deny\": [\n\"Bash(command:rm *)\"]}}", 2, "did you mean `Bash(rm *)`?"),
    ("{\"permissions\": {\"deny\": [\n\"Read($HOME/.ssh/**)\"]}}", 2, "did you mean `Read(~/.ssh/**)`?"),
    ("{\"permissions\": {\n\"disabled_tools\": [\"Task(Bash)\"]}}", 2, "did you mean `permissions.deny`?"),
    ("{\"permissions\": {\n\"allowed_tools\": [\"Read\"]}}", 2, "did you mean `permissions.allow`?"),
    ("{\"permissions\": {\n\"pre_approval\": {}}}", 2, "did you mean `preApproval`?"),
    ("{\"disabledTools\": [\n\"Bahs\"]}", 2, "did you mean `Bash`?"),
    ("{\"sandbox\": {\"filesystem\": {\"denyRead\": [\n\"~/priv/**\"]}}}", 2, "write `~/priv`"),
    ("{\"sandbox\": {\"filesystem\": {\"denyWrite\": [\n\"$HOME/priv\"]}}}", 2, "write `~/`"),
    (
        "{\"policy\": {\"rules\": [{\"tool\": \"Bash\", \"action\": \"deny\", \"conditions\": [\n\
         {\"param\": \"comand\", \"operator\": \"contains\", \"value\": \"rm\"}]}]}}",
        2,
        "did you mean `command`?",
    ),
    ("{\"policy\": {\"rules\": [\n{\"tool\": \"Bassh\", \"action\": \"deny\"}]}}", 2, "did you mean `Bash`?"),
    ("{\"policy\": {\"rules\": [{\"tool\": \"Bash\",\n\"action\": \"denny\"}]}}", 2, "did you mean `deny`?"),
    ("{\"permisions\": {\n\"denny\": [\"Bash(rm *)\"]}}", 2, "did you mean `permissions.deny`?"),
    ("{\"permisions\": {\"deny\": [\n\"Reed(.env)\"]}}", 2, "did you mean `Read`?"),
    ("{\"polcy\": {\"rules\": [{\"tool\": \"Bash\",\n\"acton\": \"deny\"}]}}", 2, "did you mean `action`?"),
    ("{\"permissions\": {\"deny\": [\n\"WebSearch(qery:x)\"]}}", 2, "did you mean `WebSearch(query:x)`?"),
    ("{\"permissions\": {\"ask\": [\n\"Agent(modle:big)\"]}}", 2, "did you mean `Agent(model:big)`?"),
    (
        "{\"permissions\": {\"deny\": [\n\"Edit(replace_al:true)\"]}}",
        2,
        "did you mean `Edit(replace_all:true)`?",
    ),
    (
        "{\"hooks\": {\"PreToolUse\": [\n{\"type\": \"command\", \"command\": \"/bin/false\"}]}}",
        2,
        "write `{\"hooks\":[{\"type\":\"command\",\"command\":\"/bin/false\"}]}`",
    ),
    ("{\"hooks\": {\n\"PreToolCall\": []}}", 2, "did you mean `PreToolUse`?"),
    ("{\"hooks\": {\n\"BeforeTool\": []}}", 2, "did you mean `PreToolUse`?"),
    ("{\n\"PreToolUse\": []}", 2, "did you mean `hooks.PreToolUse`?"),
    ("{\"permissions\": {\n\"dny\": [\"Bash(rm *)\"]}}", 2, "did you mean `permissions.deny`?"),
    ("{\"permissions\": {\n\"aks\": [\"Bash(rm *)\"]}}", 2, "did you mean `permissions.ask`?"),
    ("{\"permissions\": {\"dny\": [\n\"Bahs(rm *)\"]}}", 2, "did you mean `Bash`?"),
    ("{\n\"dney\": [\"Bash(rm *)\"]}", 2, "did you mean `permissions.deny`?"),
    ("{\n\"permissions.deny\": [\"Bash(rm *)\"]}", 2, "write `{\"permissions\": {\"deny\": …}}`"),
    ("{\"permissions\": {\n\"block\": [\"Bash(rm *)\"]}}", 2, "did you mean `permissions.deny`?"),
    ("{\"sandbox\": {\n\"denyRead\": [\"x\"]}}", 2, "did you mean `sandbox.filesystem.denyRead`?"),
    (
        "{\"sandbox\": {\"network\": {\n\"blockedDomains\": [\"x.example\"]}}}",
        2,
        "did you mean `sandbox.network.deniedDomains`?",
    ),
    ("{\n\"ledgerRequired\": true}", 2, "did you mean `ledger.required`?"),
    ("{\"managed\": {\n\"permissions\": {}}}", 2, "did you mean `permissions`?"),
    ("{\"disabledTools\": [\n\"Ba*\"]}", 2, "write `Ba*` in `permissions.deny`"),
    ("{\"disabledTools\": [\n\"Bash(touch *)\"]}", 2, "write `Bash(touch *)` in `permissions.deny`"),
];

#[test]
fn a_typo_is_named_with_its_line_by_every_command_and_nothing_runs() {
    let fixture = CliFixture::new();
    for (text, line, meant) in TYPOS {
        let file = fixture.write(".toolgate/settings.json", text);
        let place = format!("{}:{line}", file.display());
        for args in [&["policy", "lint"][..], &["settings", "check", ".toolgate/settings.json"]] {
            let output = fixture.run(args);
            assert_ne!(output.code, 0, "{args:?} {text}");
            assert!(output.stdout.contains(&place), "{args:?} {text}: {}", output.stdout);
            assert!(output.stdout.contains(meant), "{args:?} {text}: {}", output.stdout);
        }
        let output = fixture.run(&["call", "ls", "{}"]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{text}");
        assert!(output.stderr.contains(&place) && output.stderr.contains(meant), "{text}: {}", output.stderr);
    }
}

#[test]
fn a_rule_for_a_misspelled_server_is_named_by_every_command_and_nothing_runs() {
    let fixture = CliFixture::new();
    assert_eq!(fixture.run(&["mcp", "add", "files", "/bin/true"]).code, 0);
    for (rule, meant) in [
        ("mcp__filez", "did you mean `mcp__files`?"),
        ("mcp__Files__read", "did you mean `mcp__files__read`?"),
        ("MCP__files", "did you mean `mcp__files`?"),
    ] {
        let text = format!("{{\"permissions\": {{\"deny\": [\n\"{rule}\"]}}}}");
        let file = fixture.write(".toolgate/settings.json", &text);
        let place = format!("{}:2", file.display());
        for args in [
            &["policy", "lint"][..],
            &["settings", "check"],
            &["settings", "check", ".toolgate/settings.json"],
        ] {
            let output = fixture.run(args);
            assert_ne!(output.code, 0, "{args:?} {rule}");
            assert!(
                output.stdout.contains(&place) && output.stdout.contains(meant),
                "{args:?} {}",
                output.stdout
            );
        }
        let output = fixture.run(&["call", "ls", "{}"]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{rule}");
        assert!(output.stderr.contains(&place) && output.stderr.contains(meant), "{rule}: {}", output.stderr);
    }
    // A server that may be added later is only a note, and a server of the command line is known.
    for (rule, given) in
        [("mcp__github", "{}"), ("mcp__filez", r#"{"mcpServers": {"filez": {"command": "/bin/true"}}}"#)]
    {
        fixture.write(".toolgate/settings.json", &format!("{{\"permissions\": {{\"deny\": [\"{rule}\"]}}}}"));
        let output = fixture.run(&["policy", "lint", "--mcp-config", given]);
        assert_eq!(output.code, 0, "{rule}: {}", output.stdout);
        assert_eq!(
            output.stdout.contains("no MCP server `github` is configured"),
            given == "{}",
            "{}",
            output.stdout
        );
        let output = fixture.run(&["call", "ls", "{}", "--mcp-config", given]);
        assert_eq!(output.code, 0, "{rule}: {}", output.stderr);
    }
}

#[test]
fn hooks_as_a_list_are_refused_with_the_new_form() {
    let fixture = CliFixture::new();
    fixture.write(".toolgate/settings.json", r#"{"hooks": [{"event": "PreToolUse", "command": "x"}]}"#);
    let output = fixture.run(&["call", "ls", "{}"]);
    assert_eq!(output.code, 2);
    for part in ["`hooks` is an array", "write hooks by event: `{\"hooks\": {\"PreToolUse\": ["] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}

#[test]
fn lint_lists_all_problems_of_all_files() {
    let fixture = CliFixture::new();
    let project = fixture.write(
        ".toolgate/settings.json",
        "{\n\"permisions\": {},\n\"permissions\": {\n\"denny\": [],\n\"deny\": [\n\"Reed\",\n\"Bash(rm\",\n\"Bash(curl)\",\n\
         \"Read(/etc/passwd)\"]}}",
    );
    let local =
        fixture.write(".toolgate/settings.local.json", "{\"permissions\": {\"ask\": [\"Bash(a && b)\"]}}");
    let broken = fixture.write(".claude/settings.json", "{\n\"permissions\": ");
    let output = fixture.run(&["policy", "lint"]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let expected = [
        (&project, 2, "fatal", "did you mean `permissions`?"),
        (&project, 4, "fatal", "did you mean `permissions.deny`?"),
        (&project, 6, "fatal", "did you mean `Read`?"),
        (&project, 7, "fatal", "the closing parenthesis is missing"),
        (&project, 8, "warning", "did you mean `Bash(curl *)`?"),
        (&project, 9, "warning", "did you mean `Read(//etc/passwd)`?"),
        (&local, 1, "fatal", "write one rule for each command"),
        (&broken, 2, "fatal", "not valid JSON"),
    ];
    for (file, line, weight, message) in expected {
        let place = format!("{}:{line}:", file.display());
        let is_listed =
            |found: &str| found.starts_with(weight) && found.contains(&place) && found.contains(message);
        assert!(output.stdout.lines().any(is_listed), "{place} {message} is not in\n{}", output.stdout);
    }
    // Without a file, `settings check` is about the same files.
    assert_eq!(fixture.run(&["settings", "check"]).stdout, output.stdout);
    let json = fixture.run(&["--json", "policy", "lint"]);
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    let listed = value["problems"].as_array().unwrap();
    assert!(listed.len() >= expected.len(), "{}", json.stdout);
    assert!(listed.iter().any(|problem| problem["line"] == 6 && problem["fix"] == "did you mean `Read`?"));
}

#[test]
fn the_start_lists_every_fatal_problem() {
    let fixture = CliFixture::new();
    let project = fixture.write(
        ".toolgate/settings.json",
        "{\"theme\": 1,\n\"permisions\": {},\n\"permissions\": {\n\"denny\": [],\n\"deny\": [\"Reed\",\n\"Bash(rm\"]}}",
    );
    let local = fixture.write(".toolgate/settings.local.json", "{\n\"hooks\": {\"PreTolUse\": []}}");
    let output = fixture.run(&["call", "ls", "{}"]);
    assert_eq!(output.code, 2);
    for (file, line) in [(&project, 2), (&project, 4), (&project, 5), (&project, 6), (&local, 2)] {
        let place = format!("{}:{line}: ", file.display());
        assert_eq!(output.stderr.matches(&place).count(), 1, "{place} in {}", output.stderr);
    }
    assert!(output.stderr.contains("4 more problems:"), "{}", output.stderr);
    // A key that only has no effect stands beside those that make the file unusable.
    let listed = fixture.run(&["settings", "check", ".toolgate/settings.json"]).stdout;
    assert!(listed.contains("unknown key `theme` has no effect"), "{listed}");
    // Rules that a tool of this session makes fatal are listed with those that cannot be parsed.
    std::fs::remove_file(&local).unwrap();
    assert_eq!(
        fixture
            .run(&["mcp", "add", "files", "/bin/true", "--settings", "{}", "--setting-sources", "user"])
            .code,
        0
    );
    fixture
        .write(".toolgate/settings.json", r#"{"permissions": {"deny": ["mcp__filez", "Bash(rm", "Reed"]}}"#);
    let output = fixture.run(&["call", "ls", "{}"]);
    for meant in ["did you mean `mcp__files`?", "end the rule with `)`", "did you mean `Read`?"] {
        assert_eq!(output.stderr.matches(meant).count(), 1, "{meant} in {}", output.stderr);
    }
}

#[test]
fn lint_knows_the_allow_rules_of_a_project_that_is_not_trusted() {
    let fixture = CliFixture::new();
    fixture.write(".toolgate/settings.json", r#"{"permissions": {"allow": ["Reed", "Bsah(ls)"]}}"#);
    let output = fixture.run(&["policy", "lint"]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    for part in ["did you mean `Read`?", "did you mean `Bash`?", "has no effect until you trust this project"]
    {
        assert!(output.stdout.contains(part), "{}", output.stdout);
    }
}

#[test]
fn a_checked_file_is_anchored_where_it_belongs() {
    let fixture = CliFixture::new();
    let text = r#"{"permissions": {"deny": ["Read(/etc/passwd)"]}}"#;
    fixture.write(".toolgate/settings.json", text);
    fixture.write("other/given.json", text);
    for (file, anchor) in [(".toolgate/settings.json", "."), ("other/given.json", "other")] {
        let output = fixture.run(&["settings", "check", file]);
        let anchor = fixture.path(anchor).canonicalize().unwrap();
        let start = format!("starts at `{}`, not at the root", anchor.display());
        assert!(output.stdout.contains(&start), "{start} in {}", output.stdout);
    }
}

#[test]
fn unknown_tools_and_groups_of_the_command_line_are_errors() {
    let fixture = CliFixture::new();
    for (args, hint) in [
        (["--tools", "Reed"], "did you mean `Read`?"),
        (["--tools", "Read,Frobnicate"], "`toolgate tools --all` lists the names"),
        (["--tool-groups", "foo"], "use all, config, "),
        (["--tool-groups", "task"], "did you mean `tasks`?"),
    ] {
        for command in [&["tools"][..], &["call", "ls", "{}"]] {
            let output = fixture.run(&[&args[..], command].concat());
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?} {}", output.stderr);
            assert!(output.stderr.contains(hint), "{args:?} {}", output.stderr);
        }
    }
    // Names of other products and of servers that may come are taken.
    for tools in ["Read,Agent,NotebookRead,mcp__files__read", "default", ""] {
        assert_eq!(fixture.run(&["--tools", tools, "tools"]).code, 0, "{tools}");
    }
    for group in ["tasks,memory,questions,plan,search,config,schedules,worktrees", "all"] {
        assert_eq!(fixture.run(&["--tool-groups", group, "tools"]).code, 0, "{group}");
    }
}

#[test]
fn the_user_can_say_that_unmatchable_rules_only_warn() {
    let fixture = CliFixture::new();
    let settings =
        r#"{"permissions": {"unmatchableRules": "warn", "deny": ["Reed(.env)", "Bash(command:rm *)"]}}"#;
    let output = fixture.run(&["--settings", settings, "call", "ls", "{}"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for part in ["did you mean `Read`?", "did you mean `Bash(rm *)`?"] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    // A project that is not trusted cannot say so.
    fixture.write(".toolgate/settings.json", settings);
    assert_eq!(fixture.run(&["call", "ls", "{}"]).code, 2);
}

#[test]
fn a_hook_for_a_misspelled_tool_refuses_the_calls_that_it_would_screen() {
    let fixture = CliFixture::new();
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bsah", "hooks": [{"type": "command", "command": "true"}]}]}}"#;
    let output = fixture.run(&["--settings", settings, "call", "Bash", r#"{"command":"ls"}"#]);
    assert_ne!(output.code, 0, "{}", output.stdout);
    assert!(output.stderr.contains("did you mean `Bash`?"), "{}", output.stderr);
    assert_eq!(fixture.run(&["--settings", settings, "call", "ls", "{}"]).code, 0);
    fixture.write("settings.json", settings);
    let output = fixture.run(&["settings", "check", "settings.json"]);
    assert!(
        output.stdout.contains("unknown tool `Bsah` in `matcher`; did you mean `Bash`?"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_hook_whose_matcher_almost_matches_a_tool_refuses_its_calls() {
    let fixture = CliFixture::new();
    let hook = |matcher: &str, more: &str| {
        format!(
            r#"{{"permissions": {{"allow": ["Bash"]}}, "hooks": {{"PreToolUse": [{{"matcher": "{matcher}",
               "hooks": [{{"type": "command", "command": "true"{more}}}]}}]}}}}"#
        )
    };
    let bash = ["call", "Bash", r#"{"command":"ls"}"#];
    for (matcher, part) in [
        ("^Bahs$", "did you mean `Bash`?"),
        ("Bsah.*", "did you mean `Bash`?"),
        ("Edit|^(Bahs|Write)$", "did you mean `Bash`?"),
        ("Bash(touch *)", "`\"if\": \"Bash(touch *)\"`"),
    ] {
        // With `continue` as well: that is about a hook that fails.
        for more in ["", r#", "onFailure": "continue""#] {
            let settings = hook(matcher, more);
            let output = fixture.run(&[&["--settings", &settings][..], &bash].concat());
            assert!(output.code != 0 && output.stderr.contains(part), "{matcher} {output:?}");
            assert_eq!(fixture.run(&["--settings", &settings, "call", "ls", "{}"]).code, 0, "{matcher}");
            fixture.write("s.json", &settings);
            for args in [&["settings", "check", "s.json"][..], &["--settings", "s.json", "policy", "lint"]] {
                let output = fixture.run(args);
                assert!(output.code != 0 && output.stdout.contains(part), "{args:?} {output:?}");
            }
        }
    }
    // A matcher that matches, and one for a tool that toolgate does not know.
    for (matcher, note) in [("Edit|^Ba(sh|t)$", false), ("^Deploy", true)] {
        fixture.write("s.json", &hook(matcher, ""));
        let output = fixture.run(&[&["--settings", "s.json"][..], &bash].concat());
        assert_eq!(output.code, 0, "{matcher} {output:?}");
        let output = fixture.run(&["settings", "check", "s.json"]);
        assert_eq!(output.code, 0, "{matcher} {output:?}");
        assert_eq!(output.stdout.contains("matches no tool of toolgate"), note, "{matcher} {output:?}");
    }
}

#[test]
fn what_other_products_have_in_settings_is_a_note() {
    let fixture = CliFixture::new();
    for (text, part) in [
        (r#"{"theme": "dark"}"#, "unknown key `theme` has no effect"),
        (r#"{"allowWrite": ["x"]}"#, "has no effect; did you mean `sandbox.filesystem.allowWrite`?"),
        (r#"{"hooks": {"AfterTool": []}}"#, "`hooks.AfterTool` is an unknown event; its hooks never run"),
        (r#"{"hooks": {"FileChanged": []}}"#, "`hooks.FileChanged` is not raised"),
        (
            r#"{"sandbox": {"filesystem": {"allowRead": ["x"]}}}"#,
            "`sandbox.filesystem.allowRead` has no effect",
        ),
    ] {
        fixture.write("s.json", text);
        for args in [&["settings", "check", "s.json"][..], &["--settings", "s.json", "policy", "lint"]] {
            let output = fixture.run(args);
            assert!(output.code == 0 && output.stdout.contains(part), "{args:?} {text} {output:?}");
        }
        assert_eq!(fixture.run(&["--settings", "s.json", "call", "ls", "{}"]).code, 0, "{text}");
    }
}

#[test]
fn disabled_tools_of_servers_are_found_by_every_name() {
    let fixture = CliFixture::new();
    assert_eq!(fixture.run(&["mcp", "add", "files", "/bin/true"]).code, 0);
    for (entry, is_denied) in [
        ("mcp__files", true),
        ("mcp__files__*", true),
        ("mcp__files__write_file", true),
        ("mcp__files__read_*", false),
    ] {
        for settings in [
            format!(r#"{{"disabledTools": ["{entry}"]}}"#),
            format!(r#"{{"managed": {{"disabledTools": ["{entry}"]}}}}"#),
        ] {
            let args = ["--settings", &settings, "--json", "check", "mcp__files__write_file", "{}"];
            let output = fixture.run(&args);
            let verdict: Value = serde_json::from_str(&output.stdout).unwrap();
            assert_eq!(verdict["verdict"]["verdict"] == "deny", is_denied, "{entry} {verdict}");
        }
    }
    let settings = "{\"disabledTools\": [\n\"mcp__filez\"]}";
    let file = fixture.write(".toolgate/settings.json", settings);
    let place = format!("{}:2", file.display());
    for args in [&["policy", "lint"][..], &["settings", "check", ".toolgate/settings.json"]] {
        let output = fixture.run(args);
        assert!(output.code != 0 && output.stdout.contains("did you mean `mcp__files`?"), "{output:?}");
        assert!(output.stdout.contains(&place), "{output:?}");
    }
    assert_eq!(fixture.run(&["call", "ls", "{}"]).code, 2);
}

#[test]
fn one_rule_and_one_problem_are_not_plural() {
    let fixture = CliFixture::new();
    let settings = fixture.beside("home").join(".config/toolgate/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, r#"{"permissions":{"deny":["Bash(rm)"]}}"#).unwrap();
    let linted = fixture.run(&["policy", "lint"]).stdout;
    assert!(linted.ends_with("1 rule, 1 problem\n"), "{linted}");
}

/// Settings that load although calls are refused under them, or tools missing, are not called faultless.
#[test]
fn what_refuses_calls_is_a_problem_of_the_file_for_every_command() {
    let fixture = CliFixture::new();
    let hook = |group: &str| format!("{{\"hooks\": {{\"PreToolUse\": [{group}]}}}}");
    for (text, part) in [
        (r#"{"ledger":{"anchor":"rel/x"}}"#.to_owned(), "`ledger.anchor` is `rel/x`"),
        (
            r#"{"preApproval":{"blockedDomains":["https://evil.example"]}}"#.to_owned(),
            "a host is expected here",
        ),
        (
            hook(r#"{"matcher":"Bash(","hooks":[{"type":"command","command":"true"}]}"#),
            "invalid matcher `Bash(`",
        ),
        (hook(r#"{"matcher":"Bash","hooks":[{"type":"command"}]}"#), "it has no `command`"),
        (
            hook(r#"{"matcher":"Bash","hooks":[{"type":"command","command":"true","if":"Bahs(rm *)"}]}"#),
            "unknown tool `Bahs`",
        ),
        (r#"{"mcpServers":{"a":{"comand":"x"}}}"#.to_owned(), "needs a `command` or a `url`"),
        (r#"{"mcpServers":{"a":{"command":"x","timeout":"5s"}}}"#.to_owned(), "`timeout` must be a number"),
    ] {
        let file = fixture.write("s.json", &text);
        let run = fixture.run(&["settings", "check", "s.json"]);
        assert!(run.code != 0 && run.stdout.contains(part), "{run:?}");
        assert!(run.stdout.contains(&file.display().to_string()), "{run:?}");
        for command in [&["policy", "lint"][..], &["doctor"]] {
            let run = fixture.run(&[&["--settings", "s.json"], command].concat());
            assert!(run.code != 0 && run.stdout.contains(part), "{command:?} {run:?}");
        }
    }
    let list = fixture.beside("home").join(".config/toolgate/mcp.json");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    std::fs::write(&list, "{\"mcpServers\":").unwrap();
    for command in [&["policy", "lint"][..], &["doctor"]] {
        let run = fixture.run(command);
        assert!(run.code != 0 && run.stdout.contains("the file is damaged"), "{command:?} {run:?}");
    }
    // A server whose address is in a variable is complete.
    let text = r#"{"mcpServers":{"a":{"url":"${SERVER_OF_TEST}"}}}"#;
    fixture.write("s.json", text);
    assert_eq!(fixture.run(&["settings", "check", "s.json"]).code, 0);
}
