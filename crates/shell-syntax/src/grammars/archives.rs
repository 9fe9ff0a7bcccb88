//! `tar`, `unzip`, `gzip` and their relatives.
//!
//! Listing and testing an archive only reads; extracting, creating and compressing write, and some options of `tar` run
//! programs. The mode is one letter among others (`tf`, `-xvf`), so that all letters have to be known.

use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// Options of `tar` that run a program, or read or write files outside of the archive; every abbreviation counts.
const TAR_HAZARDS: WordList = WordList(
    "--to-command --checkpoint-action --use-compress-program --info-script --new-volume-script \
     --rsh-command --rmt-command --absolute-names --index-file --files-from",
);

/// The programs with which `tar` decompresses an archive. It chooses by the content of the archive, also without an
/// option, so that all of them are listed.
const DECOMPRESSORS: &[&str] = &["gzip", "bzip2", "xz", "zstd", "lzip", "lzma", "lzop", "compress"];

/// Judges `tar`, which only reads in list mode.
///
/// The first argument is a cluster of letters even without a dash, and `f` takes the next word as the archive.
pub(super) fn judge_tar(args: &[ShellArg]) -> ProgramUse {
    let mut used = ProgramUse { read_only: true, helpers: DECOMPRESSORS, ..ProgramUse::default() };
    if matches!(args, [only] if matches!(only.known(), Some("--help" | "--usage" | "--version"))) {
        return ProgramUse { read_only: true, text: true, ..ProgramUse::default() };
    }
    let mut lists = false;
    let mut words = args.iter().enumerate();
    let mut options = true;
    while let Some((position, arg)) = words.next() {
        let Some(text) = arg.known() else {
            used.read_only &= !arg.may_be_option() || !options;
            used.hazard |= arg.may_be_option() && options;
            continue;
        };
        if text == "--" {
            options = false;
        } else if let Some(name) = text.strip_prefix("--").filter(|_| options) {
            let option = text.split_once('=').map_or(text, |(option, _)| option);
            match name {
                "list" => lists = true,
                "verbose" | "gzip" | "bzip2" | "xz" | "zstd" | "auto-compress" | "wildcards"
                | "no-wildcards" | "full-time" | "utc" | "numeric-owner" | "totals" | "force-local"
                | "gunzip" | "ungzip" => {}
                _ if name.starts_with("exclude=") || name.starts_with("strip-components=") => {}
                _ if name.starts_with("file=") => {
                    add_archive(&mut used, &ShellArg::literal(name.trim_start_matches("file=")))
                }
                _ => {
                    used.read_only = false;
                    used.hazard |=
                        option.len() > 2 && TAR_HAZARDS.iter().any(|hazard| hazard.starts_with(option));
                }
            }
        } else if options && (text.starts_with('-') || position == 0) {
            let mut cluster = text.trim_start_matches('-').chars();
            while let Some(flag) = cluster.next() {
                match flag {
                    't' => lists = true,
                    'v' | 'z' | 'j' | 'J' | 'a' => {}
                    'f' if text.starts_with('-') && !cluster.as_str().is_empty() => {
                        add_archive(&mut used, &ShellArg::literal(cluster.as_str()));
                        break;
                    }
                    'f' => match words.next() {
                        Some((_, file)) => add_archive(&mut used, file),
                        None => used.read_only = false,
                    },
                    _ => {
                        used.read_only = false;
                        used.hazard |= matches!(flag, 'I' | 'F' | 'P' | 'T');
                    }
                }
            }
        }
    }
    used.read_only &= lists;
    used
}

/// Adds the archive that is read.
fn add_archive(used: &mut ProgramUse, file: &ShellArg) {
    // For `host:file` tar starts a remote shell.
    used.read_only &= file.known().is_some_and(|name| !name.contains(':'));
    used.reads.push((file.clone(), PathScope::Entry));
}

/// Judges `unzip`, which only reads when it lists or tests.
pub(super) fn judge_unzip(args: &[ShellArg]) -> ProgramUse {
    let listing = |arg: &ShellArg| {
        matches!(arg.known(), Some("-l" | "-v" | "-t" | "-lv" | "-Z" | "-Z1" | "-qt" | "-tq" | "-lq" | "-ql"))
    };
    match args {
        [mode, file] if listing(mode) && !file.may_be_option() => ProgramUse {
            read_only: true,
            reads: vec![(file.clone(), PathScope::Entry)],
            ..ProgramUse::default()
        },
        _ => ProgramUse::default(),
    }
}

/// Judges `gzip` and its relatives, which only read when they list, test, or write to standard output.
///
/// Without `-l`, `-t` or `-c` they replace their operands.
pub(super) fn judge_gzip(args: &[ShellArg]) -> ProgramUse {
    let mut used = ProgramUse::default();
    let mut safe = true;
    for arg in args {
        if !arg.may_be_option() {
            used.reads.push((arg.clone(), PathScope::Entry));
            continue;
        }
        match arg.known() {
            Some("--list" | "--test" | "--stdout" | "--to-stdout") => used.read_only = true,
            Some("--verbose" | "--quiet" | "--version" | "--help" | "--decompress" | "--keep") => {}
            Some(text)
                if !text.starts_with("--") && text.chars().skip(1).all(|flag| "cdkltvqN".contains(flag)) =>
            {
                used.read_only |= text.contains(['c', 'l', 't']);
            }
            Some(_) | None => safe = false,
        }
    }
    used.read_only &= safe;
    used
}
