//! What other crates ask a policy beside its judgement: modes, skills, written paths, analyses, advice.

use super::world::{World, abs, compile, identity};
use serde_json::{Map, Value, json};
use toolgate_policy::{IntentSurvey, Judgement, Policy};
use toolgate_proto::{Effect, Intent, Mode};

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
