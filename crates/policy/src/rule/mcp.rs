//! `mcp__server`, `mcp__server__tool` and globs: rules on tools of other servers.
//!
//! They are matched on the pair (server, tool) that a tool carries beside its joined name, so that two servers whose
//! names join to the same text stay apart for allow rules. A deny or ask rule also counts when only the joined name
//! fits: a name that could be meant is treated as if it were.

use super::grammar::RuleSyntaxError;
use crate::raw::RuleAction;
use std::borrow::Cow;
use std::collections::HashMap;
use toolgate_proto::wildcard::WildcardPattern;
use toolgate_proto::{SourceId, ToolIdentity};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpPattern {
    server: WildcardPattern,
    /// `None`: every tool of the server.
    tool: Option<WildcardPattern>,
    /// The whole text after `mcp__`.
    joined: WildcardPattern,
}

impl McpPattern {
    pub(crate) fn parse(name: &str, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        let body = name.strip_prefix("mcp__").unwrap_or(name);
        let (server, tool) = match body.split_once("__") {
            Some((server, tool)) => (server, Some(tool)),
            None => (body, None),
        };
        if server.is_empty() || tool.is_some_and(str::is_empty) {
            return Err(RuleSyntaxError::new(
                "the rule names no server or no tool",
                "write `mcp__server` or `mcp__server__tool`",
            ));
        }
        let wide_server = server.contains('*');
        let wide_tool = tool.is_none_or(|tool| tool.contains('*'));
        if action == RuleAction::Allow && wide_server && wide_tool {
            return Err(RuleSyntaxError::new(
                "an allow rule cannot leave both the server and the tool open",
                "name the server: `mcp__server__*`",
            ));
        }
        Ok(Self {
            server: WildcardPattern::new(server),
            tool: tool.map(WildcardPattern::new),
            joined: WildcardPattern::new(body),
        })
    }

    fn matches_pair(&self, server: &str, tool: &str) -> bool {
        self.server.matches(server) && self.tool.as_ref().is_none_or(|pattern| pattern.matches(tool))
    }

    /// Whether the rule would cover every tool of every server.
    pub(crate) fn has_wildcard_server(&self) -> bool {
        self.server.as_literal().is_none()
    }
}

/// A server's or tool's name as rules spell it.
pub(crate) fn normalise(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(|c| if plain(c) { c } else { '_' }).collect())
}

/// Rules of one action on other servers' tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpIndex {
    by_server: HashMap<String, Vec<(u32, McpPattern)>>,
    loose: Vec<(u32, McpPattern)>,
}

impl McpIndex {
    pub(crate) fn add(&mut self, id: u32, pattern: McpPattern) {
        if pattern.server.as_literal().is_some() {
            let server = pattern.server.head().to_owned();
            self.by_server.entry(server).or_default().push((id, pattern));
        } else {
            self.loose.push((id, pattern));
        }
    }

    /// The first rule for the pair, of those that fit otherwise.
    pub(crate) fn find(&self, server: &str, tool: &str, fits: impl Fn(u32) -> bool) -> Option<u32> {
        if self.by_server.is_empty() && self.loose.is_empty() {
            return None;
        }
        let (server, tool) = (normalise(server), normalise(tool));
        let own = self.by_server.get(server.as_ref()).into_iter().flatten();
        own.chain(&self.loose)
            .filter(|(id, pattern)| pattern.matches_pair(&server, &tool) && fits(*id))
            .map(|(id, _)| *id)
            .min()
    }

    /// The same as deny and ask rules are read: a name that could be meant is treated as if it were.
    pub(crate) fn find_broadly(&self, tool: &ToolIdentity, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let (server, tool) = match &tool.source {
            SourceId::Mcp { server, tool } => (server.as_str(), tool.as_str()),
            // A name of that form is no proof of a server, but it is enough to be denied.
            SourceId::Builtin | SourceId::Plugin { .. } | SourceId::Skill { .. } | SourceId::Sdk => {
                tool.name.as_str().strip_prefix("mcp__")?.split_once("__")?
            }
        };
        self.find_possible(server, tool, fits)
    }

    /// The first rule for the pair, or whose text fits the joined name, however that may be split.
    pub(crate) fn find_possible(&self, server: &str, tool: &str, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let exact = self.find(server, tool, &fits);
        exact.into_iter().chain(self.find_joined(server, tool, fits)).min()
    }

    /// The first rule whose text fits the joined name, however it may be split.
    fn find_joined(&self, server: &str, tool: &str, fits: impl Fn(u32) -> bool) -> Option<u32> {
        if self.by_server.is_empty() && self.loose.is_empty() {
            return None;
        }
        // Only a name that holds `__` can be split in another place.
        if !server.contains('_') && !tool.contains('_') {
            return None;
        }
        let joined = format!("{}__{}", normalise(server), normalise(tool));
        let keys = joined.match_indices("__").filter_map(|(at, _)| joined.get(..at));
        let keyed = keys.filter_map(|key| self.by_server.get(key)).flatten();
        keyed
            .chain(&self.loose)
            .filter(|(_, pattern)| match &pattern.tool {
                Some(_) => pattern.joined.matches(&joined),
                None => joined
                    .match_indices("__")
                    .any(|(at, _)| joined.get(..at).is_some_and(|server| pattern.server.matches(server))),
            })
            .filter(|(id, _)| fits(*id))
            .map(|(id, _)| *id)
            .min()
    }
}
