//! Parses quoting: single and double quotes, escapes, ANSI-C strings, and the text of here-documents.
//!
//! Quoted text becomes a piece of its own, because it is neither split nor expanded, and its globs are literal.

use super::{BashParseResult, BashParser, malformed, unclear};
use crate::bash_program::{HereDocumentBody, WordPiece};

/// What surrounds an expansion, which decides what quotes mean in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteContext {
    /// It is in an ordinary word.
    Bare,
    /// It is in double quotes, a here-document or arithmetic: single quotes are text there.
    Quoted,
}

impl BashParser<'_> {
    /// Parses the quote, escape or expansion that comes next in an unquoted word.
    pub(super) fn parse_quote_or_expansion(&mut self, pieces: &mut Vec<WordPiece>) -> BashParseResult<()> {
        match self.peek_raw(0) {
            Some(b'\'') => {
                self.at += 1;
                let start = self.at;
                while self.peek_raw(0).is_some_and(|byte| byte != b'\'') {
                    self.at += 1;
                }
                let text = self.text_since(start).to_owned();
                if self.peek_raw(0).is_none() {
                    return malformed("a single quote is not closed");
                }
                self.at += 1;
                pieces.push(WordPiece::Literal { text, quoted: true });
            }
            Some(b'"') => {
                self.at += 1;
                pieces.push(WordPiece::Literal { text: String::new(), quoted: true });
                let inner = self.with_nesting(Self::parse_double_quoted)?;
                pieces.extend(inner);
            }
            Some(b'\\') => {
                self.at += 1;
                match self.bump() {
                    Some(character) => {
                        pieces.push(WordPiece::Literal { text: character.into(), quoted: true })
                    }
                    None => return malformed("the text ends with a backslash"),
                }
            }
            Some(b'$') => pieces.push(self.parse_dollar_expansion(QuoteContext::Bare)?),
            Some(b'`') => pieces.push(self.parse_backquote(QuoteContext::Bare)?),
            Some(_) | None => return malformed("a quote is missing"),
        }
        Ok(())
    }

    /// Parses the content of double quotes and the closing quote.
    ///
    /// Expansions stay active, and a backslash escapes only the characters that would be special.
    pub(super) fn parse_double_quoted(&mut self) -> BashParseResult<Vec<WordPiece>> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return malformed("a double quote is not closed"),
                Some(b'"') => {
                    self.at += 1;
                    flush_quoted_text(&mut text, &mut pieces);
                    return Ok(pieces);
                }
                Some(_) => self.parse_quoted_piece(&mut text, &mut pieces, b"$`\"\\")?,
            }
        }
    }

    /// Parses the text of a here-document whose delimiter is not quoted.
    ///
    /// It follows the rules of double quotes, except that a double quote is an ordinary character.
    pub(super) fn parse_here_text(&mut self, text: &str) -> BashParseResult<HereDocumentBody> {
        self.parse_nested_text(text, |parser| {
            let mut pieces = Vec::new();
            let mut text = String::new();
            while parser.peek().is_some() {
                parser.parse_quoted_piece(&mut text, &mut pieces, b"$`\\")?;
            }
            flush_quoted_text(&mut text, &mut pieces);
            Ok(HereDocumentBody { pieces })
        })
    }

    /// Parses one character or expansion in double quotes. A backslash escapes only the characters in `escapable`.
    pub(super) fn parse_quoted_piece(
        &mut self,
        text: &mut String,
        pieces: &mut Vec<WordPiece>,
        escapable: &[u8],
    ) -> BashParseResult<()> {
        match self.peek_raw(0) {
            Some(b'$') => {
                flush_quoted_text(text, pieces);
                pieces.push(self.parse_dollar_expansion(QuoteContext::Quoted)?);
            }
            Some(b'`') => {
                flush_quoted_text(text, pieces);
                pieces.push(self.parse_backquote(QuoteContext::Quoted)?);
            }
            Some(b'\\') if self.peek_raw(1).is_some_and(|byte| escapable.contains(&byte)) => {
                self.at += 1;
                text.extend(self.bump());
            }
            Some(_) | None => text.extend(self.bump()),
        }
        Ok(())
    }

    /// Parses the content of `$'…'` and the closing quote, and decodes its escapes.
    ///
    /// `$'\x72m'` is `rm`: escapes are decoded here, so that rules match the decoded word.
    pub(super) fn parse_ansi_c_string(&mut self) -> BashParseResult<String> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return malformed("a quote is not closed"),
                Some('\'') => return Ok(text),
                Some('\\') => text.push(self.parse_ansi_c_escape()?),
                Some(character) => text.push(character),
            }
        }
    }

    /// Decodes the escape after a backslash.
    pub(super) fn parse_ansi_c_escape(&mut self) -> BashParseResult<char> {
        let Some(escape) = self.bump() else { return malformed("a quote is not closed") };
        let code = match escape {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            '\\' | '\'' | '"' | '?' => return Ok(escape),
            'x' => self.parse_digits(16, 2)?,
            'u' => self.parse_digits(16, 4)?,
            'U' => self.parse_digits(16, 8)?,
            '0'..='7' => {
                self.at -= 1;
                self.parse_digits(8, 3)?
            }
            _ => return unclear("an escape has an unknown form"),
        };
        // A NUL ends the string for the program, and a single byte above 127 is not UTF-8.
        match char::from_u32(code) {
            Some(character) if code != 0 && (code < 0x80 || matches!(escape, 'u' | 'U')) => Ok(character),
            Some(_) | None => unclear("an escape is not valid text"),
        }
    }

    /// Parses up to `max_digits` digits of an escape.
    pub(super) fn parse_digits(&mut self, radix: u32, max_digits: usize) -> BashParseResult<u32> {
        let mut code = 0_u32;
        let mut count = 0;
        while count < max_digits
            && let Some(digit) = self.peek_raw(0).and_then(|byte| char::from(byte).to_digit(radix))
        {
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            count += 1;
        }
        if count == 0 { unclear("an escape has no digits") } else { Ok(code) }
    }
}

/// Adds the text collected so far as a quoted piece.
pub(super) fn flush_quoted_text(text: &mut String, pieces: &mut Vec<WordPiece>) {
    if !text.is_empty() {
        pieces.push(WordPiece::Literal { text: std::mem::take(text), quoted: true });
    }
}
