//! `toolgate settings`: what is in force, and where it comes from.

use super::args::{SettingsArgs, SettingsCommand};
use super::out::{Out, paint, style};
use super::world::{World, print_notes};
use super::{Exit, Failure};
use serde_json::json;
use toolgate::render::visible;
use toolgate::settings::{Effective, check_text, schema};

pub(crate) fn run(world: &World, args: &SettingsArgs, out: &mut Out) -> Result<Exit, Failure> {
    match args.command.as_ref().unwrap_or(&SettingsCommand::Show) {
        SettingsCommand::Show => show(world, out),
        SettingsCommand::Check { file } => check(world, file, out),
        SettingsCommand::Schema { name } => print_schema(name.as_deref(), out),
    }
}

fn show(world: &World, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.build()?;
    let settings = toolgate.settings();
    let values = settings.effective(world.mode());
    if world.global.json {
        let files: Vec<_> = settings
            .files
            .iter()
            .map(
                |file| json!({ "layer": file.rules.layer, "file": file.rules.file, "trusted": file.trusted }),
            )
            .collect();
        out.line(&json!({ "values": values, "files": files }).to_string())?;
        return Ok(Exit::Ok);
    }
    print_notes(&toolgate, out);
    let mut last = String::new();
    for value in &values {
        if value.key != last {
            out.line(&paint(style::BOLD, &visible(&value.key)))?;
            last.clone_from(&value.key);
        }
        out.line(&line(value))?;
    }
    Ok(Exit::Ok)
}

fn line(value: &Effective) -> String {
    let shown = match &value.value {
        serde_json::Value::String(text) => visible(text),
        other => visible(&other.to_string()),
    };
    let from = match (&value.file, value.line) {
        (Some(file), Some(line)) => format!("{} {file}:{line}", value.layer),
        (Some(file), None) => format!("{} {file}", value.layer),
        (None, _) => value.layer.to_string(),
    };
    let from = paint(style::FAINT, &visible(&from));
    match &value.waits {
        Some(waits) => format!("  {shown}  {from}  {}", paint(style::ASK, &format!("no effect: {waits}"))),
        None => format!("  {shown}  {from}"),
    }
}

fn check(world: &World, file: &str, out: &mut Out) -> Result<Exit, Failure> {
    let path = world.ambient.path(file);
    let text = toolgate_os::read_settings_text(&path, toolgate_proto::json::Limits::SETTINGS.bytes as u64)
        .map_err(|problem| Failure::Usage(format!("{path}: {problem}")))?
        .ok_or_else(|| Failure::Usage(format!("{path}: there is no such file")))?;
    check_text(&path.to_string(), &text)?;
    out.line(&format!("{path} can be used"))?;
    Ok(Exit::Ok)
}

fn print_schema(name: Option<&str>, out: &mut Out) -> Result<Exit, Failure> {
    let published = schema::published();
    let Some(name) = name else {
        for schema in &published {
            out.line(schema.name)?;
        }
        return Ok(Exit::Ok);
    };
    let found = published.iter().find(|schema| schema.name == name);
    let found = found.ok_or_else(|| {
        Failure::Usage(format!("there is no schema `{name}`; see `toolgate settings schema`"))
    })?;
    let text =
        serde_json::to_string_pretty(&found.schema).map_err(|error| Failure::Usage(error.to_string()))?;
    out.line(&text)?;
    Ok(Exit::Ok)
}
