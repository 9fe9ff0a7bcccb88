//! Judges the subcommands of git: which of them only read, in which forms, and which files they show.
//!
//! Many subcommands both list and change (`git branch`, `git branch x`). They are read-only in the listed forms; every
//! other form, and every subcommand that is not listed, changes something.

use super::git::takes_prose;
use super::git_args::GitArgs;
use super::git_readers::{BRANCH, CONFIG, GIT, HELP, READERS, TAG};
use super::git_shown_files::GitShownFiles;
use super::{OptionTable, ProgramUse};
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// Judges a subcommand of git: what it does, and which files it shows.
pub(super) fn judge_git_subcommand(name: &str, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    let literal = args.iter().all(|arg| arg.known().is_some());
    let shows_nothing = |read_only: bool| {
        (ProgramUse { read_only: read_only && literal, ..ProgramUse::default() }, GitShownFiles::default())
    };
    match name {
        "branch" => {
            let words = GitArgs::parse(&BRANCH, args);
            // A name creates a branch, unless an option asks for the list.
            let lists = words.has(WordList("list l a r all remotes")) || words.has(FILTERS);
            judge_ref_list(&words, words.operands.is_empty() && words.paths.is_empty() || lists)
        }
        "tag" => {
            let words = GitArgs::parse(&TAG, args);
            let lists = words.has(WordList("list l n")) || words.has(FILTERS);
            judge_ref_list(&words, words.operands.is_empty() && words.paths.is_empty() || lists)
        }
        "remote" => shows_nothing(matches!(
            texts.as_slice(),
            [] | ["-v" | "--verbose" | "show"]
                | ["get-url", _]
                | ["get-url", "--all" | "--push", _]
                | ["show", "-n", _]
        )),
        "stash" => judge_stash(args),
        "reflog" => match (texts.first(), args.split_first()) {
            (Some(&"exists"), _) => shows_nothing(true),
            (Some(&("expire" | "delete" | "drop" | "write" | "list")), _) => shows_nothing(false),
            (Some(&"show"), Some((_, rest))) => judge_log(rest),
            _ => judge_log(args),
        },
        "worktree" => {
            shows_nothing(matches!(texts.as_slice(), ["list"] | ["list", "--porcelain" | "-v" | "--verbose"]))
        }
        "submodule" => {
            let (mut used, shows) = shows_nothing(texts.as_slice() == ["status"]);
            used.hazard = texts.contains(&"foreach") || runs_program(name, args);
            (used, shows)
        }
        "notes" => shows_nothing(matches!(texts.as_slice(), ["list"] | ["show"])),
        "config" => (judge_config(args, literal), GitShownFiles::default()),
        "symbolic-ref" => {
            let shown = matches!(texts.as_slice(), [_] | ["--short" | "-q", _] | ["-q", "--short", _]);
            shows_nothing(shown && texts.last().is_some_and(|name| !name.starts_with('-')))
        }
        "help" => {
            let words = GitArgs::parse(&HELP, args);
            // A topic starts a viewer.
            let mut used = to_program_use(&words, words.operands.is_empty() && words.paths.is_empty());
            used.hazard |= runs_program(name, args);
            (used, GitShownFiles::default())
        }
        _ => judge_other_subcommand(name, args),
    }
}

/// Judges a subcommand that has an option table, or one that changes something.
fn judge_other_subcommand(name: &str, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    if let Some(table) = READERS.iter().find(|table| table.names.contains(&name)) {
        return judge_reader(name, table, args);
    }
    let whole_repository = CONTENT_SUBCOMMANDS.contains(name);
    (
        ProgramUse { hazard: runs_program(name, args), ..ProgramUse::default() },
        GitShownFiles { whole_repository, ..GitShownFiles::default() },
    )
}

/// Judges `git stash`: only `list` and `show` read.
fn judge_stash(args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    match args.split_first() {
        Some((subcommand, rest)) if subcommand.text == "list" => {
            let words = GitArgs::parse(&log_option_table(), rest);
            (to_program_use(&words, true), GitShownFiles::from_log(&words))
        }
        Some((subcommand, rest)) if subcommand.text == "show" => {
            let words = GitArgs::parse(&log_option_table(), rest);
            // Whether it shows content is also a setting of the repository.
            let shows = GitShownFiles { whole_repository: true, ..GitShownFiles::from_names(&words) };
            (to_program_use(&words, true), shows)
        }
        Some(_) | None => (
            ProgramUse { hazard: runs_program("stash", args), ..ProgramUse::default() },
            GitShownFiles::default(),
        ),
    }
}

/// Judges `git config`. `literal`: all of its arguments are known.
///
/// One operand with a dot is a query (`git config user.name`); two are an assignment.
fn judge_config(args: &[ShellArg], literal: bool) -> ProgramUse {
    let words = GitArgs::parse(&CONFIG, args);
    let operands: Vec<&str> =
        words.operands.iter().chain(&words.paths).map(|arg| arg.text.as_str()).collect();
    let asks = words.has(WordList("get get-all get-regexp get-urlmatch list l"));
    let reads = match operands.as_slice() {
        [] => asks,
        ["list"] => true,
        ["get", _] => true,
        [name] => asks || name.contains('.'),
        [_, ..] => asks,
    };
    let mut used = to_program_use(&words, reads && literal);
    // A setting that is written may name a program.
    used.hazard |= !used.read_only;
    used
}

/// Judges a subcommand with an option table.
///
/// `--diff-merges=remerge` merges in a temporary directory, and submodule options run git in other repositories, so
/// that neither is read-only.
fn judge_reader(name: &str, table: &OptionTable, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let words = GitArgs::parse(table, args);
    let remerges = words
        .values(WordList("diff-merges"))
        .any(|value| value.live.is_some() || value.text.starts_with('r'));
    let enters = words
        .values(WordList("submodule ignore-submodules"))
        .any(|value| value.live.is_some() || !matches!(value.text.as_str(), "short" | "all" | "dirty"));
    let (allowed, shows) = match name {
        "diff" => {
            let two = words.operands.len() + words.paths.len() == 2;
            (!words.has(WordList("no-index")) || two, GitShownFiles::from_diff(&words))
        }
        // Without these options they run git in submodules.
        "diff-index" | "diff-files" => {
            (words.has(WordList("ignore-submodules cached")), GitShownFiles::from_diff(&words))
        }
        "diff-tree" => (true, GitShownFiles::from_diff(&words)),
        "log" | "whatchanged" => (true, GitShownFiles::from_log(&words)),
        "show" => (true, GitShownFiles::from_show(&words)),
        "blame" | "annotate" => (true, GitShownFiles::from_blame(&words)),
        "grep" => (true, GitShownFiles::from_grep(&words)),
        // `--batch` shows the objects that its input names, or all.
        "cat-file" => {
            let all = words.has(WordList("batch"));
            let shows = GitShownFiles::from_cat_file(&words);
            (!all, GitShownFiles { whole_repository: shows.whole_repository || all, ..shows })
        }
        "range-diff" => (true, GitShownFiles { whole_repository: true, ..GitShownFiles::default() }),
        "status" if words.has(WordList("v verbose")) => (true, GitShownFiles::from_paths(&words)),
        "for-each-ref" => return judge_ref_list(&words, true),
        _ => (true, GitShownFiles::from_names(&words)),
    };
    (to_program_use(&words, allowed && !remerges && !enters), shows)
}

/// Judges a walk over history: `log`, or a subcommand that is one.
fn judge_log(args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let words = GitArgs::parse(&log_option_table(), args);
    let remerges = words
        .values(WordList("diff-merges"))
        .any(|value| value.live.is_some() || value.text.starts_with('r'));
    (to_program_use(&words, !remerges), GitShownFiles::from_log(&words))
}

/// Judges a list of references. Its format may print the content that they point to.
fn judge_ref_list(words: &GitArgs, lists: bool) -> (ProgramUse, GitShownFiles) {
    let raw =
        words.values(WordList("format")).any(|format| format.live.is_some() || format.text.contains("raw"));
    (to_program_use(words, lists), GitShownFiles { whole_repository: raw, ..GitShownFiles::default() })
}

/// What the arguments say of a use. `allowed`: the subcommand only reads in this form.
fn to_program_use(words: &GitArgs, allowed: bool) -> ProgramUse {
    ProgramUse {
        read_only: words.listed && allowed,
        hazard: words.hazard,
        reads: words.files.iter().map(|file| (file.clone(), PathScope::Entry)).collect(),
        ..ProgramUse::default()
    }
}

/// Options that select branches or tags from the list.
const FILTERS: WordList = WordList("contains no-contains merged no-merged points-at");

/// Subcommands without an option table that show or copy the content of files.
const CONTENT_SUBCOMMANDS: WordList = WordList(
    "archive bundle checkout-index difftool fast-export format-patch merge-file merge-tree \
     pack-objects request-pull send-email unpack-file upload-archive upload-pack",
);

/// The option table of `log`.
fn log_option_table() -> OptionTable {
    READERS.iter().find(|table| table.names.contains(&"log")).copied().unwrap_or(GIT)
}

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
fn runs_program(name: &str, args: &[ShellArg]) -> bool {
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
    let long = option.len() > 3 && LONG_HAZARDS.iter().any(|hazard| hazard.starts_with(option));
    let short = match name {
        "rebase" => text.starts_with("-x"),
        "clone" => text.starts_with("-c") || text.starts_with("-u"),
        "grep" => text.starts_with("-O"),
        "archive" | "format-patch" => text.starts_with("-o"),
        "help" => text.starts_with("-w"),
        _ => false,
    };
    long || short || (arg.live.is_some() && arg.may_be_option())
}

/// Long options of subcommands that run a program or write a file; every abbreviation counts.
const LONG_HAZARDS: WordList = WordList(
    "--output --ext-diff --open-files-in-pager --upload-pack --receive-pack --exec --extcmd --config \
     --template --no-index --web",
);
