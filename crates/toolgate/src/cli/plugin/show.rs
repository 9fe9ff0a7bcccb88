//! `toolgate plugin show`, and the list that the user sees before a yes.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use serde_json::{Map, Value, json};
use toolgate::plugins::{PluginEntry, PluginPackage, PluginSummary};
use toolgate::skills::{CapabilitySeverity, CatalogProblem};

/// How many names of skills, agents and styles are listed before the rest is only counted.
const MAX_LISTED_NAMES: usize = 12;

/// Prints one plugin.
pub(super) fn show_plugin(
    context: &CliContext,
    name: &str,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let entry = super::find_entry(context, name)?;
    if let Some(entry) = &entry {
        let Some(package) = &entry.package else {
            let lines: Vec<String> = entry.problems.iter().map(ToString::to_string).collect();
            return Err(CliError::Usage(lines.join("\n")));
        };
        return print(context, package, Some(entry), out);
    }
    let dir = context.ambient.absolute_path(name);
    if toolgate_files::read_file_stamp(&dir) == toolgate_files::FileStamp::Absent {
        return Err(CliError::Usage(format!(
            "there is no plugin `{name}`; `toolgate plugin list` lists the plugins"
        )));
    }
    print(context, &super::read_package(&dir)?, None, out)
}

/// Prints a plugin as text or JSON.
fn print(
    context: &CliContext,
    package: &PluginPackage,
    entry: Option<&PluginEntry>,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let status = entry.map(|entry| entry.status.to_string());
    if context.global.json {
        let mut value = describe_package(package);
        value.insert("status".to_owned(), json!(status));
        out.print_line(&Value::Object(value).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    print_package(package, out)?;
    if let Some(entry) = entry {
        out.print_line(&format!("{}  {}", paint(style::FAINT, "status  "), entry.status))?;
        if let Some(standing) = entry.describe_standing() {
            out.print_note(&standing);
        }
    }
    Ok(CliExitCode::Ok)
}

/// A plugin for `--json`: what it brings, and what it would run.
pub(super) fn describe_package(package: &PluginPackage) -> Map<String, Value> {
    let summary = package.summarize();
    let problems: Vec<String> = summary.problems.iter().map(ToString::to_string).collect();
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(package.name()));
    fields.insert("version".to_owned(), json!(package.manifest.version));
    fields.insert("root".to_owned(), json!(package.root));
    fields.insert("sha256".to_owned(), json!(package.sha256));
    fields.insert("runs".to_owned(), json!(summary.runs));
    fields.insert("asksFor".to_owned(), json!(summary.asks_for));
    fields.insert("brings".to_owned(), json!(summary.brings));
    fields.insert("problems".to_owned(), json!(problems));
    fields
}

/// Prints what a plugin brings, and first what it would run.
pub(super) fn print_package(package: &PluginPackage, out: &mut CliOutput) -> Result<(), CliError> {
    let summary: PluginSummary = package.summarize();
    let version = package.manifest.version.as_deref().unwrap_or_default();
    out.print_line(&format!(
        "{} {}  {:.12}…",
        paint(style::BOLD, &to_one_line(package.name())),
        to_one_line(version),
        package.sha256
    ))?;
    if let Some(description) = &package.manifest.description {
        out.print_line(&format!("  {}", to_one_line(description)))?;
    }
    for line in &summary.runs {
        out.print_line(&format!("{}  {}", paint(style::ASK, "runs    "), to_one_line(line)))?;
    }
    if summary.runs.is_empty() {
        out.print_line(&format!("{}  nothing by itself", paint(style::FAINT, "runs    ")))?;
    }
    for line in &summary.asks_for {
        out.print_line(&format!("{}  {}", paint(style::ASK, "asks for"), to_one_line(line)))?;
    }
    for line in summary.brings.iter().take(MAX_LISTED_NAMES) {
        out.print_line(&format!("{}  {}", paint(style::FAINT, "brings  "), to_one_line(line)))?;
    }
    if summary.brings.len() > MAX_LISTED_NAMES {
        let more = summary.brings.len() - MAX_LISTED_NAMES;
        out.print_line(&format!("{}  {more} more", paint(style::FAINT, "brings  ")))?;
    }
    // What a plugin wants and does not get, such as hooks of a host program.
    let is_limit = |found: &&CatalogProblem| {
        found.problem.severity == CapabilitySeverity::Note && !found.file.to_string().ends_with("plugin.json")
    };
    for found in package.problems.iter().filter(is_limit) {
        let message = to_one_line(&found.problem.message);
        out.print_line(&format!("{}  {message}", paint(style::FAINT, "without ")))?;
    }
    for found in summary.problems.iter().filter(|found| found.problem.severity > CapabilitySeverity::Note) {
        out.print_line(&format!("{}  {}", paint(style::BAD, "problem "), to_one_line(&found.to_string())))?;
    }
    Ok(())
}
