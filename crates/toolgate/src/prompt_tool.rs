//! An approver that calls a tool instead of asking at a terminal (`--permission-prompt-tool`).
//!
//! The tool gets `{tool_name, input, tool_use_id}` and answers with a text that contains
//! `{"behavior": "allow", "updatedInput"?, "updatedPermissions"?}` or `{"behavior": "deny", "message"?}`.
//! Its calls pass through the gate. Naming the tool allows it to be asked, and nothing else: a call of it by a model needs
//! a rule, and rules that deny it or ask about it count. It is never asked about its own calls.
//! Questions of tools that require a human are passed on.

use crate::hooks::{PermissionBehavior, PermissionResponse};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock, Weak};
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Gate, Session};
use toolgate_policy::{Layer, LayerRules, RawRule};
use toolgate_proto::json::{JsonLimits, parse_object};
use toolgate_proto::{ToolCall, ToolName};

/// An approver that asks a tool. Connect it to the gate after the gate is built.
#[derive(Debug, Clone)]
pub struct PromptTool {
    /// The name of the approver in records and messages.
    name: String,
    /// The tool that is called.
    tool: ToolName,
    /// Set after the gate is built, because the approver is a part of it. Weak, or the gate would own itself.
    gate_cell: Arc<OnceLock<(Weak<Gate>, Session)>>,
}

impl PromptTool {
    /// An approver that asks this tool.
    pub fn new(tool: impl Into<ToolName>) -> Self {
        let tool = tool.into();
        Self { name: format!("prompt tool `{tool}`"), tool, gate_cell: Arc::default() }
    }

    /// Sets the gate through which the tool is called. Before that, questions are passed to the next approver.
    pub fn connect(&self, toolgate: &crate::Toolgate) {
        // An approver belongs to one gate, so a second connection has no effect.
        let _ = self.gate_cell.set((Arc::downgrade(&toolgate.shared_gate()), toolgate.session().clone()));
    }

    /// Checks that the tool exists and accepts a question as its input. Call it before the first call: a missing tool
    /// would make every question fail.
    pub fn check_schema(&self, toolgate: &crate::Toolgate) -> Result<(), String> {
        let Some(definition) = toolgate.gate().definition(self.tool.as_str()) else {
            return Err(format!("{} does not exist, so no question could be answered", self.name));
        };
        let schema = &definition.input_schema;
        let fields = ["tool_name", "input", "tool_use_id"];
        let accepts = |field: &str| {
            schema.pointer(&format!("/properties/{field}")).is_some()
                || schema.get("additionalProperties").is_none_or(|more| *more != Value::Bool(false))
        };
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let extra = required.iter().filter_map(Value::as_str).find(|field| !fields.contains(field));
        match (fields.iter().find(|field| !accepts(field)), extra) {
            (None, None) => Ok(()),
            (Some(field), _) => {
                Err(format!("{} has no input field `{field}`, so it cannot answer questions", self.name))
            }
            (None, Some(field)) => Err(format!(
                "{} requires the input field `{field}`, which a question does not have",
                self.name
            )),
        }
    }

    /// Calls the tool. Every failure of the call is an answer that allows nothing.
    async fn ask_tool(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let is_own_call = request.question.tool == self.tool;
        let Some((gate, session)) = self.gate_cell.get().filter(|_| !is_own_call && !request.requires_user)
        else {
            return ApprovalAnswer::Pass;
        };
        let Some(gate) = gate.upgrade() else {
            return ApprovalAnswer::Lost { why: "the gate was closed".to_owned() };
        };
        let input = json!({
            "tool_name": request.question.tool,
            "input": request.input,
            "tool_use_id": request.call,
        });
        let call =
            ToolCall::new(toolgate_files::generate_id("prompt_"), self.tool.clone(), input.to_string());
        let purpose = request.consultation();
        let mut rules = LayerRules::new(Layer::Cli, session.workspace().cwd.clone());
        rules.allow.push(RawRule::from(self.tool.as_str()));
        let options = CallOptions::default()
            .with_cancel(request.cancel.clone())
            .with_purpose(purpose)
            .with_extra_rules(rules);
        match gate.call(session, call, options).await.result {
            Ok(output) => parse_answer(&output.model_text()),
            Err(refusal) => ApprovalAnswer::Lost { why: format!("{} failed: {refusal}", self.name) },
        }
    }
}

/// Parses the answer strictly: an unknown behavior or a permission update that toolgate does not support allows nothing.
fn parse_answer(text: &str) -> ApprovalAnswer {
    let parse = || -> Result<PermissionResponse, String> {
        let object =
            parse_object(text.trim(), JsonLimits::SETTINGS).map_err(|problem| problem.to_string())?;
        serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
    };
    let response = match parse() {
        Ok(response) => response,
        Err(problem) => {
            return ApprovalAnswer::Lost { why: format!("the prompt tool's answer is invalid: {problem}") };
        }
    };
    match (response.behavior, &response.updated_input, response.rules()) {
        (PermissionBehavior::Deny, _, _) => ApprovalAnswer::No { message: response.message },
        (PermissionBehavior::Allow, Some(input), _) => ApprovalAnswer::Revise { input: input.clone() },
        (PermissionBehavior::Allow, None, Ok(rules)) if !rules.is_empty() => {
            ApprovalAnswer::Session { rules }
        }
        (PermissionBehavior::Allow, None, Ok(_)) => ApprovalAnswer::Once,
        (PermissionBehavior::Allow, None, Err(problem)) => ApprovalAnswer::Lost { why: problem },
    }
}

impl Approver for PromptTool {
    /// Names the tool in approval records, so that an audit shows which program approved a call.
    fn name(&self) -> &str {
        &self.name
    }

    /// Asks the tool. Passes on its own calls, which would recurse, and requests that only the user may answer.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.ask_tool(request))
    }
}
