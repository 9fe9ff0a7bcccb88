//! Parses words and assignments.
//!
//! A word ends at an unquoted blank or operator. Where bash decides by an option (extended globs), or joins continued
//! lines before it recognises an operator, the word is refused.

use super::commands::{is_name, is_reserved};
use super::{BashParseResult, BashParser, malformed, unclear};
use crate::bash_program::{ShellWord, VariableAssignment, WordPiece};

/// What surrounds a word, which decides which characters end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordContext {
    /// It is a word of a command.
    Argument,
    /// It is a regular expression in `[[ … ]]`, where operators are text.
    Regex,
}

/// The parts of a word that is being parsed.
#[derive(Default)]
struct WordParts {
    /// The finished pieces.
    pieces: Vec<WordPiece>,
    /// Unquoted text after the last piece.
    text: String,
    /// How many parentheses of a regular expression are open.
    open_parentheses: usize,
}

impl WordParts {
    /// Finishes the text collected so far.
    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.pieces.push(WordPiece::Literal { text, quoted: false });
        }
    }
}

impl BashParser<'_> {
    /// Parses a word that must be there.
    pub(super) fn parse_nonempty_word(&mut self) -> BashParseResult<ShellWord> {
        let word = self.parse_word(WordContext::Argument)?;
        if word.source.is_empty() { malformed("a word is missing") } else { Ok(word) }
    }

    /// Parses the right side of `=~`.
    pub(super) fn parse_regex_word(&mut self) -> BashParseResult<ShellWord> {
        let word = self.parse_word(WordContext::Regex)?;
        if word.source.is_empty() { malformed("a word is missing") } else { Ok(word) }
    }

    /// Parses a word, which may be empty.
    ///
    /// Quotes and expansions are parsed into pieces; unquoted text is collected until the next of them.
    fn parse_word(&mut self, context: WordContext) -> BashParseResult<ShellWord> {
        self.peek();
        let start = self.at;
        let mut word = WordParts::default();
        loop {
            let before = self.at;
            let Some(byte) = self.peek() else { break };
            // bash joins continued lines before it looks for words, operators and file descriptors.
            if self.at > before
                && before > start
                && !matches!(byte, b' ' | b'\t' | b'\n' | b';' | b')' | b'|' | b'&')
            {
                return unclear("a word spans lines");
            }
            let in_word = match byte {
                b' ' | b'\t' | b'\n' if word.open_parentheses == 0 => false,
                b'\'' | b'"' | b'\\' | b'$' | b'`' => {
                    word.flush_text();
                    self.parse_quote_or_expansion(&mut word.pieces)?;
                    true
                }
                b'<' | b'>' | b'(' | b')' | b';' | b'&' | b'|' => match context {
                    WordContext::Argument => self.parse_operator_in_argument(byte, &mut word)?,
                    WordContext::Regex => self.parse_operator_in_regex(byte, &mut word)?,
                },
                _ => self.parse_character(&mut word),
            };
            if !in_word {
                break;
            }
        }
        word.flush_text();
        let source = self.text_since(start);
        if let Some(reserved) = source.strip_suffix("\\\n")
            && is_reserved(reserved.trim_end_matches("\\\n"))
        {
            return unclear("a reserved word continues on the next line");
        }
        if !self.pending.is_empty() && source.contains('\n') {
            return unclear("a word spans lines before a here-document");
        }
        Ok(ShellWord { pieces: word.pieces, source: source.to_owned() })
    }

    /// Adds the next character to a word; returns whether there is one.
    fn parse_character(&mut self, word: &mut WordParts) -> bool {
        let character = self.bump();
        word.text.extend(character);
        character.is_some()
    }

    /// Parses an operator character in an argument: a process substitution, or the end of the word. Returns whether
    /// the word continues.
    fn parse_operator_in_argument(&mut self, byte: u8, word: &mut WordParts) -> BashParseResult<bool> {
        if matches!(byte, b'<' | b'>') && self.peek_raw(1) == Some(b'(') {
            let digits = !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit());
            if digits && word.pieces.is_empty() {
                return unclear("a number stands before a process substitution");
            }
            word.flush_text();
            self.at += 2;
            let list = self.parse_substitution()?;
            word.pieces.push(WordPiece::Process { list });
            return Ok(true);
        }
        // `name()` ends the word; what `*(…)` means depends on an option of the shell.
        if byte == b'(' && word.text.ends_with(['?', '*', '+', '@', '!']) {
            return unclear("it has an extended glob");
        }
        Ok(false)
    }

    /// Parses an operator character in a regular expression. Returns whether the word continues.
    fn parse_operator_in_regex(&mut self, byte: u8, word: &mut WordParts) -> BashParseResult<bool> {
        match byte {
            b'<' | b'>' if self.peek_raw(1) == Some(b'(') => {
                return unclear("a process substitution is in a regular expression");
            }
            b';' | b'&' | b'<' | b'>' if word.open_parentheses == 0 => {
                return unclear("an operator is in a regular expression");
            }
            b'(' => word.open_parentheses += 1,
            b')' => match word.open_parentheses.checked_sub(1) {
                Some(left) => word.open_parentheses = left,
                None => return Ok(false),
            },
            _ => {}
        }
        Ok(self.parse_character(word))
    }

    /// Parses `name=…`, `name+=…` or `name[…]=…`, if one comes next.
    ///
    /// A word such as `a[0]x` looks like an assignment up to its last character; bash reads it as a glob, and so does
    /// the caller, for which nothing is consumed then.
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
            // Without `]=` or `]+=` it is a word with a glob.
            if !self.subscript_is_assigned()? {
                self.at = start;
                return Ok(None);
            }
            self.at += 1;
            subscript = Some(self.parse_arithmetic("]")?);
        }
        if !(self.consume("=") || self.consume("+=")) {
            if subscript.is_some() {
                return unclear("a subscript is not assigned to");
            }
            self.at = start;
            return Ok(None);
        }
        let array = self.peek() == Some(b'(');
        let mut values = Vec::new();
        if array && self.substitutions > 0 {
            // bash 5.2 prints the substitution that it has parsed and parses that again; it loses quotes in arrays.
            return unclear("an array is assigned in a substitution");
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
            // For bash, what follows is part of the word, so that a `#` begins no comment.
            let ends = |byte: u8| {
                byte.is_ascii_whitespace() || matches!(byte, b';' | b'&' | b'|' | b')' | b'<' | b'>')
            };
            if !self.peek_raw(0).is_none_or(ends) {
                return unclear("text follows an array without a blank");
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

    /// Whether the bracket that comes next is closed and followed by `=` or `+=`.
    /// bash reads everything up to the closing bracket as one word, also if nothing is assigned.
    ///
    /// Blanks and quotes inside such a bracket would split the word for this parser and not for bash, so that they
    /// are refused.
    pub(super) fn subscript_is_assigned(&self) -> BashParseResult<bool> {
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
                            unclear("a subscript is not assigned to")
                        } else {
                            Ok(false)
                        };
                    }
                }
                b'\n' => break,
                _ => {}
            }
        }
        unclear("a subscript is not closed")
    }
}
