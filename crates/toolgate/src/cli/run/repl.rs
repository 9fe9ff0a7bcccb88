//! The conversation at a terminal: a prompt, the work, the next prompt.

use super::super::context::CliContext;
use super::super::output::{CliOutput, paint, style};
use super::super::stop_signals::{StopRequest, StopSignals};
use super::super::{CliError, CliExitCode};
use super::agent_setup::{AgentSetup, SetupAdditions};
use super::host_session::offer_questions;
use super::key_helper::StatusLine;
use super::live_watcher::LiveWatcher;
use super::permission_updates::HostPermissionUpdates;
use super::print_turn::close_setup;
use super::read_attached::read_attached;
use super::run_args::RunArgs;
use super::session_events::{TakenSchedules, next_session_event};
use super::slash_command::SlashCommands;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use toolgate::agent::conversation::text_block;
use toolgate::agent::{AgentLoop, AgentObserver, TurnEnding, new_message_id};
use toolgate::host::TurnInterrupt;
use toolgate::{Toolgate, render};

/// How often the conversation looks for schedules and lines of watched commands while the user types.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// What the user typed.
enum TypedLine {
    /// A prompt or a slash command.
    Text(String),
    /// Not typed: a schedule that is due, or lines of a watched command.
    Scheduled(String),
    /// Ctrl-C at an empty prompt.
    Interrupt,
    /// Ctrl-D.
    End,
}

/// Runs a conversation until the user ends it.
pub(super) async fn run_repl(
    context: &Arc<CliContext>,
    args: &RunArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let turn = Arc::new(TurnInterrupt::default());
    let terminal = context.detect_terminal(out, Arc::clone(&turn))?;
    let setup =
        AgentSetup::build(context, args, &SetupAdditions::default(), out, |builder| match terminal {
            Some(terminal) => offer_questions(builder.approver(terminal)),
            None => builder,
        })?;
    setup.wait_for_servers().await?;
    setup.recording.check_prompt_tool()?;
    let watcher = Arc::new(LiveWatcher::new(out.is_colorful()));
    watcher.start_progress(out.is_colorful());
    let agent = Arc::new(setup.agent(vec![Arc::clone(&watcher) as Arc<dyn AgentObserver>], Vec::new()));
    agent.attach(read_attached(&setup.recording.toolgate, &args.files).await?);
    let status = status_line(context, &setup);
    let updates = Arc::new(HostPermissionUpdates::new(context));
    updates.connect(setup.recording.toolgate.clone());
    let commands = SlashCommands {
        toolgate: setup.recording.toolgate.clone(),
        agent: Arc::clone(&agent),
        updates,
        journal_dir: context.journal_dir(),
    };
    let intro =
        format!("{} in {}; /help lists the commands, Ctrl-D ends", agent.settings().model, context.cwd());
    watcher.write_line(&paint(style::FAINT, &render::escape_invisible(&intro)));
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let mut signals = StopSignals::listen()?;
    loop {
        if let Some(status) = &status
            && let Some(line) = status.render(&describe_session(&setup, &agent)).await
        {
            watcher.write_line(&paint(style::FAINT, &render::escape_invisible(&line)));
        }
        watcher.write_prompt();
        let idle = agent.start_idle_timer();
        let typed = read_line(&mut input, &mut signals, &setup.recording.toolgate).await?;
        drop(idle);
        match typed {
            TypedLine::Scheduled(text) => {
                let shown = text.lines().next().unwrap_or_default();
                watcher.write_line(&paint(style::FAINT, &render::escape_invisible(shown)));
                if run_line(&text, &agent, &commands, (&watcher, &turn, &mut signals)).await.is_break() {
                    break;
                }
            }
            TypedLine::End | TypedLine::Interrupt => break,
            TypedLine::Text(text) if text.trim().is_empty() => {}
            TypedLine::Text(text) if matches!(text.trim(), "/exit" | "/quit") => break,
            TypedLine::Text(text) => {
                if !text.starts_with('/') {
                    setup.attach_editor_context(&agent).await;
                }
                if run_line(&text, &agent, &commands, (&watcher, &turn, &mut signals)).await.is_break() {
                    break;
                }
            }
        }
    }
    watcher.write_line("");
    drop(commands);
    agent.end_session("prompt_input_exit").await;
    let id = setup.session.id.clone();
    let is_stored = setup.session.path.is_some() && !agent.messages().is_empty();
    close_setup(setup, out).await;
    if is_stored {
        out.print_note(&format!("go on with `toolgate run --resume {id}`"));
    }
    Ok(CliExitCode::Ok)
}

/// The program that writes the line before a prompt, if trusted settings name one.
fn status_line(context: &CliContext, setup: &AgentSetup) -> Option<StatusLine> {
    let settings = setup.recording.toolgate.settings();
    let section = settings.merged().status_line.as_ref()?;
    let is_command = section.kind.as_deref().is_none_or(|kind| kind == "command");
    let command =
        Some(section.command.as_str()).filter(|command| is_command && !command.trim().is_empty())?;
    let cwd = setup.recording.toolgate.session().workspace().cwd.clone();
    Some(StatusLine::new(command, cwd, context.ambient.env.clone()))
}

/// The input of the program of the status line.
fn describe_session(setup: &AgentSetup, agent: &AgentLoop) -> Value {
    let toolgate = &setup.recording.toolgate;
    let (settings, usage) = (agent.settings(), agent.context_usage());
    let cwd = toolgate.session().workspace().cwd.clone();
    json!({
        "hook_event_name": "Status",
        "session_id": setup.session.id,
        "transcript_path": setup.session.path,
        "cwd": cwd,
        "model": { "id": settings.model, "display_name": settings.model },
        "workspace": { "current_dir": cwd, "project_dir": cwd },
        "version": env!("CARGO_PKG_VERSION"),
        "permission_mode": toolgate.mode().as_str(),
        "cost": { "total_cost_usd": agent.meter().total_cost_usd() },
        "context_window": {
            "used_tokens": usage.context_tokens() + usage.output_tokens,
            "context_window_size": settings.context_tokens,
        },
    })
}

/// Runs what the user typed: a command or a prompt. Ctrl-C interrupts it; a second one does not wait for its end, and ends
/// the conversation.
async fn run_line(
    text: &str,
    agent: &AgentLoop,
    commands: &SlashCommands,
    (watcher, turn, signals): (&LiveWatcher, &TurnInterrupt, &mut StopSignals),
) -> ControlFlow<()> {
    let cancel = turn.begin_turn();
    let work = async {
        match commands.run(text, &cancel).await {
            Some(Ok(answer)) => watcher.write_line(&render::escape_invisible(&answer)),
            Some(Err(problem)) => watcher.write_line(&paint(style::BAD, &render::escape_invisible(&problem))),
            None if text.starts_with('/')
                && !text.contains(' ')
                && !text.trim_start_matches('/').contains('/')
                && !commands.is_skill(text) =>
            {
                watcher.write_line("unknown command; /help lists the commands");
            }
            None => {
                let report = agent.run_user_turn(&new_message_id(), vec![text_block(text)], &cancel).await;
                watcher.print_end(agent, &report);
                if matches!(report.ending, TurnEnding::Interrupted { .. }) {
                    watcher.write_line(&paint(
                        style::FAINT,
                        "tell it how to go on, or press Ctrl-C again to end",
                    ));
                }
            }
        }
    };
    tokio::pin!(work);
    let mut is_ending = false;
    let flow = loop {
        tokio::select! {
            biased;
            () = &mut work => break match is_ending {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            },
            request = signals.recv() => match cancel.is_cancelled() {
                true => break ControlFlow::Break(()),
                false => {
                    is_ending = request == StopRequest::End;
                    cancel.cancel();
                }
            },
        }
    };
    turn.end_turn();
    flow
}

/// The next line of the user, or what the agent waits for; a signal gives up waiting.
async fn read_line(
    input: &mut Lines<BufReader<Stdin>>,
    signals: &mut StopSignals,
    toolgate: &Toolgate,
) -> std::io::Result<TypedLine> {
    loop {
        tokio::select! {
            line = input.next_line() => return Ok(line?.map_or(TypedLine::End, TypedLine::Text)),
            _ = signals.recv() => return Ok(TypedLine::Interrupt),
            () = tokio::time::sleep(EVENT_INTERVAL) => {
                if let Some(text) = next_session_event(toolgate, TakenSchedules::OfProject) {
                    return Ok(TypedLine::Scheduled(text));
                }
            }
        }
    }
}
