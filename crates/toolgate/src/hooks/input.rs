//! The input of a hook: one JSON object with the field names of Claude Code, so that existing scripts work.
//!
//! Every event has `session_id`, `transcript_path` (empty without one), `cwd`, `permission_mode` and `hook_event_name`. The events
//! of a call add `tool_name`, `tool_input` and `tool_use_id`; `PermissionRequest` adds `permission_suggestions`,
//! `PostToolUse` adds `tool_response` and `duration_ms`, `PostToolUseFailure` adds `error` and `is_interrupt`, and
//! `PermissionDenied` adds `reason`. `PostToolBatch` has `tool_calls` instead; `TaskCreated` and
//! `TaskCompleted` have `task_id`, `task_subject` and `task_description` instead.

use serde_json::{Map, Value, json};
use toolgate_agent::TranscriptPath;
use toolgate_gate::{CallContext, HookBatch, HookCall, HookEvent, Session};
use toolgate_proto::{CallResult, Code, Mode, Output, SourceId};

/// The input for the events of one call.
pub(super) fn build_call_input(call: &HookCall<'_>) -> Value {
    let mut fields = common_fields(call.context, call.mode, call.event);
    if let Some(own) = call.fields {
        fields.extend(own.clone());
        return Value::Object(fields);
    }
    fields.insert("tool_name".into(), json!(call.tool.name));
    fields.insert("tool_input".into(), Value::Object(call.input.clone()));
    fields.insert("tool_use_id".into(), json!(call.call));
    if let SourceId::Mcp { server, .. } = &call.tool.source {
        fields.insert("mcp_server".into(), json!({ "name": server }));
    }
    if let Some(question) = call.question {
        let rules: Vec<Value> = question
            .suggestions
            .iter()
            .map(|suggestion| {
                json!({
                    "type": "addRules",
                    "rules": [rule_parts(&suggestion.rule)],
                    "behavior": "allow",
                    "destination": "localSettings",
                })
            })
            .collect();
        fields.insert("permission_suggestions".into(), Value::Array(rules));
    }
    if let Some(result) = call.result {
        match (call.event, result) {
            (HookEvent::PermissionDenied, Err(refusal)) => {
                fields.insert("reason".into(), json!(refusal.reason));
            }
            (_, Ok(output)) => {
                fields.insert("tool_response".into(), tool_response(output));
            }
            (_, Err(refusal)) => {
                fields.insert("error".into(), json!(refusal.to_string()));
                fields.insert("is_interrupt".into(), json!(refusal.code == Code::Cancelled));
            }
        }
    }
    if let Some(ran_for) = call.ran_for {
        fields.insert("duration_ms".into(), json!(u64::try_from(ran_for.as_millis()).unwrap_or(u64::MAX)));
    }
    Value::Object(fields)
}

/// The input for `PostToolBatch`.
pub(super) fn build_batch_input(batch: &HookBatch<'_>) -> Value {
    let mut fields = common_fields(batch.context, batch.mode, HookEvent::PostToolBatch);
    let calls: Vec<Value> = batch
        .calls
        .iter()
        .map(|call| {
            let mut entry = Map::new();
            entry.insert("tool_name".into(), json!(call.tool));
            entry.insert("tool_input".into(), Value::Object(call.input.clone()));
            entry.insert("tool_use_id".into(), json!(call.call));
            entry.insert("tool_response".into(), batch_tool_response(&call.result));
            Value::Object(entry)
        })
        .collect();
    fields.insert("tool_calls".into(), Value::Array(calls));
    Value::Object(fields)
}

/// The fields that every event has.
fn common_fields(context: &CallContext, mode: Mode, event: HookEvent) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("session_id".into(), json!(context.session.id()));
    fields.insert("transcript_path".into(), json!(transcript_path(&context.session)));
    fields.insert("cwd".into(), json!(context.workspace.cwd));
    fields.insert("permission_mode".into(), json!(mode_name(mode)));
    fields.insert("hook_event_name".into(), json!(event.as_str()));
    fields
}

/// The transcript of the session; empty where there is none, because scripts that read the field expect a string.
pub(super) fn transcript_path(session: &Session) -> String {
    let path = session.state::<TranscriptPath>();
    path.get().map(ToString::to_string).unwrap_or_default()
}

/// The name of a mode in Claude Code.
fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Bypass => "bypassPermissions",
        Mode::Default | Mode::Plan | Mode::AcceptEdits | Mode::DontAsk | Mode::Deny => mode.as_str(),
    }
}

/// The structured result if the tool has one, else the content blocks.
fn tool_response(output: &Output) -> Value {
    match &output.structured {
        Some(structured) => structured.clone(),
        None => json!({ "content": output.content }),
    }
}

/// The result of one call of a batch; a refusal is an object with `error`.
fn batch_tool_response(result: &CallResult) -> Value {
    match result {
        Ok(output) => tool_response(output),
        Err(refusal) => json!({ "error": refusal.to_string() }),
    }
}

/// A rule in the format of `updatedPermissions`: the tool name and the text in parentheses.
fn rule_parts(rule: &str) -> Value {
    match rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?))) {
        Some((tool, content)) => json!({ "toolName": tool, "ruleContent": content }),
        None => json!({ "toolName": rule }),
    }
}
