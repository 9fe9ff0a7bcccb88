//! `BrowserScreenshot`: see the page of the session.

use super::browser_spec;
use super::session_page::{SessionPage, page_intent, within};
use crate::Toolset;
use crate::web::{CaptureFormat, CaptureWindow, clean_line};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Intent, Output, OutputBlock};

/// The tool, under the name of a toolset.
pub(crate) struct BrowserScreenshotTool(pub(crate) Toolset);

/// Input of [`BrowserScreenshotTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowserScreenshotInput {
    /// The whole page, not only the window.
    #[serde(default)]
    full: bool,
    /// Default png.
    #[serde(default)]
    format: CaptureFormat,
}

impl Tool for BrowserScreenshotTool {
    type Input = BrowserScreenshotInput;

    fn spec(&self) -> ToolSpec {
        let description = "Shows the page that is open in the browser as an image.";
        browser_spec(self.0, "Screenshot", "See the page", description).read_only()
    }

    fn intent(&self, _input: &BrowserScreenshotInput, context: &CallContext) -> Intent {
        page_intent("take a screenshot", context)
    }

    async fn run(&self, input: BrowserScreenshotInput, cleared: Cleared) -> CallResult {
        let state = cleared.context().session.state::<SessionPage>();
        let mut held = state.hold(&cleared).await?;
        let url = clean_line(&held.note_url().await?);
        let options =
            CaptureWindow { full_page: input.full, format: input.format, ..CaptureWindow::default() };
        let capture = within(held.page()?.capture(options)).await?;
        let (width, height) = capture.size;
        let text = format!("`{url}`: {width}×{height} pixels");
        let structured =
            json!({ "url": url, "width": width, "height": height, "images": capture.images.len() });
        let mut output =
            Output::text(text.clone()).display(format!("Screenshot of {text}")).structured(structured);
        let images = capture
            .images
            .into_iter()
            .map(|image| OutputBlock::Image { media_type: image.media_type.to_owned(), data: image.data });
        output.content.splice(0..0, images);
        Ok(output)
    }
}
