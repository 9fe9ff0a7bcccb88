//! A program as a hook: what its end means.

use super::output;
use std::time::Duration;
use toolgate_gate::{HookAnswer, HookDecision, HookEvent, HookFailure};
use toolgate_process::{HookCommand, HookProcessError, HookProcessOutput, run_hook};

/// Runs a program and reads its end.
pub(super) async fn run(moment: HookEvent, command: HookCommand) -> Result<HookAnswer, HookFailure> {
    let limit = command.timeout;
    match run_hook(command).await {
        Ok(run) => interpret_exit(moment, &run),
        Err(problem) => Err(match problem {
            HookProcessError::Missing(program) => HookFailure::Missing(format!("program {program}")),
            HookProcessError::NotStarted(why) => HookFailure::NotStarted(why),
            HookProcessError::TimedOut => HookFailure::TimedOut(to_millis(limit)),
            HookProcessError::TooMuchOutput => HookFailure::Unreadable("it is longer than 1 MiB".to_owned()),
            HookProcessError::Broken(why) => HookFailure::Crashed(format!("talking to it failed: {why}")),
        }),
    }
}

pub(super) fn to_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What a program's end means. Exit code 0 lets its output speak, 2 blocks whatever it prints, anything else is a
/// failure, unless its output asks for more care than that.
fn interpret_exit(moment: HookEvent, run: &HookProcessOutput) -> Result<HookAnswer, HookFailure> {
    let complaint = stderr_text(&run.stderr);
    match (run.code, run.signal) {
        (Some(0), _) => output::read(moment, &run.stdout),
        (Some(2), _) => match missing_script(&complaint) {
            Some(what) => Err(HookFailure::Missing(what)),
            None => Ok(build_blocking_answer(moment, complaint)),
        },
        (Some(127), _) => {
            Err(HookFailure::Missing(format!("such program: {}", last_line_or_default(&complaint))))
        }
        (Some(126), _) => Err(HookFailure::NotStarted(last_line_or_default(&complaint))),
        (Some(code), _) => {
            let careful = output::read(moment, &run.stdout)
                .ok()
                .filter(|answer| answer.decision.is_some_and(|decision| decision > HookDecision::Allow));
            match careful {
                Some(answer) => Ok(answer.with_detail(format!("exit {code}"))),
                None => Err(HookFailure::Crashed(format!(
                    "it ended with exit code {code}: {}",
                    last_line_or_default(&complaint)
                ))),
            }
        }
        (None, Some(signal)) => Err(HookFailure::Crashed(format!("it was ended by signal {signal}"))),
        (None, None) => Err(HookFailure::Crashed("it ended without a word".to_owned())),
    }
}

fn build_blocking_answer(moment: HookEvent, complaint: String) -> HookAnswer {
    match moment {
        // The call is denied already.
        HookEvent::PermissionDenied => HookAnswer::empty().with_detail("exit 2"),
        HookEvent::PreToolUse
        | HookEvent::PermissionRequest
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::PostToolBatch => {
            let reason = if complaint.is_empty() { "it gave no reason".to_owned() } else { complaint };
            HookAnswer::deny(reason).with_detail("exit 2")
        }
    }
}

/// Interpreters end with 2 when their script is not there, which is not the script's "no".
fn missing_script(complaint: &str) -> Option<String> {
    let line = complaint.lines().next()?;
    let (interpreter, rest) = line.split_once(": ")?;
    let program = interpreter.rsplit('/').next().unwrap_or(interpreter);
    let python = program.starts_with("python") && rest.starts_with("can't open file ");
    let shell = matches!(program, "sh" | "dash" | "ash")
        && rest
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == ':' || c == ' ')
            .starts_with("cannot open ");
    (python || shell).then(|| format!("such script: {line}"))
}

fn stderr_text(stderr: &[u8]) -> String {
    output::truncate_text(String::from_utf8_lossy(stderr).trim().to_owned())
}

fn last_line_or_default(complaint: &str) -> String {
    match complaint.lines().last() {
        Some(line) => line.to_owned(),
        None => "it said nothing".to_owned(),
    }
}
