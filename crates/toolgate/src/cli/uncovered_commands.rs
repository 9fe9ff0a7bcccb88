//! The commands and tools of other servers that ran after a change and that `toolgate undo` does not cover: without
//! `shell.snapshots` the journal has what tools wrote, not what programs did, and never what a server did. The ledger knows
//! that they ran.

use super::context::CliContext;
use super::log::format_time;
use serde_json::{Value, json};
use toolgate::ledger::{LEDGER_NAME, LedgerLine};
use toolgate::{AbsPath, CallId, CallRecord, Effect, OutcomeRecord, RightsLevel, Stage};
use toolgate_files::AppendLog;
use toolgate_proto::{SessionId, UncoveredFile, fit_line};

/// How many characters of a command a message shows.
const MAX_COMMAND_CHARS: usize = 60;
/// How many commands a message names; the rest is counted.
const MAX_NAMED_COMMANDS: usize = 3;

/// What a client asks a server for besides calls of its tools: these change nothing.
const RESOURCE_METHODS: [&str; 2] = ["resources/list", "resources/read"];

/// A command or a call of another server's tool that may have changed files.
pub(super) struct UncoveredCommand {
    /// The command line, or the name of the tool.
    text: String,
    /// It was no command: the tool of a server, or one that does not say what it does.
    pub(super) is_tool: bool,
    /// The id of its call.
    call: String,
    /// When the call arrived, in milliseconds since 1970.
    at: u64,
    /// What it changed and its snapshot did not keep. Empty if no snapshot was made.
    pub(super) not_kept: Vec<UncoveredFile>,
}

impl UncoveredCommand {
    /// For `--json`.
    pub(super) fn to_json(&self) -> Value {
        json!({ "call": self.call, "at": self.at, "command": self.text })
    }
}

/// The commands below these directories (everywhere if there are none) since a time, oldest first. Without a ledger, or
/// if it cannot be read, none is known.
pub(super) fn find_uncovered_commands(
    context: &CliContext,
    since: u64,
    roots: &[AbsPath],
) -> Vec<UncoveredCommand> {
    let Some(dir) = context.ledger_dir() else { return Vec::new() };
    let segments = AppendLog::list_segments(&dir, LEDGER_NAME).unwrap_or_default();
    let mut found: Vec<UncoveredCommand> = Vec::new();
    for segment in segments.iter().rev() {
        let text = AppendLog::read_segment(segment).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<LedgerLine>(line).ok());
        let mut reaches_back = false;
        for LedgerLine { record, .. } in records {
            reaches_back |= record.at < since;
            if record.at >= since && has_run(&record) && !record.journalled {
                found.extend(find_uncovered_effect(&record, roots).map(|(text, is_tool)| UncoveredCommand {
                    text,
                    is_tool,
                    call: record.call.to_string(),
                    at: record.at,
                    not_kept: record.not_journalled.clone(),
                }));
            }
        }
        if reaches_back {
            break;
        }
    }
    found.sort_by_key(|command| command.at);
    found
}

/// The files that these calls changed and that the journal does not have. Without a ledger none is known.
pub(super) fn find_uncovered_files(
    context: &CliContext,
    calls: &[(SessionId, CallId)],
) -> Vec<UncoveredFile> {
    let Some(dir) = context.ledger_dir() else { return Vec::new() };
    let mut missing: Vec<&(SessionId, CallId)> = calls.iter().collect();
    let mut found: Vec<UncoveredFile> = Vec::new();
    for segment in AppendLog::list_segments(&dir, LEDGER_NAME).unwrap_or_default().iter().rev() {
        let text = AppendLog::read_segment(segment).unwrap_or_default();
        for LedgerLine { record, .. } in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            let is_meant =
                |(session, call): &(SessionId, CallId)| (session, call) == (&record.session, &record.call);
            let before = missing.len();
            missing.retain(|call| !is_meant(call));
            if missing.len() < before {
                found.extend(record.not_journalled);
            }
        }
        if missing.is_empty() {
            break;
        }
    }
    found
}

/// Whether the tool of a call was started.
fn has_run(record: &CallRecord) -> bool {
    match &record.outcome {
        OutcomeRecord::Done { .. } => true,
        OutcomeRecord::Refused { stage, .. }
        | OutcomeRecord::Failed { stage, .. }
        | OutcomeRecord::Cancelled { stage, .. } => *stage >= Stage::Run,
    }
}

/// The command or the tool of a call that may have changed something outside the journal, and whether it is a tool.
fn find_uncovered_effect(record: &CallRecord, roots: &[AbsPath]) -> Option<(String, bool)> {
    let only_reads = record
        .judged
        .as_ref()
        .and_then(|judged| judged.rights.as_ref())
        .is_some_and(|rights| rights.level == RightsLevel::ReadOnly);
    let is_here = |dir: &AbsPath| roots.is_empty() || roots.iter().any(|root| dir.is_under(root));
    record.effects.iter().find_map(|effect| match effect {
        Effect::Exec { command } => {
            (is_here(&command.cwd) && !only_reads).then(|| (command.text.clone(), false))
        }
        // A server says of its tools whether they only read; that is no reason to be silent about one.
        Effect::Remote { tool, .. } if RESOURCE_METHODS.contains(&tool.as_str()) => None,
        Effect::Remote { .. } | Effect::Opaque => {
            let tool = record.tool.as_ref().unwrap_or(&record.asked);
            record.project.as_ref().is_none_or(is_here).then(|| (tool.to_string(), true))
        }
        _ => None,
    })
}

/// What ran: commands, calls of tools, or both.
pub(super) fn name_kind<'c>(commands: impl IntoIterator<Item = &'c UncoveredCommand>) -> &'static str {
    let (tools, commands): (Vec<_>, Vec<_>) = commands.into_iter().partition(|command| command.is_tool);
    match (commands.is_empty(), tools.is_empty()) {
        (_, true) => "commands",
        (true, false) => "tools",
        (false, false) => "commands and tools",
    }
}

/// One sentence about the commands; `None` if there are none.
pub(super) fn describe_uncovered(commands: &[UncoveredCommand]) -> Option<String> {
    let last = commands.last()?;
    Some(format!(
        "not the last thing that happened: since then {} ran whose changes cannot be undone, the latest at {}: {}",
        name_kind(commands),
        format_time(last.at),
        name_commands(commands)
    ))
}

/// The latest of the commands, and how many more there are.
pub(super) fn name_commands<'c>(
    commands: impl IntoIterator<Item = &'c UncoveredCommand, IntoIter: ExactSizeIterator + DoubleEndedIterator>,
) -> String {
    let commands = commands.into_iter();
    let count = commands.len();
    let named: Vec<String> = commands
        .rev()
        .take(MAX_NAMED_COMMANDS)
        .map(|command| format!("`{}`", fit_line(&command.text, MAX_COMMAND_CHARS)))
        .collect();
    let more = count - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
