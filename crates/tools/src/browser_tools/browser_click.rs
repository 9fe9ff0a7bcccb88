//! `BrowserClick`: click an element of the page.

use super::browser_read::{describe_page, note_page};
use super::browser_spec;
use super::page_script::find_element;
use super::session_page::{SessionPage, page_intent, within};
use crate::Toolset;
use crate::web_fetch::check_selector;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Refusal};

/// The tool, under the name of a toolset.
pub(crate) struct BrowserClickTool(pub(crate) Toolset);

/// Input of [`BrowserClickTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowserClickInput {
    /// A CSS selector.
    selector: Option<String>,
    /// The text on a link or a button, in place of `selector`.
    text: Option<String>,
}

/// Exactly one of a selector and a text names an element.
pub(super) fn check_element(selector: Option<&str>, text: Option<&str>) -> Result<(), Refusal> {
    if selector.is_some() == text.is_some() {
        return Err(Refusal::new(Code::BadArgument, "one of `selector` and `text` must be given"));
    }
    check_selector(selector)
}

impl Tool for BrowserClickTool {
    type Input = BrowserClickInput;

    fn spec(&self) -> ToolSpec {
        let description =
            "Clicks an element of the page that is open in the browser and returns what the page shows then.";
        let mut spec = browser_spec(self.0, "Click", "Click in the page", description);
        spec.input_examples = vec![json!({ "text": "Sign in" })];
        spec
    }

    fn check(&self, input: &BrowserClickInput) -> Result<(), Refusal> {
        check_element(input.selector.as_deref(), input.text.as_deref())
    }

    fn intent(&self, input: &BrowserClickInput, context: &CallContext) -> Intent {
        let what = input.selector.as_deref().or(input.text.as_deref()).unwrap_or_default();
        page_intent(&format!("click `{what}`"), context)
    }

    async fn run(&self, input: BrowserClickInput, cleared: Cleared) -> CallResult {
        let state = cleared.context().session.state::<SessionPage>();
        let mut held = state.hold(&cleared).await?;
        let found = find_element(&held, input.selector.as_deref(), input.text.as_deref(), false).await?;
        within(held.page()?.click(found.x, found.y)).await?;
        let url = held.note_url().await?;
        let page = describe_page(&held, &url, None).await?;
        note_page(&page, &cleared);
        Ok(page.into_output())
    }
}
