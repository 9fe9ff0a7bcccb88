//! Parses compound commands: conditionals, loops, tests and functions.
//!
//! Reserved words are recognised only where bash recognises them: unquoted, and at the start of a command.

use super::commands::is_name;
use super::{BashParseResult, BashParser, malformed};
use crate::bash_program::{BashCommand, BashCompoundCommand, CommandList, ShellWord};

impl BashParser<'_> {
    /// Parses the redirects after a compound command, which complete it.
    pub(super) fn finish_compound_command(
        &mut self,
        compound: BashCompoundCommand,
    ) -> BashParseResult<BashCommand> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.parse_redirect()? {
                Some((redirect, _)) => redirects.push(redirect),
                None => return Ok(BashCommand::Compound(compound, redirects)),
            }
        }
    }

    /// Parses `if … fi`.
    pub(super) fn parse_if(&mut self) -> BashParseResult<BashCompoundCommand> {
        self.at += 2;
        let mut arms = Vec::new();
        let mut otherwise = None;
        let condition = self.parse_nonempty_list()?;
        self.expect_word("then")?;
        arms.push((condition, self.parse_nonempty_list()?));
        loop {
            match self.peek_bare_word() {
                Some("elif") => {
                    self.at += 4;
                    let condition = self.parse_nonempty_list()?;
                    self.expect_word("then")?;
                    arms.push((condition, self.parse_nonempty_list()?));
                }
                Some("else") => {
                    self.at += 4;
                    otherwise = Some(self.parse_nonempty_list()?);
                    self.expect_word("fi")?;
                    break;
                }
                Some(_) | None => {
                    self.expect_word("fi")?;
                    break;
                }
            }
        }
        Ok(BashCompoundCommand::If { arms, otherwise })
    }

    /// Parses `do … done`.
    pub(super) fn parse_do_group(&mut self) -> BashParseResult<CommandList> {
        self.expect_word("do")?;
        let body = self.parse_nonempty_list()?;
        self.expect_word("done")?;
        Ok(body)
    }

    /// Parses the body of `for`, which may also be a group in braces.
    pub(super) fn parse_for_body(&mut self) -> BashParseResult<CommandList> {
        self.skip_newlines()?;
        if self.peek_bare_word() == Some("{") {
            self.at += 1;
            let body = self.parse_nonempty_list()?;
            self.expect_word("}")?;
            return Ok(body);
        }
        self.parse_do_group()
    }

    /// Parses `for name in words` or `for ((…))`, with its body.
    ///
    /// The list of words ends at `;` or a newline; without `in` the loop is over the arguments of the shell.
    pub(super) fn parse_for(&mut self) -> BashParseResult<BashCompoundCommand> {
        self.at += 3;
        self.skip_blanks();
        if self.is_next("((") {
            if !self.is_arithmetic()? {
                return malformed("an arithmetic loop is not closed");
            }
            let header = self.parse_double_parentheses()?;
            self.skip_blanks();
            self.consume(";");
            return Ok(BashCompoundCommand::ArithmeticFor(header, self.parse_for_body()?));
        }
        let Some(name) = self.peek_bare_word().map(str::to_owned) else {
            return malformed("a loop has no variable");
        };
        if !is_name(&name) {
            return malformed("the variable of a loop is not a valid name");
        }
        self.at += name.len();
        self.skip_newlines()?;
        let mut words = Vec::new();
        if self.peek_bare_word() == Some("in") {
            self.at += 2;
            loop {
                self.skip_blanks_and_comment();
                if matches!(self.peek(), None | Some(b';' | b'\n')) {
                    break;
                }
                words.push(self.parse_nonempty_word()?);
            }
        }
        self.skip_blanks();
        self.consume(";");
        Ok(BashCompoundCommand::For { name, words, body: self.parse_for_body()? })
    }

    /// Parses `case … esac`.
    ///
    /// Each arm is parsed alike, whether `;;`, `;&` or `;;&` ends it: the analysis visits every arm.
    pub(super) fn parse_case(&mut self) -> BashParseResult<BashCompoundCommand> {
        self.at += 4;
        self.skip_blanks();
        let subject = self.parse_nonempty_word()?;
        self.expect_word("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.peek_bare_word() == Some("esac") {
                self.at += 4;
                return Ok(BashCompoundCommand::Case { subject, arms });
            }
            self.consume("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.parse_nonempty_word()?);
                self.skip_blanks();
                if !self.consume("|") {
                    break;
                }
            }
            self.expect_byte(b')', "a case pattern is not closed")?;
            let body = self.with_nesting(Self::parse_list)?;
            arms.push((patterns, body));
            self.skip_newlines()?;
            if self.consume(";;&") || self.consume(";;") || self.consume(";&") {
                continue;
            }
            if self.peek_bare_word() != Some("esac") {
                return malformed("a case is not closed");
            }
        }
    }

    /// Parses the words between `[[` and `]]`. An operator is a word without pieces.
    ///
    /// The structure of the expression does not matter to the analysis, so that the words are kept in one list; only
    /// parentheses are counted, because they must match.
    pub(super) fn parse_test_words(&mut self) -> BashParseResult<Vec<ShellWord>> {
        let mut words: Vec<ShellWord> = Vec::new();
        let mut open = 0_usize;
        loop {
            self.skip_newlines()?;
            if self.peek_bare_word() == Some("]]") {
                self.at += 2;
                return if open == 0 && !words.is_empty() {
                    Ok(words)
                } else {
                    malformed("a test is incomplete")
                };
            }
            if words.last().is_some_and(|last| last.source == "=~") {
                words.push(self.parse_regex_word()?);
                continue;
            }
            let substitutes = self.is_next("<(") || self.is_next(">(");
            let operator = ["&&", "||", "(", ")", "<", ">"]
                .into_iter()
                .find(|operator| !substitutes && self.consume(operator));
            if let Some(operator) = operator {
                open = match operator {
                    "(" => open + 1,
                    ")" if open == 0 => return malformed("a test closes what was not opened"),
                    ")" => open - 1,
                    _ => open,
                };
                words.push(ShellWord { pieces: Vec::new(), source: operator.to_owned() });
                continue;
            }
            if matches!(self.peek(), None | Some(b';' | b'&' | b'|')) {
                return malformed("a test is not closed");
            }
            words.push(self.parse_nonempty_word()?);
        }
    }

    /// Parses `function name …`.
    pub(super) fn parse_function_keyword(&mut self) -> BashParseResult<BashCommand> {
        self.at += 8;
        self.skip_blanks();
        let name = self.parse_nonempty_word()?.source;
        self.skip_blanks();
        if self.consume("(") {
            self.skip_blanks();
            self.expect_byte(b')', "a function definition is incomplete")?;
        }
        self.parse_function_body(name)
    }

    /// Parses the body of a function, which must be a compound command.
    ///
    /// bash accepts any compound command, also `f() ( … )` and `f() if …`.
    pub(super) fn parse_function_body(&mut self, name: String) -> BashParseResult<BashCommand> {
        self.skip_newlines()?;
        let body = self.with_nesting(Self::parse_command)?;
        match body {
            BashCommand::Compound(..) => Ok(BashCommand::Function { name, body: Box::new(body) }),
            BashCommand::Simple(_) | BashCommand::Function { .. } => {
                malformed("the body of a function is not a compound command")
            }
        }
    }
}
