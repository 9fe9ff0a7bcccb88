//! `mcp__server`, `mcp__server__tool` and wildcards in both: rules for tools of MCP servers.
//!
//! An allow rule is compared with the pair (server, tool), so that two pairs with the same joined name stay apart. A
//! deny or ask rule also counts if only the joined name matches, however it is split.

use super::syntax::RuleSyntaxError;
use crate::raw::RuleAction;
use std::borrow::Cow;
use std::collections::HashMap;
use toolgate_proto::wildcard::WildcardPattern;
use toolgate_proto::{SourceId, ToolIdentity};

/// A compiled pattern for MCP tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpPattern {
    /// The server's name.
    server: WildcardPattern,
    /// The tool's name; `None` for every tool of the server.
    tool: Option<WildcardPattern>,
    /// The whole text after `mcp__`, for a comparison with the joined name.
    joined: WildcardPattern,
}

impl McpPattern {
    /// Parses the name of a rule, with or without the prefix `mcp__`.
    pub(crate) fn parse(name: &str, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        let body = name.strip_prefix("mcp__").unwrap_or(name);
        let (server, tool) = match body.split_once("__") {
            Some((server, tool)) => (server, Some(tool)),
            None => (body, None),
        };
        if server.is_empty() || tool.is_some_and(str::is_empty) {
            return Err(RuleSyntaxError::new(
                "the name of the server or of the tool is missing",
                "write `mcp__server` or `mcp__server__tool`",
            ));
        }
        let is_any_server = server.contains('*');
        let is_any_tool = tool.is_none_or(|tool| tool.contains('*'));
        if action == RuleAction::Allow && is_any_server && is_any_tool {
            return Err(RuleSyntaxError::new(
                "an allow rule must name the server or the tool",
                "name the server: `mcp__server__*`",
            ));
        }
        Ok(Self {
            server: WildcardPattern::new(server),
            tool: tool.map(WildcardPattern::new),
            joined: WildcardPattern::new(body),
        })
    }

    /// Whether the pattern matches a pair of normalised names.
    fn matches_pair(&self, server: &str, tool: &str) -> bool {
        self.server.matches(server) && self.tool.as_ref().is_none_or(|pattern| pattern.matches(tool))
    }

    /// Whether the pattern matches a joined name, however it is split.
    fn matches_joined(&self, joined: &str) -> bool {
        match &self.tool {
            Some(_) => self.joined.matches(joined),
            None => joined
                .match_indices("__")
                .any(|(at, _)| joined.get(..at).is_some_and(|server| self.server.matches(server))),
        }
    }

    /// Whether an allow rule with the pattern is for this tool.
    pub(crate) fn grants(&self, tool: &ToolIdentity) -> bool {
        match &tool.source {
            SourceId::Mcp { server, tool } => self.matches_pair(&normalise(server), &normalise(tool)),
            SourceId::Builtin | SourceId::Plugin { .. } | SourceId::Skill { .. } | SourceId::Sdk => false,
        }
    }

    /// Whether a deny or ask rule with the pattern could be meant for this tool.
    pub(crate) fn restricts(&self, tool: &ToolIdentity) -> bool {
        let Some((server, tool)) = restricted_pair(tool) else { return false };
        self.matches_pair(&normalise(server), &normalise(tool))
            || ambiguous_name(server, tool).is_some_and(|joined| self.matches_joined(&joined))
    }

    /// Whether the rule is not limited to one server.
    pub(crate) fn has_wildcard_server(&self) -> bool {
        self.server.as_literal().is_none()
    }
}

/// The server and the tool that rules which restrict compare a tool with.
fn restricted_pair(tool: &ToolIdentity) -> Option<(&str, &str)> {
    match &tool.source {
        SourceId::Mcp { server, tool } => Some((server.as_str(), tool.as_str())),
        // A tool of another source may have such a name: a deny rule for the server applies to it as well.
        SourceId::Builtin | SourceId::Plugin { .. } | SourceId::Skill { .. } | SourceId::Sdk => {
            tool.name.as_str().strip_prefix("mcp__")?.split_once("__")
        }
    }
}

/// The joined name of a pair, if it can also be split elsewhere: only if a name contains `_`.
fn ambiguous_name(server: &str, tool: &str) -> Option<String> {
    (server.contains('_') || tool.contains('_'))
        .then(|| format!("{}__{}", normalise(server), normalise(tool)))
}

/// The name of a server or tool as rules spell it: characters that tool names cannot contain become `_`.
pub(crate) fn normalise(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(|c| if plain(c) { c } else { '_' }).collect())
}

/// Rules of one action for tools of MCP servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpIndex {
    /// Patterns that name one server, by that name.
    by_server: HashMap<String, Vec<(u32, McpPattern)>>,
    /// Patterns with a wildcard in the server's name.
    loose: Vec<(u32, McpPattern)>,
}

impl McpIndex {
    /// Adds a rule to the list of its server, or to the others.
    pub(crate) fn add(&mut self, id: u32, pattern: McpPattern) {
        if pattern.server.as_literal().is_some() {
            let server = pattern.server.head().to_owned();
            self.by_server.entry(server).or_default().push((id, pattern));
        } else {
            self.loose.push((id, pattern));
        }
    }

    /// The first rule for the pair, of those that `accepts` accepts.
    pub(crate) fn find(&self, server: &str, tool: &str, accepts: impl Fn(u32) -> bool) -> Option<u32> {
        if self.by_server.is_empty() && self.loose.is_empty() {
            return None;
        }
        let (server, tool) = (normalise(server), normalise(tool));
        let own = self.by_server.get(server.as_ref()).into_iter().flatten();
        own.chain(&self.loose)
            .filter(|(id, pattern)| pattern.matches_pair(&server, &tool) && accepts(*id))
            .map(|(id, _)| *id)
            .min()
    }

    /// The first deny or ask rule that could be meant for the tool.
    pub(crate) fn find_broadly(&self, tool: &ToolIdentity, accepts: impl Fn(u32) -> bool) -> Option<u32> {
        let (server, tool) = restricted_pair(tool)?;
        self.find_possible(server, tool, accepts)
    }

    /// The first rule that matches the pair, or the joined name however it is split.
    pub(crate) fn find_possible(
        &self,
        server: &str,
        tool: &str,
        accepts: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let exact = self.find(server, tool, &accepts);
        exact.into_iter().chain(self.find_joined(server, tool, accepts)).min()
    }

    /// The first rule that matches the joined name, however it is split.
    fn find_joined(&self, server: &str, tool: &str, accepts: impl Fn(u32) -> bool) -> Option<u32> {
        if self.by_server.is_empty() && self.loose.is_empty() {
            return None;
        }
        let joined = ambiguous_name(server, tool)?;
        let keys = joined.match_indices("__").filter_map(|(at, _)| joined.get(..at));
        let keyed = keys.filter_map(|key| self.by_server.get(key)).flatten();
        keyed
            .chain(&self.loose)
            .filter(|(_, pattern)| pattern.matches_joined(&joined))
            .filter(|(id, _)| accepts(*id))
            .map(|(id, _)| *id)
            .min()
    }
}
