//! Programs that start other programs in ways that no option table follows: `npx`, `uv run`, `tmux new`,
//! `docker exec`.
//!
//! Which command such a line starts is guessed, generously, and only shown to deny and ask rules: a guess never
//! allows anything. The alternative, to parse the options of each program in full, would be wrong with the next
//! release of any of them.

mod guess_commands;
mod inline_code;
mod other_project;
mod runner_entry;
mod visit_guess;

use crate::grammars;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use runner_entry::{COMMAND_OPTIONS, INTERPRETERS, RUNNERS};

/// Programs besides the interpreters that run commands or code which they read from standard input.
const INPUT_RUNNERS: WordList = WordList(
    "at batch sqlite3 psql mysql mariadb duckdb gdb lldb ed ex parallel expect tclsh guile racket sbcl clisp \
     ghci erl iex scala jshell groovy raku pwsh nu xonsh elvish octave osascript R irb pry ftp sftp lftp",
);

/// Names of standard input.
const STDIN_NAMES: WordList = WordList("- /dev/stdin /dev/fd/0 /proc/self/fd/0");

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
    // `python3 - x` and `ruby /dev/stdin x` have arguments for the program that they read.
    let names_input = || args.iter().any(|arg| STDIN_NAMES.contains(arg.text.as_str()));
    matches!(name, "at" | "batch")
        || interpreter
            && (args.iter().all(|arg| arg.text.starts_with('-')) || names_input())
            && grammars::judge(name, args).is_none()
}

/// Whether a program gets a file of commands that the line itself makes: `make -f -`, `just -f <(…)`.
fn reads_build_file(name: &str, args: &[ShellArg]) -> bool {
    let is_made = |arg: &ShellArg| {
        arg.live.is_some()
            || STDIN_NAMES.contains(arg.text.as_str())
            || arg.text.starts_with("/dev/fd/")
            || arg.text.ends_with("/dev/stdin")
            || arg.text.ends_with("=-")
    };
    let takes_file = |arg: &ShellArg| match arg.text.strip_prefix("--") {
        Some(long) => {
            let long = long.split_once('=').map_or(long, |(long, _)| long);
            ["file", "makefile", "justfile", "taskfile", "script"].contains(&long)
        }
        None => arg.text.starts_with('-') && arg.text.contains(['f', 'P']),
    };
    matches!(name, "make" | "gmake" | "bmake" | "ninja" | "just" | "task" | "cmake" | "rake" | "ant")
        && args.iter().enumerate().any(|(at, arg)| {
            takes_file(arg) && (is_made(arg) || arg.text == "-f-" || args.get(at + 1).is_some_and(is_made))
        })
}
