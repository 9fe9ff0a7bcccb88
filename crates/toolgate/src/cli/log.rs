//! `toolgate log`: shows recorded calls, follows new ones, and verifies the hash chain of the ledger.

use super::context::CliContext;
use super::output::{CliOutput, paint, style, to_one_line, to_visible_json};
use super::{CliError, CliExitCode};
use jiff::{Timestamp, ToSpan, civil::DateTime, tz::TimeZone};
use std::time::Duration;
use toolgate::ledger::{LEDGER_NAME, LedgerLine, verify_in};
use toolgate::{AbsPath, CallRecord};
use toolgate_files::{AppendLog, LogSegment};
use toolgate_proto::OutcomeRecord;

/// How often `--follow` looks for new records. Polling works on every file system, which inotify does not.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `toolgate log`.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls with this verdict: allow, ask or deny
    #[arg(long, value_name = "VERDICT")]
    pub(crate) verdict: Option<String>,
    /// Only calls of this session; a unique part of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only calls since a time, such as 2026-01-31T12:00, or an age, such as 90m, 12h or 7d
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls until a time or age
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// Only the last N calls
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Follow new records
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Verify that no record was changed, removed or truncated
    #[arg(long)]
    pub(crate) verify: bool,
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
    if args.verify {
        return check_chain(context, &dir, out);
    }
    let filter = LogFilter::new(args)?;
    let mut shown: Vec<LedgerLine> = Vec::new();
    for segment in segments(&dir)? {
        let text = AppendLog::read_segment(&segment)?;
        shown.extend(parse_lines(&text).filter(|line| filter.passes(&line.record)));
    }
    if let Some(last) = args.last {
        shown.drain(..shown.len().saturating_sub(last));
    }
    if shown.is_empty() && !args.follow {
        out.print_note(&to_one_line(&format!("no matching calls are recorded in {dir}")));
    }
    for line in &shown {
        print(context, line, out)?;
    }
    if args.follow {
        follow(context, &dir, &filter, out)?;
    }
    Ok(CliExitCode::Ok)
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
    context: &CliContext,
    dir: &AbsPath,
    filter: &LogFilter,
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
                show_from(context, segment, seen, filter, out)?;
                seen = 0;
            }
        }
        if let Some(current) = now.last()
            && current.bytes > seen
        {
            seen += show_from(context, current, seen, filter, out)?;
        }
        known = now;
    }
}

/// Prints the complete lines of a file from an offset, and returns how many bytes they have.
fn show_from(
    context: &CliContext,
    segment: &LogSegment,
    from: u64,
    filter: &LogFilter,
    out: &mut CliOutput,
) -> Result<u64, CliError> {
    let text = AppendLog::read_segment(segment)?;
    let rest = usize::try_from(from).ok().and_then(|from| text.get(from..)).unwrap_or_default();
    let whole = rest.rfind('\n').and_then(|end| rest.get(..=end)).unwrap_or_default();
    for line in parse_lines(whole).filter(|line| filter.passes(&line.record)) {
        print(context, &line, out)?;
    }
    Ok(whole.len() as u64)
}

/// Prints one record as a row, or as JSON.
fn print(context: &CliContext, line: &LedgerLine, out: &mut CliOutput) -> Result<(), CliError> {
    if context.global.json {
        let text = serde_json::to_string(line).map_err(|error| CliError::Usage(error.to_string()))?;
        out.print_line(&to_visible_json(&text))?;
        return Ok(());
    }
    let row = LogRow::of(&line.record);
    let mark = if row.done { style::GOOD } else { style::BAD };
    out.print_line(&format!(
        "{}  {}  {}  {:8}  {}  {}  {}",
        paint(style::FAINT, &row.when),
        paint(style::FAINT, &row.session),
        paint(style::verdict(&row.verdict), &format!("{:5}", row.verdict)),
        row.tool,
        paint(mark, if row.done { "done   " } else { "refused" }),
        paint(style::FAINT, &row.took),
        row.rest
    ))?;
    Ok(())
}

/// The columns of a record. Names, reasons and paths are untrusted text, so control characters are escaped.
#[derive(Debug)]
struct LogRow {
    /// Local time of the start.
    when: String,
    /// The end of the session id.
    session: String,
    /// The verdict, or `-` if the call was refused before policy.
    verdict: String,
    /// The tool, or the unknown name that was called.
    tool: String,
    /// Whether the tool ran and succeeded.
    done: bool,
    /// How long the call took.
    took: String,
    /// The first effect, and the size of the result or the reason of the refusal.
    rest: String,
}

impl LogRow {
    /// The row of a record.
    fn of(record: &CallRecord) -> Self {
        let (done, rest) = match &record.outcome {
            OutcomeRecord::Done { bytes, .. } => {
                (true, format!("{} ({bytes} bytes)", first_effect_text(record)))
            }
            OutcomeRecord::Refused { code, reason, .. } => {
                (false, format!("{} — {reason} [{code}]", first_effect_text(record)))
            }
        };
        Self {
            when: format_time(record.at),
            session: to_one_line(short_session_id(record.session.as_str())),
            verdict: to_one_line(record.judged.as_ref().map_or("-", |judged| judged.verdict.as_str())),
            tool: to_one_line(record.tool.as_ref().unwrap_or(&record.asked).as_str()),
            done,
            took: format_duration(record.micros),
            rest: to_one_line(&rest),
        }
    }
}

/// The first effect of a call, such as `read /etc/hosts`.
fn first_effect_text(record: &CallRecord) -> String {
    match record.effects.first() {
        Some(effect) => effect.to_string(),
        None => "-".to_owned(),
    }
}

/// A time in milliseconds since 1970 as local time.
pub(crate) fn format_time(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// The last characters of a session id, which are random; the first ones are the time and often equal.
pub(crate) fn short_session_id(session: &str) -> &str {
    session.len().checked_sub(6).and_then(|from| session.get(from..)).unwrap_or(session)
}

/// A duration in the largest unit that keeps it readable.
fn format_duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros:>4} µs"),
        1_000..1_000_000 => format!("{:>4} ms", micros / 1_000),
        _ => format!("{:>5.1} s", Duration::from_micros(micros).as_secs_f64()),
    }
}

/// Verifies the hash chain and prints each fault with its file and line.
fn check_chain(context: &CliContext, dir: &AbsPath, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let anchor_dir = context.anchor_dir().unwrap_or_else(|| AppendLog::default_anchor_dir(dir));
    let (report, files) =
        verify_in(dir, &anchor_dir).map_err(|error| CliError::Usage(format!("{dir}: {error}")))?;
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
        out.print_line(&format!("{} records in {} files: {state}", report.records, files.len()))?;
    }
    Ok(if report.is_intact() { CliExitCode::Ok } else { CliExitCode::ToolFailed })
}

/// The filter options, with times parsed to milliseconds since 1970.
struct LogFilter<'a> {
    /// The options that are compared as they are.
    args: &'a LogArgs,
    /// The earliest time.
    since: Option<u64>,
    /// The latest time.
    until: Option<u64>,
}

impl<'a> LogFilter<'a> {
    /// Validates the options.
    fn new(args: &'a LogArgs) -> Result<Self, CliError> {
        if let Some(verdict) = &args.verdict
            && !matches!(verdict.as_str(), "allow" | "ask" | "deny")
        {
            return Err(CliError::Usage(format!("unknown verdict `{verdict}`; use allow, ask or deny")));
        }
        let time = |given: &Option<String>| given.as_deref().map(parse_time).transpose();
        Ok(Self { args, since: time(&args.since)?, until: time(&args.until)? })
    }

    /// Whether a record matches every option.
    fn passes(&self, record: &CallRecord) -> bool {
        let args = self.args;
        let named = |name: &str| {
            record.tool.as_ref().unwrap_or(&record.asked).as_str() == name || record.asked.as_str() == name
        };
        args.tool.as_deref().is_none_or(named)
            && args
                .verdict
                .as_deref()
                .is_none_or(|wanted| record.judged.as_ref().is_some_and(|judged| judged.verdict == wanted))
            && args.session.as_deref().is_none_or(|part| record.session.as_str().contains(part))
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at <= until)
    }
}

/// A point in time, or an age such as `90m`, in milliseconds since 1970.
fn parse_time(given: &str) -> Result<u64, CliError> {
    let invalid_time = || {
        CliError::Usage(format!(
            "invalid time `{given}`; write 2026-01-31, 2026-01-31T12:00, or an age such as 90m, 12h or 7d"
        ))
    };
    let age = given.char_indices().last().and_then(|(at, unit)| {
        let number: i64 = given.get(..at)?.parse().ok()?;
        Some(match unit {
            's' => number.seconds(),
            'm' => number.minutes(),
            'h' => number.hours(),
            'd' => number.checked_mul(24)?.hours(),
            _ => return None,
        })
    });
    let time = match age {
        Some(age) => Timestamp::now().checked_sub(age).map_err(|_| invalid_time())?,
        None => match given.parse::<Timestamp>() {
            Ok(time) => time,
            Err(_) => given
                .parse::<DateTime>()
                .and_then(|time| time.to_zoned(TimeZone::system()))
                .map_err(|_| invalid_time())?
                .timestamp(),
        },
    };
    u64::try_from(time.as_millisecond()).map_err(|_| invalid_time())
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The row of any record is one line without control characters, and its JSON parses to the same value.
        #[test]
        fn a_row_of_the_log_has_no_control_characters(texts in proptest::array::uniform6(".*|[\\x00-\\x1f\\x7f-\\x9f\u{202a}-\u{202e}\u{2066}-\u{2069}\n\r\t]{1,20}")) {
            let [name, session, reason, verdict, path, input] = texts;
            let code = toolgate_proto::Code::DeniedByRule;
            let record = serde_json::json!({
                "call": "c", "session": session, "principal": { "edge": "cli" }, "asked": name, "at": 1, "micros": 2,
                "input_sha256": "", "input": { "text": input }, "stages": [],
                "effects": [{ "effect": "read", "path": format!("/{path}"), "scope": "entry" }],
                "judged": { "verdict": verdict, "reason": { "code": code, "text": reason } },
                "outcome": { "outcome": "refused", "code": code, "kind": "x", "stage": "judge", "reason": reason },
            });
            let plain = |text: &str| !text.contains(|c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
            let json = to_visible_json(&record.to_string());
            proptest::prop_assert!(plain(&json));
            proptest::prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&json).unwrap(), &record);
            let record: CallRecord = serde_json::from_value(record).unwrap();
            let row = LogRow::of(&record);
            for text in [&row.when, &row.session, &row.verdict, &row.tool, &row.took, &row.rest] {
                proptest::prop_assert!(plain(text), "{:?}", text);
            }
        }
    }
}
