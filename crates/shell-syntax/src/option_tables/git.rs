//! The subcommands of git that only read, on the terms that the runtime sets: no pager, no external diff, no
//! file-system monitor, no text conversion, no optional locks, and no repository but that of the starting directory.
//!
//! Even so, git reads the configuration of the repository it finds, so another directory is another question.

use super::super::expand::ShellArg;
use super::git_args::GitArgs;
use super::git_readers::{BRANCH, CONFIG, GIT, HELP, READERS, TAG};
use super::git_shown_files::GitShownFiles;
use super::{OptionTable, ProgramUse};
use toolgate_proto::PathScope;

/// What a git command line comes to.
pub(in super::super) struct GitCommandUse {
    /// What the subcommand does.
    pub(in super::super) used: ProgramUse,
    /// The position of the subcommand among the arguments.
    pub(in super::super) subcommand: Option<usize>,
    /// Which files it shows.
    pub(in super::super) shows: GitShownFiles,
}

/// Judges the arguments after the word `git`.
pub(in super::super) fn judge(args: &[ShellArg]) -> GitCommandUse {
    let mut hazard = false;
    let mut quiet = true;
    let mut at = 0;
    // Global options come first; only a few leave git the same program in the same repository.
    while let Some(arg) = args.get(at) {
        if !arg.may_be_option() {
            break;
        }
        let takes_value = matches!(
            arg.text.as_str(),
            "-c" | "-C"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--exec-path"
                | "--config-env"
                | "--super-prefix"
        );
        match arg.text.as_str() {
            "--no-pager"
            | "-P"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-replace-objects"
            | "--no-lazy-fetch"
            | "--no-advice"
                if arg.live.is_none() => {}
            "-C" if args.get(at + 1).and_then(ShellArg::known) == Some(".") => {}
            "-c" if args.get(at + 1).and_then(ShellArg::known).is_some_and(sets_nothing) => quiet = false,
            _ => {
                quiet = false;
                hazard |= arg.live.is_some()
                    || !matches!(
                        arg.text.as_str(),
                        "-p" | "--paginate" | "--bare" | "--version" | "-v" | "--help" | "-h"
                    );
            }
        }
        at += if takes_value { 2 } else { 1 };
    }
    let Some(subcommand) = args.get(at) else {
        // Without a subcommand git tells how it is used.
        let read_only = !args.is_empty()
            && args.iter().all(|arg| matches!(arg.known(), Some("--help" | "-h" | "--no-pager" | "-P")));
        let used = ProgramUse { hazard, read_only, ..ProgramUse::default() };
        return GitCommandUse { used, subcommand: None, shows: GitShownFiles::default() };
    };
    let rest = args.get(at + 1..).unwrap_or_default();
    let (mut used, mut shows) = match subcommand.known() {
        Some(name) => judge_subcommand(name, rest),
        None => (ProgramUse { hazard: true, ..ProgramUse::default() }, GitShownFiles::default()),
    };
    used.read_only &= quiet;
    used.hazard |= hazard;
    // How paths are read was changed.
    if args.iter().take(at).any(|arg| arg.text.ends_with("-pathspecs")) {
        shows.whole_repository |= !shows.here.is_empty() || !shows.top.is_empty();
    }
    GitCommandUse { used, subcommand: Some(at), shows }
}

/// The names of all subcommands that may only read.
pub(in super::super) fn readers() -> Vec<&'static str> {
    let listed = READERS.iter().flat_map(|entry| entry.names.iter().copied());
    listed
        .chain([
            "branch",
            "tag",
            "remote",
            "stash",
            "reflog",
            "worktree",
            "submodule",
            "notes",
            "config",
            "symbolic-ref",
            "help",
        ])
        .collect()
}

/// A setting without a section is none: git refuses it, so it cannot make git run anything.
fn sets_nothing(setting: &str) -> bool {
    let key = setting.split_once('=').map_or(setting, |(key, _)| key);
    !key.contains('.')
}

fn judge_subcommand(name: &str, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    let literal = args.iter().all(|arg| arg.known().is_some());
    let plainly = |read_only: bool| {
        (ProgramUse { read_only: read_only && literal, ..ProgramUse::default() }, GitShownFiles::default())
    };
    match name {
        "branch" => {
            let words = GitArgs::parse(&BRANCH, args);
            // A name creates a branch unless an option says to list.
            let lists = words.has(&["list", "l", "a", "r", "all", "remotes"]) || words.has(FILTERS);
            judge_ref_list(&words, words.operands.is_empty() && words.paths.is_empty() || lists)
        }
        "tag" => {
            let words = GitArgs::parse(&TAG, args);
            let lists = words.has(&["list", "l", "n"]) || words.has(FILTERS);
            judge_ref_list(&words, words.operands.is_empty() && words.paths.is_empty() || lists)
        }
        "remote" => plainly(matches!(
            texts.as_slice(),
            [] | ["-v" | "--verbose" | "show"]
                | ["get-url", _]
                | ["get-url", "--all" | "--push", _]
                | ["show", "-n", _]
        )),
        "stash" => match (texts.first(), args.split_first()) {
            (Some(&"list"), Some((_, rest))) => {
                let words = GitArgs::parse(&log_option_table(), rest);
                (to_program_use(&words, true), GitShownFiles::from_log(&words))
            }
            (Some(&"show"), Some((_, rest))) => {
                let words = GitArgs::parse(&log_option_table(), rest);
                // Which form it has is a setting, too.
                (
                    to_program_use(&words, true),
                    GitShownFiles { whole_repository: true, ..GitShownFiles::from_names(&words) },
                )
            }
            _ => (
                ProgramUse { hazard: runs_program(name, args), ..ProgramUse::default() },
                GitShownFiles::default(),
            ),
        },
        "reflog" => match (texts.first(), args.split_first()) {
            (Some(&"exists"), _) => plainly(true),
            (Some(&("expire" | "delete" | "drop" | "write" | "list")), _) => plainly(false),
            (Some(&"show"), Some((_, rest))) => judge_log(rest),
            _ => judge_log(args),
        },
        "worktree" => {
            plainly(matches!(texts.as_slice(), ["list"] | ["list", "--porcelain" | "-v" | "--verbose"]))
        }
        "submodule" => {
            let (mut used, shows) = plainly(texts.as_slice() == ["status"]);
            used.hazard = texts.contains(&"foreach") || runs_program(name, args);
            (used, shows)
        }
        "notes" => plainly(matches!(texts.as_slice(), ["list"] | ["show"])),
        "config" => {
            let words = GitArgs::parse(&CONFIG, args);
            let operands: Vec<&str> =
                words.operands.iter().chain(&words.paths).map(|arg| arg.text.as_str()).collect();
            let asks = words.has(&["get", "get-all", "get-regexp", "get-urlmatch", "list", "l"]);
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
            (used, GitShownFiles::default())
        }
        "symbolic-ref" => {
            let shown = matches!(texts.as_slice(), [_] | ["--short" | "-q", _] | ["-q", "--short", _]);
            plainly(shown && texts.last().is_some_and(|name| !name.starts_with('-')))
        }
        "help" => {
            let words = GitArgs::parse(&HELP, args);
            // A topic starts a viewer.
            let mut used = to_program_use(&words, words.operands.is_empty() && words.paths.is_empty());
            used.hazard |= runs_program(name, args);
            (used, GitShownFiles::default())
        }
        _ => match READERS.iter().find(|entry| entry.names.contains(&name)) {
            Some(entry) => judge_reader(name, entry, args),
            None => {
                let shows = GitShownFiles {
                    whole_repository: CONTENT_SUBCOMMANDS.contains(&name),
                    ..GitShownFiles::default()
                };
                (ProgramUse { hazard: runs_program(name, args), ..ProgramUse::default() }, shows)
            }
        },
    }
}

/// One of the listed readers.
fn judge_reader(name: &str, entry: &OptionTable, args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let words = GitArgs::parse(entry, args);
    let remerges =
        words.values(&["diff-merges"]).any(|value| value.live.is_some() || value.text.starts_with('r'));
    let enters = words
        .values(&["submodule", "ignore-submodules"])
        .any(|value| value.live.is_some() || !matches!(value.text.as_str(), "short" | "all" | "dirty"));
    let (allowed, shows) = match name {
        "diff" => {
            let two = words.operands.len() + words.paths.len() == 2;
            (!words.has(&["no-index"]) || two, GitShownFiles::from_diff(&words))
        }
        // What is not told to leave submodules alone looks into them.
        "diff-index" | "diff-files" => {
            (words.has(&["ignore-submodules", "cached"]), GitShownFiles::from_diff(&words))
        }
        "diff-tree" => (true, GitShownFiles::from_diff(&words)),
        "log" | "whatchanged" => (true, GitShownFiles::from_log(&words)),
        "show" => (true, GitShownFiles::from_show(&words)),
        "blame" | "annotate" => (true, GitShownFiles::from_blame(&words)),
        "grep" => (true, GitShownFiles::from_grep(&words)),
        // What it is asked for comes by its input, or is everything.
        "cat-file" => {
            let all = words.has(&["batch"]);
            let shows = GitShownFiles::from_cat_file(&words);
            (!all, GitShownFiles { whole_repository: shows.whole_repository || all, ..shows })
        }
        "range-diff" => (true, GitShownFiles { whole_repository: true, ..GitShownFiles::default() }),
        "status" if words.has(&["v", "verbose"]) => (true, GitShownFiles::from_paths(&words)),
        "for-each-ref" => return judge_ref_list(&words, true),
        _ => (true, GitShownFiles::from_names(&words)),
    };
    (to_program_use(&words, allowed && !remerges && !enters), shows)
}

fn judge_log(args: &[ShellArg]) -> (ProgramUse, GitShownFiles) {
    let words = GitArgs::parse(&log_option_table(), args);
    let remerges =
        words.values(&["diff-merges"]).any(|value| value.live.is_some() || value.text.starts_with('r'));
    (to_program_use(&words, !remerges), GitShownFiles::from_log(&words))
}

/// A list of references: by its format it may print what they point to.
fn judge_ref_list(words: &GitArgs, lists: bool) -> (ProgramUse, GitShownFiles) {
    let raw = words.values(&["format"]).any(|format| format.live.is_some() || format.text.contains("raw"));
    (to_program_use(words, lists), GitShownFiles { whole_repository: raw, ..GitShownFiles::default() })
}

fn to_program_use(words: &GitArgs, allowed: bool) -> ProgramUse {
    ProgramUse {
        read_only: words.listed && allowed,
        hazard: words.hazard,
        reads: words.files.iter().map(|file| (file.clone(), PathScope::Entry)).collect(),
        ..ProgramUse::default()
    }
}

/// Options by which branches and tags are picked from the list.
const FILTERS: &[&str] = &["contains", "no-contains", "merged", "no-merged", "points-at"];

/// Other subcommands that show or copy the content of files.
const CONTENT_SUBCOMMANDS: &[&str] = &[
    "archive",
    "bundle",
    "checkout-index",
    "difftool",
    "fast-export",
    "format-patch",
    "merge-file",
    "merge-tree",
    "pack-objects",
    "request-pull",
    "send-email",
    "unpack-file",
    "upload-archive",
    "upload-pack",
];

fn log_option_table() -> OptionTable {
    READERS.iter().find(|entry| entry.names.contains(&"log")).copied().unwrap_or(GIT)
}

/// Whether a subcommand that changes things is told to run a program of the caller's choice.
fn runs_program(name: &str, args: &[ShellArg]) -> bool {
    const RUNNERS: &[&str] = &[
        "citool",
        "credential",
        "cvsexportcommit",
        "cvsimport",
        "cvsserver",
        "daemon",
        "difftool",
        "fast-import",
        "filter-branch",
        "for-each-repo",
        "gui",
        "hook",
        "http-backend",
        "imap-send",
        "instaweb",
        "maintenance",
        "merge-index",
        "mergetool",
        "p4",
        "receive-pack",
        "send-email",
        "shell",
        "submodule--helper",
        "svn",
        "upload-archive",
        "upload-pack",
        "web--browse",
    ];
    const FAMILIES: &[&str] = &["credential-", "remote-", "difftool--", "mergetool--", "fsmonitor--"];
    let mut prose = false;
    let mut runs = |arg: &ShellArg| {
        // The text of a message picks nothing, whatever it says.
        let is_prose = std::mem::replace(&mut prose, takes_prose(&arg.text)) && !arg.splits;
        if is_prose {
            return false;
        }
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
    };
    let command = |word: &str| args.iter().any(|arg| arg.text == word);
    RUNNERS.contains(&name)
        || FAMILIES.iter().any(|family| name.starts_with(family))
        || matches!(name, "bisect" if command("run"))
        || matches!(name, "submodule" if command("foreach"))
        // An address that names the program to reach it by.
        || args.iter().any(|arg| arg.text.contains("ext::") || arg.text.contains("fd::"))
        || args.iter().take_while(|arg| arg.text != "--").any(&mut runs)
}

const LONG_HAZARDS: &[&str] = &[
    "--output",
    "--ext-diff",
    "--open-files-in-pager",
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--extcmd",
    "--config",
    "--template",
    "--no-index",
    "--web",
];

/// Options whose value is prose, so that a live one picks nothing.
pub(in super::super) fn takes_prose(option: &str) -> bool {
    matches!(option, "-m" | "-am" | "--message" | "-F" | "--file")
}
