//! Parses arithmetic: `((…))`, `$((…))`, `$[…]`, subscripts and offsets.
//!
//! The expression itself is not parsed; only its end and the expansions in it are found. Operators do not matter,
//! because a name in any position is evaluated.

use super::quotes::flush_quoted_text;
use super::{BashParseResult, BashParser, malformed, unclear};
use crate::analysis::DoubtKind;
use crate::bash_program::WordPiece;

impl BashParser<'_> {
    /// Parses `((…))`, which [`BashParser::is_arithmetic`] has found to come next.
    pub(super) fn parse_double_parentheses(&mut self) -> BashParseResult<Vec<WordPiece>> {
        let end = self.find_closing_parenthesis(2).map(|(end, _)| end + 2);
        self.at += 2;
        let pieces = self.parse_arithmetic("))")?;
        // The end is found in two ways, by counting parentheses and by parsing. Where they differ, bash may agree with
        // either.
        if end != Some(self.at) {
            return unclear("it is not certain where an arithmetic expression ends");
        }
        Ok(pieces)
    }

    /// Parses arithmetic up to and including `close`. Whether a quote has a meaning here depends on the version of
    /// bash,
    /// so that quotes are refused.
    pub(super) fn parse_arithmetic(&mut self, close: &str) -> BashParseResult<Vec<WordPiece>> {
        self.with_nesting(|parser| parser.parse_arithmetic_text(close))
    }

    /// Parses arithmetic at the current nesting depth.
    ///
    /// Brackets are counted to find the end; those of the other kind must match too, or two parsers could disagree.
    pub(super) fn parse_arithmetic_text(&mut self, close: &str) -> BashParseResult<Vec<WordPiece>> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        // bash counts only brackets of the kind that closes the expression.
        let (mut open, mut other) = (0_usize, 0_usize);
        let counted = if close == "]" { b"[]" } else { b"()" };
        loop {
            if open == 0 && self.consume(close) {
                if other > 0 {
                    return unclear("brackets of an arithmetic expression do not match");
                }
                flush_quoted_text(&mut text, &mut pieces);
                return Ok(pieces);
            }
            match self.peek() {
                None => return malformed("an arithmetic expression is not closed"),
                Some(b'\'' | b'"' | b'\\' | b'\n') => {
                    return unclear("a quote is in an arithmetic expression");
                }
                Some(b'<' | b'>') if self.peek_raw(1) == Some(b'(') => {
                    return unclear("a process substitution is in an arithmetic expression");
                }
                Some(byte @ (b'(' | b'[')) => {
                    let count = if counted.contains(&byte) { &mut open } else { &mut other };
                    *count += 1;
                    if self.depth + open + other > super::MAX_NESTING_DEPTH {
                        return Err(super::BashParseError {
                            kind: DoubtKind::TooDeep,
                            message: "it is nested too deeply",
                        });
                    }
                    self.at += 1;
                    text.push(char::from(byte));
                }
                Some(byte @ (b')' | b']')) => {
                    let count = if counted.contains(&byte) { &mut open } else { &mut other };
                    let Some(left) = count.checked_sub(1) else {
                        return malformed("an arithmetic expression closes what was not opened");
                    };
                    *count = left;
                    self.at += 1;
                    text.push(char::from(byte));
                }
                Some(_) => self.parse_quoted_piece(&mut text, &mut pieces, b"")?,
            }
        }
    }

    /// Whether the parenthesis that comes next begins `((…))`, and not a subshell in a subshell.
    /// bash decides by what closes them, and skips quotes to find that; where quotes matter, it is unclear.
    pub(super) fn is_arithmetic(&self) -> BashParseResult<bool> {
        if self.peek_raw(1) == Some(b'\\') && self.peek_raw(2) == Some(b'\n') {
            return unclear("a parenthesis continues on the next line");
        }
        if self.peek_raw(1) != Some(b'(') {
            return Ok(false);
        }
        let Some((end, inside)) = self.find_closing_parenthesis(2) else {
            return malformed("a parenthesis is not closed");
        };
        if self.text.as_bytes().get(end + 1) == Some(&b')') {
            return Ok(true);
        }
        let odd = ["'", "\"", "\\", "`", "#", "<<", "case"];
        if odd.into_iter().any(|odd| inside.contains(odd)) {
            return unclear("two parentheses may be arithmetic or a subshell");
        }
        Ok(false)
    }

    /// The position of the parenthesis that closes the last one of the next `skip` bytes, and the text inside.
    /// Quotes are not considered.
    pub(super) fn find_closing_parenthesis(&self, skip: usize) -> Option<(usize, &str)> {
        let start = self.at + skip;
        let rest = self.text.get(start..)?;
        let mut open = 1_usize;
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        return Some((start + at, rest.get(..at)?));
                    }
                }
                _ => {}
            }
        }
        None
    }
}
