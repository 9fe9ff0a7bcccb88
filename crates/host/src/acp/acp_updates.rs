//! What an agent does, as updates for an editor.

use super::acp_client::{AcpClient, text_chunk};
use super::call_content::{call_kind, call_locations, call_title, result_diffs};
use agent_client_protocol::v1::schema::{
    Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Map, Value};
use std::sync::{Mutex, PoisonError};
use toolgate_agent::provider::ModelEvent;
use toolgate_agent::{AgentEvent, AgentObserver, AgentOrigin, FinishedAgentCall};
use toolgate_proto::AbsPath;

/// How many characters of a result an editor is shown.
const MAX_RESULT_CHARS: usize = 64 * 1024;

/// Sends updates to an editor.
pub struct AcpUpdates {
    /// The editor.
    client: AcpClient,
    /// Where relative paths of inputs begin.
    cwd: AbsPath,
    /// The tasks that the agent keeps one by one, as id, text and status.
    tasks: Mutex<Vec<(String, String, String)>>,
}

impl AcpUpdates {
    /// Updates of a session that works in `cwd`.
    pub fn new(client: AcpClient, cwd: AbsPath) -> Self {
        Self { client, cwd, tasks: Mutex::default() }
    }

    /// A call ended.
    fn finish_call(&self, call: &FinishedAgentCall) {
        let mut content = Vec::new();
        let status = match &call.outcome.result {
            Ok(output) => {
                if let Some(structured) = &output.structured {
                    content.extend(result_diffs(&call.input, structured, &self.cwd));
                }
                if content.is_empty() {
                    content.push(ToolCallContent::from(shorten(&output.display_text())));
                }
                self.update_plan(call, output.structured.as_ref());
                ToolCallStatus::Completed
            }
            Err(refusal) => {
                content.push(ToolCallContent::from(shorten(&refusal.to_string())));
                ToolCallStatus::Failed
            }
        };
        let fields = ToolCallUpdateFields::new().status(status).content(content);
        self.client.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id.clone(), fields)));
    }

    /// A call that changes a task list changes the plan that the editor shows.
    fn update_plan(&self, call: &FinishedAgentCall, structured: Option<&Value>) {
        let entries = match call.name.as_str() {
            "TodoWrite" | "write_todos" => {
                let todos = call.input.get("todos").and_then(Value::as_array).into_iter().flatten();
                let entry = |todo: &Value| {
                    let text = |key: &str| todo.get(key).and_then(Value::as_str);
                    let content = text("content").or_else(|| text("description"))?;
                    Some(plan_entry(content, text("status").unwrap_or_default()))
                };
                todos.filter_map(entry).collect()
            }
            "TaskCreate" | "TaskUpdate" => self.note_task(&call.input, structured),
            _ => return,
        };
        self.client.update(SessionUpdate::Plan(Plan::new(entries)));
    }

    /// Notes a new or changed task, and gives all.
    fn note_task(&self, input: &Map<String, Value>, structured: Option<&Value>) -> Vec<PlanEntry> {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let created = structured.and_then(|value| value.pointer("/task/id")).and_then(Value::as_str);
        match (created, text("taskId")) {
            (Some(id), _) => {
                let subject = text("subject").unwrap_or_default();
                tasks.push((id.to_owned(), subject.to_owned(), "pending".to_owned()));
            }
            (None, Some(id)) => {
                if let Some(task) = tasks.iter_mut().find(|(known, ..)| known == id) {
                    task.1 = text("subject").unwrap_or(&task.1).to_owned();
                    task.2 = text("status").unwrap_or(&task.2).to_owned();
                }
                tasks.retain(|(.., status)| status != "deleted");
            }
            (None, None) => {}
        }
        tasks.iter().map(|(_, subject, status)| plan_entry(subject, status)).collect()
    }
}

impl AgentObserver for AcpUpdates {
    fn observe(&self, origin: &AgentOrigin, event: &AgentEvent) {
        match event {
            // The text of a subagent is for the agent that started it.
            AgentEvent::Streamed(events) if origin.agent_id.is_none() => {
                for event in events {
                    let ModelEvent::BlockDelta { delta, .. } = event else { continue };
                    if let Some(text) = delta.text() {
                        self.client.send_text(text);
                    } else if let Some(thought) = delta.thinking() {
                        self.client.update(SessionUpdate::AgentThoughtChunk(text_chunk(thought)));
                    }
                }
            }
            AgentEvent::BlockFinished { block, .. } => {
                if let Some(call) = announce_call(block, &self.cwd) {
                    self.client.update(SessionUpdate::ToolCall(call));
                }
            }
            AgentEvent::CallFinished(call) => self.finish_call(call),
            _ => {}
        }
    }
}

/// A call that the model made, not yet run.
pub(super) fn announce_call(block: &Value, cwd: &AbsPath) -> Option<ToolCall> {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    if text("type") != Some("tool_use") {
        return None;
    }
    let name = text("name")?;
    let input = block.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
    let call = ToolCall::new(text("id")?.to_owned(), call_title(name, &input))
        .kind(call_kind(name))
        .status(ToolCallStatus::Pending)
        .locations(call_locations(&input, cwd));
    Some(call.raw_input(Value::Object(input)))
}

/// One step of the plan.
fn plan_entry(content: &str, status: &str) -> PlanEntry {
    let status = match status {
        "completed" | "done" | "cancelled" => PlanEntryStatus::Completed,
        "in_progress" => PlanEntryStatus::InProgress,
        _ => PlanEntryStatus::Pending,
    };
    PlanEntry::new(content, PlanEntryPriority::Medium, status)
}

/// The start of a text that is too long for an editor.
pub(super) fn shorten(text: &str) -> String {
    let short: String = text.chars().take(MAX_RESULT_CHARS).collect();
    match text.len().saturating_sub(short.len()) {
        0 => short,
        left_out => format!("{short}… [{left_out} bytes left out]"),
    }
}
