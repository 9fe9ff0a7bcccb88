//! Elicitation: a question of the gate, put to the user of the client.
//!
//! A legacy client gets an elicitation and the call waits; a modern one gets the question as the result of the call,
//! and makes the call again with the answer.
//! The state that a modern client carries between the two is sealed: bound to the principal, the method, the tool and the
//! arguments, good for five minutes and for one use.
//! An answer therefore counts for the input that was shown, and for no other.

use super::conversation::{ClientConversation, RequestStatePayload};
use super::question_form::ask_client;
use crate::protocol_value::ClientInputRequest;
use futures_util::future::BoxFuture;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult, RequestStateCodec, RequestStateError, SealOptions,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use toolgate_gate::ledger::sha256_hex;
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, QuestionOutcome, QuestionPosition, QuestionRequest,
};
use toolgate_proto::{ApprovalCard, CardSize, GrantScope, RuleWidth};

/// The name of the question among those of a modern call.
const APPROVAL_REQUEST_KEY: &str = "toolgate.approval";
/// How long an answer may take to come back.
const REQUEST_STATE_TTL: Duration = Duration::from_secs(300);
/// The room for a question: clients show it in a dialog of their own.
const MESSAGE_SIZE: CardSize = CardSize { width: 100, height: 60 };

/// Asks the user of the client, by elicitation. Passes where the call did not come over MCP.
#[derive(Debug, Default)]
pub struct ClientApprover;

impl Approver for ClientApprover {
    fn name(&self) -> &str {
        "mcp client"
    }

    fn description(&self) -> &str {
        "the user of the MCP client"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let Some(conversation) = ClientConversation::of(&request.context, &request.call) else {
                return ApprovalAnswer::Pass;
            };
            let digest = &request.input_sha256;
            if conversation.request_state.approved.as_ref() == Some(digest) {
                conversation.outgoing().carried.approved = Some(digest.clone());
                return ApprovalAnswer::Once;
            }
            let position = request.queue.position();
            let shown = (conversation.can_ask_inline() && !position.is_only()).then_some(position);
            let form = ElicitRequest::new(approval_elicitation(&request.card, shown));
            let question = ClientInputRequest(InputRequest::Elicitation(form));
            if !conversation.can_answer(&question) {
                return ApprovalAnswer::Pass;
            }
            match conversation.can_ask_inline() {
                true => {
                    let answer = tokio::select! {
                        answer = conversation.ask(question) => answer,
                        () = request.cancel.cancelled() => return ApprovalAnswer::No { message: None },
                    };
                    match answer {
                        Ok(value) => parse_answer(&value, &request.card),
                        Err(problem) => ApprovalAnswer::No {
                            message: Some(format!("the question got no answer: {problem}")),
                        },
                    }
                }
                false => {
                    let asked_before = conversation.request_state.asked.as_ref() == Some(digest);
                    match conversation.response(APPROVAL_REQUEST_KEY).filter(|_| asked_before) {
                        Some(value) => {
                            let answer = parse_answer(value, &request.card);
                            if matches!(answer, ApprovalAnswer::Once | ApprovalAnswer::Session { .. }) {
                                conversation.outgoing().carried.approved = Some(digest.clone());
                            }
                            answer
                        }
                        None => {
                            let mut outgoing = conversation.outgoing();
                            outgoing.requests.insert(APPROVAL_REQUEST_KEY.to_owned(), question.0);
                            outgoing.carried.asked = Some(digest.clone());
                            outgoing.wanted = true;
                            ApprovalAnswer::Later
                        }
                    }
                }
            }
        })
    }

    fn ask_questions<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(ask_client(request))
    }
}

/// The question as a form, with its number where other questions follow while the call waits.
fn approval_elicitation(card: &ApprovalCard, position: Option<QuestionPosition>) -> ElicitRequestParams {
    let mut message = card.to_text(MESSAGE_SIZE);
    if let Some(position) = position {
        message = format!("{}\n{position}", message.trim_end());
    }
    let mut choices = vec![json!({ "const": "once", "title": "Yes, this once" })];
    for (answer, width) in session_choices(card) {
        let rules: Vec<String> =
            card.rules_of_width(width).iter().map(|rule| card.describe_rule(rule)).collect();
        choices.push(json!({
            "const": answer, "title": format!("Yes, and allow {} for this session", rules.join(", ")),
        }));
    }
    choices.push(json!({ "const": "no", "title": "No" }));
    let schema = json!({
        "type": "object",
        "properties": { "decision": { "type": "string", "title": "Allow it?", "oneOf": choices } },
        "required": ["decision"],
    });
    // INVARIANT: the schema above is an object with one choice, which is a form.
    let requested_schema = serde_json::from_value(schema)
        .unwrap_or_else(|_| rmcp::model::ElicitationSchema::new(std::collections::BTreeMap::new()));
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The answers that remember rules for the session, with the form of the rules.
fn session_choices(card: &ApprovalCard) -> Vec<(&'static str, RuleWidth)> {
    if !card.scopes.contains(&GrantScope::Session) {
        return Vec::new();
    }
    let mut choices = vec![("session", RuleWidth::Exact)];
    if card.has_wider_rules() {
        choices.push(("session_wider", RuleWidth::Wider));
    }
    choices
}

/// What the answer means. Whatever is not a clear yes is a no.
fn parse_answer(value: &Value, card: &ApprovalCard) -> ApprovalAnswer {
    let Ok(result) = serde_json::from_value::<ElicitResult>(value.clone()) else {
        return ApprovalAnswer::No { message: Some("the client's answer cannot be read".to_owned()) };
    };
    if !matches!(result.action, ElicitationAction::Accept) {
        return ApprovalAnswer::No { message: None };
    }
    let decision =
        result.content.as_ref().and_then(|content| content.get("decision")).and_then(Value::as_str);
    let choices = session_choices(card);
    match decision {
        Some("once") => ApprovalAnswer::Once,
        Some(decision) => match choices.iter().find(|(answer, _)| *answer == decision) {
            Some((_, width)) => ApprovalAnswer::Session { rules: card.rules_of_width(*width) },
            None => ApprovalAnswer::No { message: None },
        },
        None => ApprovalAnswer::No { message: None },
    }
}

/// Seals the state that a client carries, and opens it when it comes back.
#[derive(Debug)]
pub(crate) struct RequestStateSealer {
    /// The authenticated encryption of states, with the key of this process.
    codec: RequestStateCodec,
    /// States that were used, until they expire by themselves.
    used: Mutex<HashMap<String, u64>>,
}

/// What a sealed state is bound to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestStateBinding<'a> {
    /// On whose behalf the call is made.
    pub(crate) principal: &'a str,
    /// The method.
    pub(crate) method: &'a str,
    /// The tool, prompt or resource.
    pub(crate) name: &'a str,
    /// Its arguments.
    pub(crate) arguments: Option<&'a Map<String, Value>>,
}

impl RequestStateBinding<'_> {
    /// Encodes the binding as associated data. Arguments are digested in canonical form, because a client may reorder
    /// keys when it repeats the call.
    fn bytes(&self) -> Vec<u8> {
        let mut digest = String::new();
        write_canonical_json(&Value::Object(self.arguments.cloned().unwrap_or_default()), &mut digest);
        json!([self.principal, self.method, self.name, sha256_hex(digest.as_bytes())])
            .to_string()
            .into_bytes()
    }
}

impl RequestStateSealer {
    /// With a key that ends with the process.
    pub(crate) fn new() -> io::Result<Self> {
        let key = toolgate_files::random_bytes::<32>()?;
        let codec = RequestStateCodec::try_new(key).map_err(io::Error::other)?;
        Ok(Self { codec, used: Mutex::default() })
    }

    /// The result that asks for another round.
    pub(crate) fn seal(
        &self,
        requests: InputRequests,
        mut carried: RequestStatePayload,
        binding: RequestStateBinding<'_>,
    ) -> Result<InputRequiredResult, RequestStateError> {
        carried.nonce = toolgate_files::generate_id("");
        let bound = binding.bytes();
        let options = SealOptions::new().associated_data(&bound).ttl(REQUEST_STATE_TTL);
        let state = self.codec.seal_json_with(&carried, &options)?;
        Ok(InputRequiredResult::new((!requests.is_empty()).then_some(requests), Some(state)))
    }

    /// Opens what came back. Why it is not taken is said in words for the client.
    pub(crate) fn open(
        &self,
        state: Option<&str>,
        binding: RequestStateBinding<'_>,
    ) -> Result<RequestStatePayload, String> {
        let Some(state) = state else { return Ok(RequestStatePayload::default()) };
        let carried: RequestStatePayload = self
            .codec
            .open_json_with(state, &binding.bytes())
            .map_err(|error| format!("the request state is not taken: {error}"))?;
        // What lets a call run may be used once; what a tool merely put aside may come back on a retry.
        if carried.asked.is_some() || carried.approved.is_some() {
            let now = toolgate_files::now_millis();
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.retain(|_, until| *until > now);
            let until = now + u64::try_from(REQUEST_STATE_TTL.as_millis()).unwrap_or(u64::MAX);
            if used.insert(carried.nonce.clone(), until).is_some() {
                return Err("the request state was used before".to_owned());
            }
        }
        Ok(carried)
    }
}

/// A text that is the same for equal values, whatever the order of their keys.
fn write_canonical_json(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for key in keys {
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                if let Some(value) = map.get(key) {
                    write_canonical_json(value, out);
                }
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical_json(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_proto::{ApprovalQuestion, CardContent, Code, RiskLevel, RuleSuggestion, VerdictReason};

    fn binding<'a>(
        principal: &'a str,
        name: &'a str,
        arguments: Option<&'a Map<String, Value>>,
    ) -> RequestStateBinding<'a> {
        RequestStateBinding { principal, method: "tools/call", name, arguments }
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_state_counts_for_what_it_was_made_for_and_once() {
        let seals = RequestStateSealer::new().unwrap();
        let arguments = object(json!({ "path": "a", "deep": { "x": 1, "y": [2] } }));
        let carried =
            RequestStatePayload { asked: Some("digest".to_owned()), ..RequestStatePayload::default() };
        let made = binding("me", "Write", Some(&arguments));
        let sealed = seals.seal(InputRequests::new(), carried.clone(), made).unwrap();
        let state = sealed.request_state.unwrap();

        let other = object(json!({ "path": "b", "deep": { "x": 1, "y": [2] } }));
        for wrong in [
            binding("you", "Write", Some(&arguments)),
            binding("me", "Edit", Some(&arguments)),
            binding("me", "Write", Some(&other)),
            binding("me", "Write", None),
        ] {
            assert!(seals.open(Some(&state), wrong).unwrap_err().contains("not taken"));
        }
        let mut tampered = state.clone().into_bytes();
        let last = tampered.len() - 1;
        tampered[last] = if tampered[last] == b'A' { b'B' } else { b'A' };
        assert!(seals.open(Some(std::str::from_utf8(&tampered).unwrap()), made).is_err());

        // The same arguments in another order are the same arguments.
        let reordered = object(json!({ "deep": { "y": [2], "x": 1 }, "path": "a" }));
        let opened = seals.open(Some(&state), binding("me", "Write", Some(&reordered))).unwrap();
        assert_eq!(opened.asked, carried.asked);
        assert!(seals.open(Some(&state), made).unwrap_err().contains("used before"));
        // Another process has another key.
        assert!(RequestStateSealer::new().unwrap().open(Some(&state), made).is_err());
    }

    fn card(description: &str, rules: Vec<RuleSuggestion>) -> ApprovalCard {
        let reason = VerdictReason::new(Code::DeniedByMode, "no rule matches");
        let mut question = ApprovalQuestion::new("Write".into(), description, RiskLevel::Medium, reason);
        question.suggestions = rules;
        let input = object(json!({ "url": "https://example.com" }));
        let content = CardContent::new(&input, &[GrantScope::Session]);
        ApprovalCard::new(&question, content)
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let rules = vec![
            RuleSuggestion::new("Bash(npm run a)").with_wider(Some("Bash(npm run *)".to_owned())),
            RuleSuggestion::new("Bash(ls b)"),
        ];
        let card = card("write a\u{202e}b", rules);
        let accepted = |decision: Value| json!({ "action": "accept", "content": { "decision": decision } });
        let session = |rules: &[&str]| ApprovalAnswer::Session {
            rules: rules.iter().map(|&rule| rule.to_owned()).collect(),
        };
        for (value, expected) in [
            (accepted(json!("once")), ApprovalAnswer::Once),
            // One answer remembers all the rules that the call needs, in one form.
            (accepted(json!("session")), session(&["Bash(npm run a)", "Bash(ls b)"])),
            (accepted(json!("session_wider")), session(&["Bash(npm run *)", "Bash(ls b)"])),
            (accepted(json!("no")), ApprovalAnswer::No { message: None }),
            (accepted(json!("always")), ApprovalAnswer::No { message: None }),
            (accepted(json!(true)), ApprovalAnswer::No { message: None }),
            (json!({ "action": "accept" }), ApprovalAnswer::No { message: None }),
            (
                json!({ "action": "decline", "content": { "decision": "once" } }),
                ApprovalAnswer::No { message: None },
            ),
            (json!({ "action": "cancel" }), ApprovalAnswer::No { message: None }),
        ] {
            assert_eq!(parse_answer(&value, &card), expected, "{value}");
        }
        assert!(matches!(parse_answer(&json!(true), &card), ApprovalAnswer::No { message: Some(_) }));
    }

    #[test]
    fn the_form_shows_the_card() {
        let padded = format!("run `ls{}; rm -rf ~` (list files{})", " ".repeat(9000), "\n".repeat(300));
        let rules = vec![RuleSuggestion::new("Write(a)")];
        for (description, shown) in
            [("write a\u{202e}b", "a\\u{202e}b"), (&padded, "; rm -rf ~` (list files")]
        {
            let params = approval_elicitation(&card(description, rules.clone()), None);
            let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = params else {
                panic!("not a form");
            };
            for part in [shown, "risk      medium", "https://example.com", "no rule matches"] {
                assert!(message.contains(part), "{part} is not in\n{message}");
            }
            assert!(message.lines().count() < 12, "{message}");
            assert_eq!(requested_schema.properties.len(), 1);
        }
    }

    #[test]
    fn the_form_has_the_number_of_the_question() {
        let counter = std::sync::Arc::new(toolgate_gate::QuestionCounter::default());
        let _tickets = [counter.join(), counter.expect_call()];
        let params = approval_elicitation(&card("write a", Vec::new()), Some(counter.position()));
        let ElicitRequestParams::FormElicitationParams { message, .. } = params else { panic!("not a form") };
        assert_eq!(message.lines().last(), Some("question 1; 1 further call is not judged yet"));
    }
}
