//! Problems of rules and policy books, and how layers, managed settings and the book limit each other.

use super::fake_workspace::{FakeWorkspace, compile, input_of, judge, raw_policy, word};
use serde_json::json;
use toolgate_policy::{Policy, ProblemSeverity, UnmatchableRules};

#[test]
fn an_untrusted_project_can_only_tighten() {
    let mut raw =
        raw_policy(&json!({ "allow": ["Bash(make *)"], "deny": ["Bash(rm *)"] }), &FakeWorkspace::new("/ws"));
    raw.layers[0].trusted = false;
    let (policy, problems) = raw.compile();
    assert_eq!(problems.iter().map(|problem| problem.weight).collect::<Vec<_>>(), [ProblemSeverity::Note]);
    let world = FakeWorkspace::new("/ws");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "make all" }))), "ask");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "rm x" }))), "deny");
}

#[test]
fn a_disabled_mode_bypass_cannot_be_enabled() {
    let world = FakeWorkspace::new("/ws");
    let settings = json!({ "mode": "bypass", "managed": { "disableBypassPermissionsMode": true } });
    let (policy, problems) = compile(&settings, &world);
    assert_eq!(policy.mode().as_str(), "default");
    assert_eq!(problems.len(), 1);
    assert_eq!(policy.with_mode(toolgate_proto::Mode::Bypass).mode().as_str(), "default");
    assert_eq!(policy.with_mode(toolgate_proto::Mode::Plan).mode().as_str(), "plan");
    assert!(policy.managed_restrictions().disable_bypass_permissions_mode);
}

#[test]
fn a_required_plan_mode_cannot_be_replaced() {
    let world = FakeWorkspace::new("/ws");
    let settings = json!({ "mode": "plan", "managed": { "requirePlanMode": true } });
    let (policy, problems) = compile(&settings, &world);
    assert!(problems.is_empty());
    for mode in ["default", "acceptEdits", "dontAsk", "bypass", "plan"] {
        assert_eq!(policy.with_mode(mode.parse().unwrap()).mode().as_str(), "plan", "{mode}");
    }
    assert_eq!(policy.with_mode(toolgate_proto::Mode::Deny).mode().as_str(), "deny");
}

#[test]
fn shadowed_and_repeated_rules_are_reported() {
    let world = FakeWorkspace::new("/ws");
    let settings = json!({
        "deny": ["Bash(rm *)", "WebFetch", "Edit(a)"],
        "ask": ["Bash(rm *)"],
        "allow": ["Bash(rm *)", "WebFetch(domain:x.test)", "Read(a)", "Read(a)", "Edit(b)"],
    });
    let (_, problems) = compile(&settings, &world);
    let found: Vec<String> = problems
        .iter()
        .map(|problem| {
            format!("{:?} {} {}: {}", problem.weight, problem.rule.action, problem.rule.text, problem.message)
        })
        .collect();
    let shadowed =
        |text: &str| format!("the rule has no effect: the deny rule `{text}` from project takes precedence");
    assert_eq!(
        found,
        [
            "Note allow Bash(rm *): the program can run any code or change any file".to_owned(),
            format!("Warning ask Bash(rm *): {}", shadowed("Bash(rm *)")),
            format!("Warning allow Bash(rm *): {}", shadowed("Bash(rm *)")),
            format!("Warning allow WebFetch(domain:x.test): {}", shadowed("WebFetch")),
            "Note allow Read(a): the rule is listed twice".to_owned(),
        ]
    );
}

#[test]
fn an_invalid_policy_book_denies_every_call() {
    let world = FakeWorkspace::new("/ws");
    for (book, weight) in [
        (json!({ "rules": [{ "tool": "x" }] }), Some(ProblemSeverity::Fatal)),
        (json!({ "rules": [{ "tool": "x", "action": "refuse" }] }), Some(ProblemSeverity::Fatal)),
        (json!({ "rules": [], "extra": 1 }), Some(ProblemSeverity::Fatal)),
        (json!([]), Some(ProblemSeverity::Fatal)),
        (json!({ "rules": [["x", "allow"]] }), Some(ProblemSeverity::Fatal)),
        (
            json!({ "rules": [{ "tool": "x", "action": "deny", "conditions": [{ "param": "p", "operator": "matches", "value": "(" }] }] }),
            Some(ProblemSeverity::Fatal),
        ),
        (
            json!({ "rules": [{ "tool": "x", "action": "ask", "conditions": [{ "param": "p", "operator": "matches", "value": "(x{1000}){1000}" }] }] }),
            Some(ProblemSeverity::Fatal),
        ),
        (
            json!({ "rules": [{ "tool": "x", "action": "allow", "conditions": [{ "param": "p", "operator": "matches", "value": "(" }] }] }),
            Some(ProblemSeverity::Warning),
        ),
        (json!({ "defaultAction": "allow" }), Some(ProblemSeverity::Warning)),
        (json!({ "defaultAction": "ask" }), None),
    ] {
        let (policy, problems) = compile(&json!({ "policy": book }), &world);
        assert_eq!(problems.iter().map(|problem| problem.weight).max(), weight, "{book}");
        let denied = word(&world.judge(&policy, "Read", &json!({ "path": "a" }))) == "deny";
        assert_eq!(denied, weight == Some(ProblemSeverity::Fatal), "{book}");
    }
}

#[test]
fn the_stricter_of_permissions_and_policy_book_wins() {
    let rule = |action: &str| json!({ "rules": [{ "tool": "Edit", "action": action }] });
    for (list, book, wanted) in [
        ("allow", "allow", "allow"),
        ("allow", "ask", "ask"),
        ("allow", "deny", "deny"),
        ("ask", "allow", "ask"),
        ("ask", "ask", "ask"),
        ("ask", "deny", "deny"),
        ("deny", "allow", "deny"),
        ("deny", "ask", "deny"),
        ("deny", "deny", "deny"),
        ("none", "allow", "allow"),
        ("none", "ask", "ask"),
        ("none", "deny", "deny"),
    ] {
        let settings = json!({ list: ["Edit(src/**)"], "policy": rule(book) });
        assert_eq!(word(&judge(&settings, "Edit", "src/a.rs")), wanted, "{list} {book}");
    }
    let settings = json!({ "allow": ["Edit"], "policy": { "defaultAction": "ask" } });
    assert_eq!(word(&judge(&settings, "Edit", "src/a.rs")), "ask");
    let policy: Policy = compile(&json!({ "policy": rule("allow") }), &FakeWorkspace::new("/ws")).0;
    assert_eq!(
        word(&FakeWorkspace::new("/ws").judge(&policy, "Edit", &json!({ "path": ".git/config" }))),
        "ask"
    );
}

/// A deny or ask rule that does not match what was written is fatal and says what to write; an allow rule is not.
#[test]
fn rules_that_match_nothing_their_author_meant_are_reported() {
    let world = FakeWorkspace::new("/ws");
    for (rule, fix) in [
        ("Bash(time make *)", "`Bash(make *)`"),
        ("Bash(! make)", "`Bash(make)`"),
        ("Bash(for *)", "for each command"),
        ("Bash(if *)", "for each command"),
        ("Bash(while *)", "for each command"),
        ("Bash((make))", "`Bash(make)`"),
        ("Bash(rm\u{a0}*)", "`Bash(rm *)`"),
        ("Bash(r\u{200b}m *)", "`Bash(rm *)`"),
        ("Agent(Expl\u{200b}ore)", "`Agent(Explore)`"),
        ("Read(\".env\")", "`Read(.env)`"),
        ("Read('.env')", "`Read(.env)`"),
        ("Read( .env)", "`Read(.env)`"),
        ("Edit($PWD/.env)", "`Edit(./.env)`"),
        ("Read($CONFIG/.env)", "write the path itself"),
        ("Read(file:///x/.env)", "`Read(//x/.env)`"),
        ("Read({.env,x})", "`Read(.env)`, `Read(x)`"),
        ("Bash(rm *), Read(.env)", "`Bash(rm *)` and `Read(.env)`"),
        ("Bash(rm *))", "`Bash(rm *)`"),
        ("Bash(rm *)))", "`Bash(rm *)`"),
        ("Bash(*))", "`Bash`"),
        ("Bash(echo \"(\"))", "`Bash(echo \"\\(\")`"),
        ("Bash(rm:*:*)", "`Bash(rm *)`"),
        ("Bash(rm *:*)", "`Bash(rm *)`"),
        ("Read(secret.txt))", "`Read(secret.txt)`"),
        ("Edit(a (1).txt))", "`Edit(a \\(1\\).txt)`"),
        ("WebFetch(domain:x.com))", "`WebFetch(domain:x.com)`"),
        ("Agent(Explore))", "`Agent(Explore)`"),
        ("mcp__a__b(x:1))", "`mcp__a__b(x:1)`"),
    ] {
        for list in ["deny", "ask"] {
            let (_, problems) = compile(&json!({ list: [rule] }), &world);
            let fatal = problems.iter().find(|problem| problem.weight == ProblemSeverity::Fatal);
            let fatal = fatal.unwrap_or_else(|| panic!("{list} {rule}: {problems:?}"));
            assert!(fatal.fix.contains(fix), "{rule}: {}", fatal.fix);
        }
        let (_, problems) = compile(&json!({ "allow": [rule] }), &world);
        assert!(
            problems.iter().all(|problem| problem.weight < ProblemSeverity::Fatal),
            "{rule}: {problems:?}"
        );
    }
}

/// Calls of a tool, each as a line.
fn calls(tool: &str, texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("{tool} {text}")).collect()
}

/// Each row is a deny rule that never matches, the rules that its message advises, and the calls that these deny.
#[test]
fn the_rules_that_a_message_advises_deny_what_was_meant() {
    let world = FakeWorkspace::new("/ws");
    for (rule, advised, denied) in [
        (
            "Edit(src/**, docs/**)",
            &["Edit(src/**)", "Edit(docs/**)"][..],
            calls("Edit", &["src/a.rs", "docs/a.md"]),
        ),
        ("Edit(src/** docs/**)", &["Edit(src/**)", "Edit(docs/**)"], calls("Edit", &["docs/a.md"])),
        ("Edit(src/**; docs/**)", &["Edit(src/**)", "Edit(docs/**)"], calls("Edit", &["docs/a.md"])),
        ("Edit(src/**|docs/**)", &["Edit(src/**)", "Edit(docs/**)"], calls("Edit", &["docs/a.md"])),
        (
            "Read(.env, .env.local)",
            &["Read(.env)", "Read(.env.local)"],
            calls("Read", &[".env", ".env.local"]),
        ),
        ("Read(.env | .env.local)", &["Read(.env)", "Read(.env.local)"], calls("Read", &[".env.local"])),
        ("Read(.env .env.local)", &["Read(.env)", "Read(.env.local)"], calls("Read", &[".env.local"])),
        ("Grep(a.txt,b.txt)", &["Grep(a.txt)", "Grep(b.txt)"], calls("Read", &["a.txt", "b.txt"])),
        ("Agent(Explore, Plan)", &["Agent(Explore)", "Agent(Plan)"], calls("Agent", &["Explore", "Plan"])),
        ("Task(Explore|Plan)", &["Task(Explore)", "Task(Plan)"], calls("Agent", &["Plan"])),
        ("Agent(\"Explore\")", &["Agent(Explore)"], calls("Agent", &["Explore"])),
        ("Agent(Expl*)", &["Agent"], calls("Agent", &["Explore"])),
        ("Agent(agent_type:Explore)", &["Agent(Explore)"], calls("Agent", &["Explore"])),
        ("Agent(subagentType:Explore)", &["Agent(Explore)"], calls("Agent", &["Explore"])),
        ("Agent(subagent_type=Explore)", &["Agent(Explore)"], calls("Agent", &["Explore"])),
        (
            "Agent(model=big)",
            &["Agent(model:big)"],
            calls("Agent", &[r#"{"subagent_type": "Explore", "model": "big"}"#]),
        ),
        (
            "Agent(model: big)",
            &["Agent(model:big)"],
            calls("Agent", &[r#"{"subagent_type": "Explore", "model": "big"}"#]),
        ),
        ("Skill(review, wipe)", &["Skill(review)", "Skill(wipe)"], calls("Skill", &["review", "wipe all"])),
        ("Skill(skill=wipe)", &["Skill(wipe)"], calls("Skill", &["wipe"])),
        ("Skill('wipe')", &["Skill(wipe)"], calls("Skill", &["wipe"])),
        (
            "Bash(run_in_background:True)",
            &["Bash(run_in_background:true)"],
            calls("Bash", &[r#"{"command": "ls", "run_in_background": true}"#]),
        ),
        (
            "Bash(run_in_background=true)",
            &["Bash(run_in_background:true)"],
            calls("Bash", &[r#"{"command": "ls", "run_in_background": true}"#]),
        ),
        (
            "Bash(run_in_background: yes)",
            &["Bash(run_in_background:true)"],
            calls("Bash", &[r#"{"command": "ls", "run_in_background": true}"#]),
        ),
        (
            "Edit(replace_all=True)",
            &["Edit(replace_all:true)"],
            calls("Edit", &[r#"{"file_path": "a", "replace_all": true}"#]),
        ),
        (
            "WebFetch(prompt=x*)",
            &["WebFetch(prompt:x*)"],
            calls("WebFetch", &[r#"{"url": "https://a.example/", "prompt": "xy"}"#]),
        ),
    ] {
        for list in ["deny", "ask"] {
            let (_, problems) = compile(&json!({ list: [rule] }), &world);
            let [problem] = problems.as_slice() else { panic!("{list} {rule}: {problems:?}") };
            assert_eq!(problem.weight, ProblemSeverity::Fatal, "{problem}");
            for rule in advised {
                assert!(problem.fix.contains(&format!("`{rule}`")), "{problem}");
            }
            let settings = json!({ list: advised });
            let (policy, problems) = compile(&settings, &world);
            assert!(problems.is_empty(), "{advised:?}: {problems:?}");
            for call in &denied {
                let (tool, text) = call.split_once(' ').unwrap();
                let judged = world.judge(&policy, tool, &input_of(tool, text));
                assert_eq!(word(&judged), list, "{advised:?} {call}");
            }
        }
        // As the other rules that never match, it can be made a warning; an allow rule is only ignored.
        let mut raw = raw_policy(&json!({ "deny": [rule] }), &world);
        raw.unmatchable_rules = UnmatchableRules::Warn;
        assert_eq!(raw.compile().1[0].weight, ProblemSeverity::Warning, "{rule}");
        let (_, problems) = compile(&json!({ "allow": [rule] }), &world);
        assert!(problems.iter().all(|problem| problem.weight < ProblemSeverity::Fatal), "{rule}");
    }
}

/// Names, types and values that only look like those of the rules above.
#[test]
fn neighbours_of_rules_that_never_match_are_valid_and_match() {
    let world = FakeWorkspace::new("/ws");
    for (rule, call) in [
        ("Read(My Documents/**)", "Read My Documents/a"),
        ("Read(docs/My Documents/**)", "Read docs/My Documents/a"),
        ("Read(Smith, John/**)", "Read Smith, John/a"),
        ("Read(a,b.txt)", "Read a,b.txt"),
        ("Read(a.txt[ ]b.txt)", "Read a.txt b.txt"),
        ("Read(a.txt[,]b.txt)", "Read a.txt,b.txt"),
        ("Read(a.txt[|]b.txt)", "Read a.txt|b.txt"),
        ("Read(limit=5.txt)", "Read limit=5.txt"),
        ("Read(type=a/**)", "Read type=a/x"),
        ("Agent(Explore)", "Agent Explore"),
        ("Agent(plugin:reviewer)", "Agent plugin:reviewer"),
        ("Agent(subagent_type:Explore)", "Agent Explore"),
        ("Task(subagent_type:Explore)", "Agent Explore"),
        ("Agent(model:b*)", r#"Agent {"subagent_type": "x", "model": "big"}"#),
        ("Skill(skill:wipe)", "Skill wipe"),
        ("Skill(skill:wipe)", "Skill wipe all"),
        ("Skill(name:review)", "Skill review"),
        ("Skill(name:review *)", "Skill review 12"),
        ("Skill(/wipe)", "Skill wipe"),
        ("Skill(/wipe *)", "Skill wipe all"),
        ("Skill(plugin:wipe)", "Skill plugin:wipe"),
        ("Skill(review a, b)", "Skill review a, b"),
        ("Bash(run_in_background:*)", r#"Bash {"command": "ls", "run_in_background": false}"#),
        ("Bash(timeout=5 make *)", ""),
        ("Bash(x=1)", ""),
    ] {
        let (policy, problems) = compile(&json!({ "deny": [rule] }), &world);
        assert!(
            problems.iter().all(|problem| problem.weight < ProblemSeverity::Fatal),
            "{rule}: {problems:?}"
        );
        let Some((tool, text)) = call.split_once(' ') else { continue };
        let judged = world.judge(&policy, tool, &input_of(tool, text));
        assert_eq!(word(&judged), "deny", "{rule} {call}");
    }
}

/// A plugin may be called `name`: the grant for its skill is none for another.
#[test]
fn an_allow_rule_with_the_field_of_a_skill_grants_nothing() {
    for (rule, tool, text) in
        [("Skill(name:review)", "Skill", "review"), ("Agent(subagent_type:Explore)", "Agent", "Explore")]
    {
        let (_, problems) = compile(&json!({ "allow": [rule] }), &FakeWorkspace::new("/ws"));
        let [problem] = problems.as_slice() else { panic!("{rule}: {problems:?}") };
        assert_eq!(problem.weight, ProblemSeverity::Warning);
        assert_eq!(problem.fix, format!("did you mean `{tool}({text})`?"));
        assert_eq!(word(&judge(&json!({ "allow": [rule] }), tool, text)), "ask");
        assert_eq!(word(&judge(&json!({ "allow": [format!("{tool}({text})")] }), tool, text)), "allow");
    }
    assert_eq!(word(&judge(&json!({ "allow": ["Skill(/review)"] }), "Skill", "review")), "allow");
}

#[test]
fn a_deny_rule_with_quotes_matches_the_words_that_bash_reads() {
    for (rule, line) in [
        ("Bash(\"rm\" *)", "rm x"),
        ("Bash(\"rm\" *)", "'rm' x"),
        ("Bash(rm \"a b\")", "rm 'a b'"),
        ("Bash(rm \"a b\")", "rm a\\ b"),
        ("Bash(rm \"a b\")", "rm \"a b\""),
    ] {
        let settings = json!({ "deny": [rule], "allow": ["Bash"] });
        assert_eq!(word(&judge(&settings, "Bash", line)), "deny", "{rule} {line}");
    }
}

/// Characters that a file system may ignore are ignored in path rules, so these need no report.
#[test]
fn a_deny_rule_for_a_path_with_invisible_characters_matches() {
    for (rule, path) in [("Read(.e\u{200b}nv)", ".env"), ("Read(my\u{a0}keys)", "my keys")] {
        assert_eq!(word(&judge(&json!({ "deny": [rule] }), "Read", path)), "deny", "{rule}");
    }
}

/// Parentheses that commands, names of files and smileys in quotes have are no mistake.
#[test]
fn rules_with_parentheses_of_their_own_are_valid() {
    let world = FakeWorkspace::new("/ws");
    for rule in [
        "Bash(awk '{print f(x)}')",
        "Bash(awk '{print f(x)}' *)",
        "Bash(sed 's/)//')",
        "Bash(sed 's/)//)')",
        "Bash(echo \":)\")",
        "Bash(echo :\\))",
        "Bash(echo $(date))",
        "Bash(find . -name \"*.js\":*)",
        "Read(notes (1).txt)",
        "Read(it's (1))",
        "Read(a\\))",
    ] {
        let (_, problems) = compile(&json!({ "deny": [rule] }), &world);
        assert!(
            problems.iter().all(|problem| problem.weight < ProblemSeverity::Fatal),
            "{rule}: {problems:?}"
        );
    }
}

/// A host that no name server knows is never matched.
#[test]
fn a_host_has_only_characters_of_hosts() {
    for host in ["x.com,y.com", "*.x.com;", "x.com)", "x(1).com"] {
        let rule = format!("WebFetch(domain:{host})").replace("com))", "com\\))");
        let (_, problems) = compile(&json!({ "deny": [rule] }), &FakeWorkspace::new("/ws"));
        assert!(problems.iter().any(|problem| problem.weight == ProblemSeverity::Fatal), "{host}");
    }
}

/// The fix in the problem of an entry of `preApproval` is an entry without a problem.
#[test]
fn following_the_fix_of_a_host_list_leaves_no_problem() {
    let world = FakeWorkspace::new("/ws");
    for list in ["allowedDomains", "blockedDomains", "allowPrivate"] {
        for entry in
            ["https://evil.example", "evil.example/a", "evil.example:99999", "", "domain:evil.example", "a b"]
        {
            let (_, problems) = compile(&json!({ "preApproval": { list: [entry] } }), &world);
            let [problem] = problems.as_slice() else { panic!("{list} {entry}: {problems:?}") };
            assert!(problem.message.contains(&format!("`preApproval.{list}`")), "{problem}");
            let followed = problem.fix.split('`').nth(1).unwrap();
            assert!(!followed.contains("WebFetch"), "{problem}");
            let (_, problems) = compile(&json!({ "preApproval": { list: [followed] } }), &world);
            assert!(problems.is_empty(), "{list} {entry}: {problems:?}");
        }
    }
}

#[test]
fn the_problem_of_a_regular_expression_says_what_is_wrong() {
    for (expression, fix) in [
        ("(rm|dd", "add the missing `)`"),
        ("rm)", "add the missing `(`"),
        ("[a-z", "add the missing `]`"),
        ("*rm", "write what is repeated before it"),
        ("rm(?!x)", "without look-around"),
        ("\\1(a)", "without backreferences"),
        ("a{2000}{2000}", "shorter or simpler"),
        (&format!("{}a{}", "(".repeat(100), ")".repeat(100)), "fewer parentheses"),
    ] {
        let condition = json!({ "param": "command", "operator": "matches", "value": expression });
        let rule = json!({ "tool": "Bash", "action": "deny", "conditions": [condition] });
        let (_, problems) = compile(&json!({ "policy": { "rules": [rule] } }), &FakeWorkspace::new("/ws"));
        assert_eq!(problems.len(), 1, "{expression}: {problems:?}");
        assert!(problems[0].fix.contains(fix), "{expression}: {}", problems[0]);
    }
}
