//! Names of MCP servers and of their tools in rules: which are misspelled.
//!
//! A server can be added after the rules for it, so an unknown name is only a note. A name that is almost that of a
//! configured server is an error like a misspelled tool: the rule was meant for that server and never matches it.

use crate::lint;
use crate::raw::{RuleAction, RuleProblem, UnmatchableRules};
use crate::rule::mcp::normalise;
use crate::rule::syntax::RuleSyntaxError;
use crate::tool_names::find_intended_name;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_proto::RuleRef;

/// The MCP servers that rules can name.
#[derive(Debug, Clone, Default)]
pub struct McpNames {
    /// The servers that are configured, as their lists spell them, whether they can start or not.
    pub servers: BTreeSet<String>,
    /// The tools that a server listed when it was last connected, by server; a server that never was is absent.
    pub tools: BTreeMap<String, BTreeSet<String>>,
}

impl McpNames {
    /// Adds registered tools of servers, and spells all names as rules do.
    pub(crate) fn with_tools(self, registered: &BTreeSet<String>) -> Self {
        let mut names = Self::default();
        names.servers.extend(self.servers.iter().map(|server| normalise(server).into_owned()));
        for (server, tools) in &self.tools {
            let known = names.tools.entry(normalise(server).into_owned()).or_default();
            known.extend(tools.iter().map(|tool| normalise(tool).into_owned()));
        }
        for name in registered {
            let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"))
            else {
                continue;
            };
            names.servers.insert(server.to_owned());
            names.tools.entry(server.to_owned()).or_default().insert(tool.to_owned());
        }
        names
    }
}

/// The problem of a name `mcp__server` or `mcp__server__tool`.
pub(crate) fn check_mcp_name(
    name: &str,
    action: RuleAction,
    unmatchable: UnmatchableRules,
    known: &McpNames,
    reference: &dyn Fn() -> RuleRef,
) -> Option<RuleProblem> {
    let body = name.strip_prefix("mcp__")?;
    let (server, tool) = match body.split_once("__") {
        Some((server, tool)) => (server, Some(tool)),
        None => (body, None),
    };
    // A wildcard is not a misspelling, and without any server there is nothing to compare with.
    if server.contains('*') || known.servers.is_empty() {
        return None;
    }
    if known.servers.contains(server) {
        return check_server_tool(server, tool?, known, reference);
    }
    let Some(meant) = find_similar_name(server, &known.servers) else {
        let message = format!("no MCP server `{server}` is configured");
        let fix = "the rule has an effect once there is one; `toolgate mcp list` lists the servers";
        return Some(lint::note(reference(), &message, fix));
    };
    let suffix = tool.map(|tool| format!("__{tool}")).unwrap_or_default();
    let RuleSyntaxError { message, fix } = RuleSyntaxError::new(
        format!("no MCP server `{server}` is configured, so the rule never matches"),
        format!("did you mean `mcp__{meant}{suffix}`?"),
    );
    Some(RuleProblem { rule: reference(), weight: unmatchable.severity(action), message, fix })
}

/// The problem of a tool of a configured server. It is never fatal: the tools are those of the last connection, and the
/// server can have others by now.
fn check_server_tool(
    server: &str,
    tool: &str,
    known: &McpNames,
    reference: &dyn Fn() -> RuleRef,
) -> Option<RuleProblem> {
    let tools = known.tools.get(server)?;
    if tool.contains('*') || tools.contains(tool) {
        return None;
    }
    let message = format!("server `{server}` listed no tool `{tool}` when it was last connected");
    Some(match find_similar_name(tool, tools) {
        Some(meant) => {
            lint::warning(reference(), &message, &format!("did you mean `mcp__{server}__{meant}`?"))
        }
        None => lint::note(reference(), &message, "`toolgate tools` lists the names"),
    })
}

/// The name that another one misspells. Names that differ only in their numbers (`db1`, `db2`) are two names.
fn find_similar_name<'n>(given: &str, known: &'n BTreeSet<String>) -> Option<&'n str> {
    let without_digits = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    let stem = without_digits(given);
    let is_numbered = |name: &&str| *name != given && without_digits(name) == stem;
    find_intended_name(given, known.iter().map(String::as_str).filter(|name| !is_numbered(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::ProblemSeverity;
    use crate::tool_names::check_tool_names;
    use crate::tool_names::tests::policy_of_rule;

    fn check(action: RuleAction, text: &str) -> Option<(ProblemSeverity, String)> {
        let raw = policy_of_rule(action, text);
        let registered = BTreeSet::from(["mcp__host__deploy".to_owned()]);
        let names = || McpNames {
            servers: ["files", "my.docs", "db1"].map(str::to_owned).into(),
            tools: BTreeMap::from([("files".to_owned(), BTreeSet::from(["read_file".to_owned()]))]),
        };
        check_tool_names(&raw, &registered, names).pop().map(|problem| (problem.weight, problem.fix))
    }

    #[test]
    fn a_misspelled_server_is_fatal_in_rules_that_restrict() {
        for (text, meant) in [
            ("mcp__filez", "mcp__files"),
            ("mcp__Files", "mcp__files"),
            ("mcp__filez__read_file", "mcp__files__read_file"),
            ("mcp__fils__*", "mcp__files__*"),
            ("mcp__my-docs", "mcp__my_docs"),
            ("mcp__hots__deploy", "mcp__host__deploy"),
        ] {
            let fix = format!("did you mean `{meant}`?");
            assert_eq!(check(RuleAction::Deny, text), Some((ProblemSeverity::Fatal, fix.clone())), "{text}");
            assert_eq!(check(RuleAction::Ask, text), Some((ProblemSeverity::Fatal, fix.clone())), "{text}");
            assert_eq!(check(RuleAction::Allow, text), Some((ProblemSeverity::Warning, fix)), "{text}");
        }
    }

    #[test]
    fn a_server_that_may_be_added_later_is_a_note() {
        for text in ["mcp__github", "mcp__github__*", "mcp__db2"] {
            assert_eq!(check(RuleAction::Deny, text).unwrap().0, ProblemSeverity::Note, "{text}");
        }
        for text in ["mcp__files", "mcp__my_docs__x", "mcp__db1", "mcp__*", "mcp__f*__x", "mcp__host"] {
            assert_eq!(check(RuleAction::Deny, text), None, "{text}");
        }
    }

    #[test]
    fn a_misspelled_tool_of_a_server_is_a_warning() {
        let fix = "did you mean `mcp__files__read_file`?".to_owned();
        for text in ["mcp__files__reed_file", "mcp__files__readFile"] {
            assert_eq!(
                check(RuleAction::Deny, text),
                Some((ProblemSeverity::Warning, fix.clone())),
                "{text}"
            );
        }
        assert_eq!(check(RuleAction::Deny, "mcp__files__delete").unwrap().0, ProblemSeverity::Note);
        for text in ["mcp__files__read_file", "mcp__files__read_*", "mcp__my_docs__reed_file"] {
            assert_eq!(check(RuleAction::Deny, text), None, "{text}");
        }
    }
}
