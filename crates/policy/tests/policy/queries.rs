//! What other crates ask a policy beside its judgement: modes, skills, written paths, analyses, advice.

use super::world::{World, abs, compile, identity};
use serde_json::{Map, Value, json};
use toolgate_policy::{IntentSurvey, Judgement, Policy, PolicyRequest};
use toolgate_proto::{Code, Effect, Intent, Mode, RiskLevel, Verdict, VerdictReason};

const MODES: [Mode; 6] =
    [Mode::Default, Mode::Plan, Mode::AcceptEdits, Mode::DontAsk, Mode::Bypass, Mode::Deny];

fn policy(settings: &Value) -> Policy {
    compile(settings, &World::new("/ws")).0
}

fn managed(key: &str) -> Policy {
    policy(&json!({ "managed": { key: true } }))
}

/// The intent of a command line, and what the policy finds in it.
fn survey_command(policy: &Policy, command: &str) -> (Intent, IntentSurvey) {
    let world = World::new("/ws");
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
        let intent = World::new("/ws").intent(&identity(tool), &input);
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
        let deny: Vec<&str> =
            ["Bash(rm x)", "Bash(rm *)"].into_iter().chain(rules.iter().map(String::as_str)).collect();
        let judgement: Judgement =
            World::new("/ws").judge(&policy(&json!({ "deny": deny })), "Bash", &json!({ "command": "rm x" }));
        judgement.flip.unwrap_or_default()
    };
    for (others, names_both) in [(0, true), (1_998, true), (1_999, false)] {
        let text = advice(others);
        assert!(text.contains("`Bash(rm x)`"), "{text}");
        assert_eq!(text.contains("`Bash(rm *)`"), names_both, "{others}: {text}");
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
        World::new("/ws").judge(&policy(&settings), "Bash", &json!({ "command": command })).verdict.as_str()
    };
    assert_ne!(verdict("rm -r out*"), "allow");
    assert_eq!(verdict("touch out*"), "allow");
}

#[test]
fn a_rule_for_the_whole_tool_covers_redirects_inside_the_workspace_only() {
    let judge = |rule: &str, command: &str| {
        let settings = json!({ "allow": [rule] });
        World::new("/ws").judge(&policy(&settings), "Bash", &json!({ "command": command })).verdict.as_str()
    };
    assert_eq!(judge("Bash", "echo x > a"), "allow");
    assert_eq!(judge("Bash", "echo x > /elsewhere/a"), "ask");
    assert_eq!(judge("Bash(echo *)", "echo x > a"), "ask");
}

#[test]
fn the_risk_of_a_command_that_only_reads_is_low_unless_it_reveals_secrets() {
    let risk = |command: &str| {
        let settings = json!({ "ask": ["Bash"] });
        let judgement = World::new("/ws").judge(&policy(&settings), "Bash", &json!({ "command": command }));
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
    let world = World::new("/ws");
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
