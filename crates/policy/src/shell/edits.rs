//! Programs that change files, and which files their words name.

use super::expand::Arg;
use super::grammars;
use toolgate_proto::{Scope, WriteKind};

/// What a file-changing command does.
#[derive(Debug, Default)]
pub(super) struct Edit {
    pub(super) reads: Vec<(Arg, Scope)>,
    pub(super) writes: Vec<Target>,
    /// All that it changes is in `writes`.
    pub(super) complete: bool,
    /// One of the commands that mode `acceptEdits` frees.
    pub(super) everyday: bool,
    /// What is removed for good.
    pub(super) removed: Vec<Arg>,
}

/// A file that is changed.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) file: Arg,
    pub(super) kind: WriteKind,
    /// What is put into it if it is a directory.
    pub(super) entries: Vec<String>,
}

/// Options and operands, told apart.
struct Words<'a> {
    operands: Vec<&'a Arg>,
    flags: String,
    long: Vec<&'a str>,
    /// The value of `-t` or `--target-directory`.
    into: Option<Arg>,
    complete: bool,
}

fn split<'a>(args: &'a [Arg], valued: &str) -> Words<'a> {
    let mut words =
        Words { operands: Vec::new(), flags: String::new(), long: Vec::new(), into: None, complete: true };
    let mut options = true;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if !options || arg.live.is_some() || arg.tilde || !arg.text.starts_with('-') || arg.text == "-" {
            words.complete &= !options || arg.live.is_none() || !arg.may_be_option() || arg.pattern.is_some();
            words.operands.push(arg);
        } else if arg.text == "--" {
            options = false;
        } else if arg.text.starts_with("--") {
            if let Some(directory) = arg.text.strip_prefix("--target-directory=") {
                words.into = Some(Arg::literal(directory));
            }
            words.long.push(arg.text.as_str());
        } else {
            let mut cluster = arg.text.chars().skip(1);
            while let Some(flag) = cluster.next() {
                words.flags.push(flag);
                if valued.contains(flag) {
                    let attached: String = cluster.collect();
                    let value =
                        if attached.is_empty() { rest.next().cloned() } else { Some(Arg::literal(attached)) };
                    if flag == 't' {
                        words.into = value;
                    }
                    break;
                }
            }
        }
    }
    words
}

fn target(file: &Arg, kind: WriteKind) -> Target {
    Target { file: file.clone(), kind, entries: Vec::new() }
}

/// What the words of a file-changing program come to; `None` if it is none.
pub(super) fn edit(program: &str, args: &[Arg]) -> Option<Edit> {
    Some(match program {
        "rm" | "rmdir" | "unlink" | "shred" => {
            let words = split(args, "");
            let deep = words.flags.contains(['r', 'R']) || words.long.contains(&"--recursive");
            let kind = if deep { WriteKind::Tree } else { WriteKind::Delete };
            Edit {
                writes: words.operands.iter().map(|file| target(file, kind)).collect(),
                complete: words.complete,
                everyday: matches!(program, "rm" | "rmdir"),
                removed: words.operands.into_iter().cloned().collect(),
                ..Edit::default()
            }
        }
        "mkdir" | "touch" => {
            let words = split(args, if program == "mkdir" { "m" } else { "drt" });
            // `touch -t` takes a time, not a directory.
            Edit {
                writes: words.operands.iter().map(|file| target(file, WriteKind::Put)).collect(),
                complete: words.complete,
                everyday: true,
                ..Edit::default()
            }
        }
        "cp" | "mv" | "ln" | "install" | "link" => copy(program, args),
        "tee" => {
            let words = split(args, "");
            Edit {
                writes: words.operands.iter().map(|file| target(file, WriteKind::Put)).collect(),
                complete: words.complete,
                ..Edit::default()
            }
        }
        "truncate" | "fallocate" | "mkfifo" | "mknod" => {
            let words = split(args, "sroml");
            Edit {
                writes: words.operands.iter().map(|file| target(file, WriteKind::Put)).collect(),
                ..Edit::default()
            }
        }
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" => {
            let words = split(args, "");
            let kind = if words.flags.contains('R') || words.long.contains(&"--recursive") {
                WriteKind::Tree
            } else {
                WriteKind::Edit
            };
            Edit {
                writes: words.operands.iter().skip(1).map(|file| target(file, kind)).collect(),
                complete: words.complete,
                ..Edit::default()
            }
        }
        "dd" => {
            let value = |name: &str| {
                args.iter().filter_map(|arg| arg.text.strip_prefix(name)).map(Arg::literal).next()
            };
            Edit {
                reads: value("if=").map(|file| (file, Scope::Entry)).into_iter().collect(),
                writes: value("of=").map(|file| target(&file, WriteKind::Put)).into_iter().collect(),
                ..Edit::default()
            }
        }
        "sed" | "gsed" => {
            let files = grammars::sed_in_place(args)?;
            let used = grammars::judge("sed", args)?;
            Edit {
                writes: files.iter().map(|file| target(file, WriteKind::Edit)).collect(),
                complete: !used.hazard,
                everyday: !used.hazard,
                ..Edit::default()
            }
        }
        "sort" | "uniq" | "iconv" | "shuf" | "tree" | "xxd" | "curl" | "wget" => {
            written_by_option(program, args)?
        }
        _ => return None,
    })
}

fn copy(program: &str, args: &[Arg]) -> Edit {
    let words = split(args, if program == "install" { "tSgmo" } else { "tS" });
    let deep = words.flags.contains(['r', 'R', 'a'])
        || words.long.iter().any(|option| matches!(*option, "--recursive" | "--archive"));
    let (sources, into) = match (&words.into, words.operands.split_last()) {
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
    let mut writes: Vec<Target> = into
        .into_iter()
        .map(|file| Target {
            file,
            kind: if program == "mv" { WriteKind::Put } else { kind },
            entries: Vec::clone(&entries),
        })
        .collect();
    let mut reads = Vec::new();
    match program {
        "mv" => writes.extend(sources.iter().map(|source| target(source, WriteKind::Tree))),
        _ => reads.extend(
            sources.iter().map(|source| ((*source).clone(), if deep { Scope::Tree } else { Scope::Entry })),
        ),
    }
    let complete = words.complete && !writes.is_empty();
    Edit { reads, writes, complete, everyday: matches!(program, "cp" | "mv"), removed: Vec::new() }
}

/// Readers that write when told to.
fn written_by_option(program: &str, args: &[Arg]) -> Option<Edit> {
    let mut writes = Vec::new();
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        if let Some(file) =
            arg.text.strip_prefix("--output=").or_else(|| arg.text.strip_prefix("--output-document="))
        {
            writes.push(target(&Arg::literal(file), WriteKind::Put));
        } else if matches!(arg.text.as_str(), "-o" | "--output" | "-O" | "--output-document" | "-P")
            && !(program == "curl" && arg.text == "-O")
        {
            writes.extend(words.next().map(|file| target(file, WriteKind::Put)));
        }
    }
    if matches!(program, "uniq" | "xxd") {
        let operands: Vec<&Arg> = args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        writes.extend(operands.get(1).map(|file| target(file, WriteKind::Put)));
    }
    (!writes.is_empty()).then(|| Edit { writes, ..Edit::default() })
}
