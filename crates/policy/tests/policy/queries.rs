//! What other crates ask a policy beside its judgement: modes, skills, written paths, analyses, advice.

use super::fake_workspace::{FakeWorkspace, Node, abs, compile, identity, raw_policy};
use serde_json::{Map, Value, json};
use toolgate_policy::{IntentSurvey, Judgement, Layer, LayerRules, PathFacts, Policy, PolicyRequest};
use toolgate_proto::{Code, Effect, GitUse, Intent, Mode, RiskLevel, SourceId, Verdict, VerdictReason};

const MODES: [Mode; 6] =
    [Mode::Default, Mode::Plan, Mode::AcceptEdits, Mode::DontAsk, Mode::Bypass, Mode::Deny];

fn policy(settings: &Value) -> Policy {
    compile(settings, &FakeWorkspace::new("/ws")).0
}

fn managed(key: &str) -> Policy {
    policy(&json!({ "managed": { key: true } }))
}

/// The intent of a command line, and what the policy finds in it.
fn survey_command(policy: &Policy, command: &str) -> (Intent, IntentSurvey) {
    let world = FakeWorkspace::new("/ws");
    let input: Map<String, Value> = Map::from_iter([("command".to_owned(), json!(command))]);
    let intent = world.intent(&identity("Bash"), &input);
    let survey = policy.survey_call(&input, &intent, &world.workspace);
    (intent, survey)
}

#[test]
fn managed_settings_limit_the_mode_and_nothing_else_does() {
    for mode in MODES {
        assert_eq!(policy(&json!({})).with_mode(mode).mode(), mode);
        let without_bypass = if mode == Mode::Bypass { Mode::Default } else { mode };
        assert_eq!(managed("disableBypassPermissionsMode").with_mode(mode).mode(), without_bypass);
        let planned = if mode == Mode::Deny { Mode::Deny } else { Mode::Plan };
        assert_eq!(managed("requirePlanMode").with_mode(mode).mode(), planned);
    }
}

#[test]
fn commands_of_skills_are_forbidden_by_their_setting_alone() {
    assert!(managed("disableSkillShellExecution").forbids_skill_commands());
    assert!(!managed("disableBypassPermissionsMode").forbids_skill_commands());
    assert!(!policy(&json!({})).forbids_skill_commands());
}

#[test]
fn a_path_is_written_if_the_intent_or_a_command_says_so() {
    let policy = policy(&json!({}));
    let (intent, survey) = survey_command(&policy, "cat in > out; touch new");
    for (path, is_written) in [("/ws/out", true), ("/ws/new", true), ("/ws/in", false), ("/ws", false)] {
        assert_eq!(policy.is_written(&abs(path), &intent, &survey), is_written, "{path}");
    }
    let input = Map::from_iter([("file_path".to_owned(), json!("a.txt"))]);
    for (tool, is_written) in [("Write", true), ("Edit", true), ("Read", false)] {
        let intent = FakeWorkspace::new("/ws").intent(&identity(tool), &input);
        assert_eq!(
            policy.is_written(&abs("/ws/a.txt"), &intent, &IntentSurvey::default()),
            is_written,
            "{tool}"
        );
    }
}

#[test]
fn the_analysis_of_a_line_is_found_by_the_whole_line() {
    let (intent, survey) = survey_command(&policy(&json!({})), "ls a | wc -l");
    let [Effect::Exec { command }] = &intent.effects[..] else { panic!("{intent:?}") };
    let found = survey.analysis(command).expect("the line was surveyed");
    assert_eq!(found.parts.len(), 2);
    let mut other = command.clone();
    other.cwd = abs("/elsewhere");
    assert!(survey.analysis(&other).is_none());
}

/// What is behind the first rule is part of the advice, also with as many rules as are judged again for it.
#[test]
fn advice_names_what_stands_behind_the_first_rule_up_to_a_limit() {
    let advice = |others: usize| {
        let rules: Vec<String> = (0..others).map(|n| format!("Bash(program-{n} *)")).collect();
        let deny: Vec<&str> = ["Bash(rm x)", "Bash(rm *)", "Bash(rm x*)"]
            .into_iter()
            .chain(rules.iter().map(String::as_str))
            .collect();
        let judgement: Judgement = FakeWorkspace::new("/ws").judge(
            &policy(&json!({ "deny": deny })),
            "Bash",
            &json!({ "command": "rm x" }),
        );
        judgement.flip.unwrap_or_default()
    };
    for (others, names_all) in [(0, true), (1_997, true), (1_998, false)] {
        let text = advice(others);
        assert!(text.contains("`Bash(rm x)`"), "{text}");
        for further in ["`Bash(rm *)`", "`Bash(rm x*)`"] {
            assert_eq!(text.contains(further), names_all, "{others}: {text}");
        }
    }
}

#[test]
fn a_search_is_filtered_if_a_rule_forbids_or_asks_about_reading_a_path() {
    assert!(!policy(&json!({ "allow": ["Read(a)"], "deny": ["Edit(b)", "Bash(rm *)"] })).hides_any_file());
    assert!(policy(&json!({ "deny": ["Read(secret/**)"] })).hides_any_file());
    assert!(policy(&json!({ "ask": ["Read(secret/**)"] })).hides_any_file());
}

/// The names in a tree matter where a command gives them new paths, and nowhere else.
#[test]
fn only_a_copied_tree_is_listed_for_its_names() {
    let globs = |command: &str| survey_command(&policy(&json!({})), command).1.globs;
    assert!(!globs("cp -r src dst").is_empty());
    assert!(!globs("mv src dst").is_empty());
    assert_eq!(globs("grep -r word src"), [""; 0]);
    assert_eq!(globs("cp a b"), [""; 0]);
}

/// What a glob without a match stands for is decided by the pattern: a tree with everything below, a file without.
#[test]
fn a_glob_without_a_match_reaches_below_only_where_the_command_does() {
    let settings = json!({ "allow": ["Bash(rm *)", "Bash(touch *)"], "deny": ["Edit(out1/keep/**)"] });
    let verdict = |command: &str| {
        FakeWorkspace::new("/ws")
            .judge(&policy(&settings), "Bash", &json!({ "command": command }))
            .verdict
            .as_str()
    };
    assert_ne!(verdict("rm -r out*"), "allow");
    assert_eq!(verdict("touch out*"), "allow");
}

#[test]
fn a_rule_for_the_whole_tool_covers_redirects_inside_the_workspace_only() {
    let judge = |rule: &str, command: &str| {
        let settings = json!({ "allow": [rule] });
        FakeWorkspace::new("/ws")
            .judge(&policy(&settings), "Bash", &json!({ "command": command }))
            .verdict
            .as_str()
    };
    assert_eq!(judge("Bash", "echo x > a"), "allow");
    assert_eq!(judge("Bash", "echo x > /elsewhere/a"), "ask");
    assert_eq!(judge("Bash(echo *)", "echo x > a"), "ask");
}

#[test]
fn the_risk_of_a_command_that_only_reads_is_low_unless_it_reveals_secrets() {
    let risk = |command: &str| {
        let settings = json!({ "ask": ["Bash"] });
        let judgement =
            FakeWorkspace::new("/ws").judge(&policy(&settings), "Bash", &json!({ "command": command }));
        match judgement.verdict {
            Verdict::Ask(question) => question.risk,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(risk("ls src"), RiskLevel::Low);
    assert_eq!(risk("make all"), RiskLevel::High);
    assert_eq!(risk("cat .env"), RiskLevel::High);
}

/// Only an approver lets a command run outside the sandbox.
#[test]
fn no_rule_and_no_mode_lifts_the_sandbox() {
    let world = FakeWorkspace::new("/ws");
    let input = json!({ "command": "make", "dangerouslyDisableSandbox": true });
    for settings in [json!({ "allow": ["Bash"] }), json!({ "mode": "bypassPermissions" })] {
        let policy = policy(&settings);
        let judgement = world.judge(&policy, "Bash", &input);
        if let Verdict::Allow(terms) = &judgement.verdict {
            assert!(!terms.unsandboxed, "{settings}");
        }
        let map = input.as_object().unwrap().clone();
        let (tool, intent) = (identity("Bash"), world.intent(&identity("Bash"), &map));
        let survey = policy.survey_call(&map, &intent, &world.workspace);
        let facts = world.facts(&survey);
        let request = PolicyRequest {
            tool: &tool,
            input: &map,
            intent: &intent,
            survey: &survey,
            workspace: &world.workspace,
            facts: &facts,
            opinions: &[],
        };
        let reason = VerdictReason::new(Code::ApprovalPending, "approved");
        assert!(policy.terms(&request, reason).unsandboxed, "{settings}");
    }
}

#[test]
fn a_file_with_other_hard_links_is_not_covered_by_a_rule_for_its_path() {
    let world = FakeWorkspace::new("/ws").with("/ws/shared", Node::Shared);
    let policy = policy(&json!({ "allow": ["Edit(**)"] }));
    let verdict = |path: &str| world.judge(&policy, "Write", &json!({ "file_path": path })).verdict.as_str();
    assert_eq!(verdict("/ws/shared"), "ask");
    assert_eq!(verdict("/ws/own"), "allow");
}

#[test]
fn the_setting_that_forbids_to_leave_the_sandbox_is_named_where_it_denies() {
    let world = FakeWorkspace::new("/ws");
    let input = json!({ "command": "make", "dangerouslyDisableSandbox": true });
    for (allow_unsandboxed, verdict) in [(true, "ask"), (false, "deny")] {
        let mut raw = raw_policy(&json!({ "allow": ["Bash"] }), &world);
        raw.allow_unsandboxed = allow_unsandboxed;
        let judgement = world.judge(&raw.compile().0, "Bash", &input);
        assert_eq!(judgement.verdict.as_str(), verdict);
        let advice = judgement.flip.unwrap_or_default();
        assert_eq!(advice.contains("allowUnsandboxedCommands"), !allow_unsandboxed, "{advice}");
    }
}

/// A search looks at whole paths only where a name above a file can make it a secret.
#[test]
fn files_are_checked_by_their_name_where_no_directory_makes_them_secret() {
    let filter = policy(&json!({})).read_filter(&FakeWorkspace::new("/ws").workspace);
    let names = ["main.rs", ".env", "id_rsa", "credentials", "config", "a.pem"];
    for (directory, by_name) in [("/ws/src", true), ("/ws", true), ("/ws/.ssh", false), ("/ws/.aws", false)] {
        assert_eq!(filter.can_check_by_name(&abs(directory)), by_name, "{directory}");
        for name in names.iter().filter(|_| by_name) {
            let path = abs(directory).join(name);
            assert_eq!(filter.is_sensitive(&path), filter.is_sensitive_name(name), "{path}");
        }
    }
}

#[test]
fn a_removal_by_a_glob_that_may_match_the_workspace_or_the_home_directory_asks_in_every_mode() {
    let policy = policy(&json!({ "mode": "bypassPermissions" }));
    let verdict = |command: &str| {
        FakeWorkspace::new("/ws").judge(&policy, "Bash", &json!({ "command": command })).verdict.as_str()
    };
    for command in ["rm -rf /w*", "rm -rf /*", "rm -rf /home/*", "rm -rf /[hw]*"] {
        assert_eq!(verdict(command), "ask", "{command}");
    }
    for command in ["rm -rf /ws/out*", "rm -rf /opt/x*", "rm -rf /home/other*"] {
        assert_eq!(verdict(command), "allow", "{command}");
    }
}

/// `rg x` opens no hidden file, so that a rule for `.env` does not concern it.
#[test]
fn a_search_is_judged_by_a_rule_for_a_hidden_file_only_if_it_opens_hidden_files() {
    let policy = policy(&json!({ "deny": ["Read(.env)"] }));
    let is_allowed = |command: &str| {
        let judgement = FakeWorkspace::new("/ws").judge(&policy, "Bash", &json!({ "command": command }));
        matches!(judgement.verdict, Verdict::Allow(_))
    };
    for command in [
        "rg x",
        "rg -t rust x",
        "rg -tpy x",
        "rg --type rust x",
        "rg --type=rust x",
        "rg -g '*.rs' x",
        "rg --glob=src/main.rs x",
        "rg --iglob main.rs x",
        "rg -g '!*.log' x",
    ] {
        assert!(is_allowed(command), "{command}");
    }
    for command in [
        "rg --hidden x",
        "rg -uu x",
        "rg -. x",
        "rg -t make x",
        "rg -tmake x",
        "rg --type make x",
        "rg --type=make x",
        "rg --type-add 'mine:*' x",
        "rg --type-add='mine:*' x",
        "rg -g '*' x",
        "rg -g'.e*' x",
        "rg --glob '*.env' x",
        "rg --iglob='.E*' x",
        "fd -H env",
        "ag -u x",
        "ag -a x",
        "tree -a",
    ] {
        assert!(!is_allowed(command), "{command}");
    }
}

#[test]
fn what_hides_a_tool_is_named_and_nothing_where_it_is_offered() {
    let reason = |settings: &Value, tool: &str| {
        let policy = policy(settings);
        let reason = policy.hidden_reason(&identity(tool));
        assert_eq!(policy.hides_tool(&identity(tool)), reason.is_some(), "{settings} {tool}");
        reason.unwrap_or_default()
    };
    assert_eq!(reason(&json!({ "deny": ["Read(.env)", "Bash(rm *)"] }), "Read"), "");
    assert_eq!(
        reason(&json!({ "deny": ["Read"] }), "Read"),
        "tool `Read` is denied by a rule (deny rule `Read` from project)"
    );
    assert_eq!(
        reason(&json!({ "managed": { "disabledTools": ["Task"] } }), "Agent"),
        "tool `Agent` is disabled by the setting `disabledTools`"
    );
    let book = json!({ "policy": { "rules": [{ "tool": "Write", "action": "deny" }] } });
    assert_eq!(reason(&book, "Write"), "tool `Write` is denied by the policy book");
    assert_eq!(reason(&book, "Read"), "");
}

#[test]
fn trust_is_advised_where_a_rule_of_the_project_waits_for_it_and_only_there() {
    let world = FakeWorkspace::new("/ws");
    let advice = |untrusted: &[&str], command: &str, others: usize| {
        let mut raw = raw_policy(&json!({ "layer": "user" }), &world);
        let mut rules = LayerRules::new(Layer::Project, abs("/ws"));
        rules.allow = untrusted.iter().map(|rule| (*rule).into()).collect();
        raw.untrusted_allow.push(rules);
        let others = (0..others).map(|n| format!("Bash(program-{n} *)").into());
        raw.layers[0].allow.extend(others);
        world.judge(&raw.compile().0, "Bash", &json!({ "command": command })).flip.unwrap_or_default()
    };
    let (trust, add) = ("run `toolgate trust add`", "add the allow rule");
    for (untrusted, command, others, wanted, unwanted) in [
        (&["Bash(make *)"][..], "make all", 0, trust, add),
        (&["Bash(make *)"], "npm test", 0, add, trust),
        (&[], "make all", 0, add, trust),
        (&["Bash(make *)"], "make all", 2_000, trust, add),
        (&["Bash(make *)"], "make all", 2_001, add, trust),
    ] {
        let text = advice(untrusted, command, others);
        assert!(text.contains(wanted) && !text.contains(unwanted), "{command} {others}: {text}");
    }
    assert_eq!(advice(&["Bash(make *)"], "ls", 0), "", "an allowed call needs no advice");
}

/// What a judgement says of a Bash call under these settings.
fn reason_of(settings: &Value, command: &str) -> String {
    let judgement =
        FakeWorkspace::new("/ws").judge(&policy(settings), "Bash", &json!({ "command": command }));
    judgement.verdict.reason().to_string()
}

#[test]
fn only_a_line_without_commands_is_allowed_for_running_none() {
    let none = "the line runs no command";
    assert_eq!(reason_of(&json!({}), "# nothing"), none);
    for command in ["ls", "make", "eval \"$x\""] {
        assert_ne!(reason_of(&json!({}), command), none, "{command}");
    }
}

#[test]
fn the_setting_for_commands_of_skills_denies_those_of_skills_only() {
    let world = FakeWorkspace::new("/ws");
    let mut skill = identity("Bash");
    skill.source = SourceId::Skill { skill: "lint".to_owned() };
    let forbidding = json!({ "managed": { "disableSkillShellExecution": true } });
    for (settings, tool, verdict) in [
        (&forbidding, &skill, "deny"),
        (&forbidding, &identity("Bash"), "allow"),
        (&json!({}), &skill, "allow"),
    ] {
        let input = Map::from_iter([("command".to_owned(), json!("ls"))]);
        let intent = world.intent(&identity("Bash"), &input);
        let judgement = world.judge_intent(&policy(settings), tool, &input, &intent, &[]);
        assert_eq!(judgement.verdict.as_str(), verdict, "{settings} {:?}", tool.source);
    }
}

#[test]
fn a_line_that_cannot_be_analysed_can_be_allowed_by_a_rule_for_exactly_this_line_if_one_can_be_written() {
    let advice = |command: &str| {
        let judgement =
            FakeWorkspace::new("/ws").judge(&policy(&json!({})), "Bash", &json!({ "command": command }));
        judgement.flip.unwrap_or_default()
    };
    assert!(advice("eval \"$x\"").contains("`Bash(eval \"$x\")`"), "{}", advice("eval \"$x\""));
    for command in ["eval \"$x\" *", "eval \"$x\"\nls", "eval \"$x\" \\\\a"] {
        assert!(!advice(command).contains("add the allow rule `Bash(eval"), "{}", advice(command));
    }
}

#[test]
fn the_question_of_a_book_of_the_user_is_not_answered_by_trusting_the_workspace() {
    let book = json!({ "policy": { "rules": [{ "tool": "Bash", "action": "ask" }] } });
    let judgement = FakeWorkspace::new("/ws").judge(&policy(&book), "Bash", &json!({ "command": "ls" }));
    assert_eq!(judgement.verdict.as_str(), "ask");
    assert!(!judgement.flip.unwrap_or_default().contains("trust workspace"));
}

#[test]
fn the_terms_say_why_git_was_allowed() {
    let git = |rules: &[&str], command: &str| {
        let settings = json!({ "allow": rules });
        let judgement =
            FakeWorkspace::new("/ws").judge(&policy(&settings), "Bash", &json!({ "command": command }));
        match judgement.verdict {
            Verdict::Allow(terms) => (terms.git.usage, terms.git.searches),
            other => panic!("{command}: {other:?}"),
        }
    };
    assert_eq!(git(&[], "ls"), (GitUse::Absent, false));
    assert_eq!(git(&[], "git status; ls"), (GitUse::Reads, false));
    assert_eq!(git(&[], "git grep word"), (GitUse::Reads, true));
    assert_eq!(git(&["Bash(make *)"], "git status; make all"), (GitUse::Mixed, false));
    assert_eq!(git(&["Bash(git status)"], "git status"), (GitUse::GrantedReads, false));
    assert_eq!(git(&["Bash(git *)"], "git commit -m x"), (GitUse::Granted, false));
}

/// A rule that spells out the command also names its files; one with a wildcard does not mean the secret ones.
#[test]
fn only_a_rule_for_exactly_the_command_covers_a_secret_that_it_reads() {
    let verdict = |rule: &str| {
        let settings = json!({ "allow": [rule] });
        FakeWorkspace::new("/ws")
            .judge(&policy(&settings), "Bash", &json!({ "command": "cat .env" }))
            .verdict
            .as_str()
    };
    assert_eq!(verdict("Bash(cat .env)"), "allow");
    assert_eq!(verdict("Bash(cat *)"), "ask");
}

/// With too many files to list, the names that a copy brings along are decided by the pattern.
#[test]
fn a_copy_of_unknown_files_asks_if_one_may_have_a_protected_name() {
    let world = FakeWorkspace::new("/ws");
    let policy = policy(&json!({ "allow": ["Bash(cp *)"] }));
    for (command, verdict) in [
        ("cp from/*.txt .", "allow"),
        ("cp from/*.json .", "ask"),
        ("cp from/* .", "ask"),
        ("cp from/.* .", "ask"),
    ] {
        let (tool, input) = (identity("Bash"), Map::from_iter([("command".to_owned(), json!(command))]));
        let (intent, survey) = survey_command(&policy, command);
        let mut facts = PathFacts::none();
        for path in &survey.paths {
            facts.insert(world.resolve(path));
        }
        let request = PolicyRequest {
            tool: &tool,
            input: &input,
            intent: &intent,
            survey: &survey,
            workspace: &world.workspace,
            facts: &facts,
            opinions: &[],
        };
        assert_eq!(policy.decide(&request).verdict.as_str(), verdict, "{command}");
    }
}

#[test]
fn the_severity_from_which_dangers_are_denied_decides() {
    let world = FakeWorkspace::new("/ws");
    let verdict = |from: Option<RiskLevel>, command: &str| {
        let mut raw = raw_policy(&json!({ "allow": ["Bash"] }), &world);
        raw.deny_dangers_from = from;
        world.judge(&raw.compile().0, "Bash", &json!({ "command": command })).verdict.as_str()
    };
    assert_eq!(verdict(None, "rm -rf /"), "ask");
    for from in [RiskLevel::Critical, RiskLevel::High, RiskLevel::Medium] {
        assert_eq!(verdict(Some(from), "rm -rf /"), "deny", "{from:?}");
        assert_eq!(verdict(Some(from), "ls"), "allow", "{from:?}");
    }
}

#[test]
fn an_edit_that_a_rule_for_the_tool_allows_names_the_rule() {
    let judgement = FakeWorkspace::new("/ws").judge(
        &policy(&json!({ "allow": ["Edit"] })),
        "Edit",
        &json!({ "file_path": "a" }),
    );
    assert_eq!(
        judgement.verdict.reason().to_string(),
        "a rule allows the tool (allow rule `Edit` from project)"
    );
}
