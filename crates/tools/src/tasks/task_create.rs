//! `TaskCreate`: add a task to the project's list.

use super::{TASK_GROUP, change_effect, hook_fields, task_refusal};
use crate::state_stores::{shared_task_list, with_tasks};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::{CallContext, Cleared, HookEvent, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Output, Refusal};
use toolgate_state::NewTask;

/// Adds a pending task without an owner.
pub(crate) struct TaskCreateTool;

/// Input of [`TaskCreateTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TaskCreateInput {
    /// What to do, in a few words.
    subject: String,
    /// What to do, with what counts as done.
    description: String,
    /// Shown while it is in progress: "Running tests".
    active_form: Option<String>,
    /// Further values.
    #[serde(default)]
    metadata: Map<String, Value>,
}

impl Tool for TaskCreateTool {
    type Input = TaskCreateInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "TaskCreate",
            "Adds a task to the project's list, which all its sessions and agents share. For work of three or more \
             steps. Set its dependencies with TaskUpdate.",
        )
        .with_group(TASK_GROUP)
        .with_destructive(false);
        spec.title = "Create a task".to_owned();
        spec.input_examples =
            vec![json!({ "subject": "Fix the parser", "description": "Nested quotes; add tests" })];
        spec
    }

    /// Refuses a task without a subject.
    fn check(&self, input: &TaskCreateInput) -> Result<(), Refusal> {
        match input.subject.trim().is_empty() {
            true => Err(Refusal::new(Code::BadArgument, "`subject` is empty")),
            false => Ok(()),
        }
    }

    fn intent(&self, input: &TaskCreateInput, _context: &CallContext) -> Intent {
        Intent::new(format!("add task `{}`", input.subject), [change_effect()])
    }

    /// Adds the task, and takes it back if a hook of `TaskCreated` refuses it.
    async fn run(&self, input: TaskCreateInput, cleared: Cleared) -> CallResult {
        let list = shared_task_list(&cleared.context().session);
        let mut task = NewTask::new(input.subject);
        task.description = input.description;
        task.active_form = input.active_form;
        task.metadata = input.metadata;
        let shared = list.clone();
        let task = with_tasks(&cleared, move |store| store.create(&shared, task)).await?;
        let task = task.map_err(|error| task_refusal(&error))?;
        if let Err(refusal) = cleared.run_hooks(HookEvent::TaskCreated, &hook_fields(&task)).await {
            let number = task.number;
            let removed = with_tasks(&cleared, move |store| store.remove(&list, number)).await?;
            removed.map_err(|error| task_refusal(&error))?;
            return Err(refusal);
        }
        let fields = json!({ "id": task.number.to_string(), "subject": task.subject, "description": task.description });
        Ok(Output::text(format!("created task {}: {}", task.number, task.subject))
            .structured(json!({ "task": fields })))
    }
}
