//! `EnterPlanMode`: from now on only read, until a plan is approved.
//!
//! It needs no approval, because it makes later decisions stricter and never less strict.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Effect, Intent, Output};

/// Puts the session into plan mode.
pub(crate) struct EnterPlanModeTool;

/// Input of [`EnterPlanModeTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnterPlanModeInput {}

impl Tool for EnterPlanModeTool {
    type Input = EnterPlanModeInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "EnterPlanMode",
            "Begins plan mode: you can read and search, and every change needs approval until ExitPlanMode. For work with \
             more than one sensible approach.",
        )
        .with_group("plan")
        .with_destructive(false)
        .with_idempotent(true);
        spec.title = "Enter plan mode".to_owned();
        spec.input_examples = vec![json!({})];
        spec
    }

    /// Declares a change of session state. No rule needs to allow it, since plan mode only restricts later calls.
    fn intent(&self, _input: &EnterPlanModeInput, _context: &CallContext) -> Intent {
        Intent::new("enter plan mode", [Effect::State { name: "plan mode".to_owned() }])
    }

    async fn run(&self, _input: EnterPlanModeInput, cleared: Cleared) -> CallResult {
        cleared.context().session.enter_plan_mode();
        let message = "plan mode: look around, make a plan, and end it with ExitPlanMode";
        Ok(Output::text(message).structured(json!({ "message": message })))
    }
}
