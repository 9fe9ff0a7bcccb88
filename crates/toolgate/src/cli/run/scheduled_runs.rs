//! Prompts that agents scheduled: those that are due run as a prompt on the command line would, without questions.

use super::super::context::CliContext;
use super::super::output::CliOutput;
use super::super::stop_signals::StopSignals;
use super::super::{CliError, CliExitCode};
use super::SHUTDOWN_TIMEOUT;
use super::agent_setup::key_helper;
use super::print_turn::run_prompt;
use super::provider_choice::ProviderChoice;
use super::run_args::RunArgs;
use clap::Parser;
use std::sync::Arc;
use std::time::Duration;
use toolgate::settings::LoadedSettings;
use toolgate::state::{ScheduleOwner, ScheduleStore};

/// How often the store is looked at while waiting. A look is one query of an index.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The options of a run, parsed by themselves.
#[derive(Debug, Parser)]
#[command(name = "toolgate schedule run --", no_binary_name = true)]
struct ScheduledRunArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Runs what is due; with `watch` until Ctrl-C.
pub(crate) fn run_due_schedules(
    context: CliContext,
    store: &ScheduleStore,
    (owner, watch): (&ScheduleOwner, bool),
    options: &[String],
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let mut args = ScheduledRunArgs::try_parse_from(options)
        .map_err(|error| CliError::Usage(error.to_string().trim_start_matches("error: ").trim().to_owned()))?
        .run;
    if !args.prompt.is_empty() {
        return Err(CliError::Usage(
            "a schedule has its own prompt; give options of `toolgate run` only".into(),
        ));
    }
    args.print = true;
    // Before anything is claimed: a run that cannot begin is lost.
    let settings = LoadedSettings::load(&context.settings_options()?)?;
    let helper = key_helper(&context, &settings);
    ProviderChoice::from_env(&context.ambient.env, helper)?.model(args.model.as_deref())?;
    let context = Arc::new(context);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let exit = runtime.block_on(run_until_done(&context, store, (owner, watch), &args, out));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    exit
}

/// Runs what is due, one after the other, and waits for more if it is to watch.
async fn run_until_done(
    context: &Arc<CliContext>,
    store: &ScheduleStore,
    (owner, watch): (&ScheduleOwner, bool),
    args: &RunArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let mut signals = StopSignals::listen()?;
    let mut worst = CliExitCode::Ok;
    let mut count = 0;
    loop {
        let now = i64::try_from(toolgate_files::now_millis()).unwrap_or(i64::MAX);
        for due in store.claim_due(owner, now)? {
            count += 1;
            let prompt = toolgate::scheduled_prompt(&due);
            out.print_note(&format!("schedule {}: {}", due.schedule.id, due.schedule.describe()));
            // One that fails to begin must not keep the others from running.
            let exit = run_prompt(context, args, &prompt, out).await.unwrap_or_else(|error| {
                if let CliError::Usage(problem) = error {
                    out.print_error(&problem);
                }
                CliExitCode::ToolFailed
            });
            if exit == CliExitCode::Interrupted {
                return Ok(exit);
            }
            if exit != CliExitCode::Ok {
                worst = exit;
            }
        }
        if !watch {
            break;
        }
        out.flush()?;
        tokio::select! {
            _ = signals.recv() => return Ok(CliExitCode::Interrupted),
            () = tokio::time::sleep(WATCH_INTERVAL) => {}
        }
    }
    if count == 0 {
        let next = store.list(owner)?.into_iter().find(|item| item.durable);
        out.print_note(&match next {
            Some(item) => format!("nothing is due; the next is {} at {}", item.id, item.next_local()),
            None => "nothing is scheduled that outlives its session".to_owned(),
        });
    }
    Ok(worst)
}
