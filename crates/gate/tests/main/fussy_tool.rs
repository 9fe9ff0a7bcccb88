//! A tool whose every stage does what its input says.

use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use tokio::time::sleep;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal, SessionModifier};

/// The input of a [`FussyTool`]. Everything that is not about the stage at hand is absent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FussyInput {
    /// What its guard says against the call.
    guard: Option<String>,
    /// The diff that it shows, or `refuse`.
    preview: Option<String>,
    /// The user must be asked.
    user: bool,
    /// How long it works, in milliseconds.
    millis: u64,
    /// The text for people that it gives itself.
    display: Option<String>,
    /// A rule that it wants to grant.
    grant: Option<String>,
}

/// A tool with an opinion at every stage.
pub(super) struct FussyTool {
    pub(super) spec: ToolSpec,
    pub(super) effects: Vec<Effect>,
}

impl FussyTool {
    pub(super) fn new() -> Self {
        let effects = vec![Effect::State { name: "fuss".to_owned() }];
        Self { spec: ToolSpec::new("fussy", "Has an opinion."), effects }
    }
}

impl Tool for FussyTool {
    type Input = FussyInput;

    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn requires_user(&self, input: &FussyInput) -> bool {
        input.user
    }

    fn intent(&self, _: &FussyInput, _: &CallContext) -> Intent {
        Intent::new("make a fuss", self.effects.clone())
    }

    async fn guard(&self, input: &FussyInput, _: &CallContext) -> Result<(), Refusal> {
        match &input.guard {
            Some(why) => Err(Refusal::new(Code::NotRead, why.clone())),
            None => Ok(()),
        }
    }

    async fn preview(
        &self,
        input: &FussyInput,
        _: &CallContext,
        _: &toolgate_files::GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        match input.preview.as_deref() {
            Some("refuse") => Err(Refusal::new(Code::BadArgument, "it occurs twice")),
            diff => Ok(diff.map(str::to_owned)),
        }
    }

    async fn run(&self, input: FussyInput, _: Cleared) -> CallResult {
        sleep(Duration::from_millis(input.millis)).await;
        let mut output = Output::text("fussed");
        output.display = input.display;
        output.modifiers.extend(input.grant.map(|rule| SessionModifier::PermissionGranted { rule }));
        Ok(output)
    }

    fn render_use(&self, input: &FussyInput) -> Option<String> {
        input.display.clone().map(|text| format!("use {text}"))
    }

    fn render_result(&self, output: &Output) -> Option<String> {
        Some(format!("rendered {}", output.model_text()))
    }
}
