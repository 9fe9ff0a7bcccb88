//! Hooks that are a tool of an MCP server.
//!
//! The tool is called through the gate like any other: rules decide whether it may run, and the call has a record of
//! its own.
//! A hook of this kind is not told of calls that a hook of this kind makes, or it would be told of itself for ever.

use super::command::to_millis;
use super::output;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use toolgate_gate::{CallOptions, Gate, HookAnswer, HookEvent, HookFailure, Session};
use toolgate_proto::{Code, ToolCall, ToolName};

/// Where the calls of hooks are made: known once the gate stands.
pub(crate) type GateSessionCell = Arc<OnceLock<(Weak<Gate>, Session)>>;

tokio::task_local! {
    /// Set while this task makes the call of a hook.
    static TELLING: ();
}

/// A tool that is told.
#[derive(Clone)]
pub(super) struct McpToolHook {
    tool: ToolName,
    input: Option<Value>,
    gate_cell: GateSessionCell,
}

impl McpToolHook {
    pub(super) fn new(
        server: &str,
        tool: &str,
        input: Option<Value>,
        place: GateSessionCell,
    ) -> Result<Self, String> {
        if !matches!(input, None | Some(Value::Object(_))) {
            return Err("its `input` must be an object".to_owned());
        }
        Ok(Self { tool: ToolName::from(format!("mcp__{server}__{tool}")), input, gate_cell: place })
    }

    pub(super) async fn call_tool(
        &self,
        moment: HookEvent,
        told: &Value,
        timeout: Duration,
    ) -> Result<HookAnswer, HookFailure> {
        if TELLING.try_with(|()| ()).is_ok() {
            return Ok(HookAnswer::default().with_detail("not told of its own call"));
        }
        let Some((gate, session)) =
            self.gate_cell.get().and_then(|(gate, session)| Some((gate.upgrade()?, session)))
        else {
            return Err(HookFailure::Misconfigured("there is no gate to call its tool through".to_owned()));
        };
        let input = match &self.input {
            Some(template) => fill_template(template, told),
            None => told.clone(),
        };
        let call = ToolCall::new(toolgate_files::generate_id("hook_"), self.tool.clone(), input.to_string());
        let limits = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
        let calling: futures_util::future::BoxFuture<'_, _> = Box::pin(gate.consult(session, call, limits));
        match TELLING.scope((), calling).await.result {
            Ok(done) => output::read(moment, done.model_text().as_bytes()),
            Err(refusal) => Err(match refusal.code {
                Code::DeadlinePassed => HookFailure::TimedOut(to_millis(timeout)),
                Code::UnknownTool => HookFailure::Missing(format!("tool `{}`", self.tool)),
                _ => HookFailure::Unreachable(format!("its tool `{}` did not run: {refusal}", self.tool)),
            }),
        }
    }
}

/// Fills `${path.to.field}` from what the hook is told. A text that is nothing else becomes the value itself.
fn fill_template(template: &Value, told: &Value) -> Value {
    match template {
        Value::String(text) => match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            Some(path) if !path.contains('}') => value_at_path(told, path).cloned().unwrap_or(Value::Null),
            Some(_) | None => Value::String(interpolate_text(text, told)),
        },
        Value::Array(items) => items.iter().map(|item| fill_template(item, told)).collect(),
        Value::Object(fields) => {
            let fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), fill_template(value, told))).collect();
            Value::Object(fields)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

fn interpolate_text(text: &str, told: &Value) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        match after.split_once('}') {
            Some((path, tail)) => {
                match value_at_path(told, path) {
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

fn value_at_path<'v>(told: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(told, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_filled_from_what_is_told() {
        let told = json!({ "tool_name": "Bash", "tool_input": { "command": "ls", "n": 3, "list": ["x"] } });
        for (template, wanted) in [
            (json!({ "c": "${tool_input.command}" }), json!({ "c": "ls" })),
            (json!({ "c": "${tool_input}" }), json!({ "c": told["tool_input"] })),
            (json!({ "c": "run ${tool_input.command} ${tool_input.n}!" }), json!({ "c": "run ls 3!" })),
            (json!({ "c": ["${tool_input.list.0}", 1, null] }), json!({ "c": ["x", 1, null] })),
            (json!({ "c": "${nothing}" }), json!({ "c": null })),
            (json!({ "c": "a ${nothing} b ${open" }), json!({ "c": "a  b ${open" })),
        ] {
            assert_eq!(fill_template(&template, &told), wanted, "{template}");
        }
    }
}
