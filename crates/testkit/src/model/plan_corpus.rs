//! The corpus of command lines, paths and addresses in plan mode, under the settings that the model generates: nothing
//! that writes or runs passes, whatever rules, books, modes and hooks say.

use super::compare::{collect_facts, simulated_workspace, to_raw_policy};
use super::generate_settings::generate_settings;
use super::rng::SplitMixRng;
use serde_json::{Map, Value, json};
use toolgate_policy::{Enforcement, HookOpinion, Judgement, Policy, PolicyRequest, RawPolicy, RuleAction};
use toolgate_proto::{
    AbsPath, CommandLine, Effect, Intent, Mode, RightsLevel, ShellKind, SourceId, ToolIdentity, ToolName,
    Verdict, WriteKind,
};

/// Generated settings; more for a long run.
const DEFAULT_SETTINGS_COUNT: usize = 20;
const COUNT_VARIABLE: &str = "TOOLGATE_PLAN_SETTINGS";

/// The inputs of a file of the corpus.
fn inputs(text: &str) -> Vec<String> {
    let input =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["input"].as_str().map(str::to_owned);
    text.lines().filter_map(input).collect()
}

/// Policies in plan mode: generated settings, entered from the mode that was generated, half of them where the kernel
/// enforces a judgement and half where it does not.
fn plan_policies(seed: u64) -> Vec<Policy> {
    let count = std::env::var(COUNT_VARIABLE).ok().and_then(|count| count.parse().ok());
    let mut rng = SplitMixRng::new(seed);
    let policy = |number: usize| {
        let enforcement = if number.is_multiple_of(2) { Enforcement::Kernel } else { Enforcement::Absent };
        let raw = RawPolicy { enforcement, ..to_raw_policy(&generate_settings(&mut rng)) };
        raw.compile().0.with_mode(Mode::Plan)
    };
    (0..count.unwrap_or(DEFAULT_SETTINGS_COUNT)).map(policy).collect()
}

/// The judgement about a call with one effect, to which a hook consents.
fn judge(policy: &Policy, tool: &str, input: &Value, effect: Effect) -> Judgement {
    let workspace = simulated_workspace();
    let tool = ToolIdentity {
        name: ToolName::new(tool),
        also: Vec::new(),
        source: SourceId::Builtin,
        read_only: false,
        requires_interaction: false,
    };
    let input: Map<String, Value> = input.as_object().cloned().unwrap_or_default();
    let intent = Intent::new("do it", [effect]);
    let survey = policy.survey_call(&input, &intent, &workspace);
    let mut facts = collect_facts(&survey);
    survey.globs.iter().for_each(|glob| facts.insert_glob(glob.clone(), Vec::new()));
    let consent = HookOpinion { by: "hook".to_owned(), action: RuleAction::Allow, reason: None };
    policy.decide(&PolicyRequest {
        tool: &tool,
        input: &input,
        intent: &intent,
        survey: &survey,
        workspace: &workspace,
        facts: &facts,
        opinions: &[consent],
    })
}

fn judge_command(policy: &Policy, tool: &str, text: &str) -> Judgement {
    let command = CommandLine {
        text: text.to_owned(),
        shell: ShellKind::Bash,
        cwd: simulated_workspace().cwd,
        unsandboxed: false,
    };
    judge(policy, tool, &json!({ "command": text }), Effect::Exec { command })
}

fn is_allowed(judgement: &Judgement) -> bool {
    matches!(judgement.verdict, Verdict::Allow(_))
}

#[test]
fn in_plan_mode_no_generated_settings_let_a_command_of_the_corpus_write_or_run() {
    let lines: Vec<String> = [
        include_str!("../../../policy/tests/corpus/shell.jsonl"),
        include_str!("../../../policy/tests/corpus/shell-round2.jsonl"),
    ]
    .into_iter()
    .flat_map(inputs)
    .collect();
    let (mut judged, mut allowed) = (0, 0);
    for policy in plan_policies(19) {
        for line in &lines {
            let judgement = judge_command(&policy, "Bash", line);
            judged += 1;
            if is_allowed(&judgement) {
                allowed += 1;
                // What passes has no right to write, and to execute only the readers that were named.
                let rights = judgement.rights.as_ref().unwrap();
                assert_eq!(rights.level, RightsLevel::ReadOnly, "{line}");
                assert!(
                    rights.write.is_empty() && rights.execute.is_some() && !rights.git_data,
                    "{line}: {rights:?}"
                );
            }
        }
    }
    assert!(judged > 5_000 && allowed > judged / 50, "{judged} judged, {allowed} allowed");
}

#[test]
fn in_plan_mode_no_generated_settings_let_a_path_of_the_corpus_be_written() {
    let workspace = simulated_workspace();
    for policy in plan_policies(20) {
        for text in inputs(include_str!("../../../policy/tests/corpus/paths.jsonl")) {
            let path: AbsPath = workspace.cwd.join(&text);
            for kind in [WriteKind::Put, WriteKind::Edit, WriteKind::Delete, WriteKind::Tree] {
                let effect = Effect::Write { path: path.clone(), kind };
                let judgement = judge(&policy, "Write", &json!({ "file_path": text }), effect);
                assert!(!is_allowed(&judgement), "{text}");
            }
        }
    }
}

#[test]
fn in_plan_mode_no_generated_settings_let_anything_be_sent_to_an_address_of_the_corpus() {
    for policy in plan_policies(21) {
        for url in inputs(include_str!("../../../policy/tests/corpus/urls.jsonl")) {
            let url = url.replace('\'', "%27");
            for command in [
                format!("curl -X POST -d x '{url}'"),
                format!("wget --post-data=x -O - '{url}'"),
                format!("curl -o page '{url}'"),
            ] {
                assert!(!is_allowed(&judge_command(&policy, "Bash", &command)), "{command}");
            }
        }
    }
}
