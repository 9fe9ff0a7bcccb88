//! `toolgate call`: makes one tool call, or a batch, with the settings and servers of the project.
//!
//! Each run is a session of its own: what one `toolgate call` read does not count as read for the next.

use super::context::{CliContext, RecordingToolgate};
use super::listed_values::list_tools;
use super::mcp::{UpstreamServers, parse_server_name};
use super::output::CliOutput;
use super::run::note_left_worktree;
use super::stop_signals::cancel_at_signal;
use super::trust::ask_about_wide_workspace;
use super::unknown_tools::explain_unknown_servers;
use super::{CliError, CliExitCode, call_batch, progress};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use toolgate::mcp::client::{McpCoordinator, ServerState};
use toolgate::{CallOptions, CallOutcome, Code, ToolCall, Toolgate, Verdict, render};

/// How long the command waits for background hooks after the last call.
const BACKGROUND_HOOKS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the command waits for the runtime's tasks at its end: a tool that ignores cancellation must not block it.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Arguments of `toolgate call`.
#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// The tool to call
    #[arg(required_unless_present = "batch", value_parser = list_tools(), hide_possible_values = true)]
    pub(crate) name: Option<String>,
    /// Its input as a JSON object; `-` reads it from standard input
    #[arg(default_value = "{}")]
    pub(crate) input: String,
    /// Make many calls, concurrently where their effects do not conflict. FILE has one JSON object per line,
    /// `{"id"?,"tool","input"?}`; `-` reads standard input. Prints one result per line, in the order of the calls
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["name", "id"])]
    pub(crate) batch: Option<String>,
    /// Format of the result [default: text; json with --batch or --json]. One that is given replaces that of --json
    #[arg(long, value_name = "FORM")]
    pub(crate) form: Option<ResultForm>,
    /// Cancel the call after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    /// Id of the call, which the result repeats
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

impl CallArgs {
    /// The format of the results: the one that is given, else JSON for `--json` and for a batch. `--json` promises JSON,
    /// so text for people beside it is an error.
    pub(crate) fn result_form(&self, context: &CliContext) -> Result<ResultForm, CliError> {
        match (self.form, context.global.json) {
            (Some(ResultForm::Text), true) => Err(CliError::Usage(
                "--json and `--form text` exclude each other; leave one of them out".to_owned(),
            )),
            (Some(form), _) => Ok(form),
            (None, true) => Ok(ResultForm::Json),
            (None, false) if self.batch.is_some() => Ok(ResultForm::Json),
            (None, false) => Ok(ResultForm::Text),
        }
    }

    /// Whether the result is text for the user, not a format for a program or a model.
    fn is_for_user(&self, context: &CliContext) -> bool {
        !context.global.json && self.batch.is_none() && matches!(self.form, None | Some(ResultForm::Text))
    }
}

/// Format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultForm {
    /// Text for people
    Text,
    /// A `tool_result` block of the Anthropic API
    Anthropic,
    /// A message with the role `tool` of the OpenAI API
    Openai,
    /// A `CallToolResult` of MCP
    Mcp,
    /// The result and the record as JSON
    Json,
}

/// Makes the call and prints its result.
pub(crate) fn run(
    context: &CliContext,
    args: &CallArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    // Before the call: a wrong command line changes nothing.
    let form = args.result_form(context)?;
    if let Some(file) = &args.batch {
        return call_batch::run_call_batch(context, args, file, form, out);
    }
    let input = context.read_argument(&args.input)?;
    let id = args.id.clone().unwrap_or_else(|| toolgate_files::generate_id("call_"));
    let call = ToolCall::new(id, args.name.clone().unwrap_or_default(), input);
    let outcomes = make_calls(context, args, RequestedCalls::One(call), out)?;
    let mut exit = CliExitCode::Ok;
    for outcome in &outcomes {
        print_outcome(form, outcome, out)?;
        let structured = outcome.result.as_ref().ok().and_then(|output| output.structured.as_ref());
        if structured.is_some_and(|value| value.get("backgroundTaskId").is_some()) {
            out.print_note(
                "each `toolgate call` is a session of its own, so the background task ended with it; use --batch or \
                 `toolgate mcp serve` to keep a session open",
            );
        }
        if let Err(refusal) = &outcome.result {
            exit = CliExitCode::of(refusal);
            if refusal.code == Code::NotRead {
                out.print_note(
                    "each `toolgate call` is a session of its own, so earlier reads do not count; put the read and \
                     the change into one --batch, or use `toolgate mcp serve`",
                );
            }
        }
    }
    Ok(exit)
}

/// The calls of one run of the command.
pub(crate) enum RequestedCalls {
    /// The call on the command line.
    One(ToolCall),
    /// The calls of `--batch`, which are scheduled together and end with the `PostToolBatch` hooks.
    Batch(Vec<ToolCall>),
}

impl RequestedCalls {
    /// The calls, in order.
    fn as_slice(&self) -> &[ToolCall] {
        match self {
            Self::One(call) => std::slice::from_ref(call),
            Self::Batch(calls) => calls,
        }
    }

    /// Makes the calls.
    async fn run_on(self, toolgate: &Toolgate, options: CallOptions) -> Vec<CallOutcome> {
        match self {
            Self::One(call) => vec![toolgate.call_with_options(call, options.with_last_call(true)).await],
            Self::Batch(calls) => toolgate.call_batch(calls, options.with_last_call(true)).await,
        }
    }
}

/// Makes the calls: handles Ctrl-C, shows progress, starts the servers that the calls need, and flushes the ledger and
/// telemetry.
pub(crate) fn make_calls(
    context: &CliContext,
    args: &CallArgs,
    calls: RequestedCalls,
    out: &mut CliOutput,
) -> Result<Vec<CallOutcome>, CliError> {
    let timeout = match args.timeout {
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            CliError::Usage(format!("invalid --timeout `{seconds}`; give seconds, such as 30"))
        })?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let cancel = CancellationToken::new();
    let recording = context.build_recording(&cancel, out)?;
    let toolgate = &recording.toolgate;
    if calls.as_slice().iter().any(|call| needs_accepted_workspace(toolgate, call)) {
        ask_about_wide_workspace(context)?;
    }
    {
        // Only now: until a call is made, a signal may end the process at once.
        let _entered = runtime.enter();
        cancel_at_signal(cancel.clone())?;
    }
    let options = CallOptions::default().with_cancel(cancel).with_timeout(timeout);
    let events = progress::is_wanted(&context.global).then(|| toolgate.events());
    let progress = events.map(|events| runtime.spawn(progress::show(events, calls.as_slice().len())));
    let (outcomes, hooks_finished) = runtime.block_on(async {
        let is_for_user = args.is_for_user(context);
        let mut outcomes = run_with_servers(context, &recording, calls, options, is_for_user, out).await?;
        explain_unknown_servers(context, toolgate, &mut outcomes, is_for_user, out);
        explain_hidden_tools(toolgate, &mut outcomes, is_for_user, out);
        note_left_worktree(toolgate, out).await;
        // Language servers end with the session.
        toolgate.close_sources().await;
        if let Some(progress) = progress {
            // The task ends with the last call; its line must be erased before a result is printed.
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, progress).await;
        }
        Ok::<_, CliError>((outcomes, toolgate.wait_for_background_hooks(BACKGROUND_HOOKS_TIMEOUT).await))
    })?;
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    let RecordingToolgate { ledger, telemetry, .. } = recording;
    telemetry.finish(out);
    if let Some(error) = ledger.and_then(|ledger| ledger.last_error()) {
        out.print_note(&format!("some records could not be written to the ledger: {error}"));
    }
    if !hooks_finished {
        out.print_note(&format!(
            "background hooks were stopped after {} seconds",
            BACKGROUND_HOOKS_TIMEOUT.as_secs()
        ));
    }
    print_hook_messages(&outcomes, out);
    Ok(outcomes)
}

/// Whether a call needs approval because the workspace contains the home directory. A call that is allowed or denied
/// all the same, such as `ls`, does not.
fn needs_accepted_workspace(toolgate: &Toolgate, call: &ToolCall) -> bool {
    let Some(question) = toolgate.settings().wide_question() else { return false };
    let judged = toolgate.check(call.name.as_str(), &call.input);
    judged.is_ok_and(|judgement| {
        matches!(judgement.verdict, Verdict::Ask(_))
            && judgement.steps.iter().any(|step| step.found.contains(&question))
    })
}

/// Says which rule or setting hides a tool that the result calls unknown. A result in a format for models stays as it is,
/// because a model must not learn what it may not see; there the user gets a note.
fn explain_hidden_tools(
    toolgate: &Toolgate,
    outcomes: &mut [CallOutcome],
    is_for_user: bool,
    out: &mut CliOutput,
) {
    for outcome in outcomes {
        let Err(refusal) = &mut outcome.result else { continue };
        let hidden = toolgate.hidden_reason(outcome.record.asked.as_str());
        let Some(reason) = hidden.filter(|_| refusal.code == Code::UnknownTool) else { continue };
        if is_for_user {
            refusal.reason = reason;
            refusal.hint = "change that to use it; `toolgate tools` lists the tools there are".to_owned();
        } else {
            out.print_note(&reason);
        }
    }
}

/// Starts the MCP servers that the calls need, makes the calls, and stops the servers. What is wrong with the servers is
/// printed afterwards, as far as no refusal says it.
async fn run_with_servers(
    context: &CliContext,
    recording: &RecordingToolgate,
    calls: RequestedCalls,
    options: CallOptions,
    is_for_user: bool,
    out: &mut CliOutput,
) -> Result<Vec<CallOutcome>, CliError> {
    let toolgate = &recording.toolgate;
    let upstreams = find_required_servers(context, calls.as_slice(), toolgate, out)?;
    if upstreams.servers.is_empty() {
        recording.check_prompt_tool()?;
        return Ok(calls.run_on(toolgate, options).await);
    }
    let coordinator = upstreams.into_coordinator(context, &toolgate.settings())?;
    toolgate.add_source(coordinator.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
    let options = wait_for_servers(&coordinator, options).await;
    let notes = describe_server_problems(&coordinator.states());
    let outcomes = match recording.check_prompt_tool() {
        Ok(()) => Ok(calls.run_on(toolgate, options).await),
        Err(error) => Err(error),
    };
    let refused = outcomes.iter().flatten().filter_map(|outcome| outcome.result.as_ref().err());
    let refused: Vec<&str> = refused.filter(|_| is_for_user).map(|refusal| refusal.reason.as_str()).collect();
    for (problem, note) in &notes {
        // Said once: the refusal that is printed to the same user has it.
        if !refused.iter().any(|reason| reason.contains(problem.as_str())) {
            out.print_note(note);
        }
    }
    coordinator.close().await;
    outcomes
}

/// What is wrong with servers, each problem with the note about it. The tools of a server that did not start do not exist,
/// and its own error says more than "unknown tool".
fn describe_server_problems(states: &[ServerState]) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    for state in states {
        if let Some(error) = &state.error {
            let refusal = error.refusal(&state.name);
            let note = format!("{} ({})", refusal.reason, refusal.hint);
            notes.push((refusal.reason, note));
        }
        let is_starting = state.era.is_none() && state.error.is_none();
        let starting = is_starting.then(|| format!("server `{}` is still starting", state.name));
        let problems = state.problems.iter().map(|problem| format!("server `{}`: {problem}", state.name));
        notes.extend(starting.into_iter().chain(problems).map(|note| (note.clone(), note)));
    }
    notes
}

/// Waits until the servers are connected or have failed, at most as long as the calls may take; the time counts for them.
/// A call of a server that is not ready by then is refused by the gate like any call that takes too long.
async fn wait_for_servers(coordinator: &McpCoordinator, options: CallOptions) -> CallOptions {
    let started = Instant::now();
    let ready = async {
        tokio::select! {
            () = coordinator.wait_until_ready() => {}
            () = options.cancel.cancelled() => {}
        }
    };
    let Some(timeout) = options.timeout else {
        ready.await;
        return options;
    };
    let _ = tokio::time::timeout(timeout, ready).await;
    options.with_timeout(Some(timeout.saturating_sub(started.elapsed())))
}

/// Prints what hooks say to the user, and their requests to stop the agent.
fn print_hook_messages(outcomes: &[CallOutcome], out: &mut CliOutput) {
    for outcome in outcomes {
        for message in &outcome.messages {
            out.print_note(message);
        }
        if let Some(reason) = &outcome.stop {
            out.print_note(&format!("a hook asks the agent to stop: {reason}"));
        }
    }
}

/// The servers that the calls need: those whose tools are called, those of hooks and of the prompt tool, or all of them
/// for the tools that list and read MCP resources. Without such calls no server is started.
fn find_required_servers(
    context: &CliContext,
    calls: &[ToolCall],
    toolgate: &Toolgate,
    out: &mut CliOutput,
) -> Result<UpstreamServers, CliError> {
    let settings = toolgate.settings();
    let mut named: BTreeSet<String> =
        calls.iter().filter_map(|call| parse_server_name(call.name.as_str())).map(str::to_owned).collect();
    let all = calls.iter().any(|call| call.name.as_str().contains("McpResource"));
    let prompt = context.global.permission_prompt_tool.as_deref().and_then(parse_server_name);
    if named.is_empty() && !all && prompt.is_none() && settings.hook_servers().is_empty() {
        return Ok(UpstreamServers { servers: Vec::new(), problems: Vec::new() });
    }
    let mut upstreams = UpstreamServers::discover(context, &settings, out)?;
    named.append(&mut upstreams.mark_required(context, &settings));
    upstreams.servers.retain(|entry| all || named.contains(&entry.name));
    upstreams.servers.iter_mut().for_each(|entry| entry.always_load = true);
    Ok(upstreams)
}

/// Prints a result in a format: text to standard output or standard error, other formats to standard output.
pub(crate) fn print_outcome(
    form: ResultForm,
    outcome: &CallOutcome,
    out: &mut CliOutput,
) -> Result<(), CliError> {
    match (form, &outcome.result) {
        (ResultForm::Text, Ok(output)) => {
            out.print_raw(&end_line(render::escape_invisible(&output.model_text())))?;
        }
        (ResultForm::Text, Err(_)) => out.print_failure(&render::terminal_text(&outcome.result)),
        (form, _) => out.print_line(&render_outcome(form, outcome).to_string())?,
    }
    Ok(())
}

/// A text with a line end. An empty text has no line: a command that prints nothing prints nothing here either.
fn end_line(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A result in one of the JSON formats.
pub(crate) fn render_outcome(form: ResultForm, outcome: &CallOutcome) -> Value {
    let CallOutcome { result, record, .. } = outcome;
    match form {
        ResultForm::Anthropic => render::anthropic_result(&record.call, result),
        ResultForm::Openai => render::openai_message(&record.call, result),
        ResultForm::Mcp => render::mcp_result(result),
        ResultForm::Text | ResultForm::Json => match result {
            Ok(output) => json!({ "output": output, "record": record }),
            Err(refusal) => json!({ "refusal": refusal, "record": record }),
        },
    }
}
