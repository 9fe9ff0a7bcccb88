//! Generated command lines as trees, and the effects of the few programs in them.

use super::generated_call::GeneratedUrl;
use super::simulated_path::{CWD, HOME};

/// A list of commands.
#[derive(Debug, Clone)]
pub(super) struct GeneratedCommandLine {
    /// Each command, and the operator that joins it to the next.
    pub(super) items: Vec<(GeneratedCommand, &'static str)>,
}

/// One command of a list.
#[derive(Debug, Clone)]
pub(super) enum GeneratedCommand {
    /// A program and its words.
    Simple(GeneratedSimpleCommand),
    /// `( … )`.
    Subshell(GeneratedCommandLine),
    /// `{ …; }`.
    Group(GeneratedCommandLine),
    /// `if true; then …; fi`.
    If(GeneratedCommandLine),
    /// `echo "$( … )"`.
    EchoSubstitution(GeneratedCommandLine),
    /// `bash -c '…'`.
    BashCommand(GeneratedCommandLine),
}

/// A simple command: a program and its words.
#[derive(Debug, Clone)]
pub(super) struct GeneratedSimpleCommand {
    /// A variable in front (`FOO=bar`).
    pub(super) assignment: Option<&'static str>,
    /// A program in front that runs this one (`timeout 5`).
    pub(super) wrapper: Option<&'static str>,
    /// The program and its arguments; an element may be several words.
    pub(super) words: Vec<String>,
    /// The target of `>`.
    pub(super) output: Option<String>,
    /// The source of `<`.
    pub(super) input: Option<String>,
    /// The URL among the words, if there is one.
    pub(super) address: Option<GeneratedUrl>,
    /// How the words are quoted: 0 for not at all, 1 to 3 for the ways of `text`.
    pub(super) quoting: usize,
}

/// One effect of a simple command.
#[derive(Debug, Clone)]
pub(super) enum GeneratedCommandEffect {
    /// Reads a path.
    Reads(String),
    /// Creates or changes a path.
    Changes(String),
    /// Removes a path.
    Removes(String),
    /// Fetches a URL.
    Fetches(GeneratedUrl),
}

impl GeneratedCommandLine {
    /// The text that bash would get.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for (index, (item, operator)) in self.items.iter().enumerate() {
            out.push_str(&item.text());
            if index + 1 < self.items.len() {
                out.push_str(operator);
            }
        }
        out
    }

    /// Every simple command that would run.
    pub(super) fn simple_commands(&self) -> Vec<GeneratedSimpleCommand> {
        self.items.iter().flat_map(|(item, _)| item.simple_commands()).collect()
    }
}

impl GeneratedCommand {
    /// Renders the command as bash source.
    fn text(&self) -> String {
        match self {
            Self::Simple(simple) => simple.text(),
            Self::Subshell(line) => format!("( {} )", line.text()),
            Self::Group(line) => format!("{{ {}; }}", line.text()),
            Self::If(line) => format!("if true; then {}; fi", line.text()),
            Self::EchoSubstitution(line) => format!("echo \"$( {} )\"", line.text()),
            Self::BashCommand(line) => format!("bash -c '{}'", line.text().replace('\'', "'\\''")),
        }
    }

    /// Flattens the tree to the commands that run, which is what a rule is matched against.
    fn simple_commands(&self) -> Vec<GeneratedSimpleCommand> {
        match self {
            Self::Simple(simple) => vec![simple.clone()],
            Self::Subshell(line) | Self::Group(line) => line.simple_commands(),
            Self::If(line) => {
                std::iter::once(GeneratedSimpleCommand::of(&["true"])).chain(line.simple_commands()).collect()
            }
            // `echo` of the output of commands: only those commands count.
            Self::EchoSubstitution(line) => line.simple_commands(),
            // The inner bash is a command, too.
            Self::BashCommand(line) => {
                let shell = GeneratedSimpleCommand::of(&["bash", "-c", &format!("'{}'", line.text())]);
                std::iter::once(shell).chain(line.simple_commands()).collect()
            }
        }
    }

    /// Whether there is an `echo` of a command substitution.
    pub(super) fn has_command_substitution(&self) -> bool {
        match self {
            Self::Simple(_) => false,
            Self::EchoSubstitution(_) => true,
            Self::Subshell(line) | Self::Group(line) | Self::If(line) | Self::BashCommand(line) => {
                line.items.iter().any(|(item, _)| item.has_command_substitution())
            }
        }
    }
}

impl GeneratedSimpleCommand {
    /// A command of these words, without a variable, a wrapper or redirects.
    pub(super) fn of(words: &[&str]) -> Self {
        Self {
            assignment: None,
            wrapper: None,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            output: None,
            input: None,
            address: None,
            quoting: 0,
        }
    }

    /// Renders the command with its quoting. All variants mean the same to bash, so they must get the same verdict.
    fn text(&self) -> String {
        let mut out: Vec<String> = self.assignment.iter().map(|text| (*text).to_owned()).collect();
        out.extend(self.wrapper.iter().map(|text| (*text).to_owned()));
        out.extend(self.words.iter().enumerate().map(|(index, word)| {
            match (self.quoting, index) {
                // Quotes would turn off the expansion of a tilde, and would make one word of several.
                (0, _) => word.clone(),
                _ if word.starts_with('~') || word.contains(' ') => word.clone(),
                (1, _) => format!("'{word}'"),
                (2, 0) => format!("\\{word}"),
                (2, _) => format!("\"{word}\""),
                _ => word
                    .split_at_checked(1)
                    .map_or_else(|| word.clone(), |(head, tail)| format!("{head}''{tail}")),
            }
        }));
        out.extend(self.output.iter().map(|to| format!("> {to}")));
        out.extend(self.input.iter().map(|from| format!("< {from}")));
        out.join(" ")
    }

    /// The command without its variable and wrapper.
    pub(super) fn bare_text(&self) -> String {
        self.words.join(" ")
    }

    /// Every text of the command that a deny or ask rule may match.
    pub(super) fn spellings(&self) -> Vec<String> {
        let mut out = vec![self.bare_text()];
        if let Some(wrapper) = self.wrapper {
            out.push(format!("{wrapper} {}", self.bare_text()));
        }
        if let Some(assignment) = self.assignment {
            let assigned: Vec<String> = out.iter().map(|text| format!("{assignment} {text}")).collect();
            out.extend(assigned);
        }
        out
    }

    /// Whether the variable in front may change what the program does, so that no rule for the program covers this.
    pub(super) fn has_environment_override(&self) -> bool {
        self.assignment.is_some_and(|assignment| !assignment.starts_with("NODE_ENV="))
            && !self.has_unknown_variable()
    }

    /// Whether the variable in front is one that no known program reads; only a rule for the program covers it.
    pub(super) fn has_unknown_variable(&self) -> bool {
        self.assignment.is_some_and(|assignment| assignment.starts_with("FOO="))
    }

    /// The program that runs, wrappers looked through.
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns a word by position; empty if there is none.
    fn word(&self, index: usize) -> String {
        self.words.get(index).cloned().unwrap_or_default()
    }

    /// Whether it only reads.
    pub(super) fn is_read_only(&self) -> bool {
        match self.program() {
            "echo" | "ls" | "cat" | "true" | "wc" | "head" => true,
            "git" => self.word(1) == "status",
            _ => false,
        }
    }

    /// Whether the mode `acceptEdits` allows it inside the workspace.
    pub(super) fn edits_files(&self) -> bool {
        matches!(self.program(), "cp" | "mkdir" | "touch" | "rm")
    }

    /// Its effects, without those of its redirects.
    pub(super) fn effects(&self) -> Vec<GeneratedCommandEffect> {
        let path = |index: usize| to_absolute(&self.word(index));
        match self.program() {
            "cat" | "wc" | "head" if self.words.len() > 1 => vec![GeneratedCommandEffect::Reads(path(1))],
            "ls" => vec![GeneratedCommandEffect::Reads(if self.words.len() > 1 {
                path(1)
            } else {
                CWD.to_owned()
            })],
            "cp" => vec![GeneratedCommandEffect::Reads(path(1)), GeneratedCommandEffect::Changes(path(2))],
            "mkdir" | "touch" => vec![GeneratedCommandEffect::Changes(path(1))],
            "rm" => vec![GeneratedCommandEffect::Removes(path(1))],
            "curl" => self.address.iter().cloned().map(GeneratedCommandEffect::Fetches).collect(),
            _ => Vec::new(),
        }
    }
}

/// The absolute path that a word of a command means.
pub(super) fn to_absolute(word: &str) -> String {
    match word.strip_prefix("~/") {
        Some(rest) => format!("{HOME}/{rest}"),
        None if word.starts_with('/') => word.to_owned(),
        None => format!("{CWD}/{word}"),
    }
}
