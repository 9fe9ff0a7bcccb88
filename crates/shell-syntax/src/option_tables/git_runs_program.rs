//! Finds the uses of git subcommands that run a program of the caller's choice, or write where no table looks.

use super::git::takes_prose;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Subcommands that run programs of the caller's choice.
const RUNNERS: WordList = WordList(
    "citool credential cvsexportcommit cvsimport cvsserver daemon difftool fast-import \
     filter-branch for-each-repo gui hook http-backend imap-send instaweb maintenance merge-index \
     mergetool p4 receive-pack send-email shell submodule--helper svn upload-archive upload-pack \
     web--browse",
);

/// Prefixes of subcommands that run programs of the caller's choice.
const RUNNER_PREFIXES: WordList = WordList("credential- remote- difftool-- mergetool-- fsmonitor--");

/// Whether a subcommand that changes something runs a program of the caller's choice.
///
/// Such a use is a hazard, so that a rule for `git *` does not cover it.
pub(super) fn git_runs_program(name: &str, args: &[ShellArg]) -> bool {
    let has_word = |word: &str| args.iter().any(|arg| arg.text == word);
    let mut after_prose_option = false;
    RUNNERS.contains(name)
        || RUNNER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, "bisect" if has_word("run"))
        || matches!(name, "submodule" if has_word("foreach"))
        // Such an address names the program that connects to it.
        || args.iter().any(|arg| arg.text.contains("ext::") || arg.text.contains("fd::"))
        || args.iter().take_while(|arg| arg.text != "--").any(|arg| {
            // The text of a message selects nothing, whatever it is.
            let is_prose = std::mem::replace(&mut after_prose_option, takes_prose(&arg.text)) && !arg.splits;
            !is_prose && option_runs_program(name, arg)
        })
}

/// Whether an argument of a subcommand is, or may be, an option that runs a program or writes a file.
fn option_runs_program(name: &str, arg: &ShellArg) -> bool {
    let text = arg.text.as_str();
    let option = text.split_once('=').map_or(text, |(option, _)| option);
    let long = option.len() > 2 && LONG_HAZARDS.iter().any(|hazard| hazard.starts_with(option));
    let letters = match name {
        "rebase" => "x",
        "clone" => "cu",
        "grep" => "O",
        "archive" | "format-patch" => "o",
        "help" => "w",
        _ => "",
    };
    // A letter counts anywhere in a cluster (`-ix`). It may also be part of an attached value; that is rare, and only
    // costs a question.
    let short =
        text.starts_with('-') && !text.starts_with("--") && text.contains(|letter| letters.contains(letter));
    long || short || (arg.live.is_some() && arg.may_be_option())
}

/// Long options of subcommands that run a program or write a file; every abbreviation counts.
const LONG_HAZARDS: WordList = WordList(
    "--output --output-directory --unsafe-paths --ext-diff --open-files-in-pager --upload-pack --receive-pack --exec --extcmd --config \
     --template --no-index --web",
);
