//! `toolgate schedule`: shows and cancels the prompts that agents scheduled, and runs those that are due.
//!
//! It uses the same store as the tools, so a schedule that is cancelled here does not run in any session.

use super::context::CliContext;
use super::output::{CliOutput, paint, style, to_one_line};
use super::run::run_due_schedules;
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::json;
use toolgate::state::{ScheduleError, ScheduleItem, ScheduleOwner, ScheduleStore};

/// Characters of a prompt in a list.
const MAX_PROMPT_CHARS: usize = 80;

/// Shown after the options.
pub(crate) const SCHEDULE_HELP: &str = "Agents schedule prompts with CronCreate and ScheduleWakeup. A prompt runs as `toolgate run -p` would run it now: under \
     the rules of that moment, and without questions.";

/// Arguments of `toolgate schedule`.
#[derive(Debug, clap::Args)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    command: Option<ScheduleCommand>,
}

/// The commands of `toolgate schedule`.
#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    /// List the schedules (the default)
    List {
        /// Those of all projects
        #[arg(long)]
        all: bool,
    },
    /// Remove a schedule
    Cancel {
        /// The id, as the list shows it
        id: String,
    },
    /// Run the durable schedules of this project that are due, each in a session of its own
    Run {
        /// Go on until Ctrl-C
        #[arg(long)]
        watch: bool,
        /// Options of `toolgate run`, such as --model
        #[arg(last = true, value_name = "RUN-OPTIONS", allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

impl From<ScheduleError> for CliError {
    /// Adds the next step to errors that the user can resolve.
    fn from(error: ScheduleError) -> Self {
        Self::Usage(match &error {
            ScheduleError::NotFound(_) => format!("{error}; `toolgate schedule list --all` lists them"),
            ScheduleError::Store(_) => format!("{error}; move the file away to begin a new store"),
            _ => error.to_string(),
        })
    }
}

/// Runs a command.
pub(crate) fn run(
    context: CliContext,
    args: &ScheduleArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let store = open_store(&context)?;
    match args.command.as_ref().unwrap_or(&ScheduleCommand::List { all: false }) {
        ScheduleCommand::List { all } => {
            let items = if *all { store.list_all()? } else { store.list(&project_owner(&context))? };
            for item in &items {
                match context.global.json {
                    true => out.print_line(&json!(item).to_string())?,
                    false => out.print_line(&render_line(item, *all))?,
                }
            }
            if items.is_empty() && !context.global.json {
                out.print_note("nothing is scheduled");
            }
        }
        ScheduleCommand::Cancel { id } => {
            // Of any project: the user who names an id means that one.
            let item = store.list_all()?.into_iter().find(|item| item.id == *id);
            let item = item.ok_or_else(|| ScheduleError::NotFound(id.clone()))?;
            let item = store.remove(&ScheduleOwner::new(item.project), id)?;
            let text = format!("cancelled {}: {}", item.id, shorten(&item.prompt));
            out.print_done(context.global.json, &json!(item), &text)?;
        }
        ScheduleCommand::Run { watch, options } => {
            let owner = project_owner(&context);
            return run_due_schedules(context, &store, (&owner, *watch), options, out);
        }
    }
    Ok(CliExitCode::Ok)
}

/// The store in the state directory.
fn open_store(context: &CliContext) -> Result<ScheduleStore, CliError> {
    let dir = context.state_config().dir.ok_or_else(|| {
        CliError::Usage(
            "there is no state directory that stores schedules; set TOOLGATE_STATE_DIR".to_owned(),
        )
    })?;
    Ok(ScheduleStore::open(&dir).map_err(ScheduleError::from)?)
}

/// Every schedule of this project.
fn project_owner(context: &CliContext) -> ScheduleOwner {
    ScheduleOwner::new(toolgate_files::resolve(&context.cwd()).real.to_string())
}

/// One line: id, next time, what it means, prompt.
fn render_line(item: &ScheduleItem, with_project: bool) -> String {
    let kind = if item.durable { "durable" } else { "of a session" };
    let mut line = format!(
        "{}  {}  {}  {}",
        paint(style::BOLD, &item.id),
        item.next_local(),
        to_one_line(&format!("{}, {kind}:", item.describe())),
        shorten(&item.prompt)
    );
    if with_project {
        line.push_str(&format!("  {}", paint(style::FAINT, &to_one_line(&item.project))));
    }
    line
}

/// The beginning of a prompt, on one line.
fn shorten(prompt: &str) -> String {
    toolgate_proto::fit_line(prompt, MAX_PROMPT_CHARS)
}
