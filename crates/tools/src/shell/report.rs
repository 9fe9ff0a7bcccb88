//! A command's result in words, for the model and the person.

use super::run_command::CommandWaitOutcome;
use super::tasks::ShellTask;
use serde_json::{Map, Value, json};
use toolgate_process::sandbox::{SandboxAccess, SandboxDenial};
use toolgate_process::{OutputSnapshot, ProcessExit, ProcessPhase, to_plain_text};
use toolgate_proto::{CallResult, Code, Output, Refusal, RightsLevel};

/// Which face words the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandResultFormat {
    /// The output, and then what else is to be known.
    Claude,
    /// The exit code, then the output.
    Plain,
}

/// The result of a command whose shell has ended or was ended.
pub(crate) fn render_result(
    task: &ShellTask,
    ended: CommandWaitOutcome,
    face: CommandResultFormat,
    notes: Vec<String>,
    shown: usize,
) -> CallResult {
    let exit = task.process.phase().exit();
    let written = task.process.output_snapshot();
    let text = truncate_output(&written, shown);
    let mut notes = notes;
    notes.extend(result_notes(task, &written));
    let failed = !matches!(exit, Some(ProcessExit::Code(0)));
    let meaning = match exit {
        Some(ProcessExit::Code(1)) if ended == CommandWaitOutcome::Exited => {
            benign_exit_meaning(&task.command)
        }
        _ => None,
    };
    if let Some(meaning) = meaning {
        notes.insert(0, meaning.to_owned());
    }
    let words = describe_exit(exit);
    let model = match face {
        CommandResultFormat::Claude => text.clone(),
        CommandResultFormat::Plain => {
            let code = exit.and_then(exit_code).map_or_else(|| words.clone(), |code| code.to_string());
            format!("Exit code: {code}\n\nOutput:\n{text}")
        }
    };
    let structured = structured_result(task, &text, &written, ended);
    let output =
        Output::text(append_notes(model, &notes)).display(append_notes(text, &notes)).structured(structured);
    let refusal = match ended {
        CommandWaitOutcome::Cancelled => {
            Refusal::new(Code::Cancelled, "the command was cancelled and stopped")
        }
        CommandWaitOutcome::TimedOut => Refusal::new(
            Code::ShellTimedOut,
            format!("the command ran for {} ms and was stopped", task.process.duration().as_millis()),
        ),
        CommandWaitOutcome::Exited if task.process.is_over_output_limit() => Refusal::new(
            Code::ShellFailed,
            format!("the command wrote more than {} bytes and was stopped", written.total),
        )
        .hint("let it write less, or into a file"),
        CommandWaitOutcome::Exited if failed && meaning.is_none() => {
            Refusal::new(Code::ShellFailed, format!("the command ended with {words}"))
        }
        CommandWaitOutcome::Exited | CommandWaitOutcome::MovedToBackground => return Ok(output),
    };
    let mut refused = task.process.denials();
    refused.retain(|refused| refused.access != SandboxAccess::ReadHidden);
    let refusal = match refused.first() {
        Some(refused) if refusal.code == Code::ShellFailed => refusal.hint(format!(
            "the sandbox refused something the command needed; what would allow it: {}",
            refused.access.setting()
        )),
        Some(_) | None => refusal,
    };
    Err(refusal.with_partial(output))
}

/// A command in the background as it is now: what it wrote from an offset on, and how it stands.
pub(crate) fn render_snapshot(task: &ShellTask, offset: u64, most: usize) -> Output {
    let bytes = task.process.read_output_from(offset, most).unwrap_or_default();
    let next = offset + bytes.len() as u64;
    let total = task.process.output_snapshot().total;
    let mut text = to_plain_text(&bytes);
    let mut notes = vec![task_summary(task)];
    if next < total {
        notes.push(format!("there is more: go on with `offset` {next} of {total}"));
    }
    notes.extend(sandbox_refusal_notes(task));
    text = append_notes(text, &notes);
    let phase = task.process.phase();
    let structured = json!({
        "task_id": task.id,
        "command": task.command,
        "status": status(task),
        "exitCode": phase.exit().and_then(exit_code),
        "output": to_plain_text(&bytes),
        "nextOffset": next,
        "totalBytes": total,
        "outputFile": task.process.output_snapshot().file,
    });
    Output::text(text).structured(structured)
}

/// One line about a command.
pub(crate) fn task_summary(task: &ShellTask) -> String {
    let what = task.description.as_deref().unwrap_or(&task.command);
    let what: String = what.chars().take(80).collect();
    let seconds = task.process.duration().as_secs();
    format!("{}: {}, {seconds} s: {what}", task.id, status(task))
}

fn status(task: &ShellTask) -> String {
    match task.process.phase() {
        ProcessPhase::Running => "running".to_owned(),
        ProcessPhase::ShellExited(exit) => {
            format!("{}, processes of it still running", describe_exit(Some(exit)))
        }
        ProcessPhase::AllExited(exit) => format!("ended with {}", describe_exit(Some(exit))),
    }
}

/// The output as a model is shown it: all of it, or its start and its end.
fn truncate_output(written: &OutputSnapshot, shown: usize) -> String {
    let (head, tail) = (to_plain_text(&written.head), to_plain_text(&written.tail));
    let fits = written.omitted_bytes() == 0 && head.len() + tail.len() <= shown;
    if fits {
        return head + &tail;
    }
    let all = head.len() + tail.len();
    let (start, end) = if written.tail.is_empty() {
        (truncate_to_head(&head, shown / 2).to_owned(), truncate_to_tail(&head, shown / 2).to_owned())
    } else {
        (
            truncate_to_head(&head, shown / 2).to_owned(),
            truncate_to_tail(&format!("{head}{tail}"), shown / 2).to_owned(),
        )
    };
    let hidden = written.omitted_bytes() + all.saturating_sub(start.len() + end.len()) as u64;
    let place = match (&written.file, &written.problem) {
        (Some(file), _) => format!("; all of it is in {file}"),
        (None, Some(problem)) => format!("; the rest could not be kept: {problem}"),
        (None, None) => String::new(),
    };
    format!("{start}\n[… {hidden} bytes not shown{place} …]\n{end}")
}

/// At most so many bytes from the start, up to the end of a line where there is one.
fn truncate_to_head(text: &str, most: usize) -> &str {
    let cut = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    cut.rfind('\n').and_then(|end| cut.get(..end)).unwrap_or(cut)
}

/// At most so many bytes from the end, from the start of a line where there is one.
fn truncate_to_tail(text: &str, most: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(most));
    let cut = text.get(from..).unwrap_or_default();
    cut.find('\n').and_then(|start| cut.get(start + 1..)).filter(|rest| !rest.is_empty()).unwrap_or(cut)
}

/// What is to be known beside the output.
fn result_notes(task: &ShellTask, written: &OutputSnapshot) -> Vec<String> {
    let mut notes = sandbox_refusal_notes(task);
    if let Some(enforced) = task.process.enforcement() {
        notes.extend(enforced.missing.iter().map(|gap| format!("not enforced on this machine: {gap}")));
    }
    if let ProcessPhase::ShellExited(_) = task.process.phase() {
        notes.push(format!(
            "processes that the command started still run, as {}; stop them with TaskStop",
            task.id
        ));
    }
    if let (Some(problem), None) = (&written.problem, &written.file) {
        notes.push(format!("the output file could not be written: {problem}"));
    }
    notes
}

/// What the sandbox refused. Observed by the warden; nothing is guessed from words in the output.
fn sandbox_refusal_notes(task: &ShellTask) -> Vec<String> {
    let refused = task.process.denials();
    let withheld: Vec<&str> = refused
        .iter()
        .filter(|refused| refused.access == SandboxAccess::ReadHidden)
        .map(|refused| refused.target.as_str())
        .collect();
    let mut notes: Vec<String> = refused
        .iter()
        .filter(|refused| refused.access != SandboxAccess::ReadHidden)
        .map(|refused| {
            format!("the sandbox refused (observed): {refused}; to allow it: {}", refused.access.setting())
        })
        .collect();
    notes.extend(withheld_note(&withheld));
    let hosts = task.refused_hosts();
    notes.extend(hosts.iter().map(|host| format!("the proxy refused (observed): {}", host.message())));
    let failed = !matches!(task.process.phase().exit(), None | Some(ProcessExit::Code(0)));
    if failed && task.process.enforcement().is_some_and(|enforced| !enforced.observed) {
        notes.push("if the sandbox refused something, that cannot be observed here".to_owned());
    }
    notes
}

/// What was kept from the command: counted, the first few named.
fn withheld_note(withheld: &[&str]) -> Option<String> {
    let first = withheld.first()?;
    let named: Vec<String> = withheld.iter().take(5).map(|path| format!("`{path}`")).collect();
    let more = if withheld.len() > named.len() { ", …" } else { "" };
    let (count, files) = (withheld.len(), if withheld.len() == 1 { "file" } else { "files" });
    Some(format!(
        "withheld from the command (a rule or a sensitive name keeps it back): {count} {files}: {}{more}; to let it read \
         one where no rule denies it, allow `Read(/{first})`",
        named.join(", ")
    ))
}

/// What the sandbox refused although nothing of the kind was foreseen when the command was judged.
pub(crate) fn anomalies(task: &ShellTask) -> Vec<String> {
    let unforeseen = |refused: &&SandboxDenial| match (task.level, refused.access) {
        (RightsLevel::Workspace, _) => false,
        // Programs look for settings of their own, and searches come by files that are kept back.
        (
            RightsLevel::ReadOnly | RightsLevel::NamedWrites,
            SandboxAccess::Read | SandboxAccess::ReadHidden,
        ) => false,
        (
            RightsLevel::ReadOnly | RightsLevel::NamedWrites,
            SandboxAccess::Execute
            | SandboxAccess::Write
            | SandboxAccess::WriteProtected
            | SandboxAccess::Metadata
            | SandboxAccess::Internet
            | SandboxAccess::Connect
            | SandboxAccess::Listen
            | SandboxAccess::UnixSocket,
        ) => true,
    };
    task.process.denials().iter().filter(unforeseen).map(ToString::to_string).collect()
}

fn append_notes(mut text: String, notes: &[String]) -> String {
    for note in notes {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]"));
    }
    text
}

fn structured_result(
    task: &ShellTask,
    text: &str,
    written: &OutputSnapshot,
    ended: CommandWaitOutcome,
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
        json!(matches!(ended, CommandWaitOutcome::Cancelled | CommandWaitOutcome::TimedOut)),
    );
    out.insert(
        "timedOut".into(),
        json!(matches!(ended, CommandWaitOutcome::TimedOut | CommandWaitOutcome::MovedToBackground)),
    );
    out.insert("durationMs".into(), json!(u64::try_from(task.process.duration().as_millis()).unwrap_or(0)));
    if let Some(file) = &written.file {
        out.insert("persistedOutputPath".into(), json!(file));
        out.insert("persistedOutputSize".into(), json!(written.total));
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

fn exit_code(exit: ProcessExit) -> Option<i32> {
    match exit {
        ProcessExit::Code(code) => Some(code),
        ProcessExit::Signal(_) | ProcessExit::Unknown => None,
    }
}

fn describe_exit(exit: Option<ProcessExit>) -> String {
    match exit {
        Some(ProcessExit::Code(code)) => format!("exit code {code}"),
        Some(ProcessExit::Signal(signal)) => format!("signal {signal}"),
        Some(ProcessExit::Unknown) => "an unknown result, because its keeper was killed".to_owned(),
        None => "no result yet".to_owned(),
    }
}

/// What exit code 1 means for programs that say "no" by it. Only for one plain command: in a compound one nobody
/// knows whose code it is.
fn benign_exit_meaning(command: &str) -> Option<&'static str> {
    if command.contains([';', '&', '|', '(', ')', '<', '>', '$', '`', '\n']) {
        return None;
    }
    let mut words = command.split_whitespace();
    let program = words.next()?;
    match program.rsplit('/').next().unwrap_or(program) {
        "grep" | "egrep" | "fgrep" | "rg" => Some("nothing matches"),
        "diff" | "cmp" => Some("the files differ"),
        "test" | "[" => Some("the condition is false"),
        "find" => Some("some directories could not be read"),
        "git" => match words.next()? {
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
    fn a_no_is_not_a_failure() {
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

    #[test]
    fn long_output_is_cut_at_lines_and_says_how_much_is_missing() {
        let lines: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let (head, tail) = lines.as_bytes().split_at(400);
        let written = OutputSnapshot {
            head: head.to_vec(),
            tail: tail.to_vec(),
            total: lines.len() as u64,
            ..OutputSnapshot::default()
        };
        let shown = truncate_output(&written, 100);
        assert!(shown.starts_with("line 0\nline 1\n") && shown.ends_with("line 99\n"), "{shown}");
        assert!(shown.contains("bytes not shown"));
        assert_eq!(truncate_output(&written, 10_000), lines);
    }
}
