//! `BrowserType`: type text into a field of the page. A field for passwords asks the user.

use super::browser_read::{describe_page, note_page};
use super::browser_spec;
use super::page_script::find_element;
use super::session_page::{SessionPage, page_intent, within};
use crate::Toolset;
use crate::web::clean_line;
use crate::web_fetch::check_selector;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, QuestionOption, QuestionOutcome, Tool, ToolSpec, UserQuestion};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal};

/// The answer that lets text into a field for passwords.
const CONSENT_LABEL: &str = "Type it";
/// The other answer.
const DENIAL_LABEL: &str = "Do not type it";

/// The tool, under the name of a toolset.
pub(crate) struct BrowserTypeTool(pub(crate) Toolset);

/// Input of [`BrowserTypeTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowserTypeInput {
    /// A CSS selector of the field.
    selector: String,
    /// The text; it replaces what the field has.
    text: String,
    /// Press Enter afterwards.
    #[serde(default)]
    submit: bool,
}

impl Tool for BrowserTypeTool {
    type Input = BrowserTypeInput;

    fn spec(&self) -> ToolSpec {
        let description = "Types text into a field of the page that is open in the browser. The user is asked first if the \
                           field is for a password.";
        let mut spec = browser_spec(self.0, "Type", "Type into the page", description);
        spec.input_examples = vec![json!({ "selector": "#query", "text": "rust", "submit": true })];
        spec
    }

    fn check(&self, input: &BrowserTypeInput) -> Result<(), Refusal> {
        check_selector(Some(&input.selector))
    }

    /// Declares that it may ask: whether the field is for a password is known only in the page.
    fn intent(&self, input: &BrowserTypeInput, context: &CallContext) -> Intent {
        let mut intent = page_intent(&format!("type into `{}`", input.selector), context);
        intent.effects.push(Effect::Ask);
        intent
    }

    async fn run(&self, input: BrowserTypeInput, cleared: Cleared) -> CallResult {
        let state = cleared.context().session.state::<SessionPage>();
        let mut held = state.hold(&cleared).await?;
        let url = held.note_url().await?;
        let found = find_element(&held, Some(&input.selector), None, false).await?;
        if !found.is_field {
            return Err(Refusal::new(
                Code::Fetch,
                format!("`{}` is a `{}`, which takes no text", input.selector, found.tag),
            )
            .hint("name an input, a textarea or an editable element"));
        }
        if found.is_secret {
            ask_consent(&cleared, &input.selector, &url).await?;
        }
        let again = find_element(&held, Some(&input.selector), None, true).await?;
        if again.is_secret && !found.is_secret {
            return Err(
                Refusal::new(Code::Fetch, "the field became one for passwords meanwhile").hint("try again")
            );
        }
        within(held.page()?.type_text(&input.text, input.submit)).await?;
        if !input.submit {
            let text = format!("typed {} characters into `{}`", input.text.chars().count(), input.selector);
            return Ok(Output::text(text.clone()).display(text));
        }
        let url = held.note_url().await?;
        let page = describe_page(&held, &url, None).await?;
        note_page(&page, &cleared);
        Ok(page.into_output())
    }
}

/// Asks the user whether text may go into a field for passwords. Anything but the consent is a refusal.
async fn ask_consent(cleared: &Cleared, selector: &str, url: &str) -> Result<(), Refusal> {
    let option = |label: &str, description: &str| QuestionOption::new(label, description.to_owned());
    let question = UserQuestion::new(
        format!("Type text into the password field `{}` of {}?", clean_line(selector), clean_line(url)),
        "Password",
        vec![option(CONSENT_LABEL, "the page gets the text"), option(DENIAL_LABEL, "the page gets nothing")],
    );
    let outcome = cleared.ask_user(vec![question]).await?;
    let consents = match &outcome {
        QuestionOutcome::Answered(answers) => {
            answers.iter().all(|answer| answer.chosen == [CONSENT_LABEL] && answer.text.is_none())
                && answers.len() == 1
        }
        _ => false,
    };
    if consents {
        return Ok(());
    }
    Err(Refusal::new(Code::Declined, "the user did not agree to text in a field for passwords")
        .hint("let the user sign in, or go on without"))
}
