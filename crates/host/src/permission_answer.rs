//! Questions to the host, and what its answers mean.

use crate::control_channel::{ControlChannel, ControlError};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, QuestionAnswer, QuestionOutcome, QuestionRequest, UserQuestion,
};
use toolgate_proto::CallId;

/// Applies changes of permissions that come with an answer of the host.
pub trait PermissionUpdater: Send + Sync {
    /// Applies one `PermissionUpdate`. An error means that it was not applied.
    fn apply_update(&self, update: &Value) -> Result<(), String>;
}

/// Asks the host by `can_use_tool`.
pub struct HostApprover {
    /// The way to the host.
    channel: ControlChannel,
    /// Applies changes of permissions.
    updater: Arc<dyn PermissionUpdater>,
    /// The turn under way, which a denial may end.
    turn: Arc<TurnInterrupt>,
    /// Inputs that the host itself wrote, by call: what it wrote it need not be asked about again.
    revised: Mutex<HashMap<CallId, Map<String, Value>>>,
}

/// The cancellation of the turn under way.
#[derive(Debug, Default)]
pub struct TurnInterrupt {
    /// The turn and what was asked of it.
    state: Mutex<TurnInterruptState>,
}

/// The turn, if there is one.
#[derive(Debug, Default)]
struct TurnInterruptState {
    /// Ends the turn under way.
    current: Option<CancellationToken>,
    /// An interrupt that came before the turn began.
    is_latched: bool,
}

impl TurnInterrupt {
    /// A turn begins; an interrupt that came before it holds for it.
    pub fn begin_turn(&self) -> CancellationToken {
        let token = CancellationToken::new();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.is_latched) {
            token.cancel();
        }
        state.current = Some(token.clone());
        token
    }

    /// The cancellation token of the turn under way. Between turns it is a new token, which is never cancelled.
    pub fn current_turn(&self) -> CancellationToken {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).current.clone().unwrap_or_default()
    }

    /// The turn is over.
    pub fn end_turn(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).current = None;
    }

    /// Interrupts the turn. `latch` keeps the interrupt for a turn that is about to begin.
    pub fn interrupt(&self, latch: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.current {
            Some(token) => token.cancel(),
            None => state.is_latched = latch,
        }
    }
}

impl HostApprover {
    /// An approver over a channel.
    pub fn new(
        channel: ControlChannel,
        updater: Arc<dyn PermissionUpdater>,
        turn: Arc<TurnInterrupt>,
    ) -> Self {
        Self { channel, updater, turn, revised: Mutex::default() }
    }

    /// Applies every change of permissions; gives what went wrong.
    fn apply_updates(&self, answer: &Value) -> Vec<String> {
        let updates = answer.get("updatedPermissions").and_then(Value::as_array).into_iter().flatten();
        updates.filter_map(|update| self.updater.apply_update(update).err()).collect()
    }

    /// What an answer means. What is not clearly a yes is none.
    fn read_answer(&self, request: &ApprovalRequest, answer: &Value) -> ApprovalAnswer {
        match answer.get("behavior").and_then(Value::as_str) {
            Some("allow") => {
                let problems = self.apply_updates(answer);
                if let Some(problem) = problems.first() {
                    // The yes may have been meant only together with the change.
                    return ApprovalAnswer::Lost {
                        why: format!("the permission update was not applied: {problem}"),
                    };
                }
                match answer.get("updatedInput") {
                    Some(Value::Object(input)) if *input != request.input => {
                        let mut revised = self.revised.lock().unwrap_or_else(PoisonError::into_inner);
                        revised.insert(request.call.clone(), input.clone());
                        ApprovalAnswer::Revise { input: input.clone() }
                    }
                    Some(Value::Object(_) | Value::Null) | None => ApprovalAnswer::Once,
                    Some(_) => {
                        ApprovalAnswer::Lost { why: "`updatedInput` of the host is not an object".to_owned() }
                    }
                }
            }
            Some("deny") => {
                if answer.get("interrupt") == Some(&Value::Bool(true)) {
                    self.turn.interrupt(false);
                }
                let message = answer.get("message").and_then(Value::as_str).map(str::to_owned);
                ApprovalAnswer::No { message }
            }
            _ => ApprovalAnswer::Lost { why: "the host's answer has no known `behavior`".to_owned() },
        }
    }

    /// What an answer to questions means. A question without an answer counts as declined with the others.
    fn read_answers(&self, questions: &[UserQuestion], answer: &Value) -> QuestionOutcome {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(items) => {
                Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
            }
            _ => None,
        };
        match answer.get("behavior").and_then(Value::as_str) {
            Some("allow") => {
                let given = answer.pointer("/updatedInput/answers").and_then(Value::as_object);
                let found = |question: &UserQuestion| text(given?.get(&question.question)?);
                if !questions.iter().any(|question| found(question).is_some()) {
                    let message = answer.pointer("/updatedInput/response").and_then(text);
                    return QuestionOutcome::Declined { message };
                }
                let answers = questions.iter().map(|question| match found(question) {
                    Some(answer) => read_question_answer(question, &answer),
                    None => QuestionAnswer::new(Vec::new()).with_text("(no answer)".to_owned()),
                });
                QuestionOutcome::Answered(answers.collect())
            }
            Some("deny") => {
                if answer.get("interrupt") == Some(&Value::Bool(true)) {
                    self.turn.interrupt(false);
                }
                let message = answer.get("message").and_then(Value::as_str).map(str::to_owned);
                QuestionOutcome::Declined { message }
            }
            _ => QuestionOutcome::Lost { why: "the host's answer has no known `behavior`".to_owned() },
        }
    }
}

impl Approver for HostApprover {
    fn name(&self) -> &str {
        "host"
    }

    fn description(&self) -> &str {
        "the host program"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let revised = self.revised.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.call);
            if revised.is_some_and(|input| input == request.input) {
                return ApprovalAnswer::Once;
            }
            match self.channel.ask_user(build_question(request)).await {
                Ok(answer) => self.read_answer(request, &answer),
                Err(problem @ (ControlError::Lost | ControlError::TooLong)) => {
                    ApprovalAnswer::Lost { why: problem.to_string() }
                }
                Err(ControlError::Refused(why)) => {
                    ApprovalAnswer::Lost { why: format!("the host could not answer: {why}") }
                }
            }
        })
    }

    /// Puts the questions to the host as it knows them: a `can_use_tool` of `AskUserQuestion`, answered by `answers` in
    /// the input.
    fn ask_questions<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(async move {
            let question = json!({
                "subtype": "can_use_tool",
                "tool_name": QUESTION_TOOL,
                "input": { "questions": request.questions },
                "tool_use_id": request.call,
                "permission_suggestions": [],
                "requires_user_interaction": true,
            });
            match self.channel.ask_user(question).await {
                Ok(answer) => self.read_answers(&request.questions, &answer),
                Err(problem) => QuestionOutcome::Lost { why: problem.to_string() },
            }
        })
    }
}

/// The tool whose questions a host shows to its user.
const QUESTION_TOOL: &str = "AskUserQuestion";

/// The answer to one question: labels that were offered are choices, other text is the user's own.
fn read_question_answer(question: &UserQuestion, answer: &str) -> QuestionAnswer {
    let is_label = |text: &str| question.options.iter().any(|option| option.label == text);
    let parts: Vec<&str> = match question.multi_select {
        true if !is_label(answer) => {
            answer.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
        }
        _ => vec![answer.trim()],
    };
    let (chosen, words): (Vec<&str>, Vec<&str>) = parts.into_iter().partition(|part| is_label(part));
    let text = words.join(", ");
    QuestionAnswer::new(chosen.into_iter().map(str::to_owned).collect())
        .with_text((!text.is_empty()).then_some(text))
}

/// The `can_use_tool` request.
fn build_question(request: &ApprovalRequest) -> Value {
    let question = &request.question;
    let mut fields = Map::new();
    fields.insert("subtype".into(), json!("can_use_tool"));
    fields.insert("tool_name".into(), json!(question.tool));
    fields.insert("input".into(), Value::Object(request.input.clone()));
    fields.insert("tool_use_id".into(), json!(request.call));
    let suggestions = question.suggestions.iter().map(|suggestion| rule_update(&suggestion.rule));
    fields.insert("permission_suggestions".into(), suggestions.collect());
    fields.insert("decision_reason".into(), json!(question.reason.to_string()));
    fields.insert("description".into(), json!(question.description));
    if request.requires_user {
        fields.insert("requires_user_interaction".into(), json!(true));
    }
    if let Some(agent) = request
        .context
        .session
        .principal()
        .name
        .as_deref()
        .filter(|_| request.context.session.principal().edge == "subagent")
    {
        fields.insert("agent_id".into(), json!(agent));
    }
    Value::Object(fields)
}

/// A rule as a `PermissionUpdate` for the project's local settings.
pub fn rule_update(rule: &str) -> Value {
    let parts = match rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?))) {
        Some((tool, content)) => json!({ "toolName": tool, "ruleContent": content }),
        None => json!({ "toolName": rule }),
    };
    json!({ "type": "addRules", "rules": [parts], "behavior": "allow", "destination": "localSettings" })
}

/// The rules of an `addRules` update, as text.
pub fn update_rules(update: &Value) -> Result<Vec<String>, String> {
    let rules = update.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
    rules
        .iter()
        .map(|rule| {
            let part = |key: &str| rule.get(key).and_then(Value::as_str);
            let tool = part("toolName").ok_or("a rule has no `toolName`")?;
            Ok(match part("ruleContent") {
                Some(content) => format!("{tool}({content})"),
                None => tool.to_owned(),
            })
        })
        .collect()
}
