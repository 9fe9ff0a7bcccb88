//! The explanation of a judgement: its steps, the verdict about each command, the question, the suggested change.

use super::fake_workspace::{FakeWorkspace, Node, abs, action, compile, identity, input_of, judge, word};
use serde_json::{Map, json};
use toolgate_policy::{
    HookOpinion, IntentSurvey, Judgement, Layer, LayerRules, PathFacts, PolicyRequest, RawPolicy, RawRule,
    RuleAction,
};
use toolgate_proto::{ApprovalQuestion, Code, Effect, Intent, SourceId, ToolIdentity, ToolName, Verdict};

fn question(judgement: Judgement) -> ApprovalQuestion {
    match judgement.verdict {
        Verdict::Ask(question) => question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rule_is_named_with_its_layer_file_and_line() {
    let mut rules = LayerRules::new(Layer::Local, abs("/ws"));
    rules.file = Some(".claude/settings.local.json".to_owned());
    rules.deny.push(RawRule::new("Bash(rm *)").with_line(7));
    let (policy, problems) = RawPolicy::default().with_layers(vec![rules]).compile();
    assert!(problems.is_empty());
    let judgement = FakeWorkspace::new("/ws").judge(&policy, "Bash", &json!({ "command": "ls && rm x" }));
    assert_eq!(
        judgement.verdict.reason().to_string(),
        "running `rm x` is denied by a rule (deny rule `Bash(rm *)` from local, .claude/settings.local.json:7)"
    );
    let steps: Vec<String> =
        judgement.steps.iter().map(|step| format!("{}: {}", step.looked_at, step.found)).collect();
    assert_eq!(steps, ["rules: all are valid", "deny rules: running `rm x` is denied by a rule"]);
    let parts: Vec<(String, RuleAction)> =
        judgement.parts.iter().map(|part| (part.text.clone(), part.action)).collect();
    assert_eq!(parts, [("ls".to_owned(), RuleAction::Allow), ("rm x".to_owned(), RuleAction::Deny)]);
    assert_eq!(judgement.parts[1].rule.as_ref().unwrap().line, Some(7));
    assert_eq!(
        judgement.flip.as_deref(),
        Some(
            "remove or narrow the deny rule `Bash(rm *)` from local, .claude/settings.local.json:7; and add the allow rule `Bash(rm x)`"
        )
    );
}

#[test]
fn the_judgement_of_an_allowed_call_lists_every_check() {
    let judgement = judge(&json!({ "allow": ["Bash(npm run *)"] }), "Bash", "npm run lint");
    let steps: Vec<String> = judgement.steps.iter().map(|step| step.looked_at.to_string()).collect();
    assert_eq!(
        steps,
        [
            "rules",
            "deny rules",
            "mode",
            "hooks",
            "policy book",
            "protected paths",
            "dangers",
            "ask rules",
            "risks",
            "allow rules"
        ]
    );
    let last = judgement.steps.last().unwrap();
    assert_eq!(last.action, Some(RuleAction::Allow));
    assert_eq!(last.rule.as_ref().unwrap().text, "Bash(npm run *)");
    assert_eq!(judgement.flip, None);
}

#[test]
fn a_judgement_names_the_change_that_would_allow_the_call() {
    for (settings, tool, text, flip) in [
        (json!({}), "Bash", "npm install vite", "add the allow rule `Bash(npm install vite)`"),
        (
            json!({}),
            "Bash",
            "npm test && npm install vite",
            "add the allow rules `Bash(npm test)`, `Bash(npm install vite)`",
        ),
        (json!({}), "Edit", "src/a.rs", "add the allow rule `Edit(//ws/src/a.rs)`"),
        (json!({}), "Read", "/srv/x(1).txt", r"add the allow rule `Read(//srv/x\(1\).txt)`"),
        (
            json!({}),
            "WebFetch",
            "https://docs.example.com/x",
            "add the allow rule `WebFetch(domain:docs.example.com)`",
        ),
        (json!({}), "mcp__gh__get", "{}", "add the allow rule `mcp__gh__get`"),
        (json!({}), "Agent", "Explore", "add the allow rule `Agent(Explore)`"),
        (json!({ "mode": "dontAsk" }), "Agent", "Explore", "add the allow rule `Agent(Explore)`"),
        (
            json!({ "ask": ["WebSearch"] }),
            "WebSearch",
            "x",
            "remove or narrow the ask rule `WebSearch` from project; and add the allow rule `WebSearch`",
        ),
        (
            json!({ "deny": ["Bash("] }),
            "WebSearch",
            "x",
            "fix the deny rule `Bash(` from project; and add the allow rule `WebSearch`",
        ),
        (json!({ "mode": "deny" }), "Read", "a", "use another mode than deny"),
    ] {
        let judgement = judge(&settings, tool, text);
        assert_eq!(judgement.flip.as_deref(), Some(flip), "{tool} {text}");
    }
}

#[test]
fn broad_rules_are_never_suggested() {
    for command in [
        "bash x.sh",
        "python3 x.py",
        "git push --force",
        "sudo ls",
        "rm -r x",
        "npx thing",
        "git -C x log",
        "docker run x y",
    ] {
        let question = question(judge(&json!({}), "Bash", command));
        for suggestion in &question.suggestions {
            assert!(!suggestion.rule.contains('*'), "{command}: {}", suggestion.rule);
            assert_eq!(suggestion.wider, None, "{command}");
        }
    }
}

#[test]
fn a_wider_rule_is_offered_beside_the_exact_one() {
    for (command, exact, wider) in [
        ("npm run build", "Bash(npm run build)", Some("Bash(npm run *)")),
        ("pnpm run test -- --watch", "Bash(pnpm run test -- --watch)", Some("Bash(pnpm run *)")),
        ("cargo test -p x", "Bash(cargo test -p x)", Some("Bash(cargo test *)")),
        ("cargo run x", "Bash(cargo run x)", None),
        ("npm test", "Bash(npm test)", None),
        ("./x.sh a", "Bash(./x.sh a)", None),
    ] {
        let question = question(judge(&json!({}), "Bash", command));
        let [suggestion] = question.suggestions.as_slice() else { panic!("{command}: {question:?}") };
        assert_eq!((suggestion.rule.as_str(), suggestion.wider.as_deref()), (exact, wider));
    }
}

#[test]
fn a_question_shows_the_target_of_a_symlink() {
    let world = FakeWorkspace::new("/ws")
        .with("/ws/README.md", Node::Link("/home/u/.ssh/authorized_keys".to_owned()));
    let (policy, _) = compile(&json!({ "mode": "acceptEdits" }), &world);
    let question = question(world.judge(&policy, "Write", &json!({ "file_path": "README.md" })));
    assert_eq!(question.locations, ["/ws/README.md → /home/u/.ssh/authorized_keys"]);
    assert!(question.explicit && question.suggestions.is_empty());
    assert_eq!(question.no_rule_reason.as_deref(), Some("such a call is asked about every time"));
    let kinds: Vec<&str> = question.warnings.iter().map(|warning| warning.kind.as_str()).collect();
    assert!(kinds.contains(&"protected_path"), "{kinds:?}");
    assert_eq!(question.reason.code, Some(Code::ProtectedPath));
}

#[test]
fn a_question_about_a_command_shows_its_effects() {
    let question = question(judge(&json!({}), "Bash", "cp a.txt /srv/b.txt"));
    let effects: Vec<String> = question.effects.iter().map(ToString::to_string).collect();
    assert!(effects.contains(&"read /ws/a.txt".to_owned()), "{effects:?}");
    assert!(effects.contains(&"write /srv/b.txt".to_owned()), "{effects:?}");
    assert!(question.locations.contains(&"/srv/b.txt".to_owned()));
}

#[test]
fn hooks_can_only_allow_what_asks_by_default() {
    let world = FakeWorkspace::new("/ws");
    let hook = |action| [HookOpinion::new("h", action).with_reason("because".to_owned())];
    for (settings, tool, text, action_of_hook, wanted) in [
        (json!({}), "Edit", "a.rs", RuleAction::Allow, "allow"),
        (json!({ "deny": ["Edit"] }), "Edit", "a.rs", RuleAction::Allow, "deny"),
        (json!({ "ask": ["Edit"] }), "Edit", "a.rs", RuleAction::Allow, "ask"),
        (json!({}), "Edit", ".git/config", RuleAction::Allow, "ask"),
        (json!({ "mode": "plan" }), "Edit", "a.rs", RuleAction::Allow, "ask"),
        (json!({ "mode": "dontAsk" }), "Edit", "a.rs", RuleAction::Allow, "allow"),
        (json!({ "allow": ["Edit"] }), "Edit", "a.rs", RuleAction::Deny, "deny"),
        (json!({ "allow": ["Edit"] }), "Edit", "a.rs", RuleAction::Ask, "ask"),
        (json!({ "mode": "bypass" }), "Edit", "a.rs", RuleAction::Ask, "ask"),
        (json!({ "deny": ["Edit"] }), "Edit", "a.rs", RuleAction::Ask, "deny"),
    ] {
        let (policy, _) = compile(&settings, &world);
        let judgement = world.judge_with(&policy, tool, &input_of(tool, text), &hook(action_of_hook));
        assert_eq!(word(&judgement), wanted, "{settings} {tool} {text} {action_of_hook}");
    }
}

#[test]
fn denied_tools_are_hidden() {
    let world = FakeWorkspace::new("/ws");
    let settings = json!({
        "deny": ["Bash", "mcp__evil", "Task", "Web*", "Read(.env)"],
        "managed": { "disabledTools": ["LSP"] },
        "policy": { "rules": [{ "tool": "Skill", "action": "deny" }] },
    });
    let (policy, _) = compile(&settings, &world);
    for (tool, hidden) in [
        ("Bash", true),
        ("Monitor", true),
        ("mcp__evil__x", true),
        ("mcp__good__x", false),
        ("Agent", true),
        ("WebFetch", true),
        ("WebSearch", true),
        ("LSP", true),
        ("Skill", true),
        ("Read", false),
    ] {
        assert_eq!(policy.hides_tool(&identity(tool)), hidden, "{tool}");
    }
}

#[test]
fn an_agent_gets_no_looser_mode_than_the_session() {
    for (settings, mode, wanted) in [
        (json!({ "allow": ["Agent"] }), "default", "allow"),
        (json!({ "allow": ["Agent"] }), "bypassPermissions", "ask"),
        (json!({ "allow": ["Agent"] }), "acceptEdits", "ask"),
        (json!({ "allow": ["Agent"], "mode": "bypass" }), "bypassPermissions", "allow"),
        (json!({ "allow": ["Agent"], "mode": "plan" }), "default", "ask"),
        (
            json!({ "allow": ["Agent"], "managed": { "disableBypassPermissionsMode": true } }),
            "bypassPermissions",
            "deny",
        ),
    ] {
        let call = json!({ "subagent_type": "Explore", "mode": mode }).to_string();
        assert_eq!(word(&judge(&settings, "Agent", &call)), wanted, "{settings} {mode}");
    }
}

#[test]
fn only_built_in_tools_may_declare_that_they_have_no_effects() {
    let world = FakeWorkspace::new("/ws");
    let (policy, _) = compile(&json!({}), &world);
    let tool = |source| ToolIdentity::new(ToolName::new("Counter"), source).with_read_only(true);
    let nothing = Intent::new("count", []);
    let state = Intent::new("count", [Effect::State { name: "mode".to_owned() }]);
    let judge = |tool: &ToolIdentity, intent: &Intent| {
        action(&world.judge_intent(&policy, tool, &Map::new(), intent, &[]))
    };
    assert_eq!(judge(&tool(SourceId::Builtin), &nothing), RuleAction::Allow);
    // The embedding program is as trusted as toolgate; what plugins, skills and servers declare is not.
    assert_eq!(judge(&tool(SourceId::Sdk), &nothing), RuleAction::Allow);
    for source in [
        SourceId::Plugin { plugin: "p".to_owned() },
        SourceId::Skill { skill: "s".to_owned() },
        SourceId::Mcp { server: "a".to_owned(), tool: "b".to_owned() },
    ] {
        assert_eq!(judge(&tool(source), &nothing), RuleAction::Ask);
    }
    assert_eq!(judge(&tool(SourceId::Sdk), &Intent::new("?", [Effect::Opaque])), RuleAction::Ask);
    assert_eq!(judge(&tool(SourceId::Sdk), &state), RuleAction::Ask);
    assert_eq!(judge(&tool(SourceId::Builtin), &state), RuleAction::Ask);
}

#[test]
fn unsurveyed_commands_and_unresolved_paths_are_never_allowed() {
    let world = FakeWorkspace::new("/ws");
    let (policy, _) = compile(&json!({ "allow": ["Read", "Edit", "Bash"], "mode": "bypass" }), &world);
    let (survey, facts) = (IntentSurvey::default(), PathFacts::none());
    for (tool, text) in [("Read", "src/a.rs"), ("Edit", "src/a.rs"), ("Bash", "cat src/a.rs")] {
        let (tool, input) = (identity(tool), input_of(tool, text));
        let input = input.as_object().unwrap();
        let intent = world.intent(&tool, input);
        let workspace = &world.workspace;
        let judgement = policy.decide(&PolicyRequest {
            tool: &tool,
            input,
            intent: &intent,
            survey: &survey,
            workspace,
            facts: &facts,
            opinions: &[],
        });
        assert_eq!(word(&judgement), "ask", "{text}");
    }
}

#[test]
fn names_that_a_copy_brings_along_are_judged() {
    let world = FakeWorkspace::new("/ws")
        .with("/ws/deep", Node::Directory)
        .with("/ws/evil/lefthook.yml", Node::Shared)
        .with("/ws/good/a.txt", Node::Shared)
        .with("/ws/deep/sub", Node::Directory)
        .with("/ws/deep/sub/.envrc", Node::Shared)
        .with("/ws/deep/plain", Node::Directory)
        .with("/ws/deep/plain/a", Node::Shared);
    let (policy, _) = compile(&json!({ "mode": "acceptEdits" }), &world);
    for (line, is_allowed) in [
        ("cp -b -S k.yml a lefthoo", false),
        ("mv -b -S k.yml a lefthoo", false),
        ("mv -bSc a .envr", false),
        ("cp --backup --suffix=k.yml a lefthoo", false),
        ("cp -b -S \"$x\" a b", false),
        ("cp -S .bak a b", true),
        ("cp evil/* .", false),
        ("cp evil/l* .", false),
        ("cp good/* .", true),
        ("cp -r deep/sub x", false),
        ("mv deep/sub x", false),
        ("cp -r deep x", false),
        ("cp -r deep/plain x", true),
        ("mv deep/plain x", true),
        ("cp a b", true),
    ] {
        let judgement = world.judge(&policy, "Bash", &json!({ "command": line }));
        let verdict = &judgement.verdict;
        assert_eq!(matches!(verdict, Verdict::Allow { .. }), is_allowed, "{line}: {verdict:?}");
    }
}
