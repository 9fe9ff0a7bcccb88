//! `toolgate log`: what was called, and whether the ledger is whole.

use super::args::LogArgs;
use super::context::CliContext;
use super::output::{CliOutput, paint, style, to_one_line, to_visible_json};
use super::{CliError, CliExitCode};
use jiff::{Timestamp, ToSpan, civil::DateTime, tz::TimeZone};
use std::time::Duration;
use toolgate::ledger::{LEDGER_NAME, LedgerLine, verify_in};
use toolgate::{AbsPath, CallRecord};
use toolgate_files::{AppendLog, LogSegment};
use toolgate_proto::OutcomeRecord;

/// How often `--follow` looks.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(world: &CliContext, args: &LogArgs, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let dir = world
        .ledger_dir()
        .ok_or_else(|| CliError::Usage("there is no home directory; set TOOLGATE_STATE_DIR".to_owned()))?;
    if args.verify {
        return check_chain(world, &dir, out);
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
        out.print_note(&to_one_line(&format!("no calls are recorded in {dir} that fit")));
    }
    for line in &shown {
        print(world, line, out)?;
    }
    if args.follow {
        follow(world, &dir, &filter, out)?;
    }
    Ok(CliExitCode::Ok)
}

fn segments(dir: &AbsPath) -> Result<Vec<LogSegment>, CliError> {
    AppendLog::list_segments(dir, LEDGER_NAME).map_err(|error| CliError::Usage(format!("{dir}: {error}")))
}

fn parse_lines(text: &str) -> impl Iterator<Item = LedgerLine> + '_ {
    // A line torn by a crash is skipped here and named by --verify.
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Shows lines as they come, until interrupted.
fn follow(
    world: &CliContext,
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
        // The current file was put aside: what it got before that must not be missed.
        if now.len() > known.len() {
            for segment in now.iter().skip(known.len().saturating_sub(1)).take(now.len() - known.len()) {
                show_from(world, segment, seen, filter, out)?;
                seen = 0;
            }
        }
        if let Some(current) = now.last()
            && current.bytes > seen
        {
            seen += show_from(world, current, seen, filter, out)?;
        }
        known = now;
    }
}

/// Shows the whole lines of a file from an offset on, and says how many bytes they were.
fn show_from(
    world: &CliContext,
    segment: &LogSegment,
    from: u64,
    filter: &LogFilter,
    out: &mut CliOutput,
) -> Result<u64, CliError> {
    let text = AppendLog::read_segment(segment)?;
    let rest = usize::try_from(from).ok().and_then(|from| text.get(from..)).unwrap_or_default();
    let whole = rest.rfind('\n').and_then(|end| rest.get(..=end)).unwrap_or_default();
    for line in parse_lines(whole).filter(|line| filter.passes(&line.record)) {
        print(world, &line, out)?;
    }
    Ok(whole.len() as u64)
}

fn print(world: &CliContext, line: &LedgerLine, out: &mut CliOutput) -> Result<(), CliError> {
    if world.global.json {
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

/// What is shown of a record. Names, reasons and paths come from others, so all of it is on one line and plain.
#[derive(Debug)]
struct LogRow {
    when: String,
    session: String,
    verdict: String,
    tool: String,
    done: bool,
    took: String,
    rest: String,
}

impl LogRow {
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

fn first_effect_text(record: &CallRecord) -> String {
    match record.effects.first() {
        Some(effect) => effect.to_string(),
        None => "-".to_owned(),
    }
}

pub(crate) fn format_time(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// The end of an id tells sessions apart better than its start, which is the time.
pub(crate) fn short_session_id(session: &str) -> &str {
    session.len().checked_sub(6).and_then(|from| session.get(from..)).unwrap_or(session)
}

fn format_duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros:>4} µs"),
        1_000..1_000_000 => format!("{:>4} ms", micros / 1_000),
        _ => format!("{:>5.1} s", Duration::from_micros(micros).as_secs_f64()),
    }
}

fn check_chain(world: &CliContext, dir: &AbsPath, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let anchor_dir = world.anchor_dir().unwrap_or_else(|| AppendLog::default_anchor_dir(dir));
    let (report, files) =
        verify_in(dir, &anchor_dir).map_err(|error| CliError::Usage(format!("{dir}: {error}")))?;
    if world.global.json {
        let text = serde_json::to_string(&report).map_err(|error| CliError::Usage(error.to_string()))?;
        out.print_line(&to_visible_json(&text))?;
    } else {
        for fault in &report.faults {
            out.print_line(&format!("  {}", to_one_line(&fault.to_string())))?;
        }
        let said = if report.is_intact() {
            paint(style::GOOD, "the chain holds")
        } else {
            paint(style::BAD, "the chain is broken")
        };
        out.print_line(&format!("{} records in {} files: {said}", report.records, files.len()))?;
    }
    Ok(if report.is_intact() { CliExitCode::Ok } else { CliExitCode::ToolFailed })
}

struct LogFilter<'a> {
    args: &'a LogArgs,
    since: Option<u64>,
    until: Option<u64>,
}

impl<'a> LogFilter<'a> {
    fn new(args: &'a LogArgs) -> Result<Self, CliError> {
        if let Some(verdict) = &args.verdict
            && !matches!(verdict.as_str(), "allow" | "ask" | "deny")
        {
            return Err(CliError::Usage(format!("`{verdict}` is no verdict; use allow, ask or deny")));
        }
        let time = |given: &Option<String>| given.as_deref().map(parse_time).transpose();
        Ok(Self { args, since: time(&args.since)?, until: time(&args.until)? })
    }

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

/// A point in time, or an age such as `90m`.
fn parse_time(given: &str) -> Result<u64, CliError> {
    let wrong = || {
        CliError::Usage(format!(
            "`{given}` is no time; write 2026-01-31, 2026-01-31T12:00, or an age such as 90m, 12h, 7d"
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
        Some(age) => Timestamp::now().checked_sub(age).map_err(|_| wrong())?,
        None => match given.parse::<Timestamp>() {
            Ok(time) => time,
            Err(_) => given
                .parse::<DateTime>()
                .and_then(|time| time.to_zoned(TimeZone::system()))
                .map_err(|_| wrong())?
                .timestamp(),
        },
    };
    u64::try_from(time.as_millisecond()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Whatever a record holds, its row is one line that no terminal acts on, and its JSON still means the same.
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
