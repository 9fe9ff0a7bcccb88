//! The status of a background task, and how processes ended, in words.

use super::sandbox_notes::sandbox_refusal_notes;
use super::tasks::ShellTask;
use serde_json::json;
use toolgate_process::{ProcessExit, ProcessPhase, to_plain_text};
use toolgate_proto::Output;

/// Characters of the description or the command in a summary.
const MAX_SUMMARY_CHARS: usize = 80;

/// The status of a background task and its output from `offset` on, at most `max_bytes`.
pub(crate) fn render_task_status(task: &ShellTask, offset: u64, max_bytes: usize) -> Output {
    let bytes = task.process.read_output_from(offset, max_bytes).unwrap_or_default();
    let next = offset + bytes.len() as u64;
    let captured = task.process.output_snapshot();
    let total = captured.total;
    let text = to_plain_text(&bytes);
    let mut notes = vec![task_summary(task)];
    if next < total {
        notes.push(format!("more output follows: continue with `offset` {next} of {total}"));
    }
    notes.extend(sandbox_refusal_notes(task));
    let structured = json!({
        "task_id": task.id,
        "command": task.command,
        "status": status(task),
        "exitCode": task.process.phase().exit().and_then(exit_code),
        "output": text,
        "nextOffset": next,
        "totalBytes": total,
        "outputFile": captured.file,
    });
    Output::text(append_notes(text, &notes)).structured(structured)
}

/// One line about a task: id, status, duration and purpose.
pub(crate) fn task_summary(task: &ShellTask) -> String {
    let purpose = task.description.as_deref().unwrap_or(&task.command);
    let purpose: String = purpose.chars().take(MAX_SUMMARY_CHARS).collect();
    let seconds = task.process.duration().as_secs();
    format!("{}: {}, {seconds} s: {purpose}", task.id, status(task))
}

/// The status in words, as the `status` field and the summary show it.
fn status(task: &ShellTask) -> String {
    match task.process.phase() {
        ProcessPhase::Running => "running".to_owned(),
        ProcessPhase::ShellExited(exit) => {
            format!("{}, but some of its processes still run", describe_exit(Some(exit)))
        }
        ProcessPhase::AllExited(exit) => format!("ended with {}", describe_exit(Some(exit))),
    }
}

/// The exit code; `None` after a signal.
pub(super) fn exit_code(exit: ProcessExit) -> Option<i32> {
    match exit {
        ProcessExit::Code(code) => Some(code),
        ProcessExit::Signal(_) | ProcessExit::Unknown => None,
    }
}

/// `exit code 1`, `signal 9` and so on, for messages.
pub(super) fn describe_exit(exit: Option<ProcessExit>) -> String {
    match exit {
        Some(ProcessExit::Code(code)) => format!("exit code {code}"),
        Some(ProcessExit::Signal(signal)) => format!("signal {signal}"),
        Some(ProcessExit::Unknown) => "an unknown result, because its supervisor was killed".to_owned(),
        None => "no result yet".to_owned(),
    }
}

/// Appends notes in brackets, each on its own line.
pub(super) fn append_notes(mut text: String, notes: &[String]) -> String {
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]"));
    }
    text
}
