//! The time of a decision, by the number of rules.
//!
//! `cargo bench -p toolgate-policy`. Each decision is measured without its survey (the shell analysis has a benchmark of
//! its own) and without the facts, which the caller gathers.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set itself up should stop")]

use divan::{Bencher, black_box};
use serde_json::{Map, Value, json};
use toolgate_policy::{
    EntryKind, IntentSurvey, Layer, LayerRules, PathFact, PathFacts, Policy, PolicyRequest, RawPolicy,
    Workspace,
};
use toolgate_proto::{
    AbsPath, CommandLine, Effect, Intent, PathScope, ShellKind, SourceId, ToolIdentity, ToolName, WriteKind,
};

fn main() {
    divan::main();
}

const COUNTS: [usize; 4] = [10, 100, 1_000, 10_000];

fn abs(path: &str) -> AbsPath {
    AbsPath::new(path).unwrap()
}

/// A mix of rules like that of large settings files: commands, paths, hosts and MCP tools, mostly allowed.
fn rules(count: usize) -> RawPolicy {
    let mut layer = LayerRules::new(Layer::Project, abs("/ws"));
    for at in 0..count {
        let rule = match at % 10 {
            0 => format!("Bash(tool{at} run *)"),
            1 => format!("Bash(tool{at} build --target x{at})"),
            2 => format!("Bash(git log{at} * main)"),
            3 => format!("Edit(src/module{at}/**)"),
            4 => format!("Read(//opt/data{at}/**)"),
            5 => format!("WebFetch(domain:host{at}.example.com)"),
            6 => format!("mcp__server{at}__read_*"),
            7 => format!("Read(secret{at}/**)"),
            8 => format!("Edit(*.gen{at})"),
            _ => format!("Bash(deploy{at} *)"),
        };
        match at % 10 {
            7 | 8 => layer.deny.push(rule.into()),
            9 => layer.ask.push(rule.into()),
            _ => layer.allow.push(rule.into()),
        }
    }
    layer.allow.push("Bash(npm run *)".into());
    RawPolicy::default().with_layers(vec![layer])
}

/// One call with its survey and facts.
struct Call {
    tool: ToolIdentity,
    input: Map<String, Value>,
    intent: Intent,
    survey: IntentSurvey,
    facts: PathFacts,
    workspace: Workspace,
}

impl Call {
    fn new(policy: &Policy, name: &str, input: Value, effect: Effect) -> Self {
        let workspace = Workspace::new(abs("/ws")).with_home(abs("/home/u"));
        let intent = Intent::new(format!("call {name}"), [effect]);
        let survey = policy.survey(&intent, &workspace);
        let mut facts = PathFacts::none();
        for path in &survey.paths {
            facts.insert(PathFact::new(path.clone(), path.clone(), EntryKind::File));
        }
        let tool = ToolIdentity::new(ToolName::new(name), SourceId::Builtin);
        Self { tool, input: input.as_object().cloned().unwrap(), intent, survey, facts, workspace }
    }

    fn request(&self) -> PolicyRequest<'_> {
        PolicyRequest {
            tool: &self.tool,
            input: &self.input,
            intent: &self.intent,
            survey: &self.survey,
            workspace: &self.workspace,
            facts: &self.facts,
            opinions: &[],
        }
    }
}

fn measure(bencher: Bencher<'_, '_>, count: usize, name: &str, input: Value, effect: Effect) {
    let (policy, _) = rules(count).compile();
    let call = Call::new(&policy, name, input, effect);
    bencher.bench(|| policy.decide(black_box(&call.request())));
}

fn exec(text: &str) -> Effect {
    Effect::Exec { command: CommandLine::new(text, ShellKind::Bash, abs("/ws")) }
}

#[divan::bench(args = COUNTS)]
fn read(bencher: Bencher<'_, '_>, count: usize) {
    let effect = Effect::Read { path: abs("/ws/crates/policy/src/lib.rs"), scope: PathScope::Entry };
    measure(bencher, count, "Read", json!({ "file_path": "/ws/crates/policy/src/lib.rs" }), effect);
}

#[divan::bench(args = COUNTS)]
fn edit(bencher: Bencher<'_, '_>, count: usize) {
    let effect = Effect::Write { path: abs("/ws/src/module3/a.rs"), kind: WriteKind::Edit };
    measure(bencher, count, "Edit", json!({ "file_path": "/ws/src/module3/a.rs" }), effect);
}

#[divan::bench(args = COUNTS)]
fn command(bencher: Bencher<'_, '_>, count: usize) {
    let text = "npm run build -- --watch";
    measure(bencher, count, "Bash", json!({ "command": text }), exec(text));
}

#[divan::bench(args = COUNTS)]
fn compound(bencher: Bencher<'_, '_>, count: usize) {
    let text = "cd src && npm run lint | grep -v warning > out.txt";
    measure(bencher, count, "Bash", json!({ "command": text }), exec(text));
}

#[divan::bench(args = COUNTS)]
fn fetch(bencher: Bencher<'_, '_>, count: usize) {
    let url = "https://host5.example.com/guide/index.html";
    measure(bencher, count, "WebFetch", json!({ "url": url }), Effect::Fetch { url: url.to_owned() });
}

#[divan::bench(args = COUNTS)]
fn load(bencher: Bencher<'_, '_>, count: usize) {
    bencher.with_inputs(|| rules(count)).bench_values(|raw| raw.compile());
}
