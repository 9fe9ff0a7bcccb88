//! `toolgate log report SESSION`: the calls, decisions and changes of a session, as Markdown or as one HTML file.
//!
//! Both are made from the same list, and every text of a record is untrusted: Markdown gets it in code blocks that no
//! text can close, HTML gets it escaped.

use super::changed_content::ChangedContent;
use super::outcome::LogOutcome;
use super::read_lines;
use super::row::{first_effect_text, format_time};
use super::show::describe_call;
use crate::cli::context::CliContext;
use crate::cli::output::{CliOutput, to_one_line};
use crate::cli::{CliError, CliExitCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use toolgate::AbsPath;
use toolgate::ledger::LedgerLine;
use toolgate::render::escape_invisible;
use toolgate_proto::format_count;

/// Arguments of `toolgate log report`.
#[derive(Debug, clap::Args)]
pub(crate) struct LogReportArgs {
    /// The session, or a unique part of its id
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// The format of the report
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) format: ReportFormat,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// Markdown
    Markdown,
    /// One HTML file without scripts
    Html,
}

/// One call in a report. Texts are not escaped for a format yet.
struct ReportedCall {
    /// The number of the call in the report.
    number: usize,
    /// Its tool and first effect.
    title: String,
    /// How it ended.
    outcome: LogOutcome,
    /// Labels and values, as `toolgate log show` prints them.
    facts: Vec<(&'static str, String)>,
    /// What it changed.
    diffs: Vec<String>,
}

impl ReportedCall {
    /// The call for `--json`.
    fn to_json(&self) -> Value {
        let facts: Map<String, Value> =
            self.facts.iter().map(|(label, value)| ((*label).to_owned(), json!(value))).collect();
        json!({
            "number": self.number, "title": self.title, "outcome": self.outcome.as_str(), "facts": facts,
            "diffs": self.diffs,
        })
    }
}

/// Prints the report of one session.
pub(super) fn write_report(
    context: &CliContext,
    dir: &AbsPath,
    args: &LogReportArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let lines = read_lines(dir, |line| line.record.session.as_str().contains(&args.session))?;
    let sessions: BTreeSet<&str> = lines.iter().map(|line| line.record.session.as_str()).collect();
    let session = match sessions.len() {
        1 => sessions.first().map(|session| (*session).to_owned()).unwrap_or_default(),
        0 => {
            return Err(CliError::Usage(format!(
                "no call of a session `{}` is recorded in {dir}; `toolgate --json log` prints the ids",
                args.session
            )));
        }
        _ => {
            let known: Vec<&str> = sessions.into_iter().take(5).collect();
            return Err(CliError::Usage(format!(
                "`{}` matches several sessions: {}; give more of the id",
                args.session,
                known.join(", ")
            )));
        }
    };
    let changed = ChangedContent::open(context);
    let calls: Vec<ReportedCall> =
        lines.iter().enumerate().map(|(index, line)| report_call(index + 1, line, &changed)).collect();
    let since = lines.first().map(|line| format_time(line.record.at)).unwrap_or_default();
    let summary = summarize(&calls);
    if context.global.json {
        let calls: Vec<Value> = calls.iter().map(ReportedCall::to_json).collect();
        let report = json!({ "session": session, "since": since, "summary": summary, "calls": calls });
        out.print_line(&report.to_string())?;
        return Ok(CliExitCode::Ok);
    }
    let text = match args.format {
        ReportFormat::Markdown => to_markdown(&session, &since, &summary, &calls),
        ReportFormat::Html => to_html(&session, &since, &summary, &calls),
    };
    out.print_raw(&text)?;
    Ok(CliExitCode::Ok)
}

/// Collects what a report says about a call.
fn report_call(number: usize, line: &LedgerLine, changed: &ChangedContent) -> ReportedCall {
    let record = &line.record;
    let tool = record.tool.as_ref().unwrap_or(&record.asked).as_str();
    ReportedCall {
        number,
        title: to_one_line(&format!("{tool}: {}", first_effect_text(record))),
        outcome: LogOutcome::of(&record.outcome),
        facts: describe_call(line),
        diffs: changed.diffs_of(record.session.as_str(), record.call.as_str()),
    }
}

/// How many calls ended in which way.
fn summarize(calls: &[ReportedCall]) -> String {
    let outcomes = [LogOutcome::Done, LogOutcome::Failed, LogOutcome::Refused, LogOutcome::Cancelled];
    let counts = outcomes.into_iter().filter_map(|outcome| {
        let count = calls.iter().filter(|call| call.outcome == outcome).count();
        (count > 0).then(|| format!("{count} {}", outcome.as_str()))
    });
    format!(
        "{}: {}",
        format_count(calls.len() as u64, "call", "calls"),
        counts.collect::<Vec<_>>().join(", ")
    )
}

/// A report as Markdown.
fn to_markdown(session: &str, since: &str, summary: &str, calls: &[ReportedCall]) -> String {
    let mut text = format!("# Session {}\n\nSince {since}. {summary}.\n", code_span(session));
    for call in calls {
        text.push_str(&format!(
            "\n## {}. {}\n\nEnded: {}.\n\n",
            call.number,
            code_span(&call.title),
            call.outcome.as_str()
        ));
        let facts = call.facts.iter().map(|(label, value)| format!("{label}: {value}"));
        text.push_str(&fenced("text", &facts.collect::<Vec<_>>().join("\n")));
        for diff in &call.diffs {
            text.push_str(&format!("\n{}", fenced("diff", diff)));
        }
    }
    text
}

/// Untrusted text as a code span. Backticks in it are replaced, because a span ends at the next run of them.
fn code_span(text: &str) -> String {
    format!("`{}`", to_one_line(text).replace('`', "'"))
}

/// Untrusted text as a code block, with a fence that is longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let text = escape_invisible(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

/// The style of the HTML report; the only part that is not data.
const REPORT_STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h2{font-size:1rem;margin:2rem 0 .5rem;overflow-wrap:anywhere}pre{background:#8881;padding:.6rem;overflow:auto}\
th{text-align:left;vertical-align:top;padding-right:1rem;font-weight:normal;opacity:.6}td{overflow-wrap:anywhere;\
white-space:pre-wrap}.done{color:#197a2d}.failed,.cancelled{color:#9a6700}.refused{color:#b3261e}:root{color-scheme:light dark}";

/// A report as one HTML file.
fn to_html(session: &str, since: &str, summary: &str, calls: &[ReportedCall]) -> String {
    let title = format!("Session {}", escape_html(session));
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{REPORT_STYLE}</style></head><body>\n<h1>{title}</h1>\n<p>Since {}. {}.</p>\n",
        escape_html(since),
        escape_html(summary)
    );
    for call in calls {
        let outcome = call.outcome.as_str();
        text.push_str(&format!(
            "<h2>{}. {} <span class=\"{outcome}\">{outcome}</span></h2>\n<table>\n",
            call.number,
            escape_html(&call.title)
        ));
        for (label, value) in &call.facts {
            text.push_str(&format!("<tr><th>{label}</th><td>{}</td></tr>\n", escape_html(value)));
        }
        text.push_str("</table>\n");
        for diff in &call.diffs {
            text.push_str(&format!("<pre>{}</pre>\n", escape_html(diff)));
        }
    }
    text.push_str("</body></html>\n");
    text
}

/// Untrusted text as HTML text.
fn escape_html(text: &str) -> String {
    escape_invisible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// No text can end its code block, its code span or its HTML element.
        #[test]
        fn untrusted_text_stays_inside_its_element(text in "[`~\\n<>&\"a-z]{0,40}|.*") {
            let block = fenced("text", &text);
            let fence = block.lines().next().unwrap().trim_end_matches("text").to_owned();
            let inner = block.lines().skip(1).filter(|line| line.trim_start().starts_with(&fence)).count();
            proptest::prop_assert_eq!(inner, 1, "only the end is a fence: {}", block);
            proptest::prop_assert_eq!(code_span(&text).matches('`').count(), 2);
            proptest::prop_assert!(!escape_html(&text).contains(['<', '>', '"']));
        }
    }
}
