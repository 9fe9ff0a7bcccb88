//! `TaskOutputTool`: what a command in the background has written.

use crate::shell::{ShellTask, ShellTasks, render_snapshot, task_summary};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_process::ProcessPhase;
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal};

const DEFAULT_WAIT_MILLIS: u64 = 30_000;
const MAX_OUTPUT_BYTES: usize = 30_000;

/// Gives the output of a command in the background.
pub(crate) struct TaskOutputTool;

/// Input of [`TaskOutputTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskOutputInput {
    /// Which command; without it, all of them are listed.
    task_id: Option<String>,
    /// An older name of `task_id`.
    bash_id: Option<String>,
    /// Wait for its end, no longer than `timeout`; true where absent.
    block: Option<bool>,
    /// Milliseconds to wait; 30000 where absent.
    #[schemars(range(min = 0, max = 600_000))]
    timeout: Option<u64>,
    /// The byte to start at, as the last answer gave it.
    offset: Option<u64>,
}

impl Tool for TaskOutputTool {
    type Input = TaskOutputInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "TaskOutput",
            "Gives the output of a command that runs in the background, and how it stands. Waits for its end unless \
             `block` is false. Go on with `offset` where there is more. Without `task_id` it lists the commands.",
        )
        .read_only();
        spec.title = "Output of a background command".to_owned();
        spec.aliases = vec!["BashOutput".to_owned()];
        spec.max_result_chars = 40_000;
        spec.input_examples = vec![json!({ "task_id": "task_1", "block": false, "offset": 2048 })];
        spec
    }

    fn intent(&self, input: &TaskOutputInput, _scene: &CallContext) -> Intent {
        let which = input.task_id.as_ref().or(input.bash_id.as_ref());
        let words = which
            .map_or_else(|| "list background commands".to_owned(), |id| format!("see the output of {id}"));
        Intent::new(words, [Effect::State { name: "background commands".to_owned() }])
    }

    async fn run(&self, input: TaskOutputInput, cleared: Cleared) -> CallResult {
        let tasks = cleared.context().session.state::<ShellTasks>();
        let Some(id) = input.task_id.or(input.bash_id) else {
            let lines: Vec<String> = tasks.all().iter().map(|task| task_summary(task)).collect();
            let text = if lines.is_empty() {
                "no command runs in the background".to_owned()
            } else {
                lines.join("\n")
            };
            return Ok(Output::text(text).structured(json!({ "tasks": lines })));
        };
        let task = find_task(&tasks, &id)?;
        if input.block.unwrap_or(true) {
            let most = Duration::from_millis(input.timeout.unwrap_or(DEFAULT_WAIT_MILLIS));
            let gone = task.wait_until(|process| matches!(process.phase(), ProcessPhase::AllExited(_)));
            tokio::select! {
                () = cleared.cancel().cancelled() => {
                    return Err(Refusal::new(Code::Cancelled, "the wait was cancelled; the command goes on"));
                }
                // Time that runs out is no error: the answer says how far it is.
                _ = tokio::time::timeout(most, gone) => {}
            }
        }
        Ok(render_snapshot(&task, input.offset.unwrap_or(0), MAX_OUTPUT_BYTES))
    }
}

/// A command of the session by its id.
pub(crate) fn find_task(tasks: &ShellTasks, id: &str) -> Result<Arc<ShellTask>, Refusal> {
    tasks.find(id).ok_or_else(|| {
        let known: Vec<String> = tasks.all().iter().map(|task| task.id.clone()).collect();
        let hint = if known.is_empty() {
            "no command of this session runs in the background".to_owned()
        } else {
            format!("there are: {}", known.join(", "))
        };
        Refusal::new(Code::BadArgument, format!("there is no background command `{id}`")).hint(hint)
    })
}
