//! Command lines as trees, and what the few programs in them do.

use super::scenario::{CWD, GeneratedUrl, HOME};

/// A list of commands, each with what joins it to the next.
#[derive(Debug, Clone)]
pub(super) struct GeneratedCommandLine {
    pub(super) items: Vec<(GeneratedCommand, &'static str)>,
}

/// One command of a list.
#[derive(Debug, Clone)]
pub(super) enum GeneratedCommand {
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
    pub(super) assignment: Option<&'static str>,
    pub(super) wrapper: Option<&'static str>,
    pub(super) words: Vec<String>,
    pub(super) output: Option<String>,
    pub(super) input: Option<String>,
    /// What an address among the words says.
    pub(super) address: Option<GeneratedUrl>,
    /// How the words are quoted: not at all, or each by its place.
    pub(super) quoting: usize,
}

/// What a simple command does to one place.
#[derive(Debug, Clone)]
pub(super) enum GeneratedCommandEffect {
    Reads(String),
    Changes(String),
    Removes(String),
    Fetches(GeneratedUrl),
}

impl GeneratedCommandLine {
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for (at, (item, joint)) in self.items.iter().enumerate() {
            out.push_str(&item.text());
            if at + 1 < self.items.len() {
                out.push_str(joint);
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

    fn simple_commands(&self) -> Vec<GeneratedSimpleCommand> {
        match self {
            Self::Simple(simple) => vec![simple.clone()],
            Self::Subshell(line) | Self::Group(line) => line.simple_commands(),
            Self::If(line) => {
                std::iter::once(GeneratedSimpleCommand::of(&["true"])).chain(line.simple_commands()).collect()
            }
            // Text that a command printed may be printed again; what made it counts by itself.
            Self::EchoSubstitution(line) => line.simple_commands(),
            // The shell that is started is a command of its own.
            Self::BashCommand(line) => {
                let shell = GeneratedSimpleCommand::of(&["bash", "-c", &format!("'{}'", line.text())]);
                std::iter::once(shell).chain(line.simple_commands()).collect()
            }
        }
    }

    /// Whether an `echo` of text that is not known stands here.
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

    fn text(&self) -> String {
        let mut out: Vec<String> = self.assignment.iter().map(|text| (*text).to_owned()).collect();
        out.extend(self.wrapper.iter().map(|text| (*text).to_owned()));
        out.extend(self.words.iter().enumerate().map(|(at, word)| {
            match (self.quoting, at) {
                // A tilde is only one where it is not quoted; several words in one text stay several words.
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

    /// The command without what is put before it.
    pub(super) fn bare_text(&self) -> String {
        self.words.join(" ")
    }

    /// Every way to speak of the command that a rule which holds back may use.
    pub(super) fn spellings(&self) -> Vec<String> {
        let mut out = vec![self.bare_text()];
        if let Some(wrapper) = self.wrapper {
            out.push(format!("{wrapper} {}", self.bare_text()));
        }
        if let Some(assignment) = self.assignment {
            let further: Vec<String> = out.iter().map(|text| format!("{assignment} {text}")).collect();
            out.extend(further);
        }
        out
    }

    /// Whether an assignment in front may steer the program, so that no rule for the program means this.
    pub(super) fn has_environment_override(&self) -> bool {
        self.assignment.is_some_and(|assignment| !assignment.starts_with("NODE_ENV="))
            && !self.has_unknown_variable()
    }

    /// Whether a variable stands in front that steers nothing known, which only a rule for the program covers.
    pub(super) fn has_unknown_variable(&self) -> bool {
        self.assignment.is_some_and(|assignment| assignment.starts_with("FOO="))
    }

    /// The program that runs in the end.
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn word(&self, at: usize) -> String {
        self.words.get(at).cloned().unwrap_or_default()
    }

    /// Whether it can do nothing but read.
    pub(super) fn is_read_only(&self) -> bool {
        match self.program() {
            "echo" | "ls" | "cat" | "true" | "wc" | "head" => true,
            "git" => self.word(1) == "status",
            _ => false,
        }
    }

    /// Whether mode acceptEdits frees it inside the workspace.
    pub(super) fn edits_files(&self) -> bool {
        matches!(self.program(), "cp" | "mkdir" | "touch" | "rm")
    }

    /// What it does by itself, redirects apart.
    pub(super) fn effects(&self) -> Vec<GeneratedCommandEffect> {
        let path = |at: usize| to_absolute(&self.word(at));
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

/// A word of a command as a path.
pub(super) fn to_absolute(word: &str) -> String {
    match word.strip_prefix("~/") {
        Some(rest) => format!("{HOME}/{rest}"),
        None if word.starts_with('/') => word.to_owned(),
        None => format!("{CWD}/{word}"),
    }
}
