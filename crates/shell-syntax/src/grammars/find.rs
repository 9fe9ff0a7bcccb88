//! `find`: starting points, then an expression of tests and actions.

use crate::analysis::ShellExpansionKind;
use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// Tests and actions that only read, each with the number of its operands.
const READ_ONLY_PREDICATES: &[(&str, usize)] = &[
    ("-name", 1),
    ("-iname", 1),
    ("-path", 1),
    ("-ipath", 1),
    ("-wholename", 1),
    ("-iwholename", 1),
    ("-regex", 1),
    ("-iregex", 1),
    ("-lname", 1),
    ("-ilname", 1),
    ("-type", 1),
    ("-xtype", 1),
    ("-size", 1),
    ("-mtime", 1),
    ("-atime", 1),
    ("-ctime", 1),
    ("-mmin", 1),
    ("-amin", 1),
    ("-cmin", 1),
    ("-used", 1),
    ("-perm", 1),
    ("-user", 1),
    ("-group", 1),
    ("-uid", 1),
    ("-gid", 1),
    ("-links", 1),
    ("-inum", 1),
    ("-fstype", 1),
    ("-context", 1),
    ("-maxdepth", 1),
    ("-mindepth", 1),
    ("-regextype", 1),
    ("-printf", 1),
    ("-newermt", 1),
    ("-newerct", 1),
    ("-newerat", 1),
    ("-empty", 0),
    ("-executable", 0),
    ("-readable", 0),
    ("-writable", 0),
    ("-nouser", 0),
    ("-nogroup", 0),
    ("-true", 0),
    ("-false", 0),
    ("-print", 0),
    ("-print0", 0),
    ("-ls", 0),
    ("-prune", 0),
    ("-quit", 0),
    ("-depth", 0),
    ("-d", 0),
    ("-mount", 0),
    ("-xdev", 0),
    ("-follow", 0),
    ("-daystart", 0),
    ("-ignore_readdir_race", 0),
    ("-noignore_readdir_race", 0),
    ("-noleaf", 0),
    ("-warn", 0),
    ("-nowarn", 0),
    ("-a", 0),
    ("-and", 0),
    ("-o", 0),
    ("-or", 0),
    ("-not", 0),
    ("!", 0),
    ("(", 0),
    (")", 0),
    (",", 0),
    ("-help", 0),
    ("--help", 0),
    ("-version", 0),
    ("--version", 0),
];

/// Tests that compare with a file, which is then read.
const FILE_TESTS: WordList = WordList("-newer -anewer -cnewer -samefile");

/// Actions that run a command, which `;` or `+` ends.
const EXEC_ACTIONS: WordList = WordList("-exec -execdir -ok -okdir");

/// Actions that run a command, remove files or write to them.
const HAZARDS: WordList =
    WordList("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from");

/// Whether an argument begins the expression, so that it is no starting point.
fn begins_expression(arg: &ShellArg) -> bool {
    arg.text.starts_with('-') || matches!(arg.text.as_str(), "(" | ")" | "!" | ",")
}

/// Judges the arguments of `find`.
pub(super) fn judge_find(args: &[ShellArg]) -> ProgramUse {
    let mut used = ProgramUse { read_only: true, ..ProgramUse::default() };
    let mut words = args.iter().peekable();
    while words.next_if(|arg| matches!(arg.known(), Some("-H" | "-L" | "-P"))).is_some() {}
    let mut starts = 0;
    while let Some(start) = words.next_if(|arg| !begins_expression(arg)) {
        starts += 1;
        // A live word may turn out to be an action.
        if start.may_be_option() {
            used.read_only = false;
            used.hazard = true;
        }
        used.reads.push((start.clone(), PathScope::Tree));
    }
    if starts == 0 {
        used.here = Some(PathScope::Tree);
    }
    while let Some(word) = words.next() {
        let Some(text) = word.known() else {
            used.read_only = false;
            used.hazard = true;
            continue;
        };
        if let Some((_, values)) = READ_ONLY_PREDICATES.iter().find(|(name, _)| *name == text) {
            for _ in 0..*values {
                match words.next() {
                    Some(value) => {
                        if value.splits {
                            used.read_only = false;
                            used.hazard = true;
                        }
                    }
                    None => used.read_only = false,
                }
            }
        } else if FILE_TESTS.contains(text) {
            used.reads.extend(words.next().map(|file| (file.clone(), PathScope::Entry)));
        } else if matches!(text, "-exec" | "-execdir") {
            // The command is a part of its own, which a rule for `find` does not cover.
            used.hazard = true;
            used.read_only &= take_payload(&mut words).is_some_and(|payload| {
                // An unknown word could end the command, and what follows would be actions.
                payload.iter().all(|word| word.live.is_none() && word.one_of.is_empty())
            });
        } else {
            used.read_only = false;
            used.hazard |= HAZARDS.contains(text);
            if matches!(text, "-fprint" | "-fprint0" | "-fprintf" | "-fls") {
                used.writes.extend(words.next().cloned());
            }
        }
    }
    if used.reads.iter().any(|(arg, _)| arg.splits && arg.pattern.is_none()) {
        used.read_only = false;
    }
    used.removes = args.iter().any(|arg| arg.text == "-delete");
    used
}

/// The words of a command up to its `;`, or up to `+` after `{}`; `None` if it has no end.
fn take_payload<'a>(words: &mut impl Iterator<Item = &'a ShellArg>) -> Option<Vec<ShellArg>> {
    let mut found: Vec<ShellArg> = Vec::new();
    for word in words {
        let last = found.last().and_then(ShellArg::known);
        if word.known() == Some(";") || word.known() == Some("+") && last == Some("{}") {
            return Some(found);
        }
        found.push(word.clone());
    }
    None
}

/// A command that an action runs.
pub(crate) struct FindPayload {
    /// Its words, without the `;` or `+`.
    pub(crate) words: Vec<ShellArg>,
    /// It runs in the directory of each file (`-execdir`).
    pub(crate) in_its_directory: bool,
}

/// The commands that the actions run.
pub(crate) fn find_payloads(args: &[ShellArg]) -> Vec<FindPayload> {
    let mut found = Vec::new();
    for (at, word) in args.iter().enumerate() {
        if word.live.is_none() && EXEC_ACTIONS.contains(&word.text) {
            let rest = args.get(at + 1..).unwrap_or_default();
            // Without an end find refuses to run; deny and ask rules see the command nevertheless.
            let words = take_payload(&mut rest.iter()).unwrap_or_else(|| rest.to_vec());
            found.push(FindPayload {
                words: words.into_iter().map(mark_found_path).collect(),
                in_its_directory: matches!(word.text.as_str(), "-execdir" | "-okdir"),
            });
        }
    }
    found
}

/// Marks `{}` as the unknown path of a file. It begins like a starting point or with `./`, and is never an option.
fn mark_found_path(arg: ShellArg) -> ShellArg {
    let Some((before, _)) = arg.text.split_once("{}") else { return arg };
    if arg.live.is_some() {
        return arg;
    }
    ShellArg {
        live: Some(ShellExpansionKind::Substitution),
        splits: arg.text == "{}",
        never_option: before.is_empty() || !before.starts_with('-'),
        emptied: arg.text.clone(),
        ..arg
    }
}

/// The starting points: the arguments before the expression, or the working directory.
pub(crate) fn starting_points_of_find(args: &[ShellArg]) -> Vec<ShellArg> {
    let starts: Vec<ShellArg> = args
        .iter()
        .skip_while(|arg| matches!(arg.text.as_str(), "-H" | "-L" | "-P"))
        .take_while(|arg| !begins_expression(arg))
        .cloned()
        .collect();
    if starts.is_empty() { vec![ShellArg::literal(".")] } else { starts }
}
