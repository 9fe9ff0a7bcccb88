//! What a hook is told: one JSON object, in the words that existing scripts read.

use serde_json::{Map, Value, json};
use toolgate_gate::{CallContext, HookBatch, HookCall, HookEvent};
use toolgate_proto::{CallResult, Code, Mode, Output, SourceId};

/// What is told about a call.
pub(super) fn build_call_input(call: &HookCall<'_>) -> Value {
    let mut told = common_fields(call.context, call.mode, call.moment);
    told.insert("tool_name".into(), json!(call.tool.name));
    told.insert("tool_input".into(), Value::Object(call.input.clone()));
    told.insert("tool_use_id".into(), json!(call.call));
    if let SourceId::Mcp { server, .. } = &call.tool.source {
        told.insert("mcp_server".into(), json!({ "name": server }));
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
        told.insert("permission_suggestions".into(), Value::Array(rules));
    }
    if let Some(result) = call.result {
        match (call.moment, result) {
            (HookEvent::PermissionDenied, Err(refusal)) => {
                told.insert("reason".into(), json!(refusal.reason));
            }
            (_, Ok(output)) => {
                told.insert("tool_response".into(), tool_response(output));
            }
            (_, Err(refusal)) => {
                told.insert("error".into(), json!(refusal.to_string()));
                told.insert("is_interrupt".into(), json!(refusal.code == Code::Cancelled));
            }
        }
    }
    if let Some(ran_for) = call.ran_for {
        told.insert("duration_ms".into(), json!(u64::try_from(ran_for.as_millis()).unwrap_or(u64::MAX)));
    }
    Value::Object(told)
}

/// What is told about a batch.
pub(super) fn build_batch_input(batch: &HookBatch<'_>) -> Value {
    let mut told = common_fields(batch.context, batch.mode, HookEvent::PostToolBatch);
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
    told.insert("tool_calls".into(), Value::Array(calls));
    Value::Object(told)
}

fn common_fields(scene: &CallContext, mode: Mode, moment: HookEvent) -> Map<String, Value> {
    let mut told = Map::new();
    told.insert("session_id".into(), json!(scene.session.id()));
    // There is no transcript here; scripts that read the field expect text.
    told.insert("transcript_path".into(), json!(""));
    told.insert("cwd".into(), json!(scene.workspace.cwd));
    told.insert("permission_mode".into(), json!(mode_name(mode)));
    told.insert("hook_event_name".into(), json!(moment.as_str()));
    told
}

/// The mode in the words that scripts know.
fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Bypass => "bypassPermissions",
        Mode::Default | Mode::Plan | Mode::AcceptEdits | Mode::DontAsk | Mode::Deny => mode.as_str(),
    }
}

/// The structured form where the tool has one, else the content.
fn tool_response(output: &Output) -> Value {
    match &output.structured {
        Some(structured) => structured.clone(),
        None => json!({ "content": output.content }),
    }
}

fn batch_tool_response(result: &CallResult) -> Value {
    match result {
        Ok(output) => tool_response(output),
        Err(refusal) => json!({ "error": refusal.to_string() }),
    }
}

/// A rule as the control protocol spells it.
fn rule_parts(rule: &str) -> Value {
    match rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?))) {
        Some((tool, content)) => json!({ "toolName": tool, "ruleContent": content }),
        None => json!({ "toolName": rule }),
    }
}
