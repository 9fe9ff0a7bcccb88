//! The parser of rules files: calls with literal arguments, in the syntax of Starlark.

use super::note;
use crate::translation::TranslationNote;
use std::iter::Peekable;
use std::str::Chars;

/// How deep lists may be nested.
const MAX_DEPTH: usize = 8;

/// A literal argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleLiteral {
    /// A string.
    Text(String),
    /// A list.
    List(Vec<RuleLiteral>),
}

impl RuleLiteral {
    /// The strings of a string or of a list of strings.
    pub(super) fn alternatives(&self) -> Option<Vec<String>> {
        match self {
            Self::Text(text) => Some(vec![text.clone()]),
            Self::List(items) => items
                .iter()
                .map(|item| match item {
                    Self::Text(text) => Some(text.clone()),
                    Self::List(_) => None,
                })
                .collect(),
        }
    }
}

/// A call: `name(key = literal, …)`.
#[derive(Debug)]
pub(super) struct RuleCall {
    /// The function.
    pub(super) name: String,
    /// The line where it begins, from 1.
    pub(super) line: usize,
    /// The arguments, each key once.
    arguments: Vec<(String, RuleLiteral)>,
}

impl RuleCall {
    /// An argument by its name.
    pub(super) fn argument(&self, name: &str) -> Option<&RuleLiteral> {
        self.arguments.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// An argument that must be a string.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, TranslationNote> {
        match self.argument(name) {
            None => Ok(None),
            Some(RuleLiteral::Text(text)) => Ok(Some(text.clone())),
            Some(RuleLiteral::List(_)) => Err(note(self.line, format!("`{name}` must be a string"))),
        }
    }

    /// Refuses arguments that are not known: one of them may restrict the rule.
    pub(super) fn check_arguments(&self, known: &[&str]) -> Result<(), TranslationNote> {
        match self.arguments.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => Err(note(self.line, format!("unknown argument `{key}`"))),
            None => Ok(()),
        }
    }
}

/// Parses a file.
pub(super) fn parse_calls(text: &str) -> Result<Vec<RuleCall>, TranslationNote> {
    let mut reader = LiteralReader { rest: text.chars().peekable(), line: 1 };
    let mut calls = Vec::new();
    loop {
        reader.skip_blanks();
        if reader.rest.peek().is_none() {
            return Ok(calls);
        }
        calls.push(reader.read_call()?);
    }
}

/// The position in a file.
struct LiteralReader<'t> {
    /// What is left.
    rest: Peekable<Chars<'t>>,
    /// The line, from 1.
    line: usize,
}

impl LiteralReader<'_> {
    /// The next character.
    fn next_char(&mut self) -> Option<char> {
        let next = self.rest.next();
        if next == Some('\n') {
            self.line += 1;
        }
        next
    }

    /// Skips blanks, line breaks and comments.
    fn skip_blanks(&mut self) {
        while let Some(next) = self.rest.peek().copied() {
            if next == '#' {
                while self.rest.peek().is_some_and(|c| *c != '\n') {
                    self.next_char();
                }
            } else if next.is_whitespace() {
                self.next_char();
            } else {
                return;
            }
        }
    }

    /// Takes this character, after blanks.
    fn expect(&mut self, wanted: char) -> Result<(), TranslationNote> {
        self.skip_blanks();
        match self.rest.peek().copied() {
            Some(found) if found == wanted => {
                self.next_char();
                Ok(())
            }
            Some(found) => Err(note(self.line, format!("expected `{wanted}`, found `{found}`"))),
            None => Err(note(self.line, format!("the file ends, but `{wanted}` is missing"))),
        }
    }

    /// Takes this character, if it is next after blanks.
    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let is_next = self.rest.peek() == Some(&wanted);
        if is_next {
            self.next_char();
        }
        is_next
    }

    /// Reads an identifier.
    fn read_name(&mut self) -> Result<String, TranslationNote> {
        self.skip_blanks();
        let mut name = String::new();
        while let Some(next) = self.rest.peek().copied().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(next);
            self.next_char();
        }
        match (name.is_empty(), self.rest.peek()) {
            (false, _) => Ok(name),
            (true, Some(found)) => Err(note(self.line, format!("expected a name, found `{found}`"))),
            (true, None) => Err(note(self.line, "the file ends, but a name is missing")),
        }
    }

    /// Reads one call: a name, and arguments in parentheses.
    fn read_call(&mut self) -> Result<RuleCall, TranslationNote> {
        let line = self.line;
        let name = self.read_name()?;
        self.expect('(')?;
        let mut arguments: Vec<(String, RuleLiteral)> = Vec::new();
        while !self.take(')') {
            let key = self.read_name()?;
            self.expect('=')?;
            let value = self.read_literal(MAX_DEPTH)?;
            if arguments.iter().any(|(other, _)| *other == key) {
                return Err(note(self.line, format!("`{key}` is given twice")));
            }
            arguments.push((key, value));
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(RuleCall { name, line, arguments })
    }

    /// Reads a value: a text, a number, a list or a name. Anything else is reported, never evaluated.
    fn read_literal(&mut self, depth: usize) -> Result<RuleLiteral, TranslationNote> {
        self.skip_blanks();
        match self.rest.peek().copied() {
            Some(quote @ ('"' | '\'')) => self.read_text(quote).map(RuleLiteral::Text),
            Some('[') if depth > 0 => {
                self.next_char();
                let mut items = Vec::new();
                while !self.take(']') {
                    items.push(self.read_literal(depth - 1)?);
                    if !self.take(',') {
                        self.expect(']')?;
                        break;
                    }
                }
                Ok(RuleLiteral::List(items))
            }
            Some('[') => Err(note(self.line, "lists are nested too deeply")),
            Some(_) => Err(note(self.line, "expected a string or a list")),
            None => Err(note(self.line, "the file ends, but a value is missing")),
        }
    }

    /// A string in single or double quotes, on one line.
    fn read_text(&mut self, quote: char) -> Result<String, TranslationNote> {
        self.next_char();
        let mut text = String::new();
        loop {
            match self.next_char() {
                Some(end) if end == quote => return Ok(text),
                Some('\\') => match self.next_char() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(plain @ ('\\' | '"' | '\'')) => text.push(plain),
                    Some(other) => return Err(note(self.line, format!("unknown escape `\\{other}`"))),
                    None => return Err(note(self.line, "the file ends inside a string")),
                },
                Some('\n') | None => return Err(note(self.line, "a string is not closed on its line")),
                Some(other) => text.push(other),
            }
        }
    }
}
