//! Parses simple commands and redirects.
//!
//! Assignments, words and redirects may alternate; assignments count only before the first word, except as arguments of
//! `declare` and its relatives.

use super::commands::{is_name, is_reserved};
use super::{BashParseResult, BashParser, malformed, unclear};
use crate::bash_program::{
    BashCommand, BashRedirect, BashRedirectKind, BashSimpleCommand, ShellWord, VariableAssignment, WordPiece,
};

/// Builtins whose arguments may be assignments of arrays.
const DECLARATION_BUILTINS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

impl BashParser<'_> {
    /// Parses a simple command, or a function `name() …`.
    pub(super) fn parse_simple_or_function(&mut self) -> BashParseResult<BashCommand> {
        let simple = self.parse_simple_command()?;
        if self.peek() != Some(b'(') {
            return Ok(BashCommand::Simple(simple));
        }
        self.at += 1;
        self.skip_blanks();
        self.expect_byte(b')', "a parenthesis is in an unexpected place")?;
        match simple.words.as_slice() {
            [name] if simple.spelled.len() == 1 => self.parse_function_body(name.source.clone()),
            _ => malformed("a parenthesis is in an unexpected place"),
        }
    }

    /// Parses assignments, words and redirects up to an operator.
    ///
    /// A comment is skipped only where a word may begin, so that `a#b` is one word.
    pub(super) fn parse_simple_command(&mut self) -> BashParseResult<BashSimpleCommand> {
        let mut simple = BashSimpleCommand::default();
        loop {
            self.skip_blanks_and_comment();
            if let Some((redirect, source)) = self.parse_redirect()? {
                simple.redirects.push(redirect);
                simple.spelled.push(source);
                continue;
            }
            let in_prefix = simple.words.is_empty();
            let declares =
                simple.words.first().is_some_and(|word| DECLARATION_BUILTINS.contains(&word.source.as_str()));
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'(') => break,
                Some(_) => {}
            }
            if (in_prefix || declares)
                && let Some(assignment) = self.parse_assignment()?
            {
                simple.spelled.push(assignment.source.clone());
                if in_prefix {
                    simple.assignments.push(assignment);
                } else if assignment.array || assignment.subscript.is_some() {
                    // No rule covers such a declaration; only the substitutions in its values are needed.
                    let source = assignment.source;
                    let pieces = assignment
                        .values
                        .into_iter()
                        .flat_map(|value| value.pieces)
                        .chain(assignment.subscript.into_iter().flatten());
                    simple.words.push(ShellWord { pieces: pieces.collect(), source });
                } else {
                    simple.words.push(assigned_word(assignment));
                }
                continue;
            }
            let word = self.parse_nonempty_word()?;
            // bash 5.2 prints the substitution that it has parsed with redirects last, and parses that again.
            if in_prefix && !simple.redirects.is_empty() && is_reserved(&word.source) {
                return unclear("a reserved word follows a redirect");
            }
            simple.spelled.push(word.source.clone());
            simple.words.push(word);
        }
        if simple.spelled.is_empty() { malformed("a command is missing") } else { Ok(simple) }
    }

    /// Parses a redirect, if one comes next; returns it with its spelling.
    ///
    /// The operator of a here-document is followed by its delimiter; the text comes later, after the next newline.
    pub(super) fn parse_redirect(&mut self) -> BashParseResult<Option<(BashRedirect, String)>> {
        let start = self.at;
        let sets_variable = self.skip_descriptor();
        if sets_variable && self.text_since(start).contains(['[', '$', '`']) {
            return unclear("a file descriptor is stored in an element of an array");
        }
        // Longer operators come before their prefixes.
        let kinds = [
            ("<<<", BashRedirectKind::HereString),
            ("<<-", BashRedirectKind::HereDocument),
            ("<<", BashRedirectKind::HereDocument),
            ("<&", BashRedirectKind::DuplicateInput),
            ("<>", BashRedirectKind::ReadWrite),
            (">>", BashRedirectKind::Append),
            (">&", BashRedirectKind::DuplicateOutput),
            (">|", BashRedirectKind::Write),
            ("<", BashRedirectKind::Read),
            (">", BashRedirectKind::Write),
            ("&>>", BashRedirectKind::Both),
            ("&>", BashRedirectKind::Both),
        ];
        if self.is_next("<(") || self.is_next(">(") {
            return if self.at == start {
                Ok(None)
            } else {
                unclear("a number stands before a process substitution")
            };
        }
        let Some((operator, kind)) = kinds.into_iter().find(|(operator, _)| self.consume(operator)) else {
            self.at = start;
            return Ok(None);
        };
        if self.peek_raw(0) == Some(b'\\') && self.peek_raw(1) == Some(b'\n') {
            return unclear("an operator continues on the next line");
        }
        self.skip_blanks();
        if kind == BashRedirectKind::HereDocument {
            let index = self.parse_here_delimiter(operator == "<<-")?;
            let source = self.text_since(start).to_owned();
            let redirect = BashRedirect {
                kind,
                target: ShellWord::default(),
                here_document: Some(index),
                sets_variable,
            };
            return Ok(Some((redirect, source)));
        }
        // For bash the dash is a token of its own: `>&-cat` closes a file descriptor and starts `cat`.
        let closes = operator.ends_with('&') && self.peek_raw(0) == Some(b'-');
        let target = self.parse_nonempty_word()?;
        if closes && target.source != "-" {
            return unclear("a word follows `&-` without a blank");
        }
        let source = self.text_since(start).to_owned();
        Ok(Some((BashRedirect { kind, target, here_document: None, sets_variable }, source)))
    }

    /// Skips `2` or `{name}` directly before a redirect; returns whether it was a name.
    ///
    /// `2>x` redirects file descriptor 2, `a2>x` redirects the output of `a2`.
    pub(super) fn skip_descriptor(&mut self) -> bool {
        self.peek();
        let Some(rest) = self.text.get(self.at..) else { return false };
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let redirects = |end: usize| matches!(rest.as_bytes().get(end), Some(b'<' | b'>'));
        if digits > 0 {
            // A number above the largest file descriptor is an ordinary word.
            let descriptor = rest.get(..digits).is_some_and(|number| number.parse::<i32>().is_ok());
            if redirects(digits) && descriptor {
                self.at += digits;
            }
            return false;
        }
        let Some(end) = rest.strip_prefix('{').and_then(|inner| inner.find('}')).map(|end| end + 2) else {
            return false;
        };
        let named =
            redirects(end) && rest.get(1..end - 1).is_some_and(|name| is_name(name) || name.contains('['));
        if named {
            self.at += end;
        }
        named
    }
}

/// The word for `name=value` as an argument of a declaration.
fn assigned_word(assignment: VariableAssignment) -> ShellWord {
    let head = WordPiece::Literal { text: format!("{}=", assignment.name), quoted: false };
    let pieces = std::iter::once(head).chain(assignment.values.into_iter().flat_map(|value| value.pieces));
    ShellWord { pieces: pieces.collect(), source: assignment.source }
}
