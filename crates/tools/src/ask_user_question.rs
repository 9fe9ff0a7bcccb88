//! `AskUserQuestion`: put one to four questions to the user.
//!
//! The answer is text for the model. It approves nothing: a call that needs approval asks again, by itself.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::{
    CallContext, Cleared, QuestionAnswer, QuestionOption, QuestionOutcome, Tool, ToolSpec, UserQuestion,
};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal};

/// Characters of a header.
const MAX_HEADER_CHARS: usize = 12;

/// Asks the user.
pub(crate) struct AskUserQuestionTool;

/// Input of [`AskUserQuestionTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskUserQuestionInput {
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<AskedQuestion>,
    /// Accepted, without effect.
    #[serde(default, rename = "metadata")]
    _metadata: Map<String, Value>,
}

/// A question as models write it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct AskedQuestion {
    /// The whole question.
    question: String,
    /// A label of at most 12 characters.
    header: String,
    /// The choices; the user can always answer in words instead.
    #[schemars(length(min = 2, max = 4))]
    options: Vec<AskedOption>,
    /// Allow several choices.
    #[serde(default)]
    multi_select: bool,
}

/// A choice as models write it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct AskedOption {
    /// A few words.
    label: String,
    /// What it means.
    description: String,
    /// Code or a layout to compare.
    preview: Option<String>,
}

impl Tool for AskUserQuestionTool {
    type Input = AskUserQuestionInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "AskUserQuestion",
            "Asks the user when the task leaves a choice that you cannot decide. The answer does not approve other calls.",
        )
        .with_group("questions")
        .read_only();
        spec.title = "Ask the user".to_owned();
        spec.input_examples = vec![json!({ "questions": [{
            "question": "Which database shall it use?", "header": "Database",
            "options": [
                { "label": "SQLite", "description": "one file, no server" },
                { "label": "Postgres", "description": "a server that others can reach" },
            ],
        }] })];
        spec
    }

    /// Rejects duplicate questions and labels: answers are matched by their text and would be ambiguous.
    fn check(&self, input: &AskUserQuestionInput) -> Result<(), Refusal> {
        for (at, question) in input.questions.iter().enumerate() {
            let refuse = |reason: String| Err(Refusal::new(Code::BadArgument, reason));
            if question.question.trim().is_empty() {
                return refuse(format!("`questions[{at}].question` is empty"));
            }
            if question.header.chars().count() > MAX_HEADER_CHARS {
                return refuse(format!(
                    "`questions[{at}].header` is longer than {MAX_HEADER_CHARS} characters"
                ));
            }
            let mut labels: Vec<&str> = question.options.iter().map(|option| option.label.trim()).collect();
            labels.sort_unstable();
            labels.dedup();
            if labels.len() < question.options.len() || labels.contains(&"") {
                return refuse(format!("`questions[{at}].options` need labels that differ"));
            }
            if input.questions.iter().skip(at + 1).any(|other| other.question == question.question) {
                return refuse(format!("`questions[{at}].question` is asked twice"));
            }
        }
        Ok(())
    }

    /// Declares an `Ask` effect and nothing else. The summary contains the first question only.
    fn intent(&self, input: &AskUserQuestionInput, _context: &CallContext) -> Intent {
        let first = input.questions.first().map_or("", |question| question.question.as_str());
        Intent::new(format!("ask: {first}"), [Effect::Ask])
    }

    /// Returns a declined or unanswered question as a result, not as an error, so that the model continues without
    /// retrying.
    async fn run(&self, input: AskUserQuestionInput, cleared: Cleared) -> CallResult {
        let questions: Vec<UserQuestion> = input.questions.into_iter().map(to_question).collect();
        let outcome = cleared.ask_user(questions.clone()).await?;
        let with_outcome = |name: &str, text: String, answers: Value| {
            Output::text(text)
                .structured(json!({ "questions": questions, "answers": answers, "outcome": name }))
        };
        match outcome {
            QuestionOutcome::Answered(answers) => {
                let pairs: Vec<(&str, String)> = questions
                    .iter()
                    .zip(&answers)
                    .map(|(question, answer)| (question.question.as_str(), join_answer(answer)))
                    .collect();
                let text: Vec<String> =
                    pairs.iter().map(|(question, answer)| format!("{question}\n  {answer}")).collect();
                let answers: Map<String, Value> =
                    pairs.iter().map(|(question, answer)| ((*question).to_owned(), json!(answer))).collect();
                Ok(with_outcome("answered", text.join("\n"), Value::Object(answers)))
            }
            QuestionOutcome::Declined { message } => {
                let words = message.map(|message| format!(": {message}")).unwrap_or_default();
                let text = format!("the user did not want to answer{words}; do not repeat the question");
                Ok(with_outcome("declined", text, json!({})))
            }
            QuestionOutcome::TimedOut { after } => {
                let text = format!(
                    "no answer within {} seconds; the user may be away. This is not consent: go on with what needs no \
                     answer",
                    after.as_secs()
                );
                Ok(with_outcome("timed_out", text, json!({})))
            }
            QuestionOutcome::Later => {
                Err(Refusal::new(Code::ApprovalPending, "the questions were handed to the client"))
            }
            QuestionOutcome::Lost { why } => {
                Err(Refusal::new(Code::ApprovalLost, format!("no answer: {why}")))
            }
            // INVARIANT: a chain of passes is a refusal of `ask_user`.
            QuestionOutcome::Pass => Err(Refusal::new(Code::ApprovalUnavailable, "there is no user to ask")),
        }
    }
}

/// Converts a schema type to the approver's type. Labels are trimmed, as `check` compares them.
fn to_question(asked: AskedQuestion) -> UserQuestion {
    let to_option = |option: AskedOption| {
        QuestionOption::new(option.label.trim().to_owned(), option.description).with_preview(option.preview)
    };
    let options = asked.options.into_iter().map(to_option).collect();
    UserQuestion::new(asked.question, asked.header, options).with_multi_select(asked.multi_select)
}

/// The chosen labels and the user's own words, as one text.
fn join_answer(answer: &QuestionAnswer) -> String {
    let words: Vec<&str> = answer.chosen.iter().chain(&answer.text).map(String::as_str).collect();
    words.join(", ")
}
