//! A tool that is asked in a person's place (`--permission-prompt-tool`).
//!
//! It is called with `{tool_name, input, tool_use_id}` and answers with one text that holds
//! `{"behavior": "allow", "updatedInput"?, "updatedPermissions"?}` or `{"behavior": "deny", "message"?}`.
//! Its own calls cross the gate like any other; whether it may run is a matter of rules, and it is never asked about
//! itself.
//! A tool that wants a person is not answered for.

use crate::hooks::{PermissionBehavior, PermissionResponse};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock, Weak};
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Gate, Session};
use toolgate_proto::json::{JsonLimits, parse_object};
use toolgate_proto::{ToolCall, ToolName};

/// An approver that asks a tool.
#[derive(Debug, Clone)]
pub struct PromptTool {
    name: String,
    tool: ToolName,
    /// Set once the gate stands, since the approver is part of it.
    gate_cell: Arc<OnceLock<(Weak<Gate>, Session)>>,
}

impl PromptTool {
    /// Asks this tool.
    pub fn new(tool: impl Into<ToolName>) -> Self {
        let tool = tool.into();
        Self { name: format!("prompt tool `{tool}`"), tool, gate_cell: Arc::default() }
    }

    /// Says behind which gate the tool is. Until then the question is passed on.
    pub fn connect(&self, toolgate: &crate::Toolgate) {
        // A second connection changes nothing: an approver belongs to one gate.
        let _ = self.gate_cell.set((Arc::downgrade(&toolgate.shared_gate()), toolgate.session().clone()));
    }

    /// Whether there is such a tool and it can be asked. To be looked at before the first call, since nobody would be
    /// asked otherwise.
    pub fn check_schema(&self, toolgate: &crate::Toolgate) -> Result<(), String> {
        let Some(definition) = toolgate.gate().definition(self.tool.as_str()) else {
            return Err(format!("{} is not there, so nobody could be asked", self.name));
        };
        let schema = &definition.input_schema;
        let fields = ["tool_name", "input", "tool_use_id"];
        let takes = |field: &str| {
            schema.pointer(&format!("/properties/{field}")).is_some()
                || schema.get("additionalProperties").is_none_or(|more| *more != Value::Bool(false))
        };
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let other = required.iter().filter_map(Value::as_str).find(|field| !fields.contains(field));
        match (fields.iter().find(|field| !takes(field)), other) {
            (None, None) => Ok(()),
            (Some(field), _) => Err(format!("{} takes no `{field}`, so it cannot be asked", self.name)),
            (None, Some(field)) => {
                Err(format!("{} wants `{field}`, which a question does not have", self.name))
            }
        }
    }

    async fn ask_tool(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let concerns_itself = request.question.tool == self.tool;
        let Some((gate, session)) =
            self.gate_cell.get().filter(|_| !concerns_itself && !request.wants_a_person)
        else {
            return ApprovalAnswer::Pass;
        };
        let Some(gate) = gate.upgrade() else {
            return ApprovalAnswer::Lost { why: "the gate is gone".to_owned() };
        };
        let input = json!({
            "tool_name": request.question.tool,
            "input": request.input,
            "tool_use_id": request.call,
        });
        let call =
            ToolCall::new(toolgate_files::generate_id("prompt_"), self.tool.clone(), input.to_string());
        let purpose = request.consultation();
        let options = CallOptions::default().with_cancel(request.cancel.clone()).with_purpose(purpose);
        match gate.call(session, call, options).await.result {
            Ok(output) => parse_answer(&output.model_text()),
            Err(refusal) => ApprovalAnswer::Lost { why: format!("{} failed: {refusal}", self.name) },
        }
    }
}

fn parse_answer(text: &str) -> ApprovalAnswer {
    let read = || -> Result<PermissionResponse, String> {
        let object =
            parse_object(text.trim(), JsonLimits::SETTINGS).map_err(|problem| problem.to_string())?;
        serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
    };
    let behavior = match read() {
        Ok(behavior) => behavior,
        Err(problem) => {
            return ApprovalAnswer::Lost {
                why: format!("the prompt tool's answer cannot be read: {problem}"),
            };
        }
    };
    match (behavior.behavior, &behavior.updated_input, behavior.rules()) {
        (PermissionBehavior::Deny, _, _) => ApprovalAnswer::No { message: behavior.message },
        (PermissionBehavior::Allow, Some(input), _) => ApprovalAnswer::Revise { input: input.clone() },
        (PermissionBehavior::Allow, None, Ok(rules)) if !rules.is_empty() => {
            ApprovalAnswer::Session { rules }
        }
        (PermissionBehavior::Allow, None, Ok(_)) => ApprovalAnswer::Once,
        (PermissionBehavior::Allow, None, Err(problem)) => ApprovalAnswer::Lost { why: problem },
    }
}

impl Approver for PromptTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.ask_tool(request))
    }
}
