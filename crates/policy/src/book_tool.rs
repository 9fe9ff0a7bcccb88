//! The `tool` of a policy book's rule: the tools that it names, and values that can name none.
//!
//! A deny rule for `Ba*` or `Bash|Edit` protects nothing. Only the names of MCP tools have wildcards, with the meaning that
//! they have in `permissions`: a wildcard in the name of any other tool would make the order of the rules for it unclear.

use crate::lint;
use crate::raw::{ProblemSeverity, RuleAction, RuleProblem, UnmatchableRules};
use crate::rule::mcp::{McpPattern, normalise};
use crate::rule::syntax::{self, RuleSyntaxError};
use crate::rule::unknown_field::find_misspelled_field;
use toolgate_proto::{RuleRef, ToolIdentity};

/// The tools that a rule of a policy book is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BookTool {
    /// `*`: every tool.
    Any,
    /// The tool with this name.
    Name(String),
    /// `mcp__server`, or a name of an MCP tool with `*`.
    Servers(McpPattern),
}

impl BookTool {
    /// Parses the value of `tool`. An error says why it can name no tool, and what to write.
    pub(crate) fn parse(text: &str, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        Self::parse_name(text, action).map_err(|problem| match problem {
            BookToolProblem::Value(message) => {
                let message = format!("{message}, so the rule never matches");
                RuleSyntaxError::new(message, advised_spelling(text, action))
            }
            BookToolProblem::McpName(error) => error,
        })
    }

    /// The same without advice, which tries other spellings.
    fn parse_name(text: &str, action: RuleAction) -> Result<Self, BookToolProblem> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if text == "*" {
            return Ok(Self::Any);
        }
        if text.is_empty() {
            return Err(BookToolProblem::Value("the name of the tool is empty".to_owned()));
        }
        if let Some(odd) = text.chars().find(|c| !is_name(*c) && *c != '*') {
            return Err(BookToolProblem::Value(format!("the name of a tool cannot contain `{odd}`")));
        }
        if let Some(body) = text.strip_prefix("mcp__") {
            let is_one_tool = body.contains("__") && !body.contains('*');
            let pattern = McpPattern::parse(text, action).map_err(BookToolProblem::McpName)?;
            return Ok(if is_one_tool { Self::Name(text.to_owned()) } else { Self::Servers(pattern) });
        }
        if text.contains('*') {
            let message = "`*` is not part of the name of a tool, except of an MCP tool";
            return Err(BookToolProblem::Value(message.to_owned()));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

/// Why a value names no tool.
enum BookToolProblem {
    /// What is wrong with the value.
    Value(String),
    /// It begins as the name of an MCP tool; the error is that of `permissions`.
    McpName(RuleSyntaxError),
}

/// Whether a rule for these MCP tools is for this tool.
pub(crate) fn is_for_tool(pattern: &McpPattern, action: RuleAction, tool: &ToolIdentity) -> bool {
    match action {
        RuleAction::Allow => pattern.grants(tool),
        RuleAction::Ask | RuleAction::Deny => pattern.restricts(tool),
    }
}

/// The problem of a condition of a rule for every tool, if its field is a misspelled one of a built-in tool. MCP tools can
/// have any field, so a name that may be one of theirs is only a warning.
pub(crate) fn find_misspelled_param(
    param: &str,
    action: RuleAction,
    unmatchable: UnmatchableRules,
    rule: RuleRef,
) -> Option<RuleProblem> {
    let misspelled = find_misspelled_field(param)?;
    let message = format!("no built-in tool has a field `{param}`, so the rule matches none of their calls");
    let problem = lint::warning(rule, &message, &format!("did you mean `{}`?", misspelled.meant));
    let weight = if misspelled.is_certain { unmatchable.severity(action) } else { ProblemSeverity::Warning };
    Some(RuleProblem { weight, ..problem })
}

/// What to write instead of a value that names no tool.
fn advised_spelling(text: &str, action: RuleAction) -> String {
    let is_usable = |name: &str| BookTool::parse_name(name, action).is_ok();
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return "write the name of a tool, or `*` for every tool".to_owned();
    }
    // A regular expression: `^Bash$`, `mcp__files__.*`.
    let plain = trimmed.trim_start_matches('^').trim_end_matches('$').replace(".*", "*");
    let normalised = if plain.starts_with("mcp__") { normalise_name(&plain) } else { plain };
    let parts: Vec<&str> =
        trimmed.split(['|', ',', ';', ' ']).map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.len() > 1 && parts.iter().all(|part| is_usable(part)) {
        return format!("write one rule for each: `{}`", parts.join("`, `"));
    }
    if normalised != text && is_usable(&normalised) {
        return format!("did you mean `{normalised}`?");
    }
    let list = format!("permissions.{action}");
    if let Ok(rule) = syntax::parse(trimmed)
        && is_usable(&rule.name)
    {
        let name = rule.name;
        return match rule.content {
            None => format!("did you mean `{name}`?"),
            Some(_) => {
                format!("write `{trimmed}` in `{list}`, or `{name}` here with a condition on a field")
            }
        };
    }
    if trimmed.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*')) {
        return match action {
            RuleAction::Allow => "write one rule for each tool, or `*` for every tool".to_owned(),
            RuleAction::Ask | RuleAction::Deny => {
                format!("write one rule for each tool, or `{trimmed}` in `{list}`")
            }
        };
    }
    "write the name of one tool, in letters, digits, `_` and `-`, or `*` for every tool".to_owned()
}

/// The name of an MCP tool as rules spell it, with its wildcards.
fn normalise_name(name: &str) -> String {
    name.split('*').map(|part| normalise(part)).collect::<Vec<_>>().join("*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_can_name_no_tool_is_an_error_that_says_what_to_write() {
        for (text, fix) in [
            ("", "write the name of a tool, or `*` for every tool"),
            (" ", "write the name of a tool, or `*` for every tool"),
            ("Ba*", "write one rule for each tool, or `Ba*` in `permissions.deny`"),
            ("**", "write one rule for each tool, or `**` in `permissions.deny`"),
            (
                "Bash(rm *)",
                "write `Bash(rm *)` in `permissions.deny`, or `Bash` here with a condition on a field",
            ),
            ("Bash(*)", "did you mean `Bash`?"),
            ("Bash|Edit", "write one rule for each: `Bash`, `Edit`"),
            ("Bash,Edit", "write one rule for each: `Bash`, `Edit`"),
            ("Bash, mcp__files", "write one rule for each: `Bash`, `mcp__files`"),
            ("Bash Edit", "write one rule for each: `Bash`, `Edit`"),
            (" Bash", "did you mean `Bash`?"),
            ("Bash ", "did you mean `Bash`?"),
            ("^Bash$", "did you mean `Bash`?"),
            (".*", "did you mean `*`?"),
            ("mcp__files__.*", "did you mean `mcp__files__*`?"),
            ("mcp__my.docs__read", "did you mean `mcp__my_docs__read`?"),
            ("Bäsh", "write the name of one tool, in letters, digits, `_` and `-`, or `*` for every tool"),
            ("mcp__", "write `mcp__server` or `mcp__server__tool`"),
        ] {
            let problem = BookTool::parse(text, RuleAction::Deny).unwrap_err();
            assert_eq!(problem.fix, fix, "{text}: {}", problem.message);
        }
        let problem = BookTool::parse("mcp__*", RuleAction::Allow).unwrap_err();
        assert_eq!(problem.fix, "name the server: `mcp__server__*`");
    }

    #[test]
    fn names_of_tools_and_of_servers_are_usable() {
        for (text, is_pattern) in [
            ("Bash", false),
            ("web_fetch", false),
            ("my-tool", false),
            ("mcp__files__read", false),
            ("mcp__files", true),
            ("mcp__files__*", true),
            ("mcp__*", true),
            ("mcp__*__delete_*", true),
        ] {
            let tool = BookTool::parse(text, RuleAction::Deny).unwrap();
            assert_eq!(matches!(tool, BookTool::Servers(_)), is_pattern, "{text}");
        }
        assert_eq!(BookTool::parse("*", RuleAction::Allow), Ok(BookTool::Any));
    }
}
