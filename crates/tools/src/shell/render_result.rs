//! The result of a command, for the model and the user.
//!
//! A command that fails is a refusal with its output attached: clients mark it as an error, and the model still sees
//! what the command wrote.
//! Exit code 1 of `grep`, `diff` and the like is an answer and not a failure.

use super::follow_command::CommandWaitOutcome;
use super::sandbox_notes::{sandbox_hint, sandbox_refusal_notes};
use super::task_status::{append_notes, describe_exit, exit_code};
use super::tasks::ShellTask;
use super::truncate_output::truncate_output;
use serde_json::{Map, Value, json};
use toolgate_process::{OutputSnapshot, ProcessExit, ProcessPhase};
use toolgate_proto::{CallResult, Code, Output, Refusal};

/// What to do about a failed command that printed nothing.
const NO_OUTPUT_HINT: &str =
    "it printed nothing; to see more, repeat it with an option such as -v, or with `set -x;` before it";

/// The text format of a result, by toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandResultFormat {
    /// The output, then notes in brackets.
    Claude,
    /// `Exit code: 0`, then the output, then notes.
    Plain,
}

/// Renders the result of a command whose shell has exited. A failed command is a refusal with its output attached.
pub(crate) fn render_result(
    task: &ShellTask,
    wait_outcome: CommandWaitOutcome,
    format: CommandResultFormat,
    mut notes: Vec<String>,
    max_shown_bytes: usize,
) -> CallResult {
    let exit = task.process.phase().exit();
    let captured = task.process.output_snapshot();
    let text = truncate_output(&captured, max_shown_bytes);
    notes.extend(result_notes(task, &captured));
    let benign_meaning = match exit {
        Some(ProcessExit::Code(1)) if wait_outcome == CommandWaitOutcome::Exited => {
            benign_exit_meaning(&task.command)
        }
        _ => None,
    };
    if let Some(meaning) = benign_meaning {
        notes.insert(0, meaning.to_owned());
    }
    let model_text = match format {
        CommandResultFormat::Claude => text.clone(),
        CommandResultFormat::Plain => {
            let code = exit.and_then(exit_code).map_or_else(|| describe_exit(exit), |code| code.to_string());
            format!("Exit code: {code}\n\nOutput:\n{text}")
        }
    };
    let structured = structured_result(task, &text, &captured, wait_outcome);
    let output = Output::text(append_notes(model_text, &notes))
        .display(append_notes(text, &notes))
        .structured(structured);
    match failure(task, wait_outcome, benign_meaning.is_some(), &captured) {
        Some(refusal) => {
            let is_failed = refusal.code == Code::ShellFailed;
            let hint = if is_failed { sandbox_hint(task) } else { None };
            let refusal = match hint {
                Some(hint) => refusal.hint(hint),
                // The usual hint names the output.
                None if is_failed && captured.total == 0 => refusal.hint(NO_OUTPUT_HINT),
                None => refusal,
            };
            Err(refusal.with_partial(output))
        }
        None => Ok(output),
    }
}

/// Why a command counts as failed; `None` if it exited with code 0 or a benign code, or continues in the background.
fn failure(
    task: &ShellTask,
    wait_outcome: CommandWaitOutcome,
    is_benign: bool,
    captured: &OutputSnapshot,
) -> Option<Refusal> {
    let exit = task.process.phase().exit();
    let failed = !is_benign && !matches!(exit, Some(ProcessExit::Code(0)));
    match wait_outcome {
        CommandWaitOutcome::Cancelled => {
            Some(Refusal::new(Code::Cancelled, "the command was cancelled and stopped"))
        }
        CommandWaitOutcome::TimedOut => Some(Refusal::new(
            Code::ShellTimedOut,
            format!(
                "the command reached its timeout and was stopped after {} ms",
                task.process.duration().as_millis()
            ),
        )),
        CommandWaitOutcome::Exited if task.process.is_over_output_limit() => Some(
            Refusal::new(
                Code::ShellFailed,
                format!("the command wrote more than {} bytes and was stopped", captured.total),
            )
            .hint("reduce its output, or redirect it to a file"),
        ),
        CommandWaitOutcome::Exited if failed => {
            Some(Refusal::new(Code::ShellFailed, format!("the command ended with {}", describe_exit(exit))))
        }
        CommandWaitOutcome::Exited | CommandWaitOutcome::MovedToBackground => None,
    }
}

/// Notes about the sandbox, about processes that still run and about output that was not saved.
fn result_notes(task: &ShellTask, captured: &OutputSnapshot) -> Vec<String> {
    let mut notes = sandbox_refusal_notes(task);
    if let Some(enforced) = task.process.enforcement() {
        notes.extend(
            enforced.missing.iter().map(|feature| format!("not enforced on this machine: {feature}")),
        );
    }
    if let ProcessPhase::ShellExited(_) = task.process.phase() {
        notes.push(format!(
            "processes that the command started still run, as {}; stop them with TaskStop",
            task.id
        ));
    }
    if let (Some(problem), None) = (&captured.problem, &captured.file) {
        notes.push(format!("the output file could not be written: {problem}"));
    }
    notes
}

/// The result as data. `stdout` contains stderr as well: both are one stream, in the order of writing.
fn structured_result(
    task: &ShellTask,
    text: &str,
    captured: &OutputSnapshot,
    wait_outcome: CommandWaitOutcome,
) -> Value {
    let exit = task.process.phase().exit();
    let mut out = Map::new();
    out.insert("stdout".into(), json!(text));
    out.insert("stderr".into(), json!(""));
    out.insert("exitCode".into(), json!(exit.and_then(exit_code)));
    if let Some(ProcessExit::Signal(signal)) = exit {
        out.insert("signal".into(), json!(signal));
    }
    out.insert(
        "interrupted".into(),
        json!(matches!(wait_outcome, CommandWaitOutcome::Cancelled | CommandWaitOutcome::TimedOut)),
    );
    out.insert(
        "timedOut".into(),
        json!(matches!(wait_outcome, CommandWaitOutcome::TimedOut | CommandWaitOutcome::MovedToBackground)),
    );
    out.insert("durationMs".into(), json!(u64::try_from(task.process.duration().as_millis()).unwrap_or(0)));
    if let Some(file) = &captured.file {
        out.insert("persistedOutputPath".into(), json!(file));
        out.insert("persistedOutputSize".into(), json!(captured.total));
    }
    if task.background.get().is_some() {
        out.insert("backgroundTaskId".into(), json!(task.id));
    }
    let sandbox = match task.process.enforcement() {
        None => json!({ "enforced": false }),
        Some(enforced) => json!({
            "enforced": true,
            "missing": enforced.missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "refused": task.process.denials().iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
    };
    out.insert("sandbox".into(), sandbox);
    Value::Object(out)
}

/// The meaning of exit code 1 for programs that use it for "no" instead of an error. Only for a simple command: in a
/// compound one, the exit code may belong to another program.
fn benign_exit_meaning(command: &str) -> Option<&'static str> {
    if command.contains([';', '&', '|', '(', ')', '<', '>', '$', '`', '\n']) {
        return None;
    }
    let mut arguments = command.split_whitespace();
    let program = arguments.next()?;
    match program.rsplit('/').next().unwrap_or(program) {
        "grep" | "egrep" | "fgrep" | "rg" => Some("nothing matches"),
        "diff" | "cmp" => Some("the files differ"),
        "test" | "[" => Some("the condition is false"),
        "find" => Some("some directories could not be read"),
        "git" => match arguments.next()? {
            "diff" => Some("there are differences"),
            "grep" => Some("nothing matches"),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_1_of_a_comparison_is_not_a_failure() {
        for (command, meaning) in [
            ("grep x f", Some("nothing matches")),
            ("/usr/bin/diff a b", Some("the files differ")),
            ("git diff --exit-code", Some("there are differences")),
            ("git push", None),
            ("grep x f; false", None),
            ("false", None),
        ] {
            assert_eq!(benign_exit_meaning(command), meaning, "{command}");
        }
    }
}
