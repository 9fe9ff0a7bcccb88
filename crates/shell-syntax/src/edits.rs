//! Programs that change files, and which files their words name.

use super::expand::ShellArg;
use super::grammars;
use toolgate_proto::{PathScope, WriteKind};

/// What a file-changing command does.
#[derive(Debug, Default)]
pub(super) struct CommandEdits {
    pub(super) reads: Vec<(ShellArg, PathScope)>,
    pub(super) writes: Vec<CommandEditTarget>,
    /// All that it changes is in `writes`.
    pub(super) complete: bool,
    /// One of the commands that mode `acceptEdits` frees.
    pub(super) accept_edits_command: bool,
    /// What is removed for good.
    pub(super) removed: Vec<ShellArg>,
}

/// A file that is changed.
#[derive(Debug)]
pub(super) struct CommandEditTarget {
    pub(super) file: ShellArg,
    pub(super) kind: WriteKind,
    /// What is put into it if it is a directory.
    pub(super) entries: Vec<String>,
}

/// Options and operands, told apart.
struct CommandEditArgs<'a> {
    operands: Vec<&'a ShellArg>,
    flags: String,
    /// Long options, without their values.
    long: Vec<&'a str>,
    /// The value of `-t` or `--target-directory`.
    target_directory: Option<ShellArg>,
    complete: bool,
}

/// Long options of these programs whose value may be the next word.
const LONG_VALUED: &[&str] = &[
    "--suffix",
    "--mode",
    "--date",
    "--reference",
    "--time",
    "--size",
    "--group",
    "--owner",
    "--from",
    "--length",
    "--offset",
    "--iterations",
    "--random-source",
];

/// Long options of these programs that take no value, or only after `=`, and that change no other file.
const LONG_FLAGS: &[&str] = &[
    "--archive",
    "--append",
    "--backup",
    "--changes",
    "--debug",
    "--dereference",
    "--dir",
    "--directory",
    "--force",
    "--help",
    "--ignore-fail-on-non-empty",
    "--ignore-interrupts",
    "--interactive",
    "--link",
    "--logical",
    "--no-clobber",
    "--no-create",
    "--no-dereference",
    "--no-preserve",
    "--no-preserve-root",
    "--no-target-directory",
    "--one-file-system",
    "--parents",
    "--physical",
    "--preserve",
    "--preserve-root",
    "--quiet",
    "--recursive",
    "--reflink",
    "--relative",
    "--remove",
    "--remove-destination",
    "--silent",
    "--sparse",
    "--strip-trailing-slashes",
    "--symbolic",
    "--symbolic-link",
    "--update",
    "--verbose",
    "--version",
    "--zero",
    "--attributes-only",
    "--copy-contents",
    "--context",
    "--exact",
    "--compare",
];

/// Whether a long option is this one, written out or shortened.
fn abbreviates(name: &str, full: &str) -> bool {
    name.len() > 2 && full.starts_with(name)
}

fn split_options<'a>(args: &'a [ShellArg], valued: &str) -> CommandEditArgs<'a> {
    let mut words = CommandEditArgs {
        operands: Vec::new(),
        flags: String::new(),
        long: Vec::new(),
        target_directory: None,
        complete: true,
    };
    let mut options = true;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if !options || arg.live.is_some() || arg.tilde || !arg.text.starts_with('-') || arg.text == "-" {
            words.complete &= !options || arg.live.is_none() || !arg.may_be_option() || arg.pattern.is_some();
            words.operands.push(arg);
        } else if arg.text == "--" {
            options = false;
        } else if arg.text.starts_with("--") {
            let (name, attached) = match arg.text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.text.as_str(), None),
            };
            words.long.push(name);
            if abbreviates(name, "--target-directory") {
                words.target_directory = attached.map(ShellArg::literal).or_else(|| rest.next().cloned());
            } else if LONG_VALUED.iter().any(|full| abbreviates(name, full)) {
                if attached.is_none() {
                    rest.next();
                }
            } else {
                // An option that is not known may take the next word.
                words.complete &= attached.is_some() || LONG_FLAGS.iter().any(|full| abbreviates(name, full));
            }
        } else {
            let mut cluster = arg.text.chars().skip(1);
            while let Some(flag) = cluster.next() {
                words.flags.push(flag);
                if valued.contains(flag) {
                    let attached: String = cluster.collect();
                    let value = if attached.is_empty() {
                        rest.next().cloned()
                    } else {
                        Some(ShellArg::literal(attached))
                    };
                    if flag == 't' {
                        words.target_directory = value;
                    }
                    break;
                }
            }
        }
    }
    words
}

fn edit_target(file: &ShellArg, kind: WriteKind) -> CommandEditTarget {
    CommandEditTarget { file: file.clone(), kind, entries: Vec::new() }
}

/// What the words of a file-changing program come to; `None` if it is none.
pub(super) fn parse_edits(program: &str, args: &[ShellArg]) -> Option<CommandEdits> {
    Some(match program {
        "rm" | "rmdir" | "unlink" | "shred" => {
            let words = split_options(args, "");
            let deep = words.flags.contains(['r', 'R'])
                || words.long.iter().any(|option| abbreviates(option, "--recursive"));
            let kind = if deep { WriteKind::Tree } else { WriteKind::Delete };
            CommandEdits {
                writes: words.operands.iter().map(|file| edit_target(file, kind)).collect(),
                complete: words.complete,
                accept_edits_command: matches!(program, "rm" | "rmdir"),
                removed: words.operands.into_iter().cloned().collect(),
                ..CommandEdits::default()
            }
        }
        "mkdir" | "touch" => {
            let words = split_options(args, if program == "mkdir" { "m" } else { "drt" });
            // `touch -t` takes a time, not a directory.
            CommandEdits {
                writes: words.operands.iter().map(|file| edit_target(file, WriteKind::Put)).collect(),
                complete: words.complete,
                accept_edits_command: true,
                ..CommandEdits::default()
            }
        }
        "cp" | "mv" | "ln" | "install" | "link" => parse_copy(program, args),
        "tee" => {
            let words = split_options(args, "");
            CommandEdits {
                writes: words.operands.iter().map(|file| edit_target(file, WriteKind::Put)).collect(),
                complete: words.complete,
                ..CommandEdits::default()
            }
        }
        "truncate" | "fallocate" | "mkfifo" | "mknod" => {
            let words = split_options(args, "sroml");
            CommandEdits {
                writes: words.operands.iter().map(|file| edit_target(file, WriteKind::Put)).collect(),
                ..CommandEdits::default()
            }
        }
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" => {
            let words = split_options(args, "");
            let kind = if words.flags.contains('R')
                || words.long.iter().any(|option| abbreviates(option, "--recursive"))
            {
                WriteKind::Tree
            } else {
                WriteKind::Edit
            };
            CommandEdits {
                writes: words.operands.iter().skip(1).map(|file| edit_target(file, kind)).collect(),
                complete: words.complete,
                ..CommandEdits::default()
            }
        }
        "dd" => {
            let value = |name: &str| {
                args.iter().filter_map(|arg| arg.text.strip_prefix(name)).map(ShellArg::literal).next()
            };
            CommandEdits {
                reads: value("if=").map(|file| (file, PathScope::Entry)).into_iter().collect(),
                writes: value("of=").map(|file| edit_target(&file, WriteKind::Put)).into_iter().collect(),
                ..CommandEdits::default()
            }
        }
        "sed" | "gsed" => {
            let written = grammars::sed_in_place(args)?;
            let used = grammars::judge("sed", args)?;
            let files = written.files.iter().map(|file| edit_target(file, WriteKind::Edit));
            CommandEdits {
                writes: files
                    .chain(written.beside.iter().map(|file| edit_target(file, WriteKind::Put)))
                    .collect(),
                complete: !used.hazard && written.complete,
                accept_edits_command: !used.hazard && written.complete,
                ..CommandEdits::default()
            }
        }
        "sort" | "uniq" | "iconv" | "shuf" | "tree" | "xxd" | "curl" | "wget" => {
            parse_output_options(program, args)?
        }
        _ => return None,
    })
}

fn parse_copy(program: &str, args: &[ShellArg]) -> CommandEdits {
    let words = split_options(args, if program == "install" { "tSgmo" } else { "tS" });
    let deep = words.flags.contains(['r', 'R', 'a'])
        || words
            .long
            .iter()
            .any(|option| abbreviates(option, "--recursive") || abbreviates(option, "--archive"));
    let (sources, into) = match (&words.target_directory, words.operands.split_last()) {
        (Some(into), _) => (words.operands.clone(), Some(into.clone())),
        (None, Some((last, sources))) if !sources.is_empty() => (sources.to_vec(), Some((*last).clone())),
        // `ln -s target` makes a link here.
        (None, _) => (words.operands.clone(), None),
    };
    let entries = sources
        .iter()
        .filter_map(|source| source.text.trim_end_matches('/').rsplit('/').next().map(str::to_owned))
        .filter(|name| !name.is_empty())
        .collect();
    let kind = if deep || program == "mv" { WriteKind::Tree } else { WriteKind::Put };
    let mut writes: Vec<CommandEditTarget> = into
        .into_iter()
        .map(|file| CommandEditTarget {
            file,
            kind: if program == "mv" { WriteKind::Put } else { kind },
            entries: Vec::clone(&entries),
        })
        .collect();
    let mut reads = Vec::new();
    match program {
        "mv" => writes.extend(sources.iter().map(|source| edit_target(source, WriteKind::Tree))),
        _ => reads.extend(
            sources
                .iter()
                .map(|source| ((*source).clone(), if deep { PathScope::Tree } else { PathScope::Entry })),
        ),
    }
    let complete = words.complete && !writes.is_empty();
    CommandEdits {
        reads,
        writes,
        complete,
        accept_edits_command: matches!(program, "cp" | "mv"),
        removed: Vec::new(),
    }
}

/// Readers that write when told to.
fn parse_output_options(program: &str, args: &[ShellArg]) -> Option<CommandEdits> {
    let mut writes = Vec::new();
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        let text = arg.text.as_str();
        if let Some((name, file)) = text
            .split_once('=')
            .filter(|(name, _)| abbreviates(name, "--output") || abbreviates(name, "--output-document"))
        {
            if name.len() > 3 {
                writes.push(edit_target(&ShellArg::literal(file), WriteKind::Put));
            }
        } else if (text.len() > 3
            && (abbreviates(text, "--output") || abbreviates(text, "--output-document")))
            || matches!(text, "-o" | "-O" | "-P") && !(program == "curl" && text == "-O")
        {
            writes.extend(words.next().map(|file| edit_target(file, WriteKind::Put)));
        } else if !text.starts_with("--")
            && let Some(cluster) = text.strip_prefix('-')
            && let Some((_, file)) =
                cluster.split_once('o').filter(|_| matches!(program, "sort" | "shuf" | "iconv"))
        {
            // `-uo x`, `-ox`.
            if file.is_empty() {
                writes.extend(words.next().map(|file| edit_target(file, WriteKind::Put)));
            } else {
                writes.push(edit_target(&ShellArg::literal(file), WriteKind::Put));
            }
        }
    }
    if matches!(program, "uniq" | "xxd") {
        let operands: Vec<&ShellArg> = args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        writes.extend(operands.get(1).map(|file| edit_target(file, WriteKind::Put)));
    }
    (!writes.is_empty()).then(|| CommandEdits { writes, ..CommandEdits::default() })
}
