//! `toolgate policy test`: runs the cases of Markdown files, against the settings that a file contains or against those in
//! force.

use super::batch_checker::{BatchCheckOutcome, BatchChecker};
use super::context::CliContext;
use super::output::{CliOutput, paint, style};
use super::{CliError, CliExitCode};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use toolgate::render::escape_invisible;
use toolgate::settings::{lint_text, parse_settings_text, schema};
use toolgate::{AbsPath, Mode, ToolCall, unregistered_tool};
use toolgate_files::{FileStamp, read_file_stamp};
use toolgate_policy::cases::{self, CallRow, CaseSection, RuleRow};
use toolgate_policy::{ProblemSeverity, find_intended_name};
use toolgate_proto::json::JsonLimits;

/// The file that is run if none is given.
const DEFAULT_CASE_FILE: &str = ".toolgate/policy.md";
/// How often `--watch` looks at the files.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Arguments of `toolgate policy test`.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyTestArgs {
    /// The files; .toolgate/policy.md if none is given
    #[arg(value_name = "FILE.md")]
    files: Vec<String>,
    /// Run again whenever a case file or a settings file changes, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

/// The help after the options.
pub(crate) const POLICY_TEST_HELP: &str = "\
A file contains prose and tables with the header `call | verdict`, whose rows are calls and their expected verdicts. A \
fenced block marked `json settings` or `jsonc settings` sets the settings of the tables below it, comments allowed; tables without such a block above them are \
judged by the settings in force. A row fails also if its call gets no verdict, because there is no such tool or its input \
is invalid. docs/policy.md has examples.";

/// A row that did not get what it expects.
#[derive(Debug, Serialize)]
struct FailedCase {
    /// The case file, as given.
    file: String,
    /// The line in it.
    line: usize,
    /// The call or the rule.
    case: String,
    /// The expected verdict or severity.
    expected: String,
    /// What it got.
    actual: String,
    /// Why.
    reason: String,
}

/// The result of one run.
#[derive(Debug, Default, Serialize)]
struct CaseReport {
    /// How many rows got what they expect.
    passed: usize,
    /// The others.
    failures: Vec<FailedCase>,
    /// What of the settings of the files has no effect, and of those in force if a row that they decide failed.
    #[serde(skip)]
    notes: Vec<String>,
}

impl CaseReport {
    /// Adds notes that are not there already.
    fn add_notes(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// A case file: its name as given, and its path.
type CaseFile = (String, AbsPath);

/// Runs the files once, or after each change.
pub(crate) fn run_policy_test(
    context: &CliContext,
    args: &PolicyTestArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let files: Vec<CaseFile> = match args.files.is_empty() {
        true => vec![(DEFAULT_CASE_FILE.to_owned(), context.cwd().join(DEFAULT_CASE_FILE))],
        false => args.files.iter().map(|file| (file.clone(), context.ambient.absolute_path(file))).collect(),
    };
    if !args.watch {
        let report = run_files(context, &files)?;
        print_report(context, &report, out)?;
        return Ok(if report.failures.is_empty() { CliExitCode::Ok } else { CliExitCode::ToolFailed });
    }
    loop {
        let before = stamp_files(context, &files)?;
        match run_files(context, &files) {
            Ok(report) => print_report(context, &report, out)?,
            // The next change may correct it, so watching goes on.
            Err(CliError::Usage(message)) => out.print_error(&message),
            Err(stopped) => return Err(stopped),
        }
        out.flush()?;
        while stamp_files(context, &files)? == before {
            std::thread::sleep(WATCH_INTERVAL);
        }
    }
}

/// The stamps of the case files and of everything that the settings in force depend on.
fn stamp_files(context: &CliContext, files: &[CaseFile]) -> Result<Vec<FileStamp>, CliError> {
    let settings = context.settings_options()?.watched_paths()?;
    Ok(files.iter().map(|(_, path)| path).chain(&settings).map(read_file_stamp).collect())
}

/// Runs the cases of all files with the settings as they are now. Every file is parsed first, so that all their mistakes
/// are reported at once.
fn run_files(context: &CliContext, files: &[CaseFile]) -> Result<CaseReport, CliError> {
    let mut checker = BatchChecker::new(context)?;
    let mut report = CaseReport::default();
    let (mut parsed, mut problems) = (Vec::new(), Vec::new());
    for (name, path) in files {
        match parse_file(path) {
            Ok(sections) => parsed.push((name, sections)),
            Err(of_file) => problems.extend(of_file),
        }
    }
    if !problems.is_empty() {
        return Err(CliError::Usage(problems.join("\n")));
    }
    for (name, sections) in &parsed {
        for section in sections {
            let before = report.failures.len();
            run_section(context, &mut checker, name, section, &mut report);
            if report.failures.len() > before && section.settings.is_none() {
                report.add_notes(checker.notes());
            }
        }
    }
    Ok(report)
}

/// The sections of a file, or every reason why its cases cannot be run.
fn parse_file(path: &AbsPath) -> Result<Vec<CaseSection>, Vec<String>> {
    let text = toolgate_files::read_settings_text(path, JsonLimits::SETTINGS.bytes as u64)
        .map_err(|problem| vec![format!("{path}: {problem}")])?
        .ok_or_else(|| {
            let hint = "give a file, or write a starter policy with `toolgate init`";
            vec![format!("{path}: no such file\n  hint: {hint}")]
        })?;
    let sections = cases::parse(&text, parse_section_settings)
        .map_err(|problems| problems.iter().map(|problem| format!("{path}:{problem}")).collect::<Vec<_>>())?;
    if sections.iter().all(|section| section.calls.is_empty() && section.rules.is_empty()) {
        return Err(vec![format!(
            "{path}: no cases found; write a table with the header `call | verdict`, below a `json settings` block or \
             for the settings in force"
        )]);
    }
    Ok(sections)
}

/// Parses a block with settings, which may have `"mode"` beside the keys of a settings file.
fn parse_section_settings(text: &str) -> Result<Value, (usize, String)> {
    let settings = parse_settings_text(text)?;
    if let Some(key) = find_misspelled_mode(&settings) {
        let line = text.lines().position(|line| line.contains(&format!("\"{key}\""))).unwrap_or_default();
        return Err((line + 1, format!("unknown key `{key}`; did you mean `mode`?")));
    }
    let problem = match settings.get("mode").map(|mode| mode.as_str().map(str::parse::<Mode>)) {
        None | Some(Some(Ok(_))) => return Ok(settings),
        Some(Some(Err(unknown))) => unknown.to_string(),
        Some(None) => "`mode` must be the name of a mode, such as \"plan\"".to_owned(),
    };
    let line = text.lines().position(|line| line.contains("\"mode\"")).unwrap_or_default();
    Err((line + 1, problem))
}

/// A key that is almost `mode`. Settings files have no such key, so their own check does not find it.
fn find_misspelled_mode(settings: &Value) -> Option<&str> {
    let known = schema::settings_schema().get("properties")?;
    let mut keys = settings.as_object()?.keys().filter(|key| known.get(key.as_str()).is_none());
    keys.find(|key| find_intended_name(key, ["mode"]).is_some()).map(String::as_str)
}

/// The keys of a section's settings that have no effect. Those that are almost a known key make the settings unusable; the
/// author may have meant something with the others too.
fn find_unknown_keys(file: &str, section: &CaseSection, settings: &Value) -> Vec<String> {
    let is_unknown_key = |message: &str| message.starts_with("unknown key ");
    let problems = lint_text(file, &settings.to_string()).into_iter().filter(|problem| {
        problem.weight == ProblemSeverity::Note && problem.rule.is_none() && is_unknown_key(&problem.message)
    });
    let place = match section.heading.as_str() {
        "" => file.to_owned(),
        heading => format!("{file}, below `{heading}`"),
    };
    problems.map(|problem| format!("{place}: {}", problem.message)).collect()
}

/// Prints the failed rows and the counts.
fn print_report(context: &CliContext, report: &CaseReport, out: &mut CliOutput) -> Result<(), CliError> {
    let failed = report.failures.len();
    if context.global.json {
        let value = json!({ "passed": report.passed, "failed": failed, "failures": report.failures });
        return Ok(out.print_line(&value.to_string())?);
    }
    for FailedCase { file, line, case, expected, actual, reason } in &report.failures {
        let message = format!("{file}:{line}: {case}: expected {expected}, got {actual}: {reason}");
        out.print_line(&format!("{} {}", paint(style::BAD, "failed"), escape_invisible(&message)))?;
    }
    for note in &report.notes {
        out.print_note(&escape_invisible(note));
    }
    Ok(out.print_line(&format!("{} passed, {failed} failed", report.passed))?)
}

/// Runs the rows of one section.
fn run_section(
    context: &CliContext,
    checker: &mut BatchChecker<'_>,
    file: &str,
    section: &CaseSection,
    report: &mut CaseReport,
) {
    let mut settings = section.settings.clone();
    let mode = settings.as_mut().and_then(take_mode);
    if let Some(settings) = &settings {
        report.add_notes(find_unknown_keys(file, section, settings));
    }
    let cwd = context.cwd();
    let mut add = |line: usize, case: String, expected: &str, (actual, reason): (&str, String)| {
        if actual == expected {
            report.passed += 1;
        } else {
            report.failures.push(FailedCase {
                file: file.to_owned(),
                line,
                case,
                expected: expected.to_owned(),
                actual: actual.to_owned(),
                reason,
            });
        }
    };
    for row in &section.calls {
        let case = format!("`{} {}`", row.tool, row.input);
        add(row.line, case, &row.verdict, judge_row(checker, row, settings.as_ref(), &cwd, mode));
    }
    for row in &section.rules {
        let case = format!("{} rule `{}`", row.action, row.rule);
        add(row.line, case, &row.weight, find_severity(checker, row, &cwd));
    }
}

/// Removes `"mode"` from the settings of a section: it is the permission mode of the section's calls. It was checked
/// when the block was parsed.
fn take_mode(settings: &mut Value) -> Option<Mode> {
    let mode = settings.as_object_mut()?.shift_remove("mode")?;
    mode.as_str()?.parse().ok()
}

/// The verdict of a call, and why.
fn judge_row(
    checker: &mut BatchChecker<'_>,
    row: &CallRow,
    settings: Option<&Value>,
    cwd: &AbsPath,
    mode: Option<Mode>,
) -> (&'static str, String) {
    let input = if row.input.starts_with('{') {
        row.input.clone()
    } else {
        unregistered_tool::build_main_field_input(&row.tool, &row.input, cwd).to_string()
    };
    let call = ToolCall::new("check", row.tool.clone(), input);
    match checker.judge(&call, settings, cwd, mode) {
        BatchCheckOutcome::Judged { judgement, .. } => {
            (judgement.verdict.as_str(), judgement.verdict.reason().to_string())
        }
        // No rule decided: with a misspelled tool or field the row would pass under any settings.
        BatchCheckOutcome::Refused(refusal) => (
            "no verdict",
            format!("the call is refused before policy judges it: {refusal}; {}", refusal.hint),
        ),
        // No verdict: a rule that the file means to test is not in force.
        BatchCheckOutcome::Unusable(problem) => ("unusable settings", problem.to_string()),
    }
}

/// The most severe problem of a rule, and its message.
fn find_severity(checker: &mut BatchChecker<'_>, row: &RuleRow, cwd: &AbsPath) -> (&'static str, String) {
    let settings = json!({ "permissions": { row.action.clone(): [row.rule] } });
    match checker.compiled_policy(Some(&settings), cwd, None).as_ref() {
        Err(problem) => ("fatal", problem.to_string()),
        Ok(checked) => match checked.problems.iter().max_by_key(|problem| problem.weight) {
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
    }
}
