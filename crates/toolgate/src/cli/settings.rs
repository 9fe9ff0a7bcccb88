//! `toolgate settings`: shows the effective values with their origin, checks a file, and prints schemas.

use super::context::{CliContext, print_notes};
use super::output::{CliOutput, paint, style};
use super::policy::{lint, render_problem};
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::settings::{EffectiveValue, lint_text_of_workspace, schema};
use toolgate_policy::ProblemSeverity;

/// Arguments of `toolgate settings`.
#[derive(Debug, clap::Args)]
pub(crate) struct SettingsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SettingsCommand>,
}

/// The commands of `toolgate settings`.
#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show each effective value with its file and line (the default)
    Show,
    /// Validate a settings file and its rules without using it, and list every problem
    Check {
        /// The file; all settings files in force if absent
        file: Option<String>,
    },
    /// Print a JSON schema of the files that toolgate reads
    Schema {
        /// The schema, such as settings.schema.json; lists the names if absent
        name: Option<String>,
    },
}

/// Runs `show`, `check` or `schema`.
pub(crate) fn run(
    context: &CliContext,
    args: &SettingsArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match args.command.as_ref().unwrap_or(&SettingsCommand::Show) {
        SettingsCommand::Show => show(context, out),
        SettingsCommand::Check { file: Some(file) } => check(context, file, out),
        SettingsCommand::Check { file: None } => lint(context, out),
        SettingsCommand::Schema { name } => print_schema(name.as_deref(), context.global.json, out),
    }
}

/// Prints the effective values, grouped by key.
fn show(context: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.build()?;
    let settings = toolgate.settings();
    let values = settings.effective_values(context.mode());
    if context.global.json {
        let files: Vec<_> = settings
            .files
            .iter()
            .map(
                |file| json!({ "layer": file.rules.layer, "file": file.rules.file, "trusted": file.trusted }),
            )
            .collect();
        out.print_line(&json!({ "values": values, "files": files }).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    print_notes(&toolgate, out);
    let mut last = String::new();
    for value in &values {
        if value.key != last {
            out.print_line(&paint(style::BOLD, &escape_invisible(&value.key)))?;
            last.clone_from(&value.key);
        }
        out.print_line(&render_value(value))?;
    }
    Ok(CliExitCode::Ok)
}

/// A value with its layer, file and line, and why it has no effect if it has none.
fn render_value(value: &EffectiveValue) -> String {
    let shown = match &value.value {
        serde_json::Value::String(text) => escape_invisible(text),
        other => escape_invisible(&other.to_string()),
    };
    let from = match (&value.file, value.line) {
        (Some(file), Some(line)) => format!("{} {file}:{line}", value.layer),
        (Some(file), None) => format!("{} {file}", value.layer),
        (None, _) => value.layer.to_string(),
    };
    let from = paint(style::FAINT, &escape_invisible(&from));
    match &value.inactive_reason {
        Some(reason) => format!("  {shown}  {from}  {}", paint(style::ASK, &format!("no effect: {reason}"))),
        None => format!("  {shown}  {from}"),
    }
}

/// Validates a file as if it were given with `--settings`, and prints every problem.
fn check(context: &CliContext, file: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let path = context.ambient.absolute_path(file);
    let text =
        toolgate_files::read_settings_text(&path, toolgate_proto::json::JsonLimits::SETTINGS.bytes as u64)
            .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?
            .ok_or_else(|| CliError::Usage(format!("{path}: no such file")))?;
    let problems = lint_text_of_workspace(&path.to_string(), &text, &context.settings_options()?);
    let count = |weight| problems.iter().filter(|problem| problem.weight == weight).count();
    let (fatal, warnings) = (count(ProblemSeverity::Fatal), count(ProblemSeverity::Warning));
    if context.global.json {
        out.print_line(&json!({ "file": path, "valid": fatal == 0, "problems": problems }).to_string())?;
    } else {
        for problem in &problems {
            out.print_line(&render_problem(problem))?;
        }
        let verdict = if fatal == 0 { "is valid" } else { "cannot be used" };
        out.print_line(&match problems.len() {
            0 => format!("{path} {verdict}"),
            1 => format!("{path} {verdict}; 1 problem"),
            count => format!("{path} {verdict}; {count} problems"),
        })?;
    }
    Ok(match (fatal, warnings) {
        (0, 0) => CliExitCode::Ok,
        (0, _) => CliExitCode::ToolFailed,
        (_, _) => CliExitCode::Usage,
    })
}

/// Prints a published schema, or the names of all.
fn print_schema(name: Option<&str>, is_json: bool, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let published = schema::published_schemas();
    let Some(name) = name else {
        for schema in &published {
            out.print_done(is_json, &json!({ "name": schema.name }), schema.name)?;
        }
        return Ok(CliExitCode::Ok);
    };
    let found = published.iter().find(|schema| schema.name == name);
    let found = found.ok_or_else(|| {
        CliError::Usage(format!("unknown schema `{name}`; `toolgate settings schema` lists the names"))
    })?;
    let text =
        serde_json::to_string_pretty(&found.schema).map_err(|error| CliError::Usage(error.to_string()))?;
    out.print_line(&text)?;
    Ok(CliExitCode::Ok)
}
