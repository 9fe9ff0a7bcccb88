//! `jq`: prints what a filter makes of JSON.
//!
//! A filter cannot write a file or run a program, but it can print the environment (`env`, `$ENV`) and load other files
//! (`import`, `include`). It is searched for these words; a field such as `.env` is no such word.

use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use toolgate_proto::PathScope;

/// Words of the language that read something other than the input.
const OUTSIDE_INPUT_WORDS: WordList = WordList("env ENV import include modulemeta get_search_list");

/// Long options without a value, which change the form of input and output.
const FLAGS: WordList = WordList(
    "--null-input --raw-input --slurp --compact-output --raw-output --raw-output0 --join-output --ascii-output --sort-keys \
     --color-output --monochrome-output --tab --unbuffered --stream --stream-errors --seq --exit-status --version --help",
);

/// Judges the arguments of `jq`.
pub(super) fn judge_jq(args: &[ShellArg]) -> ProgramUse {
    let mut used = ProgramUse { read_only: true, ..ProgramUse::default() };
    let mut filter: Option<&ShellArg> = None;
    let mut options = true;
    let mut positional = false;
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        if options && arg.may_be_option() {
            match arg.known() {
                Some("--") => options = false,
                Some("--arg" | "--argjson") => {
                    let values = (words.next(), words.next());
                    used.read_only &=
                        matches!(values, (Some(name), Some(value)) if name.live.is_none() && !value.splits);
                }
                Some("--slurpfile" | "--rawfile") => {
                    // A word that may be none or several moves the filter and the files.
                    let (name, file) = (words.next(), words.next());
                    used.read_only &=
                        name.is_some_and(|name| name.live.is_none()) && file.is_some_and(|file| !file.splits);
                    used.reads.extend(file.map(|file| (file.clone(), PathScope::Entry)));
                }
                Some("--args" | "--jsonargs") => positional = true,
                Some("--indent") => used.read_only &= words.next().is_some_and(|value| !value.splits),
                Some(text) if FLAGS.contains(text) => {}
                Some(text)
                    if !text.starts_with("--")
                        && text.chars().skip(1).all(|flag| "nRscrjaSCMeVh".contains(flag)) => {}
                Some(_) | None => used.read_only = false,
            }
            continue;
        }
        if filter.is_none() {
            filter = Some(arg);
        } else if !positional {
            used.reads.push((arg.clone(), PathScope::Entry));
        }
    }
    used.read_only &= filter.is_none_or(|filter| filter.known().is_some_and(uses_only_input));
    used
}

/// Whether a filter reads nothing but its input.
fn uses_only_input(filter: &str) -> bool {
    let is_word = |character: char| character == '_' || character.is_ascii_alphanumeric();
    let mut from = 0;
    for word in filter.split(|character: char| !is_word(character)) {
        let before = filter.get(..from).unwrap_or_default();
        // `.env` is a field of the input.
        let field = before.ends_with('.') && !before.ends_with("..");
        if OUTSIDE_INPUT_WORDS.contains(word) && !field {
            return false;
        }
        // A separator may be longer than one byte.
        let next = filter.get(from + word.len()..).and_then(|rest| rest.chars().next());
        from += word.len() + next.map_or(0, char::len_utf8);
    }
    true
}
