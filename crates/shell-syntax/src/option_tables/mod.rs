//! Option tables: with which options a program only reads, and which of its arguments name files.
//!
//! There is one constant entry per program and one file per family of programs. An entry lists the options with which
//! the program only reads. Any other option makes the use unknown: a list of dangerous options would be wrong with the
//! next release of the program. Long options count only when written out, because an abbreviation may also stand for
//! an option that the table does not have.

pub(super) mod archive;
pub(super) mod builtins;
pub(super) mod files;
pub(super) mod git;
mod git_args;
mod git_readers;
mod git_runs_program;
mod git_shown_files;
mod git_subcommands;
mod git_writers;
mod judge;
pub(super) mod search;
pub(super) mod system;
pub(super) mod text;
pub(super) mod versions;

use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use std::collections::HashMap;
use std::sync::LazyLock;
use toolgate_proto::PathScope;

/// A program that only reads when it is used with the listed options.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionTable {
    /// The programs, or the subcommands, that share the entry.
    pub(super) names: &'static [&'static str],
    /// Short options without a value.
    pub(super) flags: &'static str,
    /// Short options with a value, which is attached or the next word.
    pub(super) valued: &'static str,
    /// Short options whose value, if any, is attached.
    pub(super) attached: &'static str,
    /// Short options whose value is a number; with any other value the program takes that word for something else.
    pub(super) counts: &'static str,
    /// Short options whose value is a file that is read.
    pub(super) files: &'static str,
    /// Short options whose value is a name, or a file that is read if it contains a slash.
    pub(super) names_or_files: &'static str,
    /// The value of a short option is the next word also if letters follow it, and these are options too.
    pub(super) values_in_next_word: bool,
    /// Long options, separated by blanks: `name` without a value, `name=` with a value, `name?` with a value only
    /// after `=`, `name<` with a file to read, `name/` with a name, or a file if it contains a slash.
    pub(super) long: &'static str,
    /// Options that are listed with their values, although others of the same name are hazards (`--paging=never`).
    pub(super) whole_options: &'static [&'static str],
    /// Further long options, which a family of programs shares.
    pub(super) more_long: &'static str,
    /// `-5` is an option with a number.
    pub(super) numbers: bool,
    /// What the arguments are that are no options.
    pub(super) operands: OperandKind,
    /// How many of them there may be.
    pub(super) max_operands: usize,
    /// Options that give the pattern, separated by blanks: with one of them the first operand is a file.
    pub(super) pattern: &'static str,
    /// Short options with which directories are read with everything below them.
    pub(super) tree: &'static str,
    /// The same for long options, separated by blanks.
    pub(super) tree_long: &'static str,
    /// An argument that begins with `@` names a file with further arguments, as in binutils.
    pub(super) at_files: bool,
    /// Operands that are subcommands with another meaning (`bat cache`).
    pub(super) not_operands: &'static [&'static str],
    /// Programs that it starts by itself. Those of shell scripts are in `executed_programs`.
    pub(super) helpers: &'static [&'static str],
    /// Files and directories of the system that it reads by itself; `~/` stands for the home directory.
    pub(super) looks_in: &'static [&'static str],
    /// Options that write a file, run a program or use the network: a wildcard rule for the program does not cover
    /// them. `-x` stands for the letter in any cluster, `--name` for every abbreviation.
    pub(super) hazards: WordList,
}

/// What the arguments of a program are that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandKind {
    /// Text that the program prints or computes with.
    Text,
    /// No argument is allowed.
    Nothing,
    /// Files that are read.
    Files,
    /// Files or directories; without one, the working directory is read.
    Here,
    /// Directories with everything below them; without one, the working directory.
    Tree,
    /// A pattern or program, then files.
    PatternThenFiles,
    /// A pattern, then directories with everything below them; without one, the working directory.
    PatternThenTree,
    /// Names of revisions, or paths in a repository.
    Revisions,
}

/// The base of every entry: no option is listed.
pub(super) const EMPTY_OPTION_TABLE: OptionTable = OptionTable {
    names: &[],
    flags: "",
    valued: "",
    attached: "",
    counts: "",
    files: "",
    names_or_files: "",
    values_in_next_word: false,
    long: "",
    whole_options: &[],
    more_long: "",
    numbers: false,
    operands: OperandKind::Files,
    max_operands: usize::MAX,
    pattern: "",
    tree: "",
    tree_long: "",
    at_files: false,
    not_operands: &[],
    helpers: &[],
    looks_in: &[],
    hazards: WordList(""),
};

/// What is known of one use of a program.
#[derive(Debug, Default)]
pub(super) struct ProgramUse {
    /// It only reads: it writes no file, runs no program, and uses no network.
    pub(super) read_only: bool,
    /// It has, or may have, an option that no wildcard rule covers.
    pub(super) hazard: bool,
    /// The files and directories that it reads.
    pub(super) reads: Vec<(ShellArg, PathScope)>,
    /// It reads the working directory, alone or with everything below it.
    pub(super) here: Option<PathScope>,
    /// The files that it writes because of an option.
    pub(super) writes: Vec<ShellArg>,
    /// The name of a file is not known.
    pub(super) unknown: bool,
    /// Its arguments are only printed or compared, so that unknown ones select nothing.
    pub(super) text: bool,
    /// It prints none of its arguments, so that an unknown one reveals nothing.
    pub(super) silent: bool,
    /// It removes what it finds (`find -delete`).
    pub(super) removes: bool,
    /// Globs that begin with a wildcard: a file that one of them matches may have the name of an option that does more
    /// than read.
    pub(super) option_globs: Vec<ShellArg>,
    /// An unknown argument may be an option; no option of the program does more than read.
    pub(super) maybe_unknown_option: bool,
    /// It reads more than its arguments name, such as a package database.
    pub(super) reads_beyond_args: bool,
    /// Names of files that choose which program runs, in the working directory or any directory above it.
    pub(super) chosen_by: &'static [&'static str],
    /// Files and directories of the system that it reads by itself; `~/` stands for the home directory.
    pub(super) looks_in: &'static [&'static str],
    /// Programs that it starts by itself.
    pub(super) helpers: &'static [&'static str],
}

/// The option table of a program by its name.
pub(super) fn find_option_table(program: &str) -> Option<&'static OptionTable> {
    static BY_NAME: LazyLock<HashMap<&str, &OptionTable>> = LazyLock::new(|| {
        [
            builtins::BUILTIN_TABLES,
            text::TEXT_TABLES,
            files::FILE_TABLES,
            search::SEARCH_TABLES,
            system::SYSTEM_TABLES,
            archive::ARCHIVE_TABLES,
        ]
        .into_iter()
        .flatten()
        .flat_map(|entry| entry.names.iter().map(move |name| (*name, entry)))
        .collect()
    });
    BY_NAME.get(program).copied()
}

/// What kind of value an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionValueKind {
    /// No value, or one that is attached and selects nothing.
    None,
    /// A value that names no file.
    Plain,
    /// A number.
    Count,
    /// A name, or a file that is read if it contains a slash.
    NameOrFile,
    /// The name of a file that is read.
    File,
}

impl OptionTable {
    /// The kind of value that a long option takes; `None` if the option is not listed in this form. `attached`: it
    /// is written with `=` and a value.
    fn long_option_value(&self, name: &str, attached: bool) -> Option<OptionValueKind> {
        let mut specs = self.long.split_ascii_whitespace().chain(self.more_long.split_ascii_whitespace());
        let kind = specs.find_map(|spec| {
            let rest = spec.strip_prefix(name)?;
            matches!(rest, "" | "=" | "?" | "<" | "/").then_some(rest)
        });
        match kind {
            Some("") if !attached => Some(OptionValueKind::None),
            Some("?") => Some(OptionValueKind::None),
            Some("=") => Some(OptionValueKind::Plain),
            Some("<") => Some(OptionValueKind::File),
            Some("/") => Some(OptionValueKind::NameOrFile),
            Some(_) | None => None,
        }
    }

    /// Whether a long option is a hazard, written out or abbreviated.
    fn is_long_hazard(&self, name: &str) -> bool {
        self.hazards.iter().any(|hazard| {
            hazard.strip_prefix("--").is_some_and(|full| !name.is_empty() && full.starts_with(name))
        })
    }

    /// Whether a short option is a hazard.
    fn is_short_hazard(&self, flag: char) -> bool {
        self.hazards.iter().any(|hazard| hazard.strip_prefix('-').is_some_and(|rest| rest.chars().eq([flag])))
    }

    /// Whether a cluster is a number that the program takes as an option.
    fn is_count(&self, cluster: &str) -> bool {
        self.numbers && !cluster.is_empty() && cluster.bytes().all(|byte| byte.is_ascii_digit())
    }
}
