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
///
/// A field (`.env`), a string (`has("env")`) and a key (`{env: 1}`) are no words of the language. A string with an
/// interpolation contains code, and is searched like code.
fn uses_only_input(filter: &str) -> bool {
    let is_word = |character: char| character == '_' || character.is_ascii_alphanumeric();
    let mut brackets: Vec<char> = Vec::new();
    let mut before = ' ';
    let mut rest = filter;
    while let Some(first) = rest.chars().next() {
        if is_word(first) {
            let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
            let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            let is_key = brackets.last() == Some(&'{')
                && matches!(before, '{' | ',')
                && after.trim_start().starts_with(':');
            if OUTSIDE_INPUT_WORDS.contains(word) && before != '.' && !is_key {
                return false;
            }
            before = 'w';
            rest = after;
            continue;
        }
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '"' => {
                let Some(end) = string_end(rest) else { return uses_no_outside_word(rest) };
                let (content, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
                if content.contains("\\(") {
                    return uses_no_outside_word(rest);
                }
                rest = after.get(1..).unwrap_or_default();
            }
            // A comment ends differently in different versions.
            '#' => return uses_no_outside_word(rest),
            '(' | '[' | '{' => brackets.push(first),
            ')' | ']' | '}' => {
                brackets.pop();
            }
            _ => {}
        }
        // `..` and a dot before a blank begin no field.
        let is_dot_over = before == '.' && (first == '.' || first.is_whitespace());
        if is_dot_over || !first.is_whitespace() {
            before = if is_dot_over { ' ' } else { first };
        }
    }
    true
}

/// The position of the quote that ends a string; `None` if it has no end.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends.then_some(at)
    })
}

/// Whether a text contains none of the words that read something other than the input, wherever they are.
fn uses_no_outside_word(text: &str) -> bool {
    let is_word = |character: char| character == '_' || character.is_ascii_alphanumeric();
    !text.split(|character| !is_word(character)).any(|word| OUTSIDE_INPUT_WORDS.contains(word))
}
