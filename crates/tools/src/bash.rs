//! `Bash` and `shell`: a command line, run by bash in a sandbox.

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
    AbsPath, CallResult, Code, CommandLine, Effect, Intent, Output, Refusal, ShellKind, ToolConcurrency,
};

const DEFAULT_TIMEOUT_MILLIS: u64 = 120_000;
const MAX_TIMEOUT_MILLIS: u64 = 600_000;
const PLAIN_DEFAULT_TIMEOUT_MILLIS: u64 = 30_000;
/// How long a command may run in the background.
const DEFAULT_BACKGROUND_TIMEOUT_MILLIS: u64 = 1_800_000;
const MAX_BACKGROUND_TIMEOUT_MILLIS: u64 = 7_200_000;

/// The claude face.
pub(crate) struct BashTool;

/// Input of [`Bash`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashInput {
    /// The command line, as bash reads it.
    command: String,
    /// Milliseconds after which it is stopped; 120000 where absent, 600000 at most; in the background 1800000 and
    /// 7200000.
    #[schemars(range(min = 1, max = 7_200_000))]
    timeout: Option<u64>,
    /// What the command does, in five to ten words.
    description: Option<String>,
    /// Go on at once; see TaskOutput and TaskStop.
    #[serde(default)]
    run_in_background: bool,
    /// Run it outside the sandbox; a person will usually be asked.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    dangerously_disable_sandbox: bool,
}

impl Tool for BashTool {
    type Input = BashInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "Bash",
            "Runs a command line with bash in a sandbox and gives what it wrote, in that order. Each call is a \
             fresh shell; only `cd` within the workspace carries over. Standard input is empty. It writes only in \
             the workspace and in $TMPDIR, and reaches the network as far as that was granted; the result says \
             what was refused. Long output is shortened, and kept whole in a file. Prefer Read, Grep and Glob for \
             looking at files.",
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

    fn intent(&self, input: &BashInput, scene: &CallContext) -> Intent {
        let cwd = scene.workspace.cwd.clone();
        command_intent(&input.command, cwd, input.dangerously_disable_sandbox, input.description.as_deref())
    }

    async fn run(&self, input: BashInput, cleared: Cleared) -> CallResult {
        let order = CommandRequest {
            text: input.command,
            cwd: cleared.context().workspace.cwd.clone(),
            description: input.description,
            unsandboxed: input.dangerously_disable_sandbox,
            background: input.run_in_background,
        };
        run_command(
            order,
            input.timeout,
            DEFAULT_TIMEOUT_MILLIS,
            CommandResultFormat::Claude,
            CwdCarryOver::Yes,
            &cleared,
        )
        .await
    }
}

/// The plain face.
pub(crate) struct ShellTool;

/// Input of [`ShellTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShellInput {
    /// The command line, as bash reads it.
    command: String,
    /// The directory to run it in; the working directory where absent.
    cwd: Option<String>,
    /// Milliseconds after which it is stopped; 30000 where absent, 600000 at most.
    #[schemars(range(min = 1, max = 7_200_000))]
    timeout: Option<u64>,
    /// What the command does, in a few words.
    description: Option<String>,
    /// Start it and go on at once.
    #[serde(default)]
    background: bool,
}

impl Tool for ShellTool {
    type Input = ShellInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "shell",
            "Runs a command line with bash in a sandbox and gives its exit code and output. Standard input is empty. \
             With `background` it goes on by itself: see its output with TaskOutput, stop it with TaskStop.",
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

    fn intent(&self, input: &ShellInput, scene: &CallContext) -> Intent {
        let cwd = scene.absolute_path(input.cwd.as_deref().unwrap_or("."));
        command_intent(&input.command, cwd, false, input.description.as_deref())
    }

    async fn run(&self, input: ShellInput, cleared: Cleared) -> CallResult {
        let carry = if input.cwd.is_some() { CwdCarryOver::No } else { CwdCarryOver::Yes };
        let order = CommandRequest {
            text: input.command,
            cwd: cleared.context().absolute_path(input.cwd.as_deref().unwrap_or(".")),
            description: input.description,
            unsandboxed: false,
            background: input.background,
        };
        run_command(
            order,
            input.timeout,
            PLAIN_DEFAULT_TIMEOUT_MILLIS,
            CommandResultFormat::Plain,
            carry,
            &cleared,
        )
        .await
    }
}

/// Whether the shell's last directory becomes the session's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CwdCarryOver {
    Yes,
    No,
}

fn check_command(command: &str) -> Result<(), Refusal> {
    if command.trim().is_empty() {
        return Err(Refusal::new(Code::BadArgument, "`/command` is empty"));
    }
    if command.contains('\0') {
        return Err(Refusal::new(Code::BadArgument, "`/command` has a zero byte in it"));
    }
    Ok(())
}

fn check_timeout(timeout: Option<u64>, background: bool) -> Result<(), Refusal> {
    let most = if background { MAX_BACKGROUND_TIMEOUT_MILLIS } else { MAX_TIMEOUT_MILLIS };
    match timeout {
        Some(millis) if millis > most => Err(Refusal::new(
            Code::BadArgument,
            format!("`/timeout` is {millis}, but {most} milliseconds are the most"),
        )
        .hint("run it in the background, or split the work")),
        Some(_) | None => Ok(()),
    }
}

/// Characters of the model's description that stand in a summary.
const MAX_DESCRIPTION_CHARS: usize = 160;

fn command_intent(command: &str, cwd: AbsPath, unsandboxed: bool, description: Option<&str>) -> Intent {
    let command = CommandLine { text: command.to_owned(), shell: ShellKind::Bash, cwd, unsandboxed };
    let summary = match description {
        // The model's own words come last and are short: they must not crowd out the command.
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

async fn run_command(
    order: CommandRequest,
    timeout: Option<u64>,
    default: u64,
    face: CommandResultFormat,
    carry: CwdCarryOver,
    cleared: &Cleared,
) -> CallResult {
    let tasks = cleared.context().session.state::<ShellTasks>();
    let surroundings = tasks.config();
    let task = start_command(&order, cleared)?;
    if order.background {
        let most = Duration::from_millis(timeout.unwrap_or(DEFAULT_BACKGROUND_TIMEOUT_MILLIS));
        return Ok(move_to_background(&task, cleared, most, "runs in the background"));
    }
    let most = Duration::from_millis(timeout.unwrap_or(default));
    let ended = follow_command(&task, cleared, most, surroundings.on_timeout).await;
    if ended == CommandWaitOutcome::MovedToBackground {
        let rest = Duration::from_millis(DEFAULT_BACKGROUND_TIMEOUT_MILLIS);
        return Ok(move_to_background(&task, cleared, rest, "ran out of time and goes on in the background"));
    }
    for anomaly in anomalies(&task) {
        cleared.progress().report_anomaly(anomaly);
    }
    let mut notes = Vec::new();
    if order.unsandboxed && task.process.enforcement().is_some() {
        notes.push("leaving the sandbox was not granted, so it ran inside".to_owned());
    }
    if carry == CwdCarryOver::Yes
        && ended == CommandWaitOutcome::Exited
        && let Some(cwd) = task.process.cwd()
    {
        notes.extend(carry_over_cwd(&cwd, cleared));
    }
    if task.is_live() {
        if tasks.live_count() < surroundings.max_background_tasks {
            tasks.retain_task(&task);
            detach_task(&task, cleared.progress());
        } else {
            task.process.send_stop(Duration::ZERO);
        }
    } else if task.process.output_snapshot().file.is_some() {
        tasks.retain_task(&task);
    }
    render_result(&task, ended, face, notes, surroundings.max_shown_bytes)
}

fn move_to_background(task: &Arc<ShellTask>, cleared: &Cleared, most: Duration, how: &str) -> Output {
    cleared.context().session.state::<ShellTasks>().retain_task(task);
    detach_task(task, cleared.progress());
    let late = Arc::downgrade(task);
    tokio::spawn(async move {
        tokio::time::sleep(most).await;
        if let Some(task) = late.upgrade() {
            task.process.send_stop(Duration::from_secs(1));
        }
    });
    let file = task.process.output_snapshot().file;
    let place = file.as_ref().map(|file| format!("; its output goes to {file}")).unwrap_or_default();
    Output::text(format!(
        "the command {how} as {}{place}\nsee its output with TaskOutput, stop it with TaskStop",
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

/// The next call starts where this one ended, if that is inside the workspace.
fn carry_over_cwd(cwd: &AbsPath, cleared: &Cleared) -> Option<String> {
    let session = &cleared.context().session;
    let real = resolve(cwd).real;
    let before = session.workspace().cwd.clone();
    if real == before || session.set_cwd(real.clone()) {
        return None;
    }
    Some(format!("the working directory stays {before}, because {real} is outside the workspace"))
}
