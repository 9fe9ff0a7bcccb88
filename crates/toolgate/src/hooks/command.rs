//! Command hooks: how the exit code, the signal and the output of a program become an answer.

use super::output;
use std::time::Duration;
use toolgate_gate::{HookAnswer, HookDecision, HookEvent, HookFailure};
use toolgate_process::{HookCommand, HookProcessError, HookProcessOutput, run_hook};

/// Runs a program and interprets how it ended.
pub(super) async fn run_command_hook(
    event: HookEvent,
    command: HookCommand,
) -> Result<HookAnswer, HookFailure> {
    let limit = command.timeout;
    match run_hook(command).await {
        Ok(run) => interpret_exit(event, &run),
        Err(problem) => Err(match problem {
            HookProcessError::Missing(program) => HookFailure::Missing(format!("program {program}")),
            HookProcessError::NotStarted(why) => HookFailure::NotStarted(why),
            HookProcessError::TimedOut => HookFailure::TimedOut(to_millis(limit)),
            HookProcessError::TooMuchOutput => HookFailure::Unreadable("it is longer than 1 MiB".to_owned()),
            HookProcessError::Broken(why) => {
                HookFailure::Crashed(format!("its input or output could not be transferred: {why}"))
            }
        }),
    }
}

/// A duration in milliseconds, for failures.
pub(super) fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The answer by the exit code. With 0 the output decides; 2 blocks the call whatever the output is; any other code is
/// a failure, unless the output asks or denies, which is stricter than a failure with `onFailure: continue`.
fn interpret_exit(event: HookEvent, run: &HookProcessOutput) -> Result<HookAnswer, HookFailure> {
    let stderr = stderr_text(&run.stderr);
    match (run.code, run.signal) {
        (Some(0), _) => output::parse_output(event, &run.stdout),
        (Some(2), _) => match missing_script(&stderr) {
            Some(what) => Err(HookFailure::Missing(what)),
            None => Ok(build_blocking_answer(event, stderr)),
        },
        (Some(127), _) => {
            Err(HookFailure::Missing(format!("such program: {}", last_line_or_default(&stderr))))
        }
        (Some(126), _) => Err(HookFailure::NotStarted(last_line_or_default(&stderr))),
        (Some(code), _) => {
            let strict = output::parse_output(event, &run.stdout)
                .ok()
                .filter(|answer| answer.decision.is_some_and(|decision| decision > HookDecision::Allow));
            match strict {
                Some(answer) => Ok(answer.with_detail(format!("exit {code}"))),
                None => Err(HookFailure::Crashed(format!(
                    "it failed with exit code {code}: {}",
                    last_line_or_default(&stderr)
                ))),
            }
        }
        (None, Some(signal)) => Err(HookFailure::Crashed(format!("it was killed by signal {signal}"))),
        (None, None) => Err(HookFailure::Crashed("it ended without an exit code".to_owned())),
    }
}

/// The answer for exit code 2, with standard error as its reason.
fn build_blocking_answer(event: HookEvent, stderr: String) -> HookAnswer {
    match event {
        // The call was denied already, so there is nothing to block.
        HookEvent::PermissionDenied => HookAnswer::empty().with_detail("exit 2"),
        HookEvent::PreToolUse
        | HookEvent::PermissionRequest
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::PostToolBatch
        | HookEvent::TaskCreated
        | HookEvent::TaskCompleted => {
            let reason = if stderr.is_empty() { "it gave no reason".to_owned() } else { stderr };
            HookAnswer::deny(reason).with_detail("exit 2")
        }
    }
}

/// The message of an interpreter that did not find its script. Python and dash then exit with 2, which would read as a
/// denial by the script, so the missing file is reported instead.
fn missing_script(stderr: &str) -> Option<String> {
    let line = stderr.lines().next()?;
    let (interpreter, rest) = line.split_once(": ")?;
    let program = interpreter.rsplit('/').next().unwrap_or(interpreter);
    let python = program.starts_with("python") && rest.starts_with("can't open file ");
    let shell = matches!(program, "sh" | "dash" | "ash")
        && rest
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == ':' || c == ' ')
            .starts_with("cannot open ");
    (python || shell).then(|| format!("such script: {line}"))
}

/// Standard error as text, truncated.
fn stderr_text(stderr: &[u8]) -> String {
    output::truncate_text(String::from_utf8_lossy(stderr).trim().to_owned())
}

/// The last line of standard error, which usually says why a program failed.
fn last_line_or_default(stderr: &str) -> String {
    match stderr.lines().last() {
        Some(line) => line.to_owned(),
        None => "no error message".to_owned(),
    }
}
