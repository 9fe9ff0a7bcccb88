//! The policy book, evaluated from front to back.

use super::field_text;
use super::generated_call::GeneratedCall;
use super::rule::{matches_server, matches_wildcard, may_grant_by_glob};
use serde_json::Value;
use toolgate_policy::RuleAction;

/// The action of the book for a call, and whether a rule of the book gave it rather than its default.
pub(super) fn evaluate_book(book: &Value, call: &GeneratedCall) -> Option<(RuleAction, bool)> {
    let rules: Vec<&Value> = book.get("rules").and_then(Value::as_array).into_iter().flatten().collect();
    let is_for_call = |rule: &&&Value, own: bool| {
        let tool = rule.get("tool").and_then(Value::as_str).unwrap_or_default();
        let names = match rule.get("action").and_then(Value::as_str) {
            Some("allow") => call.names(),
            Some(_) | None => call.restricted_names(),
        };
        if own { names.contains(&tool) || is_for_server(rule, tool, call) } else { tool == "*" }
    };
    let first = |own: bool| {
        rules.iter().filter(|rule| is_for_call(rule, own)).find(|rule| matches_conditions(rule, call))
    };
    if let Some(rule) = first(true).or_else(|| first(false)) {
        return parse_action(rule.get("action")).map(|action| (action, true));
    }
    parse_action(book.get("defaultAction")).map(|action| (action, false))
}

/// Whether a rule names the tool of the call by its MCP server, or by a pattern.
fn is_for_server(rule: &Value, tool: &str, call: &GeneratedCall) -> bool {
    let is_allow = rule.get("action").and_then(Value::as_str) == Some("allow");
    if !tool.starts_with("mcp__") || (is_allow && tool.contains('*') && !may_grant_by_glob(tool)) {
        return false;
    }
    matches_wildcard(tool, call.tool) || matches_server(tool, call.tool)
}

/// Parses an action; `None` for a text that the book format does not define.
fn parse_action(value: Option<&Value>) -> Option<RuleAction> {
    match value.and_then(Value::as_str) {
        Some("allow") => Some(RuleAction::Allow),
        Some("ask") => Some(RuleAction::Ask),
        Some("deny") => Some(RuleAction::Deny),
        Some(_) | None => None,
    }
}

/// Tells whether all conditions of a rule hold. A parameter that the call lacks fails its condition.
fn matches_conditions(rule: &Value, call: &GeneratedCall) -> bool {
    let conditions = rule.get("conditions").and_then(Value::as_array);
    let restricts = rule.get("action").and_then(Value::as_str) != Some("allow");
    conditions.into_iter().flatten().all(|condition| {
        let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
        let wanted: Vec<&str> = match condition.get("value") {
            Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one],
            Some(_) | None => Vec::new(),
        };
        field_text::has_field_text(call, text("param"), restricts, |found, is_string| {
            wanted.iter().any(|wanted| match text("operator") {
                "equals" => {
                    found == *wanted
                        || (!is_string
                            && field_text::other_texts(wanted, restricts).iter().any(|text| text == found))
                }
                "contains" => found.contains(wanted),
                "startsWith" => found.starts_with(wanted),
                "matches" => matches_regex(wanted, found),
                _ => false,
            })
        })
    })
}

/// The few regular expressions that generated books use, by hand.
fn matches_regex(expression: &str, text: &str) -> bool {
    match expression {
        "^npm (test|run)$" => text == "npm test" || text == "npm run",
        "src/.*s$" => text.split("src/").skip(1).any(|rest| !rest.contains('\n')) && text.ends_with('s'),
        "[0-9]+" => text.chars().any(|c| c.is_ascii_digit()),
        _ => false,
    }
}
