//! `TaskGet`: one task with all its fields.

use super::{TASK_GROUP, ids, parse_number, render_task, task_refusal};
use crate::state_stores::{shared_task_list, with_tasks};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Intent, Output};
use toolgate_state::TaskItem;

/// Shows a task of the project's list.
pub(crate) struct TaskGetTool;

/// Input of [`TaskGetTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TaskGetInput {
    /// The id of the task.
    task_id: String,
}

impl Tool for TaskGetTool {
    type Input = TaskGetInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new("TaskGet", "Shows a task of the project's list with all its fields.")
            .with_group(TASK_GROUP)
            .read_only();
        spec.title = "Show a task".to_owned();
        spec.input_examples = vec![json!({ "taskId": "1" })];
        spec
    }

    fn intent(&self, input: &TaskGetInput, _context: &CallContext) -> Intent {
        Intent::none(format!("show task {}", input.task_id))
    }

    /// Answers an unknown id with `null`, because a task can be removed by another agent at any time.
    async fn run(&self, input: TaskGetInput, cleared: Cleared) -> CallResult {
        let list = shared_task_list(&cleared.context().session);
        let task = match parse_number(&input.task_id) {
            Some(number) => with_tasks(&cleared, move |store| store.get(&list, number))
                .await?
                .map_err(|error| task_refusal(&error))?,
            None => None,
        };
        Ok(match task {
            Some(task) => render_whole_task(&task),
            None => Output::text(format!("there is no task `{}`", input.task_id))
                .structured(json!({ "task": null })),
        })
    }
}

/// Renders all fields of a task, including the revision that a conditional update needs.
fn render_whole_task(task: &TaskItem) -> Output {
    let mut text = format!("{}\nstatus: {}, revision {}", render_task(task), task.status, task.revision);
    if !task.description.is_empty() {
        text.push_str(&format!("\n\n{}", task.description));
    }
    for note in &task.notes {
        let author = note.author.as_deref().unwrap_or("unknown");
        text.push_str(&format!("\n\nnote by {author}: {}", note.text));
    }
    Output::text(text).structured(json!({ "task": {
        "id": task.number.to_string(),
        "subject": task.subject,
        "description": task.description,
        "activeForm": task.active_form,
        "status": task.status,
        "owner": task.owner,
        "metadata": task.metadata,
        "blocks": ids(&task.blocks),
        "blockedBy": ids(&task.blocked_by),
        "notes": task.notes,
        "revision": task.revision,
    } }))
}
