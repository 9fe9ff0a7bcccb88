//! Questions of a tool to the user, put to the host by `can_use_tool` as its own question tool would be.
//!
//! The host answers with the input of the call and `answers` in it, by the text of each question. An answer is text for
//! the model: a yes without answers is none, and nothing here approves a call.

use serde_json::{Map, Value, json};
use toolgate_gate::{QuestionAnswer, QuestionOutcome, QuestionRequest, UserQuestion};

/// The tool by which hosts know such a request.
const QUESTION_TOOL: &str = "AskUserQuestion";
/// What stands between the labels of an answer with several of them.
const LABEL_SEPARATOR: &str = ", ";

/// The request to the host.
pub(crate) fn build_host_question(request: &QuestionRequest) -> Value {
    let mut fields = Map::from_iter([
        ("subtype".to_owned(), json!("can_use_tool")),
        ("tool_name".to_owned(), json!(QUESTION_TOOL)),
        ("input".to_owned(), json!({ "questions": request.questions })),
        ("tool_use_id".to_owned(), json!(request.call)),
        ("requires_user_interaction".to_owned(), json!(true)),
    ]);
    let principal = request.context.session.principal();
    if let Some(agent) = principal.name.as_deref().filter(|_| principal.edge == "subagent") {
        fields.insert("agent_id".to_owned(), json!(agent));
    }
    Value::Object(fields)
}

/// What the host's answer means.
pub(crate) fn read_question_outcome(questions: &[UserQuestion], answer: &Value) -> QuestionOutcome {
    let lost = |why: &str| QuestionOutcome::Lost { why: why.to_owned() };
    let message = answer.get("message").and_then(Value::as_str).map(str::to_owned);
    match answer.get("behavior").and_then(Value::as_str) {
        Some("deny") => return QuestionOutcome::Declined { message },
        Some("allow") => {}
        _ => return lost("the host's answer has no known `behavior`"),
    }
    let input = answer.get("updatedInput").unwrap_or(&Value::Null);
    // A user who writes a reply in place of choosing has answered every question with it.
    let reply = input.get("response").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let given = |question: &UserQuestion| {
        let answers = input.get("answers")?;
        let words: Vec<&str> = match answers.get(&question.question)? {
            Value::String(text) => vec![text.as_str()],
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        read_answer(question, &words)
    };
    let own_words = || reply.map(|text| QuestionAnswer { chosen: Vec::new(), text: Some(text.to_owned()) });
    let answers: Vec<Option<QuestionAnswer>> =
        questions.iter().map(|question| given(question).or_else(own_words)).collect();
    if answers.iter().all(Option::is_none) {
        return QuestionOutcome::Declined { message };
    }
    match answers.iter().cloned().collect::<Option<Vec<_>>>() {
        Some(answers) => QuestionOutcome::Answered(answers),
        None => lost("the host answered only some of the questions"),
    }
}

/// An answer in words: labels that were offered, and the user's own words.
fn read_answer(question: &UserQuestion, words: &[&str]) -> Option<QuestionAnswer> {
    let is_label = |text: &str| question.options.iter().any(|option| option.label == text);
    // A label may contain the separator, so the whole text is looked at first.
    let parts: Vec<&str> = words
        .iter()
        .copied()
        .flat_map(|text: &str| match is_label(text) || !question.multi_select {
            true => vec![text],
            false => text.split(LABEL_SEPARATOR).collect(),
        })
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect();
    let mut answer = QuestionAnswer::default();
    let mut own_words: Vec<&str> = Vec::new();
    for part in parts {
        match is_label(part) {
            true if answer.chosen.iter().all(|chosen| chosen != part) => answer.chosen.push(part.to_owned()),
            true => {}
            false => own_words.push(part),
        }
    }
    answer.text = (!own_words.is_empty()).then(|| own_words.join(LABEL_SEPARATOR));
    (!answer.chosen.is_empty() || answer.text.is_some()).then_some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_gate::QuestionOption;

    fn questions() -> Vec<UserQuestion> {
        let option = |label: &str| QuestionOption {
            label: label.to_owned(),
            description: String::new(),
            preview: None,
        };
        let question = |text: &str, multi_select: bool| UserQuestion {
            question: text.to_owned(),
            header: text.to_owned(),
            options: vec![option("a"), option("b"), option("c, d")],
            multi_select,
        };
        vec![question("one?", false), question("many?", true)]
    }

    fn outcome(answer: &Value) -> QuestionOutcome {
        read_question_outcome(&questions(), answer)
    }

    fn answered(first: (&[&str], Option<&str>), second: (&[&str], Option<&str>)) -> QuestionOutcome {
        let answer = |(chosen, text): (&[&str], Option<&str>)| QuestionAnswer {
            chosen: chosen.iter().map(|label| (*label).to_owned()).collect(),
            text: text.map(str::to_owned),
        };
        QuestionOutcome::Answered(vec![answer(first), answer(second)])
    }

    #[test]
    fn answers_are_labels_lists_of_labels_or_words() {
        let with = |one: Value, many: Value| {
            outcome(
                &json!({ "behavior": "allow", "updatedInput": { "answers": { "one?": one, "many?": many } } }),
            )
        };
        assert_eq!(with(json!("b"), json!("a, b")), answered((&["b"], None), (&["a", "b"], None)));
        assert_eq!(with(json!("c, d"), json!("c, d")), answered((&["c, d"], None), (&["c, d"], None)));
        assert_eq!(
            with(json!("x, y"), json!(["a", "other"])),
            answered((&[], Some("x, y")), (&["a"], Some("other")))
        );
        let reply = json!({ "behavior": "allow", "updatedInput": { "response": "neither" } });
        assert_eq!(outcome(&reply), answered((&[], Some("neither")), (&[], Some("neither"))));
    }

    #[test]
    fn what_is_no_answer_is_none() {
        let declined =
            |message: Option<&str>| QuestionOutcome::Declined { message: message.map(str::to_owned) };
        assert_eq!(outcome(&json!({ "behavior": "deny", "message": "later" })), declined(Some("later")));
        for nothing in [
            json!({ "behavior": "allow" }),
            json!({ "behavior": "allow", "updatedInput": { "answers": {} } }),
            json!({ "behavior": "allow", "updatedInput": { "answers": { "one?": "", "many?": 7 } } }),
        ] {
            assert_eq!(outcome(&nothing), declined(None), "{nothing}");
        }
        for broken in [
            json!(null),
            json!({ "behavior": "perhaps" }),
            json!({ "behavior": "allow", "updatedInput": { "answers": { "one?": "a" } } }),
        ] {
            assert!(matches!(outcome(&broken), QuestionOutcome::Lost { .. }), "{broken}");
        }
    }
}
