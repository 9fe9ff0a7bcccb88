//! What a subscriber of `tracing` sees of a call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use toolgate_gate::{CallOptions, FnTool, ToolSpec};
use toolgate_proto::{AbsPath, Effect, Intent, Output, SourceId, ToolCall};
use toolgate_testkit::{allow_all, gate_with, session_in};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes down spans as they are made, and events with the span they are in.
#[derive(Default, Clone)]
struct Scribe {
    next: Arc<AtomicU64>,
    lines: Arc<Mutex<Vec<String>>>,
    names: Arc<Mutex<Vec<(u64, String)>>>,
    inside: Arc<Mutex<Vec<u64>>>,
}

impl Scribe {
    fn name(&self, id: u64) -> String {
        let names = self.names.lock().unwrap();
        names.iter().find(|(known, _)| *known == id).map(|(_, name)| name.clone()).unwrap_or_default()
    }

    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

struct Fields<'a>(&'a Scribe);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.write(format!("{}={value:?}", field.name()));
    }
}

impl Subscriber for Scribe {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("toolgate") || metadata.target() == "tool"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        let name = span.metadata().name().to_owned();
        let parent = span.parent().map(|parent| self.name(parent.into_u64())).unwrap_or_default();
        self.write(format!("{parent}>{name}"));
        self.names.lock().unwrap().push((id, name));
        Id::from_u64(id)
    }

    fn record(&self, _span: &Id, values: &Record<'_>) {
        values.record(&mut Fields(self));
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {
        let inside = self.inside.lock().unwrap().last().copied().unwrap_or(0);
        self.write(format!("event in {}", self.name(inside)));
    }

    fn enter(&self, span: &Id) {
        self.inside.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _span: &Id) {
        self.inside.lock().unwrap().pop();
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct TracedInput {}

/// The variable by which the test tells its child process to do the work.
const CHILD_VARIABLE: &str = "TOOLGATE_TEST_SPANS";

/// In a process of its own: `tracing` caches for the whole process whether a place in the code has a subscriber, and
/// other tests reach the same places on other threads.
#[test]
fn a_call_has_a_span_with_one_for_each_stage_and_the_tool_is_inside() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "main::spans::span_child", "--nocapture"])
        .env(CHILD_VARIABLE, "1")
        .output()
        .unwrap();
    let printed =
        String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && printed.contains("spans compared"), "{printed}");
}

/// The child process of the test above. Does nothing in a normal test run.
#[test]
fn span_child() {
    if std::env::var_os(CHILD_VARIABLE).is_none() {
        return;
    }
    let (gate, _) = gate_with(allow_all(&["noop"]));
    let noop = FnTool::new(ToolSpec::new("noop", "Does nothing."), |_: TracedInput, _| async move {
        tracing::info!(target: "tool", "here");
        Ok(Output::text("x"))
    });
    let noop = noop.intent(|_, _| Intent::new("nothing", [Effect::State { name: "x".into() }]));
    gate.register(SourceId::Sdk, noop).unwrap();
    let scribe = Scribe::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let calls = || {
        for input in ["{}", "{"] {
            let call = ToolCall::new("c", "noop", input);
            let session = session_in(&AbsPath::root());
            let _ = runtime.block_on(gate.call(&session, call, CallOptions::default()));
        }
    };
    tracing::subscriber::with_default(scribe.clone(), calls);
    let lines = scribe.lines.lock().unwrap().join(" ");
    assert_eq!(
        lines,
        ">execute_tool execute_tool>resolve execute_tool>validate execute_tool>screen execute_tool>judge \
         execute_tool>settle execute_tool>guard execute_tool>run event in run execute_tool>finish \
         toolgate.verdict=\"allow\" \
         >execute_tool execute_tool>resolve execute_tool>validate execute_tool>finish \
         error.type=\"InvalidJsonError\""
    );
    println!("spans compared");
}
