//! `BrowserWait`: wait until the page shows something.

use super::browser_click::check_element;
use super::browser_spec;
use super::page_script::wait_until_there;
use super::session_page::{SessionPage, page_intent};
use crate::Toolset;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Intent, Output, Refusal};

/// Seconds without `timeout`.
const DEFAULT_WAIT_SECONDS: u32 = 10;

/// The tool, under the name of a toolset.
pub(crate) struct BrowserWaitTool(pub(crate) Toolset);

/// Input of [`BrowserWaitTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowserWaitInput {
    /// A CSS selector that must match.
    selector: Option<String>,
    /// A text that the page must show, in place of `selector`.
    text: Option<String>,
    /// Seconds; default 10.
    #[schemars(range(min = 1, max = 60))]
    timeout: Option<u32>,
}

impl Tool for BrowserWaitTool {
    type Input = BrowserWaitInput;

    fn spec(&self) -> ToolSpec {
        let description = "Waits until the page that is open in the browser has an element or shows a text.";
        let mut spec = browser_spec(self.0, "Wait", "Wait for the page", description).read_only();
        spec.input_examples = vec![json!({ "text": "Saved" })];
        spec
    }

    fn check(&self, input: &BrowserWaitInput) -> Result<(), Refusal> {
        check_element(input.selector.as_deref(), input.text.as_deref())
    }

    fn intent(&self, _input: &BrowserWaitInput, context: &CallContext) -> Intent {
        page_intent("wait for the page", context)
    }

    async fn run(&self, input: BrowserWaitInput, cleared: Cleared) -> CallResult {
        let state = cleared.context().session.state::<SessionPage>();
        let mut held = state.hold(&cleared).await?;
        let seconds = u64::from(input.timeout.unwrap_or(DEFAULT_WAIT_SECONDS).clamp(1, 60));
        let (selector, text) = (input.selector.as_deref(), input.text.as_deref());
        let is_there = wait_until_there(&held, selector, text, Duration::from_secs(seconds)).await?;
        held.note_url().await?;
        let wanted = selector.or(text).unwrap_or_default();
        if is_there {
            return Ok(Output::text(format!("the page has `{wanted}`")));
        }
        Err(Refusal::new(Code::Fetch, format!("the page did not show `{wanted}` within {seconds} s"))
            .hint("read the page to see what it shows"))
    }
}
