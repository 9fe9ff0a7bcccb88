//! Which tools a hook is for.

use fancy_regex::Regex;
use toolgate_proto::ToolIdentity;

/// A matcher, ready to use.
#[derive(Debug)]
pub(super) enum HookMatcher {
    /// Every tool.
    All,
    /// These names, whole.
    Names(Vec<String>),
    /// Names in which this is found anywhere.
    Pattern(Regex),
    /// The same for an expression that excludes: aliases would defeat it, so only the tool's own name counts.
    Excluding(Regex),
}

impl HookMatcher {
    /// Reads a matcher: a list of names, or else a regular expression.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, String> {
        let text = text.unwrap_or_default();
        if matches!(text, "" | "*") {
            return Ok(Self::All);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-' | ',' | '|');
        if text.chars().all(plain) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(str::to_owned).collect()));
        }
        let pattern =
            Regex::new(text).map_err(|error| format!("its matcher `{text}` cannot be read: {error}"))?;
        let excludes = text.contains("(?!") || text.contains("(?<!");
        Ok(if excludes { Self::Excluding(pattern) } else { Self::Pattern(pattern) })
    }

    /// Whether it speaks of a tool, under any of the tool's names: changing the toolset must not lose a guard.
    pub(super) fn matches(&self, tool: &ToolIdentity) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| tool.has_name(name)),
            // A pattern that runs out of steps might have matched.
            Self::Pattern(pattern) => std::iter::once(tool.name.as_str())
                .chain(tool.also.iter().map(String::as_str))
                .any(|name| pattern.is_match(name).unwrap_or(true)),
            Self::Excluding(pattern) => pattern.is_match(tool.name.as_str()).unwrap_or(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_proto::SourceId;

    fn check(matcher: &str, name: &str) -> bool {
        let tool = ToolIdentity {
            name: name.into(),
            also: vec![format!("{name}Alias")],
            source: SourceId::Builtin,
            read_only: false,
            requires_interaction: false,
        };
        HookMatcher::parse(Some(matcher)).unwrap().matches(&tool)
    }

    #[test]
    fn names_are_exact_and_patterns_are_found_anywhere() {
        for (matcher, name, wanted) in [
            ("", "Bash", true),
            ("*", "Bash", true),
            ("Bash", "Bash", true),
            ("BashAlias", "Bash", true),
            ("Bash", "BashOutput", false),
            ("Edit|Write", "Write", true),
            ("Edit, Write", "Write", true),
            ("Edit|Write", "MultiEdit", false),
            ("bash", "Bash", false),
            ("Edit.*", "NotebookEdit", true),
            ("^Edit.*", "NotebookEdit", false),
            ("mcp__memory", "mcp__memory__create", false),
            ("mcp__memory__.*", "mcp__memory__create", true),
            ("mcp__.*__write.*", "mcp__fs__write_file", true),
            ("^(?!Read|ls).*$", "Read", false),
            ("^(?!Read|ls).*$", "Bash", true),
        ] {
            assert_eq!(check(matcher, name), wanted, "{matcher} on {name}");
        }
        assert!(HookMatcher::parse(Some("Edit(")).is_err());
        assert!(matches!(HookMatcher::parse(None), Ok(HookMatcher::All)));
    }
}
