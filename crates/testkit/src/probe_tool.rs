//! A probe: a fake tool whose behaviour the test chooses, and a session and a gate to run it.

use schemars::JsonSchema;
use serde::Deserialize;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use toolgate_gate::{CallContext, Cleared, Gate, GateParts, MemorySink, Session, Sink, Tool, ToolSpec};
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{AbsPath, CallResult, Code, Effect, Intent, Output, Principal, Refusal, Workspace};

/// What a [`ProbeTool`] does when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeBehaviour {
    /// Returns its text.
    Succeed,
    /// Fails with [`Code::ToolFailed`].
    Fail,
    /// Panics, as a tool with a bug does.
    Panic,
    /// Never returns, and ignores cancellation.
    Hang,
    /// Returns when it is cancelled, with partial output.
    UntilCancelled,
}

/// A tool that behaves as the test wants, and counts its runs.
#[derive(Debug, Clone)]
pub struct ProbeTool {
    /// The name by which it is called.
    name: String,
    /// Further names by which it is called.
    aliases: Vec<String>,
    /// What it does when it runs.
    behaviour: ProbeBehaviour,
    /// Shared by all clones, so that a test can count the runs of the registered one.
    runs: Arc<AtomicUsize>,
}

/// The input of a [`ProbeTool`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeInput {
    /// The text to return.
    pub text: String,
    /// How often to repeat the text.
    #[schemars(range(min = 1, max = 9))]
    pub times: Option<u8>,
}

impl ProbeTool {
    /// Creates a probe with a name.
    pub fn new(name: impl Into<String>, behaviour: ProbeBehaviour) -> Self {
        Self { name: name.into(), aliases: Vec::new(), behaviour, runs: Arc::default() }
    }

    /// Adds an alias.
    pub fn alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// How often it has run, all clones together.
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

    fn intent(&self, input: &ProbeInput, _context: &CallContext) -> Intent {
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
                ProbeBehaviour::Fail => Err(Refusal::new(Code::ToolFailed, "the probe was asked to fail")),
                ProbeBehaviour::Panic => panic_deliberately(),
                ProbeBehaviour::Hang => {
                    tokio::time::sleep(Duration::from_secs(1_000_000)).await;
                    Ok(Output::text("never reached"))
                }
                ProbeBehaviour::UntilCancelled => {
                    cleared.cancel().cancelled().await;
                    Err(Refusal::new(Code::Cancelled, "the probe was cancelled")
                        .with_partial(Output::text("partial output")))
                }
            }
        }
    }
}

/// Panics in a function of its own, so that the lint exception covers nothing else.
#[expect(clippy::panic, reason = "the behaviour that the test asked for")]
fn panic_deliberately() -> CallResult {
    panic!("the probe was asked to panic")
}

/// A workspace with one root, which is also its working directory.
pub fn workspace_at(root: &AbsPath) -> Workspace {
    Workspace::new(root.clone())
}

/// A session in [`workspace_at`] this root.
pub fn session_in(root: &AbsPath) -> Session {
    let principal = Principal::new("test");
    Session::new("ses_test".into(), principal, workspace_at(root))
}

/// A policy that allows every call of these tools.
pub fn allow_all(names: &[&str]) -> RawPolicy {
    let mut layer = LayerRules::new(Layer::Cli, AbsPath::root());
    layer.allow = names.iter().map(|name| (*name).into()).collect();
    RawPolicy::default().with_layers(vec![layer])
}

/// A gate with this policy, and the sink that keeps its records.
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
