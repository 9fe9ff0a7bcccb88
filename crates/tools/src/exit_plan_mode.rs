//! `ExitPlanMode`: show the plan, and go on if the user approves it.
//!
//! A person decides in every mode: the tool requires interaction, which no rule, hook or mode bypass answers.
//! The approval is for leaving plan mode and grants no rule; a call of the plan that needs approval asks by itself.
//! A plan that is declined leaves the session in plan mode.

use crate::state_stores::plan_dir;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_files::{GrantedFiles, generate_id, run_blocking, write_private_file};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal};

/// Characters of a plan: a person has to read it.
const MAX_PLAN_CHARS: usize = 50_000;

/// Ends plan mode with a plan.
pub(crate) struct ExitPlanModeTool;

/// Input of [`ExitPlanModeTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitPlanModeInput {
    /// The plan, in Markdown.
    plan: String,
}

impl Tool for ExitPlanModeTool {
    type Input = ExitPlanModeInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ExitPlanMode",
            "Shows your plan to the user and ends plan mode if they approve. Their approval is for the plan, not for calls \
             that need one of their own.",
        )
        .with_group("plan")
        .with_destructive(false)
        .with_required_interaction(true);
        spec.title = "Exit plan mode".to_owned();
        spec.input_examples = vec![json!({ "plan": "1. Move the parser\n2. Add tests" })];
        spec
    }

    /// Limits the plan to a length that a user can read in a prompt.
    fn check(&self, input: &ExitPlanModeInput) -> Result<(), Refusal> {
        if input.plan.trim().is_empty() {
            return Err(Refusal::new(Code::BadArgument, "`plan` is empty"));
        }
        if input.plan.chars().count() > MAX_PLAN_CHARS {
            let reason = format!("`plan` is longer than {MAX_PLAN_CHARS} characters");
            return Err(Refusal::new(Code::BadArgument, reason));
        }
        Ok(())
    }

    /// Declares a change of the mode. The spec requires interaction, so the user is asked in every mode.
    fn intent(&self, _input: &ExitPlanModeInput, _context: &CallContext) -> Intent {
        Intent::new("leave plan mode and carry out this plan", [Effect::State { name: "mode".to_owned() }])
    }

    /// Shows the complete plan in the approval prompt: it is what the user approves.
    async fn preview(
        &self,
        input: &ExitPlanModeInput,
        _context: &CallContext,
        _files: &GrantedFiles,
    ) -> Result<Option<String>, Refusal> {
        Ok(Some(input.plan.clone()))
    }

    /// Stores the plan before plan mode ends, if there is a plan directory. A failed write keeps plan mode on.
    async fn run(&self, input: ExitPlanModeInput, cleared: Cleared) -> CallResult {
        let session = &cleared.context().session;
        let path = plan_dir(session).map(|dir| dir.join(format!("{}.md", generate_id("plan_"))));
        if let Some(path) = path.clone() {
            let plan = format!("{}\n", input.plan.trim_end());
            let written = run_blocking(move || write_private_file(&path, plan.as_bytes())).await;
            written.and_then(|written| written).map_err(|problem| {
                Refusal::new(
                    Code::FileWrite,
                    format!("the plan could not be kept, so plan mode goes on: {problem}"),
                )
            })?;
        }
        session.leave_plan_mode();
        let file = path.map(|path| path.to_string());
        let kept = file.as_ref().map(|file| format!("; the plan is kept in {file}")).unwrap_or_default();
        Ok(Output::text(format!("the user approved the plan{kept}. Carry it out."))
            .structured(json!({ "plan": input.plan, "isAgent": false, "filePath": file })))
    }
}
