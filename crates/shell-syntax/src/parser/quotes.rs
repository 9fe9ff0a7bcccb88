//! Quotes and expansions: what begins with `'`, `"`, `\`, `$` or a backquote.

use super::super::analysis::DoubtKind;
use super::super::syntax::{CommandList, HereDocumentBody, ParameterExpansionForm, WordPiece};
use super::{BashParseResult, BashParser, malformed, unclear};

/// Where an expansion stands, which decides what quotes mean in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteContext {
    /// In an ordinary word.
    Bare,
    /// Between double quotes, in a here-document or in arithmetic: single quotes are text there.
    Quoted,
}

impl BashParser<'_> {
    /// The quote, escape or expansion that is next in an unquoted word.
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
            Some(b'$') => pieces.push(self.parse_dollar(QuoteContext::Bare)?),
            Some(b'`') => pieces.push(self.parse_backquote(QuoteContext::Bare)?),
            Some(_) | None => return malformed("a quote is missing"),
        }
        Ok(())
    }

    /// What stands between double quotes, the closing one included.
    fn parse_double_quoted(&mut self) -> BashParseResult<Vec<WordPiece>> {
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

    /// The text of a here-document that is expanded.
    pub(super) fn parse_here_text(&mut self, text: &str) -> BashParseResult<HereDocumentBody> {
        self.parse_nested_text(text, |reader| {
            let mut pieces = Vec::new();
            let mut text = String::new();
            while reader.peek().is_some() {
                reader.parse_quoted_piece(&mut text, &mut pieces, b"$`\\")?;
            }
            flush_quoted_text(&mut text, &mut pieces);
            Ok(HereDocumentBody { pieces })
        })
    }

    /// One character or expansion where double quotes rule; a backslash escapes only `escapable`.
    fn parse_quoted_piece(
        &mut self,
        text: &mut String,
        pieces: &mut Vec<WordPiece>,
        escapable: &[u8],
    ) -> BashParseResult<()> {
        match self.peek_raw(0) {
            Some(b'$') => {
                flush_quoted_text(text, pieces);
                pieces.push(self.parse_dollar(QuoteContext::Quoted)?);
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

    /// What begins with a dollar sign.
    fn parse_dollar(&mut self, place: QuoteContext) -> BashParseResult<WordPiece> {
        let quoted = place == QuoteContext::Quoted;
        self.at += 1;
        match self.peek() {
            Some(b'\'') if !quoted => {
                self.at += 1;
                let text = self.parse_ansi_c_string()?;
                Ok(WordPiece::Literal { text, quoted: true })
            }
            Some(b'"') if !quoted => unclear("a string is translated"),
            Some(b'(') => {
                if self.is_arithmetic()? {
                    return Ok(WordPiece::Arithmetic { pieces: self.parse_double_parentheses()? });
                }
                self.at += 1;
                Ok(WordPiece::Command { list: self.parse_substitution()?, quoted })
            }
            Some(b'[') => {
                self.at += 1;
                Ok(WordPiece::Arithmetic { pieces: self.parse_arithmetic("]")? })
            }
            Some(b'{') => {
                self.at += 1;
                self.with_nesting(|reader| reader.parse_braced_parameter(place))
            }
            Some(byte) if byte.is_ascii_digit() || b"?#$!@*-".contains(&byte) => {
                self.at += 1;
                Ok(plain_parameter(char::from(byte).to_string(), quoted))
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                Ok(plain_parameter(self.parse_name(), quoted))
            }
            Some(_) | None => Ok(WordPiece::Literal { text: "$".to_owned(), quoted }),
        }
    }

    /// The characters of a name that come next, over continued lines.
    pub(super) fn parse_name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek() {
            if byte != b'_' && !byte.is_ascii_alphanumeric() {
                break;
            }
            name.push(char::from(byte));
            self.at += 1;
        }
        name
    }

    /// The commands of a substitution, the closing parenthesis included.
    pub(super) fn parse_substitution(&mut self) -> BashParseResult<CommandList> {
        let pending = self.pending.len();
        self.substitutions += 1;
        let list = self.with_nesting(Self::parse_list)?;
        self.substitutions -= 1;
        if self.pending.len() != pending {
            return unclear("a here-document begins inside a substitution and ends outside");
        }
        if self.peek() != Some(b')') {
            return malformed("a substitution is not closed");
        }
        self.at += 1;
        Ok(list)
    }

    /// What stands between backquotes: a program whose backslashes are read twice.
    fn parse_backquote(&mut self, place: QuoteContext) -> BashParseResult<WordPiece> {
        self.at += 1;
        let mut program = String::new();
        loop {
            match self.bump() {
                None => return malformed("a backquote is not closed"),
                Some('`') => break,
                Some('\\') => match self.peek_raw(0) {
                    Some(b'$' | b'`' | b'\\') => program.extend(self.bump()),
                    Some(b'"') if place == QuoteContext::Quoted => {
                        return unclear("an escaped quote between backquotes");
                    }
                    Some(_) | None => program.push('\\'),
                },
                Some(character) => program.push(character),
            }
        }
        let list = self.parse_nested_text(&program, |reader| reader.parse_program())?;
        Ok(WordPiece::Command { list, quoted: place == QuoteContext::Quoted })
    }

    /// What follows `${`, the closing brace included.
    fn parse_braced_parameter(&mut self, place: QuoteContext) -> BashParseResult<WordPiece> {
        let quoted = place == QuoteContext::Quoted;
        let mut form = ParameterExpansionForm::Value;
        if self.peek() == Some(b'!')
            && self.peek_raw(1).is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            self.at += 1;
            form = ParameterExpansionForm::Evaluated;
        } else if self.peek() == Some(b'!') && self.peek_raw(1).is_some_and(|byte| b"?#$!@*-".contains(&byte))
        {
            return unclear("an indirect expansion of a special parameter");
        } else if self.peek() == Some(b'#') && self.peek_raw(1) != Some(b'}') {
            self.at += 1;
            form = ParameterExpansionForm::Length;
        }
        let name = match self.peek() {
            Some(byte) if byte == b'_' || byte.is_ascii_alphanumeric() => self.parse_name(),
            Some(byte) if b"?#$!@*-".contains(&byte) => {
                self.at += 1;
                char::from(byte).to_string()
            }
            Some(_) => return unclear("a parameter expansion of an unknown form"),
            None => return malformed("a parameter expansion is not closed"),
        };
        let mut arithmetic = Vec::new();
        let mut operands = Vec::new();
        if self.peek() == Some(b'[') {
            self.at += 1;
            let subscript = self.parse_arithmetic("]")?;
            // The subscripts of an array, not the value of what its value names.
            let all = matches!(subscript.as_slice(), [WordPiece::Literal { text, .. }] if text == "@" || text == "*");
            if all && form == ParameterExpansionForm::Evaluated && self.peek() == Some(b'}') {
                form = ParameterExpansionForm::Value;
            }
            arithmetic.push(subscript);
        }
        match self.peek() {
            None => return malformed("a parameter expansion is not closed"),
            Some(b'}') => {
                self.at += 1;
                return Ok(WordPiece::Parameter { name, form, arithmetic, operands, quoted });
            }
            Some(b'@') => {
                let tame = matches!(
                    self.peek_raw(1),
                    Some(b'U' | b'u' | b'L' | b'Q' | b'K' | b'k' | b'a' | b'A' | b'E')
                );
                form = if tame && self.peek_raw(2) == Some(b'}') {
                    more_dangerous_form(form, ParameterExpansionForm::Changed)
                } else {
                    ParameterExpansionForm::Evaluated
                };
            }
            Some(b'=') => form = more_dangerous_form(form, ParameterExpansionForm::Assigned),
            Some(b':') if self.peek_raw(1) == Some(b'=') => {
                form = more_dangerous_form(form, ParameterExpansionForm::Assigned)
            }
            Some(b':' | b'-' | b'?' | b'+' | b'#' | b'%' | b'/' | b'^' | b',' | b'~') => {
                form = more_dangerous_form(form, ParameterExpansionForm::Changed)
            }
            Some(b'*') if form == ParameterExpansionForm::Evaluated => {}
            Some(_) => return unclear("a parameter expansion of an unknown form"),
        }
        let offset =
            self.peek_raw(0) == Some(b':') && !matches!(self.peek_raw(1), Some(b'-' | b'=' | b'?' | b'+'));
        let start = self.at;
        let operand = self.parse_operand(place)?;
        // An offset is arithmetic, in which no quote quotes.
        if offset && self.text_since(start).contains(['\'', '"', '\\', '`']) {
            return unclear("a quote in an offset");
        }
        if offset {
            arithmetic.push(operand)
        } else {
            operands.push(operand)
        }
        Ok(WordPiece::Parameter { name, form, arithmetic, operands, quoted })
    }

    /// The rest of a parameter expansion, operator and closing brace included.
    fn parse_operand(&mut self, place: QuoteContext) -> BashParseResult<Vec<WordPiece>> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return malformed("a parameter expansion is not closed"),
                Some(b'}') => {
                    self.at += 1;
                    flush_quoted_text(&mut text, &mut pieces);
                    return Ok(pieces);
                }
                // Whether it quotes depends on the operator and on what is around; bash has changed its mind too.
                Some(b'\'') if place == QuoteContext::Quoted => {
                    return unclear("a single quote in a quoted parameter expansion");
                }
                Some(b'\'' | b'\\' | b'$' | b'`') if place == QuoteContext::Bare => {
                    flush_quoted_text(&mut text, &mut pieces);
                    self.parse_quote_or_expansion(&mut pieces)?;
                }
                Some(b'"') => {
                    flush_quoted_text(&mut text, &mut pieces);
                    self.parse_quote_or_expansion(&mut pieces)?;
                }
                Some(b'<' | b'>') if self.peek_raw(1) == Some(b'(') => {
                    return unclear("a process substitution in a parameter expansion");
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.extend(self.bump());
                }
                Some(_) => self.parse_quoted_piece(&mut text, &mut pieces, b"")?,
            }
        }
    }

    /// `((…))`, if [`BashParser::is_arithmetic`] has found it to be next; stepped over.
    pub(super) fn parse_double_parentheses(&mut self) -> BashParseResult<Vec<WordPiece>> {
        let end = self.find_closing_parenthesis(2).map(|(end, _)| end + 2);
        self.at += 2;
        let pieces = self.parse_arithmetic("))")?;
        // Two ways to find the end, by counting and by reading: where they differ, bash may side with either.
        if end != Some(self.at) {
            return unclear("it is not certain where an arithmetic expression ends");
        }
        Ok(pieces)
    }

    /// Arithmetic up to `close`, which is stepped over. Quotes would quote here or not, so there may be none.
    pub(super) fn parse_arithmetic(&mut self, close: &str) -> BashParseResult<Vec<WordPiece>> {
        self.with_nesting(|reader| reader.parse_arithmetic_text(close))
    }

    fn parse_arithmetic_text(&mut self, close: &str) -> BashParseResult<Vec<WordPiece>> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        // bash counts only the kind of bracket that closes.
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
                Some(b'\'' | b'"' | b'\\' | b'\n') => return unclear("a quote in an arithmetic expression"),
                Some(b'<' | b'>') if self.peek_raw(1) == Some(b'(') => {
                    return unclear("a process substitution in an arithmetic expression");
                }
                Some(byte @ (b'(' | b'[')) => {
                    let count = if counted.contains(&byte) { &mut open } else { &mut other };
                    *count += 1;
                    if self.depth + open + other > super::MAX_NESTING_DEPTH {
                        return Err(super::BashParseError {
                            kind: DoubtKind::TooDeep,
                            what: "it is nested too deeply",
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

    /// What stands between `$'` and `'`, decoded.
    fn parse_ansi_c_string(&mut self) -> BashParseResult<String> {
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

    fn parse_ansi_c_escape(&mut self) -> BashParseResult<char> {
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
            _ => return unclear("an escape of an unknown form"),
        };
        // Nothing after a NUL would be seen by the program, and lone bytes are not text.
        match char::from_u32(code) {
            Some(character) if code != 0 && (code < 0x80 || matches!(escape, 'u' | 'U')) => Ok(character),
            Some(_) | None => unclear("an escape that is not text"),
        }
    }

    /// Up to `most` digits.
    fn parse_digits(&mut self, radix: u32, most: usize) -> BashParseResult<u32> {
        let mut code = 0_u32;
        let mut count = 0;
        while count < most
            && let Some(digit) = self.peek_raw(0).and_then(|byte| char::from(byte).to_digit(radix))
        {
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            count += 1;
        }
        if count == 0 { unclear("an escape without digits") } else { Ok(code) }
    }
}

/// `$name`.
fn plain_parameter(name: String, quoted: bool) -> WordPiece {
    WordPiece::Parameter {
        name,
        form: ParameterExpansionForm::Value,
        arithmetic: Vec::new(),
        operands: Vec::new(),
        quoted,
    }
}

/// The more dangerous of two forms of an expansion.
fn more_dangerous_form(
    outer: ParameterExpansionForm,
    inner: ParameterExpansionForm,
) -> ParameterExpansionForm {
    match (outer, inner) {
        (ParameterExpansionForm::Evaluated, _) | (_, ParameterExpansionForm::Evaluated) => {
            ParameterExpansionForm::Evaluated
        }
        (_, ParameterExpansionForm::Assigned) => ParameterExpansionForm::Assigned,
        (
            ParameterExpansionForm::Value
            | ParameterExpansionForm::Length
            | ParameterExpansionForm::Changed
            | ParameterExpansionForm::Assigned,
            inner,
        ) => inner,
    }
}

fn flush_quoted_text(text: &mut String, pieces: &mut Vec<WordPiece>) {
    if !text.is_empty() {
        pieces.push(WordPiece::Literal { text: std::mem::take(text), quoted: true });
    }
}
