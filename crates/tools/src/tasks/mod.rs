//! Task lists: `write_todos`, `TodoWrite` and the family of `TaskCreate`, three adapters of one store.
//!
//! An adapter that changes one task at a time uses the list of the project, which every session and agent shares.
//! An adapter that replaces all tasks at once uses a list of the session's own.

mod task_create;
mod task_get;
mod task_list;
mod task_update;
mod todo_write;
mod write_todos;

pub(crate) use task_create::TaskCreateTool;
pub(crate) use task_get::TaskGetTool;
pub(crate) use task_list::TaskListTool;
pub(crate) use task_update::TaskUpdateTool;
pub(crate) use todo_write::TodoWriteTool;
pub(crate) use write_todos::WriteTodosTool;

use serde_json::{Map, Value, json};
use toolgate_proto::{Code, Effect, Refusal};
use toolgate_state::{TaskError, TaskItem, TaskStatus};

/// The group of these tools.
const TASK_GROUP: &str = "tasks";

/// What a call that changes a list does.
fn change_effect() -> Effect {
    Effect::State { name: "tasks".to_owned() }
}

/// The refusal of an operation.
fn task_refusal(error: &TaskError) -> Refusal {
    Refusal::new(Code::Todo, error.to_string())
}

/// The number in an id, which models also write as `#3`.
fn parse_number(id: &str) -> Option<u32> {
    id.trim().trim_start_matches('#').parse().ok()
}

/// A list may have one task in progress: an agent that works on two has finished neither.
fn check_one_in_progress(statuses: impl Iterator<Item = TaskStatus>) -> Result<(), Refusal> {
    match statuses.filter(|status| *status == TaskStatus::InProgress).count() {
        0 | 1 => Ok(()),
        count => Err(Refusal::new(
            Code::BadArgument,
            format!("{count} tasks are `in_progress`; at most one may be at a time"),
        )),
    }
}

/// A text of several lines with the later ones indented, so that none of them can pass for another entry.
fn indent_lines(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("\n      ")
}

/// One line of a list: mark, number, status where it is not clear from the mark, subject, owner, blockers.
fn render_task(task: &TaskItem) -> String {
    let mark = match task.status {
        TaskStatus::Completed => "x",
        TaskStatus::InProgress => ">",
        TaskStatus::Cancelled => "-",
        TaskStatus::Blocked => "!",
        TaskStatus::Pending => " ",
    };
    let mut line = format!("[{mark}] {}: {}", task.number, indent_lines(&task.subject));
    if let Some(owner) = &task.owner {
        line.push_str(&format!(" ({})", indent_lines(owner)));
    }
    if !task.blocked_by.is_empty() && !task.status.is_closed() {
        line.push_str(&format!(" [waits for {}]", join_ids(&task.blocked_by)));
    }
    line
}

/// Joins task numbers for the text that a model reads.
fn join_ids(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Converts task numbers to strings, since the tool schemas define ids as strings.
fn ids(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(u32::to_string).collect()
}

/// The fields of a task that hooks get.
fn hook_fields(task: &TaskItem) -> Map<String, Value> {
    let fields = json!({
        "task_id": task.number.to_string(),
        "task_subject": task.subject,
        "task_description": task.description,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The fields of a task that lists show.
fn summary_fields(task: &TaskItem) -> Value {
    json!({
        "id": task.number.to_string(),
        "subject": task.subject,
        "status": task.status,
        "owner": task.owner,
        "blockedBy": ids(&task.blocked_by),
    })
}
