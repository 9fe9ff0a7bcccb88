//! Judges the subcommands of git: which of them only read, in which forms, and which files they show.
//!
//! Many subcommands both list and change (`git branch`, `git branch x`). They are read-only in the listed forms; every
//! other form, and every subcommand that is not listed, changes something.

use super::git_args::GitArgs;
use super::git_readers::{BRANCH, CONFIG, GIT, HELP, READERS, TAG};
use super::git_runs_program::git_runs_program;
use super::git_shown_files::GitShownFiles;
use super::git_writers::judge_git_writer;
use super::{OptionTable, ProgramUse};
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// Judges a subcommand of git: what it does, and which files it reads, writes and shows.
pub(super) fn judge_git_subcommand(name: &str, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let (mut used, mut shows) = judge_git_reader(name, args);
    // Settings and topics are no files, and the words of a reader are already judged.
    let is_reader = READERS.iter().any(|table| table.names.contains(&name));
    if !used.read_only && !is_reader && !matches!(name, "config" | "help") {
        let (changes, content) = judge_git_writer(name, args);
        used.hazard |= changes.hazard;
        used.unknown |= changes.unknown;
        used.reads.extend(changes.reads);
        used.writes.extend(changes.writes);
        shows.whole_repository |= content.whole_repository;
    }
    (used, shows)
}

/// Judges a subcommand by the forms in which it only reads.
fn judge_git_reader(name: &str, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
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
        "submodule" => shows_nothing(texts.as_slice() == ["status"]),
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
            used.hazard |= git_runs_program(name, args);
            (used, GitShownFiles::default())
        }
        _ => match READERS.iter().find(|table| table.names.contains(&name)) {
            Some(table) => judge_reader(name, table, args),
            None => shows_nothing(false),
        },
    }
}

/// Judges `git stash`: only `list` and `show` read.
fn judge_stash(args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    match args.split_first() {
        Some((subcommand, rest)) if subcommand.text == "list" => judge_log(rest),
        Some((subcommand, rest)) if subcommand.text == "show" => {
            let (used, shows) = judge_log(rest);
            // Whether it shows content is also a setting of the repository.
            (used, GitShownFiles { whole_repository: true, ..shows })
        }
        Some(_) | None => (ProgramUse::default(), GitShownFiles::default()),
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
fn judge_reader(name: &str, table: &OptionTable, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let words = GitArgs::parse(table, args);
    let (allowed, mut shows) = match name {
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
    if !words.listed {
        shows.add_unlisted(&words, CONTENT_READERS.contains(name));
    }
    (to_program_use(&words, allowed && !starts_another_program(&words)), shows)
}

/// Judges a walk over history: `log`, or a subcommand that is one.
fn judge_log(args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let words = GitArgs::parse(&log_option_table(), args);
    let mut shows = GitShownFiles::from_log(&words);
    if !words.listed {
        shows.add_unlisted(&words, true);
    }
    (to_program_use(&words, !starts_another_program(&words)), shows)
}

/// Whether the value of a listed option makes git do more than read.
///
/// `--diff-merges=remerge` merges in a temporary directory, submodule options run git in other repositories, and a
/// format with the state of a signature starts `gpg`.
fn starts_another_program(words: &GitArgs) -> bool {
    let remerges = words
        .values(WordList("diff-merges"))
        .any(|value| value.live.is_some() || value.text.starts_with('r'));
    let enters = words
        .values(WordList("submodule ignore-submodules"))
        .any(|value| value.live.is_some() || !matches!(value.text.as_str(), "short" | "all" | "dirty"));
    remerges || enters || verifies_signatures(words)
}

/// Whether a format or a sort key has the state of a signature: `%G?`, `%+GS`, `%(signature:key)`.
fn verifies_signatures(words: &GitArgs) -> bool {
    words.values(WordList("pretty format group sort")).any(|value| {
        let mut placeholders = value.text.split('%').skip(1);
        placeholders.any(|after| after.trim_start_matches(['+', '-', ' ']).starts_with('G'))
            || value.text.contains("signature")
    })
}

/// Judges a list of references. Its format may print the content that they point to.
fn judge_ref_list(words: &GitArgs, lists: bool) -> (ProgramUse, GitShownFiles) {
    let prints_raw = |format: &ShellArg| format.live.is_some() || format.text.contains("raw");
    let mut raw = words.values(WordList("format")).any(prints_raw);
    if !words.listed {
        // The format may belong to an abbreviated option. The names of branches that are created are no formats.
        let values = words.options.iter().filter_map(|(_, value)| value.as_ref());
        raw |= words.operands.iter().chain(values).any(|word| word.text.contains("%(") && prints_raw(word));
    }
    let shows = GitShownFiles { whole_repository: raw, ..GitShownFiles::default() };
    (to_program_use(words, lists && !verifies_signatures(words)), shows)
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

/// Subcommands with an option table that can show the content of any file.
const CONTENT_READERS: WordList =
    WordList("cat-file diff diff-files diff-index diff-tree grep log range-diff show status whatchanged");

/// Options that select branches or tags from the list.
const FILTERS: WordList = WordList("contains no-contains merged no-merged points-at");

/// The option table of `log`.
fn log_option_table() -> OptionTable {
    READERS.iter().find(|table| table.names.contains(&"log")).copied().unwrap_or(GIT)
}
