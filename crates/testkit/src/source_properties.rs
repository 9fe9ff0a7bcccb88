//! The properties that every source of tools has: it touches its own tools only, and leaves nothing behind.

use crate::probe_tool::{ProbeBehaviour, ProbeTool, session_in};
use crate::tool_properties::tool_names;
use std::sync::Arc;
use toolgate_gate::{Gate, GateParts, RegisterError, Source};
use toolgate_proto::{AbsPath, SourceId};

/// Adds sources made by `make` to fresh gates, and checks what must hold of every source. Panics where it does not.
/// Must be called inside a Tokio runtime.
#[expect(clippy::panic, reason = "a broken property must fail the test")]
pub async fn check_source_properties(make: impl Fn() -> Arc<dyn Source>) {
    let gate = Arc::new(Gate::new(GateParts::default()));
    let (other, probe) = (other_source(), ProbeTool::new("probe_of_another_source", ProbeBehaviour::Succeed));
    if let Err(problem) = gate.register(other.clone(), probe) {
        panic!("{problem}");
    }
    let source = make();
    if source.id() != source.id() {
        panic!("a source has one identity");
    }
    let attached = match gate.add_source(source) {
        Ok(attached) => attached,
        Err(problem) => panic!("the source cannot be added: {problem}"),
    };
    let before = attached.tools().names();
    check_definitions(&gate, &before);

    if let Err(problem) = attached.refresh().await {
        panic!("the source cannot be refreshed: {problem}");
    }
    let after = attached.tools().names();
    if let Some(lost) = before.iter().find(|name| !after.contains(name)) {
        panic!("a refresh lost `{lost}`, which the source still has");
    }

    attached.close().await;
    if let Some(left) = after.iter().find(|name| gate.definition(name).is_some()) {
        panic!("`{left}` is still there after its source was closed");
    }
    let late = attached.tools().register(ProbeTool::new("late", ProbeBehaviour::Succeed));
    if !matches!(late, Err(RegisterError::SourceClosed { .. })) || gate.definition("late").is_some() {
        panic!("a closed source registered a tool");
    }
    if !gate.unregister(&other, "probe_of_another_source") {
        panic!("the source removed the tool of another");
    }
    for taken in &before {
        check_collision(&make, taken);
    }
}

/// Names a source whose tools must survive whatever the tested source does.
fn other_source() -> SourceId {
    SourceId::Plugin { plugin: "another".to_owned() }
}

/// Checks that every registered name resolves to a definition with a description, which models need.
#[expect(clippy::panic, reason = "a broken property must fail the test")]
fn check_definitions(gate: &Gate, names: &[String]) {
    for name in names {
        match gate.definition(name) {
            Some(definition) if definition.description.is_empty() => panic!("`{name}` has no description"),
            Some(_) => {}
            None => panic!("`{name}` is registered and cannot be found"),
        }
    }
}

/// A source one of whose names is taken is not added, and leaves neither its tools nor the other's in another state.
#[expect(clippy::panic, reason = "a broken property must fail the test")]
fn check_collision(make: &impl Fn() -> Arc<dyn Source>, taken: &str) {
    let gate = Arc::new(Gate::new(GateParts::default()));
    if let Err(problem) = gate.register(other_source(), ProbeTool::new(taken, ProbeBehaviour::Succeed)) {
        panic!("{problem}");
    }
    if gate.add_source(make()).is_ok() {
        panic!("two tools are called `{taken}`");
    }
    if !gate.unregister(&other_source(), taken) {
        panic!("the source replaced `{taken}` of another source");
    }
    if let Some(left) = tool_names(&gate, &session_in(&AbsPath::root())).first() {
        panic!("`{left}` was kept although its source was not added");
    }
}
