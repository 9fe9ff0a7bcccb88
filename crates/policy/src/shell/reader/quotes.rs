//! Quotes and expansions: what begins with `'`, `"`, `\`, `$` or a backquote.

use super::super::analysis::DoubtKind;
use super::super::syntax::{Body, Form, List, Piece};
use super::{Read, Reader, malformed, unclear};

/// Where an expansion stands, which decides what quotes mean in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In an ordinary word.
    Bare,
    /// Between double quotes, in a here-document or in arithmetic: single quotes are text there.
    Quoted,
}

impl Reader<'_> {
    /// The quote, escape or expansion that is next in an unquoted word.
    pub(super) fn special(&mut self, pieces: &mut Vec<Piece>) -> Read<()> {
        match self.raw(0) {
            Some(b'\'') => {
                self.at += 1;
                let start = self.at;
                while self.raw(0).is_some_and(|byte| byte != b'\'') {
                    self.at += 1;
                }
                let text = self.since(start).to_owned();
                if self.raw(0).is_none() {
                    return malformed("a single quote is not closed");
                }
                self.at += 1;
                pieces.push(Piece::Literal { text, quoted: true });
            }
            Some(b'"') => {
                self.at += 1;
                pieces.push(Piece::Literal { text: String::new(), quoted: true });
                let inner = self.nested(Self::parse_double_quoted)?;
                pieces.extend(inner);
            }
            Some(b'\\') => {
                self.at += 1;
                match self.bump() {
                    Some(character) => pieces.push(Piece::Literal { text: character.into(), quoted: true }),
                    None => return malformed("the text ends with a backslash"),
                }
            }
            Some(b'$') => pieces.push(self.dollar(Place::Bare)?),
            Some(b'`') => pieces.push(self.backquote(Place::Bare)?),
            Some(_) | None => return malformed("a quote is missing"),
        }
        Ok(())
    }

    /// What stands between double quotes, the closing one included.
    fn parse_double_quoted(&mut self) -> Read<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return malformed("a double quote is not closed"),
                Some(b'"') => {
                    self.at += 1;
                    flush(&mut text, &mut pieces);
                    return Ok(pieces);
                }
                Some(_) => self.parse_quoted_piece(&mut text, &mut pieces, b"$`\"\\")?,
            }
        }
    }

    /// The text of a here-document that is expanded.
    pub(super) fn parse_here_text(&mut self, text: &str) -> Read<Body> {
        self.inside(text, |reader| {
            let mut pieces = Vec::new();
            let mut text = String::new();
            while reader.peek().is_some() {
                reader.parse_quoted_piece(&mut text, &mut pieces, b"$`\\")?;
            }
            flush(&mut text, &mut pieces);
            Ok(Body { pieces })
        })
    }

    /// One character or expansion where double quotes rule; a backslash escapes only `escapable`.
    fn parse_quoted_piece(
        &mut self,
        text: &mut String,
        pieces: &mut Vec<Piece>,
        escapable: &[u8],
    ) -> Read<()> {
        match self.raw(0) {
            Some(b'$') => {
                flush(text, pieces);
                pieces.push(self.dollar(Place::Quoted)?);
            }
            Some(b'`') => {
                flush(text, pieces);
                pieces.push(self.backquote(Place::Quoted)?);
            }
            Some(b'\\') if self.raw(1).is_some_and(|byte| escapable.contains(&byte)) => {
                self.at += 1;
                text.extend(self.bump());
            }
            Some(_) | None => text.extend(self.bump()),
        }
        Ok(())
    }

    /// What begins with a dollar sign.
    fn dollar(&mut self, place: Place) -> Read<Piece> {
        let quoted = place == Place::Quoted;
        self.at += 1;
        match self.peek() {
            Some(b'\'') if !quoted => {
                self.at += 1;
                let text = self.parse_ansi_c_string()?;
                Ok(Piece::Literal { text, quoted: true })
            }
            Some(b'"') if !quoted => unclear("a string is translated"),
            Some(b'(') => {
                if self.is_arithmetic()? {
                    return Ok(Piece::Arithmetic { pieces: self.parse_double_parentheses()? });
                }
                self.at += 1;
                Ok(Piece::Command { list: self.substitution()?, quoted })
            }
            Some(b'[') => {
                self.at += 1;
                Ok(Piece::Arithmetic { pieces: self.arithmetic("]")? })
            }
            Some(b'{') => {
                self.at += 1;
                self.nested(|reader| reader.braced(place))
            }
            Some(byte) if byte.is_ascii_digit() || b"?#$!@*-".contains(&byte) => {
                self.at += 1;
                Ok(value(char::from(byte).to_string(), quoted))
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => Ok(value(self.name(), quoted)),
            Some(_) | None => Ok(Piece::Literal { text: "$".to_owned(), quoted }),
        }
    }

    /// The characters of a name that come next, over continued lines.
    pub(super) fn name(&mut self) -> String {
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
    pub(super) fn substitution(&mut self) -> Read<List> {
        let pending = self.pending.len();
        self.substitutions += 1;
        let list = self.nested(Self::list)?;
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
    fn backquote(&mut self, place: Place) -> Read<Piece> {
        self.at += 1;
        let mut program = String::new();
        loop {
            match self.bump() {
                None => return malformed("a backquote is not closed"),
                Some('`') => break,
                Some('\\') => match self.raw(0) {
                    Some(b'$' | b'`' | b'\\') => program.extend(self.bump()),
                    Some(b'"') if place == Place::Quoted => {
                        return unclear("an escaped quote between backquotes");
                    }
                    Some(_) | None => program.push('\\'),
                },
                Some(character) => program.push(character),
            }
        }
        let list = self.inside(&program, |reader| reader.program())?;
        Ok(Piece::Command { list, quoted: place == Place::Quoted })
    }

    /// What follows `${`, the closing brace included.
    fn braced(&mut self, place: Place) -> Read<Piece> {
        let quoted = place == Place::Quoted;
        let mut form = Form::Value;
        if self.peek() == Some(b'!')
            && self.raw(1).is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            self.at += 1;
            form = Form::Evaluated;
        } else if self.peek() == Some(b'!') && self.raw(1).is_some_and(|byte| b"?#$!@*-".contains(&byte)) {
            return unclear("an indirect expansion of a special parameter");
        } else if self.peek() == Some(b'#') && self.raw(1) != Some(b'}') {
            self.at += 1;
            form = Form::Length;
        }
        let name = match self.peek() {
            Some(byte) if byte == b'_' || byte.is_ascii_alphanumeric() => self.name(),
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
            let subscript = self.arithmetic("]")?;
            // The subscripts of an array, not the value of what its value names.
            let all =
                matches!(subscript.as_slice(), [Piece::Literal { text, .. }] if text == "@" || text == "*");
            if all && form == Form::Evaluated && self.peek() == Some(b'}') {
                form = Form::Value;
            }
            arithmetic.push(subscript);
        }
        match self.peek() {
            None => return malformed("a parameter expansion is not closed"),
            Some(b'}') => {
                self.at += 1;
                return Ok(Piece::Parameter { name, form, arithmetic, operands, quoted });
            }
            Some(b'@') => {
                let tame =
                    matches!(self.raw(1), Some(b'U' | b'u' | b'L' | b'Q' | b'K' | b'k' | b'a' | b'A' | b'E'));
                form = if tame && self.raw(2) == Some(b'}') {
                    join(form, Form::Changed)
                } else {
                    Form::Evaluated
                };
            }
            Some(b'=') => form = join(form, Form::Assigned),
            Some(b':') if self.raw(1) == Some(b'=') => form = join(form, Form::Assigned),
            Some(b':' | b'-' | b'?' | b'+' | b'#' | b'%' | b'/' | b'^' | b',' | b'~') => {
                form = join(form, Form::Changed)
            }
            Some(b'*') if form == Form::Evaluated => {}
            Some(_) => return unclear("a parameter expansion of an unknown form"),
        }
        let offset = self.raw(0) == Some(b':') && !matches!(self.raw(1), Some(b'-' | b'=' | b'?' | b'+'));
        let start = self.at;
        let operand = self.operand(place)?;
        // An offset is arithmetic, in which no quote quotes.
        if offset && self.since(start).contains(['\'', '"', '\\', '`']) {
            return unclear("a quote in an offset");
        }
        if offset {
            arithmetic.push(operand)
        } else {
            operands.push(operand)
        }
        Ok(Piece::Parameter { name, form, arithmetic, operands, quoted })
    }

    /// The rest of a parameter expansion, operator and closing brace included.
    fn operand(&mut self, place: Place) -> Read<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return malformed("a parameter expansion is not closed"),
                Some(b'}') => {
                    self.at += 1;
                    flush(&mut text, &mut pieces);
                    return Ok(pieces);
                }
                // Whether it quotes depends on the operator and on what is around; bash has changed its mind too.
                Some(b'\'') if place == Place::Quoted => {
                    return unclear("a single quote in a quoted parameter expansion");
                }
                Some(b'\'' | b'\\' | b'$' | b'`') if place == Place::Bare => {
                    flush(&mut text, &mut pieces);
                    self.special(&mut pieces)?;
                }
                Some(b'"') => {
                    flush(&mut text, &mut pieces);
                    self.special(&mut pieces)?;
                }
                Some(b'<' | b'>') if self.raw(1) == Some(b'(') => {
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

    /// `((…))`, if [`Reader::is_arithmetic`] has found it to be next; stepped over.
    pub(super) fn parse_double_parentheses(&mut self) -> Read<Vec<Piece>> {
        let end = self.find_closing_parenthesis(2).map(|(end, _)| end + 2);
        self.at += 2;
        let pieces = self.arithmetic("))")?;
        // Two ways to find the end, by counting and by reading: where they differ, bash may side with either.
        if end != Some(self.at) {
            return unclear("it is not certain where an arithmetic expression ends");
        }
        Ok(pieces)
    }

    /// Arithmetic up to `close`, which is stepped over. Quotes would quote here or not, so there may be none.
    pub(super) fn arithmetic(&mut self, close: &str) -> Read<Vec<Piece>> {
        self.nested(|reader| reader.parse_arithmetic_text(close))
    }

    fn parse_arithmetic_text(&mut self, close: &str) -> Read<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        // bash counts only the kind of bracket that closes.
        let (mut open, mut other) = (0_usize, 0_usize);
        let counted = if close == "]" { b"[]" } else { b"()" };
        loop {
            if open == 0 && self.takes(close) {
                if other > 0 {
                    return unclear("brackets of an arithmetic expression do not match");
                }
                flush(&mut text, &mut pieces);
                return Ok(pieces);
            }
            match self.peek() {
                None => return malformed("an arithmetic expression is not closed"),
                Some(b'\'' | b'"' | b'\\' | b'\n') => return unclear("a quote in an arithmetic expression"),
                Some(b'<' | b'>') if self.raw(1) == Some(b'(') => {
                    return unclear("a process substitution in an arithmetic expression");
                }
                Some(byte @ (b'(' | b'[')) => {
                    let count = if counted.contains(&byte) { &mut open } else { &mut other };
                    *count += 1;
                    if self.depth + open + other > super::DEEPEST {
                        return Err(super::Fault {
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
    fn parse_ansi_c_string(&mut self) -> Read<String> {
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

    fn parse_ansi_c_escape(&mut self) -> Read<char> {
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
            'x' => self.code(16, 2)?,
            'u' => self.code(16, 4)?,
            'U' => self.code(16, 8)?,
            '0'..='7' => {
                self.at -= 1;
                self.code(8, 3)?
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
    fn code(&mut self, radix: u32, most: usize) -> Read<u32> {
        let mut code = 0_u32;
        let mut count = 0;
        while count < most
            && let Some(digit) = self.raw(0).and_then(|byte| char::from(byte).to_digit(radix))
        {
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            count += 1;
        }
        if count == 0 { unclear("an escape without digits") } else { Ok(code) }
    }
}

/// `$name`.
fn value(name: String, quoted: bool) -> Piece {
    Piece::Parameter { name, form: Form::Value, arithmetic: Vec::new(), operands: Vec::new(), quoted }
}

/// The more dangerous of two forms of an expansion.
fn join(outer: Form, inner: Form) -> Form {
    match (outer, inner) {
        (Form::Evaluated, _) | (_, Form::Evaluated) => Form::Evaluated,
        (_, Form::Assigned) => Form::Assigned,
        (Form::Value | Form::Length | Form::Changed | Form::Assigned, inner) => inner,
    }
}

fn flush(text: &mut String, pieces: &mut Vec<Piece>) {
    if !text.is_empty() {
        pieces.push(Piece::Literal { text: std::mem::take(text), quoted: true });
    }
}
