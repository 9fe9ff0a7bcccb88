//! Words and assignments.

use super::super::syntax::{ShellWord, VariableAssignment, WordPiece};
use super::commands::{is_name, is_reserved};
use super::{BashParseResult, BashParser, malformed, unclear};

/// What a word may hold besides ordinary characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordContext {
    /// A word of a command.
    Argument,
    /// A regular expression in `[[ … ]]`, where operators are text.
    Regex,
}

impl BashParser<'_> {
    /// A word that must be there.
    pub(super) fn parse_nonempty_word(&mut self) -> BashParseResult<ShellWord> {
        let word = self.parse_word(WordContext::Argument)?;
        if word.source.is_empty() { malformed("a word is missing") } else { Ok(word) }
    }

    /// The right side of `=~`.
    pub(super) fn parse_regex_word(&mut self) -> BashParseResult<ShellWord> {
        let word = self.parse_word(WordContext::Regex)?;
        if word.source.is_empty() { malformed("a word is missing") } else { Ok(word) }
    }

    fn parse_word(&mut self, extent: WordContext) -> BashParseResult<ShellWord> {
        self.peek();
        let start = self.at;
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut open = 0_usize;
        loop {
            let before = self.at;
            let Some(byte) = self.peek() else { break };
            // bash joins the lines first and looks for words, operators and descriptors then.
            if self.at > before
                && before > start
                && !matches!(byte, b' ' | b'\t' | b'\n' | b';' | b')' | b'|' | b'&')
            {
                return unclear("a word spans lines");
            }
            match byte {
                b' ' | b'\t' | b'\n' if open == 0 => break,
                b'<' | b'>' if self.peek_raw(1) == Some(b'(') && extent == WordContext::Argument => {
                    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && pieces.is_empty()
                    {
                        return unclear("a descriptor and a process substitution");
                    }
                    flush_text(&mut text, &mut pieces);
                    self.at += 2;
                    let list = self.parse_substitution()?;
                    pieces.push(WordPiece::Process { list });
                }
                b'(' if extent == WordContext::Argument => {
                    // `parse_name()` ends the word; `*(…)` and its like depend on an option of the shell.
                    if text.ends_with(['?', '*', '+', '@', '!']) {
                        return unclear("an extended glob");
                    }
                    break;
                }
                b';' | b'&' | b'|' | b'<' | b'>' | b')' if extent == WordContext::Argument => break,
                b'<' | b'>' if self.peek_raw(1) == Some(b'(') => {
                    return unclear("a process substitution in a regular expression");
                }
                b';' | b'&' | b'<' | b'>' if open == 0 => {
                    return unclear("an operator in a regular expression");
                }
                b'(' => {
                    open += 1;
                    self.at += 1;
                    text.push('(');
                }
                b')' => {
                    let Some(left) = open.checked_sub(1) else { break };
                    open = left;
                    self.at += 1;
                    text.push(')');
                }
                b'\'' | b'"' | b'\\' | b'$' | b'`' => {
                    flush_text(&mut text, &mut pieces);
                    self.parse_quote_or_expansion(&mut pieces)?;
                }
                _ => match self.bump() {
                    Some(character) => text.push(character),
                    None => break,
                },
            }
        }
        flush_text(&mut text, &mut pieces);
        let source = self.text_since(start);
        if let Some(word) = source.strip_suffix("\\\n")
            && is_reserved(word.trim_end_matches("\\\n"))
        {
            return unclear("a reserved word goes on with a backslash");
        }
        if !self.pending.is_empty() && source.contains('\n') {
            return unclear("a word spans lines before a here-document");
        }
        Ok(ShellWord { pieces, source: source.to_owned() })
    }

    /// `name=…`, `name+=…`, `name[…]=…`, if one is next.
    pub(super) fn parse_assignment(&mut self) -> BashParseResult<Option<VariableAssignment>> {
        self.peek();
        let start = self.at;
        let name = self.parse_name();
        if !is_name(&name) {
            self.at = start;
            return Ok(None);
        }
        let mut subscript = None;
        if self.peek_raw(0) == Some(b'[') {
            // Only an assignment if `]=` or `]+=` follows; otherwise it is a word with a glob.
            if !self.subscript_is_assigned()? {
                self.at = start;
                return Ok(None);
            }
            self.at += 1;
            subscript = Some(self.parse_arithmetic("]")?);
        }
        if !(self.consume("=") || self.consume("+=")) {
            if subscript.is_some() {
                return unclear("a subscript that is not assigned to");
            }
            self.at = start;
            return Ok(None);
        }
        let array = self.peek() == Some(b'(');
        let mut values = Vec::new();
        if array && self.substitutions > 0 {
            // bash 5.2 prints what it has read of a substitution and reads it again; it loses quotes in arrays.
            return unclear("an array in a substitution");
        }
        if array {
            self.at += 1;
            loop {
                self.skip_newlines()?;
                if self.consume(")") {
                    break;
                }
                values.push(self.parse_nonempty_word()?);
            }
            // What follows belongs to the word for bash, a `#` too, which then begins no comment.
            let ends = |byte: u8| {
                byte.is_ascii_whitespace() || matches!(byte, b';' | b'&' | b'|' | b')' | b'<' | b'>')
            };
            if !self.peek_raw(0).is_none_or(ends) {
                return unclear("text stands right behind an array");
            }
        } else {
            values.push(self.parse_word(WordContext::Argument)?);
        }
        Ok(Some(VariableAssignment {
            name,
            subscript,
            values,
            array,
            source: self.text_since(start).to_owned(),
        }))
    }

    /// Whether the bracket that is next closes and is followed by `=` or `+=`.
    /// bash takes everything up to the bracket that closes for one word, even if nothing is assigned.
    fn subscript_is_assigned(&self) -> BashParseResult<bool> {
        let Some(rest) = self.text.get(self.at..) else { return Ok(false) };
        let mut open = 0_usize;
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                b'[' => open += 1,
                b']' => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        let after = rest.get(at + 1..).unwrap_or_default();
                        if after.starts_with('=') || after.starts_with("+=") {
                            return Ok(true);
                        }
                        let inside = rest.get(..at).unwrap_or_default();
                        let odd = |character: char| " \t\n;&|<>()'\"\\$`".contains(character);
                        return if inside.contains(odd) {
                            unclear("a subscript that is not assigned to")
                        } else {
                            Ok(false)
                        };
                    }
                }
                b'\n' => break,
                _ => {}
            }
        }
        unclear("a subscript that is not closed")
    }

    /// Whether the parenthesis that is next begins `((…))` and not a subshell in parentheses.
    /// bash decides by what closes them, and looks past quotes for it; where that matters, it is unclear.
    pub(super) fn is_arithmetic(&self) -> BashParseResult<bool> {
        if self.peek_raw(1) == Some(b'\\') && self.peek_raw(2) == Some(b'\n') {
            return unclear("a parenthesis goes on with a backslash");
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
            return unclear("two parentheses that may be arithmetic or a subshell");
        }
        Ok(false)
    }

    /// Where the parenthesis closes that was opened last of the next `skip` bytes, and what stands inside,
    /// if nothing in it quoted.
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

fn flush_text(text: &mut String, pieces: &mut Vec<WordPiece>) {
    if !text.is_empty() {
        pieces.push(WordPiece::Literal { text: std::mem::take(text), quoted: false });
    }
}
