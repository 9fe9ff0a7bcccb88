//! What a call would do, said before it does it.

use crate::AbsPath;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The effects that a call would have.
///
/// Policy judges them, prompts show them, the scheduler compares them, the sandbox is cut to them,
/// and a tool's hands reach only the paths that are named here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// One line for people: what will happen ("read src/main.rs").
    pub summary: String,
    /// Each thing the call would touch. Empty means that it touches nothing ([`Intent::none`]).
    pub effects: Vec<Effect>,
}

impl Intent {
    /// An intent with the given effects.
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

    /// The files and other resources concerned, for a person to look at.
    pub fn locations(&self) -> Vec<String> {
        self.effects.iter().map(Effect::location).collect()
    }
}

/// One thing that a call would do to the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Look at a file or a directory.
    Read {
        /// Where.
        path: AbsPath,
        /// Only this entry, or all below it.
        scope: PathScope,
    },
    /// Change, create or remove a file.
    Write {
        /// Where.
        path: AbsPath,
        /// What kind of change.
        kind: WriteKind,
    },
    /// Run a command line.
    Exec {
        /// The exact bytes that will run.
        command: CommandLine,
    },
    /// Fetch from the network.
    Fetch {
        /// The address as given.
        url: String,
    },
    /// Ask a search service.
    Search {
        /// The words looked for.
        query: String,
    },
    /// Hand work to another agent.
    Delegate {
        /// The agent's type.
        agent: String,
    },
    /// Load a skill.
    Skill {
        /// The skill's name.
        name: String,
        /// What it is called with.
        args: Option<String>,
    },
    /// Call a tool of another server.
    Remote {
        /// The server's configured name.
        server: String,
        /// The tool's name there.
        tool: String,
    },
    /// Ask the person something.
    Ask,
    /// Change state that toolgate itself keeps (a to-do list, a mode).
    State {
        /// Which state.
        name: String,
    },
    /// Unknown: anything may happen. Tools that cannot say more get this, and policy asks.
    Opaque,
}

/// How far a read reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathScope {
    /// The one file, or the entries of the one directory.
    Entry,
    /// Everything below.
    Tree,
}

/// How a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteKind {
    /// New content; the file may or may not exist yet.
    Put,
    /// A change of content that exists.
    Edit,
    /// Removal of a file or an empty directory.
    Delete,
    /// Removal, or any other change, of everything below.
    Tree,
}

/// A command line and the shell that will read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommandLine {
    /// The exact text.
    pub text: String,
    /// Which shell reads it.
    pub shell: ShellKind,
    /// The directory it starts in.
    pub cwd: AbsPath,
    /// The call asks to run outside the sandbox: its own decision, never implied by a rule for the command.
    pub unsandboxed: bool,
}

/// A shell whose grammar matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellKind {
    /// GNU bash: the one that is analysed.
    #[default]
    Bash,
    /// Any other: never analysed, so always asked about.
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

    /// The thing concerned, as a person would name it.
    pub fn location(&self) -> String {
        match self {
            Self::Read { path, .. } | Self::Write { path, .. } => path.to_string(),
            Self::Exec { command } => command.text.clone(),
            Self::Fetch { url } => url.clone(),
            Self::Search { query } => query.clone(),
            Self::Delegate { agent } => agent.clone(),
            Self::Skill { name, .. } => name.clone(),
            Self::Remote { server, tool } => format!("{server}: {tool}"),
            Self::Ask => "the person".to_owned(),
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
            Self::Ask => f.write_str("ask the person"),
            Self::State { name } => write!(f, "change {name}"),
            Self::Opaque => f.write_str("do something that the tool cannot describe"),
        }
    }
}
