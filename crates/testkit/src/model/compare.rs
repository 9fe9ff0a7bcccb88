//! The comparison of the model and the engine on random pairs of a policy and a call.

use super::evaluator;
use super::generate_call::generate_call;
use super::generate_settings::generate_settings;
use super::generated_call::{GeneratedCall, GeneratedEffect, GeneratedSettings};
use super::rng::SplitMixRng;
use super::shrink::shrink_disagreement;
use super::simulated_path::{CWD, EXTRA_ROOT, HOME, resolve_path};
use std::fmt;
use toolgate_policy::url::FetchSettings;
use toolgate_policy::{
    Enforcement, EntryKind, HookOpinion, IntentSurvey, LayerRules, PathFact, PathFacts, Policy,
    PolicyRequest, RawBook, RawPolicy, RuleAction, Workspace,
};
use toolgate_proto::{
    AbsPath, CommandLine, Effect, Intent, PathScope, ShellKind, SourceId, ToolIdentity, ToolName, Verdict,
    WriteKind,
};

/// How many calls are judged under each policy: to compile a policy takes longer than to judge a call.
const CALL_COUNT_PER_POLICY: usize = 24;

/// A run of random pairs of policy and call.
#[derive(Debug)]
pub struct ModelComparison {
    /// Decides everything that is generated.
    rng: SplitMixRng,
    /// Pairs judged so far.
    pub pairs: u64,
    /// How often the verdict was allow, ask and deny.
    pub answers: [u64; 3],
}

/// A pair on which model and engine disagree, shrunk.
#[derive(Debug)]
pub struct ModelDisagreement {
    /// The verdict of the model.
    pub model: RuleAction,
    /// The verdict of the engine, and its reason.
    pub engine: (RuleAction, String),
    /// The settings, for a message.
    pub settings: String,
    /// The call, for a message.
    pub call: String,
}

impl fmt::Display for ModelDisagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (action, why) = &self.engine;
        writeln!(f, "the model says {}, the engine says {action} ({why})", self.model)?;
        write!(f, "  settings: {}\n  call: {}", self.settings, self.call)
    }
}

impl ModelComparison {
    /// Starts a run from a seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: SplitMixRng::new(seed), pairs: 0, answers: [0; 3] }
    }

    /// Judges several calls under one policy. An error is the first disagreement.
    pub fn step(&mut self) -> Result<(), Box<ModelDisagreement>> {
        let settings = generate_settings(&mut self.rng);
        let policy = compile(&settings);
        for _ in 0..CALL_COUNT_PER_POLICY {
            let call = generate_call(&mut self.rng);
            let expected = evaluator::judge(&settings, &call);
            let (actual, _) = decide_with_engine(&policy, &call);
            if actual != expected {
                return Err(Box::new(shrink_disagreement(settings, call)));
            }
            self.pairs += 1;
            let [allow, ask, deny] = &mut self.answers;
            match actual {
                RuleAction::Allow => *allow += 1,
                RuleAction::Ask => *ask += 1,
                RuleAction::Deny => *deny += 1,
            }
        }
        Ok(())
    }
}

/// Converts a path of the simulated file system.
fn abs_path(path: &str) -> AbsPath {
    AbsPath::root().join(path)
}

/// Compiles settings for the engine, with a kernel that enforces what was judged.
pub(super) fn compile(settings: &GeneratedSettings) -> Policy {
    to_raw_policy(settings).compile().0
}

/// The settings as the engine reads them.
fn to_raw_policy(settings: &GeneratedSettings) -> RawPolicy {
    let layers = settings.layers.iter().map(|layer| {
        let mut rules = LayerRules::new(layer.layer, abs_path(layer.anchor()));
        let list = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
        (rules.allow, rules.ask, rules.deny) = (list(&layer.allow), list(&layer.ask), list(&layer.deny));
        rules.trusted = layer.trusted;
        rules
    });
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let book = |book: &_| RawBook::new(toolgate_policy::Layer::Project, Clone::clone(book));
    let mut raw = RawPolicy::default()
        .with_layers(layers.collect())
        .with_books(settings.book.iter().map(book).collect())
        .with_mode(settings.mode)
        .with_enforcement(Enforcement::Kernel)
        .with_fetch(
            FetchSettings::default()
                .with_allowed_domains(owned(&settings.approved_hosts))
                .with_blocked_domains(owned(&settings.blocked_hosts))
                .with_auto_approve_https(settings.approve_https),
        );
    raw.managed.allow_managed_permission_rules_only = settings.managed_only;
    raw.managed.disable_bypass_permissions_mode = settings.no_bypass;
    raw.managed.disabled_tools = owned(&settings.disabled);
    raw.auto_allow_read_only_commands = settings.free_readers;
    raw
}

/// Converts a generated effect to the engine's type; a command line becomes text, which the engine has to parse again.
fn to_effect(effect: &GeneratedEffect) -> Effect {
    match effect {
        GeneratedEffect::Read(path) => Effect::Read { path: abs_path(path), scope: PathScope::Entry },
        GeneratedEffect::ReadTree(path) => Effect::Read { path: abs_path(path), scope: PathScope::Tree },
        GeneratedEffect::Write(path) => Effect::Write { path: abs_path(path), kind: WriteKind::Put },
        GeneratedEffect::Exec(line) => {
            Effect::Exec { command: CommandLine::new(line.text(), ShellKind::Bash, abs_path(CWD)) }
        }
        GeneratedEffect::Fetch(address) => Effect::Fetch { url: address.text() },
        GeneratedEffect::WebSearch(query) => Effect::Search { query: query.clone() },
        GeneratedEffect::Delegate(agent) => Effect::Delegate { agent: agent.clone() },
        GeneratedEffect::Skill(name, args) => Effect::Skill { name: name.clone(), args: args.clone() },
        GeneratedEffect::Remote { server, tool, .. } => {
            Effect::Remote { server: server.clone(), tool: tool.clone() }
        }
        GeneratedEffect::State => Effect::State { name: "todos".to_owned() },
        GeneratedEffect::Opaque => Effect::Opaque,
    }
}

/// The directories of the session in the simulated file system.
fn simulated_workspace() -> Workspace {
    Workspace::new(abs_path(CWD))
        .with_roots(vec![abs_path(CWD), abs_path(EXTRA_ROOT)])
        .with_home(abs_path(HOME))
}

/// The verdict of the engine, and its reason.
pub(super) fn decide_with_engine(policy: &Policy, call: &GeneratedCall) -> (RuleAction, String) {
    let workspace = simulated_workspace();
    let source = match &call.effect {
        GeneratedEffect::Remote { server, tool, .. } => {
            SourceId::Mcp { server: server.clone(), tool: tool.clone() }
        }
        GeneratedEffect::Read(_)
        | GeneratedEffect::ReadTree(_)
        | GeneratedEffect::Write(_)
        | GeneratedEffect::Exec(_)
        | GeneratedEffect::Fetch(_)
        | GeneratedEffect::WebSearch(_)
        | GeneratedEffect::Delegate(_)
        | GeneratedEffect::Skill(..)
        | GeneratedEffect::State
        | GeneratedEffect::Opaque => SourceId::Builtin,
    };
    let tool = ToolIdentity::new(ToolName::new(call.tool), source)
        .with_also(call.also.iter().map(|name| (*name).to_owned()).collect())
        .with_requires_interaction(call.needs_user);
    let intent = Intent::new("do it", [to_effect(&call.effect)]);
    let survey = policy.survey(&intent, &workspace);
    let facts = collect_facts(&survey);
    let opinions: Vec<HookOpinion> =
        call.opinions.iter().map(|action| HookOpinion::new("hook", *action)).collect();
    let judgement = policy.decide(&PolicyRequest {
        tool: &tool,
        input: &call.input,
        intent: &intent,
        survey: &survey,
        workspace: &workspace,
        facts: &facts,
        opinions: &opinions,
    });
    let action = match judgement.verdict {
        Verdict::Allow(_) => RuleAction::Allow,
        Verdict::Ask(_) => RuleAction::Ask,
        Verdict::Deny(_) => RuleAction::Deny,
    };
    (action, judgement.verdict.reason().to_string())
}

/// The facts about the paths of a call in the simulated file system.
fn collect_facts(survey: &IntentSurvey) -> PathFacts {
    let mut facts = PathFacts::none();
    for asked in &survey.paths {
        let path = resolve_path(&asked.to_string());
        facts.insert(
            PathFact::new(
                asked.clone(),
                abs_path(&path.real),
                if path.shared { EntryKind::File } else { EntryKind::Missing },
            )
            .with_links(path.links.iter().map(|link| abs_path(link)).collect())
            .with_hard_linked(path.shared),
        );
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::super::command::GeneratedCommandEffect;
    use super::*;
    use serde_json::{Map, Value, json};
    use toolgate_policy::Judgement;
    use toolgate_proto::{Mode, RightsLevel};

    /// A short run of `cargo xtask model`. Every verdict has to be common, or the comparison proves little.
    #[test]
    fn the_engine_agrees_with_the_slow_model() {
        for seed in 0..4 {
            let mut comparison = ModelComparison::new(seed);
            while comparison.pairs < 2_500 {
                if let Err(found) = comparison.step() {
                    panic!("seed {seed}, after {} pairs: {found}", comparison.pairs);
                }
            }
            assert!(comparison.answers.iter().all(|count| *count > comparison.pairs / 8), "{comparison:?}");
        }
    }

    /// Whether a call changes something or runs what does not only read, by the tree that the call was rendered from.
    fn changes_or_runs(call: &GeneratedCall) -> bool {
        match &call.effect {
            GeneratedEffect::Write(_) | GeneratedEffect::Remote { .. } | GeneratedEffect::Opaque => true,
            GeneratedEffect::Exec(line) => line.simple_commands().iter().any(|simple| {
                !simple.is_read_only()
                    || simple
                        .effects()
                        .iter()
                        .any(|effect| !matches!(effect, GeneratedCommandEffect::Reads(_)))
            }),
            GeneratedEffect::Read(_)
            | GeneratedEffect::ReadTree(_)
            | GeneratedEffect::Fetch(_)
            | GeneratedEffect::WebSearch(_)
            | GeneratedEffect::Delegate(_)
            | GeneratedEffect::Skill(..)
            | GeneratedEffect::State => false,
        }
    }

    #[test]
    fn in_plan_mode_nothing_that_changes_or_runs_is_allowed() {
        let mut rng = SplitMixRng::new(7);
        let (mut changing, mut allowed) = (0, 0);
        for _ in 0..400 {
            // The session enters plan mode from whatever mode the settings have.
            let policy = compile(&generate_settings(&mut rng)).with_mode(toolgate_proto::Mode::Plan);
            for _ in 0..CALL_COUNT_PER_POLICY {
                let call = generate_call(&mut rng);
                let (action, _) = decide_with_engine(&policy, &call);
                allowed += usize::from(action == RuleAction::Allow);
                if changes_or_runs(&call) {
                    changing += 1;
                    assert_ne!(action, RuleAction::Allow, "{call:?}");
                }
            }
        }
        assert!(changing > 1_000 && allowed > 1_000, "{changing} changing, {allowed} allowed");
    }

    /// Generated settings.
    const SETTINGS_COUNT: usize = 20;

    /// The inputs of a file of the corpus.
    fn inputs(text: &str) -> Vec<String> {
        let input =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["input"].as_str().map(str::to_owned);
        text.lines().filter_map(input).collect()
    }

    /// Policies in plan mode: generated settings, entered from the mode that was generated, half of them where the kernel
    /// enforces a judgement and half where it does not.
    fn plan_policies(seed: u64) -> Vec<Policy> {
        let mut rng = SplitMixRng::new(seed);
        let policy = |number: usize| {
            let enforcement =
                if number.is_multiple_of(2) { Enforcement::Kernel } else { Enforcement::Absent };
            let raw = to_raw_policy(&generate_settings(&mut rng)).with_enforcement(enforcement);
            raw.compile().0.with_mode(Mode::Plan)
        };
        (0..SETTINGS_COUNT).map(policy).collect()
    }

    /// The judgement about a call with one effect, to which a hook consents.
    fn judge(policy: &Policy, tool: &str, input: &Value, effect: Effect) -> Judgement {
        let workspace = simulated_workspace();
        let tool = ToolIdentity::new(ToolName::new(tool), SourceId::Builtin);
        let input: Map<String, Value> = input.as_object().cloned().unwrap_or_default();
        let intent = Intent::new("do it", [effect]);
        let survey = policy.survey_call(&input, &intent, &workspace);
        let mut facts = collect_facts(&survey);
        survey.globs.iter().for_each(|glob| facts.insert_glob(glob.clone(), Vec::new()));
        let consent = HookOpinion::new("hook", RuleAction::Allow);
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
        let command = CommandLine::new(text, ShellKind::Bash, simulated_workspace().cwd);
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
}
