//! Translation of Gemini CLI rules: calls are judged by the translated settings.

use super::fake_workspace::{FakeWorkspace, compile, input_of, word};
use serde_json::{Value, json};
use toolgate_policy::ProblemSeverity;
use toolgate_policy::RuleTranslation;
use toolgate_policy::gemini::{GeminiRule, translate};

/// Rules as parsed from a TOML file, each on a line of its own.
fn rules(rules: &Value) -> Vec<GeminiRule> {
    let mut rules: Vec<GeminiRule> = serde_json::from_value(rules.clone()).unwrap();
    for (at, rule) in rules.iter_mut().enumerate() {
        rule.line = at + 1;
    }
    rules
}

fn check(given: &Value, calls: &[(&str, &str, &str)]) -> RuleTranslation {
    let translated = translate(&rules(given)).unwrap_or_else(|note| panic!("{note:?}"));
    let world = FakeWorkspace::new("/ws");
    let (policy, problems) = compile(&translated.settings, &world);
    assert!(problems.iter().all(|problem| problem.weight != ProblemSeverity::Fatal), "{problems:?}");
    for (tool, text, wanted) in calls {
        let judgement = world.judge(&policy, tool, &input_of(tool, text));
        assert_eq!(word(&judgement), *wanted, "{tool} {text} under {}", translated.settings);
    }
    translated
}

fn shell(decision: &str, priority: u16, prefix: &str) -> Value {
    json!({ "toolName": "run_shell_command", "commandPrefix": prefix, "decision": decision, "priority": priority })
}

#[test]
fn a_stronger_deny_or_ask_rule_keeps_its_effect() {
    let given = json!([
        shell("allow", 100, "git"),
        shell("deny", 200, "git push"),
        shell("ask_user", 150, "git commit"),
        { "toolName": "run_shell_command", "decision": "ask_user", "priority": 10 },
        { "toolName": ["write_file", "replace"], "decision": "allow", "priority": 50 },
        { "toolName": "write_file", "argsPattern": "\"file_path\":\"/ws/vendor/", "decision": "deny", "priority": 60,
          "denyMessage": "vendored code is not ours" },
        { "mcpName": "my-jira", "toolName": "search", "decision": "allow", "priority": 200 },
        { "mcpName": "my-jira", "decision": "ask_user", "priority": 100 },
        { "mcpName": "untrusted", "decision": "deny", "priority": 500 },
    ]);
    let translated = check(
        &given,
        &[
            ("Bash", "git log -n 3", "allow"),
            ("Bash", "git push origin main", "deny"),
            ("Bash", "git log && git push", "deny"),
            ("Bash", "git commit -m x", "ask"),
            ("Bash", "gitx", "ask"),
            ("Bash", "npm test", "ask"),
            ("Write", "/ws/src/a.rs", "allow"),
            ("Write", "/ws/vendor/a.rs", "deny"),
            ("Write", "/elsewhere/a.rs", "ask"),
            ("Edit", "/ws/src/a.rs", "allow"),
            ("mcp__my-jira__search", "{}", "allow"),
            ("mcp__my-jira__delete", "{}", "ask"),
            ("mcp__untrusted__search", "{}", "deny"),
        ],
    );
    assert!(translated.settings.to_string().contains("vendored code is not ours"));
    let notes: Vec<usize> = translated.notes.iter().map(|note| note.line).collect();
    assert_eq!(notes, [4, 8], "{:?}", translated.notes);
}

#[test]
fn where_the_orders_disagree_the_settings_are_stricter_with_a_note() {
    let given = json!([shell("allow", 200, "git status"), shell("deny", 100, "git")]);
    let translated = check(&given, &[("Bash", "git status", "deny"), ("Bash", "git push", "deny")]);
    assert_eq!(translated.notes.len(), 1);
    assert!(translated.notes[0].message.contains("line 2 takes precedence"), "{:?}", translated.notes);

    let given = json!([
        shell("allow", 200, "ls"),
        { "toolName": "*", "decision": "deny", "priority": 1 },
    ]);
    let calls = [
        ("Bash", "ls", "deny"),
        ("Write", "src/a", "deny"),
        ("mcp__a__b", "{}", "deny"),
        ("Read", "a", "deny"),
    ];
    assert!(
        check(&given, &calls).notes.iter().any(|note| note.line == 1 && note.message.starts_with("stricter"))
    );

    // An allow rule that applies only in some modes is omitted; such a deny rule applies always.
    let mut some = shell("allow", 200, "make");
    some["modes"] = json!(["autoEdit"]);
    let mut sometimes = shell("deny", 100, "npm publish");
    sometimes["modes"] = json!(["yolo"]);
    let calls = [("Bash", "make all", "ask"), ("Bash", "npm publish", "deny")];
    assert_eq!(check(&json!([some, sometimes]), &calls).notes.len(), 2);
}

#[test]
fn an_ask_rule_asks_in_every_mode() {
    let given = json!([
        shell("allow", 100, "npm test"),
        { "toolName": "run_shell_command", "decision": "ask_user", "priority": 1 },
        { "toolName": "replace", "decision": "ask_user", "priority": 1 },
    ]);
    let translated = translate(&rules(&given)).unwrap();
    let world = FakeWorkspace::new("/ws");
    for mode in ["default", "acceptEdits", "bypass"] {
        let mut settings = translated.settings.clone();
        settings["mode"] = json!(mode);
        // The settings reader turns the entry of `permissions` into the managed restriction.
        settings["managed"] = json!({ "disableBypassPermissionsMode": settings["permissions"]["disableBypassPermissionsMode"] == "disable" });
        let (policy, _) = compile(&settings, &world);
        for (tool, text, wanted) in [
            ("Bash", "npm test", "allow"),
            ("Bash", "mkdir build", "ask"),
            ("Bash", "npm publish", "ask"),
            ("Edit", "src/a.rs", "ask"),
            ("MultiEdit", "src/a.rs", "ask"),
        ] {
            let judgement = world.judge(&policy, tool, &input_of(tool, text));
            assert_eq!(word(&judgement), wanted, "{mode}: {tool} {text}");
        }
    }
}

#[test]
fn regular_expressions_become_equivalent_patterns() {
    let regex = |decision: &str, expression: &str| json!([{ "toolName": "run_shell_command", "commandRegex": expression, "decision": decision, "priority": 1 }]);
    check(
        &regex("allow", "git (commit|push)"),
        &[("Bash", "git commit -m x", "allow"), ("Bash", "git pushy", "allow"), ("Bash", "git pull", "ask")],
    );
    check(&regex("allow", "npm test$"), &[("Bash", "npm test", "allow"), ("Bash", "npm test x", "ask")]);
    check(&regex("deny", "rm\\s+-rf?"), &[("Bash", "rm -rf x", "deny"), ("Bash", "true; rm -r x", "deny")]);
    // Without an equivalent pattern a denied expression is searched anywhere, and an allowed one is omitted.
    let odd = check(&regex("deny", "curl [^ ]+ \\| sh"), &[("Bash", "true; curl x | sh", "deny")]);
    assert!(odd.notes[0].message.contains("anywhere"), "{:?}", odd.notes);
    let odd = check(&regex("allow", "make [a-z]+"), &[("Bash", "make all", "ask")]);
    assert!(odd.notes[0].message.starts_with("omitted"), "{:?}", odd.notes);
    check(&regex("allow", "^git"), &[("Bash", "git push", "ask")]);
}

#[test]
fn a_rule_that_cannot_be_translated_refuses_the_file() {
    for (given, says) in [
        (
            json!([{ "toolName": "run_shell_command", "commandRegex": "(?!git)", "decision": "deny", "priority": 1 }]),
            "lost",
        ),
        (
            json!([{ "toolName": "read_file", "argsPattern": "secret", "decision": "deny", "priority": 1 }]),
            "lost",
        ),
        (
            json!([{ "mcpName": "x", "argsPattern": "y", "decision": "deny", "priority": 1 }]),
            "cannot be translated",
        ),
        (
            json!([{ "toolName": "read_file", "commandPrefix": "x", "decision": "deny", "priority": 1 }]),
            "only",
        ),
        (json!([{ "toolName": "read_file", "decision": "deny", "priority": 1000 }]), "999"),
        (json!([{ "decision": "deny", "priority": 1 }]), "missing"),
    ] {
        let note = translate(&rules(&given)).unwrap_err();
        assert!(note.message.contains(says), "{given}: {}", note.message);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    /// The settings are at least as strict about a plain command as the rule of highest priority was.
    #[test]
    fn an_import_is_never_looser(
        picked in proptest::collection::vec((0usize..6, 0usize..3, 0u16..6), 1..7),
        command in proptest::sample::select(&["npm test", "npm run x", "npm", "git push", "git", "make all"][..]),
    ) {
        let prefixes = ["npm", "npm test", "npm run", "git", "git push", ""];
        let decisions = ["allow", "ask_user", "deny"];
        let given: Vec<Value> = picked.iter().map(|(prefix, decision, priority)| {
            let mut rule = shell(decisions[*decision], *priority, prefixes[*prefix]);
            if prefixes[*prefix].is_empty() {
                rule.as_object_mut().unwrap().remove("commandPrefix");
            }
            rule
        }).collect();
        let mut order: Vec<&Value> = given.iter().collect();
        order.sort_by_key(|rule| std::cmp::Reverse(rule["priority"].as_u64()));
        let fits = |rule: &&&Value| match rule.get("commandPrefix").and_then(Value::as_str) {
            None => true,
            Some(prefix) => command == prefix || command.starts_with(&format!("{prefix} ")),
        };
        let before = order.iter().find(fits).map_or("ask_user", |rule| rule["decision"].as_str().unwrap());
        let before = decisions.iter().position(|decision| *decision == before).unwrap();
        let world = FakeWorkspace::new("/ws");
        let (policy, _) = compile(&translate(&rules(&json!(given))).unwrap().settings, &world);
        let after = word(&world.judge(&policy, "Bash", &input_of("Bash", command)));
        let after = ["allow", "ask", "deny"].iter().position(|word| *word == after).unwrap();
        proptest::prop_assert!(after >= before, "{:?}", given);
    }
}
