//! The model and the engine, asked the same.

use super::evaluator;
use super::generate;
use super::rng::SplitMixRng;
use super::scenario::{
    CWD, EXTRA_ROOT, GeneratedCall, GeneratedEffect, GeneratedSettings, HOME, resolve_path,
};
use std::fmt;
use toolgate_policy::url::FetchSettings;
use toolgate_policy::{
    Enforcement, EntryKind, HookOpinion, IntentSurvey, LayerRules, ManagedRestrictions, PathFact, PathFacts,
    Policy, PolicyRequest, RawBook, RawPolicy, RuleAction, Workspace,
};
use toolgate_proto::{
    AbsPath, CommandLine, Effect, Intent, PathScope, ShellKind, SourceId, ToolIdentity, ToolName, Verdict,
    WriteKind,
};

/// Calls that are judged under each policy.
const CALLS_PER_POLICY: usize = 24;

/// A run of random pairs of policy and call.
#[derive(Debug)]
pub struct ModelComparison {
    rng: SplitMixRng,
    /// Pairs judged so far.
    pub pairs: u64,
    /// How often the answer was allow, ask and deny.
    pub answers: [u64; 3],
}

/// A pair on which the two differ, made as small as it goes.
#[derive(Debug)]
pub struct ModelDisagreement {
    /// What the model says.
    pub model: RuleAction,
    /// What the engine says, and why.
    pub engine: (RuleAction, String),
    /// The settings.
    pub settings: String,
    /// The call.
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
    /// A run that the seed decides.
    pub fn new(seed: u64) -> Self {
        Self { rng: SplitMixRng::new(seed), pairs: 0, answers: [0; 3] }
    }

    /// One policy, several calls. The first disagreement ends the run.
    pub fn step(&mut self) -> Result<(), Box<ModelDisagreement>> {
        let written = generate::generate_settings(&mut self.rng);
        let policy = compile(&written);
        for _ in 0..CALLS_PER_POLICY {
            let call = generate::generate_call(&mut self.rng);
            let wanted = evaluator::judge(&written, &call);
            let (got, _) = decide_with_engine(&policy, &call);
            if got != wanted {
                return Err(Box::new(shrink_disagreement(written, call)));
            }
            self.pairs += 1;
            let [allow, ask, deny] = &mut self.answers;
            match got {
                RuleAction::Allow => *allow += 1,
                RuleAction::Ask => *ask += 1,
                RuleAction::Deny => *deny += 1,
            }
        }
        Ok(())
    }
}

fn abs_path(path: &str) -> AbsPath {
    AbsPath::root().join(path)
}

fn compile(written: &GeneratedSettings) -> Policy {
    let layers = written.layers.iter().map(|layer| {
        let mut rules = LayerRules::new(layer.layer, abs_path(layer.anchor()));
        let list = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
        (rules.allow, rules.ask, rules.deny) = (list(&layer.allow), list(&layer.ask), list(&layer.deny));
        rules.trusted = layer.trusted;
        rules
    });
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let raw = RawPolicy {
        layers: layers.collect(),
        books: written
            .book
            .iter()
            .map(|book| RawBook::new(toolgate_policy::Layer::Project, book.clone()))
            .collect(),
        mode: written.mode,
        enforcement: Enforcement::Kernel,
        managed: ManagedRestrictions {
            allow_managed_permission_rules_only: written.managed_only,
            disable_bypass_permissions_mode: written.no_bypass,
            disabled_tools: owned(&written.disabled),
            ..ManagedRestrictions::default()
        },
        fetch: FetchSettings {
            allowed_domains: owned(&written.approved_hosts),
            blocked_domains: owned(&written.blocked_hosts),
            auto_approve_https: written.approve_https,
            allow_private: Vec::new(),
        },
        auto_allow_read_only_commands: written.free_readers,
        ..RawPolicy::default()
    };
    raw.compile().0
}

fn to_effect(deed: &GeneratedEffect) -> Effect {
    match deed {
        GeneratedEffect::Read(path) => Effect::Read { path: abs_path(path), scope: PathScope::Entry },
        GeneratedEffect::ReadTree(path) => Effect::Read { path: abs_path(path), scope: PathScope::Tree },
        GeneratedEffect::Write(path) => Effect::Write { path: abs_path(path), kind: WriteKind::Put },
        GeneratedEffect::Exec(line) => Effect::Exec {
            command: CommandLine {
                text: line.text(),
                shell: ShellKind::Bash,
                cwd: abs_path(CWD),
                unsandboxed: false,
            },
        },
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

fn decide_with_engine(policy: &Policy, call: &GeneratedCall) -> (RuleAction, String) {
    let workspace = Workspace {
        cwd: abs_path(CWD),
        roots: vec![abs_path(CWD), abs_path(EXTRA_ROOT)],
        home: Some(abs_path(HOME)),
    };
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
    let tool = ToolIdentity {
        name: ToolName::new(call.tool),
        also: call.also.iter().map(|name| (*name).to_owned()).collect(),
        source,
        read_only: false,
        requires_interaction: call.needs_person,
    };
    let intent = Intent::new("do it", [to_effect(&call.effect)]);
    let survey = policy.survey(&intent, &workspace);
    let facts = collect_facts(&survey);
    let opinions: Vec<HookOpinion> = call
        .opinions
        .iter()
        .map(|action| HookOpinion { by: "hook".to_owned(), action: *action, reason: None })
        .collect();
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

fn collect_facts(survey: &IntentSurvey) -> PathFacts {
    let mut facts = PathFacts::none();
    for asked in &survey.paths {
        let at = resolve_path(&asked.to_string());
        facts.insert(PathFact {
            asked: asked.clone(),
            real: abs_path(&at.real),
            links: at.links.iter().map(|link| abs_path(link)).collect(),
            kind: if at.shared { EntryKind::File } else { EntryKind::Missing },
            hard_linked: at.shared,
            problem: None,
        });
    }
    facts
}

/// Leaves out whatever can be left out while the two still differ.
fn shrink_disagreement(mut written: GeneratedSettings, mut call: GeneratedCall) -> ModelDisagreement {
    let differs = |written: &GeneratedSettings, call: &GeneratedCall| {
        decide_with_engine(&compile(written), call).0 != evaluator::judge(written, call)
    };
    let mut changed = true;
    while changed {
        changed = false;
        let mut candidates: Vec<(GeneratedSettings, GeneratedCall)> = Vec::new();
        let mut change = |edit: &dyn Fn(&mut GeneratedSettings, &mut GeneratedCall)| {
            let (mut written, mut call) = (written.clone(), call.clone());
            edit(&mut written, &mut call);
            candidates.push((written, call));
        };
        for at in 0..written.layers.len() {
            change(&|written, _| drop(written.layers.remove(at)));
            for list in 0..3 {
                for rule in 0..10 {
                    change(&|written, _| {
                        let Some(layer) = written.layers.get_mut(at) else { return };
                        let list = match list {
                            0 => &mut layer.allow,
                            1 => &mut layer.ask,
                            _ => &mut layer.deny,
                        };
                        if rule < list.len() {
                            list.remove(rule);
                        }
                    });
                }
            }
        }
        change(&|written, _| written.book = None);
        change(&|written, _| written.disabled.clear());
        change(&|written, _| written.approved_hosts.clear());
        change(&|written, _| written.blocked_hosts.clear());
        change(&|written, _| {
            (written.managed_only, written.no_bypass, written.approve_https) = (false, false, false);
        });
        change(&|written, _| written.free_readers = true);
        change(&|written, _| written.mode = toolgate_proto::Mode::Default);
        change(&|_, call| call.opinions.clear());
        change(&|_, call| call.needs_person = false);
        for at in 0..4 {
            change(&|_, call| {
                if let GeneratedEffect::Exec(line) = &mut call.effect
                    && line.items.len() > 1
                    && at < line.items.len()
                {
                    line.items.remove(at);
                }
            });
        }
        let size = |written: &GeneratedSettings, call: &GeneratedCall| format!("{written:?}{call:?}").len();
        let now = size(&written, &call);
        if let Some(found) =
            candidates.into_iter().find(|(written, call)| size(written, call) < now && differs(written, call))
        {
            (written, call) = found;
            changed = true;
        }
    }
    let command = match &call.effect {
        GeneratedEffect::Exec(line) => format!(" `{}`", line.text()),
        _ => String::new(),
    };
    ModelDisagreement {
        model: evaluator::judge(&written, &call),
        engine: decide_with_engine(&compile(&written), &call),
        settings: format!("{written:?}"),
        call: format!("{}{command} {:?} {:?} {:?}", call.tool, call.effect, call.input, call.opinions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short run of `cargo xtask model`; every answer must be common, or the scenes prove little.
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
}
