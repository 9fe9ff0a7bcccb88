//! A last look at text that could not be read: every stretch between operators counts as a command, so that deny
//! and ask rules still see it. Nothing found here can ever be allowed.

use super::expand::ShellArg;
use super::redirects::RedirectEffects;
use super::visitor::{AnalysisVisitor, CommandContext};
use std::collections::HashSet;

/// Words before which a command begins.
const LEADING_WORDS: &[&str] = &[
    "!", "{", "if", "then", "else", "elif", "while", "until", "do", "time", "coproc", "function", "for",
    "case", "in", "select",
];

/// Looks through a text that is no program: with quotes as the shell has them, and as if there were none.
pub(super) fn scan_unparsed(walk: &mut AnalysisVisitor<'_>, text: &str, place: &CommandContext<'_>) {
    let mut seen: HashSet<String> = HashSet::new();
    let before = std::mem::replace(&mut walk.brief, true);
    for_each_segment(text, true, |words| add_segment(walk, words, &mut seen, place));
    if text.contains(['\'', '"']) {
        for_each_segment(text, false, |words| add_segment(walk, words, &mut seen, place));
    }
    walk.brief = before;
}

/// Lists one stretch of words.
fn add_segment(
    walk: &mut AnalysisVisitor<'_>,
    segment: &[String],
    seen: &mut HashSet<String>,
    place: &CommandContext<'_>,
) {
    let mut words = segment;
    while let Some((first, rest)) = words.split_first()
        && (LEADING_WORDS.contains(&first.as_str()) || is_assignment(first))
    {
        words = rest;
    }
    let text = words.join(" ");
    if words.is_empty() || seen.contains(&text) {
        return;
    }
    seen.insert(text.clone());
    let args: Vec<ShellArg> = words.iter().map(ShellArg::literal).collect();
    let first = walk.found.parts.len();
    walk.analyse_simple_command(text, &[], args, RedirectEffects::default(), place);
    for part in walk.found.parts.iter_mut().skip(first) {
        part.allow_text = None;
        part.read_only = false;
        part.file_edit = false;
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        !name.is_empty()
            && name.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
    })
}

/// Hands out the words between operators, quotes and backslashes removed.
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
            // What is not seen in a prompt does not hide a word from a rule.
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

fn end_word(word: &mut String, words: &mut Vec<String>) {
    let trimmed = word.trim_start_matches('$');
    if !trimmed.is_empty() {
        words.push(trimmed.to_owned());
    }
    word.clear();
}
