//! What an agent does, as frames for a host.

use crate::frame_writer::{FrameLines, FrameWriter};
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_agent::provider::{MessagesEvent, ModelError, ModelErrorKind, ModelEvent};
use toolgate_agent::{
    AgentEvent, AgentHookEvent, AgentObserver, AgentOrigin, FinishedAgentCall, HookRunNotice, TaskNotice,
    TurnReport, UsageMeter,
};
use toolgate_proto::{Mode, OutcomeRecord, Stage};

/// A raw event of the model.
#[derive(Serialize)]
struct StreamFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    event: MessagesEvent<'a>,
    parent_tool_use_id: Option<&'a str>,
    uuid: &'a str,
    session_id: &'a str,
}

/// Renders frames.
pub struct FrameRenderer {
    /// The output to the host.
    writer: FrameWriter,
    /// The session, which every frame names.
    session_id: String,
    /// Raw events of the model are passed on.
    include_partial: bool,
    /// Prompts are echoed with their ids.
    replay_prompts: bool,
    /// What subagents write is passed on, and not only what they do.
    forwards_text: bool,
    /// The start and the end of hooks are reported.
    includes_hooks: bool,
}

impl FrameRenderer {
    /// A renderer for a session.
    pub fn new(writer: FrameWriter, session_id: impl Into<String>) -> Self {
        Self {
            writer,
            session_id: session_id.into(),
            include_partial: false,
            replay_prompts: false,
            forwards_text: false,
            includes_hooks: false,
        }
    }

    /// The same, passing on raw events of the model.
    #[must_use]
    pub fn with_partial_messages(mut self, include_partial: bool) -> Self {
        self.include_partial = include_partial;
        self
    }

    /// The same, echoing prompts with their ids.
    #[must_use]
    pub fn with_replayed_prompts(mut self, replay_prompts: bool) -> Self {
        self.replay_prompts = replay_prompts;
        self
    }

    /// The same, passing on what subagents write. Without it hosts see only what they do: a program that prints every text
    /// would mix theirs into the answer.
    #[must_use]
    pub fn with_subagent_text(mut self, forwards_text: bool) -> Self {
        self.forwards_text = forwards_text;
        self
    }

    /// The same, reporting the start and the end of each hook.
    #[must_use]
    pub fn with_hook_events(mut self, includes_hooks: bool) -> Self {
        self.includes_hooks = includes_hooks;
        self
    }

    /// Whether the host learns of a hook: of all if it asked for that, and of those at the start in any case.
    fn reports_hook(&self, hook: &HookRunNotice) -> bool {
        self.includes_hooks || hook.event == AgentHookEvent::SessionStart.as_str()
    }

    /// A frame about one run of a hook.
    fn write_hook(&self, subtype: &str, hook: &HookRunNotice, more: Value) {
        let mut frame = json!({
            "type": "system", "subtype": subtype,
            "hook_id": hook.run, "hook_name": hook.name, "hook_event": hook.event,
        });
        if let (Some(frame), Value::Object(more)) = (frame.as_object_mut(), more) {
            frame.extend(more);
        }
        self.write(frame);
    }

    /// Writes a frame with the ids that every frame of a session has.
    pub fn write(&self, mut frame: Value) {
        if let Some(fields) = frame.as_object_mut() {
            fields.insert("uuid".to_owned(), json!(toolgate_files::generate_uuid()));
            fields.insert("session_id".to_owned(), json!(self.session_id));
        }
        self.writer.write(frame);
    }

    /// Raw events of the model, each a frame. Those that arrived together are queued together, and no tree of values is
    /// built: of all frames these are the ones that come by the thousand.
    fn write_stream(&self, parent: Option<&str>, events: &[ModelEvent]) {
        let mut lines = FrameLines::default();
        for event in events {
            if let Some(event) = event.to_messages_event() {
                let uuid = toolgate_files::generate_uuid();
                lines.push(&StreamFrame {
                    kind: "stream_event",
                    event,
                    parent_tool_use_id: parent,
                    uuid: &uuid,
                    session_id: &self.session_id,
                });
            }
        }
        self.writer.write_lines(lines);
    }

    /// The frame that begins a turn; `fields` say what the session has.
    pub fn write_init(&self, fields: Map<String, Value>) {
        let mut frame =
            Map::from_iter([("type".to_owned(), json!("system")), ("subtype".to_owned(), json!("init"))]);
        frame.extend(fields);
        self.write(Value::Object(frame));
    }

    /// The state of the session: `running`, `requires_action` or `idle`.
    pub fn write_state(&self, state: &str) {
        self.write(json!({
            "type": "system", "subtype": "session_state_changed", "state": state, "sdk_host_only": true,
        }));
    }

    /// Explains to the host why something happens that it did not ask for.
    pub fn write_notice(&self, text: &str) {
        self.write(json!({ "type": "system", "subtype": "informational", "content": text, "level": "info" }));
    }

    /// The frame that ends a turn.
    pub fn write_result(
        &self,
        report: &TurnReport,
        meter: &UsageMeter,
        context_tokens: u64,
        max_tokens: u64,
    ) {
        self.write(result_frame(report, meter, context_tokens, max_tokens));
    }

    /// The result of a call, and before it that it was denied, if it was.
    fn write_call(&self, parent: Option<&str>, call: &FinishedAgentCall) {
        if let OutcomeRecord::Refused { stage: Stage::Judge | Stage::Settle, reason, code } =
            &call.outcome.record.outcome
        {
            self.write(json!({
                "type": "system", "subtype": "permission_denied",
                "tool_name": call.name, "tool_use_id": call.id,
                "decision_reason": reason, "decision_reason_code": code,
                "message": call.outcome.result.as_ref().err().map(ToString::to_string),
            }));
        }
        let structured = match &call.outcome.result {
            Ok(output) => output.structured.clone().unwrap_or_else(|| json!(output.display_text())),
            Err(refusal) => json!(format!("Error: {refusal}")),
        };
        self.write(json!({
            "type": "user",
            "message": { "role": "user", "content": [call.block] },
            "parent_tool_use_id": parent,
            "tool_use_result": structured,
        }));
    }

    /// That a request failed for good, as an answer of no model.
    fn write_failure(&self, parent: Option<&str>, error: &ModelError) {
        let text = format!("API Error: {error}");
        let message = json!({
            "id": toolgate_files::generate_uuid(), "type": "message", "role": "assistant",
            "model": "<synthetic>", "content": [{ "type": "text", "text": text }],
            "stop_reason": "stop_sequence", "stop_sequence": "",
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        });
        self.write(json!({
            "type": "assistant", "message": message, "parent_tool_use_id": parent,
            "error": error.kind.as_str(),
        }));
    }

    /// A frame about a subagent.
    fn write_task(&self, subtype: &str, task: &TaskNotice, more: Value) {
        let mut frame = Map::from_iter([
            ("type".to_owned(), json!("system")),
            ("subtype".to_owned(), json!(subtype)),
            ("task_id".to_owned(), json!(task.task_id)),
            ("tool_use_id".to_owned(), json!(task.call)),
            ("description".to_owned(), json!(task.description)),
            ("task_type".to_owned(), json!("local_agent")),
            ("subagent_type".to_owned(), json!(task.agent_type)),
            ("is_backgrounded".to_owned(), json!(task.is_background)),
        ]);
        if let Value::Object(more) = more {
            frame.extend(more);
        }
        self.write(Value::Object(frame));
    }

    /// The start, the progress or the end of a subagent.
    fn write_task_event(&self, event: &AgentEvent) {
        match event {
            AgentEvent::TaskStarted(task) => self.write_task("task_started", task, Value::Null),
            AgentEvent::TaskProgressed { task, last_tool, tool_uses, usage, duration } => {
                let total = usage.context_tokens() + usage.output_tokens;
                let usage = json!({ "total_tokens": total, "tool_uses": tool_uses, "duration_ms": millis(*duration) });
                self.write_task(
                    "task_progress",
                    task,
                    json!({ "last_tool_name": last_tool, "usage": usage }),
                );
            }
            AgentEvent::TaskEnded { task, status, summary, tool_uses, usage, duration } => {
                let total = usage.context_tokens() + usage.output_tokens;
                let usage = json!({ "total_tokens": total, "tool_uses": tool_uses, "duration_ms": millis(*duration) });
                let more = json!({ "status": status, "summary": summary, "output_file": "", "usage": usage });
                self.write_task("task_notification", task, more);
            }
            _ => {}
        }
    }
}

impl AgentObserver for FrameRenderer {
    /// Writes the frames of an event.
    fn observe(&self, origin: &AgentOrigin, event: &AgentEvent) {
        let parent = origin.parent_call.as_deref();
        let is_shown = parent.is_none() || self.forwards_text;
        match event {
            AgentEvent::Streamed(events) if self.include_partial && is_shown => {
                self.write_stream(parent, events);
            }
            AgentEvent::BlockFinished { message, model, block, usage } => {
                let is_rendered = match block.get("type").and_then(Value::as_str) {
                    // What only the provider reads is no content for a host.
                    Some("reasoning_item") => false,
                    Some("text" | "thinking" | "redacted_thinking") => is_shown,
                    _ => true,
                };
                if !is_rendered {
                    return;
                }
                let message = json!({
                    "id": message, "type": "message", "role": "assistant", "model": model, "content": [block],
                    "stop_reason": null, "stop_sequence": null, "usage": usage,
                });
                self.write(json!({ "type": "assistant", "message": message, "parent_tool_use_id": parent }));
            }
            AgentEvent::CallFinished(call) => self.write_call(parent, call),
            AgentEvent::Prompted { id, message } if self.replay_prompts && parent.is_none() => {
                self.writer.write(json!({
                    "type": "user", "message": message, "parent_tool_use_id": null, "isReplay": true,
                    "uuid": id, "session_id": self.session_id,
                }));
            }
            AgentEvent::Retrying(notice) => self.write(json!({
                "type": "system", "subtype": "api_retry",
                "attempt": notice.attempt, "max_retries": notice.max_retries,
                "retry_delay_ms": millis(notice.delay),
                "error_status": notice.error.status, "error": notice.error.kind.as_str(),
            })),
            AgentEvent::RequestFailed(error) => self.write_failure(parent, error),
            AgentEvent::Compacted { trigger, tokens_before, .. } => self.write(json!({
                "type": "system", "subtype": "compact_boundary",
                "compact_metadata": { "trigger": trigger, "pre_tokens": tokens_before },
            })),
            AgentEvent::Noticed(text) => self.write_notice(text),
            AgentEvent::HookStarted(hook) if self.reports_hook(hook) => {
                self.write_hook("hook_started", hook, Value::Null);
            }
            AgentEvent::HookEnded { hook, outcome, detail } if self.reports_hook(hook) => {
                let ended =
                    json!({ "output": detail, "stdout": "", "stderr": "", "outcome": outcome.as_str() });
                self.write_hook("hook_response", hook, ended);
            }
            event @ (AgentEvent::TaskStarted(_)
            | AgentEvent::TaskProgressed { .. }
            | AgentEvent::TaskEnded { .. }) => self.write_task_event(event),
            _ => {}
        }
    }
}

/// The name of a mode that hosts know.
pub fn host_mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Bypass => "bypassPermissions",
        Mode::Default | Mode::Plan | Mode::AcceptEdits | Mode::DontAsk | Mode::Deny => mode.as_str(),
    }
}

/// Whole milliseconds, as every frame counts time.
fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The `result` frame, without the ids of the session.
pub fn result_frame(report: &TurnReport, meter: &UsageMeter, context_tokens: u64, max_tokens: u64) -> Value {
    let ending = &report.ending;
    let mut frame = Map::new();
    let mut add = |key: &str, value: Value| drop(frame.insert(key.to_owned(), value));
    add("type", json!("result"));
    add("subtype", json!(ending.subtype()));
    add("is_error", json!(ending.is_error()));
    let message = ending.message();
    if ending.subtype() == "success" {
        add("result", json!(message.clone().unwrap_or_else(|| report.text.clone())));
    } else {
        add("errors", json!(message.iter().collect::<Vec<_>>()));
    }
    if let toolgate_agent::TurnEnding::RequestFailed(error) = ending {
        add("api_error_status", json!(error.status));
        if error.kind == ModelErrorKind::ContextFull {
            add("errors", json!([error.to_string()]));
        }
    }
    add("duration_ms", json!(millis(report.duration)));
    add("duration_api_ms", json!(millis(report.api_duration)));
    add("num_turns", json!(report.num_turns));
    add("stop_reason", json!(report.stop_reason));
    add("total_cost_usd", json!(meter.total_cost_usd()));
    add("usage", json!(report.usage));
    let models: Map<String, Value> = meter
        .models()
        .into_iter()
        .map(|(model, total)| {
            let usage = json!({
                "inputTokens": total.usage.input_tokens,
                "outputTokens": total.usage.output_tokens,
                "cacheReadInputTokens": total.usage.cache_read_input_tokens,
                "cacheCreationInputTokens": total.usage.cache_creation_input_tokens,
                "webSearchRequests": 0,
                "costUSD": total.cost_usd,
                "contextWindow": context_tokens,
                "maxOutputTokens": max_tokens,
            });
            (model, usage)
        })
        .collect();
    add("modelUsage", Value::Object(models));
    add("permission_denials", json!(report.denials));
    if let Some(output) = &report.structured_output {
        add("structured_output", output.clone());
    }
    add("terminal_reason", json!(ending.terminal_reason()));
    Value::Object(frame)
}
