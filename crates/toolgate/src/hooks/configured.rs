//! One configured hook, as the gate knows it.

use super::condition::Condition;
use super::http::Server;
use super::matcher::Matcher;
use super::tool::McpToolHook;
use super::{command, input};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolgate_gate::{Hook, HookAnswer, HookBatch, HookCall, HookFailure, Moment, OnFailure, Scene};
use toolgate_os::{HookCommand, HookProgram, HookStep};
use toolgate_proto::ToolIdentity;

/// A hook that settings configure.
pub(super) struct Configured {
    pub(super) name: String,
    pub(super) moment: Moment,
    pub(super) matcher: Matcher,
    pub(super) condition: Option<Condition>,
    pub(super) action: Action,
    pub(super) timeout: Duration,
    pub(super) on_failure: OnFailure,
    pub(super) once: bool,
    pub(super) background: bool,
    /// The whole environment of its program.
    pub(super) env: Arc<Vec<(String, String)>>,
    /// What runs in the background.
    pub(super) tasks: TaskTracker,
    /// A step that fails, for tests.
    pub(super) fault: Option<HookStep>,
}

/// What telling it means.
pub(super) enum Action {
    /// A program is run.
    Command(HookProgram),
    /// A server is told.
    Http(Server),
    /// A tool of an MCP server is called.
    Tool(McpToolHook),
    /// It cannot be done, for this reason. Such a hook fails, because nobody knows what it would have said.
    Impossible(String),
}

/// The hooks that were told in a session and are told once.
#[derive(Default)]
struct CompletedOnceHooks(Mutex<HashSet<String>>);

impl Configured {
    async fn tell_all(&self, told: Value, scene: &Scene) -> Result<HookAnswer, HookFailure> {
        if self.background {
            return Ok(self.start(told, scene));
        }
        let body = |told: Value| told.to_string().into_bytes();
        match &self.action {
            Action::Command(program) => {
                command::run(self.moment, self.command(program, body(told), scene)).await
            }
            Action::Http(server) => server.tell(self.moment, body(told), self.timeout).await,
            Action::Tool(tool) => tool.tell(self.moment, &told, self.timeout).await,
            Action::Impossible(why) => Err(HookFailure::Misconfigured(why.clone())),
        }
    }

    /// Tells it without waiting. What it says then decides nothing.
    fn start(&self, told: Value, scene: &Scene) -> HookAnswer {
        let (moment, timeout) = (self.moment, self.timeout);
        let body = told.to_string().into_bytes();
        match &self.action {
            Action::Command(program) => {
                let command = self.command(program, body, scene);
                self.tasks.spawn(async move { drop(command::run(moment, command).await) });
            }
            Action::Http(server) => {
                let server = server.clone();
                self.tasks.spawn(async move { drop(server.tell(moment, body, timeout).await) });
            }
            Action::Tool(tool) => {
                let tool = tool.clone();
                self.tasks.spawn(async move { drop(tool.tell(moment, &told, timeout).await) });
            }
            Action::Impossible(_) => {}
        }
        HookAnswer { detail: Some("in the background".to_owned()), ..HookAnswer::default() }
    }

    fn command(&self, program: &HookProgram, stdin: Vec<u8>, scene: &Scene) -> HookCommand {
        HookCommand {
            program: program.clone(),
            cwd: scene.workspace.cwd.clone(),
            env: self.env.to_vec(),
            stdin,
            timeout: self.timeout,
            fault: self.fault,
        }
    }

    fn has_run(&self, scene: &Scene) -> bool {
        let told = scene.session.state::<CompletedOnceHooks>();
        let told = told.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.contains(&self.key())
    }

    /// Remembers that it was told. Not after a failure: a guard that could not guard has not done its one duty.
    fn remember(&self, scene: &Scene) {
        let told = scene.session.state::<CompletedOnceHooks>();
        told.0.lock().unwrap_or_else(PoisonError::into_inner).insert(self.key());
    }

    fn key(&self) -> String {
        format!("{} {}", self.moment, self.name)
    }
}

impl Hook for Configured {
    fn name(&self) -> &str {
        &self.name
    }

    fn wants(&self, moment: Moment, tool: &ToolIdentity) -> bool {
        self.moment == moment && self.matcher.matches(tool)
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn tell<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(async move {
            let spoken_of = self.condition.as_ref().is_none_or(|condition| condition.holds(&call));
            if !spoken_of || (self.once && self.has_run(call.scene)) {
                return Ok(HookAnswer { detail: Some("not told".to_owned()), ..HookAnswer::default() });
            }
            let said = self.tell_all(input::of_call(&call), call.scene).await;
            if self.once && said.is_ok() {
                self.remember(call.scene);
            }
            said
        })
    }

    fn wants_batches(&self) -> bool {
        self.moment == Moment::PostToolBatch
    }

    fn tell_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(self.tell_all(input::build_batch_input(&batch), batch.scene))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_gate::{CallLimits, Gate, GateParts};
    use toolgate_proto::{AbsPath, SourceId, ToolCall};
    use toolgate_testkit::{Probe, ProbeBehaviour, allow_all, session_in};

    fn consenting(fault: HookStep) -> Configured {
        Configured {
            name: "consents".to_owned(),
            moment: Moment::PreToolUse,
            matcher: Matcher::All,
            condition: None,
            action: Action::Command(HookProgram::Shell("echo '{\"decision\":\"approve\"}'".to_owned())),
            timeout: Duration::from_secs(60),
            on_failure: OnFailure::Deny,
            once: false,
            background: false,
            env: Arc::new(Vec::new()),
            tasks: TaskTracker::new(),
            fault: Some(fault),
        }
    }

    /// Each step of talking to a hook is failed in turn; no fault ends in a run, with or without a rule that allows.
    #[tokio::test]
    async fn no_fault_of_a_hook_ends_in_an_allow() {
        for step in HookStep::ALL {
            for policy in [allow_all(&[]), allow_all(&["probe"])] {
                for moment in [Moment::PreToolUse, Moment::PermissionRequest] {
                    let allowed = policy.layers.iter().any(|layer| !layer.allow.is_empty());
                    if moment == Moment::PermissionRequest && allowed {
                        continue;
                    }
                    let hook = Configured { moment, ..consenting(step) };
                    let parts = GateParts {
                        policy: policy.clone(),
                        hooks: vec![Arc::new(hook)],
                        ..GateParts::default()
                    };
                    let gate = Gate::new(parts);
                    let probe = Probe::new("probe", ProbeBehaviour::Succeed);
                    gate.register(SourceId::Sdk, probe.clone()).unwrap();
                    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
                    let root = AbsPath::new("/tmp").unwrap();
                    let closed = gate.call(&session_in(&root), call, CallLimits::default()).await;
                    assert!(closed.result.is_err(), "{step:?} at {moment}");
                    assert_eq!(probe.runs(), 0, "{step:?} at {moment}");
                    assert_eq!(closed.record.hooks.len(), 1, "{step:?} at {moment}");
                }
            }
        }
    }
}
