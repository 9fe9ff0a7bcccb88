//! The matcher of a hook: the tools, or the events of an agent, that it runs for.

use super::matcher_spelling::{MisspelledMatcher, find_in_expression, find_in_names, remove_rules};
use super::mcp_reference::{McpReference, find_references};
use fancy_regex::Regex;
use serde_json::{Map, Value};
use toolgate_agent::AgentHookEvent;
use toolgate_policy::McpNames;
use toolgate_proto::ToolIdentity;

/// A matcher with more parts than this is invalid: each one is compared with all names of tools.
const MAX_ALTERNATIVES: usize = 500;

/// A parsed matcher.
#[derive(Debug)]
pub(super) enum HookMatcher {
    /// Every tool.
    All,
    /// Tools with one of these exact names, and all tools of the MCP servers among them (`mcp__server`).
    Names(Vec<String>),
    /// Tools with a name that the expression matches anywhere, and those that were meant where it is misspelled.
    Pattern {
        /// The matcher as it is written, also its parts that are permission rules.
        text: String,
        /// The expression.
        expression: Regex,
        /// The tools that were meant.
        also: Vec<String>,
    },
    /// An expression with a negative lookaround. It is applied only to the tool's own name: an alias would match where
    /// the name is excluded.
    Excluding {
        /// The expression.
        expression: Regex,
        /// The tools that were meant.
        also: Vec<String>,
    },
}

impl HookMatcher {
    /// Parses a matcher: names separated by `|` or `,`, or else a regular expression.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, String> {
        let text = text.unwrap_or_default();
        if matches!(text, "" | "*") {
            return Ok(Self::All);
        }
        if text.matches(['|', ',']).count() >= MAX_ALTERNATIVES {
            return Err(format!("invalid matcher: it has more than {MAX_ALTERNATIVES} alternatives"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-' | ',' | '|');
        if text.chars().all(plain) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(str::to_owned).collect()));
        }
        let expression = Regex::new(text).map_err(|error| format!("invalid matcher `{text}`: {error}"))?;
        let excludes = text.contains("(?!") || text.contains("(?<!");
        Ok(match excludes {
            true => Self::Excluding { expression, also: Vec::new() },
            false => Self::Pattern { text: text.to_owned(), expression, also: Vec::new() },
        })
    }

    /// Parses a matcher of tools. Permission rules in place of names, such as `Bash(*)`, are parts that select nothing,
    /// whether they can be compiled or not.
    pub(super) fn parse_tools(text: Option<&str>) -> Result<Self, String> {
        Self::parse(text).or_else(|problem| {
            let text = text.unwrap_or_default();
            let others = remove_rules(text).and_then(|others| Regex::new(&others).ok());
            let expression = others.ok_or(problem)?;
            Ok(Self::Pattern { text: text.to_owned(), expression, also: Vec::new() })
        })
    }

    /// The parts that select no tool because of a typo. `mcp` finds the names of MCP servers; it is called only if a part
    /// may name one.
    pub(super) fn find_misspellings(&self, mcp: &dyn Fn() -> McpNames) -> Vec<MisspelledMatcher> {
        let mut found = Vec::new();
        let references = self.mcp_references();
        if !references.is_empty() {
            let names = mcp();
            found.extend(references.iter().filter_map(|reference| reference.find_misspelling(&names)));
        }
        found.extend(match self {
            Self::Names(names) => find_in_names(names),
            Self::Pattern { text, .. } => find_in_expression(text),
            Self::Excluding { expression, .. } => find_in_expression(expression.as_str()),
            Self::All => Vec::new(),
        });
        found
    }

    /// The parts that may name an MCP server.
    pub(super) fn mcp_references(&self) -> Vec<McpReference> {
        match self {
            Self::Names(names) => names.iter().filter_map(|name| McpReference::of_name(name)).collect(),
            Self::Pattern { text, .. } => find_references(text),
            Self::All | Self::Excluding { .. } => Vec::new(),
        }
    }

    /// Adds the tools that misspelled parts stand for, and returns what is wrong with the first. The hook then fails for
    /// these tools: as it is written it would screen nothing.
    pub(super) fn add_intended_tools(&mut self, mcp: &dyn Fn() -> McpNames) -> Option<String> {
        let misspelled = self.find_misspellings(mcp);
        let tools = misspelled.iter().flat_map(|part| part.tools.iter().cloned());
        match self {
            Self::Names(names) | Self::Pattern { also: names, .. } | Self::Excluding { also: names, .. } => {
                names.extend(tools);
            }
            Self::All => {}
        }
        misspelled.into_iter().next().map(|part| part.problem)
    }

    /// Whether the hook runs for a tool, under any of the tool's names: changing the toolset must not disable a guard.
    pub(super) fn matches(&self, tool: &ToolIdentity) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names_tool(names, tool),
            // A pattern that exceeds the backtracking limit counts as a match: the hook then runs and decides.
            Self::Pattern { expression, also, .. } => {
                tool.restricted_names().any(|name| expression.is_match(name).unwrap_or(true))
                    || names_tool(also, tool)
            }
            Self::Excluding { expression, also } => {
                expression.is_match(tool.name.as_str()).unwrap_or(true) || names_tool(also, tool)
            }
        }
    }

    /// Whether it selects what an event is about. An event about nothing in particular is always selected.
    pub(super) fn matches_text(&self, subject: Option<&str>) -> bool {
        let Some(subject) = subject else { return true };
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern { expression, .. } | Self::Excluding { expression, .. } => {
                expression.is_match(subject).unwrap_or(true)
            }
        }
    }
}

/// Whether a list has a name of the tool, or the name of its MCP server. In Claude Code the name of a server alone selects
/// nothing; a hook that was meant to screen a server would screen nothing here.
pub(super) fn names_tool(names: &[String], tool: &ToolIdentity) -> bool {
    let is_of_server = |name: &String| {
        let server = name.strip_suffix("__").unwrap_or(name);
        let is_server = server.strip_prefix("mcp__").is_some_and(|rest| !rest.contains("__"));
        let is_tool_of = |own: &str| own.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"));
        is_server && tool.restricted_names().any(is_tool_of)
    };
    names.iter().any(|name| tool.is_restricted_as(name) || is_of_server(name))
}

/// What an event of an agent is about, for matchers; nothing where every hook of the event runs.
pub(super) fn event_subject(event: AgentHookEvent, fields: &Map<String, Value>) -> Option<&str> {
    let key = match event {
        AgentHookEvent::SessionStart => "source",
        AgentHookEvent::SessionEnd => "reason",
        AgentHookEvent::PreCompact | AgentHookEvent::PostCompact => "trigger",
        AgentHookEvent::StopFailure => "error",
        AgentHookEvent::UserPromptExpansion => "command_name",
        AgentHookEvent::InstructionsLoaded => "load_reason",
        AgentHookEvent::Notification => "notification_type",
        AgentHookEvent::PreModelSwitch | AgentHookEvent::PostModelSwitch => "to_model",
        AgentHookEvent::SubagentStart | AgentHookEvent::SubagentStop => "agent_type",
        // The hooks of an event that is not known here run whatever their matcher.
        AgentHookEvent::UserPromptSubmit | AgentHookEvent::Stop | AgentHookEvent::CwdChanged | _ => {
            return None;
        }
    };
    fields.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_proto::SourceId;

    fn check(matcher: &str, name: &str) -> bool {
        let tool = ToolIdentity::new(name, SourceId::Builtin).with_also(vec![format!("{name}Alias")]);
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
            ("mcp__memory", "mcp__memory__create", true),
            ("mcp__memory__", "mcp__memory__create", true),
            ("mcp__memory|Edit", "mcp__memory__create", true),
            ("mcp__mem", "mcp__memory__create", false),
            ("mcp__memory__create", "mcp__memory__create_all", false),
            ("mcp__memory__.*", "mcp__memory__create", true),
            ("mcp__.*__write.*", "mcp__fs__write_file", true),
            ("^(?!Read|ls).*$", "Read", false),
            ("^(?!Read|ls).*$", "Bash", true),
            ("shell", "Bash", true),
            ("Bash", "shell", true),
            ("^web_", "WebFetch", true),
            ("write_file|edit_file", "Write", true),
            ("read_file", "Grep", false),
        ] {
            assert_eq!(check(matcher, name), wanted, "{matcher} on {name}");
        }
        assert!(HookMatcher::parse(Some("Edit(")).is_err());
        assert!(HookMatcher::parse_tools(Some(&"Edit|".repeat(499))).is_ok());
        assert!(HookMatcher::parse_tools(Some(&"Edit|".repeat(500))).is_err());
        // A permission rule is no expression of an event of an agent.
        assert!(
            HookMatcher::parse(Some("Edit(*)")).is_err() && HookMatcher::parse_tools(Some("Edit(*)")).is_ok()
        );
        assert!(matches!(HookMatcher::parse(None), Ok(HookMatcher::All)));
    }
}
