//! Questions to the editor, by `session/request_permission`.

use super::acp_client::AcpClient;
use super::ask_in_editor::ask_in_editor;
use super::call_content::{call_title, unified_diff_content};
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use futures_util::future::BoxFuture;
use serde_json::Value;
use toolgate_gate::{ApprovalAnswer, ApprovalRequest, Approver, QuestionOutcome, QuestionRequest};
use toolgate_proto::{CardSize, GrantScope, RuleWidth};

/// The width for which a question is laid out.
const CARD_WIDTH: usize = 100;
/// Yes, this once.
const ALLOW_ONCE: &str = "allow_once";
/// Yes, and for the rest of the session.
const ALLOW_SESSION: &str = "allow_session";
/// Yes, and for good in this project.
const ALLOW_PROJECT: &str = "allow_project";
/// No.
const REJECT_ONCE: &str = "reject_once";

/// Asks the editor.
pub struct AcpApprover {
    /// The editor.
    client: AcpClient,
}

impl AcpApprover {
    /// An approver for a session.
    pub fn new(client: AcpClient) -> Self {
        Self { client }
    }
}

impl Approver for AcpApprover {
    fn name(&self) -> &str {
        "editor"
    }

    fn description(&self) -> &str {
        "the user of the editor"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let question = RequestPermissionRequest::new(
                self.client.session(),
                ToolCallUpdate::new(request.call.to_string(), question_fields(request)),
                answer_options(request),
            );
            let answer = match self.client.request(question).await {
                Ok(answer) => read_outcome(request, &answer.outcome),
                Err(problem) => ApprovalAnswer::Lost { why: format!("the editor gave no answer: {problem}") },
            };
            if matches!(
                answer,
                ApprovalAnswer::Once | ApprovalAnswer::Session { .. } | ApprovalAnswer::Always { .. }
            ) {
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                let update = ToolCallUpdate::new(request.call.to_string(), fields);
                self.client.update(SessionUpdate::ToolCallUpdate(update));
            }
            answer
        })
    }

    fn ask_questions<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(ask_in_editor(&self.client, request))
    }
}

/// The call as the question shows it: the card, and the change as a diff.
fn question_fields(request: &ApprovalRequest) -> ToolCallUpdateFields {
    let card = &request.card;
    let head = card.render_head(CardSize::unlimited(CARD_WIDTH));
    let mut shown = card.clone();
    shown.diff = None;
    let rows = if card.diff.is_some() { head } else { shown.render(CardSize::unlimited(CARD_WIDTH)) };
    let mut lines: Vec<String> = rows.iter().map(|row| format!("{}{}", row.prefix, row.text)).collect();
    let position = request.queue.position();
    if !position.is_only() {
        lines.push(position.to_string());
    }
    let text = lines.join("\n");
    let mut content = vec![ToolCallContent::from(text)];
    let cwd = &request.context.workspace.cwd;
    if let Some(diff) = &card.diff {
        content.extend(unified_diff_content(&request.input, diff, cwd));
    }
    ToolCallUpdateFields::new()
        .title(call_title(card.tool.as_str(), &request.input))
        .status(ToolCallStatus::Pending)
        .content(content)
        .raw_input(Value::Object(request.input.clone()))
}

/// The answers on offer. A rule is offered only where it can be kept.
fn answer_options(request: &ApprovalRequest) -> Vec<PermissionOption> {
    let rules = request.card.rules_of_width(RuleWidth::Exact);
    let rules = rules.iter().map(|rule| request.card.describe_rule(rule)).collect::<Vec<_>>().join(", ");
    let mut options = vec![PermissionOption::new(ALLOW_ONCE, "Allow once", PermissionOptionKind::AllowOnce)];
    for scope in &request.card.scopes {
        let (id, words) = match scope {
            GrantScope::Session => (ALLOW_SESSION, "for this session"),
            GrantScope::Project => (ALLOW_PROJECT, "always in this project"),
        };
        let name = format!("Allow {rules} {words}");
        options.push(PermissionOption::new(id, name, PermissionOptionKind::AllowAlways));
    }
    options.push(PermissionOption::new(REJECT_ONCE, "Reject", PermissionOptionKind::RejectOnce));
    options
}

/// What an answer means. What is not clearly a yes is none.
fn read_outcome(request: &ApprovalRequest, outcome: &RequestPermissionOutcome) -> ApprovalAnswer {
    let selected = match outcome {
        RequestPermissionOutcome::Selected(selected) => &*selected.option_id.0,
        RequestPermissionOutcome::Cancelled => return ApprovalAnswer::No { message: None },
        _ => return ApprovalAnswer::Lost { why: "the editor's answer is not known".to_owned() },
    };
    let rules = || request.card.rules_of_width(RuleWidth::Exact);
    let offers = |scope: GrantScope| request.card.scopes.contains(&scope);
    match selected {
        ALLOW_ONCE => ApprovalAnswer::Once,
        ALLOW_SESSION if offers(GrantScope::Session) => ApprovalAnswer::Session { rules: rules() },
        ALLOW_PROJECT if offers(GrantScope::Project) => ApprovalAnswer::Always { rules: rules() },
        REJECT_ONCE => ApprovalAnswer::No { message: None },
        other => ApprovalAnswer::Lost { why: format!("the editor chose `{other}`, which was not offered") },
    }
}
