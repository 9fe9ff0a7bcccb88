//! `Bash(content)`: rules for commands.
//!
//! The content is an exact command, a prefix that ends at a word (`npm run *`, or the older `npm run:*`), or a text with
//! `*` anywhere. It is compared with one simple command at a time: compared with a whole line, `npm run *` would also
//! match `npm run x; rm -r y`.

use super::syntax::RuleSyntaxError;
use crate::raw::RuleAction;
use std::collections::{HashMap, HashSet};
use toolgate_proto::wildcard::WildcardPattern;

/// A compiled command pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandPattern {
    /// Exactly this text.
    Exact(String),
    /// This text, alone or followed by a space and anything.
    Prefix(String),
    /// A text with wildcards in other places.
    Wild {
        /// The whole pattern, or the pattern without its final ` *`.
        body: WildcardPattern,
        /// The whole pattern, if it ends in ` *`: more words may follow the body.
        tail: Option<WildcardPattern>,
    },
    /// A deny or ask rule with quotes: as written, and with the words that bash makes of it.
    Quoted(Box<[Self; 2]>),
}

impl CommandPattern {
    /// Parses the content of a rule. Wildcards of an allow rule are stricter than those of other rules, and quotes in it
    /// are compared as written; a deny or ask rule also matches the same words in other quotes.
    pub(crate) fn parse(content: &str, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        let written = Self::parse_spelling(content, action)?;
        match action {
            RuleAction::Allow => Ok(written),
            RuleAction::Ask | RuleAction::Deny => Ok(match remove_quotes(content) {
                Some(plain) => Self::Quoted(Box::new([written, Self::parse_spelling(&plain, action)?])),
                None => written,
            }),
        }
    }

    /// Parses one spelling of the content.
    fn parse_spelling(content: &str, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        let content = squeeze_blanks(content);
        if content == ":*" {
            return Err(RuleSyntaxError::new(
                "`:*` does not follow a command",
                "write `Bash` to match every command",
            ));
        }
        if let Some(prefix) = content.strip_suffix(":*") {
            return Ok(Self::Prefix(prefix.trim_end().to_owned()));
        }
        if !content.contains('*') {
            return Ok(Self::Exact(content));
        }
        let before_star = content.strip_suffix(" *");
        if let Some(prefix) = before_star
            && !prefix.contains('*')
        {
            return Ok(Self::Prefix(prefix.to_owned()));
        }
        let compile = |text: &str| {
            let wild = WildcardPattern::new(text);
            match action {
                // `curl http://host/*` must not allow a second URL or an option after the first.
                RuleAction::Allow => wild.restrict_to_words(ends_inside_url),
                RuleAction::Ask | RuleAction::Deny => wild,
            }
        };
        Ok(match before_star {
            Some(body) => Self::Wild { body: compile(body), tail: Some(compile(&content)) },
            None => Self::Wild { body: compile(&content), tail: None },
        })
    }

    /// Whether the pattern matches one simple command.
    pub(crate) fn matches(&self, command: &str) -> bool {
        match self {
            Self::Exact(text) => command == text,
            Self::Prefix(prefix) => starts_at_word(command, prefix),
            Self::Wild { body, tail } => {
                body.matches(command) || tail.as_ref().is_some_and(|tail| tail.matches(command))
            }
            Self::Quoted(spellings) => spellings.iter().any(|spelling| spelling.matches(command)),
        }
    }

    /// Why a valid pattern may not do what its author meant: message and fix.
    pub(crate) fn caution(&self, action: RuleAction) -> Option<(&'static str, &'static str)> {
        let Self::Wild { body, .. } = self else { return None };
        let head = body.head();
        if head.split(' ').next_back().is_some_and(|word| word.contains('=')) {
            return Some((
                "the wildcard is inside the value of a variable",
                "leave out the assignment: rules ignore harmless assignments before a command",
            ));
        }
        if action == RuleAction::Allow && (head.is_empty() || !head.trim_end().contains(' ')) {
            return Some((
                "the wildcard comes before the subcommand, so it also matches options of the program",
                "name the subcommand before the first `*`",
            ));
        }
        None
    }
}

/// Replaces each run of spaces and tabs outside quotes by one space, in a rule and in a line that is compared with it.
/// Other whitespace stays, because bash does not separate words at it: a newline ends a command, and a no-break space is
/// part of a word. A text with escapes, here-documents or comments stays as it is: blanks in it may be significant.
pub(crate) fn squeeze_blanks(text: &str) -> String {
    let trimmed = text.trim_matches([' ', '\t', '\n']);
    if ["\\", "<<", "$'", "#", "`"].into_iter().any(|special| trimmed.contains(special)) {
        return trimmed.to_owned();
    }
    let mut squeezed = String::with_capacity(trimmed.len());
    let mut quote: Option<char> = None;
    let mut after_blank = false;
    for character in trimmed.chars() {
        let is_blank = quote.is_none() && matches!(character, ' ' | '\t');
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if open == character => quote = None,
            _ => {}
        }
        if is_blank && !after_blank {
            squeezed.push(' ');
        } else if !is_blank {
            squeezed.push(character);
        }
        after_blank = is_blank;
    }
    squeezed
}

/// The words of a text without their quotes, as bash compares them. `None` if there are none, or if the quotes are not
/// closed or contain an expansion: such a word is only known as written.
fn remove_quotes(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut characters = text.trim().chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (Some('"'), '$' | '`' | '\\') | (None, '$' | '`') => return None,
            (None, '\\') => plain.extend(characters.next()),
            (_, character) => plain.push(character),
        }
    }
    (quote.is_none() && plain != text.trim() && !plain.trim().is_empty()).then_some(plain)
}

/// Whether a text contains an operator between commands, outside quotes.
pub(crate) fn joins_commands(content: &str) -> bool {
    let mut quote = None;
    let mut characters = content.chars().peekable();
    let mut before = ' ';
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('"') | None, '\\') => {
                characters.next();
            }
            (Some(open), _) => {
                if character == open {
                    quote = None;
                }
            }
            (None, '\'' | '"') => quote = Some(character),
            (None, ';' | '|' | '\n') if before != '>' => return true,
            // `2>&1` and `&>` are redirects, not operators.
            (None, '&') if !matches!(before, '>' | '<') && characters.peek() != Some(&'>') => return true,
            (None, _) => {}
        }
        before = character;
    }
    false
}

/// Whether the command begins with the prefix, and the prefix ends at a word.
fn starts_at_word(command: &str, prefix: &str) -> bool {
    command.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether the text before a wildcard ends inside a URL or a path.
fn ends_inside_url(before: &str) -> bool {
    let word = before.rsplit(' ').next().unwrap_or("");
    !word.is_empty() && word.contains('/')
}

/// Command rules of one action, indexed by the words that begin a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandIndex {
    /// The first rule for each exact command.
    exact: HashMap<String, u32>,
    /// The first rule for each prefix.
    prefixes: HashMap<String, u32>,
    /// Patterns with wildcards, by their first word if it is literal.
    by_word: HashMap<String, Vec<(u32, CommandPattern)>>,
    /// Patterns with a wildcard in their first word.
    loose: Vec<(u32, CommandPattern)>,
    /// The first words of all patterns that have a literal one.
    words: HashSet<String>,
    /// There is at least one rule.
    any: bool,
}

impl CommandIndex {
    /// Adds a rule to the list that fits its pattern.
    pub(crate) fn add(&mut self, id: u32, pattern: CommandPattern) {
        self.any = true;
        let head = match &pattern {
            CommandPattern::Exact(text) | CommandPattern::Prefix(text) => text.as_str(),
            CommandPattern::Wild { body, .. } => body.head(),
            CommandPattern::Quoted(_) => "",
        };
        let word = head.split(' ').next().unwrap_or(head);
        if !word.is_empty() && !self.words.contains(word) {
            self.words.insert(word.to_owned());
        }
        match pattern {
            CommandPattern::Exact(text) => {
                self.exact.entry(text).or_insert(id);
            }
            CommandPattern::Prefix(text) => {
                self.prefixes.entry(text).or_insert(id);
            }
            CommandPattern::Wild { body, tail } => {
                let word = body.head().split_once(' ').map(|(word, _)| word.to_owned());
                let list = match word {
                    Some(word) => self.by_word.entry(word).or_default(),
                    None => &mut self.loose,
                };
                list.push((id, CommandPattern::Wild { body, tail }));
            }
            CommandPattern::Quoted(spellings) => {
                for spelling in *spellings {
                    self.add(id, spelling);
                }
            }
        }
    }

    /// Whether there are no command rules, so that no command line has to be matched.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Whether a rule could match some command of this program.
    pub(crate) fn may_match_program(&self, program: &str) -> bool {
        self.words.contains(program) || !self.loose.is_empty()
    }

    /// The first rule for exactly this text.
    pub(crate) fn find_exact(&self, command: &str) -> Option<u32> {
        self.exact.get(command).copied()
    }

    /// The first rule with a wildcard that matches this text.
    pub(crate) fn find_wildcard(&self, command: &str) -> Option<u32> {
        if !self.any {
            return None;
        }
        let ends = command.match_indices(' ').map(|(at, _)| at).chain([command.len()]);
        let prefixed = (!self.prefixes.is_empty())
            .then(|| ends.filter_map(|end| self.prefixes.get(command.get(..end)?)).min().copied())
            .flatten();
        let word = command.split(' ').next().unwrap_or(command);
        let wild = self.by_word.get(word).into_iter().flatten().chain(&self.loose);
        let wild = wild.filter(|(_, pattern)| pattern.matches(command)).map(|(id, _)| *id).min();
        prefixed.into_iter().chain(wild).min()
    }

    /// The first rule that matches this text.
    pub(crate) fn find(&self, command: &str) -> Option<u32> {
        self.find_exact(command).into_iter().chain(self.find_wildcard(command)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_detected_outside_quotes() {
        for content in ["git status && ls", "a; b", "a | b", "a||b", "sleep 1 &", "git * && rm *", "a \n b"] {
            assert!(joins_commands(content), "{content}");
        }
        for content in
            ["echo 'a && b'", "echo \"a; b\"", "a 2>&1", "a &> b", "a >| b", "echo \\; x", "git log:*"]
        {
            assert!(!joins_commands(content), "{content}");
        }
    }

    fn check(content: &str, command: &str) -> bool {
        let pattern = CommandPattern::parse(content, RuleAction::Allow).unwrap();
        let mut index = CommandIndex::default();
        index.add(7, pattern.clone());
        assert_eq!(index.find(command).is_some(), pattern.matches(command), "{content} / {command}");
        pattern.matches(command)
    }

    #[test]
    fn prefixes_end_at_words_and_wildcards_match_anything() {
        for (content, command, matches) in [
            ("npm run build", "npm run build", true),
            ("npm  run build", "npm run build", true),
            ("npm\trun build", "npm run build", true),
            ("npm\nrun build", "npm run build", false),
            ("npm\u{a0}run build", "npm run build", false),
            ("npm\u{3000}run build", "npm run build", false),
            ("echo 'a  b'", "echo 'a b'", false),
            ("echo  'a  b'", "echo 'a  b'", true),
            ("echo a\\  b", "echo a\\ b", false),
            ("npm run build", "npm run build --watch", false),
            ("npm run *", "npm run", true),
            ("npm run *", "npm run t -- --ci", true),
            ("npm run *", "npm running", false),
            ("ls *", "lsof", false),
            ("ls*", "lsof", true),
            ("ls*", "ls -la", true),
            ("ls:*", "ls -la", true),
            ("ls:*", "lsof", false),
            ("git:* push", "git push", false),
            ("git:* push", "git:x push", true),
            ("git * main", "git push origin main", true),
            ("git * main", "git main", false),
            ("* install", "npm install", true),
            ("* install", "npm install x", false),
            ("a*b:*", "a*b c", true),
            ("a*b:*", "axb c", false),
            ("git * main *", "git push main", true),
            ("git * main *", "git push main now", true),
            ("git * main *", "git push mainly", false),
            ("curl http://localhost:3000/*", "curl http://localhost:3000/health", true),
            ("curl http://localhost:3000/*", "curl http://localhost:3000/ http://evil.example", false),
            ("npm run build.prod", "npm run buildXprod", false),
        ] {
            assert_eq!(check(content, command), matches, "{content} / {command}");
        }
        for (content, command, matches) in [
            ("\"rm\" *", "rm x", true),
            ("\"rm\" *", "\"rm\" x", true),
            ("rm \"a b\"", "rm a b", true),
            ("rm 'a'\"b\"", "rm ab", true),
            ("rm a\\ b", "rm a b", true),
            ("rm \"$X\"", "rm $X", false),
            ("rm \"$X\"", "rm \"$X\"", true),
            ("rm \"a", "rm a", false),
        ] {
            let deny = CommandPattern::parse(content, RuleAction::Deny).unwrap();
            let mut index = CommandIndex::default();
            index.add(7, deny.clone());
            assert_eq!(deny.matches(command), matches, "{content} / {command}");
            assert_eq!(index.find(command).is_some(), matches, "{content} / {command}");
        }
        assert!(!check("rm \"a b\"", "rm a b"));
        let deny = CommandPattern::parse("curl http://a/*", RuleAction::Deny).unwrap();
        assert!(deny.matches("curl http://a/ http://b"));
        assert!(CommandPattern::parse(":*", RuleAction::Allow).is_err());
    }
}
