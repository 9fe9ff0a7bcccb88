//! One record as a row of a table that fits the terminal.

use super::outcome::LogOutcome;
use crate::cli::output::{paint, style, to_one_line};
use jiff::{Timestamp, tz::TimeZone};
use std::time::Duration;
use toolgate::ledger::LedgerLine;
use toolgate::{CallRecord, OutcomeRecord};
use toolgate_proto::{format_count, shorten_text};

/// Below this width the year and the session are left out.
const MIN_FULL_WIDTH: usize = 110;
/// The least width of the last column; a narrower terminal than 80 columns wraps.
const MIN_DETAIL_WIDTH: usize = 10;
/// The greatest width of a tool's name in a narrow table.
const MAX_NARROW_TOOL_WIDTH: usize = 16;

/// The columns that a table has.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableLayout {
    /// The columns of the terminal; `None` if the output is not one, and nothing is shortened.
    pub(super) width: Option<usize>,
}

impl TableLayout {
    /// Whether there is room for the whole time and the session.
    fn is_full(self) -> bool {
        self.width.is_none_or(|width| width >= MIN_FULL_WIDTH)
    }

    /// The names of the columns.
    pub(super) fn header(self) -> String {
        let columns = ["#", "TIME", "SESSION", "VERDICT", "OUTCOME", "TOOK", "TOOL", "WHAT"];
        let [number, time, session, verdict, outcome, took, tool, what] = columns;
        let text = if self.is_full() {
            format!(
                "{number:>5}  {time:19}  {session:7}  {verdict:7}  {outcome:9}  {took:>7}  {tool:8}  {what}"
            )
        } else {
            format!("{number:>5}  {time:14}  {verdict:7}  {outcome:9}  {took:>7}  {tool:8}  {what}")
        };
        paint(style::FAINT, &text)
    }

    /// The row of a record.
    pub(super) fn row(self, line: &LedgerLine) -> String {
        let row = LogRow::of(line);
        let time = if self.is_full() { &row.when } else { row.when.get(5..).unwrap_or(&row.when) };
        let session = if self.is_full() { format!("{:7}  ", row.session) } else { String::new() };
        // Number, time, session, verdict, outcome, duration and tool, each with two blanks after it.
        let tool =
            if self.is_full() { row.tool.clone() } else { shorten_text(&row.tool, MAX_NARROW_TOOL_WIDTH) };
        let tool_width = tool.chars().count().max(8);
        let used = 7 + time.chars().count() + 2 + session.chars().count() + 9 + 11 + 9 + tool_width + 2;
        let detail = match self.width {
            Some(width) => shorten_text(&row.detail, width.saturating_sub(used).max(MIN_DETAIL_WIDTH)),
            None => row.detail.clone(),
        };
        format!(
            "{}  {}  {}{}  {}  {}  {:8}  {detail}",
            paint(style::FAINT, &format!("{:>5}", line.seq)),
            paint(style::FAINT, time),
            paint(style::FAINT, &session),
            paint(style::verdict(&row.verdict), &format!("{:7}", row.verdict)),
            paint(row.outcome.style(), &format!("{:9}", row.outcome.as_str())),
            paint(style::FAINT, &row.took),
            tool,
        )
    }
}

/// The columns of a record. Names, reasons and paths are untrusted text, so control characters are escaped.
#[derive(Debug)]
pub(super) struct LogRow {
    /// Local time of the start.
    pub(super) when: String,
    /// The end of the session id.
    pub(super) session: String,
    /// The verdict, or `-` if the call was refused before policy.
    pub(super) verdict: String,
    /// The tool, or the unknown name that was called.
    pub(super) tool: String,
    /// How the call ended.
    pub(super) outcome: LogOutcome,
    /// How long the call took.
    pub(super) took: String,
    /// The first effect, and the size of the result or the reason of the refusal.
    pub(super) detail: String,
}

impl LogRow {
    /// The row of a line.
    pub(super) fn of(line: &LedgerLine) -> Self {
        let record = &line.record;
        let effect = first_effect_text(record);
        let detail = match &record.outcome {
            OutcomeRecord::Done { bytes, .. } => {
                format!("{effect} ({})", format_count(*bytes, "byte", "bytes"))
            }
            OutcomeRecord::Refused { code, reason, .. }
            | OutcomeRecord::Failed { code, reason, .. }
            | OutcomeRecord::Cancelled { code, reason, .. } => format!("{effect} — {reason} [{code}]"),
        };
        Self {
            when: format_time(record.at),
            session: to_one_line(short_session_id(record.session.as_str())),
            verdict: to_one_line(record.judged.as_ref().map_or("-", |judged| judged.verdict.as_str())),
            tool: to_one_line(record.tool.as_ref().unwrap_or(&record.asked).as_str()),
            outcome: LogOutcome::of(&record.outcome),
            took: format_duration(record.micros),
            detail: to_one_line(&detail),
        }
    }
}

/// The first effect of a call, such as `read /etc/hosts`.
pub(super) fn first_effect_text(record: &CallRecord) -> String {
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
pub(super) fn format_duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros:>4} µs"),
        1_000..1_000_000 => format!("{:>4} ms", micros / 1_000),
        _ => format!("{:>5.1} s", Duration::from_micros(micros).as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::to_visible_json;

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
            let line = serde_json::json!({ "seq": 1, "anchored": true, "prev": "", "record": record, "hash": "" });
            let line: LedgerLine = serde_json::from_value(line).unwrap();
            let row = LogRow::of(&line);
            for text in [&row.when, &row.session, &row.verdict, &row.tool, &row.took, &row.detail] {
                proptest::prop_assert!(plain(text), "{:?}", text);
            }
        }
    }
}
