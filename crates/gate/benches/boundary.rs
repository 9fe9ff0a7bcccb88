//! What crossing the boundary costs, apart from what the tool does.
//!
//! Run with `cargo bench -p toolgate-gate --bench boundary`.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench fails by panicking and makes its own files"
)]

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use serde_json::json;
use std::sync::Arc;
use tokio::runtime::Runtime;
use toolgate_gate::ledger::LedgerSink;
use toolgate_gate::{CallOptions, FnTool, Gate, GateParts, Session, Sink, ToolSpec};
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{
    AbsPath, DefinitionFormat, Effect, Intent, Output, SourceId, ToolCall, render_definitions,
};
use toolgate_testkit::session_in;
use toolgate_tools::Toolset;

fn main() {
    divan::main();
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct BenchInput {
    /// Any text.
    text: String,
}

fn runtime_of(threads: usize) -> tokio::runtime::Runtime {
    match threads {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        _ => runtime(),
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// A gate with this many rules of which the last allows the tool, and a tool that does nothing.
fn gate(rules: usize, sinks: Vec<Arc<dyn Sink>>) -> Gate {
    let mut layer = LayerRules::new(Layer::User, AbsPath::root());
    layer.allow = (0..rules).map(|rule| format!("some_tool_{rule}").into()).collect();
    layer.allow.push("noop".into());
    let policy = RawPolicy::default().with_layers(vec![layer]);
    let gate = Gate::new(GateParts::default().with_policy(policy).with_sinks(sinks));
    let noop = FnTool::new(ToolSpec::new("noop", "Does nothing."), |input: BenchInput, _| async move {
        Ok(Output::text(input.text))
    });
    let noop = noop.intent(|_, _| Intent::new("nothing", [Effect::State { name: "nothing".into() }]));
    gate.register(SourceId::Sdk, noop).unwrap();
    gate
}

fn call_once(runtime: &Runtime, gate: &Gate, session: &Session, input: &str) {
    let call = ToolCall::new("call_1", "noop", input);
    let closed = runtime.block_on(gate.call(session, call, CallOptions::default()));
    assert!(black_box(closed).result.is_ok());
}

#[divan::bench(args = [0, 100, 10_000])]
fn a_call_of_a_tool_that_does_nothing(bencher: Bencher, rules: usize) {
    let (runtime, gate, session) = (runtime(), gate(rules, Vec::new()), session_in(&AbsPath::root()));
    bencher.bench_local(|| call_once(&runtime, &gate, &session, r#"{"text":"x"}"#));
}

#[divan::bench(args = [0, 100, 10_000])]
fn the_same_with_the_ledger_on(bencher: Bencher, rules: usize) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = LedgerSink::open(&AbsPath::new(dir.path()).unwrap(), 1 << 30).unwrap();
    let gate = gate(rules, vec![Arc::new(ledger)]);
    let (runtime, session) = (runtime(), session_in(&AbsPath::root()));
    bencher.bench_local(|| call_once(&runtime, &gate, &session, r#"{"text":"x"}"#));
}

#[divan::bench(args = [100, 1_000_000])]
fn checking_an_input_of_so_many_bytes(bencher: Bencher, bytes: usize) {
    let (gate, session) = (gate(0, Vec::new()), session_in(&AbsPath::root()));
    let call = ToolCall::new("c", "noop", json!({ "text": "x".repeat(bytes - 11) }).to_string());
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| gate.derive_intent(&session, black_box(&call)).unwrap());
}

#[divan::bench(args = [DefinitionFormat::Anthropic, DefinitionFormat::Openai, DefinitionFormat::Mcp])]
fn rendering_definitions(bencher: Bencher, format: DefinitionFormat) {
    let (gate, session) = (gate(0, Vec::new()), session_in(&AbsPath::root()));
    toolgate_tools::register(&gate, Toolset::Claude).unwrap();
    bencher.bench_local(|| render_definitions(&gate.definitions(&session), format).to_string());
}

/// A thousand calls that do nothing, one by one: to be taken off the next figure.
#[divan::bench(args = [1, 2], sample_count = 30)]
fn a_thousand_calls_one_by_one(bencher: Bencher, threads: usize) {
    let (runtime, gate, session) = (runtime_of(threads), gate(0, Vec::new()), session_in(&AbsPath::root()));
    bencher.counter(ItemsCount::new(1_000usize)).bench_local(|| {
        runtime.block_on(async {
            for _ in 0..1_000 {
                let call = ToolCall::new("call_1", "noop", r#"{"text":"x"}"#);
                black_box(gate.call(&session, call, CallOptions::default()).await);
            }
        });
    });
}

/// The same as a batch. All lay hold of one state, so each waits for the one before. With two threads each call also
/// pays for waking the other one, which is the kernel's time and not the schedule's.
#[divan::bench(args = [1, 2], sample_count = 30)]
fn a_thousand_calls_as_a_batch_in_a_row(bencher: Bencher, threads: usize) {
    let (runtime, gate) = (runtime_of(threads), Arc::new(gate(0, Vec::new())));
    let session = session_in(&AbsPath::root());
    bencher.counter(ItemsCount::new(1_000usize)).bench_local(|| {
        let calls = (0..1_000).map(|_| ToolCall::new("call_1", "noop", r#"{"text":"x"}"#)).collect();
        black_box(runtime.block_on(gate.call_batch(&session, calls, CallOptions::default())));
    });
}

struct Reads {
    dir: tempfile::TempDir,
    gate: Arc<Gate>,
    session: Session,
}

fn reads(files: usize, writable: bool) -> Reads {
    let dir = tempfile::tempdir().unwrap();
    let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    for file in 0..files {
        std::fs::write(root.join(format!("f{file}")), "0123456789abcde\n".repeat(256)).unwrap();
    }
    let mut layer = LayerRules::new(Layer::User, AbsPath::root());
    layer.allow.push("touch".into());
    let policy = RawPolicy::default().with_layers(vec![layer]);
    let gate = Gate::new(GateParts::default().with_policy(policy).with_batch_chars(usize::MAX));
    toolgate_tools::register(&gate, Toolset::Plain).unwrap();
    if writable {
        let touch =
            FnTool::new(ToolSpec::new("touch", "Claims a path."), |input: BenchInput, _| async move {
                Ok(Output::text(input.text))
            });
        let touch = touch.intent(|input, context| {
            let path = context.absolute_path(&input.text);
            Intent::new("touch", [Effect::Write { path, kind: toolgate_proto::WriteKind::Edit }])
        });
        gate.register(SourceId::Sdk, touch).unwrap();
    }
    Reads { session: session_in(&root), gate: Arc::new(gate), dir }
}

fn read_calls(count: usize) -> Vec<ToolCall> {
    (0..count)
        .map(|file| ToolCall::new("call_1", "read_file", json!({ "path": format!("f{file}") }).to_string()))
        .collect()
}

#[divan::bench(sample_count = 100)]
fn a_hundred_reads_of_4_kb_one_by_one(bencher: Bencher) {
    let reads = reads(100, false);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    bencher.counter(ItemsCount::new(100usize)).bench_local(|| {
        runtime.block_on(async {
            for call in read_calls(100) {
                black_box(reads.gate.call(&reads.session, call, CallOptions::default()).await);
            }
        });
    });
    drop(reads.dir);
}

#[divan::bench(sample_count = 100)]
fn a_hundred_reads_of_4_kb_as_a_batch(bencher: Bencher) {
    let reads = reads(100, false);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    bencher.counter(ItemsCount::new(100usize)).bench_local(|| {
        let batch = reads.gate.call_batch(&reads.session, read_calls(100), CallOptions::default());
        black_box(runtime.block_on(batch));
    });
    drop(reads.dir);
}

/// A thousand calls that each claim a file of their own: the schedule with paths to resolve and trees to search.
#[divan::bench(args = [false, true], sample_count = 30)]
fn a_thousand_claims_of_files(bencher: Bencher, batched: bool) {
    let reads = reads(1_000, true);
    let runtime = runtime();
    bencher.counter(ItemsCount::new(1_000usize)).bench_local(|| {
        let calls: Vec<ToolCall> = (0..1_000)
            .map(|file| ToolCall::new("call_1", "touch", json!({ "text": format!("f{file}") }).to_string()))
            .collect();
        runtime.block_on(async {
            if batched {
                black_box(reads.gate.call_batch(&reads.session, calls, CallOptions::default()).await);
            } else {
                for call in calls {
                    black_box(reads.gate.call(&reads.session, call, CallOptions::default()).await);
                }
            }
        });
    });
    drop(reads.dir);
}
