//! Parses expansions: parameters, command substitutions and backquotes.
//!
//! For each parameter expansion the parser notes whether it only reads the value, changes it, assigns it, or evaluates
//! it again: the last two can run commands that no word shows.

use super::quotes::{QuoteContext, flush_quoted_text};
use super::{BashParseResult, BashParser, malformed, unclear};
use crate::bash_program::{CommandList, ParameterExpansionForm, WordPiece};

/// The parameters of one character that are no digits.
const SPECIAL_PARAMETERS: &[u8] = b"?#$!@*-";

impl BashParser<'_> {
    /// Parses what begins with a dollar sign.
    ///
    /// A dollar sign before any other character is literal.
    pub(super) fn parse_dollar_expansion(&mut self, context: QuoteContext) -> BashParseResult<WordPiece> {
        let quoted = context == QuoteContext::Quoted;
        self.at += 1;
        match self.peek() {
            Some(b'\'') if !quoted => {
                self.at += 1;
                let text = self.parse_ansi_c_string()?;
                Ok(WordPiece::Literal { text, quoted: true })
            }
            Some(b'"') if !quoted => unclear("it has a translated string (`$\"…\"`)"),
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
                self.with_nesting(|parser| parser.parse_braced_parameter(context))
            }
            Some(byte) if byte.is_ascii_digit() || SPECIAL_PARAMETERS.contains(&byte) => {
                self.at += 1;
                Ok(plain_parameter(char::from(byte).to_string(), quoted))
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                Ok(plain_parameter(self.parse_name(), quoted))
            }
            Some(_) | None => Ok(WordPiece::Literal { text: "$".to_owned(), quoted }),
        }
    }

    /// Parses the characters of a name, over line continuations.
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

    /// Parses the commands of a substitution and the closing parenthesis.
    ///
    /// A here-document that begins inside must also end inside.
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

    /// Parses the content of backquotes: a program whose backslashes are processed twice.
    ///
    /// The content is unescaped first and then parsed as a program of its own, as bash does.
    pub(super) fn parse_backquote(&mut self, context: QuoteContext) -> BashParseResult<WordPiece> {
        self.at += 1;
        let mut program = String::new();
        loop {
            match self.bump() {
                None => return malformed("a backquote is not closed"),
                Some('`') => break,
                Some('\\') => match self.peek_raw(0) {
                    Some(b'$' | b'`' | b'\\') => program.extend(self.bump()),
                    Some(b'"') if context == QuoteContext::Quoted => {
                        return unclear("an escaped quote is between backquotes");
                    }
                    Some(_) | None => program.push('\\'),
                },
                Some(character) => program.push(character),
            }
        }
        let list = self.parse_nested_text(&program, |parser| parser.parse_program())?;
        Ok(WordPiece::Command { list, quoted: context == QuoteContext::Quoted })
    }

    /// Parses what follows `${`, up to and including the closing brace.
    pub(super) fn parse_braced_parameter(&mut self, context: QuoteContext) -> BashParseResult<WordPiece> {
        let quoted = context == QuoteContext::Quoted;
        let mut form = self.parse_parameter_prefix()?;
        let name = match self.peek() {
            Some(byte) if byte == b'_' || byte.is_ascii_alphanumeric() => self.parse_name(),
            Some(byte) if SPECIAL_PARAMETERS.contains(&byte) => {
                self.at += 1;
                char::from(byte).to_string()
            }
            Some(_) => return unclear("a parameter expansion has an unknown form"),
            None => return malformed("a parameter expansion is not closed"),
        };
        let mut arithmetic = Vec::new();
        let mut operands = Vec::new();
        if self.peek() == Some(b'[') {
            self.at += 1;
            let subscript = self.parse_arithmetic("]")?;
            // `${!x[@]}` is the list of subscripts, not the value of a variable that `x` names.
            let all = matches!(subscript.as_slice(), [WordPiece::Literal { text, .. }] if text == "@" || text == "*");
            if all && form == ParameterExpansionForm::Evaluated && self.peek() == Some(b'}') {
                form = ParameterExpansionForm::Value;
            }
            arithmetic.push(subscript);
        }
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(WordPiece::Parameter { name, form, arithmetic, operands, quoted });
        }
        let form = self.peek_operator_form(form)?;
        let is_offset =
            self.peek_raw(0) == Some(b':') && !matches!(self.peek_raw(1), Some(b'-' | b'=' | b'?' | b'+'));
        let start = self.at;
        let operand = self.parse_operand(context)?;
        // An offset is arithmetic, in which quotes have another meaning.
        if is_offset && self.text_since(start).contains(['\'', '"', '\\', '`']) {
            return unclear("a quote is in an offset");
        }
        if is_offset {
            arithmetic.push(operand)
        } else {
            operands.push(operand)
        }
        Ok(WordPiece::Parameter { name, form, arithmetic, operands, quoted })
    }

    /// Skips `!` or `#` before the name in `${!name}` or `${#name}`; returns the form that it asks for.
    fn parse_parameter_prefix(&mut self) -> BashParseResult<ParameterExpansionForm> {
        let next = self.peek();
        let after = self.peek_raw(1);
        let form =
            if next == Some(b'!') && after.is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
                ParameterExpansionForm::Evaluated
            } else if next == Some(b'!') && after.is_some_and(|byte| SPECIAL_PARAMETERS.contains(&byte)) {
                return unclear("a special parameter is expanded indirectly");
            } else if next == Some(b'#') && after != Some(b'}') {
                ParameterExpansionForm::Length
            } else {
                return Ok(ParameterExpansionForm::Value);
            };
        self.at += 1;
        Ok(form)
    }

    /// The form of an expansion whose operator comes next. Nothing is skipped.
    fn peek_operator_form(
        &mut self,
        form: ParameterExpansionForm,
    ) -> BashParseResult<ParameterExpansionForm> {
        Ok(match self.peek() {
            None => return malformed("a parameter expansion is not closed"),
            Some(b'@') => {
                let only_changes = matches!(
                    self.peek_raw(1),
                    Some(b'U' | b'u' | b'L' | b'Q' | b'K' | b'k' | b'a' | b'A' | b'E')
                );
                if only_changes && self.peek_raw(2) == Some(b'}') {
                    more_dangerous_form(form, ParameterExpansionForm::Changed)
                } else {
                    ParameterExpansionForm::Evaluated
                }
            }
            Some(b'=') => more_dangerous_form(form, ParameterExpansionForm::Assigned),
            Some(b':') if self.peek_raw(1) == Some(b'=') => {
                more_dangerous_form(form, ParameterExpansionForm::Assigned)
            }
            Some(b':' | b'-' | b'?' | b'+' | b'#' | b'%' | b'/' | b'^' | b',' | b'~') => {
                more_dangerous_form(form, ParameterExpansionForm::Changed)
            }
            Some(b'*') if form == ParameterExpansionForm::Evaluated => form,
            Some(_) => return unclear("a parameter expansion has an unknown form"),
        })
    }

    /// Parses the rest of a parameter expansion: the operator, its operand and the closing brace.
    ///
    /// In `${x:-…}` the operand may contain quotes and expansions of its own.
    pub(super) fn parse_operand(&mut self, context: QuoteContext) -> BashParseResult<Vec<WordPiece>> {
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
                // Whether it quotes depends on the operator and on the version of bash.
                Some(b'\'') if context == QuoteContext::Quoted => {
                    return unclear("a single quote is in a quoted parameter expansion");
                }
                Some(b'\'' | b'\\' | b'$' | b'`') if context == QuoteContext::Bare => {
                    flush_quoted_text(&mut text, &mut pieces);
                    self.parse_quote_or_expansion(&mut pieces)?;
                }
                Some(b'"') => {
                    flush_quoted_text(&mut text, &mut pieces);
                    self.parse_quote_or_expansion(&mut pieces)?;
                }
                Some(b'<' | b'>') if self.peek_raw(1) == Some(b'(') => {
                    return unclear("a process substitution is in a parameter expansion");
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.extend(self.bump());
                }
                Some(_) => self.parse_quoted_piece(&mut text, &mut pieces, b"")?,
            }
        }
    }
}

/// The piece for `$name`.
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
///
/// `${!x:-y}` both evaluates and changes; the analysis must see the first.
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
