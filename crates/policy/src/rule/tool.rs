//! `Tool` and `Tool*`: rules for the name of a tool.

use super::syntax::RuleSyntaxError;
use crate::raw::RuleAction;
use std::collections::HashMap;
use toolgate_proto::ToolIdentity;
use toolgate_proto::wildcard::WildcardPattern;

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
        "shell" | "run_shell_command" | "Monitor" => "Bash",
        "read_file" | "read_many_files" | "FileRead" => "Read",
        "edit_file" | "replace" | "FileEdit" => "Edit",
        "write_file" | "FileWrite" => "Write",
        "web_fetch" => "WebFetch",
        "web_search" => "WebSearch",
        "glob" => "Glob",
        "grep" | "search_file_content" => "Grep",
        "ls" | "list_directory" => "LS",
        other => other,
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

    /// The first rule for any name of this tool.
    pub(crate) fn find(&self, tool: &ToolIdentity) -> Option<u32> {
        if self.names.is_empty() && self.globs.is_empty() {
            return None;
        }
        let names = std::iter::once(tool.name.as_str()).chain(tool.also.iter().map(String::as_str));
        names.filter_map(|name| self.find_name(name)).min()
    }

    /// The first rule for this name.
    pub(crate) fn find_name(&self, name: &str) -> Option<u32> {
        let named = self.names.get(canonical_name(name)).or_else(|| self.names.get(name)).copied();
        let globs = self.globs.iter().filter(|(_, wild)| wild.matches(name)).map(|(id, _)| *id);
        named.into_iter().chain(globs).min()
    }
}
