//! `toolgate policy`: lints the rules in force, runs test cases in Markdown files, and imports rules of other products.

use super::batch_checker::{BatchCheckOutcome, BatchChecker};
use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode, policy_import};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use toolgate::render::escape_invisible;
use toolgate::{AbsPath, Mode, ToolCall, unregistered_tool};
use toolgate_policy::cases::{self, CallRow, CaseSection, RuleRow};
use toolgate_policy::{ProblemSeverity, RuleProblem};
use toolgate_proto::json::JsonLimits;

/// Arguments of `toolgate policy`.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// The commands of `toolgate policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Report rules that never match, that other rules shadow, or that match more than they seem to
    Lint,
    /// Run Markdown files with settings and expected verdicts
    #[command(
        after_help = "A file contains prose, fenced blocks marked `json settings`, and tables with the header \
                      `call | verdict`, whose rows are calls and their expected verdicts. docs/policy.md has an example."
    )]
    Test {
        /// The files
        #[arg(required = true, value_name = "FILE.md")]
        files: Vec<String>,
    },
    /// Convert the rules of another product to settings, and report where their meaning differs
    Import {
        /// The product
        from: ImportFrom,
        /// Its policy file
        #[arg(value_name = "FILE.toml")]
        file: String,
    },
}

/// A product whose rules can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    /// The policy engine of Gemini CLI
    Gemini,
}

/// Runs `lint`, `test` or `import`.
pub(crate) fn run(
    context: &CliContext,
    args: &PolicyArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    match &args.command {
        PolicyCommand::Lint => lint(context, out),
        PolicyCommand::Test { files } => test(context, files, out),
        PolicyCommand::Import { from: ImportFrom::Gemini, file } => {
            policy_import::import_gemini_policy(context, file, out)
        }
    }
}

/// Prints the problems of the rules in force. Notes do not fail the command; warnings do, because the rule has no
/// effect or not the one it seems to have.
fn lint(context: &CliContext, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let toolgate = context.builder()?.build()?;
    let (notes, problems) = toolgate.notes();
    if context.global.json {
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

/// A problem with its severity.
fn render_problem(problem: &RuleProblem) -> String {
    let (style, word) = match problem.weight {
        ProblemSeverity::Note => (style::FAINT, "note   "),
        ProblemSeverity::Warning => (style::ASK, "warning"),
        ProblemSeverity::Fatal => (style::BAD, "fatal  "),
    };
    format!("{}  {}", paint(style, word), escape_invisible(&problem.to_string()))
}

/// Runs the cases of Markdown files and prints those that fail.
fn test(context: &CliContext, files: &[String], out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let mut checker = BatchChecker::new(context)?;
    let (mut passed, mut failed) = (0usize, 0usize);
    for file in files {
        let path = context.ambient.absolute_path(file);
        let text = toolgate_files::read_settings_text(&path, JsonLimits::SETTINGS.bytes as u64)
            .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?
            .ok_or_else(|| CliError::Usage(format!("{path}: no such file")))?;
        let sections =
            cases::parse(&text).map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?;
        for section in &sections {
            for (line, message) in check_section(context, &mut checker, section, &mut passed) {
                failed += 1;
                out.print_line(&format!(
                    "{} {file}:{line}: {}",
                    paint(style::BAD, "failed"),
                    escape_invisible(&message)
                ))?;
            }
        }
    }
    if passed + failed == 0 {
        return Err(CliError::Usage(
            "no cases found; write a `json settings` block and a table with the header `call | verdict`"
                .to_owned(),
        ));
    }
    out.print_line(&format!("{passed} passed, {failed} failed"))?;
    Ok(if failed > 0 { CliExitCode::ToolFailed } else { CliExitCode::Ok })
}

/// Runs the rows of one section, and returns the failed ones with line and message.
fn check_section(
    context: &CliContext,
    checker: &mut BatchChecker<'_>,
    section: &CaseSection,
    passed: &mut usize,
) -> Vec<(usize, String)> {
    let mut settings = section.settings.clone();
    let mode = take_mode(&mut settings);
    let cwd = context.cwd();
    let calls =
        section.calls.iter().map(|row| (row.line, check_call_row(checker, row, &settings, &cwd, mode)));
    let mut rows: Vec<(usize, Result<(), String>)> = calls.collect();
    rows.extend(section.rules.iter().map(|row| (row.line, check_rule_row(checker, row, &cwd))));
    rows.into_iter()
        .filter_map(|(line, result)| match result {
            Ok(()) => {
                *passed += 1;
                None
            }
            Err(message) => Some((line, message)),
        })
        .collect()
}

/// Removes `"mode"` from the settings of a section: it is the permission mode of the section's calls.
fn take_mode(settings: &mut Value) -> Option<Mode> {
    let mode = settings.as_object_mut()?.shift_remove("mode")?;
    mode.as_str()?.parse().ok()
}

/// Compares the verdict of a call with the expected one.
fn check_call_row(
    checker: &mut BatchChecker<'_>,
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
    let (verdict, reason) = match checker.judge(&call, Some(settings), cwd, mode) {
        BatchCheckOutcome::Judged(judgement) => {
            (judgement.verdict.as_str(), judgement.verdict.reason().to_string())
        }
        BatchCheckOutcome::Refused(refusal) => ("deny", refusal.to_string()),
        BatchCheckOutcome::Unusable(problem) => ("deny", problem),
    };
    if verdict == row.verdict {
        return Ok(());
    }
    Err(format!("`{} {}`: expected {}, got {verdict}: {reason}", row.tool, row.input, row.verdict))
}

/// Compares the most severe problem of a rule with the expected severity.
fn check_rule_row(checker: &mut BatchChecker<'_>, row: &RuleRow, cwd: &AbsPath) -> Result<(), String> {
    let settings = json!({ "permissions": { row.action.clone(): [row.rule] } });
    let (found, message) = match checker.compiled_policy(Some(&settings), cwd, None).as_ref() {
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
    Err(format!("{} rule `{}`: expected {}, got {found}: {message}", row.action, row.rule, row.weight))
}
