//! `find`: starting points, then an expression of tests and actions.
//!
//! The expression is a language in which one word (`-delete`, `-exec`, `-fprint`) turns a search into a change. Every
//! word of it has to be a known test or action, and a word whose value is unknown may be any of them. The command of
//! `-exec` is analysed as a part of its own, with an unknown path in the place of `{}`.

use crate::analysis::ShellExpansionKind;
use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// Tests and options that only read and have one operand.
const UNARY_TESTS: WordList = WordList(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype \
     -size -mtime -atime -ctime -mmin -amin -cmin -used -perm -user -group -uid -gid -links -inum \
     -fstype -context -maxdepth -mindepth -regextype -printf -newermt -newerct -newerat",
);

/// Tests, actions, operators and options that only read and have no operand.
const NULLARY_TESTS: WordList = WordList(
    "-empty -executable -readable -writable -nouser -nogroup -true -false -print -print0 -ls -prune \
     -quit -depth -d -mount -xdev -follow -daystart -ignore_readdir_race -noignore_readdir_race \
     -noleaf -warn -nowarn -a -and -o -or -not ! ( ) , -help --help -version --version",
);

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
///
/// Without a starting point it searches the working directory. A file that `-newer` compares with is read, too.
pub(super) fn judge_find(args: &[ShellArg]) -> ProgramUse {
    let mut used = ProgramUse { read_only: true, ..ProgramUse::default() };
    let mut words = args.iter().peekable();
    while words.next_if(|arg| matches!(arg.known(), Some("-H" | "-L" | "-P"))).is_some() {}
    let mut starts = 0;
    while let Some(start) = words.next_if(|arg| !begins_expression(arg)) {
        starts += 1;
        // A live word may turn out to be an action.
        if start.may_be_option() {
            used.add_possible_hazard(start);
        }
        used.reads.push((start.clone(), PathScope::Tree));
    }
    if starts == 0 {
        used.here = Some(PathScope::Tree);
    }
    while let Some(word) = words.next() {
        let Some(text) = word.known() else {
            mark_hazard(&mut used);
            continue;
        };
        if UNARY_TESTS.contains(text) {
            match words.next() {
                Some(value) if value.splits => {
                    mark_hazard(&mut used);
                }
                Some(_) => {}
                None => used.read_only = false,
            }
        } else if NULLARY_TESTS.contains(text) {
        } else if FILE_TESTS.contains(text) {
            let file = words.next();
            // The files of a pattern may have the names of actions.
            if file.is_none_or(|file| file.splits) {
                mark_hazard(&mut used);
            }
            used.reads.extend(file.map(|file| (file.clone(), PathScope::Entry)));
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

/// The words may contain an action.
fn mark_hazard(used: &mut ProgramUse) {
    used.read_only = false;
    used.hazard = true;
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
///
/// `-execdir` runs in the directory of each file, which is not known.
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
