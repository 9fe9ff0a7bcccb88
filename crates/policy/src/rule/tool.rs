//! `Tool` and `Tool*`: rules for the name of a tool.

use super::syntax::RuleSyntaxError;
use crate::raw::RuleAction;
use std::collections::HashMap;
use toolgate_proto::wildcard::WildcardPattern;
use toolgate_proto::{ToolIdentity, tool_synonyms};

/// Older names of tools that settings still contain, with the present ones.
const TOOL_ALIASES: [(&str, &str); 8] = [
    ("Task", "Agent"),
    ("KillShell", "TaskStop"),
    ("KillBash", "TaskStop"),
    ("ListPeers", "ListAgents"),
    ("Brief", "SendUserMessage"),
    ("ListMcpResources", "ListMcpResourcesTool"),
    ("ReadMcpResource", "ReadMcpResourceTool"),
    ("ReadMcpResourceDir", "ReadMcpResourceDirTool"),
];

/// The present name of a tool.
pub(crate) fn canonical_name(name: &str) -> &str {
    TOOL_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

/// The name whose rule grammar a tool uses: `read_file` of the plain toolset takes the patterns of `Read`.
pub(crate) fn family(name: &str) -> &str {
    match canonical_name(name) {
        "Monitor" => "Bash",
        "read_many_files" => "Read",
        other => tool_synonyms(other).first().copied().unwrap_or(other),
    }
}

/// A pattern for the name of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolPattern {
    /// One name, with aliases resolved.
    Name(String),
    /// A name with `*`, which must match the whole name.
    Glob(WildcardPattern),
}

impl ToolPattern {
    /// Parses a rule without parentheses. An allow rule may not contain `*`: it would allow tools that do not exist yet.
    pub(crate) fn parse(name: &str, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        if !name.contains('*') {
            return Ok(Self::Name(canonical_name(name).to_owned()));
        }
        match action {
            RuleAction::Ask | RuleAction::Deny => Ok(Self::Glob(WildcardPattern::new(name))),
            RuleAction::Allow => Err(RuleSyntaxError::new(
                "an allow rule cannot have `*` in the name of a tool",
                "name the tool, or write `mcp__server__*`",
            )),
        }
    }
}

/// Rules for tool names of one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolIndex {
    /// The first rule for each name.
    names: HashMap<String, u32>,
    /// Patterns with `*`, in order.
    globs: Vec<(u32, WildcardPattern)>,
}

impl ToolIndex {
    /// Adds a rule; of several for the same name the first one is kept.
    pub(crate) fn add(&mut self, id: u32, pattern: ToolPattern) {
        match pattern {
            ToolPattern::Name(name) => {
                self.names.entry(name).or_insert(id);
            }
            ToolPattern::Glob(wild) => self.globs.push((id, wild)),
        }
    }

    /// The first allow rule for a name of this tool.
    pub(crate) fn find(&self, tool: &ToolIdentity) -> Option<u32> {
        self.find_any(tool.granted_names())
    }

    /// The first deny or ask rule for a name of this tool or of its family.
    pub(crate) fn find_restricting(&self, tool: &ToolIdentity) -> Option<u32> {
        self.find_any(tool.restricted_names())
    }

    /// The first allow rule for exactly this name.
    pub(crate) fn find_name(&self, name: &str) -> Option<u32> {
        let named = self.names.get(canonical_name(name)).or_else(|| self.names.get(name)).copied();
        let globs = self.globs.iter().filter(|(_, wild)| wild.matches(name)).map(|(id, _)| *id);
        named.into_iter().chain(globs).min()
    }

    /// The first deny or ask rule for the built-in tool of this name, under any of its names.
    pub(crate) fn find_restricted_name(&self, name: &str) -> Option<u32> {
        self.find_any(std::iter::once(name).chain(tool_synonyms(name).iter().copied()))
    }

    /// The first rule for any of these names.
    fn find_any<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<u32> {
        if self.names.is_empty() && self.globs.is_empty() {
            return None;
        }
        names.filter_map(|name| self.find_name(name)).min()
    }
}
