//! `toolgate memory`: shows and changes the notes that agents keep between sessions.

use super::context::CliContext;
use super::output::{CliOutput, paint, style, to_one_line};
use super::{CliError, CliExitCode};
use clap::Subcommand;
use serde_json::json;
use toolgate::render::escape_invisible;
use toolgate::state::{MemoryError, MemoryNote, MemoryScope, MemoryStore, memory_dir};

/// Hits of a search.
const MAX_HIT_COUNT: u32 = 50;

/// Arguments of `toolgate memory`.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryArgs {
    /// The notes for all projects, in place of this project's
    #[arg(long, global = true)]
    user: bool,
    #[command(subcommand)]
    command: Option<MemoryCommand>,
}

/// The commands of `toolgate memory`.
#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// List the keys (the default)
    List,
    /// Print a note
    Show {
        /// The key of the note
        key: String,
    },
    /// Save a note, in place of the one that the key had
    Set {
        /// The key of the note
        key: String,
        /// The text; `-` reads it from standard input
        value: String,
    },
    /// Delete a note
    Forget {
        /// The key of the note
        key: String,
    },
    /// Find notes that have these words
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Open a note in your editor ($VISUAL or $EDITOR)
    Edit {
        /// The key of the note
        key: String,
    },
    /// Print the path of a note, or of the directory
    Path {
        /// The key of the note
        key: Option<String>,
    },
    /// Print all notes as JSON
    Export,
}

impl From<MemoryError> for CliError {
    /// Adds the remedy for a damaged index: it is derived from the notes, so deleting it loses nothing.
    fn from(error: MemoryError) -> Self {
        Self::Usage(match &error {
            MemoryError::Index(_) => format!("{error}; remove the file, and it is made again from the notes"),
            _ => error.to_string(),
        })
    }
}

/// Runs a command on the notes of a scope.
pub(crate) fn run(
    context: &CliContext,
    args: &MemoryArgs,
    out: &mut CliOutput,
) -> Result<CliExitCode, CliError> {
    let dir = context.ambient.state_dir.as_ref().ok_or_else(|| {
        CliError::Usage("there is no state directory that stores notes; set TOOLGATE_STATE_DIR".to_owned())
    })?;
    let scope = if args.user { MemoryScope::User } else { MemoryScope::Project };
    let project = toolgate_files::resolve(&context.cwd()).real;
    let store = MemoryStore::open(&memory_dir(dir, scope, &project))?;
    let missing =
        |key: &str| CliError::Usage(format!("there is no note `{key}`; `toolgate memory` lists the keys"));
    let is_json = context.global.json;
    match args.command.as_ref().unwrap_or(&MemoryCommand::List) {
        MemoryCommand::List => list(&store, args.user, is_json, out)?,
        MemoryCommand::Show { key } => {
            let note = store.get(key)?.ok_or_else(|| missing(key))?;
            print_note_text(&note, is_json, out)?;
        }
        MemoryCommand::Set { key, value } => {
            store.set(key, &context.read_argument(value)?)?;
            print_stored(key, is_json, out)?;
        }
        MemoryCommand::Forget { key } => match store.delete(key)? {
            true => {
                let done = json!({ "key": key, "deleted": true });
                out.print_done(is_json, &done, &format!("deleted {}", to_one_line(key)))?;
            }
            false => return Err(missing(key)),
        },
        MemoryCommand::Search { words } => {
            search(&store, &words.join(" "), is_json, out)?;
        }
        MemoryCommand::Edit { key } => {
            let path = store.path_of(key)?.ok_or_else(|| missing(key))?;
            toolgate_process::edit_file(&context.ambient, &path).map_err(CliError::Usage)?;
            print_edited(&store, key, is_json, out)?;
        }
        MemoryCommand::Path { key } => {
            let path = match key {
                None => store.dir().clone(),
                Some(key) => store.path_of(key)?.ok_or_else(|| missing(key))?,
            };
            out.print_done(is_json, &json!({ "key": key, "path": path }), &path.to_string())?;
        }
        MemoryCommand::Export => export(&store, out)?,
    }
    Ok(CliExitCode::Ok)
}

/// Prints the notes that have the words, the best first.
fn search(store: &MemoryStore, words: &str, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    let hits = store.search(words, MAX_HIT_COUNT)?;
    for hit in &hits {
        if is_json {
            out.print_line(&json!(hit).to_string())?;
        } else {
            let key = paint(style::BOLD, &to_one_line(&hit.key));
            out.print_line(&format!("{key}  {}", to_one_line(&hit.snippet)))?;
        }
    }
    if hits.is_empty() && !is_json {
        out.print_note("no note has any of these words; `toolgate memory` lists the keys");
    }
    Ok(())
}

/// Says under which key a note is that was edited.
fn print_edited(store: &MemoryStore, key: &str, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    match store.get(key)? {
        Some(_) => print_stored(key, is_json, out)?,
        None => out.print_note("the note has another key now; `toolgate memory` lists the keys"),
    }
    Ok(())
}

/// Says that a note is stored.
fn print_stored(key: &str, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    let done = json!({ "key": key, "stored": true });
    Ok(out.print_done(is_json, &done, &format!("stored {}", to_one_line(key)))?)
}

/// Prints all notes as JSON.
fn export(store: &MemoryStore, out: &mut CliOutput) -> Result<(), CliError> {
    let mut notes = Vec::new();
    for entry in store.list()? {
        notes.extend(store.get(&entry.key)?);
    }
    let text = serde_json::to_string_pretty(&notes).map_err(|error| CliError::Usage(error.to_string()))?;
    out.print_line(&text)?;
    Ok(())
}

/// Lists the notes by key and size. An empty scope points the user to the notes of all projects.
fn list(store: &MemoryStore, is_user: bool, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    let entries = store.list()?;
    for entry in &entries {
        if is_json {
            out.print_line(&json!(entry).to_string())?;
        } else {
            let size = paint(style::FAINT, &format!("{} bytes", entry.bytes));
            out.print_line(&format!("{}  {size}", to_one_line(&entry.key)))?;
        }
    }
    if entries.is_empty() && !is_json {
        out.print_note(match is_user {
            true => "there are no notes for all projects; `toolgate memory --user set KEY TEXT` adds one",
            false => "there are no notes here; `toolgate memory --user` shows those of all projects",
        });
    }
    Ok(())
}

/// Prints the value of a note. Control characters are escaped, because a model wrote the text and the terminal would
/// interpret them.
fn print_note_text(note: &MemoryNote, is_json: bool, out: &mut CliOutput) -> Result<(), CliError> {
    match is_json {
        true => out.print_line(&json!(note).to_string())?,
        false => out.print_line(&escape_invisible(&note.value))?,
    }
    Ok(())
}
