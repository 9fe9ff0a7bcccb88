//! `write_todos`: the to-do list of the plain toolset, in both shapes that models are trained on.
//!
//! With `action` it changes one task of the project's list; with `todos` it replaces the session's list.

use super::{
    TASK_GROUP, change_effect, check_one_in_progress, indent_lines, parse_number, render_task, task_refusal,
};
use crate::state_stores::{own_task_list, shared_task_list, with_tasks};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Output, Refusal, Stage};
use toolgate_state::{NewTask, TaskChange, TaskError, TaskItem, TaskStatus};

/// Adds, completes, removes and lists tasks, or replaces them all.
pub(crate) struct WriteTodosTool;

/// Input of [`WriteTodosTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteTodosInput {
    /// What to do with one task of the project's list.
    action: Option<TodoAction>,
    /// The text of a task to add.
    task: Option<String>,
    /// The id of the task to complete or remove.
    id: Option<String>,
    /// Instead of `action`: the whole list of this session.
    todos: Option<Vec<DescribedTodo>>,
}

/// An operation on one task.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum TodoAction {
    Add,
    Complete,
    Remove,
    List,
}

/// A task of a whole list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct DescribedTodo {
    /// What to do.
    description: String,
    /// At most one is `in_progress`.
    status: DescribedStatus,
}

/// Where a task of a whole list stands.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum DescribedStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
    Blocked,
}

impl From<DescribedStatus> for TaskStatus {
    fn from(status: DescribedStatus) -> Self {
        match status {
            DescribedStatus::Pending => Self::Pending,
            DescribedStatus::InProgress => Self::InProgress,
            DescribedStatus::Completed => Self::Completed,
            DescribedStatus::Cancelled => Self::Cancelled,
            DescribedStatus::Blocked => Self::Blocked,
        }
    }
}

impl Tool for WriteTodosTool {
    type Input = WriteTodosInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "write_todos",
            "Keeps a to-do list: `action` adds, completes, removes or lists tasks of the project; `todos` replaces this \
             session's list at once.",
        )
        .with_group(TASK_GROUP);
        spec.title = "Manage todos".to_owned();
        spec.input_examples = vec![
            json!({ "action": "add", "task": "Run the tests" }),
            json!({ "todos": [{ "description": "Run the tests", "status": "in_progress" }] }),
        ];
        spec
    }

    /// Requires either `action` or `todos`, and the field that the action needs.
    fn check(&self, input: &WriteTodosInput) -> Result<(), Refusal> {
        let hint = "give `action` with its field (`task` for add, `id` for complete and remove), or the whole list as `todos`";
        let refuse =
            |reason: &str| Err(Refusal::new(Code::Todo, reason).hint(hint).at_stage(Stage::Validate));
        let is_empty = |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
        match (input.action, &input.todos) {
            (Some(TodoAction::Add), None) if is_empty(&input.task) => refuse("task required for add action"),
            (Some(TodoAction::Complete), None) if is_empty(&input.id) => {
                refuse("id required for complete action")
            }
            (Some(TodoAction::Remove), None) if is_empty(&input.id) => {
                refuse("id required for remove action")
            }
            (Some(_), None) => Ok(()),
            (None, Some(todos)) => {
                check_one_in_progress(todos.iter().map(|todo| todo.status.into()))?;
                match todos.iter().position(|todo| todo.description.trim().is_empty()) {
                    Some(at) => refuse(&format!("`todos[{at}].description` is empty")),
                    None => Ok(()),
                }
            }
            (None, None) | (Some(_), Some(_)) => refuse("give either `action` or `todos`"),
        }
    }

    fn intent(&self, input: &WriteTodosInput, _context: &CallContext) -> Intent {
        let id = input.id.as_deref().unwrap_or_default();
        match input.action {
            Some(TodoAction::List) => Intent::none("list todos"),
            Some(TodoAction::Add) => {
                let task = input.task.as_deref().unwrap_or_default();
                Intent::new(format!("add todo `{task}`"), [change_effect()])
            }
            Some(TodoAction::Complete) => Intent::new(format!("complete todo {id}"), [change_effect()]),
            Some(TodoAction::Remove) => Intent::new(format!("remove todo {id}"), [change_effect()]),
            None => Intent::new("write the todos of the session", [change_effect()]),
        }
    }

    /// Applies `action` to the project's shared list and `todos` to the session's own list.
    async fn run(&self, input: WriteTodosInput, cleared: Cleared) -> CallResult {
        let session = &cleared.context().session;
        let list = shared_task_list(session);
        let id = input.id.unwrap_or_default();
        let number = parse_number(&id).unwrap_or_default();
        let refuse = |error: TaskError| match error {
            TaskError::NotFound(_) => Refusal::new(Code::Todo, format!("todo not found: {id}"))
                .hint("list the todos with `action` `list`"),
            other => task_refusal(&other),
        };
        match input.action {
            Some(TodoAction::Add) => {
                let task = NewTask::new(input.task.unwrap_or_default());
                let task =
                    with_tasks(&cleared, move |store| store.create(&list, task)).await?.map_err(refuse)?;
                Ok(render_one("added", &task))
            }
            Some(TodoAction::Complete) => {
                let change = TaskChange::default().with_status(TaskStatus::Completed);
                let updated = with_tasks(&cleared, move |store| store.update(&list, number, change)).await?;
                Ok(render_one("completed", &updated.map_err(refuse)?.task))
            }
            Some(TodoAction::Remove) => {
                let removed = with_tasks(&cleared, move |store| store.remove(&list, number)).await?;
                Ok(render_one("removed", &removed.map_err(refuse)?))
            }
            Some(TodoAction::List) => {
                let tasks = with_tasks(&cleared, move |store| store.list(&list)).await?.map_err(refuse)?;
                Ok(render_list(&tasks))
            }
            None => {
                let list = own_task_list(session);
                let tasks: Vec<NewTask> = input.todos.unwrap_or_default().into_iter().map(to_task).collect();
                let replaced = with_tasks(&cleared, move |store| store.replace(&list, &tasks)).await?;
                Ok(render_list(&replaced.map_err(refuse)?.1))
            }
        }
    }
}

/// Converts an item of the input to a new task.
fn to_task(todo: DescribedTodo) -> NewTask {
    NewTask::new(todo.description).with_status(todo.status.into())
}

/// Renders a task as structured output, with `completed` as a boolean beside the status.
fn todo_fields(task: &TaskItem) -> Value {
    json!({
        "id": task.number.to_string(),
        "task": task.subject,
        "status": task.status,
        "completed": task.status == TaskStatus::Completed,
    })
}

/// Confirms one change. The model gets the id, the user's display the subject.
fn render_one(verb: &str, task: &TaskItem) -> Output {
    Output::text(format!("{verb} todo: {}", task.number))
        .display(format!("{verb}: {}", indent_lines(&task.subject)))
        .structured(json!({ "todo": todo_fields(task) }))
}

/// Renders a list, with a sentence in place of an empty one.
fn render_list(tasks: &[TaskItem]) -> Output {
    let lines: Vec<String> = tasks.iter().map(render_task).collect();
    let text = if lines.is_empty() { "there are no todos".to_owned() } else { lines.join("\n") };
    Output::text(text).structured(json!({ "todos": tasks.iter().map(todo_fields).collect::<Vec<_>>() }))
}
