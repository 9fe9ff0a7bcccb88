//! `toolgate skill lint`.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style, to_one_line};
use super::super::{CliError, CliExitCode};
use serde_json::{Value, json};
use toolgate::AbsPath;
use toolgate::skills::{
    CapabilityPlace, CapabilityPlaces, CapabilityScope, CapabilitySeverity, CatalogProblem, SkillCatalog,
};
use toolgate_proto::format_count;

/// Arguments of `toolgate skill lint`.
#[derive(Debug, clap::Args)]
pub(crate) struct SkillLintArgs {
    /// A directory with `skills`, `commands`, `agents` or `output-styles`, or a directory with a SKILL.md; all places of
    /// this workspace if absent
    paths: Vec<String>,
    /// Show notes as well as warnings and errors
    #[arg(long)]
    notes: bool,
}

/// Prints the problems. The exit code is 1 if there is an error.
pub(crate) fn run(
    context: &CliContext,
    args: &SkillLintArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let places = match args.paths.as_slice() {
        [] => context.skill_options()?.places,
        paths => {
            let mut places = CapabilityPlaces::default();
            for path in paths {
                places.add(place_of(&context.ambient.absolute_path(path))?);
            }
            places
        }
    };
    let catalog = SkillCatalog::load(&places, None);
    let lowest = if args.notes { CapabilitySeverity::Note } else { CapabilitySeverity::Warning };
    let shown: Vec<&CatalogProblem> =
        catalog.problems().iter().filter(|found| found.problem.severity >= lowest).collect();
    for found in &shown {
        match context.global.json {
            true => out.print_line(&problem_json(found).to_string())?,
            false => print_problem(found, out)?,
        }
    }
    let errors = shown.iter().filter(|found| found.problem.severity == CapabilitySeverity::Error).count();
    out.print_note(&format!(
        "{}, {}: {}",
        format_count(catalog.file_count() as u64, "file", "files"),
        format_count(shown.len() as u64, "problem", "problems"),
        format_count(errors as u64, "error", "errors")
    ));
    Ok(if errors > 0 { CliExitCode::ToolFailed } else { CliExitCode::Ok })
}

/// What a path on the command line is.
fn place_of(path: &AbsPath) -> Result<CapabilityPlace, CliError> {
    let exists = |path: &AbsPath| toolgate_files::read_file_stamp(path) != toolgate_files::FileStamp::Absent;
    if !exists(path) {
        return Err(CliError::Usage(format!("there is no directory {path}")));
    }
    let mut place = CapabilityPlace::in_dir(path, CapabilityScope::Personal, None);
    if exists(&path.join("SKILL.md")) {
        place.skill_dirs.push(path.clone());
    }
    Ok(place)
}

/// Prints a problem as `file:line: severity: message`, the form that editors recognize.
fn print_problem(found: &CatalogProblem, out: &mut CliOutput) -> Result<(), CliError> {
    let severity = match found.problem.severity {
        CapabilitySeverity::Note => paint(style::FAINT, "note"),
        CapabilitySeverity::Warning => paint(style::ASK, "warning"),
        CapabilitySeverity::Error => paint(style::BAD, "error"),
    };
    let place = format!("{}:{}", found.file, found.problem.line);
    out.print_line(&format!("{}: {severity}: {}", to_one_line(&place), to_one_line(&found.problem.message)))?;
    Ok(())
}

/// One problem for programs.
pub(super) fn problem_json(found: &CatalogProblem) -> Value {
    json!({
        "file": found.file, "line": found.problem.line, "severity": found.problem.severity.to_string(),
        "message": found.problem.message,
    })
}
