//! `toolgate settings`: what is in force, and where it comes from.

use super::args::{SettingsArgs, SettingsCommand};
use super::context::{CliContext, print_notes};
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::settings::{EffectiveValue, check_text, schema};

pub(crate) fn run(
    world: &CliContext,
    args: &SettingsArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match args.command.as_ref().unwrap_or(&SettingsCommand::Show) {
        SettingsCommand::Show => show(world, out),
        SettingsCommand::Check { file } => check(world, file, out),
        SettingsCommand::Schema { name } => print_schema(name.as_deref(), out),
    }
}

fn show(world: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = world.builder()?.build()?;
    let settings = toolgate.settings();
    let values = settings.effective_values(world.mode());
    if world.global.json {
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
    match &value.waits {
        Some(waits) => format!("  {shown}  {from}  {}", paint(style::ASK, &format!("no effect: {waits}"))),
        None => format!("  {shown}  {from}"),
    }
}

fn check(world: &CliContext, file: &str, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let path = world.ambient.absolute_path(file);
    let text =
        toolgate_files::read_settings_text(&path, toolgate_proto::json::JsonLimits::SETTINGS.bytes as u64)
            .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?
            .ok_or_else(|| CliError::Usage(format!("{path}: there is no such file")))?;
    check_text(&path.to_string(), &text)?;
    out.print_line(&format!("{path} can be used"))?;
    Ok(CliExitCode::Ok)
}

fn print_schema(name: Option<&str>, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let published = schema::published_schemas();
    let Some(name) = name else {
        for schema in &published {
            out.print_line(schema.name)?;
        }
        return Ok(CliExitCode::Ok);
    };
    let found = published.iter().find(|schema| schema.name == name);
    let found = found.ok_or_else(|| {
        CliError::Usage(format!("there is no schema `{name}`; see `toolgate settings schema`"))
    })?;
    let text =
        serde_json::to_string_pretty(&found.schema).map_err(|error| CliError::Usage(error.to_string()))?;
    out.print_line(&text)?;
    Ok(CliExitCode::Ok)
}
