//! `TaskStop`: end a command in the background.
//!
//! Both toolsets use the same tool, and it keeps the older names `KillShell` and `KillBash` as aliases.
//! It returns when every process of the command has exited, so that a port or a lock is free for the next command.

#[cfg(feature = "web")]
use crate::monitor::{WatchedSocket, find_socket};
use crate::shell::{ShellTasks, stop_task, task_summary};
use crate::task_output::find_task;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal};

/// Stops a background command and every process that it started: SIGTERM, then SIGKILL after the grace period.
pub(crate) struct TaskStopTool;

/// Input of [`TaskStopTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskStopInput {
    /// The id of the command.
    task_id: Option<String>,
    /// Older name of `task_id`.
    shell_id: Option<String>,
}

impl Tool for TaskStopTool {
    type Input = TaskStopInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "TaskStop",
            "Stops a command in the background and every process that it started: first with SIGTERM, then with \
             SIGKILL.",
        );
        spec.title = "Stop a background command".to_owned();
        spec.aliases = vec!["KillShell".to_owned(), "KillBash".to_owned()];
        spec.idempotent = true;
        spec.input_examples = vec![json!({ "task_id": "task_1" })];
        spec
    }

    /// Accepts either spelling of the id: `shell_id` belongs to the older name of the tool.
    fn check(&self, input: &TaskStopInput) -> Result<(), Refusal> {
        match (&input.task_id, &input.shell_id) {
            (None, None) => Err(Refusal::new(Code::BadArgument, "`task_id` is missing")),
            (Some(_), _) | (_, Some(_)) => Ok(()),
        }
    }

    fn intent(&self, input: &TaskStopInput, _context: &CallContext) -> Intent {
        let id = input.task_id.as_ref().or(input.shell_id.as_ref()).map_or("", String::as_str);
        Intent::new(format!("stop {id}"), [Effect::State { name: "background commands".to_owned() }])
    }

    /// Stops the command. A command that has already ended is a success; a process that survives SIGKILL is an error.
    async fn run(&self, input: TaskStopInput, cleared: Cleared) -> CallResult {
        let id = input.task_id.or(input.shell_id).unwrap_or_default();
        #[cfg(feature = "web")]
        if let Some(socket) = find_socket(&cleared.context().session, &id) {
            return Ok(stop_socket(&socket));
        }
        let tasks = cleared.context().session.state::<ShellTasks>();
        let task = find_task(&tasks, &id)?;
        let message = if task.is_live() {
            stop_task(&task).await;
            format!("stopped {}", task_summary(&task))
        } else {
            format!("it had already ended: {}", task_summary(&task))
        };
        if task.is_live() {
            return Err(Refusal::new(
                Code::ShellFailed,
                format!("a process of it survived SIGKILL: {}", task_summary(&task)),
            ));
        }
        Ok(Output::text(message.clone()).structured(json!({
            "message": message,
            "task_id": task.id,
            "task_type": "shell",
            "command": task.command,
        })))
    }
}

/// Closes a WebSocket that is watched.
#[cfg(feature = "web")]
fn stop_socket(socket: &WatchedSocket) -> Output {
    let verb = if socket.is_live() { "stopped" } else { "it had already ended:" };
    socket.close();
    let message = format!("{verb} {}", socket.summary());
    Output::text(message.clone()).structured(json!({
        "message": message,
        "task_id": socket.id,
        "task_type": "websocket",
    }))
}
