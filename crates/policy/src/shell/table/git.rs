//! The subcommands of git that only read, on the terms that the runtime sets: no pager, no external diff, no
//! file-system monitor, no text conversion, no optional locks.
//!
//! Even so, git reads the configuration of the repository it finds, so another directory is another question.

use super::super::expand::Arg;
use super::git_readers::{BRANCH, CONFIG, GIT, READERS, TAG};
use super::{Entry, Use};

/// What a git command line comes to.
pub(in super::super) struct GitUse {
    /// What the subcommand does.
    pub(in super::super) used: Use,
    /// The position of the subcommand among the arguments.
    pub(in super::super) subcommand: Option<usize>,
}

/// Judges the arguments after the word `git`.
pub(in super::super) fn judge(args: &[Arg]) -> GitUse {
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
            "-C" if args.get(at + 1).and_then(Arg::known) == Some(".") => {}
            "-c" if args.get(at + 1).and_then(Arg::known).is_some_and(sets_nothing) => quiet = false,
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
        return GitUse { used: Use { hazard, ..Use::default() }, subcommand: None };
    };
    let rest = args.get(at + 1..).unwrap_or_default();
    let mut used = match subcommand.known() {
        Some(name) => subcommand_use(name, rest),
        None => Use { hazard: true, ..Use::default() },
    };
    used.read_only &= quiet;
    used.hazard |= hazard;
    GitUse { used, subcommand: Some(at) }
}

/// A setting without a section is none: git refuses it, so it cannot make git run anything.
fn sets_nothing(setting: &str) -> bool {
    let key = setting.split_once('=').map_or(setting, |(key, _)| key);
    !key.contains('.')
}

fn subcommand_use(name: &str, args: &[Arg]) -> Use {
    let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    let names_nothing = args.iter().all(Arg::may_be_option);
    match name {
        "branch" => {
            let mut used = BRANCH.judge(args);
            // A name creates a branch unless an option says to list; `-c` would copy one.
            let lists = words.iter().any(|word| {
                matches!(*word, "--list" | "-l" | "-a" | "-r" | "--all" | "--remotes")
                    || ["--contains", "--no-contains", "--merged", "--no-merged", "--points-at"]
                        .iter()
                        .any(|option| word.starts_with(option))
            });
            used.read_only &= (names_nothing || lists)
                && !words
                    .iter()
                    .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c'));
            used
        }
        "tag" => {
            let mut used = TAG.judge(args);
            let lists = words.iter().any(|word| {
                matches!(*word, "-l" | "--list")
                    || ["--contains", "--no-contains", "--merged", "--no-merged", "--points-at"]
                        .iter()
                        .any(|option| word.starts_with(option))
            });
            used.read_only &= names_nothing || lists;
            used
        }
        "remote" => {
            let read_only = matches!(
                words.as_slice(),
                [] | ["-v" | "--verbose"] | ["get-url", _] | ["get-url", "--all" | "--push", _]
            ) && args.iter().all(|arg| arg.live.is_none());
            Use { read_only, ..Use::default() }
        }
        "stash" => match (words.split_first(), args.split_first()) {
            (Some((&("list" | "show"), _)), Some((_, rest))) => log_entry().judge(rest),
            _ => Use::default(),
        },
        "reflog" => match (words.first(), args.split_first()) {
            (Some(&"show"), Some((_, rest))) => log_entry().judge(rest),
            (Some(&"exists"), _) => {
                Use { read_only: args.iter().all(|arg| arg.live.is_none()), ..Use::default() }
            }
            (Some(&("expire" | "delete" | "drop" | "write")), _) => Use::default(),
            _ => log_entry().judge(args),
        },
        "worktree" => Use {
            read_only: matches!(words.as_slice(), ["list"] | ["list", "--porcelain" | "-v" | "--verbose"]),
            ..Use::default()
        },
        "submodule" => Use {
            read_only: matches!(words.as_slice(), ["status"] | ["status", "--recursive"]),
            hazard: words.first() == Some(&"foreach"),
            ..Use::default()
        },
        "notes" => Use { read_only: matches!(words.as_slice(), ["list"] | ["show"]), ..Use::default() },
        "config" => {
            let mut used = CONFIG.judge(args);
            used.read_only &= words.iter().any(|word| {
                matches!(*word, "--get" | "--get-all" | "--get-regexp" | "--get-urlmatch" | "--list" | "-l")
            }) || matches!(words.as_slice(), ["get", _] | ["list"])
                || matches!(words.as_slice(), [name] if name.contains('.') && !name.starts_with('-'));
            used
        }
        "symbolic-ref" => Use {
            read_only: matches!(words.as_slice(), [_] | ["--short" | "-q", _] | ["-q", "--short", _])
                && words.iter().all(|word| !matches!(*word, "-d" | "--delete")),
            ..Use::default()
        },
        _ => READERS.iter().find(|entry| entry.names.contains(&name)).map_or_else(
            || Use { hazard: runs_something(name, args), ..Use::default() },
            |entry| entry.judge(args),
        ),
    }
}

fn log_entry() -> Entry {
    READERS.iter().find(|entry| entry.names.contains(&"log")).copied().unwrap_or(GIT)
}

/// Whether a subcommand that changes things is told to run a program of the caller's choice.
fn runs_something(name: &str, args: &[Arg]) -> bool {
    const RUNNERS: &[&str] = &[
        "filter-branch",
        "difftool",
        "mergetool",
        "daemon",
        "send-email",
        "instaweb",
        "upload-pack",
        "receive-pack",
        "shell",
    ];
    let mut prose = false;
    let mut runs = |arg: &Arg| {
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
            _ => false,
        };
        long || short || (arg.live.is_some() && arg.may_be_option())
    };
    RUNNERS.contains(&name)
        || matches!(
            (name, args.first().map(|arg| arg.text.as_str())),
            ("bisect", Some("run")) | ("submodule", Some("foreach"))
        )
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
];

/// Options whose value is prose, so that a live one picks nothing.
pub(in super::super) fn takes_prose(option: &str) -> bool {
    matches!(option, "-m" | "-am" | "--message" | "-F" | "--file")
}
