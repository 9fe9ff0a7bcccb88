//! Questions of the agent to the user of an editor: a form where the editor shows forms, else one choice at a time.

use super::acp_client::AcpClient;
use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationFormMode, ElicitationSchema, ElicitationSessionScope, EnumOption,
    MultiSelectPropertySchema, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, StringPropertySchema, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use serde_json::{Value, json};
use toolgate_gate::{QuestionAnswer, QuestionOutcome, QuestionRequest, UserQuestion};

/// The choice that gives no answer.
const SKIP: &str = "skip";

/// Puts questions to the user of an editor.
pub(super) async fn ask_in_editor(client: &AcpClient, request: &QuestionRequest) -> QuestionOutcome {
    let shows_forms =
        client.capabilities().elicitation.as_ref().is_some_and(|offered| offered.supports_form());
    match shows_forms {
        true => ask_by_form(client, request).await,
        false => ask_by_choices(client, request).await,
    }
}

/// One form with all questions.
async fn ask_by_form(client: &AcpClient, request: &QuestionRequest) -> QuestionOutcome {
    let mut schema = ElicitationSchema::new();
    for (at, question) in request.questions.iter().enumerate() {
        schema = add_question(schema, at, question);
    }
    let message = match request.questions.as_slice() {
        [only] => only.question.clone(),
        _ => "The agent has some questions".to_owned(),
    };
    let scope = ElicitationSessionScope::new(client.session())
        .tool_call_id(agent_client_protocol::v1::schema::ToolCallId::new(request.call.to_string()));
    let form = CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message);
    match client.request(form).await {
        Ok(answer) => read_form(&request.questions, &json!(answer)),
        Err(problem) => QuestionOutcome::Lost { why: format!("the editor gave no answer: {problem}") },
    }
}

/// The fields of a question: its choices, and a text of the user's own.
fn add_question(schema: ElicitationSchema, at: usize, question: &UserQuestion) -> ElicitationSchema {
    let options: Vec<EnumOption> = question
        .options
        .iter()
        .map(|option| {
            EnumOption::new(option.label.clone(), option.label.clone())
                .description(option.description.clone())
        })
        .collect();
    let (title, text) = (question.header.clone(), question.question.clone());
    let schema = match question.multi_select {
        true => schema.property(
            choice_field(at),
            MultiSelectPropertySchema::titled(options).title(title).description(text),
            false,
        ),
        false => schema.property(
            choice_field(at),
            StringPropertySchema::new().title(title).description(text).one_of(options),
            false,
        ),
    };
    let other = StringPropertySchema::new().title(format!("{} (other)", question.header));
    schema.property(text_field(at), other, false)
}

/// The field with the choice.
fn choice_field(at: usize) -> String {
    format!("question_{}", at + 1)
}

/// The field with a text of the user's own.
fn text_field(at: usize) -> String {
    format!("question_{}_other", at + 1)
}

/// What the answer to a form means.
fn read_form(questions: &[UserQuestion], answer: &Value) -> QuestionOutcome {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {}
        Some("decline" | "cancel") => return QuestionOutcome::Declined { message: None },
        _ => return QuestionOutcome::Lost { why: "the editor's answer is not known".to_owned() },
    }
    let field = |name: String| answer.get("content").and_then(|content| content.get(name));
    let answers: Vec<QuestionAnswer> = questions
        .iter()
        .enumerate()
        .map(|(at, question)| {
            let mut chosen: Vec<String> = match field(choice_field(at)) {
                Some(Value::String(label)) if !label.is_empty() => vec![label.clone()],
                Some(Value::Array(labels)) => {
                    labels.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
                _ => Vec::new(),
            };
            let text = field(text_field(at)).and_then(Value::as_str).map(str::trim);
            let text = text.filter(|text| !text.is_empty()).map(str::to_owned);
            if text.is_some() && !question.multi_select {
                // The user's own words say more than the choice beside them.
                chosen.clear();
            }
            QuestionAnswer::new(chosen).with_text(text)
        })
        .collect();
    close_answers(answers)
}

/// Answers of which at least one is given; the others say that there is none.
fn close_answers(mut answers: Vec<QuestionAnswer>) -> QuestionOutcome {
    let is_open = |answer: &QuestionAnswer| answer.chosen.is_empty() && answer.text.is_none();
    if answers.iter().all(is_open) {
        return QuestionOutcome::Declined { message: None };
    }
    for answer in answers.iter_mut().filter(|answer| is_open(answer)) {
        answer.text = Some("(no answer)".to_owned());
    }
    QuestionOutcome::Answered(answers)
}

/// One request after the other, with a button for each choice: every editor can show that.
async fn ask_by_choices(client: &AcpClient, request: &QuestionRequest) -> QuestionOutcome {
    let mut answers = Vec::with_capacity(request.questions.len());
    for question in &request.questions {
        let choices = RequestPermissionRequest::new(
            client.session(),
            ToolCallUpdate::new(request.call.to_string(), describe_choices(question)),
            choice_buttons(question),
        );
        let outcome = match client.request(choices).await {
            Ok(answer) => answer.outcome,
            Err(problem) => {
                return QuestionOutcome::Lost { why: format!("the editor gave no answer: {problem}") };
            }
        };
        let RequestPermissionOutcome::Selected(selected) = outcome else {
            return QuestionOutcome::Declined { message: None };
        };
        let index = selected.option_id.0.strip_prefix("choice_").and_then(|at| at.parse::<usize>().ok());
        let chosen = index.and_then(|at| question.options.get(at)).map(|option| option.label.clone());
        answers.push(QuestionAnswer::new(chosen.into_iter().collect()));
    }
    close_answers(answers)
}

/// The question and what its choices mean.
fn describe_choices(question: &UserQuestion) -> ToolCallUpdateFields {
    let mut text = question.question.clone();
    for option in &question.options {
        text.push_str(&format!("\n- {}: {}", option.label, option.description));
        if let Some(preview) = &option.preview {
            text.push_str(&format!("\n{preview}"));
        }
    }
    ToolCallUpdateFields::new()
        .title(question.question.clone())
        .status(ToolCallStatus::Pending)
        .content(vec![ToolCallContent::from(text)])
}

/// A button for each choice, and one for no answer.
fn choice_buttons(question: &UserQuestion) -> Vec<PermissionOption> {
    let choices = question.options.iter().enumerate().map(|(at, option)| {
        let id = format!("choice_{at}");
        PermissionOption::new(id, option.label.clone(), PermissionOptionKind::AllowOnce)
    });
    let skip = PermissionOption::new(SKIP, "No answer", PermissionOptionKind::RejectOnce);
    choices.chain([skip]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_gate::QuestionOption;

    fn question(text: &str, multi_select: bool) -> UserQuestion {
        let option = |label: &str| QuestionOption::new(label, "");
        let options = vec![option("one"), option("two")];
        UserQuestion::new(text, "h", options).with_multi_select(multi_select)
    }

    #[test]
    fn only_what_the_user_gave_is_an_answer() {
        let questions = [question("first?", false), question("second?", true)];
        let chosen = |labels: &[&str], text: Option<&str>| {
            QuestionAnswer::new(labels.iter().map(|label| (*label).to_owned()).collect())
                .with_text(text.map(str::to_owned))
        };
        let declined = QuestionOutcome::Declined { message: None };
        for (content, wanted) in [
            (
                json!({ "question_1": "one", "question_2": ["one", "two"] }),
                Some(vec![chosen(&["one"], None), chosen(&["one", "two"], None)]),
            ),
            (
                json!({ "question_1": "one", "question_1_other": " mine " }),
                Some(vec![chosen(&[], Some("mine")), chosen(&[], Some("(no answer)"))]),
            ),
            (json!({ "question_2": [], "question_2_other": "" }), None),
            (json!({}), None),
        ] {
            let read = read_form(&questions, &json!({ "action": "accept", "content": content }));
            assert_eq!(read, wanted.map_or(declined.clone(), QuestionOutcome::Answered), "{content}");
        }
        for (answer, is_lost) in [
            (json!({ "action": "decline" }), false),
            (json!({ "action": "cancel" }), false),
            (json!({}), true),
        ] {
            let read = read_form(&questions, &answer);
            assert_eq!(matches!(read, QuestionOutcome::Lost { .. }), is_lost, "{answer}");
            assert!(!matches!(read, QuestionOutcome::Answered(_)));
        }
    }
}
