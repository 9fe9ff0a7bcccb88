//! `test` and `[`: test files and compare words.
//!
//! Unlike `[[ … ]]`, their operators are ordinary words, so that the value of a variable can become one. `-v` and `-R`
//! expand the name that follows them, with its subscript: `test -v 'a[$(cmd)]'` runs `cmd`.

use super::builtins::text_only_use;
use crate::analysis::ShellExpansionKind;
use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// Operators that test one file.
const FILE_TESTS: WordList = WordList("-a -b -c -d -e -f -g -h -k -L -N -O -G -p -r -s -S -u -w -x");

/// Judges `test` and `[`, which look at files and compare words, unless `-v` or `-R` evaluates a subscript.
pub(super) fn judge_test(program: &str, args: &[ShellArg]) -> ProgramUse {
    let args = match (program, args.split_last()) {
        ("[", Some((last, rest))) if last.known() == Some("]") => rest,
        ("[", _) => return ProgramUse::default(),
        _ => args,
    };
    let mut used = ProgramUse { silent: true, ..text_only_use() };
    if (0..args.len()).any(|at| may_be_operator(args, at)) {
        used.read_only = false;
        used.unknown = true;
    }
    let mut words = args.iter().peekable();
    while let Some(word) = words.next() {
        // A word that splits may become an operator, and `-v` evaluates the word after it.
        used.maybe_unknown_option |= word.splits && word.pattern.is_none();
        match word.known() {
            Some("-v" | "-R") => {
                used.read_only = false;
                used.unknown = true;
            }
            Some(operator) if is_file_test(operator) => {
                if let Some(file) = words.peek() {
                    used.reads.push(((*file).clone(), PathScope::Entry));
                }
            }
            Some("-nt" | "-ot" | "-ef") => used.read_only = false,
            Some(_) | None => {}
        }
    }
    // That a file with an unknown name exists is no secret worth a question.
    used.reads.retain(|(file, _)| file.live.is_none());
    used
}

/// Whether an operator tests the file that is the next word.
pub(crate) fn is_file_test(operator: &str) -> bool {
    FILE_TESTS.contains(operator)
}

/// Whether a live word of a test may turn out to be `-v`, which evaluates the word after it.
///
/// A word next to a comparison is its operand, and the last word of a test has nothing after it to evaluate.
fn may_be_operator(args: &[ShellArg], at: usize) -> bool {
    let known = |at: Option<usize>| at.and_then(|at| args.get(at)).and_then(ShellArg::known);
    let live = args.get(at).is_some_and(|word| {
        let is_unknown = !matches!(word.live, None | Some(ShellExpansionKind::Harmless))
            && word.pattern.is_none()
            && !word.first_char_known;
        // `-v"$x"` is `-v` where `$x` is empty.
        is_unknown || (word.live.is_some() && word.emptied().starts_with('-'))
    });
    let compares = |text: &str| matches!(text, "=" | "==" | "!=" | "<" | ">") || text.starts_with('-');
    let is_operand =
        known(at.checked_add(1)).is_some_and(compares) || known(at.checked_sub(1)).is_some_and(compares);
    live && at + 1 < args.len() && !is_operand
}
