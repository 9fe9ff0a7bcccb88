//! A regular expression that is ready to search, or words about why it is not one.
//!
//! The engine wraps a pattern before it parses it, and its messages point into the wrapped text.
//! So a pattern is parsed here first, as it was written, and the message points into that.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::{ErrorKind as AstError, Span};
use regex_syntax::{Error as SyntaxError, ParserBuilder, hir};

/// A longer pattern is a mistake, or an attempt to keep the engine busy.
const MAX_PATTERN_BYTES: usize = 64 * 1024;
/// What each thread may spend on remembering states of the automaton; beyond it the search is slower, not wrong.
const MAX_DFA_CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Whether letters match their other case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseSensitivity {
    /// They must be the same.
    Sensitive,
    /// They need not be.
    Insensitive,
}

/// Whether a match may go over the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMode {
    /// Each line is searched by itself.
    Single,
    /// A match may span lines, and `.` matches the end of a line as well.
    Multi,
}

/// A pattern that is ready to search.
#[derive(Debug, Clone)]
pub struct SearchPattern {
    pub(crate) matcher: RegexMatcher,
    pub(crate) line_mode: LineMode,
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternProblem {
    /// What is wrong.
    pub reason: String,
    /// The pattern with a mark under the place, on lines of their own.
    pub snippet: Option<String>,
    /// What to do about it.
    pub hint: String,
}

impl SearchPattern {
    /// Makes a pattern ready.
    pub fn new(text: &str, case: CaseSensitivity, lines: LineMode) -> Result<Self, PatternProblem> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternProblem {
                reason: format!(
                    "the pattern has {} bytes, more than the {MAX_PATTERN_BYTES} allowed",
                    text.len()
                ),
                snippet: None,
                hint: "search for a part of it".to_owned(),
            });
        }
        if let Err(error) = parse(text, lines) {
            return Err(explain_syntax_error(text, lines, &error));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .case_insensitive(case == CaseSensitivity::Insensitive)
            .ban_byte(Some(0))
            .dfa_size_limit(MAX_DFA_CACHE_BYTES);
        match lines {
            LineMode::Single => builder.line_terminator(Some(b'\n')),
            LineMode::Multi => builder.dot_matches_new_line(true),
        };
        let matcher = builder.build(text).map_err(|error| explain_engine_error(text, lines, &error))?;
        Ok(Self { matcher, line_mode: lines })
    }
}

fn parse(text: &str, lines: LineMode) -> Result<hir::Hir, Box<SyntaxError>> {
    let mut parser = ParserBuilder::new();
    parser.utf8(false).multi_line(true).dot_matches_new_line(lines == LineMode::Multi);
    parser.build().parse(text).map_err(Box::new)
}

/// What the engine refuses although the syntax is right.
fn explain_engine_error(text: &str, lines: LineMode, error: &grep_regex::Error) -> PatternProblem {
    let (reason, hint) = match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) if lines == LineMode::Single => (
            format!(
                "the pattern `{text}` matches across the end of a line, but each line is searched by itself"
            ),
            "set `multiline` to true, or search for a part that stands in one line".to_owned(),
        ),
        grep_regex::ErrorKind::Banned(_) | grep_regex::ErrorKind::NotAllowed(_) => (
            format!("the pattern `{text}` looks for a NUL byte, and files that hold one are not searched"),
            "search for text".to_owned(),
        ),
        _ => (
            format!("the pattern is too large: {error}"),
            "use a shorter pattern or smaller repetition counts".to_owned(),
        ),
    };
    PatternProblem { reason, snippet: None, hint }
}

fn explain_syntax_error(text: &str, lines: LineMode, error: &SyntaxError) -> PatternProblem {
    let (what, span) = match error {
        SyntaxError::Parse(error) => (error.kind().to_string(), Some(*error.span())),
        SyntaxError::Translate(error) => (error.kind().to_string(), Some(*error.span())),
        other => (other.to_string(), None),
    };
    let kind = match error {
        SyntaxError::Parse(error) => Some(error.kind()),
        _ => None,
    };
    let picture = span.map(|span| render_snippet(text, &span));
    let (what, hint) = match kind {
        Some(AstError::UnsupportedLookAround) => (
            "look-around (`(?=`, `(?!`, `(?<=`, `(?<!`) is not supported".to_owned(),
            "search for the text without the assertion, with context lines where needed, and pick from the result"
                .to_owned(),
        ),
        Some(AstError::UnsupportedBackreference) => (
            "backreferences such as `\\1` are not supported".to_owned(),
            "write the repeated text out, or search for the first part and pick from the result".to_owned(),
        ),
        _ => (what, escape_hint(text, lines)),
    };
    PatternProblem { reason: format!("`{text}` is not a regular expression: {what}"), snippet: picture, hint }
}

/// The pattern, and marks under the place.
fn render_snippet(text: &str, span: &Span) -> String {
    let line = text.lines().nth(span.start.line.saturating_sub(1)).unwrap_or(text);
    let start = span.start.column.saturating_sub(1);
    let width = if span.end.line == span.start.line {
        span.end.column.saturating_sub(span.start.column).max(1)
    } else {
        line.chars().count().saturating_sub(start).max(1)
    };
    format!("    {line}\n    {}{}", " ".repeat(start), "^".repeat(width))
}

/// The nearest pattern that is one, by taking some of the special characters literally.
fn escape_hint(text: &str, lines: LineMode) -> String {
    for special in
        [&['{', '}'][..], &['(', ')'], &['[', ']'], &['*', '+', '?'], &['{', '}', '(', ')', '[', ']']]
    {
        let candidate = escape_only(text, special);
        if candidate != text && parse(&candidate, lines).is_ok() {
            return format!("to search for these characters themselves, escape them: `{candidate}`");
        }
    }
    format!("to search for this text as it stands, escape it: `{}`", regex_syntax::escape(text))
}

/// Puts a backslash before these characters, where there is none yet.
fn escape_only(text: &str, special: &[char]) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut after_backslash = false;
    for letter in text.chars() {
        if special.contains(&letter) && !after_backslash {
            out.push('\\');
        }
        out.push(letter);
        after_backslash = letter == '\\' && !after_backslash;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, reason: &str, picture: &str, hint: &str) {
        let problem = SearchPattern::new(text, CaseSensitivity::Sensitive, LineMode::Single).unwrap_err();
        assert!(problem.reason.contains(reason), "{text}: {}", problem.reason);
        assert_eq!(problem.snippet.as_deref().unwrap_or_default(), picture, "{text}");
        assert!(problem.hint.contains(hint), "{text}: {}", problem.hint);
    }

    #[test]
    fn a_bad_pattern_is_told_where_and_how_to_escape() {
        check("interface{}", "repetition", "    interface{}\n              ^", "`interface\\{\\}`");
        check("foo(", "unclosed group", "    foo(\n       ^", "`foo\\(`");
        check("a[b", "unclosed character class", "    a[b\n     ^", "`a\\[b`");
        check("*x", "repetition operator missing", "    *x\n    ^", "`\\*x`");
        check("{(", "repetition", "    {(\n    ^", "`\\{\\(`");
        check("x{2,1}", "invalid repetition count range", "    x{2,1}\n     ^^^^^", "`x\\{2,1\\}`");
    }

    #[test]
    fn what_the_engine_cannot_do_is_named() {
        check("foo(?=bar)", "look-around", "    foo(?=bar)\n       ^^^", "without the assertion");
        check(r"(a)\1", "backreferences", "    (a)\\1\n       ^^", "write the repeated text out");
        check("a\\nb", "end of a line", "", "`multiline`");
        assert!(SearchPattern::new("a\\nb", CaseSensitivity::Sensitive, LineMode::Multi).is_ok());
    }
}
