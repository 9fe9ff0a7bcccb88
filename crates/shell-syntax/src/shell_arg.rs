//! One argument of a command, as far as its value is known before the command runs.
//!
//! An argument is literal or live. A literal one has a known value. A live one contains an expansion: its text is the
//! source, and the flags say what its value can and cannot be. Tables decide by these flags, never by the text of a
//! live argument.

use crate::analysis::{CommandWord, ShellExpansionKind};

/// One argument after brace expansion and removal of quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellArg {
    /// The value if it is known, the source text if not: `a b` for `'a b'`, `"$x"/c` for itself.
    pub(crate) text: String,
    /// The expansion that makes the value unknown; of several the least predictable one.
    pub(crate) live: Option<ShellExpansionKind>,
    /// It begins with a tilde that stands for the home directory. Its value is known as soon as the home directory is,
    /// so that it is not live.
    pub(crate) tilde: bool,
    /// It is live and unquoted, so that word splitting may make several words of it, or none.
    pub(crate) splits: bool,
    /// Its first character is literal, so that a live word cannot turn out to be an option.
    pub(crate) first_char_known: bool,
    /// The names of the variables in it. An empty name stands for an expansion that reads more than one.
    pub(crate) variables: Vec<String>,
    /// An expansion in it sets a variable or expands a value a second time (`${x:=y}`, `${x@P}`, `${!x}`).
    pub(crate) evaluates: bool,
    /// The names whose values are evaluated as arithmetic, which can run commands. An empty name stands for an
    /// expression whose names are not known.
    pub(crate) evaluated: Vec<String>,
    /// The value when every live piece of a live argument expands to nothing: `/*` for `"$dir"/*`.
    pub(crate) emptied: String,
    /// The shell pattern, with quoted characters escaped, if a glob is all that makes it live. Then its words are names
    /// of existing files.
    pub(crate) pattern: Option<String>,
    /// It is live, but no word that it becomes begins with a dash: a path that `find` found, or a file below `$TMPDIR`.
    pub(crate) never_option: bool,
    /// Every value that it can have, each of them one word, if the line itself sets the variable.
    pub(crate) one_of: Vec<ShellArg>,
}

impl ShellArg {
    /// An argument whose value is known.
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), first_char_known: true, ..Self::default() }
    }

    /// The value, if it is known for certain.
    pub(crate) fn known(&self) -> Option<&str> {
        (self.live.is_none() && !self.tilde).then_some(self.text.as_str())
    }

    /// The value when every live piece expands to nothing: what `rm -rf "$unset/"` removes.
    pub(crate) fn emptied(&self) -> &str {
        if self.live.is_some() { &self.emptied } else { &self.text }
    }

    /// Whether the program might parse it as an option.
    pub(crate) fn may_be_option(&self) -> bool {
        match self.live {
            None => self.text.starts_with('-') && self.text.len() > 1,
            Some(_) if self.never_option => false,
            // The number or name itself is no option, but what stands before it may begin one (`-o$?`), and a negative
            // number before other text too.
            Some(ShellExpansionKind::Harmless) => {
                let is_number = self.variables.iter().any(|name| name == "#");
                self.emptied.starts_with('-')
                    || (is_number && !self.first_char_known && !self.emptied.is_empty())
            }
            // The names that a glob matches begin as it does.
            Some(ShellExpansionKind::Glob) if self.pattern.is_some() => {
                !self.first_char_known || self.emptied.starts_with('-')
            }
            Some(
                ShellExpansionKind::Glob
                | ShellExpansionKind::Tilde
                | ShellExpansionKind::Arithmetic
                | ShellExpansionKind::Parameter
                | ShellExpansionKind::Substitution,
            ) => !self.first_char_known || self.splits || self.emptied.starts_with('-'),
        }
    }

    /// The spelling that allow rules are matched against: quoted only if the word needs quotes to remain one word.
    pub(crate) fn canonical(&self) -> String {
        let needs_no_quotes = |character: char| {
            character.is_alphanumeric() || "_@%+=:,./-^~#!{}[]*?".contains(character) || !character.is_ascii()
        };
        if self.live.is_some() || self.tilde {
            return self.text.clone();
        }
        if !self.text.is_empty() && self.text.chars().all(needs_no_quotes) {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', "'\\''"))
    }

    /// The argument as the analysis reports it.
    pub(crate) fn to_command_word(&self) -> CommandWord {
        CommandWord { text: self.text.clone(), live: self.live }
    }
}
