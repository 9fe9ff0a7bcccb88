//! Command hooks for what happens around calls, such as the end of a turn or of a subagent.

use super::build_agent_hooks::is_guarded;
use super::callback::{build_event_input, read_agent_answer};
use super::capability_hooks::{HookTrustCheck, program_of};
use super::configured_hook::ConfiguredHook;
use super::matcher::{HookMatcher, event_subject};
use super::mcp_tool::GateSessionCell;
use super::{HookContext, output};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use toolgate_agent::{AgentHook, AgentHookAnswer, AgentHookEvent};
use toolgate_gate::{Hook, OnFailure};
use toolgate_process::{HookCommand, HookProcessOutput, HookProgram, run_hook};
use toolgate_proto::AbsPath;

/// A program that runs for an event of an agent.
pub(super) struct CommandAgentHook {
    /// For messages.
    name: String,
    event: AgentHookEvent,
    program: HookProgram,
    timeout: Duration,
    /// Whether a failure blocks what can be blocked.
    on_failure: OnFailure,
    env: Arc<Vec<(String, String)>>,
    /// Where it runs; absent means the session's directory.
    cwd: Option<AbsPath>,
    /// Where it runs while the session is not known.
    project: AbsPath,
    gate_cell: GateSessionCell,
    check: HookTrustCheck,
    /// What the event must be about.
    matcher: HookMatcher,
    /// What happens does not wait for it; it then decides nothing.
    background: Option<TaskTracker>,
}

impl CommandAgentHook {
    /// The hook, made of one that was checked like those for calls.
    pub(super) fn new(
        event: AgentHookEvent,
        hook: ConfiguredHook,
        context: &HookContext,
        check: &HookTrustCheck,
    ) -> Result<Self, String> {
        Ok(Self {
            event,
            program: program_of(&hook)?,
            timeout: hook.timeout,
            on_failure: hook.on_failure(),
            env: hook.env,
            name: hook.name,
            project: context.project.clone(),
            cwd: hook.cwd,
            gate_cell: Arc::clone(&context.gate_cell),
            check: Arc::clone(check),
            matcher: HookMatcher::All,
            background: hook.background.then_some(hook.tasks),
        })
    }

    /// The same, only where the event is about what the matcher of its group names.
    pub(super) fn with_matcher(mut self, matcher: Option<&str>) -> Result<Self, String> {
        self.matcher = HookMatcher::parse(matcher)?;
        Ok(self)
    }

    /// The program with the event.
    fn command(&self, fields: Map<String, Value>) -> HookCommand {
        let place = self.gate_cell.get().and_then(|(gate, session)| Some((gate.upgrade()?, session)));
        let cwd = place
            .as_ref()
            .map_or_else(|| self.project.clone(), |(_, session)| session.workspace().cwd.clone());
        let cwd = self.cwd.clone().unwrap_or(cwd);
        let input =
            build_event_input(place.as_ref().map(|(gate, session)| (gate, *session)), self.event, fields);
        HookCommand {
            program: self.program.clone(),
            cwd,
            env: self.env.to_vec(),
            stdin: Value::Object(input).to_string().into_bytes(),
            timeout: self.timeout,
            fault: None,
        }
    }

    /// Plain text of a program: for the events before the model works it is context for it.
    fn read_text(&self, stdout: &[u8]) -> AgentHookAnswer {
        let mut answer = AgentHookAnswer::default();
        if matches!(self.event, AgentHookEvent::UserPromptSubmit | AgentHookEvent::SessionStart) {
            let text = output::truncate_text(String::from_utf8_lossy(stdout).trim().to_owned());
            answer.context = Some(text).filter(|text| !text.is_empty());
        }
        answer
    }

    /// The answer by the exit code: with 0 the output decides, 2 blocks, any other code is a failure.
    fn interpret(&self, run: &HookProcessOutput) -> Result<AgentHookAnswer, String> {
        let stderr = output::truncate_text(String::from_utf8_lossy(&run.stderr).trim().to_owned());
        match run.code {
            Some(0) => Ok(match serde_json::from_slice::<Value>(&run.stdout) {
                Ok(answer) if answer.is_object() => read_agent_answer(self.event, &answer),
                Ok(_) | Err(_) => self.read_text(&run.stdout),
            }),
            Some(2) => {
                let mut answer = AgentHookAnswer::default();
                answer.block =
                    Some(if stderr.is_empty() { "a hook gave no reason".to_owned() } else { stderr });
                Ok(answer)
            }
            Some(code) => Err(format!("hook `{}` failed with exit code {code}: {stderr}", self.name)),
            None => Err(format!("hook `{}` was ended by a signal", self.name)),
        }
    }
}

impl AgentHook for CommandAgentHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn handles(&self, event: AgentHookEvent, fields: &Map<String, Value>) -> bool {
        self.event == event && self.matcher.matches_text(event_subject(event, fields))
    }

    /// A failure counts as an empty answer where the file says so, except that of a hook that may not run any more and
    /// guards something.
    fn handle<'a>(
        &'a self,
        event: AgentHookEvent,
        fields: Map<String, Value>,
    ) -> BoxFuture<'a, Result<AgentHookAnswer, String>> {
        Box::pin(async move {
            if let Err(why) = (self.check)() {
                let problem = format!("hook `{}` may not run: {why}", self.name);
                if is_guarded(event) {
                    return Err(problem);
                }
                let mut answer = AgentHookAnswer::default();
                answer.message = Some(problem);
                return Ok(answer);
            }
            let command = self.command(fields);
            if let Some(tasks) = &self.background {
                tasks.spawn(run_hook(command));
                return Ok(AgentHookAnswer::default());
            }
            let answer = match run_hook(command).await {
                Ok(run) => self.interpret(&run),
                Err(problem) => Err(format!("hook `{}` failed: {problem:?}", self.name)),
            };
            match (answer, self.on_failure) {
                (Err(problem), OnFailure::Continue) => {
                    let mut answer = AgentHookAnswer::default();
                    answer.message = Some(problem);
                    Ok(answer)
                }
                (answer, _) => answer,
            }
        })
    }
}
