//! Intents: the effects that a call would have, declared before it runs.

use crate::AbsPath;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The effects that a call would have.
///
/// Policy judges these effects, prompts show them, the scheduler compares them, the rights of the sandbox are derived
/// from them, and a tool can open only the paths that are named here. What an intent leaves out, the call cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intent {
    /// One line for a prompt: what will happen (`read src/main.rs`).
    pub summary: String,
    /// Each thing the call would touch. Empty means that it touches nothing ([`Intent::none`]).
    pub effects: Vec<Effect>,
}

impl Intent {
    /// Creates an intent from a summary and its effects.
    pub fn new(summary: impl Into<String>, effects: impl Into<Vec<Effect>>) -> Self {
        Self { summary: summary.into(), effects: effects.into() }
    }

    /// The intent of a call that touches nothing: it computes its result from its input.
    ///
    /// Policy allows such a call of a built-in or SDK tool by default, like a read inside the workspace.
    /// A tool that cannot list its effects declares [`Effect::Opaque`] instead, and policy asks.
    pub fn none(summary: impl Into<String>) -> Self {
        Self::new(summary, Vec::new())
    }

    /// The files and other resources of the effects, for display.
    pub fn locations(&self) -> Vec<String> {
        self.effects.iter().map(Effect::location).collect()
    }
}

/// One side effect of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Read a file or list a directory.
    Read {
        /// The file or directory.
        path: AbsPath,
        /// Only this file, or the whole tree.
        scope: PathScope,
    },
    /// Create, change or remove a file.
    Write {
        /// The file, or the root of the tree.
        path: AbsPath,
        /// The kind of change.
        kind: WriteKind,
    },
    /// Run a command line.
    Exec {
        /// The command line that will run, unchanged.
        command: CommandLine,
    },
    /// Fetch a URL.
    Fetch {
        /// The URL as it was given; policy parses it.
        url: String,
    },
    /// Query a search service.
    Search {
        /// The query.
        query: String,
    },
    /// Start another agent.
    Delegate {
        /// The type of the agent.
        agent: String,
    },
    /// Load a skill.
    Skill {
        /// The name of the skill.
        name: String,
        /// The arguments that it gets.
        args: Option<String>,
    },
    /// Call a tool of an MCP server.
    Remote {
        /// The server's configured name.
        server: String,
        /// The name of the tool at that server.
        tool: String,
    },
    /// Ask the user a question.
    Ask,
    /// Change state of the session (a to-do list, the mode).
    State {
        /// Which state.
        name: String,
    },
    /// Unknown: the tool cannot describe its effects. No rule for paths or hosts can allow it, so policy asks.
    Opaque,
}

/// How much of a path an effect or a right covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathScope {
    /// The file itself; of a directory, its list of entries.
    Entry,
    /// The directory and everything below it.
    Tree,
}

/// How a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// Write all of the content; the file need not exist.
    Put,
    /// Change a part of the content; the file exists.
    Edit,
    /// Remove a file or an empty directory.
    Delete,
    /// Remove or change everything below a directory.
    Tree,
}

/// A command line and the shell that runs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandLine {
    /// The text, unchanged: what is analysed is what runs.
    pub text: String,
    /// The shell that runs it.
    pub shell: ShellKind,
    /// The working directory in which it starts.
    pub cwd: AbsPath,
    /// The call requests to run outside the sandbox. This is decided separately; no rule for the command implies it.
    pub unsandboxed: bool,
}

impl CommandLine {
    /// Creates a command line that runs in the sandbox.
    pub fn new(text: impl Into<String>, shell: ShellKind, cwd: AbsPath) -> Self {
        Self { text: text.into(), shell, cwd, unsandboxed: false }
    }

    /// Says whether the call requests to run outside the sandbox.
    pub fn with_unsandboxed(mut self, unsandboxed: bool) -> Self {
        self.unsandboxed = unsandboxed;
        self
    }
}

/// Which shell runs a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellKind {
    /// GNU bash: its command lines are analysed.
    #[default]
    Bash,
    /// Any other shell: its command lines are not analysed, so they always ask.
    Other,
}

impl Effect {
    /// The path that the call would read or write; `None` for every other effect.
    pub fn path(&self) -> Option<&AbsPath> {
        match self {
            Self::Read { path, .. } | Self::Write { path, .. } => Some(path),
            Self::Exec { .. }
            | Self::Fetch { .. }
            | Self::Search { .. }
            | Self::Delegate { .. }
            | Self::Skill { .. }
            | Self::Remote { .. }
            | Self::Ask
            | Self::State { .. }
            | Self::Opaque => None,
        }
    }

    /// The path, URL, command or other resource of the effect, for display.
    pub fn location(&self) -> String {
        match self {
            Self::Read { path, .. } | Self::Write { path, .. } => path.to_string(),
            Self::Exec { command } => command.text.clone(),
            Self::Fetch { url } => url.clone(),
            Self::Search { query } => query.clone(),
            Self::Delegate { agent } => agent.clone(),
            Self::Skill { name, .. } => name.clone(),
            Self::Remote { server, tool } => format!("{server}: {tool}"),
            Self::Ask => "the user".to_owned(),
            Self::State { name } => name.clone(),
            Self::Opaque => "anything".to_owned(),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, scope: PathScope::Entry } => write!(f, "read {path}"),
            Self::Read { path, scope: PathScope::Tree } => write!(f, "read everything under {path}"),
            Self::Write { path, kind: WriteKind::Put } => write!(f, "write {path}"),
            Self::Write { path, kind: WriteKind::Edit } => write!(f, "edit {path}"),
            Self::Write { path, kind: WriteKind::Delete } => write!(f, "delete {path}"),
            Self::Write { path, kind: WriteKind::Tree } => write!(f, "change everything under {path}"),
            Self::Exec { command } => write!(f, "run `{}`", command.text),
            Self::Fetch { url } => write!(f, "fetch {url}"),
            Self::Search { query } => write!(f, "search the web for `{query}`"),
            Self::Delegate { agent } => write!(f, "start agent `{agent}`"),
            Self::Skill { name, .. } => write!(f, "load skill `{name}`"),
            Self::Remote { server, tool } => write!(f, "call `{tool}` of server `{server}`"),
            Self::Ask => f.write_str("ask the user a question"),
            Self::State { name } => write!(f, "change {name}"),
            Self::Opaque => f.write_str("do something that the tool cannot describe"),
        }
    }
}
