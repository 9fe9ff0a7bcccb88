//! Names and ids: of calls, sessions and tools, and of the sources of tools.

use crate::{field_synonyms, tool_synonyms};
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a text without checks.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text, as it was given.
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
    /// The name by which a model calls a tool.
    ToolName
}
text_newtype! {
    /// The provider's id of one call (`toolu_…`, `call_…`), or one that the edge generated.
    CallId
}
text_newtype! {
    /// The id of one run of an agent, or of the command line.
    SessionId
}

/// Where a tool comes from. Source and name together are the identity of a tool. A joined name such as `mcp__a__b` is
/// for display and rules only: `mcp__a__b__c` may be tool `b__c` of server `a` or tool `c` of server `a__b`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceId {
    /// Shipped with toolgate.
    Builtin,
    /// A tool of an MCP server; both halves as the configuration and the server spell them. A gateway to several
    /// servers has both halves empty ([`SourceId::mcp_gateway`]).
    Mcp {
        /// The name of the server in the configuration.
        server: String,
        /// The name of the tool at the server.
        tool: String,
    },
    /// A tool of a plugin.
    Plugin {
        /// The name of the plugin.
        plugin: String,
    },
    /// A tool of a skill.
    Skill {
        /// The name of the skill.
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

/// What policy knows about the tool of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolIdentity {
    /// The canonical name.
    pub name: ToolName,
    /// Other names that rules may use for this tool: its aliases, and the name of its family. A rule for `Bash` matches
    /// `shell` of the plain toolset as well, so that a change of the toolset never loosens a policy.
    pub also: Vec<String>,
    /// Where the tool comes from.
    pub source: SourceId,
    /// The tool declares that it changes nothing. Policy trusts this of built-in tools only.
    pub read_only: bool,
    /// Every call needs an approval, even if an allow rule matches.
    pub requires_interaction: bool,
}

impl ToolIdentity {
    /// Creates the identity of a tool that may change something and has no other names.
    pub fn new(name: impl Into<ToolName>, source: SourceId) -> Self {
        Self { name: name.into(), also: Vec::new(), source, read_only: false, requires_interaction: false }
    }

    /// Sets the other names that rules may use.
    pub fn with_also(mut self, also: Vec<String>) -> Self {
        self.also = also;
        self
    }

    /// Says whether the tool declares that it changes nothing.
    pub fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Says whether every call needs an approval.
    pub fn with_requires_interaction(mut self, required: bool) -> Self {
        self.requires_interaction = required;
        self
    }

    /// The names of this very tool: its own and, if it is built in, those that it has in the other toolset and in other
    /// products. A tool of another source that has such a name by chance is not the built-in one.
    pub fn own_names(&self) -> impl Iterator<Item = &str> {
        let synonyms = match self.source {
            SourceId::Builtin => tool_synonyms(self.name.as_str()),
            SourceId::Mcp { .. } | SourceId::Plugin { .. } | SourceId::Skill { .. } | SourceId::Sdk => &[],
        };
        std::iter::once(self.name.as_str()).chain(synonyms.iter().copied())
    }

    /// The names under which an allow rule matches this tool: its own one, its aliases and its family. Names that it has
    /// elsewhere are none of them: a program can register a tool of its own as `shell`, and what is granted to that is not
    /// granted to `Bash`.
    pub fn granted_names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.also.iter().map(String::as_str))
    }

    /// The names under which settings select this tool: its own ones, its aliases and its family.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.own_names().chain(self.also.iter().map(String::as_str))
    }

    /// The names under which a rule that restricts matches this tool: a rule for any name of its family as well. `shell`
    /// restricts every tool that runs commands, as `Bash` does.
    pub fn restricted_names(&self) -> impl Iterator<Item = &str> {
        let of_families = self.also.iter().flat_map(|name| tool_synonyms(name).iter().copied());
        self.names().chain(of_families)
    }

    /// The places of the input where this tool may have what a rule that restricts names as `field`, that name first: the
    /// fields of its family that mean the same, and their parts. See [`field_synonyms`].
    pub fn restricted_fields<'f>(&self, field: &'f str) -> Vec<&'f str> {
        let own = (self.source == SourceId::Builtin).then_some(self.name.as_str());
        let families = own.into_iter().chain(self.also.iter().map(String::as_str));
        let mut places = vec![field];
        for place in families.flat_map(|name| field_synonyms(name, field, true)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// The fields of the input in which this tool has what an allow rule names as `field`, that name first: those of this
    /// very tool that mean the same. A part of a field is not one, because the rest of it would go unchecked.
    pub fn granted_fields<'f>(&self, field: &'f str) -> Vec<&'f str> {
        let own = match self.source {
            SourceId::Builtin => field_synonyms(self.name.as_str(), field, false),
            SourceId::Mcp { .. } | SourceId::Plugin { .. } | SourceId::Skill { .. } | SourceId::Sdk => {
                Vec::new()
            }
        };
        std::iter::once(field).chain(own.into_iter().filter(|place| !place.contains("[]"))).collect()
    }

    /// Whether an allow rule for `name` matches this tool.
    pub fn is_granted_as(&self, name: &str) -> bool {
        self.granted_names().any(|own| own == name)
    }

    /// Whether settings that select `name` mean this tool.
    pub fn has_name(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    /// Whether a rule for `name` that restricts matches this tool.
    pub fn is_restricted_as(&self, name: &str) -> bool {
        self.restricted_names().any(|own| own == name)
    }
}
