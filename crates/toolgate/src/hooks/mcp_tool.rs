//! Hooks of the type `mcp_tool`: a tool of an MCP server is called with the event.
//!
//! The call passes through the gate: rules decide whether the tool may run, and the call has a record of its own.
//! These hooks do not run for calls that such a hook makes, or a hook for `*` would call itself without end.

use super::command::to_millis;
use super::output::parse_output;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use toolgate_gate::{CallOptions, CallPurpose, Gate, HookAnswer, HookEvent, HookFailure, Session};
use toolgate_proto::{Code, ToolCall, ToolName};

/// The gate and session through which hooks call tools. Set after the gate is built, because hooks are a part of it.
pub(crate) type GateSessionCell = Arc<OnceLock<(Weak<Gate>, Session)>>;

/// A hook that calls a tool.
#[derive(Clone)]
pub(super) struct McpToolHook {
    /// The full name, `mcp__SERVER__TOOL`.
    tool: ToolName,
    /// A template for the input; the whole event if absent.
    input: Option<Value>,
    /// The gate through which the tool is called.
    gate_cell: GateSessionCell,
}

impl McpToolHook {
    /// A hook that calls `tool` of `server`.
    pub(super) fn new(
        server: &str,
        tool: &str,
        input: Option<Value>,
        gate_cell: GateSessionCell,
    ) -> Result<Self, String> {
        if !matches!(input, None | Some(Value::Object(_))) {
            return Err("its `input` must be an object".to_owned());
        }
        Ok(Self { tool: ToolName::from(format!("mcp__{server}__{tool}")), input, gate_cell })
    }

    /// Calls the tool with an event and parses its text as the output of a hook.
    pub(super) async fn call_tool(
        &self,
        event: HookEvent,
        body: &Value,
        (purpose, timeout): (CallPurpose, Duration),
    ) -> Result<HookAnswer, HookFailure> {
        let Some((gate, session)) =
            self.gate_cell.get().and_then(|(gate, session)| Some((gate.upgrade()?, session)))
        else {
            return Err(HookFailure::Misconfigured(
                "its tool cannot be called: the gate is closed".to_owned(),
            ));
        };
        let input = match &self.input {
            Some(template) => fill_template(template, body),
            None => body.clone(),
        };
        let call = ToolCall::new(toolgate_files::generate_id("hook_"), self.tool.clone(), input.to_string());
        let options = CallOptions::default().with_timeout(Some(timeout)).with_purpose(purpose);
        // Boxed: the call may run hooks, which may make calls.
        let calling: futures_util::future::BoxFuture<'_, _> = Box::pin(gate.call(session, call, options));
        match calling.await.result {
            Ok(output) => parse_output(event, output.model_text().as_bytes()),
            Err(refusal) => Err(match refusal.code {
                Code::DeadlinePassed => HookFailure::TimedOut(to_millis(timeout)),
                Code::UnknownTool => HookFailure::Missing(format!("tool `{}`", self.tool)),
                _ => HookFailure::Unreachable(format!("its tool `{}` did not run: {refusal}", self.tool)),
            }),
        }
    }
}

/// Replaces `${path.to.field}` by fields of the event. A string that consists of one reference becomes the value
/// itself, with its type.
fn fill_template(template: &Value, event: &Value) -> Value {
    match template {
        Value::String(text) => match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            Some(path) if !path.contains('}') => value_at_path(event, path).cloned().unwrap_or(Value::Null),
            Some(_) | None => Value::String(interpolate_text(text, event)),
        },
        Value::Array(items) => items.iter().map(|item| fill_template(item, event)).collect(),
        Value::Object(fields) => {
            let fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), fill_template(value, event))).collect();
            Value::Object(fields)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

/// Replaces references inside a longer string; an unknown field becomes nothing, an unclosed `${` stays.
fn interpolate_text(text: &str, event: &Value) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        match after.split_once('}') {
            Some((path, tail)) => {
                match value_at_path(event, path) {
                    Some(Value::String(text)) => out.push_str(text),
                    Some(value) => out.push_str(&value.to_string()),
                    None => {}
                }
                rest = tail;
            }
            None => {
                out.push_str("${");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The value at a path of names and array indices.
fn value_at_path<'v>(event: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(event, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_replaced_by_fields_of_the_event() {
        let event = json!({ "tool_name": "Bash", "tool_input": { "command": "ls", "n": 3, "list": ["x"] } });
        for (template, wanted) in [
            (json!({ "c": "${tool_input.command}" }), json!({ "c": "ls" })),
            (json!({ "c": "${tool_input}" }), json!({ "c": event["tool_input"] })),
            (json!({ "c": "run ${tool_input.command} ${tool_input.n}!" }), json!({ "c": "run ls 3!" })),
            (json!({ "c": ["${tool_input.list.0}", 1, null] }), json!({ "c": ["x", 1, null] })),
            (json!({ "c": "${nothing}" }), json!({ "c": null })),
            (json!({ "c": "a ${nothing} b ${open" }), json!({ "c": "a  b ${open" })),
        ] {
            assert_eq!(fill_template(&template, &event), wanted, "{template}");
        }
    }
}
