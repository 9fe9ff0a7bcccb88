//! `toolgate plugin list`.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use serde_json::{Value, json};
use toolgate::plugins::PluginStatus;

/// Prints the plugins.
pub(super) fn list_plugins(context: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let set = super::load_set(context)?;
    if context.global.json {
        let list: Vec<Value> = set
            .plugins
            .iter()
            .map(|entry| {
                let version = entry.package.as_ref().and_then(|package| package.manifest.version.clone());
                json!({
                    "id": entry.id(), "name": entry.name, "status": entry.status.to_string(), "version": version,
                    "root": entry.root, "sha256": entry.package.as_ref().map(|package| package.sha256.clone()),
                })
            })
            .collect();
        out.print_line(&json!({ "plugins": list }).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    let width = set.plugins.iter().map(|entry| entry.id().len()).max().unwrap_or(0);
    for entry in &set.plugins {
        let color = match entry.status {
            PluginStatus::Active => style::GOOD,
            PluginStatus::Disabled => style::FAINT,
            PluginStatus::NotApproved | PluginStatus::Changed => style::ASK,
            PluginStatus::Unusable => style::BAD,
        };
        let version = entry.package.as_ref().and_then(|package| package.manifest.version.clone());
        let description = entry.package.as_ref().and_then(|package| package.manifest.description.clone());
        let mut line = format!(
            "{}  {}",
            paint(style::BOLD, &format!("{:width$}", to_one_line(&entry.id()))),
            paint(color, &format!("{:12}", entry.status.to_string())),
        );
        for more in [version, description].into_iter().flatten() {
            line.push_str(&format!("  {}", paint(style::FAINT, &to_one_line(&more))));
        }
        out.print_line(&line)?;
        if let Some(standing) = entry.describe_standing() {
            out.print_note(&standing);
        }
    }
    if set.plugins.is_empty() {
        out.print_note("there are no plugins; install one with `toolgate plugin add DIR`");
    }
    Ok(CliExitCode::Ok)
}
