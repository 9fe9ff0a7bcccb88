//! `Monitor`: watch a command or a WebSocket, and tell the session each line or message.
//!
//! A command is judged by the rules of `Bash`, and runs in the same sandbox. A WebSocket is judged by the rules for fetching
//! from its host, private addresses are refused unless a rule names them, and the user is asked each time, because what
//! comes over it is chosen by others for as long as it is open.
//! Both are background tasks: `TaskOutput` reads all of the output or the last messages, and `TaskStop` ends them. Lines and
//! messages are events that an agent gets between turns ([`take_monitor_events`]), so that it need not ask again and again.

mod monitor_events;
mod watched_command;
#[cfg(feature = "web")]
mod watched_socket;

pub use monitor_events::take_monitor_events;
#[cfg(feature = "web")]
pub(crate) use watched_socket::{WatchedSocket, WatchedSockets, find_socket};

use crate::shell::{CommandRequest, ShellTasks, detach_task, start_command};
use monitor_events::MonitorEvents;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, CommandLine, Effect, Intent, Output, Refusal, ShellKind, fit_line};
use watched_command::WatchedCommand;

/// How long to watch where the call does not say, in milliseconds.
const DEFAULT_TIMEOUT_MILLIS: u64 = 300_000;
/// Characters of a line in an event.
const MAX_LINE_CHARS: usize = 2_000;
/// Characters of the description that a summary and an event show.
const MAX_DESCRIPTION_CHARS: usize = 80;

/// Watches a command or a WebSocket.
pub(crate) struct MonitorTool;

/// Input of [`MonitorTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MonitorInput {
    /// What the events are about, in a few words.
    description: String,
    /// The bash command line; each line that it prints is an event.
    command: Option<String>,
    /// Instead: a WebSocket; each message is an event.
    ws: Option<MonitoredSocket>,
    /// How long to watch, in milliseconds; default 300000.
    #[schemars(range(min = 1, max = 1_800_000))]
    timeout_ms: Option<u64>,
}

/// A WebSocket to watch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct MonitoredSocket {
    /// `ws://` or `wss://`.
    url: String,
    /// Subprotocols to offer.
    #[serde(default)]
    protocols: Vec<String>,
}

impl MonitorInput {
    /// The description as events and summaries show it.
    fn short_description(&self) -> String {
        fit_line(&self.description, MAX_DESCRIPTION_CHARS)
    }

    /// How long to watch.
    fn timeout(&self) -> u64 {
        self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MILLIS)
    }
}

impl Tool for MonitorTool {
    type Input = MonitorInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Monitor",
            "Watches a command or a WebSocket in the background and reports each line or message between turns. Let a \
             command print only what matters: `tail -f log | grep --line-buffered ERROR`. Ends at `timeout_ms`; see \
             TaskOutput and TaskStop.",
        )
        .with_family("Bash")
        .with_main_field("command")
        .with_group("schedules")
        .with_open_world(true);
        spec.title = "Watch a command".to_owned();
        spec.input_examples = vec![json!({
            "description": "errors of the server",
            "command": "tail -f server.log | grep --line-buffered ERROR",
        })];
        spec
    }

    /// Requires either a command or the address of a socket, each of a form that can be used.
    fn check(&self, input: &MonitorInput) -> Result<(), Refusal> {
        let refuse = |reason: String| Err(Refusal::new(Code::BadArgument, reason));
        match (&input.command, &input.ws) {
            (Some(_), Some(_)) | (None, None) => refuse("give either `command` or `ws`".to_owned()),
            (Some(command), None) if command.trim().is_empty() || command.contains('\0') => {
                refuse("`command` is empty or contains a NUL byte".to_owned())
            }
            (None, Some(socket)) if request_url(&socket.url).is_none() => {
                refuse(format!("`ws.url` is `{}`, which does not begin with ws:// or wss://", socket.url))
            }
            (None, Some(socket)) if !socket.protocols.iter().all(|name| is_protocol_name(name)) => {
                refuse("`ws.protocols` has a name that cannot be sent".to_owned())
            }
            (Some(_), None) | (None, Some(_)) => Ok(()),
        }
    }

    /// What comes over a socket is chosen by others, for as long as it is open.
    fn requires_user(&self, input: &MonitorInput) -> bool {
        input.ws.is_some()
    }

    /// Declares the command as `Bash` would, or the host of the socket.
    fn intent(&self, input: &MonitorInput, context: &CallContext) -> Intent {
        let description = input.short_description();
        if let Some(socket) = &input.ws {
            let url = request_url(&socket.url).unwrap_or_else(|| socket.url.clone());
            let summary = format!("listen to `{}` ({description})", socket.url);
            return Intent::new(summary, [Effect::Fetch { url }]);
        }
        let text = input.command.clone().unwrap_or_default();
        let summary = format!("watch `{text}` ({description})");
        let cwd = context.workspace.cwd.clone();
        let command = CommandLine::new(text, ShellKind::Bash, cwd);
        Intent::new(summary, [Effect::Exec { command }])
    }

    /// Starts to watch and returns at once; what comes is told between turns.
    async fn run(&self, input: MonitorInput, cleared: Cleared) -> CallResult {
        match &input.ws {
            Some(socket) => watch_socket(&input, socket, &cleared).await,
            None => watch_command(&input, &cleared),
        }
    }
}

/// Starts a command, and follows it.
fn watch_command(input: &MonitorInput, cleared: &Cleared) -> CallResult {
    let request = CommandRequest {
        text: input.command.clone().unwrap_or_default(),
        cwd: cleared.context().workspace.cwd.clone(),
        description: Some(input.description.clone()),
        unsandboxed: false,
        background: true,
    };
    let task = start_command(&request, cleared)?;
    let session = &cleared.context().session;
    session.state::<ShellTasks>().retain_task(&task);
    detach_task(&task, cleared.progress());
    let watched = WatchedCommand {
        name: format!("monitor {}, {}", task.id, input.short_description()),
        changed: task.changed.clone(),
        task: Arc::downgrade(&task),
        events: session.state::<MonitorEvents>(),
    };
    tokio::spawn(watched.follow(Duration::from_millis(input.timeout())));
    Ok(render_start(&task.id, input.timeout()))
}

/// Opens a WebSocket, and follows it.
#[cfg(feature = "web")]
async fn watch_socket(input: &MonitorInput, socket: &MonitoredSocket, cleared: &Cleared) -> CallResult {
    let session = &cleared.context().session;
    let (tasks, sockets) = (session.state::<ShellTasks>(), session.state::<WatchedSockets>());
    let max_tasks = tasks.config().max_background_tasks;
    if tasks.live_count() + sockets.live_count() >= max_tasks {
        let reason = format!(
            "{} in the background already",
            toolgate_proto::format_count(max_tasks as u64, "task is", "tasks are")
        );
        return Err(Refusal::new(Code::ToolFailed, reason).hint("stop one of them with TaskStop"));
    }
    let reader = crate::web::open_socket(&socket.url, &socket.protocols, cleared).await?;
    let description = input.short_description();
    let watched = sockets.add(tasks.next_number(), &fit_line(&socket.url, MAX_LINE_CHARS), &description);
    let (id, timeout) = (watched.id.clone(), input.timeout());
    let events = (Duration::from_millis(timeout), session.state::<MonitorEvents>());
    tokio::spawn(watched.follow(format!("monitor {id}, {description}"), reader, events));
    Ok(render_start(&id, timeout))
}

/// A build without the web has no sockets.
#[cfg(not(feature = "web"))]
async fn watch_socket(_: &MonitorInput, _: &MonitoredSocket, _: &Cleared) -> CallResult {
    Err(Refusal::new(Code::ToolFailed, "this build has no web, so it opens no WebSocket")
        .hint("watch a command instead"))
}

/// The result of both.
fn render_start(id: &str, timeout: u64) -> Output {
    let text = format!(
        "watching as {id} for {timeout} ms; what arrives is reported between turns. TaskOutput reads all of it, TaskStop ends it"
    );
    Output::text(text).structured(json!({ "taskId": id, "timeoutMs": timeout }))
}

/// The URL by which a socket is judged: that of the request which opens it.
fn request_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    match scheme.to_ascii_lowercase().as_str() {
        "ws" => Some(format!("http://{rest}")),
        "wss" => Some(format!("https://{rest}")),
        _ => None,
    }
}

/// Whether a name is one that a header can carry as part of a list.
fn is_protocol_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && !"\"(),/:;<=>?@[\\]{}".contains(c))
}
