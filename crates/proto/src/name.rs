//! Identities: of a call, a session, a tool, and of where a tool came from.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }
    };
}

text_newtype! {
    /// The name a model calls a tool by.
    ToolName
}
text_newtype! {
    /// The provider's id of one call (`toolu_…`, `call_…`), or one that the edge made up.
    CallId
}
text_newtype! {
    /// One run of an agent, or of the command line.
    SessionId
}

/// Where a tool came from. Together with its name it is the tool's identity:
/// a joined name such as `mcp__a__b` is for display and rules, never for telling tools apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceId {
    /// Shipped with toolgate.
    Builtin,
    /// A tool of an MCP server; both halves as the configuration and the server spell them. A gateway to several
    /// servers has both halves empty ([`SourceId::mcp_gateway`]).
    Mcp {
        /// The server's configured name.
        server: String,
        /// The tool's name at the server.
        tool: String,
    },
    /// Brought by a plugin.
    Plugin {
        /// The plugin's name.
        plugin: String,
    },
    /// Brought by a skill.
    Skill {
        /// The skill's name.
        skill: String,
    },
    /// Registered by the program that embeds the library.
    Sdk,
}

impl SourceId {
    /// The gateway to several MCP servers. Each of its tools has the identity of its own server and name.
    pub fn mcp_gateway() -> Self {
        Self::Mcp { server: String::new(), tool: String::new() }
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("built-in"),
            Self::Mcp { server, .. } if server.is_empty() => f.write_str("MCP gateway"),
            Self::Mcp { server, .. } => write!(f, "MCP server `{server}`"),
            Self::Plugin { plugin } => write!(f, "plugin `{plugin}`"),
            Self::Skill { skill } => write!(f, "skill `{skill}`"),
            Self::Sdk => f.write_str("SDK"),
        }
    }
}

/// All that policy may know of who is being called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolIdentity {
    /// The canonical name.
    pub name: ToolName,
    /// Other names under which rules may speak of this tool: its aliases, and the name of its family
    /// (the plain `shell` answers to rules for `Bash`, so that changing the face never loosens a policy).
    pub also: Vec<String>,
    /// Who brought it.
    pub source: SourceId,
    /// The tool's own claim that it changes nothing. Only believed of built-in tools.
    pub read_only: bool,
    /// A person must be asked on every call, whatever the rules allow.
    pub requires_interaction: bool,
}

impl ToolIdentity {
    /// Whether a rule that names `name` speaks of this tool.
    pub fn has_name(&self, name: &str) -> bool {
        self.name.as_str() == name || self.also.iter().any(|other| other == name)
    }
}
