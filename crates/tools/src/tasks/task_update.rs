//! `TaskUpdate`: change, claim, complete or remove a task.
//!
//! A change that cannot be made is a result with `success: false`, as models expect it; only a store that cannot be
//! used is a refusal.

use super::{TASK_GROUP, change_effect, hook_fields, parse_number, task_refusal};
use crate::state_stores::{shared_task_list, with_tasks};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::{CallContext, Cleared, HookEvent, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Output, Refusal};
use toolgate_state::{TaskChange, TaskError, TaskNote, TaskStatus, TaskUpdate};

/// Changes a task of the project's list.
pub(crate) struct TaskUpdateTool;

/// Input of [`TaskUpdateTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TaskUpdateInput {
    /// The id of the task.
    task_id: String,
    subject: Option<String>,
    description: Option<String>,
    active_form: Option<String>,
    /// `in_progress` claims the task; `deleted` removes it.
    status: Option<TaskStatusInput>,
    /// The agent that works on it; default of a claim: this session.
    owner: Option<String>,
    /// Ids of tasks that wait for this one.
    #[serde(default)]
    add_blocks: Vec<String>,
    /// Ids of tasks that this one waits for.
    #[serde(default)]
    add_blocked_by: Vec<String>,
    /// Values to set; null removes a key.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// A note to add.
    note: Option<String>,
    /// The revision that TaskGet showed: refused if the task has changed since.
    revision: Option<u32>,
}

/// A status as models name it.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum TaskStatusInput {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl TaskStatusInput {
    /// The status to store; `None` for the removal.
    fn to_status(self) -> Option<TaskStatus> {
        match self {
            Self::Pending => Some(TaskStatus::Pending),
            Self::InProgress => Some(TaskStatus::InProgress),
            Self::Completed => Some(TaskStatus::Completed),
            Self::Deleted => None,
        }
    }
}

impl Tool for TaskUpdateTool {
    type Input = TaskUpdateInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "TaskUpdate",
            "Changes a task of the project's list. Claim it with status `in_progress` before you begin: a task that \
             another agent has claimed or that waits for open tasks is refused. Set `completed` only when it is done.",
        )
        .with_group(TASK_GROUP);
        spec.title = "Update a task".to_owned();
        spec.input_examples = vec![
            json!({ "taskId": "1", "status": "in_progress" }),
            json!({ "taskId": "2", "addBlockedBy": ["1"] }),
        ];
        spec
    }

    /// Checks the ids of dependencies only; an unknown `taskId` is reported as a failed update.
    fn check(&self, input: &TaskUpdateInput) -> Result<(), Refusal> {
        let bad = input.add_blocks.iter().chain(&input.add_blocked_by).find(|id| parse_number(id).is_none());
        match bad {
            Some(id) => Err(Refusal::new(Code::BadArgument, format!("`{id}` is not the id of a task"))),
            None => Ok(()),
        }
    }

    fn intent(&self, input: &TaskUpdateInput, _context: &CallContext) -> Intent {
        Intent::new(format!("update task {}", input.task_id), [change_effect()])
    }

    /// Applies all changes in one update of the store. The status `deleted` removes the task.
    async fn run(&self, input: TaskUpdateInput, cleared: Cleared) -> CallResult {
        let list = shared_task_list(&cleared.context().session);
        let id = input.task_id.clone();
        let Some(number) = parse_number(&id) else {
            return Ok(render_failure(&id, &format!("there is no task `{id}`")));
        };
        if input.status.is_some_and(|status| status.to_status().is_none()) {
            let removed = with_tasks(&cleared, move |store| store.remove(&list, number)).await?;
            return match removed {
                Ok(task) => {
                    Ok(render_success(&id, &["deleted"], Some((task.status.as_str(), "deleted")), "removed"))
                }
                Err(error) => render_error(&id, &error),
            };
        }
        if input.status.and_then(TaskStatusInput::to_status) == Some(TaskStatus::Completed) {
            let shared = list.clone();
            let task = with_tasks(&cleared, move |store| store.get(&shared, number)).await?;
            // An unknown task is reported by the update; one that is completed already is not completed again.
            if let Ok(Some(task)) = task
                && task.status != TaskStatus::Completed
            {
                cleared.run_hooks(HookEvent::TaskCompleted, &hook_fields(&task)).await?;
            }
        }
        let session = cleared.context().session.id().to_string();
        let change = to_change(input, session);
        match with_tasks(&cleared, move |store| store.update(&list, number, change)).await? {
            Ok(TaskUpdate { old_status, changed, task, .. }) => {
                let status =
                    (old_status != task.status).then_some((old_status.as_str(), task.status.as_str()));
                Ok(render_success(&id, &changed, status, "updated"))
            }
            Err(error) => render_error(&id, &error),
        }
    }
}

/// The change that an input asks for, made by a session.
fn to_change(input: TaskUpdateInput, session: String) -> TaskChange {
    let numbers = |ids: &[String]| ids.iter().filter_map(|id| parse_number(id)).collect();
    let mut change = TaskChange::default();
    change.add_blocks = numbers(&input.add_blocks);
    change.add_blocked_by = numbers(&input.add_blocked_by);
    change.subject = input.subject;
    change.description = input.description;
    change.active_form = input.active_form;
    change.status = input.status.and_then(TaskStatusInput::to_status);
    change.note = input
        .note
        .map(|text| TaskNote::new(text).with_author(input.owner.clone().or_else(|| Some(session.clone()))));
    change.owner = input.owner;
    change.claimant = Some(session);
    change.metadata = input.metadata;
    change.expected_revision = input.revision;
    change
}

/// Renders the result of an update or removal, with the change of status if there is one.
fn render_success(id: &str, fields: &[&str], status: Option<(&str, &str)>, verb: &str) -> Output {
    let mut value = json!({ "success": true, "taskId": id, "updatedFields": fields });
    let mut text = format!("{verb} task {id}");
    if verb == "updated" {
        text.push_str(&format!(
            ": {}",
            if fields.is_empty() { "no change".to_owned() } else { fields.join(", ") }
        ));
    }
    if let (Some((from, to)), Value::Object(members)) = (status, &mut value) {
        members.insert("statusChange".to_owned(), json!({ "from": from, "to": to }));
    }
    Output::text(text).structured(value)
}

/// Renders a rejected change as a result with `success: false`, so that a model can react to it.
fn render_failure(id: &str, error: &str) -> Output {
    Output::text(format!("not updated: {error}"))
        .structured(json!({ "success": false, "taskId": id, "updatedFields": [], "error": error }))
}

/// A change that cannot be made is an answer; a store that cannot be used is a refusal.
fn render_error(id: &str, error: &TaskError) -> CallResult {
    match error {
        TaskError::Store(_) => Err(task_refusal(error)),
        _ => Ok(render_failure(id, &error.to_string())),
    }
}
