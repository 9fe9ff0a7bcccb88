//! `Monitor`: run a command in the background, and tell the session each line that it prints.
//!
//! The command is judged by the rules of `Bash`, and runs in the same sandbox. It is a background task: `TaskOutput` reads
//! all of its output, and `TaskStop` ends it. Its lines are events that an agent gets between turns
//! ([`take_monitor_events`]), so that it need not ask again and again.

use crate::shell::{CommandRequest, ShellTask, ShellTasks, detach_task, start_command, task_summary};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use toolgate_gate::{CallContext, Cleared, Session, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, CommandLine, Effect, Intent, Output, Refusal, ShellKind, fit_line};

/// How long a command is watched where the call does not say, in milliseconds.
const DEFAULT_TIMEOUT_MILLIS: u64 = 300_000;
/// Time between SIGTERM and SIGKILL at the timeout.
const STOP_GRACE: Duration = Duration::from_secs(1);
/// Events that wait for the session. Of more, the oldest are dropped and counted.
const MAX_WAITING_EVENTS: usize = 200;
/// Characters of a line in an event.
const MAX_LINE_CHARS: usize = 2_000;
/// Characters of the description that a summary and an event show.
const MAX_DESCRIPTION_CHARS: usize = 80;
/// Bytes that are read at once. A line that is longer is split.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Watches a command.
pub(crate) struct MonitorTool;

/// Input of [`MonitorTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MonitorInput {
    /// What the events are about, in a few words.
    description: String,
    /// The bash command line; each line that it prints is an event.
    command: String,
    /// How long to watch, in milliseconds; default 300000.
    #[schemars(range(min = 1, max = 1_800_000))]
    timeout_ms: Option<u64>,
}

impl Tool for MonitorTool {
    type Input = MonitorInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Monitor",
            "Runs a command in the background and tells you each line that it prints between turns. Print only what matters: \
             `tail -f log | grep --line-buffered ERROR`. Ends at `timeout_ms`; see TaskOutput and TaskStop.",
        )
        .with_family("Bash")
        .with_group("schedules")
        .with_open_world(true);
        spec.title = "Watch a command".to_owned();
        spec.input_examples = vec![json!({
            "description": "errors of the server",
            "command": "tail -f server.log | grep --line-buffered ERROR",
        })];
        spec
    }

    fn check(&self, input: &MonitorInput) -> Result<(), Refusal> {
        match input.command.trim().is_empty() || input.command.contains('\0') {
            true => Err(Refusal::new(Code::BadArgument, "`command` is empty or contains a NUL byte")),
            false => Ok(()),
        }
    }

    fn intent(&self, input: &MonitorInput, context: &CallContext) -> Intent {
        let description = fit_line(&input.description, MAX_DESCRIPTION_CHARS);
        let summary = format!("watch `{}` ({description})", input.command);
        let command = CommandLine {
            text: input.command.clone(),
            shell: ShellKind::Bash,
            cwd: context.workspace.cwd.clone(),
            unsandboxed: false,
        };
        Intent::new(summary, [Effect::Exec { command }])
    }

    async fn run(&self, input: MonitorInput, cleared: Cleared) -> CallResult {
        let request = CommandRequest {
            text: input.command,
            cwd: cleared.context().workspace.cwd.clone(),
            description: Some(input.description.clone()),
            unsandboxed: false,
            background: true,
        };
        let task = start_command(&request, &cleared)?;
        let session = &cleared.context().session;
        session.state::<ShellTasks>().retain_task(&task);
        detach_task(&task, cleared.progress());
        let timeout = input.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MILLIS);
        let watched = WatchedCommand {
            name: format!("monitor {}, {}", task.id, fit_line(&input.description, MAX_DESCRIPTION_CHARS)),
            changed: task.changed.clone(),
            task: Arc::downgrade(&task),
            events: session.state::<MonitorEvents>(),
        };
        tokio::spawn(watched.follow(Duration::from_millis(timeout)));
        let id = &task.id;
        Ok(Output::text(format!(
            "watching as {id} for {timeout} ms; its lines come between turns. TaskOutput reads all of them, TaskStop ends it"
        ))
        .structured(json!({ "taskId": id, "timeoutMs": timeout })))
    }
}

/// Events that wait for the session.
#[derive(Debug, Default)]
pub(crate) struct MonitorEvents {
    inner: Mutex<WaitingEvents>,
}

/// The state behind the lock of [`MonitorEvents`].
#[derive(Debug, Default)]
struct WaitingEvents {
    lines: VecDeque<String>,
    dropped: usize,
}

impl MonitorEvents {
    /// A panic while it was held leaves whole lines, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, WaitingEvents> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    fn push(&self, line: String) {
        let mut waiting = self.lock();
        if waiting.lines.len() >= MAX_WAITING_EVENTS {
            waiting.lines.pop_front();
            waiting.dropped += 1;
        }
        waiting.lines.push_back(line);
    }
}

/// Takes the lines that watched commands of a session have printed, oldest first. They are output of programs: data for
/// a model, never instructions of the user.
pub fn take_monitor_events(session: &Session) -> Vec<String> {
    let events = session.state::<MonitorEvents>();
    let WaitingEvents { lines, dropped } = std::mem::take(&mut *events.lock());
    let note = (dropped > 0).then(|| format!("[{dropped} earlier events were dropped; TaskOutput has them]"));
    note.into_iter().chain(lines).collect()
}

/// A command whose lines become events.
struct WatchedCommand {
    /// What stands before each line.
    name: String,
    changed: watch::Receiver<()>,
    /// Weak: the session owns its tasks, and watching must not keep one beyond it.
    task: Weak<ShellTask>,
    events: Arc<MonitorEvents>,
}

impl WatchedCommand {
    /// Follows the command to its end, or stops it at the timeout.
    async fn follow(mut self, timeout: Duration) {
        let mut lines = LineSplitter::default();
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let mut timed_out = false;
        loop {
            let is_over = tokio::select! {
                biased;
                () = &mut deadline, if !timed_out => {
                    timed_out = true;
                    if let Some(task) = self.task.upgrade() {
                        task.process.send_stop(STOP_GRACE);
                    }
                    false
                }
                // The callback of the process owns the sender, and is dropped when the process has ended.
                changed = self.changed.changed() => changed.is_err(),
            };
            let Some(task) = self.task.upgrade() else { return };
            let is_over = is_over || !task.is_live();
            for line in lines.read(&task, is_over) {
                self.events.push(format!("[{}] {line}", self.name));
            }
            if is_over {
                let why = if timed_out { "its time is over" } else { "it has ended" };
                self.events.push(format!("[{}] {why}: {}", self.name, task_summary(&task)));
                return;
            }
        }
    }
}

/// Splits output into lines.
#[derive(Default)]
struct LineSplitter {
    /// Bytes of the output that have become lines.
    offset: u64,
}

impl LineSplitter {
    /// The lines since the last read; after the end of the command also an incomplete one.
    fn read(&mut self, task: &ShellTask, is_over: bool) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(bytes) = task.process.read_output_from(self.offset, MAX_CHUNK_BYTES) {
            let len = match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(last) => last + 1,
                None if is_over || bytes.len() >= MAX_CHUNK_BYTES => bytes.len(),
                None => 0,
            };
            if len == 0 {
                break;
            }
            self.offset += len as u64;
            let text = String::from_utf8_lossy(bytes.get(..len).unwrap_or_default()).into_owned();
            let shown = text.lines().filter(|line| !line.trim().is_empty());
            lines.extend(shown.map(|line| fit_line(line, MAX_LINE_CHARS)));
        }
        lines
    }
}
