//! Names of MCP tools, and which of them are ambiguous.
//!
//! A tool is identified by the pair (server, tool), but models and rules use the joined name `mcp__server__tool`.
//! A pair whose joined name can be split in two ways, or that has the same joined name as another pair, is refused at
//! registration. The alternative, a guess at each call, would let a server choose a name that an allow rule for
//! another server covers.

use crate::rule::mcp::normalise;
use std::collections::BTreeMap;

/// The longest tool name that model providers accept.
pub const MAX_JOINED_NAME_BYTES: usize = 128;

/// The name that models and rules use for a pair. Characters that tool names cannot contain become `_`.
///
/// ```
/// use toolgate_policy::mcp_names::{mcp_name_problem, mcp_tool_name};
///
/// assert_eq!(mcp_tool_name("my.files", "read"), "mcp__my_files__read");
/// assert!(mcp_name_problem("files", "read").is_none());
/// assert!(mcp_name_problem("files", "a__b").is_some());
/// ```
pub fn mcp_tool_name(server: &str, tool: &str) -> String {
    format!("mcp__{}__{}", normalise(server), normalise(tool))
}

/// Why a pair cannot be registered, whatever else is registered; `None` if it can.
pub fn mcp_name_problem(server: &str, tool: &str) -> Option<String> {
    let (server_name, tool_name) = (normalise(server), normalise(tool));
    if server.is_empty() || tool.is_empty() {
        return Some("the server or the tool has no name".to_owned());
    }
    for (what, name) in [("server", &server_name), ("tool", &tool_name)] {
        if name.contains("__") {
            return Some(format!("the {what} name `{name}` contains `__`, which separates server and tool"));
        }
        if name.starts_with('_') || (what == "server" && name.ends_with('_')) {
            return Some(format!(
                "the {what} name `{name}` begins or ends with `_`, which makes the joined name ambiguous"
            ));
        }
    }
    if mcp_tool_name(server, tool).len() > MAX_JOINED_NAME_BYTES {
        return Some(format!("the joined name is longer than {MAX_JOINED_NAME_BYTES} bytes"));
    }
    None
}

/// Pairs that have the same joined name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNameCollision {
    /// The joined name that they share.
    pub name: String,
    /// The pairs, as spelled by configuration and servers. None of them may be registered.
    pub pairs: Vec<(String, String)>,
}

/// Finds every joined name that belongs to more than one pair.
pub fn find_name_collisions<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<ToolNameCollision> {
    let mut by_name: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (server, tool) in pairs {
        by_name.entry(mcp_tool_name(server, tool)).or_default().push((server.to_owned(), tool.to_owned()));
    }
    by_name
        .into_iter()
        .filter(|(_, pairs)| pairs.len() > 1)
        .map(|(name, pairs)| ToolNameCollision { name, pairs })
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
            assert!(mcp_name_problem(server, tool).is_some(), "{server} {tool}");
        }
        for (server, tool) in [("fs", "read_text_file"), ("my-server", "list_items"), ("gh", "x_")] {
            assert_eq!(mcp_name_problem(server, tool), None, "{server} {tool}");
        }
        let found = find_name_collisions([("a_b", "c"), ("a.b", "c"), ("x", "y")]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "mcp__a_b__c");
    }
}
