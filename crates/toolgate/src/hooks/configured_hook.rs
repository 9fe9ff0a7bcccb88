//! One configured hook, as the gate knows it.

use super::condition::HookCondition;
use super::http::HttpHook;
use super::matcher::HookMatcher;
use super::mcp_tool::McpToolHook;
use super::{command, input};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolgate_gate::{
    CallContext, CallPurpose, Hook, HookAnswer, HookBatch, HookCall, HookEvent, HookFailure, OnFailure,
};
use toolgate_process::{HookCommand, HookProgram, HookStep};
use toolgate_proto::ToolIdentity;

/// A hook that settings configure.
pub(super) struct ConfiguredHook {
    pub(super) name: String,
    pub(super) moment: HookEvent,
    pub(super) matcher: HookMatcher,
    pub(super) condition: Option<HookCondition>,
    pub(super) action: HookAction,
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
pub(super) enum HookAction {
    /// A program is run.
    Command(HookProgram),
    /// A server is told.
    Http(HttpHook),
    /// A tool of an MCP server is called.
    Tool(McpToolHook),
    /// It cannot be done, for this reason. Such a hook fails, because nobody knows what it would have said.
    Impossible(String),
}

/// The hooks that were told in a session and are told once.
#[derive(Default)]
struct CompletedOnceHooks(Mutex<HashSet<String>>);

impl ConfiguredHook {
    /// `purpose` is that of a call that the hook makes, where it is a tool.
    async fn run_handler(
        &self,
        told: Value,
        scene: &CallContext,
        purpose: CallPurpose,
    ) -> Result<HookAnswer, HookFailure> {
        if matches!(self.action, HookAction::Tool(_)) && scene.is_inside_hook() {
            return Ok(HookAnswer::default().with_detail("not run for a call that a hook makes"));
        }
        if self.background {
            return Ok(self.start_in_background(told, scene, purpose));
        }
        let body = |told: Value| told.to_string().into_bytes();
        match &self.action {
            HookAction::Command(program) => {
                command::run(self.moment, self.build_command(program, body(told), scene)).await
            }
            HookAction::Http(server) => server.post_event(self.moment, body(told), self.timeout).await,
            HookAction::Tool(tool) => tool.call_tool(self.moment, &told, (purpose, self.timeout)).await,
            HookAction::Impossible(why) => Err(HookFailure::Misconfigured(why.clone())),
        }
    }

    /// Tells it without waiting. What it says then decides nothing.
    fn start_in_background(&self, told: Value, scene: &CallContext, purpose: CallPurpose) -> HookAnswer {
        let (moment, timeout) = (self.moment, self.timeout);
        let body = told.to_string().into_bytes();
        match &self.action {
            HookAction::Command(program) => {
                let command = self.build_command(program, body, scene);
                self.tasks.spawn(async move { drop(command::run(moment, command).await) });
            }
            HookAction::Http(server) => {
                let server = server.clone();
                self.tasks.spawn(async move { drop(server.post_event(moment, body, timeout).await) });
            }
            HookAction::Tool(tool) => {
                let tool = tool.clone();
                self.tasks
                    .spawn(async move { drop(tool.call_tool(moment, &told, (purpose, timeout)).await) });
            }
            HookAction::Impossible(_) => {}
        }
        HookAnswer::default().with_detail("in the background")
    }

    fn build_command(&self, program: &HookProgram, stdin: Vec<u8>, scene: &CallContext) -> HookCommand {
        HookCommand {
            program: program.clone(),
            cwd: scene.workspace.cwd.clone(),
            env: self.env.to_vec(),
            stdin,
            timeout: self.timeout,
            fault: self.fault,
        }
    }

    fn has_run(&self, scene: &CallContext) -> bool {
        let told = scene.session.state::<CompletedOnceHooks>();
        let told = told.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.contains(&self.key())
    }

    /// Remembers that it was told. Not after a failure: a guard that could not guard has not done its one duty.
    fn mark_as_run(&self, scene: &CallContext) {
        let told = scene.session.state::<CompletedOnceHooks>();
        told.0.lock().unwrap_or_else(PoisonError::into_inner).insert(self.key());
    }

    fn key(&self) -> String {
        format!("{} {}", self.moment, self.name)
    }
}

impl Hook for ConfiguredHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn handles(&self, moment: HookEvent, tool: &ToolIdentity) -> bool {
        self.moment == moment && self.matcher.matches(tool)
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(async move {
            let spoken_of = self.condition.as_ref().is_none_or(|condition| condition.matches(&call));
            if !spoken_of || (self.once && self.has_run(call.context)) {
                return Ok(HookAnswer::default().with_detail("not told"));
            }
            let said =
                self.run_handler(input::build_call_input(&call), call.context, call.consultation()).await;
            if self.once && said.is_ok() {
                self.mark_as_run(call.context);
            }
            said
        })
    }

    fn handles_batches(&self) -> bool {
        self.moment == HookEvent::PostToolBatch
    }

    fn handle_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(self.run_handler(input::build_batch_input(&batch), batch.context, batch.consultation()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_gate::{CallOptions, Gate, GateParts};
    use toolgate_proto::{AbsPath, SourceId, ToolCall};
    use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, session_in};

    fn consenting(fault: HookStep) -> ConfiguredHook {
        ConfiguredHook {
            name: "consents".to_owned(),
            moment: HookEvent::PreToolUse,
            matcher: HookMatcher::All,
            condition: None,
            action: HookAction::Command(HookProgram::Shell("echo '{\"decision\":\"approve\"}'".to_owned())),
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
                for moment in [HookEvent::PreToolUse, HookEvent::PermissionRequest] {
                    let allowed = policy.layers.iter().any(|layer| !layer.allow.is_empty());
                    if moment == HookEvent::PermissionRequest && allowed {
                        continue;
                    }
                    let hook = ConfiguredHook { moment, ..consenting(step) };
                    let parts =
                        GateParts::default().with_policy(policy.clone()).with_hooks(vec![Arc::new(hook)]);
                    let gate = Gate::new(parts);
                    let probe = ProbeTool::new("probe", ProbeBehaviour::Succeed);
                    gate.register(SourceId::Sdk, probe.clone()).unwrap();
                    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
                    let root = AbsPath::new("/tmp").unwrap();
                    let closed = gate.call(&session_in(&root), call, CallOptions::default()).await;
                    assert!(closed.result.is_err(), "{step:?} at {moment}");
                    assert_eq!(probe.runs(), 0, "{step:?} at {moment}");
                    assert_eq!(closed.record.hooks.len(), 1, "{step:?} at {moment}");
                }
            }
        }
    }
}
