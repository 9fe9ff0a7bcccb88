//! Words and assignments.

use super::super::syntax::{Assignment, Piece, Word};
use super::grammar::is_name;
use super::{Read, Reader, malformed, unclear};

/// What a word may hold besides ordinary characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// A word of a command.
    Argument,
    /// A regular expression in `[[ … ]]`, where operators are text.
    Regex,
}

impl Reader<'_> {
    /// A word that must be there.
    pub(super) fn some_word(&mut self) -> Read<Word> {
        let word = self.word(Extent::Argument)?;
        if word.source.is_empty() { malformed("a word is missing") } else { Ok(word) }
    }

    /// The right side of `=~`.
    pub(super) fn regex_word(&mut self) -> Read<Word> {
        let word = self.word(Extent::Regex)?;
        if word.source.is_empty() { malformed("a word is missing") } else { Ok(word) }
    }

    fn word(&mut self, extent: Extent) -> Read<Word> {
        self.peek();
        let start = self.at;
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' if open == 0 => break,
                b'<' | b'>' if self.raw(1) == Some(b'(') && extent == Extent::Argument => {
                    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && pieces.is_empty()
                    {
                        return unclear("a descriptor and a process substitution");
                    }
                    flush(&mut text, &mut pieces);
                    self.at += 2;
                    let list = self.substitution()?;
                    pieces.push(Piece::Process { list });
                }
                b'(' if extent == Extent::Argument => {
                    // `name()` ends the word; `*(…)` and its like depend on an option of the shell.
                    if text.ends_with(['?', '*', '+', '@', '!']) {
                        return unclear("an extended glob");
                    }
                    break;
                }
                b';' | b'&' | b'|' | b'<' | b'>' | b')' if extent == Extent::Argument => break,
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
                    flush(&mut text, &mut pieces);
                    self.special(&mut pieces)?;
                }
                _ => match self.bump() {
                    Some(character) => text.push(character),
                    None => break,
                },
            }
        }
        flush(&mut text, &mut pieces);
        let source = self.since(start);
        if !self.pending.is_empty() && source.contains('\n') {
            return unclear("a word spans lines before a here-document");
        }
        Ok(Word { pieces, source: source.to_owned() })
    }

    /// `name=…`, `name+=…`, `name[…]=…`, if one is next.
    pub(super) fn assignment(&mut self) -> Read<Option<Assignment>> {
        self.peek();
        let start = self.at;
        let name = self.name();
        if !is_name(&name) {
            self.at = start;
            return Ok(None);
        }
        let mut subscript = None;
        if self.raw(0) == Some(b'[') {
            // Only an assignment if `]=` or `]+=` follows; otherwise it is a word with a glob.
            if !self.subscript_is_assigned() {
                self.at = start;
                return Ok(None);
            }
            self.at += 1;
            subscript = Some(self.arithmetic("]")?);
        }
        if !(self.takes("=") || self.takes("+=")) {
            if subscript.is_some() {
                return unclear("a subscript that is not assigned to");
            }
            self.at = start;
            return Ok(None);
        }
        let array = self.peek() == Some(b'(');
        let mut values = Vec::new();
        if array {
            self.at += 1;
            loop {
                self.newlines()?;
                if self.takes(")") {
                    break;
                }
                values.push(self.some_word()?);
            }
        } else {
            values.push(self.word(Extent::Argument)?);
        }
        Ok(Some(Assignment { name, subscript, values, array, source: self.since(start).to_owned() }))
    }

    /// Whether the bracket that is next closes before a blank and is followed by `=` or `+=`.
    fn subscript_is_assigned(&self) -> bool {
        let Some(rest) = self.text.get(self.at..) else { return false };
        let mut open = 0_usize;
        for (at, byte) in rest.bytes().enumerate() {
            match byte {
                b'[' => open += 1,
                b']' => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        let after = rest.get(at + 1..).unwrap_or_default();
                        return after.starts_with('=') || after.starts_with("+=");
                    }
                }
                b'\n' => return false,
                _ => {}
            }
        }
        false
    }

    /// Whether the two parentheses that are next are closed by two that stand together: only then is it arithmetic.
    pub(super) fn closes_twice(&self, skip: usize) -> bool {
        let Some(rest) = self.text.as_bytes().get(self.at + skip..) else { return false };
        let mut open = 1_usize;
        let mut bytes = rest.iter().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        return bytes.peek() == Some(&&b')');
                    }
                }
                _ => {}
            }
        }
        false
    }
}

fn flush(text: &mut String, pieces: &mut Vec<Piece>) {
    if !text.is_empty() {
        pieces.push(Piece::Literal { text: std::mem::take(text), quoted: false });
    }
}
