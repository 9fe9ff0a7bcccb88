//! `TodoWrite`: replace the session's whole list at once.

use super::{TASK_GROUP, change_effect, check_one_in_progress, render_task, task_refusal};
use crate::state_stores::{own_task_list, with_tasks};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Output, Refusal, format_count};
use toolgate_state::{NewTask, TaskItem, TaskStatus};

/// Replaces the session's list.
pub(crate) struct TodoWriteTool;

/// Input of [`TodoWriteTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoWriteInput {
    /// The whole list.
    todos: Vec<TodoEntry>,
}

/// One task of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct TodoEntry {
    /// What to do: "Run tests".
    content: String,
    status: TodoStatus,
    /// Shown while it is in progress: "Running tests".
    active_form: String,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl From<TodoStatus> for TaskStatus {
    /// Maps to the common status; this tool knows no cancelled or blocked items.
    fn from(status: TodoStatus) -> Self {
        match status {
            TodoStatus::Pending => Self::Pending,
            TodoStatus::InProgress => Self::InProgress,
            TodoStatus::Completed => Self::Completed,
        }
    }
}

impl Tool for TodoWriteTool {
    type Input = TodoWriteInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "TodoWrite",
            "Replaces this session's list of steps. For work of three or more steps: at most one is `in_progress`, and \
             each is set `completed` as soon as it is done.",
        )
        .with_group(TASK_GROUP)
        .with_idempotent(true);
        spec.title = "Write the to-do list".to_owned();
        spec.input_examples = vec![json!({ "todos": [
            { "content": "Run tests", "status": "in_progress", "activeForm": "Running tests" }
        ] })];
        spec
    }

    /// Refuses a list with two tasks in progress or one without a text.
    fn check(&self, input: &TodoWriteInput) -> Result<(), Refusal> {
        check_one_in_progress(input.todos.iter().map(|todo| todo.status.into()))?;
        match input.todos.iter().position(|todo| todo.content.trim().is_empty()) {
            Some(at) => Err(Refusal::new(Code::BadArgument, format!("`todos[{at}].content` is empty"))),
            None => Ok(()),
        }
    }

    fn intent(&self, input: &TodoWriteInput, _context: &CallContext) -> Intent {
        Intent::new(
            format!("write {}", format_count(input.todos.len() as u64, "todo", "todos")),
            [change_effect()],
        )
    }

    /// Replaces the list of this session only. The project's shared list belongs to the `Task` tools.
    async fn run(&self, input: TodoWriteInput, cleared: Cleared) -> CallResult {
        let list = own_task_list(&cleared.context().session);
        let tasks: Vec<NewTask> = input
            .todos
            .into_iter()
            .map(|todo| {
                let mut task = NewTask::new(todo.content).with_status(todo.status.into());
                task.active_form = Some(todo.active_form);
                task
            })
            .collect();
        let replaced = with_tasks(&cleared, move |store| store.replace(&list, &tasks)).await?;
        let (old, new) = replaced.map_err(|error| task_refusal(&error))?;
        let lines: Vec<String> = new.iter().map(render_task).collect();
        let text = if lines.is_empty() { "the list is empty".to_owned() } else { lines.join("\n") };
        let todos = |tasks: &[TaskItem]| tasks.iter().map(todo_fields).collect::<Vec<Value>>();
        Ok(Output::text(text).structured(json!({ "oldTodos": todos(&old), "newTodos": todos(&new) })))
    }
}

/// Renders the fields that the tool's input uses, so that a model can send the list back with changes.
fn todo_fields(task: &TaskItem) -> Value {
    json!({ "content": task.subject, "status": task.status, "activeForm": task.active_form })
}
