//! Parses the arguments of programs that change files: which files they write, remove and read.
//!
//! Mode `acceptEdits` allows some of these commands inside the workspace without an approval. That is safe only if
//! every
//! file that they change is known, so that an option that is not listed makes the result incomplete.

use crate::grammars;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::{PathScope, WriteKind};

/// What a command that changes files does.
#[derive(Debug, Default)]
pub(crate) struct CommandEdits {
    /// The files that it reads, such as the sources of a copy.
    pub(crate) reads: Vec<(ShellArg, PathScope)>,
    /// The files that it changes.
    pub(crate) writes: Vec<CommandEditTarget>,
    /// It changes nothing that is not in `writes`: all of its options are known.
    pub(crate) complete: bool,
    /// It is one of the commands that mode `acceptEdits` allows inside the workspace.
    pub(crate) accept_edits_command: bool,
    /// The files and directories that it removes.
    pub(crate) removed: Vec<ShellArg>,
}

/// A file that is changed.
#[derive(Debug)]
pub(crate) struct CommandEditTarget {
    /// The argument that names it.
    pub(crate) file: ShellArg,
    /// How it is changed: created or overwritten, edited, deleted, or with everything below it.
    pub(crate) kind: WriteKind,
    /// The names under which entries are put into it if it is a directory.
    pub(crate) entries: Vec<String>,
}

/// The arguments of such a command, split into options and operands.
struct CommandEditArgs<'a> {
    /// The arguments that are no options.
    operands: Vec<&'a ShellArg>,
    /// The letters of the short options.
    flags: String,
    /// The long options without their values.
    long: Vec<&'a str>,
    /// The value of `-t` or `--target-directory`.
    target_directory: Option<ShellArg>,
    /// The value of `-S` or `--suffix`, which is appended to the name of a file that is replaced.
    suffix: Option<ShellArg>,
    /// The meaning of every option is known.
    complete: bool,
}

/// Long options of these programs whose value may be the next word.
const LONG_VALUED: WordList = WordList(
    "--suffix --mode --date --reference --time --size --group --owner --from --length --offset \
     --iterations --random-source",
);

/// Long options of these programs that take no value, or only after `=`, and that change no other file.
const LONG_FLAGS: WordList = WordList(
    "--archive --append --backup --changes --debug --dereference --dir --directory --force --help \
     --ignore-fail-on-non-empty --ignore-interrupts --interactive --link --logical --no-clobber \
     --no-create --no-dereference --no-preserve --no-preserve-root --no-target-directory \
     --one-file-system --parents --physical --preserve --preserve-root --quiet --recursive --reflink \
     --relative --remove --remove-destination --silent --sparse --strip-trailing-slashes --symbolic \
     --symbolic-link --update --verbose --version --zero --attributes-only --copy-contents --context \
     --exact --compare",
);

/// Whether `name` is a long option, written out or abbreviated.
fn abbreviates(name: &str, full: &str) -> bool {
    name.len() > 2 && full.starts_with(name)
}

/// Splits arguments into options and operands. `valued` are the short options with a value.
///
/// GNU programs accept options after operands, so that all arguments up to `--` are searched.
fn split_options<'a>(args: &'a [ShellArg], valued: &str) -> CommandEditArgs<'a> {
    let mut words = CommandEditArgs {
        operands: Vec::new(),
        flags: String::new(),
        long: Vec::new(),
        target_directory: None,
        suffix: None,
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
                let value = attached.map(ShellArg::literal).or_else(|| rest.next().cloned());
                if abbreviates(name, "--suffix") {
                    words.suffix = value;
                }
            } else {
                // An unknown option may take the next word as its value.
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
                    match flag {
                        't' => words.target_directory = value,
                        'S' => words.suffix = value,
                        _ => {}
                    }
                    break;
                }
            }
        }
    }
    words
}

/// A file that is changed, and is no directory that gets entries.
fn edit_target(file: &ShellArg, kind: WriteKind) -> CommandEditTarget {
    CommandEditTarget { file: file.clone(), kind, entries: Vec::new() }
}

/// What a use of a program changes; `None` if the program is none that changes files.
pub(crate) fn parse_edits(program: &str, args: &[ShellArg]) -> Option<CommandEdits> {
    Some(match program {
        "rm" | "rmdir" | "unlink" | "shred" => parse_removal(program, args),
        // `touch -t` takes a time, not a directory; no target directory is used here.
        "mkdir" => CommandEdits { accept_edits_command: true, ..parse_created(args, "m") },
        "touch" => CommandEdits { accept_edits_command: true, ..parse_created(args, "drt") },
        "tee" => parse_created(args, ""),
        "truncate" | "fallocate" | "mkfifo" | "mknod" => {
            CommandEdits { complete: false, ..parse_created(args, "sroml") }
        }
        "cp" | "mv" | "ln" | "install" | "link" => parse_copy(program, args),
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" => parse_attribute_change(args),
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
        "sed" | "gsed" => parse_in_place_edit(args)?,
        "sort" | "uniq" | "iconv" | "shuf" | "tree" | "xxd" | "curl" | "wget" => {
            parse_output_options(program, args)?
        }
        _ => return None,
    })
}

/// What `rm` and its relatives remove.
fn parse_removal(program: &str, args: &[ShellArg]) -> CommandEdits {
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

/// The files of a command whose operands are all created or overwritten. `valued` are the short options with a value.
fn parse_created(args: &[ShellArg], valued: &str) -> CommandEdits {
    let words = split_options(args, valued);
    CommandEdits {
        writes: words.operands.iter().map(|file| edit_target(file, WriteKind::Put)).collect(),
        complete: words.complete,
        ..CommandEdits::default()
    }
}

/// The files of `chmod` and its relatives, whose first operand is the mode or owner.
fn parse_attribute_change(args: &[ShellArg]) -> CommandEdits {
    let words = split_options(args, "");
    let deep =
        words.flags.contains('R') || words.long.iter().any(|option| abbreviates(option, "--recursive"));
    let kind = if deep { WriteKind::Tree } else { WriteKind::Edit };
    CommandEdits {
        writes: words.operands.iter().skip(1).map(|file| edit_target(file, kind)).collect(),
        complete: words.complete,
        ..CommandEdits::default()
    }
}

/// The files that `sed -i` changes; `None` without `-i`.
fn parse_in_place_edit(args: &[ShellArg]) -> Option<CommandEdits> {
    let written = grammars::sed_in_place(args)?;
    let used = grammars::judge("sed", args)?;
    let files = written.files.iter().map(|file| edit_target(file, WriteKind::Edit));
    let beside = written.beside.iter().map(|file| edit_target(file, WriteKind::Put));
    let complete = !used.hazard && written.complete;
    Some(CommandEdits {
        writes: files.chain(beside).collect(),
        complete,
        accept_edits_command: complete,
        ..CommandEdits::default()
    })
}

/// What `cp`, `mv`, `ln` and `install` write and read.
///
/// A target that is a directory gets entries with the names of the sources, so that rules for these names apply.
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
        // `ln -s target` creates a symlink in the working directory.
        (None, _) => (words.operands.clone(), None),
    };
    let mut entries: Vec<String> = sources
        .iter()
        .filter_map(|source| source.text.trim_end_matches('/').rsplit('/').next().map(str::to_owned))
        .filter(|name| !name.is_empty())
        .collect();
    // A file that is replaced is kept under its name with the suffix, which may be a name that is protected.
    let suffix = words.suffix.as_ref();
    let is_suffix_known = suffix.is_none_or(|suffix| suffix.known().is_some());
    let backup = suffix.zip(into.as_ref()).map(|(suffix, into)| ShellArg {
        text: format!("{}{}", into.text.trim_end_matches('/'), suffix.text),
        pattern: into.pattern.as_ref().map(|pattern| format!("{pattern}{}", suffix.text)),
        ..into.clone()
    });
    if let Some(suffix) = suffix {
        let kept: Vec<String> = entries.iter().map(|entry| format!("{entry}{}", suffix.text)).collect();
        entries.extend(kept);
    }
    let kind = if deep || program == "mv" { WriteKind::Tree } else { WriteKind::Put };
    let mut writes: Vec<CommandEditTarget> = into
        .into_iter()
        .map(|file| CommandEditTarget {
            file,
            kind: if program == "mv" { WriteKind::Put } else { kind },
            entries: Vec::clone(&entries),
        })
        .collect();
    writes.extend(backup.map(|file| edit_target(&file, WriteKind::Put)));
    let mut reads = Vec::new();
    match program {
        "mv" => writes.extend(sources.iter().map(|source| edit_target(source, WriteKind::Tree))),
        _ => reads.extend(
            sources
                .iter()
                .map(|source| ((*source).clone(), if deep { PathScope::Tree } else { PathScope::Entry })),
        ),
    }
    let complete = words.complete && is_suffix_known && !writes.is_empty();
    CommandEdits {
        reads,
        writes,
        complete,
        accept_edits_command: matches!(program, "cp" | "mv"),
        removed: Vec::new(),
    }
}

/// The files that readers write with an output option or a second operand; `None` if there is none.
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
