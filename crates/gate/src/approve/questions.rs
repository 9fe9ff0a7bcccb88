//! Questions of a tool to the user: choices and text, through the same chain of approvers.
//!
//! An answer is text for the model and nothing else.
//! It carries no permit and no rule, so a question can never approve a call, whatever its wording makes the user believe.
//! Silence and a refusal to answer are outcomes of their own: a tool passes them on and does not guess.

use super::Approver;
use crate::call_context::CallContext;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_proto::{CallId, Code, Refusal};

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UserQuestion {
    /// The question.
    pub question: String,
    /// A label of a few characters.
    pub header: String,
    /// The answers to choose from. The user may always give a text instead.
    pub options: Vec<QuestionOption>,
    /// Whether several of them may be chosen.
    pub multi_select: bool,
}

impl UserQuestion {
    /// A question with a short label; one of the answers may be chosen.
    pub fn new(question: impl Into<String>, header: impl Into<String>, options: Vec<QuestionOption>) -> Self {
        Self { question: question.into(), header: header.into(), options, multi_select: false }
    }

    /// The same, with whether several answers may be chosen.
    pub fn with_multi_select(mut self, multi_select: bool) -> Self {
        self.multi_select = multi_select;
        self
    }
}

/// An answer to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuestionOption {
    /// The answer, in a few words.
    pub label: String,
    /// What it means.
    pub description: String,
    /// What it would look like: code, a layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

impl QuestionOption {
    /// Creates an option without a preview.
    pub fn new(label: impl Into<String>, description: impl Into<String>) -> Self {
        Self { label: label.into(), description: description.into(), preview: None }
    }

    /// Sets the preview.
    pub fn with_preview(mut self, preview: impl Into<Option<String>>) -> Self {
        self.preview = preview.into();
        self
    }
}

/// Questions to an approver.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QuestionRequest {
    /// A fresh id.
    pub id: String,
    /// The call that asks.
    pub call: CallId,
    /// Where the call happens.
    pub context: CallContext,
    /// The questions, in order.
    pub questions: Vec<UserQuestion>,
    /// Ends when the answer no longer matters.
    pub cancel: CancellationToken,
}

/// The answer to one question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuestionAnswer {
    /// The labels that were chosen, out of those that were offered.
    pub chosen: Vec<String>,
    /// A text of the user's own.
    pub text: Option<String>,
}

impl QuestionAnswer {
    /// Creates an answer of chosen labels.
    pub fn new(chosen: Vec<String>) -> Self {
        Self { chosen, text: None }
    }

    /// Sets the text that the user wrote.
    pub fn with_text(mut self, text: impl Into<Option<String>>) -> Self {
        self.text = text.into();
        self
    }
}

/// What became of the questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionOutcome {
    /// The answers, in the order of the questions.
    Answered(Vec<QuestionAnswer>),
    /// The user does not want to answer.
    Declined {
        /// A message to the model.
        message: Option<String>,
    },
    /// The user did not answer in this time.
    TimedOut {
        /// The time.
        after: Duration,
    },
    /// The client has the questions, and will make the call again with the answers.
    Later,
    /// The channel to the user broke.
    Lost {
        /// How.
        why: String,
    },
    /// This approver does not ask questions: ask the next.
    Pass,
}

/// The approvers that a call may put questions to.
#[derive(Clone, Default)]
pub(crate) struct QuestionChannels {
    pub(crate) approvers: Option<Arc<[Arc<dyn Approver>]>>,
    pub(crate) timeout: Duration,
}

impl std::fmt::Debug for QuestionChannels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names =
            self.approvers.iter().flat_map(|approvers| approvers.iter()).map(|approver| approver.name());
        f.debug_list().entries(names).finish()
    }
}

impl QuestionChannels {
    /// Asks each approver in turn, until one does not pass. Refuses where none is left.
    ///
    /// INVARIANT: the run stage holds the prompt lock of the session, because the intent says that the call asks.
    pub(crate) async fn ask(&self, request: &QuestionRequest) -> Result<QuestionOutcome, Refusal> {
        let deadline = tokio::time::Instant::now() + self.timeout;
        // However this ends, the questions are withdrawn where they are still shown.
        let _withdrawn = request.cancel.clone().drop_guard();
        for approver in self.approvers.iter().flat_map(|approvers| approvers.iter()) {
            let asking = AssertUnwindSafe(async { approver.ask_questions(request).await }).catch_unwind();
            match tokio::time::timeout_at(deadline, asking).await {
                Err(_) => return Ok(QuestionOutcome::TimedOut { after: self.timeout }),
                Ok(Err(_)) => {
                    return Ok(QuestionOutcome::Lost { why: format!("`{}` crashed", approver.name()) });
                }
                Ok(Ok(QuestionOutcome::Pass)) => {}
                Ok(Ok(QuestionOutcome::Answered(answers))) => return Ok(check_answers(request, answers)),
                Ok(Ok(
                    outcome @ (QuestionOutcome::Declined { .. }
                    | QuestionOutcome::TimedOut { .. }
                    | QuestionOutcome::Later
                    | QuestionOutcome::Lost { .. }),
                )) => return Ok(outcome),
            }
        }
        Err(Refusal::new(Code::ApprovalUnavailable, "there is no user to ask")
            .hint("go on without the answer, and say what you assumed"))
    }
}

/// Answers that fit the questions: one for each, with labels that were offered, and one label unless more are allowed.
fn check_answers(request: &QuestionRequest, answers: Vec<QuestionAnswer>) -> QuestionOutcome {
    let fits = answers.len() == request.questions.len()
        && request.questions.iter().zip(&answers).all(|(question, answer)| {
            let is_offered = |label: &String| question.options.iter().any(|option| option.label == *label);
            let count = answer.chosen.len() + usize::from(answer.text.is_some());
            answer.chosen.iter().all(is_offered) && count >= 1 && (question.multi_select || count == 1)
        });
    match fits {
        true => QuestionOutcome::Answered(answers),
        false => QuestionOutcome::Lost { why: "the answers do not fit the questions".to_owned() },
    }
}

/// The future of an approver that asks no questions.
pub(crate) fn pass_questions<'a>() -> BoxFuture<'a, QuestionOutcome> {
    Box::pin(std::future::ready(QuestionOutcome::Pass))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use toolgate_proto::{AbsPath, Principal, Workspace};

    fn request(multi_select: bool) -> QuestionRequest {
        let option = |label: &str| QuestionOption {
            label: label.to_owned(),
            description: String::new(),
            preview: None,
        };
        let root = AbsPath::root();
        let workspace = Workspace::new(root);
        let session = Session::new("s".into(), Principal::new("test"), workspace);
        QuestionRequest {
            id: "q".to_owned(),
            call: "c".into(),
            context: CallContext::of(&session),
            questions: vec![UserQuestion {
                question: "Which?".to_owned(),
                header: "Choice".to_owned(),
                options: vec![option("a"), option("b")],
                multi_select,
            }],
            cancel: CancellationToken::new(),
        }
    }

    fn answer(chosen: &[&str], text: Option<&str>) -> QuestionAnswer {
        QuestionAnswer {
            chosen: chosen.iter().map(|&label| label.to_owned()).collect(),
            text: text.map(str::to_owned),
        }
    }

    #[test]
    fn answers_that_do_not_fit_the_questions_are_no_answers() {
        for (multi_select, answers, fits) in [
            (false, vec![answer(&["a"], None)], true),
            (false, vec![answer(&[], Some("mine"))], true),
            (true, vec![answer(&["a", "b"], None)], true),
            (true, vec![answer(&["a"], Some("and mine"))], true),
            // Several where one was asked for, none at all, and one that was not offered.
            (false, vec![answer(&["a", "b"], None)], false),
            (false, vec![answer(&["a"], Some("and mine"))], false),
            (false, vec![answer(&[], None)], false),
            (true, vec![answer(&[], None)], false),
            (false, vec![answer(&["c"], None)], false),
            (true, vec![answer(&["a", "c"], None)], false),
            // One answer for each question.
            (false, vec![], false),
            (false, vec![answer(&["a"], None), answer(&["a"], None)], false),
        ] {
            let outcome = check_answers(&request(multi_select), answers.clone());
            let is_taken = outcome == QuestionOutcome::Answered(answers.clone());
            assert_eq!(is_taken, fits, "{multi_select} {answers:?}");
            assert!(fits || matches!(outcome, QuestionOutcome::Lost { .. }));
        }
    }
}
