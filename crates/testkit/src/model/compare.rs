//! The model and the engine, asked the same.

use super::dice::Dice;
use super::law;
use super::make;
use super::scene::{CWD, Call, Deed, EXTRA, HOME, Written, place};
use std::fmt;
use toolgate_policy::url::FetchSettings;
use toolgate_policy::{
    Action, Enforcement, EntryKind, HookOpinion, IntentSurvey, LayerRules, ManagedRestrictions, PathFact,
    PathFacts, Policy, RawBook, RawPolicy, Request, Workspace,
};
use toolgate_proto::{
    AbsPath, CommandLine, Effect, Intent, Scope, Shell, SourceId, ToolIdentity, ToolName, Verdict, WriteKind,
};

/// Calls that are judged under each policy.
const CALLS_PER_POLICY: usize = 24;

/// A run of random pairs of policy and call.
#[derive(Debug)]
pub struct Comparison {
    dice: Dice,
    /// Pairs judged so far.
    pub pairs: u64,
    /// How often the answer was allow, ask and deny.
    pub answers: [u64; 3],
}

/// A pair on which the two differ, made as small as it goes.
#[derive(Debug)]
pub struct Disagreement {
    /// What the model says.
    pub model: Action,
    /// What the engine says, and why.
    pub engine: (Action, String),
    /// The settings.
    pub settings: String,
    /// The call.
    pub call: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (action, why) = &self.engine;
        writeln!(f, "the model says {}, the engine says {action} ({why})", self.model)?;
        write!(f, "  settings: {}\n  call: {}", self.settings, self.call)
    }
}

impl Comparison {
    /// A run that the seed decides.
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), pairs: 0, answers: [0; 3] }
    }

    /// One policy, several calls. The first disagreement ends the run.
    pub fn step(&mut self) -> Result<(), Box<Disagreement>> {
        let written = make::written(&mut self.dice);
        let policy = compile(&written);
        for _ in 0..CALLS_PER_POLICY {
            let call = make::call(&mut self.dice);
            let wanted = law::judge(&written, &call);
            let (got, _) = ask(&policy, &call);
            if got != wanted {
                return Err(Box::new(smallest(written, call)));
            }
            self.pairs += 1;
            let [allow, ask, deny] = &mut self.answers;
            match got {
                Action::Allow => *allow += 1,
                Action::Ask => *ask += 1,
                Action::Deny => *deny += 1,
            }
        }
        Ok(())
    }
}

fn abs(path: &str) -> AbsPath {
    AbsPath::root().join(path)
}

fn compile(written: &Written) -> Policy {
    let layers = written.layers.iter().map(|layer| {
        let mut rules = LayerRules::new(layer.layer, abs(layer.anchor()));
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

fn effect(deed: &Deed) -> Effect {
    match deed {
        Deed::Read(path) => Effect::Read { path: abs(path), scope: Scope::Entry },
        Deed::Search(path) => Effect::Read { path: abs(path), scope: Scope::Tree },
        Deed::Write(path) => Effect::Write { path: abs(path), kind: WriteKind::Put },
        Deed::Run(line) => Effect::Exec {
            command: CommandLine { text: line.text(), shell: Shell::Bash, cwd: abs(CWD), unsandboxed: false },
        },
        Deed::Fetch(address) => Effect::Fetch { url: address.text() },
        Deed::Ask(query) => Effect::Search { query: query.clone() },
        Deed::Delegate(agent) => Effect::Delegate { agent: agent.clone() },
        Deed::Skill(name, args) => Effect::Skill { name: name.clone(), args: args.clone() },
        Deed::Remote { server, tool, .. } => Effect::Remote { server: server.clone(), tool: tool.clone() },
        Deed::Note => Effect::State { name: "todos".to_owned() },
        Deed::Anything => Effect::Opaque,
    }
}

fn ask(policy: &Policy, call: &Call) -> (Action, String) {
    let workspace = Workspace { cwd: abs(CWD), roots: vec![abs(CWD), abs(EXTRA)], home: Some(abs(HOME)) };
    let source = match &call.deed {
        Deed::Remote { server, tool, .. } => SourceId::Mcp { server: server.clone(), tool: tool.clone() },
        Deed::Read(_)
        | Deed::Search(_)
        | Deed::Write(_)
        | Deed::Run(_)
        | Deed::Fetch(_)
        | Deed::Ask(_)
        | Deed::Delegate(_)
        | Deed::Skill(..)
        | Deed::Note
        | Deed::Anything => SourceId::Builtin,
    };
    let tool = ToolIdentity {
        name: ToolName::new(call.tool),
        also: call.also.iter().map(|name| (*name).to_owned()).collect(),
        source,
        read_only: false,
        requires_interaction: call.needs_person,
    };
    let intent = Intent::new("do it", [effect(&call.deed)]);
    let survey = policy.survey(&intent, &workspace);
    let facts = facts(&survey);
    let opinions: Vec<HookOpinion> = call
        .opinions
        .iter()
        .map(|action| HookOpinion { by: "hook".to_owned(), action: *action, reason: None })
        .collect();
    let judgement = policy.decide(&Request {
        tool: &tool,
        input: &call.input,
        intent: &intent,
        survey: &survey,
        workspace: &workspace,
        facts: &facts,
        opinions: &opinions,
    });
    let action = match judgement.verdict {
        Verdict::Allow(_) => Action::Allow,
        Verdict::Ask(_) => Action::Ask,
        Verdict::Deny(_) => Action::Deny,
    };
    (action, judgement.verdict.reason().to_string())
}

fn facts(survey: &IntentSurvey) -> PathFacts {
    let mut facts = PathFacts::none();
    for asked in &survey.paths {
        let at = place(&asked.to_string());
        facts.insert(PathFact {
            asked: asked.clone(),
            real: abs(&at.real),
            links: at.links.iter().map(|link| abs(link)).collect(),
            kind: if at.shared { EntryKind::File } else { EntryKind::Missing },
            hard_linked: at.shared,
            problem: None,
        });
    }
    facts
}

/// Leaves out whatever can be left out while the two still differ.
fn smallest(mut written: Written, mut call: Call) -> Disagreement {
    let differs =
        |written: &Written, call: &Call| ask(&compile(written), call).0 != law::judge(written, call);
    let mut changed = true;
    while changed {
        changed = false;
        let mut candidates: Vec<(Written, Call)> = Vec::new();
        let mut change = |edit: &dyn Fn(&mut Written, &mut Call)| {
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
                if let Deed::Run(line) = &mut call.deed
                    && line.items.len() > 1
                    && at < line.items.len()
                {
                    line.items.remove(at);
                }
            });
        }
        let size = |written: &Written, call: &Call| format!("{written:?}{call:?}").len();
        let now = size(&written, &call);
        if let Some(found) =
            candidates.into_iter().find(|(written, call)| size(written, call) < now && differs(written, call))
        {
            (written, call) = found;
            changed = true;
        }
    }
    let command = match &call.deed {
        Deed::Run(line) => format!(" `{}`", line.text()),
        _ => String::new(),
    };
    Disagreement {
        model: law::judge(&written, &call),
        engine: ask(&compile(&written), &call),
        settings: format!("{written:?}"),
        call: format!("{}{command} {:?} {:?} {:?}", call.tool, call.deed, call.input, call.opinions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short run of `cargo xtask model`; every answer must be common, or the scenes prove little.
    #[test]
    fn the_engine_agrees_with_the_slow_model() {
        for seed in 0..4 {
            let mut comparison = Comparison::new(seed);
            while comparison.pairs < 2_500 {
                if let Err(found) = comparison.step() {
                    panic!("seed {seed}, after {} pairs: {found}", comparison.pairs);
                }
            }
            assert!(comparison.answers.iter().all(|count| *count > comparison.pairs / 8), "{comparison:?}");
        }
    }
}
