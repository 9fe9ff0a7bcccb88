//! A session with a shell, and a count of what it leaves.

use serde_json::Value;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use toolgate_gate::{ApprovalAnswer, Approver, CallOptions, CallOutcome, Gate, GateParts, Session};
use toolgate_policy::{Enforcement, RawPolicy};
use toolgate_proto::{AbsPath, Mode, Output, Refusal, ToolCall};
use toolgate_testkit::{ApproverBehaviour, FakeApprover, allow_all, session_in};
use toolgate_tools::{ShellConfig, Toolset, register, set_shell_config};

pub(super) struct Desk {
    dir: tempfile::TempDir,
    pub(super) gate: Arc<Gate>,
    pub(super) session: Session,
    pub(super) mark: String,
}

/// The runtime of one test.
pub(super) fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

impl Desk {
    pub(super) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(super) fn with(change: impl FnOnce(&mut ShellConfig)) -> Self {
        Self::of(Toolset::Claude, change)
    }

    pub(super) fn of(toolset: Toolset, change: impl FnOnce(&mut ShellConfig)) -> Self {
        // These tests are about running: what a rule would leave to a person is not asked here, and the person
        // says yes to what no mode skips.
        Self::made(
            toolset,
            change,
            (&[], &[]),
            vec![Arc::new(FakeApprover(ApproverBehaviour::Answers(ApprovalAnswer::Once)))],
        )
    }

    /// A desk with more rules.
    pub(super) fn ruled(allow: &[&str], deny: &[&str], change: impl FnOnce(&mut ShellConfig)) -> Self {
        Self::made(Toolset::Claude, change, (allow, deny), Vec::new())
    }

    /// A desk without rules, where only what reads passes.
    pub(super) fn reading(change: impl FnOnce(&mut ShellConfig)) -> Self {
        let mut desk = Self::made(Toolset::Claude, change, (&[], &[]), Vec::new());
        let policy = RawPolicy { enforcement: Enforcement::Kernel, ..RawPolicy::default() };
        let gate = Gate::new(GateParts::default().with_policy(policy));
        register(&gate, Toolset::Claude).unwrap();
        desk.gate = Arc::new(gate);
        desk
    }

    /// A desk where nobody can be asked.
    pub(super) fn unattended() -> Self {
        Self::made(Toolset::Claude, |_| (), (&[], &[]), Vec::new())
    }

    /// A desk with these allow rules and no others, in a mode, where no approver is available.
    pub(super) fn strict(mode: Mode, allow: &[&str], change: impl FnOnce(&mut ShellConfig)) -> Self {
        let mut policy = allow_all(allow);
        policy.mode = mode;
        policy.enforcement = Enforcement::Kernel;
        Self::under(policy, Toolset::Claude, change, Vec::new())
    }

    fn made(
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
        Self::under(policy, toolset, change, approvers)
    }

    fn under(
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
        let mark = toolgate_files::generate_id("mark_");
        let mut surroundings = ShellConfig {
            environment: std::env::vars().collect(),
            set: BTreeMap::from([("TOOLGATE_TEST_MARK".to_owned(), mark.clone())]),
            temp_dir: top.join("temp"),
            ..ShellConfig::default()
        };
        change(&mut surroundings);
        set_shell_config(&session, surroundings);
        Self { dir, gate: Arc::new(gate), session, mark }
    }

    pub(super) fn path(&self, name: &str) -> AbsPath {
        AbsPath::new(self.dir.path().canonicalize().unwrap().join(name)).unwrap()
    }

    pub(super) async fn call(&self, tool: &str, input: Value) -> CallOutcome {
        self.call_within(tool, input, CallOptions::default()).await
    }

    pub(super) async fn call_within(&self, tool: &str, input: Value, limits: CallOptions) -> CallOutcome {
        let call = ToolCall::new(toolgate_files::generate_id("call_"), tool, input.to_string());
        self.gate.call(&self.session, call, limits).await
    }

    pub(super) async fn bash(&self, command: &str) -> CallOutcome {
        self.call("Bash", serde_json::json!({ "command": command })).await
    }

    /// Waits until at least so many processes carry the mark: one that is just becoming another program shows none.
    pub(super) fn wait_alive(&self, count: usize) {
        for _ in 0..1000 {
            if self.alive().len() >= count {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(self.alive().len() >= count, "{:?}", self.alive());
    }

    /// The processes that carry this desk's mark.
    pub(super) fn alive(&self) -> Vec<String> {
        alive(&self.mark)
    }
}

pub(super) fn alive(mark: &str) -> Vec<String> {
    let mark = format!("TOOLGATE_TEST_MARK={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// What a call produced, whichever way it ended.
pub(super) fn output(closed: &CallOutcome) -> Output {
    match &closed.result {
        Ok(output) => output.clone(),
        Err(Refusal { partial, .. }) => partial.as_deref().cloned().unwrap_or_default(),
    }
}

pub(super) fn structured(closed: &CallOutcome) -> Value {
    output(closed).structured.unwrap_or_default()
}
