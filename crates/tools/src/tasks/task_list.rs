//! `TaskList`: the tasks of the project.

use super::{TASK_GROUP, render_task, summary_fields, task_refusal};
use crate::state_stores::{shared_task_list, with_tasks};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Intent, Output};

/// Lists the tasks of the project.
pub(crate) struct TaskListTool;

/// Input of [`TaskListTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskListInput {}

impl Tool for TaskListTool {
    type Input = TaskListInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "TaskList",
            "Lists the project's tasks: `[ ]` pending, `[>]` in progress, `[x]` completed, with owner and open blockers.",
        )
        .with_group(TASK_GROUP)
        .read_only();
        spec.title = "List tasks".to_owned();
        spec.input_examples = vec![json!({})];
        spec
    }

    fn intent(&self, _input: &TaskListInput, _context: &CallContext) -> Intent {
        Intent::none("list tasks")
    }

    async fn run(&self, _input: TaskListInput, cleared: Cleared) -> CallResult {
        let list = shared_task_list(&cleared.context().session);
        let tasks = with_tasks(&cleared, move |store| store.list(&list)).await?;
        let tasks = tasks.map_err(|error| task_refusal(&error))?;
        let lines: Vec<String> = tasks.iter().map(render_task).collect();
        let text = if lines.is_empty() { "there are no tasks".to_owned() } else { lines.join("\n") };
        Ok(Output::text(text)
            .structured(json!({ "tasks": tasks.iter().map(summary_fields).collect::<Vec<_>>() })))
    }
}
