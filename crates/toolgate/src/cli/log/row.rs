//! One record as a row of a table that fits the terminal.

use super::outcome::LogOutcome;
use crate::cli::output::{paint, style, to_one_line};
use jiff::{Timestamp, tz::TimeZone};
use std::time::Duration;
use toolgate::ledger::LedgerLine;
use toolgate::{AbsPath, CallRecord, Effect, OutcomeRecord};
use toolgate_proto::{columns_of, format_count, shorten_text};

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
        let what = if self.width.is_some() { &row.short_what } else { &row.what };
        let time = if self.is_full() { &row.when } else { row.when.get(5..).unwrap_or(&row.when) };
        let session = if self.is_full() { format!("{:7}  ", row.session) } else { String::new() };
        // Number, time, session, verdict, outcome, duration and tool, each with two blanks after it.
        let tool =
            if self.is_full() { row.tool.clone() } else { shorten_text(&row.tool, MAX_NARROW_TOOL_WIDTH) };
        let tool_width = tool.chars().count().max(8);
        let used = 7 + time.chars().count() + 2 + session.chars().count() + 9 + 11 + 9 + tool_width + 2;
        let detail = match self.width {
            Some(width) => what.fit(width.saturating_sub(used).max(MIN_DETAIL_WIDTH)),
            None => what.to_text(),
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
    what: LogSummary,
    /// The same with paths relative to the project: on a terminal the name of the file must be seen.
    short_what: LogSummary,
}

/// The last column, in the parts that are shortened one after the other.
#[derive(Debug)]
struct LogSummary {
    /// What the call does, such as `write `, or all of it if it names no path.
    verb: String,
    /// The path behind it, whose end says most.
    path: String,
    /// The size of the result, or the reason of the refusal.
    ending: String,
}

impl LogSummary {
    /// The summary of a record; with `project`, paths inside of it are relative.
    fn of(record: &CallRecord, project: Option<&AbsPath>) -> Self {
        let root = project.map(|dir| format!("{}/", dir.to_string().trim_end_matches('/')));
        let relative = |path: &AbsPath| {
            let text = path.to_string();
            let below = root.as_ref().and_then(|root| text.strip_prefix(root.as_str()));
            below.map_or_else(|| text.clone(), str::to_owned)
        };
        let effect = first_effect_text(record);
        let path = record.effects.first().and_then(path_of);
        let verb = path.and_then(|path| effect.strip_suffix(&path.to_string())).map(str::to_owned);
        let (verb, path) = match (verb, path) {
            (Some(verb), Some(path)) => (verb, relative(path)),
            _ => (effect, String::new()),
        };
        let ending = match &record.outcome {
            OutcomeRecord::Done { bytes, .. } => format!(" ({})", format_count(*bytes, "byte", "bytes")),
            OutcomeRecord::Refused { code, reason, .. }
            | OutcomeRecord::Failed { code, reason, .. }
            | OutcomeRecord::Cancelled { code, reason, .. } => {
                let quoted = root.as_ref().map(|root| format!("`{root}"));
                let reason = quoted.map_or_else(|| reason.clone(), |quoted| reason.replace(&quoted, "`"));
                format!(" — {reason} [{code}]")
            }
        };
        let [verb, path, ending] = [verb, path, ending].map(|text| to_one_line(&text));
        Self { verb, path, ending }
    }

    /// All of it.
    fn to_text(&self) -> String {
        format!("{}{}{}", self.verb, self.path, self.ending)
    }

    /// At most so many columns of a terminal, of which some characters take two.
    fn fit(&self, max_columns: usize) -> String {
        let mut texts = (0..=max_columns).rev().map(|max_chars| self.shorten(max_chars));
        texts.find(|text| columns_of(text) <= max_columns).unwrap_or_default()
    }

    /// At most so many characters. A path loses its beginning, everything else its end.
    fn shorten(&self, max_chars: usize) -> String {
        let room = max_chars.saturating_sub(self.verb.chars().count());
        let excess = self.path.chars().count().saturating_sub(room);
        let path: String = match excess {
            0 => self.path.clone(),
            _ => std::iter::once('…').chain(self.path.chars().skip(excess + 1)).collect(),
        };
        let start = format!("{}{path}", self.verb);
        // The end of the path says more than the first letter of what follows it.
        let ending = if start.chars().count() < max_chars { self.ending.as_str() } else { "" };
        shorten_text(&format!("{start}{ending}"), max_chars)
    }
}

/// The path that an effect reads or writes.
fn path_of(effect: &Effect) -> Option<&AbsPath> {
    match effect {
        Effect::Read { path, .. } | Effect::Write { path, .. } => Some(path),
        _ => None,
    }
}

impl LogRow {
    /// The row of a line.
    pub(super) fn of(line: &LedgerLine) -> Self {
        let record = &line.record;
        Self {
            when: format_time(record.at),
            session: to_one_line(short_session_id(record.session.as_str())),
            verdict: to_one_line(record.judged.as_ref().map_or("-", |judged| judged.verdict.as_str())),
            tool: to_one_line(record.tool.as_ref().unwrap_or(&record.asked).as_str()),
            outcome: LogOutcome::of(&record.outcome),
            took: format_duration(record.micros),
            what: LogSummary::of(record, None),
            short_what: LogSummary::of(record, record.project.as_ref()),
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
            for text in [&row.when, &row.session, &row.verdict, &row.tool, &row.took, &row.what.to_text(), &row.short_what.fit(20)] {
                proptest::prop_assert!(plain(text), "{:?}", text);
            }
        }
    }

    /// The line of a record whose first effect is on a path in the project `/home/user/project`.
    fn line(path: &str, outcome: serde_json::Value) -> LedgerLine {
        let record = serde_json::json!({
            "call": "c", "session": "s", "principal": { "edge": "cli" }, "asked": "Edit", "at": 1, "micros": 2,
            "input_sha256": "", "input": {}, "stages": [], "project": "/home/user/project",
            "effects": [{ "effect": "write", "path": path, "kind": "edit" }], "outcome": outcome,
        });
        let line =
            serde_json::json!({ "seq": 1, "anchored": true, "prev": "", "record": record, "hash": "" });
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn the_name_of_a_file_is_seen_at_80_columns() {
        let done = serde_json::json!({ "outcome": "done", "bytes": 12 });
        let row = |width, path: &str| {
            let row = TableLayout { width }.row(&line(path, done.clone()));
            anstream::adapter::strip_str(&row).to_string()
        };
        for (path, end) in [
            ("/home/user/project/src/a.rs", "  edit src/a.rs (12…"),
            ("/home/user/project/crates/main/src/settings.rs", "  edit …/settings.rs"),
            ("/home/user/project-2/src/settings.rs", "  edit …/settings.rs"),
            ("/home/user/project", "  edit …user/project"),
            ("/home/user/project/日本語ファイル名前.txt", "  edit …イル名前.txt"),
        ] {
            let shown = row(Some(80), path);
            assert!(shown.ends_with(end) && columns_of(&shown) <= 80, "{shown}");
            // Where nothing is shortened, programs read it.
            assert!(row(None, path).ends_with(&format!("  edit {path} (12 bytes)")), "{}", row(None, path));
        }
    }

    #[test]
    fn a_reason_names_files_of_the_project_relative_to_it() {
        let reason = "editing `/home/user/project/a.rs` is denied";
        let refused = serde_json::json!({
            "outcome": "refused", "code": toolgate_proto::Code::DeniedByRule, "kind": "x", "stage": "judge", "reason": reason,
        });
        let row = TableLayout { width: Some(200) }.row(&line("/home/user/project/a.rs", refused));
        assert!(row.contains("edit a.rs — editing `a.rs` is denied"), "{row}");
    }
}
