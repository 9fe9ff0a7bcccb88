//! `toolgate log show ID`: everything that is recorded about one call.

use super::changed_content::ChangedContent;
use super::outcome::LogOutcome;
use super::read_lines;
use super::row::{format_duration, format_time};
use crate::cli::context::CliContext;
use crate::cli::output::{CliOutput, paint, style, to_visible_json};
use crate::cli::{CliError, CliExitCode};
use serde_json::Value;
use toolgate::ledger::LedgerLine;
use toolgate::render::escape_invisible;
use toolgate::{AbsPath, OutcomeRecord};
use toolgate_proto::{ApprovalRecord, format_count};

/// Arguments of `toolgate log show`.
#[derive(Debug, clap::Args)]
pub(crate) struct LogShowArgs {
    /// The number in the first column of `toolgate log`, or the id of the call or a unique part of it
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

/// Prints one call.
pub(super) fn show_call(
    context: &CliContext,
    dir: &AbsPath,
    args: &LogShowArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let line = find_line(dir, &args.id)?;
    if context.global.json {
        let text = serde_json::to_string(&line).map_err(|error| CliError::Usage(error.to_string()))?;
        out.print_line(&to_visible_json(&text))?;
        return Ok(CliExitCode::Ok);
    }
    let mut text = String::new();
    for (label, value) in describe_call(&line) {
        let value = escape_invisible(&value).replace('\n', "\n             ");
        text.push_str(&format!("{} {value}\n", paint(style::FAINT, &format!("{label:12}"))));
    }
    let diffs =
        ChangedContent::open(context).diffs_of(line.record.session.as_str(), line.record.call.as_str());
    for diff in diffs {
        text.push_str(&format!("\n{}\n", escape_invisible(&diff)));
    }
    out.print_paged(&context.ambient, &text)?;
    Ok(CliExitCode::Ok)
}

/// The line with this number, or the last one of the call with this id.
fn find_line(dir: &AbsPath, id: &str) -> Result<LedgerLine, CliError> {
    let number: Option<u64> = id.trim_start_matches('#').parse().ok();
    let mut found = read_lines(dir, |line| {
        number.map_or_else(|| line.record.call.as_str().contains(id), |number| line.seq == number)
    })?;
    let Some(line) = found.pop() else {
        return Err(CliError::Usage(
            match read_lines(dir, |line| line.record.session.as_str().contains(id))? {
                of_session if of_session.is_empty() => {
                    format!("no call `{id}` is recorded in {dir}; `toolgate log` lists the calls")
                }
                _ => format!(
                    "`{id}` is a session, not a call\n  hint: `toolgate log report {id}` shows its calls"
                ),
            },
        ));
    };
    match found.iter().find(|other| other.record.call != line.record.call) {
        Some(other) => Err(CliError::Usage(format!(
            "`{id}` matches the calls `{}` and `{}`; give more of the id, or the number in the first column of `toolgate log`",
            other.record.call.as_str(),
            line.record.call.as_str()
        ))),
        None => Ok(line),
    }
}

/// The labelled facts of a call, in the order of its stages. Texts are not escaped yet.
pub(super) fn describe_call(line: &LedgerLine) -> Vec<(&'static str, String)> {
    let record = &line.record;
    let tool = record.tool.as_ref().unwrap_or(&record.asked);
    let mut facts = vec![
        ("call", format!("{}  (number {} of the ledger)", record.call.as_str(), line.seq)),
        ("tool", tool.as_str().to_owned()),
        ("session", record.session.as_str().to_owned()),
        ("project", record.project.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)),
        ("for", describe_principal(line)),
        ("time", format!("{}, took {}", format_time(record.at), format_duration(record.micros).trim())),
    ];
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    facts.extend(record.original_input.iter().map(|input| ("asked for", pretty(input))));
    facts.push((if record.original_input.is_some() { "ran with" } else { "input" }, pretty(&record.input)));
    facts.extend(record.revisions.iter().map(|revision| ("revised by", revision.clone())));
    facts.extend(record.hooks.iter().map(|hook| {
        let detail = hook.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        ("hook", format!("{} at {}: {}{detail}", hook.hook, hook.event, hook.ended))
    }));
    facts.extend(record.effects.iter().map(|effect| ("effect", effect.to_string())));
    if let Some(judged) = &record.judged {
        facts.push(("verdict", format!("{}: {}", judged.verdict, judged.reason)));
        facts.extend(judged.rights.iter().map(|rights| ("rights", rights.level.to_string())));
    }
    facts.extend(record.approval.iter().map(|approval| {
        let took = format_duration(approval.micros);
        ("approval", format!("{} answered `{}` after {}", approval.by, approval.answer, took.trim()))
    }));
    facts.extend(record.approval.as_ref().and_then(describe_added_rules).map(|text| ("rule added", text)));
    facts.extend(
        record.anomalies.iter().map(|anomaly| ("anomaly", format!("{} [{}]", anomaly.text, anomaly.code))),
    );
    facts.extend(record.not_journalled.iter().map(|file| ("not undoable", file.to_string())));
    facts.push(("outcome", describe_outcome(&record.outcome)));
    facts
}

/// The rules that an answer added, and where.
fn describe_added_rules(approval: &ApprovalRecord) -> Option<String> {
    let rules: Vec<String> = approval.rules.iter().map(|rule| format!("`{rule}`")).collect();
    let place = match &approval.rules_file {
        Some(file) => format!("in {file}"),
        None => "for the session".to_owned(),
    };
    (!rules.is_empty()).then(|| format!("{} {place}", rules.join(", ")))
}

/// On whose behalf the call was made.
fn describe_principal(line: &LedgerLine) -> String {
    let principal = &line.record.principal;
    match &principal.name {
        Some(name) => format!("{name}, through {}", principal.edge),
        None => principal.edge.clone(),
    }
}

/// How the call ended, with its result or reason.
pub(super) fn describe_outcome(outcome: &OutcomeRecord) -> String {
    let word = LogOutcome::of(outcome).as_str();
    match outcome {
        OutcomeRecord::Done { bytes, spilled } => {
            let file =
                spilled.as_ref().map(|file| format!(", the whole result in {file}")).unwrap_or_default();
            format!("{word}: {}{file}", format_count(*bytes, "byte", "bytes"))
        }
        OutcomeRecord::Refused { code, stage, reason }
        | OutcomeRecord::Failed { code, stage, reason }
        | OutcomeRecord::Cancelled { code, stage, reason } => format!("{word} at {stage}: {reason} [{code}]"),
    }
}
