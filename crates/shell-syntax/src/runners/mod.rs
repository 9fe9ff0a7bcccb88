//! Programs that start other programs in ways that no option table follows: `npx`, `uv run`, `tmux new`,
//! `docker exec`.
//!
//! Which command such a line starts is guessed, generously, and only shown to deny and ask rules: a guess never
//! allows anything. The alternative, to parse the options of each program in full, would be wrong with the next
//! release of any of them.

mod guess_commands;
mod other_project;
mod runner_entry;
mod visit_guess;

use crate::grammars;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use runner_entry::{COMMAND_OPTIONS, INTERPRETERS, RUNNERS};

/// Programs besides the interpreters that run commands or code which they read from standard input.
const INPUT_RUNNERS: WordList = WordList("at batch sqlite3 psql mysql gdb ed ex parallel");

/// How many entries of [`INTERPRETERS`] run a program from standard input if they get no file.
const INPUT_INTERPRETER_COUNT: usize = 6;

/// Whether a program is known to start others.
fn is_runner(name: &str) -> bool {
    RUNNERS.iter().any(|entry| entry.programs.contains(name))
        || COMMAND_OPTIONS.iter().any(|entry| entry.programs.contains(name))
}

/// Whether a program runs code from its standard input when it is used with these arguments.
pub(crate) fn reads_code(name: &str, args: &[ShellArg]) -> bool {
    let interpreter =
        INTERPRETERS.iter().take(INPUT_INTERPRETER_COUNT).any(|entry| entry.programs.contains(name))
            || INPUT_RUNNERS.contains(name);
    matches!(name, "at" | "batch")
        || interpreter
            && args.iter().all(|arg| arg.text.starts_with('-') || arg.text == "/dev/stdin")
            && grammars::judge(name, args).is_none()
}
