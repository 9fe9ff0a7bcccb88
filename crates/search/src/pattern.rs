//! Regular expressions, and messages about invalid ones.
//!
//! The engine wraps a pattern before it parses it, so its messages point into text that the caller did not write.
//! A pattern is therefore parsed here first, as it was written, and the message points into that.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast::{ErrorKind as AstError, Span};
use regex_syntax::{Error as SyntaxError, ParserBuilder, hir};

/// A longer pattern is a mistake, or an attempt to make the engine slow.
const MAX_PATTERN_BYTES: usize = 64 * 1024;
/// Limit on the cache of automaton states of each thread. Above it the search gets slower, not wrong.
const MAX_DFA_CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Whether letters match letters of the other case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseSensitivity {
    /// `a` matches only `a`.
    Sensitive,
    /// `a` matches `a` and `A`.
    Insensitive,
}

/// Whether a match may span lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMode {
    /// Each line is searched on its own.
    Single,
    /// A match may span lines, and `.` matches a line end as well.
    Multi,
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct SearchPattern {
    /// The compiled regular expression. A clone has caches of its own, so each thread uses one.
    pub(crate) matcher: RegexMatcher,
    /// Whether a match may span lines.
    pub(crate) line_mode: LineMode,
}

/// Why a pattern is invalid or not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternProblem {
    /// What is wrong.
    pub reason: String,
    /// Two lines: the pattern, and marks under the invalid part. `None` if the problem is not in one part.
    pub snippet: Option<String>,
    /// What to search for instead.
    pub hint: String,
}

impl SearchPattern {
    /// Compiles a pattern.
    pub fn new(text: &str, case: CaseSensitivity, lines: LineMode) -> Result<Self, PatternProblem> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternProblem {
                reason: format!(
                    "the pattern has {} bytes, more than the {MAX_PATTERN_BYTES} allowed",
                    text.len()
                ),
                snippet: None,
                hint: "use a shorter pattern".to_owned(),
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

/// Parses a pattern as the engine will.
fn parse(text: &str, lines: LineMode) -> Result<hir::Hir, Box<SyntaxError>> {
    let mut parser = ParserBuilder::new();
    parser.utf8(false).multi_line(true).dot_matches_new_line(lines == LineMode::Multi);
    parser.build().parse(text).map_err(Box::new)
}

/// Explains why the engine rejects a pattern that is syntactically valid.
fn explain_engine_error(text: &str, lines: LineMode, error: &grep_regex::Error) -> PatternProblem {
    let (reason, hint) = match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) if lines == LineMode::Single => (
            format!(
                "the pattern `{text}` matches across the end of a line, but each line is searched on its own"
            ),
            "set `multiline` to true, or search for a part that is within one line".to_owned(),
        ),
        grep_regex::ErrorKind::Banned(_) | grep_regex::ErrorKind::NotAllowed(_) => (
            format!("the pattern `{text}` matches a NUL byte, and files with NUL bytes are not searched"),
            "remove the NUL byte from the pattern".to_owned(),
        ),
        _ => (
            format!("the pattern is too large: {error}"),
            "use a shorter pattern or smaller repetition counts".to_owned(),
        ),
    };
    PatternProblem { reason, snippet: None, hint }
}

/// Explains a syntax error, with marks under the invalid part.
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
    let snippet = span.map(|span| render_snippet(text, &span));
    let (what, hint) = match kind {
        Some(AstError::UnsupportedLookAround) => (
            "look-around (`(?=`, `(?!`, `(?<=`, `(?<!`) is not supported".to_owned(),
            "search for the text without the assertion, with context lines if needed, and filter the result"
                .to_owned(),
        ),
        Some(AstError::UnsupportedBackreference) => (
            "backreferences such as `\\1` are not supported".to_owned(),
            "write the repeated text out, or search for the first part and filter the result".to_owned(),
        ),
        _ => (what, escape_hint(text, lines)),
    };
    PatternProblem { reason: format!("`{text}` is not a valid regular expression: {what}"), snippet, hint }
}

/// The line of the pattern with the span, and marks under it.
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

/// Suggests a valid pattern with some of the special characters escaped: as few kinds as make it valid, else all.
fn escape_hint(text: &str, lines: LineMode) -> String {
    for special in
        [&['{', '}'][..], &['(', ')'], &['[', ']'], &['*', '+', '?'], &['{', '}', '(', ')', '[', ']']]
    {
        let candidate = escape_only(text, special);
        if candidate != text && parse(&candidate, lines).is_ok() {
            return format!("to match these characters literally, escape them: `{candidate}`");
        }
    }
    format!("to match this text literally, escape it: `{}`", regex_syntax::escape(text))
}

/// Puts a backslash before these characters, except where there is one.
fn escape_only(text: &str, special: &[char]) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut after_backslash = false;
    for character in text.chars() {
        if special.contains(&character) && !after_backslash {
            out.push('\\');
        }
        out.push(character);
        after_backslash = character == '\\' && !after_backslash;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, reason: &str, snippet: &str, hint: &str) {
        let problem = SearchPattern::new(text, CaseSensitivity::Sensitive, LineMode::Single).unwrap_err();
        assert!(problem.reason.contains(reason), "{text}: {}", problem.reason);
        assert_eq!(problem.snippet.as_deref().unwrap_or_default(), snippet, "{text}");
        assert!(problem.hint.contains(hint), "{text}: {}", problem.hint);
    }

    #[test]
    fn an_invalid_pattern_is_reported_with_its_position_and_an_escaped_form() {
        check("interface{}", "repetition", "    interface{}\n              ^", "`interface\\{\\}`");
        check("foo(", "unclosed group", "    foo(\n       ^", "`foo\\(`");
        check("a[b", "unclosed character class", "    a[b\n     ^", "`a\\[b`");
        check("*x", "repetition operator missing", "    *x\n    ^", "`\\*x`");
        check("{(", "repetition", "    {(\n    ^", "`\\{\\(`");
        check("x{2,1}", "invalid repetition count range", "    x{2,1}\n     ^^^^^", "`x\\{2,1\\}`");
    }

    #[test]
    fn unsupported_syntax_is_named() {
        check("foo(?=bar)", "look-around", "    foo(?=bar)\n       ^^^", "without the assertion");
        check(r"(a)\1", "backreferences", "    (a)\\1\n       ^^", "write the repeated text out");
        check("a\\nb", "across the end of a line", "", "`multiline`");
        assert!(SearchPattern::new("a\\nb", CaseSensitivity::Sensitive, LineMode::Multi).is_ok());
    }
}
