//! One prompt, its answer on standard output: for pipes, scripts and quick questions at a terminal.

use super::super::context::{CliContext, RecordingToolgate};
use super::super::output::CliOutput;
use super::super::stop_signals::StopSignals;
use super::super::{CliError, CliExitCode};
use super::agent_setup::{AgentSetup, SetupAdditions};
use super::host_session::offer_questions;
use super::live_watcher::LiveWatcher;
use super::read_attached::read_attached;
use super::run_args::{RunArgs, RunOutputFormat};
use super::run_controls::init_fields;
use super::server_controls::{CONFIGURED_SOURCE, mcp_server_list};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::agent::conversation::text_block;
use toolgate::agent::subagent::BackgroundAgents;
use toolgate::agent::{
    AgentEvent, AgentLoop, AgentObserver, AgentOrigin, TurnEnding, TurnReport, new_message_id,
};
use toolgate::host::{FrameRenderer, FrameWriter, result_frame};
use toolgate::{LeftWorktree, Toolgate, render};
use toolgate_process::{StandardStream, is_terminal};

/// How long the command waits for background hooks after the last call.
const BACKGROUND_HOOKS_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs one prompt.
pub(super) async fn run_prompt(
    context: &Arc<CliContext>,
    args: &RunArgs,
    prompt: &str,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let cancel = CancellationToken::new();
    let force = cancel_on_interrupt(cancel.clone())?;
    let is_watched =
        !args.print && args.output_format == RunOutputFormat::Text && is_terminal(StandardStream::Stdout);
    let terminal = match args.print {
        true => None,
        false => context.detect_terminal(out, cancel.clone())?,
    };
    let setup =
        AgentSetup::build(context, args, &SetupAdditions::default(), out, |builder| match terminal {
            Some(terminal) => offer_questions(builder.approver(terminal)),
            None => builder,
        })?;
    setup.wait_for_servers().await?;
    setup.recording.check_prompt_tool()?;
    let printer = TurnPrinter::new(args, is_watched, &setup, out)?;
    let agent = setup.agent(printer.observers(), Vec::new());
    agent.attach(read_attached(&setup.recording.toolgate, &args.files).await?);
    setup.attach_editor_context(&agent).await;
    printer.write_init(&setup, &agent);
    BackgroundAgents::of(setup.recording.toolgate.session()).limit_wait(setup.max_wait());
    let id = new_message_id();
    let report = tokio::select! {
        biased;
        report = agent.run_user_turn(&id, vec![text_block(prompt)], &cancel) => report,
        // The user does not want to wait for the end of the turn.
        () = force.cancelled() => return Ok(CliExitCode::Interrupted),
    };
    agent.end_session("other").await;
    printer.finish(&agent, &report, out).await?;
    close_setup(setup, out).await;
    Ok(exit_code(&report))
}

/// Ends what a run started, and says what could not be written.
pub(super) async fn close_setup(setup: AgentSetup, out: &mut CliOutput) {
    let is_done = setup.recording.toolgate.wait_for_background_hooks(BACKGROUND_HOOKS_TIMEOUT).await;
    if !is_done {
        out.print_note(&format!(
            "background hooks were stopped after {} seconds",
            BACKGROUND_HOOKS_TIMEOUT.as_secs()
        ));
    }
    note_left_worktree(&setup.recording.toolgate, out).await;
    setup.recording.toolgate.close_sources().await;
    if let Some(problem) = setup.transcript.as_ref().and_then(|transcript| transcript.problem()) {
        out.print_note(&format!("the transcript of the session is not complete: {problem}"));
    }
    let RecordingToolgate { ledger, telemetry, .. } = setup.recording;
    telemetry.finish(out);
    if let Some(error) = ledger.and_then(|ledger| ledger.last_error()) {
        out.print_note(&format!("some records could not be written to the ledger: {error}"));
    }
}

/// Leaves the git worktree that the session is in: one without changes is removed, and another is reported to the user.
pub(crate) async fn note_left_worktree(toolgate: &Toolgate, out: &mut CliOutput) {
    let session = toolgate.session().clone();
    if session.entered_root().is_none() {
        return;
    }
    match toolgate_files::run_blocking(move || toolgate::leave_worktree(&session)).await {
        Ok(Ok(Some(LeftWorktree::Kept(worktree, changes)))) => out.print_note(&format!(
            "the worktree {} is kept on branch {}: {} changed files, {} commits of its own",
            worktree.path, worktree.branch, changes.files, changes.commits
        )),
        Ok(Ok(Some(LeftWorktree::Removed(worktree)))) => {
            out.print_note(&format!("the worktree {} had no changes and was removed", worktree.path));
        }
        Ok(Ok(_)) => {}
        Ok(Err(problem)) => out.print_note(&format!("the worktree could not be left: {problem}")),
        Err(problem) => out.print_note(&format!("the worktree could not be left: {problem}")),
    }
}

/// The exit code of a turn.
pub(super) fn exit_code(report: &TurnReport) -> CliExitCode {
    match &report.ending {
        TurnEnding::Completed | TurnEnding::HookStopped(_) => CliExitCode::Ok,
        TurnEnding::Interrupted { .. } => CliExitCode::Interrupted,
        TurnEnding::RequestFailed(_)
        | TurnEnding::MaxTurns(_)
        | TurnEnding::MaxBudget(_)
        | TurnEnding::StructuredOutputFailed
        | TurnEnding::PromptRefused(_)
        | _ => CliExitCode::ToolFailed,
    }
}

/// A signal ends the turn. The token that is returned is cancelled by a second one.
fn cancel_on_interrupt(cancel: CancellationToken) -> std::io::Result<CancellationToken> {
    let mut signals = StopSignals::listen()?;
    let force = CancellationToken::new();
    let tokens = [cancel, force.clone()];
    tokio::spawn(async move {
        for token in tokens {
            signals.recv().await;
            token.cancel();
        }
    });
    Ok(force)
}

/// Prints a turn in the format that was asked for.
enum TurnPrinter {
    /// The last text of the model at the end; notices on standard error.
    Text(Arc<QuietWatcher>),
    /// Text and calls as they come, at a terminal.
    Live(Arc<LiveWatcher>),
    /// The result frame at the end.
    Json(Arc<QuietWatcher>),
    /// Every frame as it comes.
    Stream(Arc<FrameRenderer>, FrameWriter),
}

impl TurnPrinter {
    /// The printer for the format that was asked for.
    fn new(args: &RunArgs, is_watched: bool, setup: &AgentSetup, out: &CliOutput) -> Result<Self, CliError> {
        Ok(match args.output_format {
            RunOutputFormat::Text if is_watched => {
                let watcher = Arc::new(LiveWatcher::new(out.is_colorful()));
                watcher.start_progress(out.is_colorful());
                Self::Live(watcher)
            }
            RunOutputFormat::Text => Self::Text(Arc::default()),
            RunOutputFormat::Json => Self::Json(Arc::default()),
            RunOutputFormat::StreamJson => {
                let (_, sink) = toolgate_process::standard_streams()?;
                let writer = FrameWriter::start(sink);
                let renderer = FrameRenderer::new(writer.clone(), setup.session.id.clone())
                    .with_partial_messages(args.include_partial_messages)
                    .with_hook_events(args.include_hook_events)
                    .with_replayed_prompts(args.replay_user_messages);
                Self::Stream(Arc::new(renderer), writer)
            }
        })
    }

    /// What watches the turn.
    fn observers(&self) -> Vec<Arc<dyn AgentObserver>> {
        vec![match self {
            Self::Text(watcher) | Self::Json(watcher) => Arc::clone(watcher) as Arc<dyn AgentObserver>,
            Self::Live(watcher) => Arc::clone(watcher) as Arc<dyn AgentObserver>,
            Self::Stream(renderer, _) => Arc::clone(renderer) as Arc<dyn AgentObserver>,
        }]
    }

    /// The frame that begins a stream.
    fn write_init(&self, setup: &AgentSetup, agent: &AgentLoop) {
        if let Self::Stream(renderer, _) = self {
            let servers =
                setup.coordinator.iter().flat_map(|it| mcp_server_list(it, CONFIGURED_SOURCE)).collect();
            let agents = setup.subagents.types();
            renderer.write_init(init_fields(
                &setup.recording.toolgate,
                agent,
                (setup.provider.key_source, &setup.output_style),
                (servers, &agents),
            ));
        }
    }

    /// Prints the result in the requested output format after the turn, with the notices that were held back.
    async fn finish(
        &self,
        agent: &AgentLoop,
        report: &TurnReport,
        out: &mut CliOutput,
    ) -> Result<(), CliError> {
        let settings = agent.settings();
        let result = || result_frame(report, agent.meter(), settings.context_tokens, settings.max_tokens);
        match self {
            Self::Text(watcher) => {
                watcher.print_notices(out);
                match report.ending.message() {
                    Some(message) => out.print_error(&message),
                    None => out.print_line(&render::escape_invisible(&report.text))?,
                }
            }
            Self::Live(watcher) => watcher.print_end(agent, report),
            Self::Json(watcher) => {
                watcher.print_notices(out);
                let mut frame = result();
                if let Some(frame) = frame.as_object_mut() {
                    frame.insert("session_id".to_owned(), json!(agent.session().id()));
                }
                out.print_line(&frame.to_string())?;
            }
            Self::Stream(renderer, writer) => {
                renderer.write(result());
                writer.flush().await;
                if let Some(message) = report.ending.message().filter(|_| report.ending.is_error()) {
                    out.print_error(&message);
                }
            }
        }
        Ok(())
    }
}

/// Keeps notices until the end, so that they do not mix with the result.
#[derive(Default)]
struct QuietWatcher {
    /// Notices in the order of arrival; a mutex, because the observer receives events through a shared reference.
    notices: Mutex<Vec<String>>,
}

impl QuietWatcher {
    /// Prints what was kept.
    fn print_notices(&self, out: &mut CliOutput) {
        let notices = std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        notices.iter().for_each(|notice| out.print_note(notice));
    }
}

impl AgentObserver for QuietWatcher {
    /// Collects notices and retries. All other events are part of the result, which is printed at the end.
    fn observe(&self, _: &AgentOrigin, event: &AgentEvent) {
        let notice = match event {
            AgentEvent::Noticed(text) => text.clone(),
            AgentEvent::Retrying(notice) => format!(
                "{}; trying again in {:.1} s (attempt {} of {})",
                notice.error,
                notice.delay.as_secs_f64(),
                notice.attempt,
                notice.max_retries
            ),
            _ => return,
        };
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }
}
