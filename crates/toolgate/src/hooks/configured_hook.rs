//! A hook from settings, as an implementation of the gate's [`Hook`] trait.

use super::callback::HostCallback;
use super::condition::HookCondition;
use super::http::HttpHook;
use super::matcher::HookMatcher;
use super::mcp_reference::UnresolvedServers;
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
use toolgate_proto::{AbsPath, ToolIdentity};

/// A hook that settings configure.
pub(super) struct ConfiguredHook {
    /// The command, URL or tool, for records and messages.
    pub(super) name: String,
    /// The event that it handles.
    pub(super) event: HookEvent,
    /// The tools that it runs for.
    pub(super) matcher: HookMatcher,
    /// The parts of the matcher that name servers which were unknown when it was built.
    pub(super) unresolved_servers: Option<UnresolvedServers>,
    /// The calls of these tools that it runs for; all if absent.
    pub(super) condition: Option<HookCondition>,
    /// What running it means.
    pub(super) action: HookAction,
    /// How long it may run.
    pub(super) timeout: Duration,
    /// Whether a failure refuses the call.
    pub(super) on_failure: OnFailure,
    /// Whether it runs only once in a session.
    pub(super) once: bool,
    /// Whether the call does not wait for it; it then decides nothing.
    pub(super) background: bool,
    /// Where its program runs; absent means the session's directory.
    pub(super) cwd: Option<AbsPath>,
    /// The whole environment of its program.
    pub(super) env: Arc<Vec<(String, String)>>,
    /// Tracks background runs, so that the program can wait for them at its end.
    pub(super) tasks: TaskTracker,
    /// Fault injection for tests: the step that fails.
    pub(super) fault: Option<HookStep>,
}

/// What running a hook means.
pub(super) enum HookAction {
    /// Start a program.
    Command(HookProgram),
    /// Post to a server.
    Http(HttpHook),
    /// Call a tool of an MCP server.
    Tool(McpToolHook),
    /// Ask the host program.
    Callback(HostCallback),
    /// Fail with this reason: the configuration is invalid or not trusted, and the hook might have denied the call.
    Impossible(String),
}

/// The keys of the `once` hooks that ran in a session.
#[derive(Default)]
struct CompletedOnceHooks(Mutex<HashSet<String>>);

impl ConfiguredHook {
    /// Runs the handler with the input of an event. `purpose` is that of the call that the hook makes, where its handler is a tool.
    async fn run_handler(
        &self,
        input: Value,
        context: &CallContext,
        purpose: CallPurpose,
    ) -> Result<HookAnswer, HookFailure> {
        if matches!(self.action, HookAction::Tool(_)) && context.is_inside_hook() {
            return Ok(HookAnswer::default().with_detail("skipped for a call of a hook"));
        }
        if self.background {
            return Ok(self.start_in_background(input, context, purpose));
        }
        let body = |input: Value| input.to_string().into_bytes();
        match &self.action {
            HookAction::Command(program) => {
                command::run_command_hook(self.event, self.build_command(program, body(input), context)).await
            }
            HookAction::Http(server) => server.post_event(self.event, body(input), self.timeout).await,
            HookAction::Tool(tool) => tool.call_tool(self.event, &input, (purpose, self.timeout)).await,
            HookAction::Callback(callback) => callback.call_hook(self.event, input, self.timeout).await,
            HookAction::Impossible(why) => Err(HookFailure::Misconfigured(why.clone())),
        }
    }

    /// Starts the handler without waiting for it. Its answer is discarded.
    fn start_in_background(&self, input: Value, context: &CallContext, purpose: CallPurpose) -> HookAnswer {
        let (event, timeout) = (self.event, self.timeout);
        let body = input.to_string().into_bytes();
        match &self.action {
            HookAction::Command(program) => {
                let command = self.build_command(program, body, context);
                self.tasks.spawn(async move { drop(command::run_command_hook(event, command).await) });
            }
            HookAction::Http(server) => {
                let server = server.clone();
                self.tasks.spawn(async move { drop(server.post_event(event, body, timeout).await) });
            }
            HookAction::Tool(tool) => {
                let tool = tool.clone();
                self.tasks
                    .spawn(async move { drop(tool.call_tool(event, &input, (purpose, timeout)).await) });
            }
            // A host is never asked in the background.
            HookAction::Callback(_) | HookAction::Impossible(_) => {}
        }
        HookAnswer::default().with_detail("in the background")
    }

    /// The process to start.
    fn build_command(&self, program: &HookProgram, stdin: Vec<u8>, context: &CallContext) -> HookCommand {
        HookCommand {
            program: program.clone(),
            cwd: self.cwd.as_ref().unwrap_or(&context.workspace.cwd).clone(),
            env: self.env.to_vec(),
            stdin,
            timeout: self.timeout,
            fault: self.fault,
        }
    }

    /// Whether this `once` hook ran in the session.
    fn has_run(&self, context: &CallContext) -> bool {
        let completed = context.session.state::<CompletedOnceHooks>();
        let completed = completed.0.lock().unwrap_or_else(PoisonError::into_inner);
        completed.contains(&self.key())
    }

    /// Records that a `once` hook ran. A failed run is not recorded: the hook has not checked anything yet.
    fn mark_as_run(&self, context: &CallContext) {
        let completed = context.session.state::<CompletedOnceHooks>();
        completed.0.lock().unwrap_or_else(PoisonError::into_inner).insert(self.key());
    }

    /// Identifies the hook in the session.
    fn key(&self) -> String {
        format!("{} {}", self.event, self.name)
    }
}

impl Hook for ConfiguredHook {
    /// Names the hook in records and refusals.
    fn name(&self) -> &str {
        &self.name
    }

    /// Tests event and matcher. The condition needs the call's input, so `handle_call` tests it.
    fn handles(&self, event: HookEvent, tool: &ToolIdentity) -> bool {
        // Events of tasks are about a task and not about a tool, so they have no matcher.
        let is_task_event = matches!(event, HookEvent::TaskCreated | HookEvent::TaskCompleted);
        self.event == event
            && (is_task_event || self.matcher.matches(tool) || self.find_misspelled_server(tool).is_some())
    }

    /// Selects what a timeout or crash of the hook means for the call.
    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// The reason of an invalid configuration, for the calls that the condition selects.
    fn find_misconfiguration(&self, call: &HookCall<'_>) -> Option<String> {
        let why = match &self.action {
            HookAction::Impossible(why) => why.clone(),
            _ => self.find_misspelled_server(call.tool)?,
        };
        self.condition.as_ref().is_none_or(|condition| condition.matches(call)).then_some(why)
    }

    /// Runs the handler unless the condition excludes the call or a `once` hook has already run. Only a successful run
    /// counts for `once`, so a failed hook is tried again.
    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(async move {
            let matches = self.condition.as_ref().is_none_or(|condition| condition.matches(&call));
            if !matches || (self.once && self.has_run(call.context)) {
                return Ok(HookAnswer::default().with_detail("skipped"));
            }
            // A denial: `onFailure: continue` is about a hook that fails, not about a typo.
            if let Some(why) = self.find_misspelled_server(call.tool) {
                return Ok(HookAnswer::deny(why));
            }
            let answer =
                self.run_handler(input::build_call_input(&call), call.context, call.consultation()).await;
            if self.once && answer.is_ok() {
                self.mark_as_run(call.context);
            }
            answer
        })
    }

    /// Restricts batches to `PostToolBatch`, the only event that is raised per batch instead of per call.
    fn handles_batches(&self) -> bool {
        self.event == HookEvent::PostToolBatch
    }

    /// Runs the handler for a batch. Conditions and `once` are not evaluated for batches.
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

    /// A hook that would approve every call, with a fault.
    fn approving_hook(fault: HookStep) -> ConfiguredHook {
        ConfiguredHook {
            name: "approves".to_owned(),
            event: HookEvent::PreToolUse,
            matcher: HookMatcher::All,
            unresolved_servers: None,
            condition: None,
            action: HookAction::Command(HookProgram::Shell("echo '{\"decision\":\"approve\"}'".to_owned())),
            timeout: Duration::from_secs(60),
            on_failure: OnFailure::Deny,
            once: false,
            background: false,
            cwd: None,
            env: Arc::new(Vec::new()),
            tasks: TaskTracker::new(),
            fault: Some(fault),
        }
    }

    /// Each step of running a hook fails in turn, with and without an allow rule; the tool never runs.
    #[tokio::test]
    async fn no_fault_of_a_hook_ends_in_an_allow() {
        for step in HookStep::ALL {
            for policy in [allow_all(&[]), allow_all(&["probe"])] {
                for event in [HookEvent::PreToolUse, HookEvent::PermissionRequest] {
                    let allowed = policy.layers.iter().any(|layer| !layer.allow.is_empty());
                    if event == HookEvent::PermissionRequest && allowed {
                        continue;
                    }
                    let hook = ConfiguredHook { event, ..approving_hook(step) };
                    let parts =
                        GateParts::default().with_policy(policy.clone()).with_hooks(vec![Arc::new(hook)]);
                    let gate = Gate::new(parts);
                    let probe = ProbeTool::new("probe", ProbeBehaviour::Succeed);
                    gate.register(SourceId::Sdk, probe.clone()).unwrap();
                    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
                    let root = AbsPath::new("/tmp").unwrap();
                    let outcome = gate.call(&session_in(&root), call, CallOptions::default()).await;
                    assert!(outcome.result.is_err(), "{step:?} at {event}");
                    assert_eq!(probe.runs(), 0, "{step:?} at {event}");
                    assert_eq!(outcome.record.hooks.len(), 1, "{step:?} at {event}");
                }
            }
        }
    }
}
