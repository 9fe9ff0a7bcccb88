//! A tool that does as it is told, and a gate to put it behind.

use schemars::JsonSchema;
use serde::Deserialize;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use toolgate_gate::{CallContext, Cleared, Gate, GateParts, MemorySink, Session, Sink, Tool, ToolSpec};
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, Principal, Refusal, Workspace};

/// What a [`ProbeTool`] does when it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeBehaviour {
    /// Succeeds.
    Succeed,
    /// Fails with a refusal.
    Fail,
    /// Panics.
    Panic,
    /// Never ends, and ignores cancellation.
    Hang,
    /// Ends when it is cancelled.
    UntilCancelled,
}

/// A tool that does as it is told and counts its runs.
#[derive(Debug, Clone)]
pub struct ProbeTool {
    name: String,
    aliases: Vec<String>,
    behaviour: ProbeBehaviour,
    runs: Arc<AtomicUsize>,
}

/// Input of a [`ProbeTool`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeInput {
    /// Any text.
    pub text: String,
    /// How often to say it.
    #[schemars(range(min = 1, max = 9))]
    pub times: Option<u8>,
}

impl ProbeTool {
    /// A probe of this name.
    pub fn new(name: impl Into<String>, behaviour: ProbeBehaviour) -> Self {
        Self { name: name.into(), aliases: Vec::new(), behaviour, runs: Arc::default() }
    }

    /// The same, with another name beside its own.
    pub fn alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// How often it has been run.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

impl Tool for ProbeTool {
    type Input = ProbeInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(self.name.as_str(), format!("The probe {}.", self.name));
        spec.aliases.clone_from(&self.aliases);
        spec
    }

    fn intent(&self, input: &ProbeInput, _scene: &CallContext) -> Intent {
        Intent::new(
            format!("probe {} with {}", self.name, input.text),
            [Effect::State { name: format!("probe {}", self.name) }],
        )
    }

    fn run(&self, input: ProbeInput, cleared: Cleared) -> impl Future<Output = CallResult> + Send {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let behaviour = self.behaviour;
        async move {
            match behaviour {
                ProbeBehaviour::Succeed => {
                    Ok(Output::text(input.text.repeat(usize::from(input.times.unwrap_or(1)))))
                }
                ProbeBehaviour::Fail => Err(Refusal::new(Code::ToolFailed, "told to fail")),
                ProbeBehaviour::Panic => panic_deliberately(),
                ProbeBehaviour::Hang => {
                    tokio::time::sleep(Duration::from_secs(1_000_000)).await;
                    Ok(Output::text("overslept"))
                }
                ProbeBehaviour::UntilCancelled => {
                    cleared.cancel().cancelled().await;
                    Err(Refusal::new(Code::Cancelled, "noticed").with_partial(Output::text("so far")))
                }
            }
        }
    }
}

#[expect(clippy::panic, reason = "that is what this fake is for")]
fn panic_deliberately() -> CallResult {
    panic!("told to panic")
}

/// A workspace with one root.
pub fn workspace_at(root: &AbsPath) -> Workspace {
    Workspace { cwd: root.clone(), roots: vec![root.clone()], home: None }
}

/// A session that works there.
pub fn session_in(root: &AbsPath) -> Session {
    let principal = Principal::new("test");
    Session::new("ses_test".into(), principal, workspace_at(root))
}

/// Rules that allow these tools.
pub fn allow_all(names: &[&str]) -> RawPolicy {
    let mut layer = LayerRules::new(Layer::Cli, AbsPath::root());
    layer.allow = names.iter().map(|name| (*name).into()).collect();
    RawPolicy { layers: vec![layer], ..RawPolicy::default() }
}

/// A gate with this policy that remembers its records.
pub fn gate_with(policy: RawPolicy) -> (Gate, Arc<MemorySink>) {
    let sink = Arc::new(MemorySink::new());
    let gate = Gate::new(
        GateParts::default()
            .with_policy(policy)
            .with_sinks(vec![Arc::clone(&sink) as Arc<dyn Sink>])
            .with_grace(Duration::from_millis(5)),
    );
    (gate, sink)
}
