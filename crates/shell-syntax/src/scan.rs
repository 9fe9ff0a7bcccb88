//! Scans text that the parser could not read: every run of words between operators counts as a command, so that deny
//! and ask rules still match it. Nothing found here can be allowed.
//!
//! The alternative, to deny every text with a syntax error, would turn each typing error of a model into a denial
//! instead of a question. A deny rule has to win nevertheless, also against a quote that is never closed.

use crate::redirects::RedirectEffects;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::word_list::WordList;
use std::collections::HashSet;

/// Reserved words after which a command begins.
const LEADING_WORDS: WordList =
    WordList("! { if then else elif while until do time coproc function for case in select");

/// Scans a text twice: with the quoting of the shell, and as if nothing were quoted, because an unbalanced quote may
/// hide everything after it.
///
/// Every part that is found loses its allow text, so that no rule can allow it.
pub(crate) fn scan_unparsed(visitor: &mut AnalysisVisitor<'_>, text: &str, context: &CommandContext<'_>) {
    let mut seen: HashSet<String> = HashSet::new();
    let before = std::mem::replace(&mut visitor.unparsed, true);
    for_each_segment(text, true, |words| add_segment(visitor, words, &mut seen, context));
    if text.contains(['\'', '"']) {
        for_each_segment(text, false, |words| add_segment(visitor, words, &mut seen, context));
    }
    visitor.unparsed = before;
}

/// Adds the command of one run of words, unless the same one was added already.
fn add_segment(
    visitor: &mut AnalysisVisitor<'_>,
    segment: &[String],
    seen: &mut HashSet<String>,
    context: &CommandContext<'_>,
) {
    let mut words = segment;
    while let Some((first, rest)) = words.split_first()
        && (LEADING_WORDS.contains(first) || is_assignment(first))
    {
        words = rest;
    }
    let text = words.join(" ");
    if words.is_empty() || seen.contains(&text) {
        return;
    }
    seen.insert(text.clone());
    let args: Vec<ShellArg> = words.iter().map(ShellArg::literal).collect();
    let first = visitor.analysis.parts.len();
    visitor.analyse_simple_command(text, &[], args, RedirectEffects::default(), context);
    for part in visitor.analysis.parts.iter_mut().skip(first) {
        part.allow_text = None;
        part.read_only = false;
        part.file_edit = false;
    }
}

/// Whether a word assigns to a variable.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        !name.is_empty()
            && name.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
    })
}

/// Calls `each` with every run of words between operators, quotes and backslashes removed. `quotes`: operators in
/// quotes are text.
fn for_each_segment(text: &str, quotes: bool, mut each: impl FnMut(&[String])) {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut quote: Option<char> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\'' | '"', None) if quotes => quote = Some(character),
            (_, Some(open)) if open == character => quote = None,
            ('\\', None | Some('"')) => word.extend(characters.next().filter(|next| *next != '\n')),
            ('\'' | '"', None) => {}
            (' ' | '\t' | '\r', None) => end_word(&mut word, &mut words),
            (
                ';' | '&' | '|' | '\n' | '(' | ')' | '`' | '<' | '>' | '\u{b}' | '\u{c}' | '\u{85}'
                | '\u{2028}' | '\u{2029}',
                None,
            ) => {
                end_word(&mut word, &mut words);
                if !words.is_empty() {
                    each(&words);
                    words.clear();
                }
            }
            ('`', Some('"')) => {
                end_word(&mut word, &mut words);
                each(&words);
                words.clear();
            }
            // Invisible characters must not hide a word from a rule.
            (
                '\0'..='\u{1f}'
                | '\u{7f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e0fff}',
                _,
            ) => {}
            _ => word.push(character),
        }
    }
    end_word(&mut word, &mut words);
    if !words.is_empty() {
        each(&words);
    }
}

/// Ends a word. The dollar sign of an expansion is dropped, so that `$(curl` is `curl`.
fn end_word(word: &mut String, words: &mut Vec<String>) {
    let trimmed = word.trim_start_matches('$');
    if !trimmed.is_empty() {
        words.push(trimmed.to_owned());
    }
    word.clear();
}
