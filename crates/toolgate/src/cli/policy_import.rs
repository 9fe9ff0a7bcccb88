//! `toolgate policy import PRODUCT FILE`: converts rules of other products to settings of toolgate.

use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::json;
use toml::{Spanned, Value};
use toolgate::AbsPath;
use toolgate::render::escape_invisible;
use toolgate_policy::gemini::GeminiRule;
use toolgate_policy::goose::GoosePermissions;
use toolgate_policy::{RuleTranslation, TranslationNote, codex, gemini, goose};
use toolgate_proto::json::JsonLimits;
use yaml_rust2::{Yaml, YamlLoader};

/// A product whose rules can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    /// Execution rules of Codex (`~/.codex/rules/*.rules`)
    Codex,
    /// The policy engine of Gemini CLI (`~/.gemini/policies/*.toml`)
    Gemini,
    /// Tool permissions of goose (`~/.config/goose/permission.yaml`)
    Goose,
}

/// The help after the options.
pub(crate) const IMPORT_HELP: &str = "\
The settings are printed; where they are stricter than the rules, a note says so. A file with a denial that cannot be \
expressed is refused as a whole.";

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
pub(crate) fn import_rules(
    context: &CliContext,
    from: ImportFrom,
    file: &str,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let path = context.ambient.absolute_path(file);
    let text = toolgate_files::read_settings_text(&path, JsonLimits::SETTINGS.bytes as u64)
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?
        .ok_or_else(|| CliError::Usage(format!("{path}: no such file")))?;
    let refuse = |note: TranslationNote| {
        let hint = "change the rule, or write an equivalent toolgate rule by hand (docs/policy.md)";
        CliError::Usage(format!("{path}:{}: {}\n  hint: {hint}", note.line, escape_invisible(&note.message)))
    };
    let translated = match from {
        ImportFrom::Codex => codex::translate(&text).map_err(refuse)?,
        ImportFrom::Gemini => gemini::translate(&read_gemini(&path, &text)?).map_err(refuse)?,
        ImportFrom::Goose => import_goose(&path, &text)?,
    };
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

/// The rules of a Gemini CLI policy file, with their lines.
fn read_gemini(path: &AbsPath, text: &str) -> Result<Vec<GeminiRule>, CliError> {
    let line = |at: usize| 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
    let parsed: GeminiPolicyFile = toml::from_str(text).map_err(|error| {
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
    let with_line = |rule: Spanned<GeminiRule>| {
        let line = line(rule.span().start);
        GeminiRule { line, ..rule.into_inner() }
    };
    Ok(parsed.rule.into_iter().map(with_line).collect())
}

/// Translates a permission file of goose.
fn import_goose(path: &AbsPath, text: &str) -> Result<RuleTranslation, CliError> {
    let documents = YamlLoader::load_from_str(text)
        .map_err(|error| CliError::Usage(format!("{path}:{}: {}", error.marker().line(), error.info())))?;
    let refuse = |message: String, hint: &str| CliError::Usage(format!("{path}: {message}\n  hint: {hint}"));
    let sections_hint = "a permission file of goose has the sections `user` and `smart_approve`";
    let lists_hint =
        "a section has the lists `always_allow`, `ask_before` and `never_allow`, each of names of tools";
    let tool_hint = "remove the tool from a copy of the file, import that, and write a toolgate rule for the tool by \
                     hand (docs/policy.md)";
    let [Yaml::Hash(sections)] = documents.as_slice() else {
        return Err(refuse("the file is not one YAML mapping".to_owned(), sections_hint));
    };
    let (mut user, mut smart_approve) = (GoosePermissions::default(), GoosePermissions::default());
    for (name, section) in sections {
        let target = match name.as_str() {
            Some("user") => &mut user,
            Some("smart_approve") => &mut smart_approve,
            _ => {
                let message = format!("unknown section `{}`", name.as_str().unwrap_or("?"));
                return Err(refuse(escape_invisible(&message), sections_hint));
            }
        };
        read_goose_section(section, target).map_err(|message| refuse(message, lists_hint))?;
    }
    goose::translate(&user, &smart_approve).map_err(|note| refuse(escape_invisible(&note.message), tool_hint))
}

/// Reads the lists of one section. An unknown list is an error, because it may deny.
fn read_goose_section(section: &Yaml, target: &mut GoosePermissions) -> Result<(), String> {
    let Yaml::Hash(lists) = section else { return Err("a section is not a mapping".to_owned()) };
    for (name, tools) in lists {
        let list = match name.as_str() {
            Some("always_allow") => &mut target.always_allow,
            Some("ask_before") => &mut target.ask_before,
            Some("never_allow") => &mut target.never_allow,
            _ => return Err(format!("unknown list `{}`", name.as_str().unwrap_or("?"))),
        };
        let Yaml::Array(tools) = tools else { return Err("a list of tools is not a list".to_owned()) };
        for tool in tools {
            list.push(tool.as_str().ok_or("the name of a tool is not a string")?.to_owned());
        }
    }
    Ok(())
}
