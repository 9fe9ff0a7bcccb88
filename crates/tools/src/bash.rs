//! `Bash` and `shell`: run a command line with bash in a sandbox.
//!
//! Both adapters build a [`CommandRequest`] and share [`run_command`]: it starts the command, waits for it up to its
//! timeout or moves it to the background, and renders the result.
//!
//! Each call is a new shell.
//! Only the working directory carries over to the next call, and only inside the workspace; variables, functions and
//! shell options do not, because a later call would then depend on state that its judgement cannot see.
//!
//! A command that reaches its timeout is stopped with all its processes, or becomes a background task if the settings
//! say so.
//! Processes that outlive their shell become a background task as well: they stay under supervision and end with the
//! session at the latest.

use crate::shell::{
    CommandRequest, CommandResultFormat, CommandWaitOutcome, ShellTask, ShellTasks, anomalies, detach_task,
    follow_command, render_result, start_command,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use toolgate_files::resolve;
use toolgate_gate::{CallContext, Cleared, Tool, ToolSpec};
use toolgate_process::ProcessPhase;
use toolgate_proto::{
    AbsPath, CallResult, Code, CommandLine, Effect, Intent, Output, Refusal, RightsLevel, ShellKind,
    ToolConcurrency, format_count,
};

/// Timeout of a `Bash` command in the foreground.
const DEFAULT_TIMEOUT_MILLIS: u64 = 120_000;
/// Timeout of a `shell` command in the foreground.
const PLAIN_DEFAULT_TIMEOUT_MILLIS: u64 = 30_000;
/// Maximum timeout in the foreground; a longer command belongs in the background.
const MAX_TIMEOUT_MILLIS: u64 = 600_000;
/// Timeout of a command in the background.
const DEFAULT_BACKGROUND_TIMEOUT_MILLIS: u64 = 1_800_000;
/// Maximum timeout in the background.
const MAX_BACKGROUND_TIMEOUT_MILLIS: u64 = 7_200_000;
/// Time between SIGTERM and SIGKILL for a background command that reaches its timeout.
const BACKGROUND_STOP_GRACE: Duration = Duration::from_secs(1);
/// Characters of the model's description that an intent summary shows.
const MAX_DESCRIPTION_CHARS: usize = 160;
/// How many files that undo does not cover are named in a result.
const MAX_NAMED_FILES: usize = 3;

/// The adapter of the claude toolset.
pub(crate) struct BashTool;

/// Input of [`BashTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashInput {
    /// The bash command line.
    command: String,
    /// Timeout in milliseconds: default 120000, maximum 600000; in the background 1800000 and 7200000.
    #[schemars(range(min = 1, max = 7_200_000))]
    timeout: Option<u64>,
    /// What the command does, in five to ten words.
    description: Option<String>,
    /// Return at once; see TaskOutput and TaskStop.
    #[serde(default)]
    run_in_background: bool,
    /// Run outside the sandbox; usually needs the user's approval.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    dangerously_disable_sandbox: bool,
}

impl Tool for BashTool {
    type Input = BashInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Bash",
            "Runs a command line with bash in a sandbox and returns its output (stdout and stderr in order). Each call \
             is a new shell; only `cd` within the workspace persists. stdin is empty. It can write only in the \
             workspace and $TMPDIR and reach only granted hosts; the result lists what the sandbox refused. Long \
             output is truncated, and complete in a file. Prefer Read, Grep and Glob for looking at files.",
        );
        spec.title = "Run command".to_owned();
        spec.open_world = true;
        spec.concurrency = ToolConcurrency::ByEffect;
        spec.max_result_chars = 40_000;
        spec.input_examples = vec![
            json!({ "command": "cargo test -p core", "description": "Run the core tests" }),
            json!({ "command": "npm run dev", "run_in_background": true }),
        ];
        spec
    }

    fn check(&self, input: &BashInput) -> Result<(), Refusal> {
        check_command(&input.command)?;
        check_timeout(input.timeout, input.run_in_background)
    }

    /// Declares the command in the session's working directory. The description is for display only; the policy judges
    /// the command itself.
    fn intent(&self, input: &BashInput, context: &CallContext) -> Intent {
        let cwd = context.workspace.cwd.clone();
        command_intent(&input.command, cwd, input.dangerously_disable_sandbox, input.description.as_deref())
    }

    /// Runs the command and keeps the final working directory for the next call.
    async fn run(&self, input: BashInput, cleared: Cleared) -> CallResult {
        let request = CommandRequest {
            text: input.command,
            cwd: cleared.context().workspace.cwd.clone(),
            description: input.description,
            unsandboxed: input.dangerously_disable_sandbox,
            background: input.run_in_background,
        };
        run_command(
            request,
            input.timeout,
            DEFAULT_TIMEOUT_MILLIS,
            CommandResultFormat::Claude,
            CwdCarryOver::Yes,
            &cleared,
        )
        .await
    }
}

/// The adapter of the plain toolset.
pub(crate) struct ShellTool;

/// Input of [`ShellTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellInput {
    /// The bash command line.
    command: String,
    /// The directory to run it in; default: the working directory.
    cwd: Option<String>,
    /// Timeout in milliseconds; default 30000, maximum 600000.
    #[schemars(range(min = 1, max = 7_200_000))]
    timeout: Option<u64>,
    /// What the command does, in a few words.
    description: Option<String>,
    /// Start it and return at once.
    #[serde(default)]
    background: bool,
}

impl Tool for ShellTool {
    type Input = ShellInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "shell",
            "Runs a command line with bash in a sandbox and returns its exit code and output. stdin is empty. With \
             `background` it keeps running: read its output with TaskOutput, stop it with TaskStop.",
        );
        spec.title = "Run command".to_owned();
        spec.aliases = vec!["run_shell_command".to_owned()];
        spec.family = Some("Bash".to_owned());
        spec.open_world = true;
        spec.max_result_chars = 40_000;
        spec.input_examples = vec![json!({ "command": "make test", "cwd": "core", "timeout": 60_000 })];
        spec
    }

    fn check(&self, input: &ShellInput) -> Result<(), Refusal> {
        check_command(&input.command)?;
        check_timeout(input.timeout, input.background)
    }

    /// Declares the command in the requested directory. This toolset has no request to leave the sandbox.
    fn intent(&self, input: &ShellInput, context: &CallContext) -> Intent {
        let cwd = context.absolute_path(input.cwd.as_deref().unwrap_or("."));
        command_intent(&input.command, cwd, false, input.description.as_deref())
    }

    /// Runs the command. A `cwd` argument applies to this call only, so the session's directory stays unchanged.
    async fn run(&self, input: ShellInput, cleared: Cleared) -> CallResult {
        let carry_over = if input.cwd.is_some() { CwdCarryOver::No } else { CwdCarryOver::Yes };
        let request = CommandRequest {
            text: input.command,
            cwd: cleared.context().absolute_path(input.cwd.as_deref().unwrap_or(".")),
            description: input.description,
            unsandboxed: false,
            background: input.background,
        };
        run_command(
            request,
            input.timeout,
            PLAIN_DEFAULT_TIMEOUT_MILLIS,
            CommandResultFormat::Plain,
            carry_over,
            &cleared,
        )
        .await
    }
}

/// Whether the shell's final working directory becomes the session's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CwdCarryOver {
    /// The next call starts there, if it is inside the workspace.
    Yes,
    /// The call named a directory for itself alone.
    No,
}

/// Rejects what bash cannot run: an empty line, and a NUL byte, which an argument of `execve` cannot contain.
fn check_command(command: &str) -> Result<(), Refusal> {
    if command.trim().is_empty() {
        return Err(Refusal::new(Code::BadArgument, "`command` is empty"));
    }
    if command.contains('\0') {
        return Err(Refusal::new(Code::BadArgument, "`command` contains a NUL byte"));
    }
    Ok(())
}

/// The schema allows the maximum of a background command; one in the foreground has a lower maximum.
fn check_timeout(timeout: Option<u64>, background: bool) -> Result<(), Refusal> {
    let max = if background { MAX_BACKGROUND_TIMEOUT_MILLIS } else { MAX_TIMEOUT_MILLIS };
    match timeout {
        Some(millis) if millis > max => Err(Refusal::new(
            Code::BadArgument,
            format!("`timeout` is {millis} ms, but the maximum is {max} ms"),
        )
        .hint("run it in the background, or split the work")),
        Some(_) | None => Ok(()),
    }
}

/// The only effect of a command is the command line itself; policy derives files and hosts from it.
fn command_intent(command: &str, cwd: AbsPath, unsandboxed: bool, description: Option<&str>) -> Intent {
    let command = CommandLine::new(command, ShellKind::Bash, cwd).with_unsandboxed(unsandboxed);
    let summary = match description {
        // The model's description is last and short, so that it cannot push the command out of an approval prompt.
        Some(description) => {
            format!(
                "run `{}` ({})",
                command.text,
                toolgate_proto::fit_line(description, MAX_DESCRIPTION_CHARS)
            )
        }
        None => format!("run `{}`", command.text),
    };
    Intent::new(summary, [Effect::Exec { command }])
}

/// Starts a command and returns its result, or its task id if it continues in the background.
/// `timeout` and `default_timeout` are in milliseconds.
async fn run_command(
    request: CommandRequest,
    timeout: Option<u64>,
    default_timeout: u64,
    format: CommandResultFormat,
    carry_over: CwdCarryOver,
    cleared: &Cleared,
) -> CallResult {
    let tasks = cleared.context().session.state::<ShellTasks>();
    let config = tasks.config();
    let task = start_command(&request, cleared)?;
    if request.background {
        let timeout = Duration::from_millis(timeout.unwrap_or(DEFAULT_BACKGROUND_TIMEOUT_MILLIS));
        return Ok(move_to_background(&task, cleared, timeout, "runs in the background"));
    }
    let timeout = Duration::from_millis(timeout.unwrap_or(default_timeout));
    let wait_outcome = follow_command(&task, cleared, timeout, config.on_timeout).await;
    if wait_outcome == CommandWaitOutcome::MovedToBackground {
        let timeout = Duration::from_millis(DEFAULT_BACKGROUND_TIMEOUT_MILLIS);
        let event = "reached its timeout and continues in the background";
        return Ok(move_to_background(&task, cleared, timeout, event));
    }
    for anomaly in anomalies(&task) {
        cleared.progress().report_anomaly(anomaly);
    }
    let mut notes = record_changes(&task, cleared);
    if request.unsandboxed && task.process.enforcement().is_some() {
        notes.push("leaving the sandbox was not granted; the command ran inside it".to_owned());
    }
    if carry_over == CwdCarryOver::Yes
        && wait_outcome == CommandWaitOutcome::Exited
        && let Some(cwd) = task.process.cwd()
    {
        notes.extend(carry_over_cwd(&cwd, cleared));
    }
    if task.is_live() {
        if tasks.live_count() < config.max_background_tasks {
            tasks.retain_task(&task);
            detach_task(&task, cleared.progress());
        } else {
            task.process.send_stop(Duration::ZERO);
        }
    } else if task.process.output_snapshot().file.is_some() {
        tasks.retain_task(&task);
    }
    render_result(&task, wait_outcome, format, notes, config.max_shown_bytes)
}

/// Records what the command changed, where settings want that, and says what cannot be undone.
fn record_changes(task: &ShellTask, cleared: &Cleared) -> Vec<String> {
    let not_recorded = |why: &str| {
        vec![format!(
            "what the command changed was not recorded, so `toolgate undo` does not cover it: {why}"
        )]
    };
    let Some(snapshots) = &task.snapshots else {
        let only_reads = cleared.terms().rights.level == RightsLevel::ReadOnly;
        return match cleared.context().session.state::<ShellTasks>().config().snapshots {
            true if task.process.enforcement().is_none() && !only_reads => {
                not_recorded("the command ran outside the sandbox")
            }
            true if !only_reads => not_recorded("there is no journal"),
            true | false => Vec::new(),
        };
    };
    let changes = snapshots.record();
    let is_observed = task.process.enforcement().is_some_and(|enforced| enforced.observed);
    if !is_observed {
        return not_recorded("the sandbox cannot observe changes here");
    }
    if changes.left_out.is_empty() {
        if !task.is_live() {
            cleared.progress().report_journalled();
        }
        return Vec::new();
    }
    cleared.progress().report_not_journalled(&changes.left_out);
    let named: Vec<String> = changes.left_out.iter().take(MAX_NAMED_FILES).map(ToString::to_string).collect();
    let more = changes.left_out.len() - named.len();
    vec![format!(
        "`toolgate undo` does not cover {} that the command changed: {}{}",
        format_count(changes.left_out.len() as u64, "file", "files"),
        named.join(", "),
        if more > 0 { format!(" and {more} more") } else { String::new() }
    )]
}

/// Keeps the command running after its call and stops it when `timeout` has passed.
fn move_to_background(task: &Arc<ShellTask>, cleared: &Cleared, timeout: Duration, event: &str) -> Output {
    cleared.context().session.state::<ShellTasks>().retain_task(task);
    detach_task(task, cleared.progress());
    // A weak reference: the timer must not keep a finished task and its output in memory.
    let timed_task = Arc::downgrade(task);
    tokio::spawn(async move {
        tokio::time::sleep(timeout).await;
        if let Some(task) = timed_task.upgrade() {
            task.process.send_stop(BACKGROUND_STOP_GRACE);
        }
    });
    let file = task.process.output_snapshot().file;
    let file_note = file.as_ref().map(|file| format!("; its output goes to {file}")).unwrap_or_default();
    Output::text(format!(
        "the command {event} as {}{file_note}\nread its output with TaskOutput, stop it with TaskStop",
        task.id
    ))
    .structured(json!({
        "backgroundTaskId": task.id,
        "outputFile": file,
        "stdout": "",
        "stderr": "",
        "interrupted": false,
        "running": task.process.phase() == ProcessPhase::Running,
    }))
}

/// Makes the shell's final directory the session's, or returns a note if it is outside the workspace.
fn carry_over_cwd(cwd: &AbsPath, cleared: &Cleared) -> Option<String> {
    let session = &cleared.context().session;
    let real = resolve(cwd).real;
    let before = session.workspace().cwd.clone();
    if real == before || session.set_cwd(real.clone()) {
        return None;
    }
    Some(format!("the working directory is still {before}, because {real} is outside the workspace"))
}
