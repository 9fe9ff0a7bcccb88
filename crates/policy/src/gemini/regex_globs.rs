//! Regular expressions as command patterns with `*`, for the small subset in which both match the same commands.

use std::iter::Peekable;
use std::str::Chars;

/// How many patterns one expression may become.
const MAX_PATTERNS: usize = 64;

/// The patterns that match the same commands as an expression at the beginning of a command; `None` if there are none.
/// With `exactly` they may not match more: for allow rules.
pub(super) fn regex_to_globs(expression: &str, exactly: bool) -> Option<Vec<String>> {
    let mut patterns = vec![String::new()];
    let mut chars = expression.chars().peekable();
    let mut is_ended = false;
    while let Some(c) = chars.next() {
        if is_ended {
            return None;
        }
        if matches!(c, '$' | '"') {
            is_ended = true;
            continue;
        }
        let mut choices = parse_choices(c, &mut chars, exactly)?;
        match chars.peek() {
            Some('?') => {
                chars.next();
                choices.push(String::new());
            }
            Some('*' | '+' | '{') => return None,
            Some(_) | None => {}
        }
        patterns = patterns
            .iter()
            .flat_map(|head| choices.iter().map(move |choice| format!("{head}{choice}")))
            .collect();
        if patterns.len() > MAX_PATTERNS {
            return None;
        }
    }
    let patterns: Vec<String> = patterns
        .into_iter()
        .map(|pattern| if is_ended || pattern.ends_with('*') { pattern } else { format!("{pattern}*") })
        .collect();
    // A rule that ends in `:*` or ` *` is a prefix that ends at a word. An expression has no such limit, but a deny or
    // ask rule may match more than the expression does.
    let is_equivalent =
        |pattern: &String| !pattern.trim().is_empty() && !pattern.ends_with(":*") && !pattern.ends_with(" *");
    let is_wider = |pattern: &String| !exactly && pattern.ends_with(" *");
    patterns.iter().all(|pattern| is_equivalent(pattern) || is_wider(pattern)).then_some(patterns)
}

/// The texts that one element of the expression can match; `c` is its first character.
fn parse_choices(c: char, chars: &mut Peekable<Chars<'_>>, exactly: bool) -> Option<Vec<String>> {
    Some(match c {
        '.' => match chars.next() {
            Some('*') => vec!["*".to_owned()],
            Some('+') if !exactly => vec!["*".to_owned()],
            _ => return None,
        },
        '(' => parse_group(chars)?,
        '\\' => match chars.next()? {
            's' => {
                chars.next_if_eq(&'+');
                vec![" ".to_owned()]
            }
            c if c.is_ascii_alphanumeric() => return None,
            '*' => return None,
            c => vec![c.to_string()],
        },
        '*' | '+' | '?' | '[' | ']' | '{' | '}' | ')' | '|' | '^' => return None,
        c => vec![c.to_string()],
    })
}

/// The alternatives of a group `(a|b)` or `(?:a|b)`, after its opening parenthesis.
fn parse_group(chars: &mut Peekable<Chars<'_>>) -> Option<Vec<String>> {
    if chars.next_if_eq(&'?').is_some() && chars.next() != Some(':') {
        return None;
    }
    let mut group = String::new();
    loop {
        match chars.next()? {
            ')' => break,
            '\\' => {
                group.push('\\');
                group.push(chars.next()?);
            }
            c => group.push(c),
        }
    }
    group.split('|').map(unescape_literal).collect()
}

/// An expression that only matches its own text, unescaped.
fn unescape_literal(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                c if c.is_ascii_alphanumeric() || c == '*' => return None,
                c => out.push(c),
            },
            '.' | '*' | '+' | '?' | '[' | ']' | '{' | '}' | '(' | ')' | '^' | '$' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}
