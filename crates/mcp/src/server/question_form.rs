//! Questions of a tool to the user of the client, as a form.
//!
//! Each question is a choice and a text; the user fills one of them.
//! A legacy client gets the form and the call waits; a modern one gets it as the result of the call, and makes the call
//! again with the answers, as in [`elicitation`](super::elicitation).

use super::conversation::ClientConversation;
use crate::protocol_value::ClientInputRequest;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
};
use serde_json::{Map, Value, json};
use toolgate_gate::ledger::sha256_hex;
use toolgate_gate::{QuestionAnswer, QuestionOutcome, QuestionRequest, UserQuestion};
use toolgate_proto::fit_text;

/// The name of the form among the requests of a modern call.
const QUESTION_REQUEST_KEY: &str = "toolgate.question";
/// The most characters of one text of a form.
const MAX_FORM_CHARS: usize = 1_000;

/// Asks the user of the client. Passes where the call did not come over MCP, or the client has no forms.
pub(super) async fn ask_client(request: &QuestionRequest) -> QuestionOutcome {
    let Some(conversation) = ClientConversation::of(&request.context, &request.call) else {
        return QuestionOutcome::Pass;
    };
    let form =
        ClientInputRequest(InputRequest::Elicitation(ElicitRequest::new(question_form(&request.questions))));
    if !conversation.can_answer(&form) {
        return QuestionOutcome::Pass;
    }
    if conversation.can_ask_inline() {
        let answer = tokio::select! {
            answer = conversation.ask(form) => answer,
            () = request.cancel.cancelled() => Err("the questions were withdrawn".to_owned()),
        };
        return match answer {
            Ok(value) => parse_form(&value, &request.questions),
            Err(why) => QuestionOutcome::Lost { why },
        };
    }
    // The answers count for the questions that were shown.
    let digest = sha256_hex(json!(request.questions).to_string().as_bytes());
    let asked_before = conversation.request_state.asked.as_ref() == Some(&digest);
    match conversation.response(QUESTION_REQUEST_KEY).filter(|_| asked_before) {
        Some(value) => parse_form(value, &request.questions),
        None => {
            let mut outgoing = conversation.outgoing();
            outgoing.requests.insert(QUESTION_REQUEST_KEY.to_owned(), form.0);
            outgoing.carried.asked = Some(digest);
            outgoing.wanted = true;
            QuestionOutcome::Later
        }
    }
}

/// The questions as a form: for each a choice, and a text of the user's own.
fn question_form(questions: &[UserQuestion]) -> ElicitRequestParams {
    let mut properties = Map::new();
    for (question, number) in questions.iter().zip(1..) {
        let choices: Vec<Value> = question
            .options
            .iter()
            .map(|option| {
                let title = format!("{}: {}", option.label, option.description);
                json!({ "const": option.label, "title": fit_text(&title, MAX_FORM_CHARS) })
            })
            .collect();
        let title = fit_text(&question.header, MAX_FORM_CHARS);
        let description = fit_text(&question.question, MAX_FORM_CHARS);
        let choice = match question.multi_select {
            true => json!({
                "type": "array", "title": title, "description": description, "items": { "anyOf": choices },
            }),
            false => {
                json!({ "type": "string", "title": title, "description": description, "oneOf": choices })
            }
        };
        properties.insert(choice_key(number), choice);
        let text = json!({ "type": "string", "title": "Other", "description": "an answer of your own" });
        properties.insert(text_key(number), text);
    }
    let schema = json!({ "type": "object", "properties": properties, "required": [] });
    // INVARIANT: the schema above is an object of choices and strings, which is a form.
    let requested_schema = serde_json::from_value(schema)
        .unwrap_or_else(|_| ElicitationSchema::new(std::collections::BTreeMap::new()));
    let lines: Vec<String> = questions.iter().map(describe_question).collect();
    ElicitRequestParams::FormElicitationParams { meta: None, message: lines.join("\n"), requested_schema }
}

/// A question for the message above the form, with the previews of its options, for which a form has no place.
fn describe_question(question: &UserQuestion) -> String {
    let mut text = fit_text(&question.question, MAX_FORM_CHARS);
    for option in &question.options {
        if let Some(preview) = option.preview.as_deref().filter(|preview| !preview.trim().is_empty()) {
            let shown = format!("\n\n{}:\n{}", option.label, preview.trim_end());
            text.push_str(&fit_text(&shown, MAX_FORM_CHARS));
        }
    }
    text
}

/// Names the form field of a choice; shared by rendering and parsing.
fn choice_key(number: u32) -> String {
    format!("answer_{number}")
}

/// Names the form field of a free text; shared by rendering and parsing.
fn text_key(number: u32) -> String {
    format!("other_{number}")
}

/// What the form says. A form that is left blank declines.
fn parse_form(value: &Value, questions: &[UserQuestion]) -> QuestionOutcome {
    let Ok(result) = serde_json::from_value::<ElicitResult>(value.clone()) else {
        return QuestionOutcome::Lost { why: "the client's answer cannot be read".to_owned() };
    };
    if !matches!(result.action, ElicitationAction::Accept) {
        return QuestionOutcome::Declined { message: None };
    }
    let content = result.content.unwrap_or_default();
    let text_of =
        |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let mut answers = Vec::new();
    for (question, number) in questions.iter().zip(1..) {
        let text = content.get(text_key(number).as_str()).and_then(text_of);
        let chosen: Vec<String> = match content.get(choice_key(number).as_str()) {
            Some(Value::Array(labels)) => labels.iter().filter_map(text_of).collect(),
            Some(label) => text_of(label).into_iter().collect(),
            None => Vec::new(),
        };
        // The user's own words count where only one answer is wanted.
        let chosen = if text.is_some() && !question.multi_select { Vec::new() } else { chosen };
        if chosen.is_empty() && text.is_none() {
            return QuestionOutcome::Declined { message: Some("a question was left blank".to_owned()) };
        }
        answers.push(QuestionAnswer::new(chosen).with_text(text));
    }
    QuestionOutcome::Answered(answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_gate::QuestionOption;

    fn questions() -> Vec<UserQuestion> {
        let option = |label: &str| {
            QuestionOption::new(label, "what it means").with_preview(format!("let {label} = 1;"))
        };
        let question = |multi_select| {
            UserQuestion::new("Which?", "Choice", vec![option("a"), option("b")])
                .with_multi_select(multi_select)
        };
        vec![question(false), question(true)]
    }

    #[test]
    fn a_form_has_a_choice_and_a_text_for_each_question() {
        let form = question_form(&questions());
        let ElicitRequestParams::FormElicitationParams { requested_schema, message, .. } = form else {
            panic!("no form");
        };
        assert!(message.starts_with("Which?\n\na:\nlet a = 1;\n\nb:\nlet b = 1;\nWhich?"), "{message}");
        let keys: Vec<&String> = requested_schema.properties.keys().collect();
        assert_eq!(keys, ["answer_1", "answer_2", "other_1", "other_2"]);
    }

    #[test]
    fn a_form_is_read_as_it_was_filled() {
        let parse = |value: Value| parse_form(&value, &questions());
        let answer = |chosen: &[&str], text: Option<&str>| {
            QuestionAnswer::new(chosen.iter().map(|label| (*label).to_owned()).collect())
                .with_text(text.map(str::to_owned))
        };
        let content = json!({ "answer_1": "a", "answer_2": ["a", "b"], "other_2": "c" });
        let expected = vec![answer(&["a"], None), answer(&["a", "b"], Some("c"))];
        assert_eq!(
            parse(json!({ "action": "accept", "content": content })),
            QuestionOutcome::Answered(expected)
        );
        let content = json!({ "answer_1": "a", "other_1": " mine ", "answer_2": ["b"] });
        let expected = vec![answer(&[], Some("mine")), answer(&["b"], None)];
        assert_eq!(
            parse(json!({ "action": "accept", "content": content })),
            QuestionOutcome::Answered(expected)
        );
        for value in [
            json!({ "action": "decline" }),
            json!({ "action": "cancel" }),
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "answer_1": "a", "other_2": "  " } }),
        ] {
            assert!(matches!(parse(value), QuestionOutcome::Declined { .. }));
        }
        assert!(matches!(parse(json!(1)), QuestionOutcome::Lost { .. }));
    }
}
