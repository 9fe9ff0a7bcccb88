//! `toolgate tasks`: shows and changes the task lists that agents work on.
//!
//! It uses the same store as the tools, so a change reaches a running agent with its next call.

use super::context::CliContext;
use super::output::{CliOutput, paint, style, to_one_line};
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::json;
use std::time::Duration;
use toolgate::render::escape_invisible;
use toolgate::state::{NewTask, TaskChange, TaskError, TaskItem, TaskNote, TaskStatus, TaskStore};

/// How often `watch` looks for changes. A look is one query of an index.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Shown after the options.
pub(crate) const TASKS_HELP: &str =
    "TOOLGATE_TASK_LIST names one list for all task tools, in place of those of the project and the session.";

/// Arguments of `toolgate tasks`.
#[derive(Debug, clap::Args)]
pub(crate) struct TasksArgs {
    /// The list, in place of this project's; `toolgate tasks lists` shows their names
    #[arg(long, value_name = "NAME", global = true)]
    list: Option<String>,
    #[command(subcommand)]
    command: Option<TasksCommand>,
}

/// The commands of `toolgate tasks`.
#[derive(Debug, Subcommand)]
enum TasksCommand {
    /// List the tasks (the default)
    List {
        /// Only tasks that are not completed or cancelled
        #[arg(long)]
        open: bool,
    },
    /// Show a task with its description and notes
    Show {
        /// The number of the task
        number: u32,
    },
    /// Add a task
    Add {
        /// What to do, in a few words
        subject: String,
        /// What to do, in full
        #[arg(long, default_value = "")]
        description: String,
        /// The agent or user to do it
        #[arg(long)]
        owner: Option<String>,
        /// A task that must be done before (repeatable)
        #[arg(long, value_name = "NUMBER")]
        after: Vec<u32>,
    },
    /// Change a task
    Edit(EditArgs),
    /// Remove a task
    Remove {
        /// The number of the task
        number: u32,
    },
    /// Show the names of all lists
    Lists,
    /// Remove the whole list
    Clear,
    /// Print the list as JSON or Markdown
    Export {
        /// json or markdown
        #[arg(long, value_name = "FORMAT", default_value = "json")]
        format: ExportFormat,
    },
    /// Print changes of the list as they happen, until Ctrl-C
    Watch,
}

/// Arguments of `toolgate tasks edit`.
#[derive(Debug, clap::Args)]
struct EditArgs {
    /// The number of the task
    number: u32,
    /// A new subject
    #[arg(long)]
    subject: Option<String>,
    /// A new description
    #[arg(long)]
    description: Option<String>,
    /// pending, in_progress, completed, cancelled or blocked
    #[arg(long, value_parser = parse_status)]
    status: Option<TaskStatus>,
    /// A new owner; empty for none
    #[arg(long)]
    owner: Option<String>,
    /// A task that must be done before (repeatable)
    #[arg(long, value_name = "NUMBER")]
    after: Vec<u32>,
    /// A note to add
    #[arg(long)]
    note: Option<String>,
}

/// The formats of `export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    Json,
    Markdown,
}

impl From<TaskError> for CliError {
    /// Adds the next step to errors that the user can resolve: an unknown task, and a store that cannot be read.
    fn from(error: TaskError) -> Self {
        Self::Usage(match &error {
            TaskError::NotFound(_) => format!("{error}; `toolgate tasks` lists the tasks"),
            TaskError::Store(_) => format!("{error}; move the file away to begin a new store"),
            _ => error.to_string(),
        })
    }
}

/// Parses a status argument. The error lists all statuses.
fn parse_status(text: &str) -> Result<TaskStatus, String> {
    TaskStatus::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = TaskStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("use {}", names.join(", "))
    })
}

/// Runs a command on a list.
pub(crate) fn run(
    context: &CliContext,
    args: &TasksArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let config = context.state_config();
    let dir = config.dir.ok_or_else(|| {
        CliError::Usage("there is no state directory that stores tasks; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let store = TaskStore::open(&dir).map_err(TaskError::from)?;
    let project = || toolgate_files::resolve(&context.cwd()).real.to_string();
    let list = args.list.clone().or(config.task_list).unwrap_or_else(project);
    let is_json = context.global.json;
    match args.command.as_ref().unwrap_or(&TasksCommand::List { open: false }) {
        TasksCommand::List { open } => {
            let mut tasks = store.list(&list)?;
            tasks.retain(|task| !*open || !task.status.is_closed());
            print_tasks(&tasks, is_json, out)?;
            if tasks.is_empty() && !is_json {
                out.print_note(&format!(
                    "the list `{list}` has no tasks; `toolgate tasks lists` shows all lists"
                ));
            }
        }
        TasksCommand::Show { number } => {
            let task = store.get(&list, *number)?.ok_or(TaskError::NotFound(*number))?;
            print_whole_task(&task, is_json, out)?;
        }
        TasksCommand::Add { subject, description, owner, after } => {
            let mut task = NewTask::new(subject);
            task.description = description.clone();
            task.owner = owner.clone();
            task.blocked_by = after.clone();
            print_tasks(&[store.create(&list, task)?], is_json, out)?;
        }
        TasksCommand::Edit(edit) => {
            let update = store.update(&list, edit.number, edit.to_change(context)?)?;
            print_tasks(&[update.task], is_json, out)?;
        }
        TasksCommand::Remove { number } => {
            let task = store.remove(&list, *number)?;
            let removed = format!("removed {}: {}", task.number, to_one_line(&task.subject));
            out.print_done(is_json, &json!(task), &removed)?;
        }
        TasksCommand::Lists => print_lists(&store, is_json, out)?,
        TasksCommand::Clear => {
            let removed = store.remove_list(&list)?;
            let what = if removed { "removed the tasks of" } else { "there are no tasks in" };
            let text = format!("{what} {}", to_one_line(&list));
            out.print_done(is_json, &json!({ "list": list, "removed": removed }), &text)?;
        }
        TasksCommand::Export { format } => {
            export(&store.list(&list)?, if is_json { ExportFormat::Json } else { *format }, out)?;
        }
        TasksCommand::Watch => watch(&store, &list, is_json, out)?,
    }
    Ok(CliExitCode::Ok)
}

impl EditArgs {
    /// Whether nothing would change.
    fn is_empty(&self) -> bool {
        let texts = [&self.subject, &self.description, &self.owner, &self.note];
        self.status.is_none() && self.after.is_empty() && texts.into_iter().all(Option::is_none)
    }

    /// The change, made by the user.
    fn to_change(&self, context: &CliContext) -> Result<TaskChange, CliError> {
        if self.is_empty() {
            let text = "say what to change, such as --status completed; `toolgate tasks edit --help` lists the options";
            return Err(CliError::Usage(text.to_owned()));
        }
        let user = context.ambient.env.get("USER").cloned();
        let mut change = TaskChange::default();
        change.subject = self.subject.clone();
        change.description = self.description.clone();
        change.status = self.status;
        change.owner = self.owner.clone();
        change.claimant = user.clone();
        change.add_blocked_by = self.after.clone();
        change.note = self.note.clone().map(|text| TaskNote::new(text).with_author(user));
        Ok(change)
    }
}

/// One line per task: mark, number, subject, owner, open blockers.
fn print_tasks(tasks: &[TaskItem], is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    for task in tasks {
        if is_json {
            out.print_line(&json!(task).to_string())?;
        } else {
            out.print_line(&render_line(task))?;
        }
    }
    Ok(())
}

/// Renders the row of a task for terminals. Blockers are shown only while the task is open.
fn render_line(task: &TaskItem) -> String {
    let (mark, mark_style) = match task.status {
        TaskStatus::Pending => (" ", style::FAINT),
        TaskStatus::InProgress => (">", style::ASK),
        TaskStatus::Completed => ("x", style::GOOD),
        TaskStatus::Cancelled => ("-", style::FAINT),
        TaskStatus::Blocked => ("!", style::BAD),
    };
    let mut line = format!(
        "{} {:>3}  {}",
        paint(mark_style, &format!("[{mark}]")),
        task.number,
        to_one_line(&task.subject)
    );
    if let Some(owner) = &task.owner {
        line.push_str(&format!("  {}", paint(style::FAINT, &format!("({})", to_one_line(owner)))));
    }
    if !task.blocked_by.is_empty() && !task.status.is_closed() {
        let numbers: Vec<String> = task.blocked_by.iter().map(u32::to_string).collect();
        line.push_str(&format!("  {}", paint(style::ASK, &format!("waits for {}", numbers.join(", ")))));
    }
    line
}

/// Prints a task with its description and notes. In JSON mode the row already contains both.
fn print_whole_task(task: &TaskItem, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    print_tasks(std::slice::from_ref(task), is_json, out)?;
    if is_json {
        return Ok(());
    }
    if !task.description.is_empty() {
        out.print_line(&format!("\n{}", escape_invisible(&task.description)))?;
    }
    for note in &task.notes {
        let author = to_one_line(note.author.as_deref().unwrap_or("unknown"));
        out.print_line(&format!("\n{}: {}", paint(style::BOLD, &author), escape_invisible(&note.text)))?;
    }
    Ok(())
}

/// Prints every task list of the store with its counts of open and all tasks.
fn print_lists(store: &TaskStore, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    let lists = store.lists()?;
    for list in &lists {
        if is_json {
            out.print_line(&json!(list).to_string())?;
        } else {
            let counts = format!("{} open, {} in all", list.open, list.total);
            out.print_line(&format!("{}  {}", to_one_line(&list.name), paint(style::FAINT, &counts)))?;
        }
    }
    if lists.is_empty() && !is_json {
        out.print_note("there are no task lists");
    }
    Ok(())
}

/// Writes all tasks to stdout, either as JSON for programs or as a Markdown checklist for documents.
fn export(tasks: &[TaskItem], format: ExportFormat, out: &mut CliOutput) -> Result<(), CliError> {
    match format {
        ExportFormat::Json => {
            let text =
                serde_json::to_string_pretty(tasks).map_err(|error| CliError::Usage(error.to_string()))?;
            out.print_line(&text)?;
        }
        ExportFormat::Markdown => {
            out.print_line("# Tasks\n")?;
            for task in tasks {
                let mark = if task.status.is_closed() { "x" } else { " " };
                out.print_line(&format!("- [{mark}] {}. {}", task.number, to_one_line(&task.subject)))?;
                for line in escape_invisible(&task.description).lines() {
                    out.print_line(&format!("  {line}"))?;
                }
            }
        }
    }
    Ok(())
}

/// Prints the list, then each change. Ctrl-C ends it: nothing is left to clean up.
fn watch(store: &TaskStore, list: &str, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    let mut seen = 0;
    loop {
        let (events, now) = store.changes_since(list, seen)?;
        for event in events {
            match &event.task {
                Some(task) => print_tasks(std::slice::from_ref(task), is_json, out)?,
                None if is_json => {
                    out.print_line(&json!({ "number": event.number, "removed": true }).to_string())?
                }
                // A task that came and went before the start is of no interest.
                None if seen == 0 => {}
                None => out.print_line(&format!("removed {}", event.number))?,
            }
        }
        out.flush()?;
        seen = now;
        std::thread::sleep(WATCH_INTERVAL);
    }
}
