//! Command hooks for what happens around calls: the start and the end of a subagent.

use super::callback::{build_moment_event, read_agent_answer};
use super::capability_hooks::{HookTrustCheck, program_of};
use super::configured_hook::ConfiguredHook;
use super::mcp_tool::GateSessionCell;
use super::{HookContext, output};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use toolgate_agent::{AgentHook, AgentHookAnswer, AgentMoment};
use toolgate_gate::{Hook, OnFailure};
use toolgate_process::{HookCommand, HookProcessOutput, HookProgram, run_hook};
use toolgate_proto::AbsPath;

/// A program that runs at a moment of an agent.
pub(super) struct CommandMomentHook {
    /// For messages.
    name: String,
    moment: AgentMoment,
    program: HookProgram,
    timeout: Duration,
    /// Whether a failure blocks what can be blocked.
    on_failure: OnFailure,
    env: Arc<Vec<(String, String)>>,
    /// Where it runs while the session is not known.
    project: AbsPath,
    gate_cell: GateSessionCell,
    check: HookTrustCheck,
}

impl CommandMomentHook {
    /// The hook, made of one that was checked like those for calls.
    pub(super) fn new(
        moment: AgentMoment,
        hook: ConfiguredHook,
        context: &HookContext,
        check: &HookTrustCheck,
    ) -> Result<Self, String> {
        Ok(Self {
            moment,
            program: program_of(&hook)?,
            timeout: hook.timeout,
            on_failure: hook.on_failure(),
            env: hook.env,
            name: hook.name,
            project: context.project.clone(),
            gate_cell: Arc::clone(&context.gate_cell),
            check: Arc::clone(check),
        })
    }

    /// Runs the program with the event.
    async fn run(&self, fields: Map<String, Value>) -> Result<HookProcessOutput, String> {
        let place = self.gate_cell.get().and_then(|(gate, session)| Some((gate.upgrade()?, session)));
        let cwd = place
            .as_ref()
            .map_or_else(|| self.project.clone(), |(_, session)| session.workspace().cwd.clone());
        let event =
            build_moment_event(place.as_ref().map(|(gate, session)| (gate, *session)), self.moment, fields);
        let command = HookCommand {
            program: self.program.clone(),
            cwd,
            env: self.env.to_vec(),
            stdin: Value::Object(event).to_string().into_bytes(),
            timeout: self.timeout,
            fault: None,
        };
        run_hook(command).await.map_err(|problem| format!("hook `{}` failed: {problem:?}", self.name))
    }

    /// The answer by the exit code: with 0 the output decides, 2 blocks, any other code is a failure.
    fn interpret(&self, run: &HookProcessOutput) -> Result<AgentHookAnswer, String> {
        let stderr = output::truncate_text(String::from_utf8_lossy(&run.stderr).trim().to_owned());
        match run.code {
            Some(0) => Ok(match serde_json::from_slice::<Value>(&run.stdout) {
                Ok(answer) if answer.is_object() => read_agent_answer(&answer),
                Ok(_) | Err(_) => AgentHookAnswer::default(),
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

impl AgentHook for CommandMomentHook {
    fn handles(&self, moment: AgentMoment) -> bool {
        self.moment == moment
    }

    /// A failure counts as an empty answer where the file says so, except that of a hook that may not run any more.
    fn handle<'a>(
        &'a self,
        _: AgentMoment,
        fields: Map<String, Value>,
    ) -> BoxFuture<'a, Result<AgentHookAnswer, String>> {
        Box::pin(async move {
            (self.check)().map_err(|why| format!("hook `{}` may not run: {why}", self.name))?;
            let answer = match self.run(fields).await {
                Ok(run) => self.interpret(&run),
                Err(problem) => Err(problem),
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
