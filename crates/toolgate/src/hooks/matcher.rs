//! The matcher of a hook: the tools, or the events of an agent, that it runs for.

use fancy_regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use toolgate_agent::AgentHookEvent;
use toolgate_policy::find_intended_tool;
use toolgate_proto::ToolIdentity;

/// A parsed matcher.
#[derive(Debug)]
pub(super) enum HookMatcher {
    /// Every tool.
    All,
    /// Tools with one of these exact names.
    Names(Vec<String>),
    /// Tools with a name that the expression matches anywhere.
    Pattern(Regex),
    /// An expression with a negative lookaround. It is applied only to the tool's own name: an alias would match where
    /// the name is excluded.
    Excluding(Regex),
}

impl HookMatcher {
    /// Parses a matcher: names separated by `|` or `,`, or else a regular expression.
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
        let pattern = Regex::new(text).map_err(|error| format!("invalid matcher `{text}`: {error}"))?;
        let excludes = text.contains("(?!") || text.contains("(?<!");
        Ok(if excludes { Self::Excluding(pattern) } else { Self::Pattern(pattern) })
    }

    /// Adds the tools that misspelled names stand for, and returns the first misspelled name with its tool. The hook
    /// then fails for these tools: with a name that matches no tool it would screen nothing.
    pub(super) fn add_intended_tools(&mut self) -> Option<(String, String)> {
        let Self::Names(names) = self else { return None };
        let misspelled: Vec<(String, String)> = names
            .iter()
            .filter_map(|name| Some((name.clone(), find_intended_tool(name, &BTreeSet::new())?)))
            .collect();
        names.extend(misspelled.iter().map(|(_, meant)| meant.clone()));
        misspelled.into_iter().next()
    }

    /// Whether the hook runs for a tool, under any of the tool's names: changing the toolset must not disable a guard.
    pub(super) fn matches(&self, tool: &ToolIdentity) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| tool.is_restricted_as(name)),
            // A pattern that exceeds the backtracking limit counts as a match: the hook then runs and decides.
            Self::Pattern(pattern) => {
                tool.restricted_names().any(|name| pattern.is_match(name).unwrap_or(true))
            }
            Self::Excluding(pattern) => pattern.is_match(tool.name.as_str()).unwrap_or(true),
        }
    }

    /// Whether it selects what an event is about. An event about nothing in particular is always selected.
    pub(super) fn matches_text(&self, subject: Option<&str>) -> bool {
        let Some(subject) = subject else { return true };
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern(pattern) | Self::Excluding(pattern) => pattern.is_match(subject).unwrap_or(true),
        }
    }
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
            ("shell", "Bash", true),
            ("Bash", "shell", true),
            ("^web_", "WebFetch", true),
            ("write_file|edit_file", "Write", true),
            ("read_file", "Grep", false),
        ] {
            assert_eq!(check(matcher, name), wanted, "{matcher} on {name}");
        }
        assert!(HookMatcher::parse(Some("Edit(")).is_err());
        assert!(matches!(HookMatcher::parse(None), Ok(HookMatcher::All)));
    }
}
