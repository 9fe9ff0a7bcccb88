//! What is known of programs: which options leave them harmless, and which words name files.
//!
//! One const entry per program, one file per family. An entry lists the options under which the program only reads;
//! an option that is not listed, in any spelling, makes the use unknown, and long options count only when written out,
//! because a program may know longer or other names than the table does.

pub(super) mod archive;
pub(super) mod builtins;
pub(super) mod files;
pub(super) mod git;
mod git_args;
mod git_readers;
mod git_shown_files;
pub(super) mod search;
pub(super) mod system;
pub(super) mod text;
pub(super) mod versions;

use super::expand::ShellArg;
use std::collections::HashMap;
use std::sync::LazyLock;
use toolgate_proto::PathScope;

/// A program that only reads, used with the listed options.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionTable {
    /// The program, or the subcommand, and others that share the entry.
    pub(super) names: &'static [&'static str],
    /// Short options without a value.
    pub(super) flags: &'static str,
    /// Short options with a value, attached or the next word.
    pub(super) valued: &'static str,
    /// Short options whose value, if any, is attached.
    pub(super) attached: &'static str,
    /// Short options whose value is a file that is read.
    pub(super) files: &'static str,
    /// Long options, separated by blanks: `name`, `name=` with a value, `name?` with a value only after `=`, `name<` with a file to read.
    pub(super) long: &'static str,
    /// More long options, where a family shares a list.
    pub(super) more_long: &'static str,
    /// `-5` is a count.
    pub(super) numbers: bool,
    /// What the other words are.
    pub(super) operands: OperandKind,
    /// How many other words there may be.
    pub(super) max_operands: usize,
    /// Options that give the pattern, so that the first operand is already a file.
    pub(super) pattern: &'static str,
    /// Flags with which directories are read with all below them.
    pub(super) tree: &'static str,
    /// Long options with which directories are read with all below them, separated by blanks.
    pub(super) tree_long: &'static str,
    /// A word that begins with `@` names a file of further words.
    pub(super) at_files: bool,
    /// Operands that may not be there, because they are subcommands.
    pub(super) not_operands: &'static [&'static str],
    /// Programs that it starts by itself, scripts on common systems apart (see `programs`).
    pub(super) helpers: &'static [&'static str],
    /// Places of the system that it looks at by itself; `~/` stands for the home directory.
    pub(super) looks_in: &'static [&'static str],
    /// Options that write, run or send something: a wildcard rule for the program does not speak for them.
    /// `-x` stands for the letter in any cluster, `--name` for every abbreviation.
    pub(super) hazards: &'static [&'static str],
}

/// What the words are that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandKind {
    /// Text that the program only prints or computes with.
    Text,
    /// There may be none.
    Nothing,
    /// Files that are read.
    Files,
    /// Files or directories; without any, the working directory.
    Here,
    /// Directories with all below them; without any, the working directory.
    Tree,
    /// A pattern or program, then files.
    PatternThenFiles,
    /// A pattern, then directories with all below them; without any, the working directory.
    PatternThenTree,
    /// Names of revisions, or paths in a repository.
    Revisions,
}

/// The base of every entry: nothing is allowed.
pub(super) const EMPTY_OPTION_TABLE: OptionTable = OptionTable {
    names: &[],
    flags: "",
    valued: "",
    attached: "",
    files: "",
    long: "",
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
    hazards: &[],
};

/// What an entry says of one use of its program.
#[derive(Debug, Default)]
pub(super) struct ProgramUse {
    /// The program only reads.
    pub(super) read_only: bool,
    /// An option was seen, or may be there, that a wildcard rule does not speak for.
    pub(super) hazard: bool,
    /// The files named.
    pub(super) reads: Vec<(ShellArg, PathScope)>,
    /// The working directory is read.
    pub(super) here: Option<PathScope>,
    /// The files that an option makes it write.
    pub(super) writes: Vec<ShellArg>,
    /// Some word that names a file is not known.
    pub(super) unknown: bool,
    /// The words are only printed or compared, so that live ones are no danger.
    pub(super) text: bool,
    /// Nothing of the words is printed.
    pub(super) silent: bool,
    /// What it finds is removed.
    pub(super) removes: bool,
    /// A word that is not known may be an option; no option of the program does more than read.
    pub(super) maybe_unknown_option: bool,
    /// It reads more than its words name.
    pub(super) reads_beyond_args: bool,
    /// Names of files that choose which program runs, looked for in the working directory and all above it.
    pub(super) chosen_by: &'static [&'static str],
    /// Places of the system that it looks at by itself; `~/` stands for the home directory.
    pub(super) looks_in: &'static [&'static str],
    /// Programs that it starts by itself.
    pub(super) helpers: &'static [&'static str],
}

/// The entry of a program by its bare name.
pub(super) fn find_option_table(program: &str) -> Option<&'static OptionTable> {
    static BY_NAME: LazyLock<HashMap<&str, &OptionTable>> = LazyLock::new(|| {
        [
            builtins::OPTION_TABLES,
            text::OPTION_TABLES,
            files::OPTION_TABLES,
            search::OPTION_TABLES,
            system::OPTION_TABLES,
            archive::OPTION_TABLES,
        ]
        .into_iter()
        .flatten()
        .flat_map(|entry| entry.names.iter().map(move |name| (*name, entry)))
        .collect()
    });
    BY_NAME.get(program).copied()
}

enum OptionValueKind {
    None,
    Plain,
    File,
}

impl OptionTable {
    /// Judges the arguments of one use.
    pub(super) fn judge(&self, args: &[ShellArg]) -> ProgramUse {
        let mut outcome = ProgramUse {
            read_only: true,
            text: self.operands == OperandKind::Text,
            helpers: self.helpers,
            looks_in: self.looks_in,
            ..ProgramUse::default()
        };
        // Response files are looked for in every word, also after `--`.
        if self.at_files && args.iter().any(|arg| arg.text.trim_start_matches('"').starts_with('@')) {
            outcome.read_only = false;
        }
        let mut operands: Vec<&ShellArg> = Vec::new();
        let mut options = true;
        let mut tree = self.operands == OperandKind::Tree || self.operands == OperandKind::PatternThenTree;
        let mut pattern_given = false;
        let mut words = args.iter().peekable();
        while let Some(arg) = words.next() {
            if !options || !arg.may_be_option() {
                operands.push(arg);
                continue;
            }
            if arg.live.is_some() {
                self.note_live_option(arg, &mut outcome, &mut operands);
                continue;
            }
            if arg.text == "--" {
                options = false;
                // After `--` a revision is a path.
                if self.operands == OperandKind::Revisions {
                    outcome.reads.extend(words.by_ref().map(|path| (path.clone(), PathScope::Entry)));
                }
                continue;
            }
            let (value, attached) = if let Some(long) = arg.text.strip_prefix("--") {
                let (name, attached) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                pattern_given |= self.pattern.split(' ').any(|option| option == name);
                tree |= self.tree_long.split(' ').any(|option| option == name);
                self.parse_long_option(name, attached, &mut outcome)
            } else {
                let cluster = arg.text.strip_prefix('-').unwrap_or_default();
                tree |= cluster.contains(|flag| self.tree.contains(flag));
                pattern_given |= cluster
                    .contains(|flag: char| self.pattern.split(' ').any(|option| option == flag.to_string()));
                self.parse_cluster(cluster, &mut outcome)
            };
            match (value, attached) {
                (OptionValueKind::None, _) | (OptionValueKind::Plain, Some(_)) => {}
                (OptionValueKind::File, Some(file)) => {
                    outcome.reads.push((ShellArg::literal(file), PathScope::Entry))
                }
                (OptionValueKind::Plain, None) => match words.next() {
                    // A value that may be several words, or none, may bring files and options along.
                    Some(next) if next.splits && next.pattern.is_none() && self.hazards.is_empty() => {
                        outcome.maybe_unknown_option = true;
                    }
                    Some(next) => outcome.read_only &= !next.splits,
                    None => outcome.read_only = false,
                },
                (OptionValueKind::File, None) => match words.next() {
                    Some(next) => outcome.reads.push((next.clone(), PathScope::Entry)),
                    None => outcome.read_only = false,
                },
            }
        }
        self.classify_operands(&operands, tree, pattern_given, &mut outcome);
        outcome
    }

    /// A live word that may turn out to be an option.
    fn note_live_option<'a>(
        &self,
        arg: &'a ShellArg,
        outcome: &mut ProgramUse,
        operands: &mut Vec<&'a ShellArg>,
    ) {
        operands.push(arg);
        if self.operands == OperandKind::Text && self.hazards.is_empty() {
            return;
        }
        // Names of files may begin with a dash; that is harmless if the program knows no harmful option.
        if self.hazards.is_empty() {
            let alternatives = arg.one_of.iter();
            let known = !arg.one_of.is_empty()
                && alternatives.clone().all(|value| value.pattern.is_some() || !value.may_be_option());
            outcome.maybe_unknown_option |= arg.pattern.is_none() && !known;
            return;
        }
        outcome.read_only = false;
        outcome.hazard = true;
    }

    fn parse_long_option<'a>(
        &self,
        name: &str,
        attached: Option<&'a str>,
        outcome: &mut ProgramUse,
    ) -> (OptionValueKind, Option<&'a str>) {
        let known =
            self.long.split_ascii_whitespace().chain(self.more_long.split_ascii_whitespace()).find_map(
                |spec| {
                    let rest = spec.strip_prefix(name)?;
                    matches!(rest, "" | "=" | "?" | "<").then_some(rest)
                },
            );
        let hazard = |hazard: &&str| {
            hazard.strip_prefix("--").is_some_and(|full| !name.is_empty() && full.starts_with(name))
        };
        match known {
            Some("") if attached.is_none() => (OptionValueKind::None, None),
            Some("?") => (OptionValueKind::None, None),
            Some("=") => (OptionValueKind::Plain, attached),
            Some("<") => (OptionValueKind::File, attached),
            Some(_) | None => {
                outcome.read_only = false;
                outcome.hazard |= self.hazards.iter().any(hazard);
                (OptionValueKind::None, None)
            }
        }
    }

    fn parse_cluster<'a>(
        &self,
        cluster: &'a str,
        outcome: &mut ProgramUse,
    ) -> (OptionValueKind, Option<&'a str>) {
        let is_hazard = |flag: char| {
            self.hazards
                .iter()
                .any(|hazard| hazard.strip_prefix('-').is_some_and(|rest| rest.chars().eq([flag])))
        };
        if self.hazards.iter().any(|hazard| hazard.strip_prefix('-') == Some(cluster)) {
            outcome.read_only = false;
            outcome.hazard = true;
            return (OptionValueKind::None, None);
        }
        if self.numbers && !cluster.is_empty() && cluster.bytes().all(|byte| byte.is_ascii_digit()) {
            return (OptionValueKind::None, None);
        }
        let mut rest = cluster.chars();
        while let Some(flag) = rest.next() {
            let after = Some(rest.as_str()).filter(|after| !after.is_empty());
            if self.flags.contains(flag) {
                continue;
            }
            if self.attached.contains(flag) {
                return (OptionValueKind::None, None);
            }
            if self.valued.contains(flag) {
                return (OptionValueKind::Plain, after);
            }
            if self.files.contains(flag) {
                return (OptionValueKind::File, after);
            }
            outcome.read_only = false;
            outcome.hazard |= is_hazard(flag) || rest.any(is_hazard);
            return (OptionValueKind::None, None);
        }
        (OptionValueKind::None, None)
    }

    /// Decides what the operands are.
    fn classify_operands(
        &self,
        operands: &[&ShellArg],
        tree: bool,
        pattern_given: bool,
        outcome: &mut ProgramUse,
    ) {
        // A word that may be several may be one too many.
        let countable = self.max_operands == usize::MAX || !operands.iter().any(|operand| operand.splits);
        outcome.read_only &= countable && operands.len() <= self.max_operands;
        let subcommand =
            |operand: &&&ShellArg| operand.known().is_some_and(|text| self.not_operands.contains(&text));
        outcome.read_only &= !operands.iter().any(|operand| subcommand(&operand));
        let scope = if tree { PathScope::Tree } else { PathScope::Entry };
        let mut files = operands;
        match self.operands {
            OperandKind::Text => files = &[],
            OperandKind::Nothing => {
                outcome.read_only &= operands.is_empty();
                files = &[];
            }
            OperandKind::Files => {}
            OperandKind::Here | OperandKind::Tree => {
                if operands.is_empty() {
                    outcome.here = Some(scope);
                }
            }
            OperandKind::PatternThenFiles | OperandKind::PatternThenTree => {
                if !pattern_given && let Some((pattern, rest)) = operands.split_first() {
                    // A pattern that may be several words may be files from the second on.
                    if pattern.splits && pattern.pattern.is_none() && self.hazards.is_empty() {
                        outcome.maybe_unknown_option = true;
                    } else {
                        outcome.read_only &= !pattern.splits;
                    }
                    files = rest;
                }
                if files.is_empty() && tree {
                    outcome.here = Some(scope);
                }
            }
            OperandKind::Revisions => {
                for operand in operands {
                    outcome.read_only &= operand.live.is_none() || operand.pattern.is_some();
                    if operand.tilde || operand.text.starts_with(['/', '.']) || operand.text.contains("/..") {
                        outcome.reads.push(((*operand).clone(), PathScope::Entry));
                    }
                }
                files = &[];
            }
        }
        outcome.reads.extend(files.iter().map(|file| ((*file).clone(), scope)));
    }
}
