//! Names of other servers' tools: which pairs can be told apart.
//!
//! A tool's identity is the pair (server, tool). Its joined name `mcp__server__tool` is what models and rules use, so
//! a pair whose joined name could be read as another pair, or that falls on the same name as another, is refused at
//! registration instead of being guessed at later.

use crate::rule::mcp::normalise;
use std::collections::BTreeMap;

/// Longest joined name that providers take.
pub const LONGEST_NAME: usize = 128;

/// The name that models and rules use for a pair.
pub fn joined_name(server: &str, tool: &str) -> String {
    format!("mcp__{}__{}", normalise(server), normalise(tool))
}

/// Why a pair cannot be registered by itself, if so.
pub fn name_problem(server: &str, tool: &str) -> Option<String> {
    let (server_name, tool_name) = (normalise(server), normalise(tool));
    if server.is_empty() || tool.is_empty() {
        return Some("a server and a tool need a name".to_owned());
    }
    for (what, name) in [("server", &server_name), ("tool", &tool_name)] {
        if name.contains("__") {
            return Some(format!("the {what} name `{name}` holds `__`, which separates server and tool"));
        }
        if name.starts_with('_') || (what == "server" && name.ends_with('_')) {
            return Some(format!(
                "the {what} name `{name}` has `_` at its edge, so the joined name is ambiguous"
            ));
        }
    }
    if joined_name(server, tool).len() > LONGEST_NAME {
        return Some(format!("the joined name is longer than {LONGEST_NAME} characters"));
    }
    None
}

/// Pairs that fall on one joined name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The name they share.
    pub name: String,
    /// The pairs, as spelled by configuration and servers. None of them may be registered.
    pub pairs: Vec<(String, String)>,
}

/// Finds every name that more than one pair falls on. Asked by the registry whenever tools are added.
pub fn collisions<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Collision> {
    let mut by_name: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (server, tool) in pairs {
        by_name.entry(joined_name(server, tool)).or_default().push((server.to_owned(), tool.to_owned()));
    }
    by_name
        .into_iter()
        .filter(|(_, pairs)| pairs.len() > 1)
        .map(|(name, pairs)| Collision { name, pairs })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_pairs_are_refused() {
        for (server, tool) in [
            ("fs_", "_read"),
            ("a__b", "c"),
            ("a", "b__c"),
            ("", "x"),
            ("x", ""),
            ("fs", &"x".repeat(300)),
            ("fѕ", "x"),
        ] {
            assert!(name_problem(server, tool).is_some(), "{server} {tool}");
        }
        for (server, tool) in [("fs", "read_text_file"), ("my-server", "list_items"), ("gh", "x_")] {
            assert_eq!(name_problem(server, tool), None, "{server} {tool}");
        }
        let found = collisions([("a_b", "c"), ("a.b", "c"), ("x", "y")]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "mcp__a_b__c");
    }
}
