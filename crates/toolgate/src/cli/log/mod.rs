//! `toolgate log`: shows recorded calls, follows new ones, and verifies the hash chain of the ledger.
//!
//! - `outcome.rs`: how a call ended, in one word
//! - `filter.rs`: which records are shown
//! - `row.rs`: a record as a row of a table
//! - `show.rs`: everything about one call
//! - `report.rs`: a session as Markdown or as one HTML file
//! - `changed_content.rs`: what a call changed in files, from the undo journal

mod changed_content;
mod filter;
mod outcome;
mod report;
mod row;
mod show;

pub(crate) use row::{format_time, short_session_id};

use super::context::CliContext;
use super::listed_values::{list_tools, list_verdicts};
use super::output::{CliOutput, paint, style, to_one_line, to_visible_json};
use super::{CliError, CliExitCode};
use filter::LogFilter;
use outcome::LogOutcome;
use row::TableLayout;
use std::time::Duration;
use toolgate::AbsPath;
use toolgate::ledger::{ExternalAnchor, LEDGER_NAME, LedgerLine, verify_in};
use toolgate::settings::LoadedSettings;
use toolgate_files::{AppendLog, LogSegment};
use toolgate_process::StandardStream;
use toolgate_proto::format_count;

/// How often `--follow` looks for new records. Polling works on every file system, which inotify does not.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// The size limit of an external anchor, which is read whole: some million records.
const MAX_ANCHOR_BYTES: u64 = 1024 * 1024 * 1024;

/// Arguments of `toolgate log`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LogArgs {
    /// What to do instead of listing calls
    #[command(subcommand)]
    pub(crate) command: Option<LogCommand>,
    /// Which calls
    #[command(flatten)]
    pub(crate) filter: LogFilterArgs,
    /// Only the last N calls
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Follow new records
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Verify that no record was changed, removed or truncated
    #[arg(long)]
    pub(crate) verify: bool,
    /// Compare the ledger with the lines of an external anchor in this file, or `-` for standard input (default: the
    /// file of the setting `ledger.anchor`)
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) anchor: Option<String>,
    /// Never start a pager
    #[arg(long)]
    pub(crate) no_pager: bool,
}

/// The options that select calls.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LogFilterArgs {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME", value_parser = list_tools(), hide_possible_values = true)]
    pub(crate) tool: Option<String>,
    /// Only calls with this verdict
    #[arg(long, value_name = "VERDICT", value_parser = list_verdicts())]
    pub(crate) verdict: Option<String>,
    /// Only calls that ended this way
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<LogOutcome>,
    /// Only calls in this project directory or below it
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<String>,
    /// Only calls of this session; a unique part of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only calls since a time, such as 2026-01-31T12:00, or an age, such as 90m, 12h or 7d
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls until a time or age
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
}

/// What `toolgate log` does besides listing.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum LogCommand {
    /// Show everything about one call: input, hooks, verdict, rule, rights, approval, result and changes
    Show(show::LogShowArgs),
    /// Write a report of a session: its calls, decisions and changes
    Report(report::LogReportArgs),
}

/// Prints the matching records, oldest first.
pub(crate) fn run(
    context: &CliContext,
    args: &LogArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = context.ledger_dir().ok_or_else(|| {
        CliError::Usage("there is no home directory with a ledger; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    match &args.command {
        Some(LogCommand::Show(args)) => return show::show_call(context, &dir, args, out),
        Some(LogCommand::Report(args)) => return report::write_report(context, &dir, args, out),
        None if args.verify => return check_chain(context, &dir, args.anchor.as_deref(), out),
        None => {}
    }
    let filter = LogFilter::new(context, &args.filter)?;
    let mut shown = read_lines(&dir, |line| filter.passes(&line.record))?;
    if let Some(last) = args.last {
        shown.drain(..shown.len().saturating_sub(last));
    }
    if shown.is_empty() && !args.follow {
        out.print_note(&to_one_line(&format!("no matching calls are recorded in {dir}")));
        return Ok(CliExitCode::Ok);
    }
    let printer = LogPrinter::new(context);
    let mut text = String::new();
    for line in printer.header().into_iter().map(Ok).chain(shown.iter().map(|line| printer.format_line(line)))
    {
        text.push_str(&line?);
        text.push('\n');
    }
    if args.follow {
        out.print_raw(&text)?;
        follow(&printer, &dir, &filter, out)?;
    } else if args.no_pager {
        out.print_raw(&text)?;
    } else {
        out.print_paged(&context.ambient, &text)?;
    }
    Ok(CliExitCode::Ok)
}

/// The lines of the whole ledger that pass a filter, oldest first.
fn read_lines(
    dir: &AbsPath,
    mut passes: impl FnMut(&LedgerLine) -> bool,
) -> Result<Vec<LedgerLine>, CliError> {
    let mut found = Vec::new();
    for segment in segments(dir)? {
        let text = AppendLog::read_segment(&segment)?;
        found.extend(parse_lines(&text).filter(&mut passes));
    }
    Ok(found)
}

/// The files of the ledger, oldest first.
fn segments(dir: &AbsPath) -> Result<Vec<LogSegment>, CliError> {
    AppendLog::list_segments(dir, LEDGER_NAME).map_err(|error| CliError::Usage(format!("{dir}: {error}")))
}

/// The records in a file. A line that a crash cut short is skipped here and reported by `--verify`.
fn parse_lines(text: &str) -> impl Iterator<Item = LedgerLine> + '_ {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Prints new records until the process is interrupted.
fn follow(
    printer: &LogPrinter<'_>,
    dir: &AbsPath,
    filter: &LogFilter<'_>,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    let newest = |segments: &[LogSegment]| segments.last().map_or(0, |segment| segment.bytes);
    let mut known = segments(dir)?;
    let mut seen = newest(&known);
    loop {
        out.flush()?;
        std::thread::sleep(FOLLOW_INTERVAL);
        let now = segments(dir)?;
        // The ledger was rotated: the rest of the file that was current comes first.
        if now.len() > known.len() {
            for segment in now.iter().skip(known.len().saturating_sub(1)).take(now.len() - known.len()) {
                show_from(printer, segment, seen, filter, out)?;
                seen = 0;
            }
        }
        if let Some(current) = now.last()
            && current.bytes > seen
        {
            seen += show_from(printer, current, seen, filter, out)?;
        }
        known = now;
    }
}

/// Prints the complete lines of a file from an offset, and returns how many bytes they have.
fn show_from(
    printer: &LogPrinter<'_>,
    segment: &LogSegment,
    from: u64,
    filter: &LogFilter<'_>,
    out: &mut CliOutput,
) -> Result<u64, CliError> {
    let text = AppendLog::read_segment(segment)?;
    let rest = usize::try_from(from).ok().and_then(|from| text.get(from..)).unwrap_or_default();
    let whole = rest.rfind('\n').and_then(|end| rest.get(..=end)).unwrap_or_default();
    for line in parse_lines(whole).filter(|line| filter.passes(&line.record)) {
        out.print_line(&printer.format_line(&line)?)?;
    }
    Ok(whole.len() as u64)
}

/// Turns records into lines: rows of a table, or JSON.
struct LogPrinter<'c> {
    /// For `--json`.
    context: &'c CliContext,
    /// The columns.
    layout: TableLayout,
}

impl<'c> LogPrinter<'c> {
    /// A printer for standard output.
    fn new(context: &'c CliContext) -> Self {
        let size = || crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
        let width = toolgate_process::is_terminal(StandardStream::Stdout).then(size).flatten();
        Self { context, layout: TableLayout { width } }
    }

    /// The names of the columns, at a terminal only: a script counts and splits lines.
    fn header(&self) -> Option<String> {
        (self.layout.width.is_some() && !self.context.global.json).then(|| self.layout.header())
    }

    /// One record as a line.
    fn format_line(&self, line: &LedgerLine) -> Result<String, CliError> {
        if !self.context.global.json {
            return Ok(self.layout.row(line));
        }
        let text = serde_json::to_string(line).map_err(|error| CliError::Usage(error.to_string()))?;
        Ok(to_visible_json(&text))
    }
}

/// The lines of the external anchor: of the file or standard input that the user names, else of the file in the settings.
fn read_external_anchor(context: &CliContext, given: Option<&str>) -> Result<Option<String>, CliError> {
    let path = match given {
        Some("-") => return context.read_all_input().map(Some),
        Some(path) => context.ambient.cwd.join(path),
        None => {
            let settings = LoadedSettings::load(&context.settings_options()?)
                .map_err(|error| CliError::Usage(error.to_string()))?;
            match context.external_anchor(&settings)? {
                Some(ExternalAnchor::File(path)) => path,
                Some(_) | None => return Ok(None),
            }
        }
    };
    let text = toolgate_files::read_settings_text(&path, MAX_ANCHOR_BYTES)
        .map_err(|problem| CliError::Usage(format!("{path}: {problem}")))?;
    text.map(Some).ok_or_else(|| CliError::Usage(format!("{path}: there is no external anchor")))
}

/// Verifies the hash chain and prints each fault with its file and line.
fn check_chain(
    context: &CliContext,
    dir: &AbsPath,
    anchor: Option<&str>,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let anchor_dir = context.anchor_dir().unwrap_or_else(|| AppendLog::default_anchor_dir(dir));
    let failed = |error: std::io::Error| CliError::Usage(format!("{dir}: {error}"));
    let (mut report, files) = verify_in(dir, &anchor_dir).map_err(failed)?;
    if let Some(text) = read_external_anchor(context, anchor)? {
        let lines = report.compare_external(dir, &text).map_err(failed)?;
        if lines == 0 {
            out.print_note("the external anchor has no line about this ledger");
        }
    }
    if context.global.json {
        let text = serde_json::to_string(&report).map_err(|error| CliError::Usage(error.to_string()))?;
        out.print_line(&to_visible_json(&text))?;
    } else {
        for fault in &report.faults {
            out.print_line(&format!("  {}", to_one_line(&fault.to_string())))?;
        }
        let state = if report.is_intact() {
            paint(style::GOOD, "hash chain intact")
        } else {
            paint(style::BAD, "hash chain broken: records were changed, removed or truncated")
        };
        let records = format_count(report.records, "record", "records");
        let files = format_count(files.len() as u64, "file", "files");
        out.print_line(&format!("{records} in {files}: {state}"))?;
    }
    Ok(if report.is_intact() { CliExitCode::Ok } else { CliExitCode::ToolFailed })
}
