//! `TaskOutput`: read the output of a command in the background.
//!
//! Both toolsets use the same tool, and it keeps the older name `BashOutput` as an alias.
//! Output is addressed by byte offset and not consumed: a call can be repeated, and two readers do not take lines from
//! each other.

#[cfg(feature = "web")]
use crate::monitor::{WatchedSockets, find_socket};
use crate::shell::{ShellTask, ShellTasks, render_task_status, task_summary};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{CallContext, Cleared, Session, Tool, ToolSpec};
use toolgate_process::ProcessPhase;
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal};

/// How long a call waits for the end of the command.
const DEFAULT_WAIT_MILLIS: u64 = 30_000;
/// Output per call; the caller continues with `offset`.
const MAX_OUTPUT_BYTES: usize = 30_000;

/// Returns the output of a background command from an offset on, and its status.
pub(crate) struct TaskOutputTool;

/// Input of [`TaskOutputTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskOutputInput {
    /// The id of the command; without it all commands are listed.
    task_id: Option<String>,
    /// Older name of `task_id`.
    bash_id: Option<String>,
    /// Wait until it ends, at most `timeout`; default true.
    block: Option<bool>,
    /// Milliseconds to wait; default 30000.
    #[schemars(range(min = 0, max = 600_000))]
    timeout: Option<u64>,
    /// The byte to start at, from the previous result.
    offset: Option<u64>,
}

impl Tool for TaskOutputTool {
    type Input = TaskOutputInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "TaskOutput",
            "Returns the output and the status of a command in the background. Waits until it ends unless `block` is \
             false. Continue with `offset` if there is more. Without `task_id` it lists the commands.",
        )
        .read_only();
        spec.title = "Output of a background command".to_owned();
        spec.aliases = vec!["BashOutput".to_owned()];
        spec.max_result_chars = 40_000;
        spec.input_examples = vec![json!({ "task_id": "task_1", "block": false, "offset": 2048 })];
        spec
    }

    fn intent(&self, input: &TaskOutputInput, _context: &CallContext) -> Intent {
        let id = input.task_id.as_ref().or(input.bash_id.as_ref());
        let summary =
            id.map_or_else(|| "list background commands".to_owned(), |id| format!("see the output of {id}"));
        Intent::new(summary, [Effect::State { name: "background commands".to_owned() }])
    }

    /// Waits until every process of the command has exited, unless `block` is false. Cancelling the wait leaves the
    /// command running.
    async fn run(&self, input: TaskOutputInput, cleared: Cleared) -> CallResult {
        let tasks = cleared.context().session.state::<ShellTasks>();
        let Some(id) = input.task_id.or(input.bash_id) else {
            let mut lines: Vec<String> = tasks.all().iter().map(|task| task_summary(task)).collect();
            lines.extend(summarize_sockets(&cleared.context().session));
            let text = if lines.is_empty() {
                "no command runs in the background".to_owned()
            } else {
                lines.join("\n")
            };
            return Ok(Output::text(text).structured(json!({ "tasks": lines })));
        };
        if let Some(output) = render_socket(&cleared.context().session, &id) {
            return Ok(output);
        }
        let task = find_task(&tasks, &id)?;
        if input.block.unwrap_or(true) {
            let timeout = Duration::from_millis(input.timeout.unwrap_or(DEFAULT_WAIT_MILLIS));
            let all_exited = task.wait_until(|process| matches!(process.phase(), ProcessPhase::AllExited(_)));
            tokio::select! {
                () = cleared.cancel().cancelled() => {
                    return Err(Refusal::new(Code::Cancelled, "the wait was cancelled; the command continues"));
                }
                // A timeout is not an error: the result says that the command still runs.
                _ = tokio::time::timeout(timeout, all_exited) => {}
            }
        }
        Ok(render_task_status(&task, input.offset.unwrap_or(0), MAX_OUTPUT_BYTES))
    }
}

/// A line about each WebSocket that the session watches.
#[cfg(feature = "web")]
fn summarize_sockets(session: &Session) -> Vec<String> {
    session.state::<WatchedSockets>().all().iter().map(|socket| socket.summary()).collect()
}

/// The last messages of a WebSocket with this id. It is not waited for: most end with their timeout only.
#[cfg(feature = "web")]
fn render_socket(session: &Session, id: &str) -> Option<Output> {
    let socket = find_socket(session, id)?;
    let (messages, omitted) = socket.last_messages();
    let mut lines = messages.clone();
    if omitted > 0 {
        lines.insert(0, format!("[{omitted} earlier messages are not kept]"));
    }
    let summary = socket.summary();
    lines.push(format!("[{summary}]"));
    Some(Output::text(lines.join("\n")).structured(json!({
        "task_id": socket.id,
        "url": socket.url,
        "status": summary,
        "messages": messages,
        "omitted": omitted,
    })))
}

/// A build without the web watches none.
#[cfg(not(feature = "web"))]
fn summarize_sockets(_: &Session) -> Vec<String> {
    Vec::new()
}

/// A build without the web watches none.
#[cfg(not(feature = "web"))]
fn render_socket(_: &Session, _: &str) -> Option<Output> {
    None
}

/// The session's command with this id, or a refusal that lists the known ids.
pub(crate) fn find_task(tasks: &ShellTasks, id: &str) -> Result<Arc<ShellTask>, Refusal> {
    tasks.find(id).ok_or_else(|| {
        let known: Vec<String> = tasks.all().iter().map(|task| task.id.clone()).collect();
        let hint = if known.is_empty() {
            "this session has no commands in the background".to_owned()
        } else {
            format!("known commands: {}", known.join(", "))
        };
        Refusal::new(Code::BadArgument, format!("there is no background command `{id}`")).hint(hint)
    })
}
