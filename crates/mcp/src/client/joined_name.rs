//! The names of servers' tools behind the gate.

/// The name a model calls a server's tool by. The pair is kept beside it; this is for display and rules.
pub(super) fn joined_name(server: &str, tool: &str) -> Result<String, String> {
    if tool.is_empty() || tool.contains("__") || tool.starts_with('_') || tool.ends_with('_') {
        return Err("its name could be read in two ways".to_owned());
    }
    let plain: String = tool
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    let joined = format!("mcp__{server}__{plain}");
    if joined.len() > 128 {
        return Err("its name is too long".to_owned());
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_names_can_be_read_in_one_way() {
        for (tool, expected) in [
            ("read_file", Some("mcp__fs__read_file")),
            ("read.file", Some("mcp__fs__read_file")),
            ("a__b", None),
            ("_a", None),
            ("a_", None),
            ("", None),
        ] {
            assert_eq!(joined_name("fs", tool).ok().as_deref(), expected, "{tool}");
        }
        assert!(joined_name("fs", &"x".repeat(200)).is_err());
    }
}
