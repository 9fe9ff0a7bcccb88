//! `ExitPlanMode`: show the plan, and go on if the user approves it.
//!
//! The user decides in every mode: the tool requires interaction, which no rule, hook or mode bypass answers.
//! The approval is for leaving plan mode. A plan may name commands that it runs; the user sees them with the plan, and
//! approving it allows exactly these command lines for the rest of the session. Everything else asks by itself.
//! A plan that is declined leaves the session in plan mode.

use crate::state_stores::plan_dir;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate_files::{GrantedFiles, generate_id, run_blocking, write_private_file};
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal, SessionModifier};

/// Characters of a plan: the user has to read it.
const MAX_PLAN_CHARS: usize = 50_000;

/// Ends plan mode with a plan.
pub(crate) struct ExitPlanModeTool;

/// Input of [`ExitPlanModeTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitPlanModeInput {
    /// The plan, in Markdown.
    plan: String,
    /// Command lines that the plan runs, exactly as you will call Bash with them: approved together with the plan.
    #[serde(default)]
    #[schemars(length(max = 8))]
    commands: Vec<String>,
}

/// Characters of a command line: the user has to read it.
const MAX_COMMAND_CHARS: usize = 200;

/// Whether a rule for a command line means that line and no other. A `*` is a wildcard in rules, and a `:*` at the end too.
fn is_exact(command: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '*' | '\\');
    !command.trim().is_empty()
        && command.trim() == command
        && command.chars().all(is_plain)
        && command.chars().count() <= MAX_COMMAND_CHARS
}

/// The rule that allows one command line.
fn exact_rule(command: &str) -> String {
    let mut rule = "Bash(".to_owned();
    for c in command.chars() {
        if matches!(c, '(' | ')') {
            rule.push('\\');
        }
        rule.push(c);
    }
    rule.push(')');
    rule
}

impl Tool for ExitPlanModeTool {
    type Input = ExitPlanModeInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ExitPlanMode",
            "Shows your plan to the user and ends plan mode if they approve. Their approval is for the plan and its \
             `commands`, not for calls that need one of their own.",
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
        match input.commands.iter().find(|command| !is_exact(command)) {
            Some(command) => Err(Refusal::new(
                Code::BadArgument,
                format!("`commands` has `{command}`, which is not one exact command line on one line"),
            )
            .hint(
                "give whole command lines without `*` and backslashes; other calls ask when they are made",
            )),
            None => Ok(()),
        }
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
        let mut text = input.plan.trim_end().to_owned();
        if !input.commands.is_empty() {
            text.push_str("\n\nApproving the plan also allows these command lines, in this session:\n");
            input.commands.iter().for_each(|command| text.push_str(&format!("  $ {command}\n")));
        }
        Ok(Some(text))
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
        let output =
            Output::text(format!("the user approved the plan{kept}. Carry it out.")).structured(json!({
                "plan": input.plan, "isAgent": false, "filePath": file, "allowedCommands": input.commands,
            }));
        let grant = |command: &String| SessionModifier::PermissionGranted { rule: exact_rule(command) };
        Ok(input.commands.iter().map(grant).fold(output, Output::modifier))
    }
}
