//! `toolgate skill run`.

use super::super::context::{CliContext, RecordingToolgate};
use super::super::output::CliOutput;
use super::super::stop_signals::cancel_at_signal;
use super::super::{CliError, CliExitCode};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::render::{escape_invisible, terminal_text};

/// How long the command waits for the runtime's tasks at its end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Arguments of `toolgate skill run`.
#[derive(Debug, clap::Args)]
pub(crate) struct SkillRunArgs {
    /// The skill or command
    name: String,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Loads the skill and prints its text. Its commands run under the present rules, and nothing is asked.
pub(crate) fn run(
    context: &CliContext,
    args: &SkillRunArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    super::show::find_skill(&super::load_catalog(context)?, &args.name)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let cancel = CancellationToken::new();
    {
        let _entered = runtime.enter();
        cancel_at_signal(cancel.clone())?;
    }
    let RecordingToolgate { toolgate, ledger, telemetry, .. } = {
        let _entered = runtime.enter();
        context.build_recording_with(out, |builder| builder)?
    };
    // The whole run is one turn: what the skill asks for ends with it.
    toolgate.begin_turn();
    let loaded = runtime.block_on(async {
        let loaded = toolgate.load_skill(&args.name, &args.args.join(" "), cancel).await;
        toolgate.close_sources().await;
        loaded
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    telemetry.finish(out);
    if let Some(error) = ledger.and_then(|ledger| ledger.last_error()) {
        out.print_note(&format!("some records could not be written to the ledger: {error}"));
    }
    match loaded {
        Ok(loaded) => {
            for note in &loaded.notes {
                out.print_note(note);
            }
            match context.global.json {
                true => out.print_line(
                    &json!({ "skill": loaded.name, "text": loaded.text, "notes": loaded.notes }).to_string(),
                )?,
                false => out.print_line(&escape_invisible(&loaded.text))?,
            }
            Ok(CliExitCode::Ok)
        }
        Err(refusal) => {
            let exit = CliExitCode::of(&refusal);
            match context.global.json {
                true => out.print_line(&json!({ "refusal": refusal }).to_string())?,
                false => out.print_failure(&terminal_text(&Err(refusal))),
            }
            Ok(exit)
        }
    }
}
