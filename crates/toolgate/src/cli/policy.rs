//! `toolgate policy`: rules looked over, and rules put to the test.

use super::args::{ImportFrom, PolicyArgs, PolicyCommand};
use super::court::{BatchCheckOutcome, BatchChecker};
use super::out::{Out, paint, style};
use super::world::World;
use super::{Exit, Failure, policy_import};
use serde_json::{Value, json};
use toolgate::render::visible;
use toolgate::{AbsPath, Mode, ToolCall, paper};
use toolgate_policy::cases::{self, CallRow, RuleRow, Section};
use toolgate_policy::{Problem, Weight};
use toolgate_proto::json::Limits;

pub(crate) fn run(world: &World, args: &PolicyArgs, out: &mut Out) -> Result<Exit, Failure> {
    match &args.command {
        PolicyCommand::Lint => lint(world, out),
        PolicyCommand::Test { files } => test(world, files, out),
        PolicyCommand::Import { from: ImportFrom::Gemini, file } => policy_import::run(world, file, out),
    }
}

/// Says what is wrong with the rules in force. Only a rule that has no effect, or not the one it seems to have, fails.
fn lint(world: &World, out: &mut Out) -> Result<Exit, Failure> {
    let toolgate = world.builder()?.build()?;
    let (notes, problems) = toolgate.notes();
    if world.global.json {
        out.line(&json!({ "problems": problems }).to_string())?;
    } else {
        for note in notes {
            out.line(&format!("{}  {}", paint(style::FAINT, "note   "), visible(&note.to_string())))?;
        }
        for problem in problems {
            out.line(&shown(problem))?;
        }
        let count: usize = toolgate
            .policy()
            .layers
            .iter()
            .map(|layer| layer.allow.len() + layer.ask.len() + layer.deny.len())
            .sum();
        out.line(&format!("{count} rules, {} problems", problems.len()))?;
    }
    let failing = problems.iter().any(|problem| problem.weight >= Weight::Warning);
    Ok(if failing { Exit::ToolFailed } else { Exit::Ok })
}

fn shown(problem: &Problem) -> String {
    let (style, word) = match problem.weight {
        Weight::Note => (style::FAINT, "note   "),
        Weight::Warning => (style::ASK, "warning"),
        Weight::Fatal => (style::BAD, "fatal  "),
    };
    format!("{}  {}", paint(style, word), visible(&problem.to_string()))
}

/// Runs Markdown files of settings and expected verdicts.
fn test(world: &World, files: &[String], out: &mut Out) -> Result<Exit, Failure> {
    let mut court = BatchChecker::new(world)?;
    let (mut passed, mut failed) = (0usize, 0usize);
    for file in files {
        let path = world.ambient.path(file);
        let text = toolgate_os::read_settings_text(&path, Limits::SETTINGS.bytes as u64)
            .map_err(|problem| Failure::Usage(format!("{path}: {problem}")))?
            .ok_or_else(|| Failure::Usage(format!("{path}: there is no such file")))?;
        let sections = cases::parse(&text).map_err(|problem| Failure::Usage(format!("{path}: {problem}")))?;
        for section in &sections {
            for wrong in check_section(world, &mut court, section, &mut passed) {
                failed += 1;
                let (line, says) = wrong;
                out.line(&format!("{} {file}:{line}: {}", paint(style::BAD, "wrong"), visible(&says)))?;
            }
        }
    }
    if passed + failed == 0 {
        return Err(Failure::Usage(
            "no cases found: write a `json settings` block and a table headed `call | verdict`".to_owned(),
        ));
    }
    out.line(&format!("{passed} passed, {failed} failed"))?;
    Ok(if failed > 0 { Exit::ToolFailed } else { Exit::Ok })
}

fn check_section(
    world: &World,
    court: &mut BatchChecker<'_>,
    section: &Section,
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
        paper::build_main_field_input(&row.tool, &row.input, cwd).to_string()
    };
    let call = ToolCall::new("check", row.tool.clone(), input);
    let (verdict, reason) = match court.judge(&call, Some(settings), cwd, mode) {
        BatchCheckOutcome::Judged(judgement) => {
            (judgement.verdict.word(), judgement.verdict.reason().to_string())
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
    let (found, says) = match court.compiled(Some(&settings), cwd, None).as_ref() {
        Err(problem) => ("fatal", problem.clone()),
        Ok((_, problems)) => match problems.iter().max_by_key(|problem| problem.weight) {
            None => ("fine", String::new()),
            Some(problem) => {
                let word = match problem.weight {
                    Weight::Note => "note",
                    Weight::Warning => "warning",
                    Weight::Fatal => "fatal",
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
