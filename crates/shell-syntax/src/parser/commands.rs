//! Parses programs, lists and pipelines, and decides which kind of command comes next.
//!
//! A list ends at a closing word (`fi`, `done`, `}`, …) or operator, which the caller then expects. One function for
//! all
//! lists is enough, because bash reserves these words at the start of every command.

use super::{BashParseResult, BashParser, malformed, unclear};
use crate::bash_program::{
    AndOrList, AndOrOperator, BashCommand, BashCompoundCommand, BashPipeline, CommandList,
};

/// Reserved words that end a list of commands.
const CLOSING_WORDS: [&str; 9] = ["then", "else", "elif", "fi", "do", "done", "esac", "}", "]]"];

impl BashParser<'_> {
    /// Parses a whole text.
    pub(super) fn parse_program(&mut self) -> BashParseResult<CommandList> {
        let list = self.parse_list()?;
        if self.peek().is_some() {
            return malformed("a word or operator is in an unexpected place");
        }
        if !self.pending.is_empty() {
            return malformed("a here-document has no text");
        }
        Ok(list)
    }

    /// Parses commands up to what ends a list: the end of the text, `)`, `;;` or a closing word.
    ///
    /// A list may be empty in a program, a substitution or an arm of `case`; the callers that need a command use
    /// `parse_nonempty_list`.
    pub(super) fn parse_list(&mut self) -> BashParseResult<CommandList> {
        let mut items = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.is_at_list_end() {
                return Ok(CommandList(items));
            }
            let mut item = self.parse_and_or()?;
            self.skip_blanks_and_comment();
            match self.peek_raw(0) {
                Some(b'&') => {
                    self.at += 1;
                    item.background = true;
                }
                Some(b';') if !matches!(self.peek_raw(1), Some(b';' | b'&')) => self.at += 1,
                Some(b'\n') | None => {}
                Some(_) => {
                    items.push(item);
                    return Ok(CommandList(items));
                }
            }
            items.push(item);
        }
    }

    /// Parses a list with at least one command.
    pub(super) fn parse_nonempty_list(&mut self) -> BashParseResult<CommandList> {
        let list = self.with_nesting(Self::parse_list)?;
        if list.0.is_empty() { malformed("a list has no command") } else { Ok(list) }
    }

    /// Whether a list ends here.
    pub(super) fn is_at_list_end(&mut self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.peek_raw(1), Some(b';' | b'&')),
            Some(_) => self.peek_bare_word().is_some_and(|word| CLOSING_WORDS.contains(&word)),
        }
    }

    /// Parses pipelines joined by `&&` and `||`.
    pub(super) fn parse_and_or(&mut self) -> BashParseResult<AndOrList> {
        let first = self.parse_pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks_and_comment();
            let joint = if self.consume("&&") {
                AndOrOperator::And
            } else if self.consume("||") {
                AndOrOperator::Or
            } else {
                return Ok(AndOrList { first, rest, background: false });
            };
            self.skip_newlines()?;
            rest.push((joint, self.parse_pipeline()?));
        }
    }

    /// Parses commands joined by `|` or `|&`, with `!` and `time` before them.
    ///
    /// `|&` also connects standard error, which makes no difference to what runs.
    pub(super) fn parse_pipeline(&mut self) -> BashParseResult<BashPipeline> {
        let mut negated = false;
        loop {
            self.skip_blanks();
            match self.peek_bare_word() {
                Some("!") => {
                    self.at += 1;
                    negated = !negated;
                }
                Some("time") => {
                    if !self.consume_time_keyword()? {
                        break;
                    }
                }
                Some(_) | None => break,
            }
        }
        let mut commands = vec![self.parse_command()?];
        loop {
            self.skip_blanks_and_comment();
            if self.is_next("||") || !self.consume("|") {
                return Ok(BashPipeline { negated, commands });
            }
            self.consume("&");
            self.skip_newlines()?;
            commands.push(self.parse_command()?);
        }
    }

    /// Skips the reserved word `time` with its option `-p`. With any other option `time` is an ordinary program, and
    /// nothing is skipped; returns whether it was.
    fn consume_time_keyword(&mut self) -> BashParseResult<bool> {
        let before = self.at;
        self.at += 4;
        self.skip_blanks();
        let dashed = self.peek_raw(0) == Some(b'-');
        match self.peek_bare_word() {
            Some("-p") => {
                self.at += 2;
                self.skip_blanks();
                if self.peek_bare_word() == Some("--") {
                    self.at += 2;
                } else if self.peek_raw(0) == Some(b'-') {
                    return unclear("`time` has an option of unknown meaning");
                }
            }
            Some(option) if option.starts_with('-') => {
                self.at = before;
                return Ok(false);
            }
            None if dashed => return unclear("`time` has an option of unknown meaning"),
            Some(_) | None => {}
        }
        Ok(true)
    }

    /// The next word if it is written without quotes or expansions. Nothing is skipped.
    ///
    /// Reserved words are compared with this, because `"if"` and `i\f` are ordinary words.
    pub(super) fn peek_bare_word(&mut self) -> Option<&str> {
        self.peek();
        let rest = self.text.get(self.at..)?;
        let end = rest
            .find([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')', '\'', '"', '\\', '$', '`'])
            .unwrap_or(rest.len());
        // A word that continues with a quote or an expansion is not the reserved word; `[[<(a)` is one word.
        let expands = matches!(
            rest.as_bytes().get(end..).unwrap_or_default(),
            [b'\'' | b'"' | b'\\' | b'$' | b'`', ..] | [b'<' | b'>', b'(', ..]
        );
        if end == 0 || expands {
            return None;
        }
        rest.get(..end)
    }

    /// Skips a reserved word that must come next.
    pub(super) fn expect_word(&mut self, word: &'static str) -> BashParseResult<()> {
        self.skip_newlines()?;
        if self.peek_bare_word() == Some(word) {
            self.at += word.len();
            return Ok(());
        }
        malformed("a compound command is not closed as it was opened")
    }

    /// Skips a byte that must come next; `message` is the error if it does not.
    pub(super) fn expect_byte(&mut self, byte: u8, message: &'static str) -> BashParseResult<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        malformed(message)
    }

    /// Parses one command of any kind.
    ///
    /// `select` and `coproc` are refused: the first waits for a choice of a user, the second runs a command whose
    /// output has no visible reader.
    pub(super) fn parse_command(&mut self) -> BashParseResult<BashCommand> {
        self.skip_blanks();
        if self.peek() == Some(b'(') {
            let compound = if self.is_arithmetic()? {
                BashCompoundCommand::Arithmetic(self.parse_double_parentheses()?)
            } else {
                self.at += 1;
                let list = self.parse_nonempty_list()?;
                self.expect_byte(b')', "a subshell is not closed")?;
                BashCompoundCommand::Subshell(list)
            };
            return self.finish_compound_command(compound);
        }
        let compound = match self.peek_bare_word() {
            Some("{") => {
                self.at += 1;
                let list = self.parse_nonempty_list()?;
                self.expect_word("}")?;
                BashCompoundCommand::Group(list)
            }
            Some("if") => self.parse_if()?,
            Some("while" | "until") => {
                self.at += 5;
                let condition = self.parse_nonempty_list()?;
                BashCompoundCommand::While { condition, body: self.parse_do_group()? }
            }
            Some("for") => self.parse_for()?,
            // It prints a menu and waits for a choice of the user.
            Some("select") => return unclear("it shows a menu (`select`)"),
            Some("case") => self.parse_case()?,
            Some("[[") => {
                self.at += 2;
                BashCompoundCommand::Test(self.with_nesting(Self::parse_test_words)?)
            }
            Some("function") => return self.parse_function_keyword(),
            Some("coproc") => return unclear("it starts a coprocess"),
            Some("in") => return self.parse_simple_command().map(BashCommand::Simple),
            Some(word) if CLOSING_WORDS.contains(&word) || word == "!" => {
                return malformed("a reserved word is in an unexpected place");
            }
            Some(_) | None => return self.parse_simple_or_function(),
        };
        self.finish_compound_command(compound)
    }
}

/// Whether a word is reserved where a command may begin.
///
/// `in` is included although bash reserves it only after `for` and `case`: it is rare as the name of a command, and to
/// refuse it costs little.
pub(super) fn is_reserved(word: &str) -> bool {
    const OPENING_WORDS: [&str; 13] =
        ["!", "{", "[[", "if", "while", "until", "for", "select", "case", "function", "coproc", "time", "in"];
    OPENING_WORDS.contains(&word) || CLOSING_WORDS.contains(&word)
}

/// Whether a text is a valid name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|character: char| character.is_ascii_digit())
        && text.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
}
