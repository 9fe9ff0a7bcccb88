//! Reads the body of a skill as a template: what is text, and what is replaced.
//!
//! The body is read once, before anything is filled in. Whatever an argument holds is text: it can become neither a
//! placeholder nor a command, because nothing reads it again.

use crate::template::{TemplatePart, TemplateVariable};

/// The longest text between the brackets of a placeholder. Looking further for the end would take quadratic time.
const MAX_BRACKET_BYTES: usize = 40;
/// The most argument names; more would make each `$` expensive.
const MAX_ARGUMENT_NAMES: usize = 64;

/// Reads a body from its start to its end.
pub(crate) struct TemplateParser<'t> {
    /// What is left to read.
    rest: &'t str,
    /// The names that `$name` may have, the longest first.
    names: Vec<&'t str>,
    /// The line of `rest` in the body, from 1.
    line: usize,
    /// The character before `rest`.
    before: Option<char>,
    parts: Vec<TemplatePart>,
}

impl<'t> TemplateParser<'t> {
    /// A parser of a body with these argument names.
    pub(crate) fn new(body: &'t str, names: &'t [String]) -> Self {
        let mut names: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| is_name(name)).take(MAX_ARGUMENT_NAMES).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Self { rest: body, names, line: 1, before: None, parts: Vec::new() }
    }

    /// Reads a whole body: placeholders, commands and file references.
    pub(crate) fn parse_body(mut self) -> Vec<TemplatePart> {
        while let Some(c) = self.rest.chars().next() {
            let at_word_start = self.before.is_none_or(char::is_whitespace);
            let at_line_start = self.before.is_none_or(|before| before == '\n');
            if at_line_start && self.take_fence() {
                continue;
            }
            let taken = match c {
                '!' if at_word_start => self.take_command(),
                '@' if at_word_start => self.take_file(),
                _ => self.take_placeholder(c),
            };
            if !taken {
                self.take_text(c.len_utf8());
            }
        }
        self.parts
    }

    /// Reads the text of a command: placeholders only.
    fn parse_command(mut self) -> Vec<TemplatePart> {
        while let Some(c) = self.rest.chars().next() {
            if !self.take_placeholder(c) {
                self.take_text(c.len_utf8());
            }
        }
        self.parts
    }

    /// Takes a fenced block that begins here. Text in an ordinary one is shown, not run: a skill that explains how
    /// commands are written must not run its examples. A block that begins with three backticks and `!` is run.
    fn take_fence(&mut self) -> bool {
        let line = self.rest.lines().next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        let Some(fence) = ["```", "~~~"].into_iter().find(|fence| line.trim_start().starts_with(fence))
        else {
            return false;
        };
        let runs = indent == 0 && line.trim_end() == "```!";
        let mut length = 0;
        let mut content = line.len() + 1..line.len() + 1;
        for (index, line) in self.rest.split_inclusive('\n').enumerate() {
            length += line.len();
            if index > 0 && is_closing_fence(line, fence) {
                break;
            }
            content.end = length;
        }
        let whole = self.rest.get(..length).unwrap_or(self.rest);
        if runs {
            let command = whole.get(content).unwrap_or_default().trim_end_matches('\n');
            let parts = self.parse_inside(command);
            self.parts.push(TemplatePart::Command { parts, line: self.line });
            self.skip(length);
            return true;
        }
        // Placeholders are replaced in code as well, as anywhere.
        let parts = self.parse_inside(whole);
        self.parts.extend(parts);
        self.skip(length);
        true
    }

    /// Reads a part of the body for placeholders only.
    fn parse_inside(&self, text: &'t str) -> Vec<TemplatePart> {
        Self { rest: text, names: self.names.clone(), line: self.line, before: None, parts: Vec::new() }
            .parse_command()
    }

    /// Takes a command on one line: an exclamation mark and the command in backticks.
    fn take_command(&mut self) -> bool {
        let Some(inside) = self.rest.strip_prefix("!`") else { return false };
        // Not by the whole line: a long one with many of these would be searched to its end for each.
        let command = inside.find(['`', '\n']).and_then(|end| inside.split_at_checked(end));
        let Some((command, _)) = command.filter(|(_, rest)| rest.starts_with('`')) else { return false };
        if command.trim().is_empty() {
            return false;
        }
        let parts = self.parse_inside(command);
        self.parts.push(TemplatePart::Command { parts, line: self.line });
        self.skip(command.len() + 3);
        true
    }

    /// Takes a reference to a file. What looks like a handle or an address is none.
    fn take_file(&mut self) -> bool {
        let Some(inside) = self.rest.strip_prefix('@') else { return false };
        let ends = |c: char| c.is_whitespace() || "`\"'<>()[]{},;:!?*|$\\@".contains(c);
        let path = inside.split(ends).next().unwrap_or_default().trim_end_matches('.');
        if path.is_empty() || !path.contains(['/', '.']) {
            return false;
        }
        self.parts.push(TemplatePart::File(path.to_owned()));
        self.skip(path.len() + 1);
        true
    }

    /// Takes a placeholder, or an escaped `$`.
    fn take_placeholder(&mut self, c: char) -> bool {
        match c {
            '\\' => {
                // `\$1` is the text `$1`. A backslash before any other text stays.
                let escaped = self.rest.strip_prefix('\\').filter(|rest| rest.starts_with('$'));
                let Some((_, length)) = escaped.and_then(|rest| self.find_placeholder(rest)) else {
                    return false;
                };
                self.skip(1);
                self.take_text(length);
                true
            }
            '$' => {
                let Some((part, length)) = self.find_placeholder(self.rest) else { return false };
                self.parts.push(part);
                self.skip(length);
                true
            }
            _ => false,
        }
    }

    /// The placeholder that a text begins with, and its length.
    fn find_placeholder(&self, text: &str) -> Option<(TemplatePart, usize)> {
        let after = text.strip_prefix('$')?;
        if let Some(inside) = after.strip_prefix('{') {
            let name = find_bracketed(inside, '}')?;
            let variable = TemplateVariable::parse(name)?;
            return Some((TemplatePart::Variable(variable), name.len() + 3));
        }
        if let Some(rest) = after.strip_prefix("ARGUMENTS") {
            if let Some(number) = rest.strip_prefix('[').and_then(|inside| find_bracketed(inside, ']'))
                && let Ok(index) = number.parse()
                && number.bytes().all(|byte| byte.is_ascii_digit())
            {
                let length = "$ARGUMENTS[]".len() + number.len();
                return Some((
                    TemplatePart::Argument { index, written: text.get(..length)?.to_owned() },
                    length,
                ));
            }
            if !rest.starts_with(is_name_char) {
                return Some((TemplatePart::AllArguments, "$ARGUMENTS".len()));
            }
        }
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let index = after.get(..digits)?.parse().ok()?;
            let written = text.get(..=digits)?.to_owned();
            return Some((TemplatePart::Argument { index, written }, digits + 1));
        }
        let named = self
            .names
            .iter()
            .find(|name| after.strip_prefix(**name).is_some_and(|rest| !rest.starts_with(is_name_char)))?;
        Some((TemplatePart::Named((*named).to_owned()), named.len() + 1))
    }

    /// Takes text.
    fn take_text(&mut self, length: usize) {
        let text = self.rest.get(..length).unwrap_or(self.rest);
        match self.parts.last_mut() {
            Some(TemplatePart::Text(last)) => last.push_str(text),
            _ => self.parts.push(TemplatePart::Text(text.to_owned())),
        }
        self.skip(length);
    }

    /// Goes on behind this many bytes.
    fn skip(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        self.before = taken.chars().next_back().or(self.before);
        self.rest = rest;
    }
}

/// The text before a closing bracket that is near.
fn find_bracketed(inside: &str, close: char) -> Option<&str> {
    let end = inside.char_indices().take(MAX_BRACKET_BYTES).find(|(_, c)| *c == close)?.0;
    inside.get(..end)
}

/// Whether a line ends a fenced block.
fn is_closing_fence(line: &str, fence: &str) -> bool {
    let line = line.trim();
    line.starts_with(fence) && line.chars().all(|c| fence.starts_with(c))
}

/// Whether a character can be part of the name of an argument.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a name can stand behind `$`.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_name_char)
}
