//! `toolgate policy`: rules looked over, and rules put to the test.

use super::args::{ImportFrom, PolicyArgs, PolicyCommand};
use super::batch_checker::{BatchCheckOutcome, BatchChecker};
use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode, policy_import};
use serde_json::{Value, json};
use toolgate::render::escape_invisible;
use toolgate::{AbsPath, Mode, ToolCall, unregistered_tool};
use toolgate_policy::cases::{self, CallRow, CaseSection, RuleRow};
use toolgate_policy::{ProblemSeverity, RuleProblem};
use toolgate_proto::json::JsonLimits;

pub(crate) fn run(
    world: &CliContext,
    args: &PolicyArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match &args.command {
        PolicyCommand::Lint => lint(world, out),
        PolicyCommand::Test { files } => test(world, files, out),
        PolicyCommand::Import { from: ImportFrom::Gemini, file } => policy_import::run(world, file, out),
    }
}

/// Says what is wrong with the rules in force. Only a rule that has no effect, or not the one it seems to have, fails.
fn lint(world: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = world.builder()?.build()?;
    let (notes, problems) = toolgate.notes();
    if world.global.json {
        out.print_line(&json!({ "problems": problems }).to_string())?;
    } else {
        for note in notes {
            out.print_line(&format!(
                "{}  {}",
                paint(style::FAINT, "note   "),
                escape_invisible(&note.to_string())
            ))?;
        }
        for problem in problems {
            out.print_line(&render_problem(problem))?;
        }
        let count: usize = toolgate
            .policy()
            .layers
            .iter()
            .map(|layer| layer.allow.len() + layer.ask.len() + layer.deny.len())
            .sum();
        out.print_line(&format!("{count} rules, {} problems", problems.len()))?;
    }
    let failing = problems.iter().any(|problem| problem.weight >= ProblemSeverity::Warning);
    Ok(if failing { CliExitCode::ToolFailed } else { CliExitCode::Ok })
}

fn render_problem(problem: &RuleProblem) -> String {
    let (style, word) = match problem.weight {
        ProblemSeverity::Note => (style::FAINT, "note   "),
        ProblemSeverity::Warning => (style::ASK, "warning"),
        ProblemSeverity::Fatal => (style::BAD, "fatal  "),
    };
    format!("{}  {}", paint(style, word), escape_invisible(&problem.to_string()))
}

/// Runs Markdown files of settings and expected verdicts.
fn test(world: &CliContext, files: &[String], out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut court = BatchChecker::new(world)?;
    let (mut passed, mut failed) = (0usize, 0usize);
    for file in files {
        let path = world.ambient.absolute_path(file);
        let text = toolgate_files::read_settings_text(&path, JsonLimits::SETTINGS.bytes as u64)
            .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?
            .ok_or_else(|| CliError::Usage(format!("{path}: there is no such file")))?;
        let sections =
            cases::parse(&text).map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?;
        for section in &sections {
            for wrong in check_section(world, &mut court, section, &mut passed) {
                failed += 1;
                let (line, says) = wrong;
                out.print_line(&format!(
                    "{} {file}:{line}: {}",
                    paint(style::BAD, "wrong"),
                    escape_invisible(&says)
                ))?;
            }
        }
    }
    if passed + failed == 0 {
        return Err(CliError::Usage(
            "no cases found: write a `json settings` block and a table headed `call | verdict`".to_owned(),
        ));
    }
    out.print_line(&format!("{passed} passed, {failed} failed"))?;
    Ok(if failed > 0 { CliExitCode::ToolFailed } else { CliExitCode::Ok })
}

fn check_section(
    world: &CliContext,
    court: &mut BatchChecker<'_>,
    section: &CaseSection,
    passed: &mut usize,
) -> Vec<(usize, String)> {
    let mut settings = section.settings.clone();
    let mode = take_mode(&mut settings);
    let cwd = world.cwd();
    let calls = section.calls.iter().map(|row| (row.line, check_call_row(court, row, &settings, &cwd, mode)));
    let mut rows: Vec<(usize, Result<(), String>)> = calls.collect();
    rows.extend(section.rules.iter().map(|row| (row.line, check_rule_row(court, row, &cwd))));
    rows.into_iter()
        .filter_map(|(line, result)| match result {
            Ok(()) => {
                *passed += 1;
                None
            }
            Err(says) => Some((line, says)),
        })
        .collect()
}

/// `"mode"` beside the settings sets the mode of the section.
fn take_mode(settings: &mut Value) -> Option<Mode> {
    let mode = settings.as_object_mut()?.shift_remove("mode")?;
    mode.as_str()?.parse().ok()
}

fn check_call_row(
    court: &mut BatchChecker<'_>,
    row: &CallRow,
    settings: &Value,
    cwd: &AbsPath,
    mode: Option<Mode>,
) -> Result<(), String> {
    let input = if row.input.starts_with('{') {
        row.input.clone()
    } else {
        unregistered_tool::build_main_field_input(&row.tool, &row.input, cwd).to_string()
    };
    let call = ToolCall::new("check", row.tool.clone(), input);
    let (verdict, reason) = match court.judge(&call, Some(settings), cwd, mode) {
        BatchCheckOutcome::Judged(judgement) => {
            (judgement.verdict.as_str(), judgement.verdict.reason().to_string())
        }
        BatchCheckOutcome::Refused(refusal) => ("deny", refusal.to_string()),
        BatchCheckOutcome::Unusable(problem) => ("deny", problem),
    };
    if verdict == row.verdict {
        return Ok(());
    }
    Err(format!("`{} {}` gives {verdict}, not {}: {reason}", row.tool, row.input, row.verdict))
}

fn check_rule_row(court: &mut BatchChecker<'_>, row: &RuleRow, cwd: &AbsPath) -> Result<(), String> {
    let settings = json!({ "permissions": { row.action.clone(): [row.rule] } });
    let (found, says) = match court.compiled_policy(Some(&settings), cwd, None).as_ref() {
        Err(problem) => ("fatal", problem.clone()),
        Ok((_, problems)) => match problems.iter().max_by_key(|problem| problem.weight) {
            None => ("fine", String::new()),
            Some(problem) => {
                let word = match problem.weight {
                    ProblemSeverity::Note => "note",
                    ProblemSeverity::Warning => "warning",
                    ProblemSeverity::Fatal => "fatal",
                };
                (word, problem.to_string())
            }
        },
    };
    if found == row.weight {
        return Ok(());
    }
    Err(format!("{} rule `{}` is {found}, not {}: {says}", row.action, row.rule, row.weight))
}
