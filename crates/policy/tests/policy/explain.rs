//! What a judgement says besides its verdict: steps, parts, the question, the terms, what would flip it.

use super::world::{Node, World, abs, action, compile, identity, input_of, raw_policy, word};
use serde_json::{Map, Value, json};
use toolgate_policy::{
    HookOpinion, IntentSurvey, Judgement, Layer, LayerRules, PathFacts, Policy, PolicyRequest,
    ProblemSeverity, RawPolicy, RawRule, RuleAction,
};
use toolgate_proto::{
    ApprovalQuestion, Code, CommandRights, Effect, Intent, NetworkAccess, PathScope, RightsLevel, SourceId,
    ToolIdentity, ToolName, Verdict, WriteRight,
};

fn judge(settings: &Value, tool: &str, text: &str) -> Judgement {
    let world = World::new("/ws");
    world.judge(&compile(settings, &world).0, tool, &input_of(tool, text))
}

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
    rules.deny.push(RawRule { text: "Bash(rm *)".to_owned(), line: Some(7) });
    let (policy, problems) = RawPolicy { layers: vec![rules], ..RawPolicy::default() }.compile();
    assert!(problems.is_empty());
    let judgement = World::new("/ws").judge(&policy, "Bash", &json!({ "command": "ls && rm x" }));
    assert_eq!(
        judgement.verdict.reason().to_string(),
        "a rule denies `rm x` (deny rule `Bash(rm *)` from local, .claude/settings.local.json:7)"
    );
    let steps: Vec<String> =
        judgement.steps.iter().map(|step| format!("{}: {}", step.looked_at, step.found)).collect();
    assert_eq!(steps, ["rules: all can be read", "deny rules: a rule denies `rm x`"]);
    let parts: Vec<(String, RuleAction)> =
        judgement.parts.iter().map(|part| (part.text.clone(), part.action)).collect();
    assert_eq!(parts, [("ls".to_owned(), RuleAction::Allow), ("rm x".to_owned(), RuleAction::Deny)]);
    assert_eq!(judgement.parts[1].rule.as_ref().unwrap().line, Some(7));
    assert_eq!(
        judgement.flip.as_deref(),
        Some("remove or narrow the deny rule `Bash(rm *)` from local, .claude/settings.local.json:7")
    );
}

#[test]
fn an_allowed_call_says_every_step() {
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
fn what_would_flip_it() {
    for (settings, tool, text, flip) in [
        (json!({}), "Bash", "npm install vite", "add the allow rule `Bash(npm install *)`"),
        (
            json!({}),
            "Bash",
            "npm test && npm install vite",
            "add the allow rules `Bash(npm test)`, `Bash(npm install *)`",
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
            "remove or narrow the ask rule `WebSearch` from project",
        ),
        (json!({ "deny": ["Bash("] }), "WebSearch", "x", "repair the deny rule `Bash(` from project"),
        (json!({ "mode": "deny" }), "Read", "a", "use another mode"),
    ] {
        let judgement = judge(&settings, tool, text);
        assert_eq!(judgement.flip.as_deref(), Some(flip), "{tool} {text}");
    }
    assert_eq!(judge(&json!({}), "Write", ".git/config").flip, None);
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
        }
    }
}

#[test]
fn a_person_sees_where_a_path_leads() {
    let world =
        World::new("/ws").with("/ws/README.md", Node::Link("/home/u/.ssh/authorized_keys".to_owned()));
    let (policy, _) = compile(&json!({ "mode": "acceptEdits" }), &world);
    let question = question(world.judge(&policy, "Write", &json!({ "file_path": "README.md" })));
    assert_eq!(question.locations, ["/ws/README.md → /home/u/.ssh/authorized_keys"]);
    assert!(question.explicit && question.suggestions.is_empty());
    let kinds: Vec<&str> = question.warnings.iter().map(|warning| warning.kind.as_str()).collect();
    assert!(kinds.contains(&"protected_path"), "{kinds:?}");
    assert_eq!(question.reason.code, Code::ProtectedPath);
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
fn hooks_answer_only_what_no_rule_asks() {
    let world = World::new("/ws");
    let hook = |action| [HookOpinion { by: "h".to_owned(), action, reason: Some("because".to_owned()) }];
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
fn leaving_the_sandbox_is_a_question_of_its_own() {
    let world = World::new("/ws");
    let call = json!({ "command": "touch x", "dangerouslyDisableSandbox": true });
    for (settings, wanted) in [
        (json!({ "allow": ["Bash(touch *)"] }), "ask"),
        (json!({ "allow": ["Bash"], "mode": "bypass" }), "ask"),
        (json!({ "allow": ["Bash"], "mode": "dontAsk" }), "deny"),
    ] {
        let (policy, _) = compile(&settings, &world);
        assert_eq!(word(&world.judge(&policy, "Bash", &call)), wanted, "{settings}");
    }
    let raw = RawPolicy { allow_unsandboxed: false, ..RawPolicy::default() };
    assert_eq!(word(&world.judge(&raw.compile().0, "Bash", &call)), "deny");
}

#[test]
fn the_terms_hold_a_command_to_its_bounds() {
    let settings = json!({
        "allow": ["Bash(curl *)", "WebFetch(domain:docs.example.com)"],
        "deny": ["Read(//srv/secret/**)", "Read(~/keys)", "Read(*.pem)"],
    });
    let judgement = judge(&settings, "Bash", "curl https://api.example.com/x");
    let Verdict::Allow(terms) = judgement.verdict else { panic!("{judgement:?}") };
    assert!(!terms.unsandboxed);
    assert_eq!(terms.rights, CommandRights::for_workspace(&[abs("/ws")]));
    assert!(terms.protected.contains(&abs("/ws/.git/hooks")));
    assert!(terms.unreadable.starts_with(&[abs("/srv/secret"), abs("/home/u/keys")]));
    assert!(terms.unreadable.contains(&abs("/home/u/.ssh")));
    assert_eq!(terms.network, NetworkAccess::Hosts(vec!["api.example.com".to_owned()]));
    let judgement = judge(&json!({ "allow": ["Bash(make *)"] }), "Bash", "make all");
    let Verdict::Allow(terms) = judgement.verdict else { panic!("{judgement:?}") };
    assert_eq!(terms.network, NetworkAccess::None);
}

#[test]
fn rights_are_cut_to_the_effects_unless_the_line_was_allowed_as_a_whole() {
    let terms = |settings: &Value, text: &str| {
        let judgement = judge(settings, "Bash", text);
        let Verdict::Allow(terms) = judgement.verdict else { panic!("{text}: {judgement:?}") };
        terms
    };
    let none = json!({});
    let reads = terms(&none, "cat a.txt | timeout 5 sort");
    assert_eq!(reads.rights.level, RightsLevel::ReadOnly);
    assert_eq!((reads.rights.write, reads.network), (Vec::new(), NetworkAccess::None));
    assert_eq!(reads.rights.execute, Some(["cat", "sort", "timeout"].map(str::to_owned).to_vec()));
    assert_eq!(reads.rights.read, Some(vec![abs("/ws")]));

    let edits = json!({ "mode": "acceptEdits" });
    let writes = terms(&edits, "touch src/new.rs && rm -r old").rights;
    let right = |path: &str, scope: PathScope| WriteRight { path: abs(path), scope };
    assert_eq!(writes.level, RightsLevel::NamedWrites);
    assert_eq!(writes.write, [right("/ws/src/new.rs", PathScope::Entry), right("/ws/old", PathScope::Tree)]);

    // A question that a mode answers widens nothing: the rights are those that the other mode grants.
    let bypassed = terms(&json!({ "mode": "bypass" }), "touch src/new.rs && rm -r old").rights;
    assert_eq!(bypassed.level, RightsLevel::NamedWrites);

    // An allowed host opens nothing for a line that only reads.
    let hosts = json!({ "allow": ["WebFetch(domain:docs.example.com)"] });
    assert_eq!(terms(&hosts, "cat a.txt").network, NetworkAccess::None);

    let rule = json!({ "allow": ["Bash(git commit *)", "Bash(python3 *)"] });
    let whole = terms(&rule, "python3 x.py && cat a.txt").rights;
    assert_eq!((whole.level, whole.git_data), (RightsLevel::Workspace, false));
    assert!(whole.execute.is_none() && whole.read.is_none());
    assert!(terms(&rule, "git commit -m x").rights.git_data);
}

#[test]
fn a_command_is_kept_from_what_rules_and_names_keep_back_unless_it_was_named() {
    let world = World::new("/ws");
    let settings = json!({ "deny": ["Read(vault/**)", "Edit(locked/**)"], "allow": ["Read(test.pem)"] });
    let (policy, _) = compile(&settings, &world);
    let rights =
        CommandRights { named: vec![abs("/ws/.env")], ..CommandRights::for_workspace(&[abs("/ws")]) };
    let guard = policy.command_guard(&world.workspace, &rights);
    for (path, hides, protects) in [
        ("/ws/a.rs", false, false),
        ("/ws/.env", false, false),
        ("/ws/sub/.env", true, true),
        ("/ws/id_rsa", true, true),
        ("/ws/test.pem", false, false),
        ("/etc/ssl/certs/ca.pem", false, true),
        ("/home/u/.ssh/id_rsa", true, true),
        ("/ws/node_modules/x/test/server.key", false, false),
        ("/ws/.env.example", false, false),
        ("/ws/vault/x", true, true),
        ("/ws/locked/x", false, true),
        ("/ws/.git/config", false, true),
        ("/ws/.GIT/hooks/x", false, true),
        ("/ws/.git/objects/ab", false, true),
        ("/ws/.git", false, true),
        ("/ws/sub/HEAD", false, true),
        ("/ws/.mcp.json", false, true),
    ] {
        assert_eq!((guard.hides(&abs(path)), guard.protects(&abs(path))), (hides, protects), "{path}");
    }
    let git = CommandRights { git_data: true, ..CommandRights::for_workspace(&[abs("/ws")]) };
    let guard = policy.command_guard(&world.workspace, &git);
    for (path, protects) in [
        ("/ws/.git/objects/ab/cd", false),
        ("/ws/.git/index.lock", false),
        ("/ws/.git/HEAD", false),
        ("/ws/.git/refs/heads/main.lock", false),
        ("/ws/.git/config", true),
        ("/ws/.git/config.lock", true),
        ("/ws/.git/config.worktree", true),
        ("/ws/.git/hooks/post-checkout", true),
        ("/ws/.git/info/attributes", true),
        ("/ws/.git/objects/info/alternates", true),
        ("/ws/.git/modules/x/config", true),
        ("/ws/.git/commondir", true),
        ("/ws/.git", true),
    ] {
        assert_eq!(guard.protects(&abs(path)), protects, "{path}");
    }
}

#[test]
fn where_the_kernel_does_not_enforce_rights_only_plain_lines_pass_as_reading() {
    let world = World::new("/ws");
    let policy = RawPolicy::default().compile().0;
    for (line, wanted) in [
        ("cat a.txt | sort && ls src", "allow"),
        ("for f in a b; do cat $f; done", "ask"),
        ("cat $(ls)", "ask"),
        ("find . -name x | xargs cat", "ask"),
    ] {
        assert_eq!(word(&world.judge(&policy, "Bash", &input_of("Bash", line))), wanted, "{line}");
    }
}

#[test]
fn a_search_shows_nothing_that_rules_keep_back() {
    let world = World::new("/ws");
    let settings = json!({ "deny": ["Read(.env)", "Read(vault/**)"], "ask": ["Read(//ws/notes/**)"] });
    let (policy, _) = compile(&settings, &world);
    let filter = policy.read_filter(&world.workspace);
    for hidden in ["/ws/.env", "/ws/a/.ENV", "/ws/a/vault/x", "/ws/notes/x", "/ws/a/../.env"] {
        assert!(filter.is_hidden(&abs(hidden)), "{hidden}");
    }
    for shown in ["/ws/a.rs", "/ws/vault.md", "/ws/environment"] {
        assert!(!filter.is_hidden(&abs(shown)), "{shown}");
    }
    assert!(filter.is_sensitive(&abs("/ws/x.pem")) && !filter.is_sensitive(&abs("/ws/x.rs")));
    assert_eq!(word(&world.judge(&policy, "Grep", &json!({ "path": "." }))), "allow");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "grep -r x ." }))), "ask");
    // What only its name makes sensitive is withheld by the sandbox, and a search goes on.
    let (plain, _) = compile(&json!({}), &world);
    assert_eq!(word(&world.judge(&plain, "Bash", &json!({ "command": "grep -r x ." }))), "allow");
    let (dotted, _) = compile(&json!({ "deny": ["Read(./.env)", "Read(./vault/**)"] }), &world);
    for (command, wanted) in [
        ("rg x src", "allow"),
        ("rg x", "ask"),
        ("grep -r x src", "allow"),
        ("grep -r x .", "ask"),
        ("cat .env", "deny"),
        ("cat src/.env", "deny"),
    ] {
        assert_eq!(word(&world.judge(&dotted, "Bash", &json!({ "command": command }))), wanted, "{command}");
    }
    let (hidden, _) = compile(&json!({ "deny": ["Read(.env)"] }), &world);
    for (command, wanted) in [
        ("rg x", "allow"),
        ("rg -n x src", "allow"),
        ("rg --hidden x", "ask"),
        ("rg -uu x", "ask"),
        ("grep -r x src", "ask"),
    ] {
        assert_eq!(word(&world.judge(&hidden, "Bash", &json!({ "command": command }))), wanted, "{command}");
    }
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "cat v*" }))), "allow");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "cat v*/*" }))), "ask");
}

#[test]
fn denied_tools_are_hidden() {
    let world = World::new("/ws");
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
fn paths_given_to_other_servers_are_looked_at() {
    let settings = json!({ "allow": ["mcp__fs"], "deny": ["Read(private/**)"], "ask": ["Edit(/conf/**)"] });
    for (call, wanted) in [
        (json!({ "path": "/ws/src/a.rs" }), "allow"),
        (json!({ "path": "/ws/.git/config" }), "ask"),
        (json!({ "files": [{ "path": "x/../.claude/settings.json" }] }), "ask"),
        (json!({ "path": "private/key" }), "deny"),
        (json!({ "path": "~/.bashrc" }), "ask"),
        (json!({ "path": "conf/a.toml" }), "ask"),
        (json!({ "text": "see https://example.com/.git/ for more" }), "allow"),
    ] {
        let world = World::new("/ws");
        let (policy, _) = compile(&settings, &world);
        assert_eq!(word(&world.judge(&policy, "mcp__fs__write", &call)), wanted, "{call}");
    }
}

/// However a server would read it, a `file:` URI is judged as the path it names.
#[test]
fn file_uris_given_to_other_servers_are_judged_as_the_paths_they_name() {
    let settings = json!({ "allow": ["mcp__fs"], "deny": ["Read(private/**)"], "ask": ["Edit(/conf/**)"] });
    let world = World::new("/ws");
    let (policy, _) = compile(&settings, &world);
    let encode =
        |path: &str| path.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>().replace("%2F", "/");
    for (path, wanted) in [
        ("/ws/src/a.rs", "allow"),
        ("/ws/.git/config", "ask"),
        ("/ws/x/../.claude/settings.json", "ask"),
        ("/ws/private/key", "deny"),
        ("/ws/conf/a.toml", "ask"),
    ] {
        let encoded = encode(path);
        for uri in [
            path.to_owned(),
            format!("file://{path}"),
            format!("file:{path}"),
            format!("FILE://{path}"),
            format!("FiLe://localhost{path}"),
            format!("file://127.0.0.1{path}"),
            format!("file://{encoded}"),
            format!("file://{}", encoded.replace('%', "%25")),
            format!("file://{path}?a=b#c"),
            format!(" file://{path}"),
            format!("fi\nle://{path}"),
            format!("file:///{}", path.replace('/', "\\")),
        ] {
            for call in
                [json!({ "uri": uri }), json!({ "files": [{ "uri": uri }] }), json!({ "map": { &uri: 1 } })]
            {
                assert_eq!(word(&world.judge(&policy, "mcp__fs__write", &call)), wanted, "{call}");
            }
        }
    }
}

#[test]
fn links_given_to_other_servers_are_judged_by_where_they_lead() {
    let settings = json!({ "allow": ["mcp__fs"], "deny": ["Read(private/**)"] });
    let world = World::new("/ws")
        .with("/ws/soft", Node::Link("private/key".to_owned()))
        .with("/ws/conf", Node::Link(".git/config".to_owned()))
        .with("/ws/hard", Node::Shared);
    let (policy, _) = compile(&settings, &world);
    for (name, wanted) in [("soft", "deny"), ("conf", "ask"), ("hard", "ask"), ("plain", "allow")] {
        for text in [format!("/ws/{name}"), format!("./{name}"), format!("file:///ws/{name}")] {
            let call = json!({ "path": text });
            assert_eq!(word(&world.judge(&policy, "mcp__fs__read", &call)), wanted, "{call}");
        }
    }
}

#[test]
fn only_built_in_tools_are_believed() {
    let world = World::new("/ws");
    let (policy, _) = compile(&json!({}), &world);
    let tool = |source| ToolIdentity {
        name: ToolName::new("Counter"),
        also: Vec::new(),
        source,
        read_only: true,
        requires_interaction: false,
    };
    let nothing = Intent::none("count");
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
fn what_was_not_surveyed_or_resolved_is_never_allowed() {
    let world = World::new("/ws");
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
fn an_untrusted_project_can_only_tighten() {
    let mut raw =
        raw_policy(&json!({ "allow": ["Bash(make *)"], "deny": ["Bash(rm *)"] }), &World::new("/ws"));
    raw.layers[0].trusted = false;
    let (policy, problems) = raw.compile();
    assert_eq!(problems.iter().map(|problem| problem.weight).collect::<Vec<_>>(), [ProblemSeverity::Note]);
    let world = World::new("/ws");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "make all" }))), "ask");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "rm x" }))), "deny");
}

#[test]
fn locked_bypass_stays_locked() {
    let world = World::new("/ws");
    let settings = json!({ "mode": "bypass", "managed": { "disableBypassPermissionsMode": true } });
    let (policy, problems) = compile(&settings, &world);
    assert_eq!(policy.mode().as_str(), "default");
    assert_eq!(problems.len(), 1);
    assert_eq!(policy.with_mode(toolgate_proto::Mode::Bypass).mode().as_str(), "default");
    assert_eq!(policy.with_mode(toolgate_proto::Mode::Plan).mode().as_str(), "plan");
    assert!(policy.managed_restrictions().disable_bypass_permissions_mode);
}

#[test]
fn idle_and_repeated_rules_are_reported() {
    let world = World::new("/ws");
    let settings = json!({
        "deny": ["Bash(rm *)", "WebFetch", "Edit(a)"],
        "ask": ["Bash(rm *)"],
        "allow": ["Bash(rm *)", "WebFetch(domain:x.test)", "Read(a)", "Read(a)", "Edit(b)"],
    });
    let (_, problems) = compile(&settings, &world);
    let said: Vec<String> = problems
        .iter()
        .map(|problem| {
            format!("{:?} {} {}: {}", problem.weight, problem.rule.action, problem.rule.text, problem.message)
        })
        .collect();
    let idle = "the rule has no effect, because of the deny rule";
    assert_eq!(
        said,
        [
            "Note allow Bash(rm *): the program can run or change anything".to_owned(),
            format!("Warning ask Bash(rm *): {idle} `Bash(rm *)` from project"),
            format!("Warning allow Bash(rm *): {idle} `Bash(rm *)` from project"),
            format!("Warning allow WebFetch(domain:x.test): {idle} `WebFetch` from project"),
            "Note allow Read(a): the rule stands here twice".to_owned(),
        ]
    );
}

#[test]
fn a_book_that_cannot_be_read_denies_everything() {
    let world = World::new("/ws");
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
fn the_stricter_book_wins() {
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
    let policy: Policy = compile(&json!({ "policy": rule("allow") }), &World::new("/ws")).0;
    assert_eq!(word(&World::new("/ws").judge(&policy, "Edit", &json!({ "path": ".git/config" }))), "ask");
}
