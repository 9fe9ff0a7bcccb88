//! A session with a shell, and a way to find the processes that it left running.

use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use toolgate_gate::{ApprovalAnswer, Approver, CallOptions, CallOutcome, Gate, GateParts, Session};
use toolgate_policy::{Enforcement, RawPolicy};
use toolgate_proto::{AbsPath, Mode, Output, Refusal, ToolCall};
use toolgate_testkit::{ApproverBehaviour, FakeApprover, allow_all, session_in};
use toolgate_tools::{ShellConfig, Toolset, register, set_shell_config};

/// How long processes may take to come or to go on a busy machine.
pub(super) const MAX_PROCESS_WAIT: std::time::Duration = std::time::Duration::from_secs(120);

/// A gate and a session in a temporary directory with `ws` (the workspace), `temp` and `home`.
pub(super) struct ShellFixture {
    dir: tempfile::TempDir,
    pub(super) gate: Arc<Gate>,
    pub(super) session: Session,
    /// The value of an environment variable by which the processes of this fixture are found.
    pub(super) marker: String,
}

/// Runs one test on a runtime of its own.
pub(super) fn block_on_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

impl ShellFixture {
    pub(super) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(super) fn with(change: impl FnOnce(&mut ShellConfig)) -> Self {
        Self::of(Toolset::Claude, change)
    }

    pub(super) fn of(toolset: Toolset, change: impl FnOnce(&mut ShellConfig)) -> Self {
        // These tests are about running commands: bypass mode skips most questions, and the approver allows the rest.
        Self::with_rules(
            toolset,
            change,
            (&[], &[]),
            vec![Arc::new(FakeApprover(ApproverBehaviour::Answers(ApprovalAnswer::Once)))],
        )
    }

    /// With further rules, and no approver.
    pub(super) fn with_extra_rules(
        allow: &[&str],
        deny: &[&str],
        change: impl FnOnce(&mut ShellConfig),
    ) -> Self {
        Self::with_rules(Toolset::Claude, change, (allow, deny), Vec::new())
    }

    /// Without rules, so that only read-only commands are allowed.
    pub(super) fn read_only(change: impl FnOnce(&mut ShellConfig)) -> Self {
        let mut fixture = Self::with_rules(Toolset::Claude, change, (&[], &[]), Vec::new());
        let policy = RawPolicy::default().with_enforcement(Enforcement::Kernel);
        let gate = Gate::new(GateParts::default().with_policy(policy));
        register(&gate, Toolset::Claude).unwrap();
        fixture.gate = Arc::new(gate);
        fixture
    }

    /// Without an approver.
    pub(super) fn without_approver() -> Self {
        Self::with_rules(Toolset::Claude, |_| (), (&[], &[]), Vec::new())
    }

    /// With a mode and these allow rules only, and no approver.
    pub(super) fn with_mode(mode: Mode, allow: &[&str], change: impl FnOnce(&mut ShellConfig)) -> Self {
        let mut policy = allow_all(allow);
        policy.mode = mode;
        policy.enforcement = Enforcement::Kernel;
        Self::with_policy(policy, Toolset::Claude, change, Vec::new())
    }

    /// In mode bypass, with these allow rules and an approver.
    #[cfg(feature = "web")]
    pub(super) fn with_user(allow: &[&str], user: Arc<dyn Approver>) -> Self {
        let mut policy = allow_all(allow);
        policy.mode = Mode::Bypass;
        policy.enforcement = Enforcement::Kernel;
        Self::with_policy(policy, Toolset::Claude, |_| (), vec![user])
    }

    fn with_rules(
        toolset: Toolset,
        change: impl FnOnce(&mut ShellConfig),
        (allow, deny): (&[&str], &[&str]),
        approvers: Vec<Arc<dyn Approver>>,
    ) -> Self {
        let mut policy = allow_all(&["Bash", "TaskOutput", "TaskStop"]);
        policy.mode = Mode::Bypass;
        if let Some(rules) = policy.layers.first_mut() {
            rules.allow.extend(allow.iter().map(|rule| (*rule).into()));
            rules.deny.extend(deny.iter().map(|rule| (*rule).into()));
        }
        Self::with_policy(policy, toolset, change, approvers)
    }

    fn with_policy(
        policy: RawPolicy,
        toolset: Toolset,
        change: impl FnOnce(&mut ShellConfig),
        approvers: Vec<Arc<dyn Approver>>,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ws", "temp", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let gate = Gate::new(GateParts::default().with_policy(policy).with_approvers(approvers));
        register(&gate, toolset).unwrap();
        let session = session_in(&top.join("ws"));
        let marker = toolgate_files::generate_id("mark_");
        let mut config = ShellConfig::new(std::env::vars().collect(), top.join("temp"));
        config.set = BTreeMap::from([("TOOLGATE_TEST_MARK".to_owned(), marker.clone())]);
        change(&mut config);
        set_shell_config(&session, config);
        Self { dir, gate: Arc::new(gate), session, marker }
    }

    pub(super) fn path(&self, name: &str) -> AbsPath {
        AbsPath::new(self.dir.path().canonicalize().unwrap().join(name)).unwrap()
    }

    pub(super) async fn call(&self, tool: &str, input: Value) -> CallOutcome {
        self.call_within(tool, input, CallOptions::default()).await
    }

    pub(super) async fn call_within(&self, tool: &str, input: Value, options: CallOptions) -> CallOutcome {
        let call = ToolCall::new(toolgate_files::generate_id("call_"), tool, input.to_string());
        self.gate.call(&self.session, call, options).await
    }

    pub(super) async fn bash(&self, command: &str) -> CallOutcome {
        self.call("Bash", serde_json::json!({ "command": command })).await
    }

    /// Waits until at least this many processes have the marker; a process has no environment while it executes `execve`.
    pub(super) fn wait_for_processes(&self, count: usize) {
        let started = std::time::Instant::now();
        while self.live_processes().len() < count {
            assert!(started.elapsed() < MAX_PROCESS_WAIT, "{:?}", self.live_processes());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// The command lines of the processes with this fixture's marker.
    pub(super) fn live_processes(&self) -> Vec<String> {
        live_processes(&self.marker)
    }
}

/// The command lines of all processes with a marker.
pub(super) fn live_processes(marker: &str) -> Vec<String> {
    let variable = format!("TOOLGATE_TEST_MARK={marker}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// The output of a call that succeeded, or the partial output of one that was refused.
pub(super) fn output(outcome: &CallOutcome) -> Output {
    match &outcome.result {
        Ok(output) => output.clone(),
        Err(Refusal { partial, .. }) => partial.as_deref().cloned().unwrap_or_default(),
    }
}

pub(super) fn structured(outcome: &CallOutcome) -> Value {
    output(outcome).structured.unwrap_or_default()
}
