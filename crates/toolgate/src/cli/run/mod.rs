//! `toolgate run`: an agent on this gate, for people, for pipes, and for programs that drive it.

#[cfg(feature = "acp")]
mod acp_session;
mod agent_setup;
mod context_usage;
mod debug_log;
mod editor_context;
mod editor_lock;
mod file_capabilities;
mod host_session;
mod key_helper;
mod live_watcher;
#[cfg(feature = "web")]
mod named_urls;
mod permission_updates;
mod print_turn;
mod provider_choice;
mod read_attached;
mod repl;
mod run_args;
mod run_controls;
mod scheduled_runs;
mod server_controls;
mod session_events;
mod slash_command;
mod stored_session;

#[cfg(feature = "acp")]
pub(crate) use acp_session::{AcpArgs, run_acp};
pub(crate) use print_turn::note_left_worktree;
pub(crate) use run_args::{RUN_HELP, RunArgs, with_run_command};
pub(crate) use scheduled_runs::run_due_schedules;

use super::context::CliContext;
use super::output::CliOutput;
use super::{CliError, CliExitCode};
use run_args::{RunInputFormat, RunOutputFormat};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use toolgate_process::{StandardStream, is_terminal};

/// How long the command waits for the runtime's tasks at its end: a tool that ignores cancellation must not block it.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);
/// How much of standard input is added to a prompt.
const MAX_INPUT_BYTES: u64 = 8 * 1024 * 1024;

/// Runs the agent.
pub(crate) fn run(context: CliContext, args: RunArgs, out: &mut CliOutput) -> Result<CliExitCode, CliError> {
    let context = Arc::new(context);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let exit = match args.input_format {
        RunInputFormat::StreamJson => {
            if args.output_format != RunOutputFormat::StreamJson {
                return Err(CliError::Usage(
                    "--input-format stream-json needs --output-format stream-json".to_owned(),
                ));
            }
            runtime.block_on(host_session::run_host_session(&context, &args, out))
        }
        RunInputFormat::Text if is_conversation(&args) => {
            runtime.block_on(repl::run_repl(&context, &args, out))
        }
        RunInputFormat::Text => {
            let prompt = read_prompt(&args)?;
            runtime.block_on(print_turn::run_prompt(&context, &args, &prompt, out))
        }
    };
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    exit
}

/// Whether there is a user at a terminal to talk with, and no prompt yet.
fn is_conversation(args: &RunArgs) -> bool {
    let is_open = is_terminal(StandardStream::Stdin) && is_terminal(StandardStream::Stdout);
    args.prompt.is_empty() && !args.print && args.output_format == RunOutputFormat::Text && is_open
}

/// The prompt: the arguments, and what is piped in.
fn read_prompt(args: &RunArgs) -> Result<String, CliError> {
    let mut prompt = args.prompt.join(" ");
    if !is_terminal(StandardStream::Stdin) {
        let mut bytes = Vec::new();
        std::io::stdin().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_INPUT_BYTES {
            return Err(CliError::Usage(format!("standard input is larger than {MAX_INPUT_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| CliError::Usage("standard input is not UTF-8 text".to_owned()))?;
        if !text.trim().is_empty() {
            if !prompt.is_empty() {
                prompt.push_str("\n\n");
            }
            prompt.push_str(text.trim_end());
        }
    }
    if prompt.trim().is_empty() {
        return Err(CliError::Usage(
            "there is no prompt; give one as an argument or on standard input".to_owned(),
        ));
    }
    Ok(prompt)
}
