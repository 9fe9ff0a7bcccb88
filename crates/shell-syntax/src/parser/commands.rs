//! Commands, lists and redirects.

use super::super::syntax::{
    AndOrList, AndOrOperator, BashCommand, BashCompoundCommand, BashPipeline, BashRedirect, BashRedirectKind,
    BashSimpleCommand, CommandList, ShellWord, VariableAssignment, WordPiece,
};
use super::{BashParseResult, BashParser, malformed, unclear};

/// Words that mean something else where a command may begin.
const CLOSING_WORDS: [&str; 9] = ["then", "else", "elif", "fi", "do", "done", "esac", "}", "]]"];

/// Builtins whose arguments may be array assignments.
const DECLARATION_BUILTINS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

impl BashParser<'_> {
    /// A whole text.
    pub(super) fn parse_program(&mut self) -> BashParseResult<CommandList> {
        let list = self.parse_list()?;
        if self.peek().is_some() {
            return malformed("a word or operator stands where none may");
        }
        if !self.pending.is_empty() {
            return malformed("a here-document has no text");
        }
        Ok(list)
    }

    /// Commands up to something that ends a list: the end, `)`, `;;`, or a closing word.
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

    /// A list that must hold a command.
    fn parse_nonempty_list(&mut self) -> BashParseResult<CommandList> {
        let list = self.with_nesting(Self::parse_list)?;
        if list.0.is_empty() { malformed("a list has no command") } else { Ok(list) }
    }

    fn is_at_list_end(&mut self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.peek_raw(1), Some(b';' | b'&')),
            Some(_) => self.peek_bare_word().is_some_and(|word| CLOSING_WORDS.contains(&word)),
        }
    }

    fn parse_and_or(&mut self) -> BashParseResult<AndOrList> {
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

    fn parse_pipeline(&mut self) -> BashParseResult<BashPipeline> {
        let mut negated = false;
        loop {
            self.skip_blanks();
            match self.peek_bare_word() {
                Some("!") => {
                    self.at += 1;
                    negated = !negated;
                }
                Some("time") => {
                    let before = self.at;
                    self.at += 4;
                    self.skip_blanks();
                    let dashed = self.peek_raw(0) == Some(b'-');
                    // With any other option, `time` is an ordinary program.
                    match self.peek_bare_word() {
                        Some("-p") => {
                            self.at += 2;
                            self.skip_blanks();
                            if self.peek_bare_word() == Some("--") {
                                self.at += 2;
                            } else if self.peek_raw(0) == Some(b'-') {
                                return unclear("an option of `time`");
                            }
                        }
                        Some(option) if option.starts_with('-') => {
                            self.at = before;
                            break;
                        }
                        None if dashed => return unclear("an option of `time`"),
                        Some(_) | None => {}
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

    /// The next word if it is written without quotes or expansions; the reader stays before it.
    fn peek_bare_word(&mut self) -> Option<&str> {
        self.peek();
        let rest = self.text.get(self.at..)?;
        let end = rest
            .find([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')', '\'', '"', '\\', '$', '`'])
            .unwrap_or(rest.len());
        // A name that goes on with a quote is not the reserved word.
        let next = rest.as_bytes().get(end);
        if end == 0 || matches!(next, Some(b'\'' | b'"' | b'\\' | b'$' | b'`')) {
            return None;
        }
        rest.get(..end)
    }

    /// Steps over a reserved word that must be next.
    fn expect_word(&mut self, word: &'static str) -> BashParseResult<()> {
        self.skip_newlines()?;
        if self.peek_bare_word() == Some(word) {
            self.at += word.len();
            return Ok(());
        }
        malformed("a compound command is not closed as it was opened")
    }

    fn expect_byte(&mut self, byte: u8, what: &'static str) -> BashParseResult<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        malformed(what)
    }

    fn parse_command(&mut self) -> BashParseResult<BashCommand> {
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
            return self.parse_trailing_redirects(compound);
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
            // It shows its words and asks the user, whom no agent has.
            Some("select") => return unclear("a menu is shown"),
            Some("case") => self.parse_case()?,
            Some("[[") => {
                self.at += 2;
                BashCompoundCommand::Test(self.with_nesting(Self::parse_test_words)?)
            }
            Some("function") => return self.parse_function_keyword(),
            Some("coproc") => return unclear("a coprocess is started"),
            Some("in") => return self.parse_simple().map(BashCommand::Simple),
            Some(word) if CLOSING_WORDS.contains(&word) || word == "!" => {
                return malformed("a reserved word stands where none may");
            }
            Some(_) | None => return self.parse_simple_or_function(),
        };
        self.parse_trailing_redirects(compound)
    }

    fn parse_trailing_redirects(&mut self, compound: BashCompoundCommand) -> BashParseResult<BashCommand> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.parse_redirect()? {
                Some((redirect, _)) => redirects.push(redirect),
                None => return Ok(BashCommand::Compound(compound, redirects)),
            }
        }
    }

    fn parse_if(&mut self) -> BashParseResult<BashCompoundCommand> {
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

    fn parse_do_group(&mut self) -> BashParseResult<CommandList> {
        self.expect_word("do")?;
        let body = self.parse_nonempty_list()?;
        self.expect_word("done")?;
        Ok(body)
    }

    /// The body of a `for`, which may also be a group.
    fn parse_for_body(&mut self) -> BashParseResult<CommandList> {
        self.skip_newlines()?;
        if self.peek_bare_word() == Some("{") {
            self.at += 1;
            let body = self.parse_nonempty_list()?;
            self.expect_word("}")?;
            return Ok(body);
        }
        self.parse_do_group()
    }

    fn parse_for(&mut self) -> BashParseResult<BashCompoundCommand> {
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
            return malformed("the variable of a loop is no name");
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

    fn parse_case(&mut self) -> BashParseResult<BashCompoundCommand> {
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

    /// The words between `[[` and `]]`; operators count as words.
    fn parse_test_words(&mut self) -> BashParseResult<Vec<ShellWord>> {
        let mut words: Vec<ShellWord> = Vec::new();
        let mut open = 0_usize;
        loop {
            self.skip_newlines()?;
            if self.peek_bare_word() == Some("]]") {
                self.at += 2;
                return if open == 0 && !words.is_empty() {
                    Ok(words)
                } else {
                    malformed("a test is not complete")
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

    fn parse_function_keyword(&mut self) -> BashParseResult<BashCommand> {
        self.at += 8;
        self.skip_blanks();
        let name = self.parse_nonempty_word()?.source;
        self.skip_blanks();
        if self.consume("(") {
            self.skip_blanks();
            self.expect_byte(b')', "a function is not defined completely")?;
        }
        self.parse_function_body(name)
    }

    fn parse_function_body(&mut self, name: String) -> BashParseResult<BashCommand> {
        self.skip_newlines()?;
        let body = self.with_nesting(Self::parse_command)?;
        match body {
            BashCommand::Compound(..) => Ok(BashCommand::Function { name, body: Box::new(body) }),
            BashCommand::Simple(_) | BashCommand::Function { .. } => {
                malformed("the body of a function is no compound command")
            }
        }
    }

    fn parse_simple_or_function(&mut self) -> BashParseResult<BashCommand> {
        let simple = self.parse_simple()?;
        if self.peek() != Some(b'(') {
            return Ok(BashCommand::Simple(simple));
        }
        self.at += 1;
        self.skip_blanks();
        self.expect_byte(b')', "a parenthesis stands where none may")?;
        match simple.words.as_slice() {
            [name] if simple.spelled.len() == 1 => self.parse_function_body(name.source.clone()),
            _ => malformed("a parenthesis stands where none may"),
        }
    }

    /// Words, assignments and redirects up to an operator.
    fn parse_simple(&mut self) -> BashParseResult<BashSimpleCommand> {
        let mut simple = BashSimpleCommand::default();
        loop {
            self.skip_blanks_and_comment();
            if let Some((redirect, source)) = self.parse_redirect()? {
                simple.redirects.push(redirect);
                simple.spelled.push(source);
                continue;
            }
            let in_prefix = simple.words.is_empty();
            let declares =
                simple.words.first().is_some_and(|word| DECLARATION_BUILTINS.contains(&word.source.as_str()));
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'(') => break,
                Some(_) => {}
            }
            if (in_prefix || declares)
                && let Some(assignment) = self.parse_assignment()?
            {
                simple.spelled.push(assignment.source.clone());
                if in_prefix {
                    simple.assignments.push(assignment);
                } else if assignment.array || assignment.subscript.is_some() {
                    // The declaration is never covered by a rule; its values only have to be found.
                    let source = assignment.source;
                    let pieces = assignment
                        .values
                        .into_iter()
                        .flat_map(|value| value.pieces)
                        .chain(assignment.subscript.into_iter().flatten());
                    simple.words.push(ShellWord { pieces: pieces.collect(), source });
                } else {
                    simple.words.push(assigned_word(assignment));
                }
                continue;
            }
            let word = self.parse_nonempty_word()?;
            // bash 5.2 prints what it has read of a substitution with redirects last, and reads it again.
            if in_prefix && !simple.redirects.is_empty() && is_reserved(&word.source) {
                return unclear("a reserved word after a redirect");
            }
            simple.spelled.push(word.source.clone());
            simple.words.push(word);
        }
        if simple.spelled.is_empty() { malformed("a command is missing") } else { Ok(simple) }
    }

    /// A redirect, if one is next, and how it is spelled.
    fn parse_redirect(&mut self) -> BashParseResult<Option<(BashRedirect, String)>> {
        let start = self.at;
        let sets_variable = self.skip_descriptor();
        if sets_variable && self.text_since(start).contains(['[', '$', '`']) {
            return unclear("a descriptor is kept in an element of an array");
        }
        // The longest spelling first.
        let kinds = [
            ("<<<", BashRedirectKind::HereString),
            ("<<-", BashRedirectKind::HereDocument),
            ("<<", BashRedirectKind::HereDocument),
            ("<&", BashRedirectKind::DuplicateInput),
            ("<>", BashRedirectKind::ReadWrite),
            (">>", BashRedirectKind::Append),
            (">&", BashRedirectKind::DuplicateOutput),
            (">|", BashRedirectKind::Write),
            ("<", BashRedirectKind::Read),
            (">", BashRedirectKind::Write),
            ("&>>", BashRedirectKind::Both),
            ("&>", BashRedirectKind::Both),
        ];
        if self.is_next("<(") || self.is_next(">(") {
            return if self.at == start {
                Ok(None)
            } else {
                unclear("a descriptor and a process substitution")
            };
        }
        let Some((operator, kind)) = kinds.into_iter().find(|(operator, _)| self.consume(operator)) else {
            self.at = start;
            return Ok(None);
        };
        if self.peek_raw(0) == Some(b'\\') && self.peek_raw(1) == Some(b'\n') {
            return unclear("an operator goes on with a backslash");
        }
        self.skip_blanks();
        if kind == BashRedirectKind::HereDocument {
            let number = self.parse_here_delimiter(operator == "<<-")?;
            let source = self.text_since(start).to_owned();
            let redirect =
                BashRedirect { kind, target: ShellWord::default(), body: Some(number), sets_variable };
            return Ok(Some((redirect, source)));
        }
        let target = self.parse_nonempty_word()?;
        let source = self.text_since(start).to_owned();
        Ok(Some((BashRedirect { kind, target, body: None, sets_variable }, source)))
    }

    /// Steps over `2` or `{name}` directly before a redirect; tells whether it was a name.
    fn skip_descriptor(&mut self) -> bool {
        self.peek();
        let Some(rest) = self.text.get(self.at..) else { return false };
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let redirects = |end: usize| matches!(rest.as_bytes().get(end), Some(b'<' | b'>'));
        if digits > 0 {
            // A number above the largest descriptor is a word like any other.
            let descriptor = rest.get(..digits).is_some_and(|number| number.parse::<i32>().is_ok());
            if redirects(digits) && descriptor {
                self.at += digits;
            }
            return false;
        }
        let Some(end) = rest.strip_prefix('{').and_then(|inner| inner.find('}')).map(|end| end + 2) else {
            return false;
        };
        let named =
            redirects(end) && rest.get(1..end - 1).is_some_and(|name| is_name(name) || name.contains('['));
        if named {
            self.at += end;
        }
        named
    }
}

/// `name=value` as an argument: a word like any other.
fn assigned_word(assignment: VariableAssignment) -> ShellWord {
    let head = WordPiece::Literal { text: format!("{}=", assignment.name), quoted: false };
    let pieces = std::iter::once(head).chain(assignment.values.into_iter().flat_map(|value| value.pieces));
    ShellWord { pieces: pieces.collect(), source: assignment.source }
}

/// Whether a word means something else where a command may begin, or ends something.
pub(super) fn is_reserved(word: &str) -> bool {
    const OPENING_WORDS: [&str; 13] =
        ["!", "{", "[[", "if", "while", "until", "for", "select", "case", "function", "coproc", "time", "in"];
    OPENING_WORDS.contains(&word) || CLOSING_WORDS.contains(&word)
}

/// Whether a text may name a variable.
pub(in super::super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|character: char| character.is_ascii_digit())
        && text.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
}
