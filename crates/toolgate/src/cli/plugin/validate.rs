//! `toolgate plugin validate`.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use serde_json::json;
use toolgate::AbsPath;
use toolgate::plugins::{PluginMarketplace, PluginOrigin, PluginPackage};
use toolgate::skills::{CapabilitySeverity, CatalogProblem};
use toolgate_proto::format_count;

/// A larger list of a marketplace is not read.
const MAX_LIST_BYTES: u64 = 16 * 1024 * 1024;

/// Arguments of `toolgate plugin validate`.
#[derive(Debug, clap::Args)]
pub(super) struct PluginValidateArgs {
    /// The directory of a plugin, or of a marketplace with plugins in it
    #[arg(default_value = ".")]
    dir: String,
    /// Show notes as well as warnings and errors
    #[arg(long)]
    notes: bool,
}

/// Prints the problems. The exit code is 1 if there is an error.
pub(super) fn run(
    context: &CliContext,
    args: &PluginValidateArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = context.ambient.absolute_path(&args.dir);
    let mut problems = Vec::new();
    let list = dir.join(".claude-plugin/marketplace.json");
    let mut plugins = 0;
    if let Ok(bytes) = toolgate_files::read_named_bytes(&list, MAX_LIST_BYTES) {
        let (marketplace, wrong) = PluginMarketplace::read(&bytes);
        problems.extend(wrong.into_iter().map(|problem| CatalogProblem::new(list.clone(), problem)));
        for entry in marketplace.iter().flat_map(|marketplace| &marketplace.plugins) {
            if let PluginOrigin::Path(path) = &entry.origin {
                plugins += 1;
                check_plugin(&dir.join(path.trim_start_matches("./")), &mut problems);
            }
        }
    } else {
        plugins += 1;
        check_plugin(&dir, &mut problems);
    }
    let lowest = if args.notes { CapabilitySeverity::Note } else { CapabilitySeverity::Warning };
    problems.retain(|found| found.problem.severity >= lowest);
    for found in &problems {
        if context.global.json {
            let value = json!({
                "file": found.file, "line": found.problem.line, "message": found.problem.message,
                "severity": found.problem.severity.to_string(),
            });
            out.print_line(&value.to_string())?;
            continue;
        }
        let severity = match found.problem.severity {
            CapabilitySeverity::Note => paint(style::FAINT, "note"),
            CapabilitySeverity::Warning => paint(style::ASK, "warning"),
            CapabilitySeverity::Error => paint(style::BAD, "error"),
        };
        let place = format!("{}:{}", found.file, found.problem.line);
        out.print_line(&format!(
            "{}: {severity}: {}",
            to_one_line(&place),
            to_one_line(&found.problem.message)
        ))?;
    }
    let errors = problems.iter().filter(|found| found.problem.severity == CapabilitySeverity::Error).count();
    out.print_note(&format!(
        "{}, {}: {}",
        format_count(plugins as u64, "plugin", "plugins"),
        format_count(problems.len() as u64, "problem", "problems"),
        format_count(errors as u64, "error", "errors")
    ));
    Ok(if errors > 0 { CliExitCode::ToolFailed } else { CliExitCode::Ok })
}

/// Adds the problems of one plugin.
fn check_plugin(dir: &AbsPath, problems: &mut Vec<CatalogProblem>) {
    match PluginPackage::read(dir) {
        Ok(package) => problems.extend(package.summarize().problems),
        Err(found) => problems.extend(found),
    }
}
