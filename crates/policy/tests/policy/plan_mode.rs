//! Mode plan: nothing that writes or runs is allowed, whatever rules, books and hooks say.

use super::fake_workspace::{FakeWorkspace, action, identity, raw_policy};
use serde_json::{Map, Value, json};
use toolgate_policy::{HookOpinion, Policy, RuleAction};
use toolgate_proto::{Effect, Intent, Mode, RightsLevel, WriteKind};

/// Every case of a corpus file.
fn cases(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Policies that allow as much as rules can, and the rules of the case itself, each from every mode.
fn policies(case: &Value, world: &FakeWorkspace) -> Vec<Policy> {
    let everything = json!({
        "allow": ["Bash", "Bash(*)", "Read", "Read(//**)", "Edit", "Edit(//**)", "Write", "WebFetch", "Agent"],
        "policy": { "defaultAction": "allow", "rules": [{ "tool": "*", "action": "allow" }] },
        "readonly_auto": true,
    });
    let mut policies = Vec::new();
    for settings in [&case["policy"], &everything] {
        for mode in Mode::ALL {
            let mut raw = raw_policy(settings, world);
            raw.mode = mode;
            raw.auto_allow_read_only_commands = true;
            // A session that enters plan mode has the same rules in another mode.
            policies.push(raw.compile().0.with_mode(Mode::Plan));
        }
    }
    policies
}

fn consent() -> Vec<HookOpinion> {
    vec![HookOpinion::new("hook", RuleAction::Allow)]
}

#[test]
fn in_plan_mode_no_command_of_the_corpus_that_writes_or_runs_is_allowed() {
    let world = FakeWorkspace::new("/ws");
    let (mut judged, mut allowed) = (0, 0);
    for text in [include_str!("../corpus/shell.jsonl"), include_str!("../corpus/shell-round2.jsonl")] {
        for case in cases(text) {
            for policy in policies(&case, &world) {
                let call = json!({ "command": case["input"] });
                let judgement = world.judge_with(&policy, "Bash", &call, &consent());
                judged += 1;
                if action(&judgement) == RuleAction::Allow {
                    allowed += 1;
                    // What is allowed runs without a right to write, reach the network or start other programs.
                    let rights = judgement.rights.as_ref().unwrap();
                    assert_eq!(rights.level, RightsLevel::ReadOnly, "{case}");
                    assert!(rights.write.is_empty() && rights.execute.is_some(), "{case}");
                }
            }
        }
    }
    assert!(judged > 4_000 && allowed > 1_000, "{judged} judged, {allowed} allowed");
}

#[test]
fn in_plan_mode_no_path_of_the_corpus_is_written() {
    for case in cases(include_str!("../corpus/paths.jsonl")) {
        let Some(path) = case["input"].as_str() else { continue };
        let world = FakeWorkspace::new("/ws");
        for policy in policies(&case, &world) {
            for kind in [WriteKind::Put, WriteKind::Edit, WriteKind::Delete, WriteKind::Tree] {
                let intent = Intent::new("write", [Effect::Write { path: world.path(path), kind }]);
                let judgement =
                    world.judge_intent(&policy, &identity("Write"), &Map::new(), &intent, &consent());
                assert_ne!(action(&judgement), RuleAction::Allow, "{case}");
            }
        }
    }
}

#[test]
fn in_plan_mode_nothing_is_sent_to_an_address_of_the_corpus() {
    for case in cases(include_str!("../corpus/urls.jsonl")) {
        let world = FakeWorkspace::new("/ws");
        let url = case["input"].as_str().unwrap().replace('\'', "%27");
        for policy in policies(&case, &world) {
            for command in [format!("curl -X POST -d x '{url}'"), format!("wget --post-data=x -O - '{url}'")]
            {
                let judgement = world.judge_with(&policy, "Bash", &json!({ "command": command }), &consent());
                assert_ne!(action(&judgement), RuleAction::Allow, "{command}");
            }
        }
    }
}
