//! `toolgate policy import gemini FILE.toml`: converts the rules of Gemini CLI to settings of toolgate.

use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use serde::Deserialize;
use serde_json::json;
use toml::{Spanned, Value};
use toolgate::render::escape_invisible;
use toolgate_policy::gemini::{GeminiRule, translate};
use toolgate_proto::json::JsonLimits;

/// A policy file of Gemini CLI. Spans give messages their line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GeminiPolicyFile {
    /// The `[[rule]]` tables.
    #[serde(default)]
    rule: Vec<Spanned<GeminiRule>>,
    /// The `[[safety_checker]]` tables, which are programs and have no equivalent rule.
    #[serde(default)]
    safety_checker: Vec<Spanned<Value>>,
}

/// Prints the settings to standard output, and differences in meaning to standard error.
pub(crate) fn import_gemini_policy(
    context: &CliContext,
    file: &str,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let path = context.ambient.absolute_path(file);
    let text = toolgate_files::read_settings_text(&path, JsonLimits::SETTINGS.bytes as u64)
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?
        .ok_or_else(|| CliError::Usage(format!("{path}: no such file")))?;
    let line = |at: usize| 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
    let parsed: GeminiPolicyFile = toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(1, |span| line(span.start));
        CliError::Usage(format!("{path}:{at}: {}", error.message()))
    })?;
    if let Some(checker) = parsed.safety_checker.first() {
        return Err(CliError::Usage(format!(
            "{path}:{}: a safety checker is a program, not a rule, and cannot be imported\n  hint: configure it as a \
             PreToolUse hook (docs/hooks.md)",
            line(checker.span().start)
        )));
    }
    let rules: Vec<GeminiRule> = parsed
        .rule
        .into_iter()
        .map(|rule| {
            let line = line(rule.span().start);
            GeminiRule { line, ..rule.into_inner() }
        })
        .collect();
    let translated = translate(&rules).map_err(|note| {
        let hint = "change the rule, or write an equivalent toolgate rule by hand (docs/policy.md)";
        CliError::Usage(format!("{path}:{}: {}\n  hint: {hint}", note.line, escape_invisible(&note.message)))
    })?;
    if context.global.json {
        out.print_line(&json!(translated).to_string())?;
        return Ok(CliExitCode::Ok);
    }
    let settings = serde_json::to_string_pretty(&translated.settings)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    out.print_line(&settings)?;
    for note in &translated.notes {
        let message = format!("{file}:{}: {}", note.line, escape_invisible(&note.message));
        out.print_failure(&format!("{}  {message}", paint(style::ASK, "note")));
    }
    Ok(CliExitCode::Ok)
}
