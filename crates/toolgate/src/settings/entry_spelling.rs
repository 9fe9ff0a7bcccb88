//! Entries of lists in settings files that cannot mean what was intended: patterns where paths are expected, and
//! misspelled names of tools outside of rules.
//!
//! Such an entry protects nothing and hides nothing, and its author relies on it, so it is an error, as a misspelled rule
//! is.

use super::node::{SettingsNode, SettingsNodeKind};
use super::read::PATH_LISTS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use toolgate_gate::HookEvent;
use toolgate_policy::{find_intended_name, find_intended_tool};
use toolgate_proto::AbsPath;

/// The value of `ledger.anchor` that names the system log.
pub const SYSLOG_ANCHOR: &str = "syslog";

/// An entry that cannot be used: its line, what is wrong, and what to write.
pub(super) type WrongEntry = (usize, String, String);

/// The events whose matchers are names of tools.
const TOOL_EVENTS: [HookEvent; 5] = [
    HookEvent::PreToolUse,
    HookEvent::PermissionRequest,
    HookEvent::PermissionDenied,
    HookEvent::PostToolUse,
    HookEvent::PostToolUseFailure,
];

/// Every wrong entry of a file.
pub(super) fn find_wrong_entries(node: &SettingsNode) -> Vec<WrongEntry> {
    let mut wrong = Vec::new();
    for list in PATH_LISTS {
        let key = list.join(".");
        wrong.extend(strings_at(node, list).filter_map(|(line, text)| check_path(&key, line, text)));
    }
    for list in [&["disabledTools"][..], &["managed", "disabledTools"]] {
        let key = list.join(".");
        wrong.extend(strings_at(node, list).filter_map(|(line, name)| {
            let meant = find_intended_tool(name, builtin_names())?;
            let message = format!("unknown tool `{name}` in `{key}`, so the entry disables nothing");
            Some((line, message, format!("did you mean `{meant}`?")))
        }));
    }
    wrong.extend(find_unknown_fields(node));
    wrong.extend(check_anchor(node));
    wrong
}

/// A place of the ledger's external anchor that cannot be one: no call could be recorded there.
fn check_anchor(node: &SettingsNode) -> Option<WrongEntry> {
    let anchor = node.get("ledger")?.get("anchor")?;
    let place = text_of(anchor)?;
    if place == SYSLOG_ANCHOR || place.starts_with("~/") || AbsPath::new(place).is_ok() {
        return None;
    }
    let message = format!("`ledger.anchor` is `{place}`, which is no absolute path");
    Some((anchor.line, message, format!("give the absolute path of a file, or `{SYSLOG_ANCHOR}`")))
}

/// Conditions of a policy book on fields that the tool does not have: a rule that denies or asks never matches then.
fn find_unknown_fields(node: &SettingsNode) -> Vec<WrongEntry> {
    let rules = node.get("policy").and_then(|book| book.get("rules"));
    let mut wrong = Vec::new();
    for rule in rules.map(list_items).unwrap_or_default() {
        let text = |key: &str| rule.get(key).and_then(text_of).unwrap_or_default();
        if text("action") == "allow" {
            continue;
        }
        let Some(fields) = toolgate_tools::builtin_fields(text("tool")) else { continue };
        let conditions = rule.get("conditions").map(list_items).unwrap_or_default();
        for param in conditions.iter().filter_map(|condition| condition.get("param")) {
            let Some(name) = text_of(param).filter(|name| !fields.contains(*name)) else { continue };
            let message = format!("`{}` has no field `{name}`, so the rule never matches", text("tool"));
            let known = fields.iter().map(String::as_str);
            let fix = match find_intended_name(name, known.clone()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("use one of {}", known.collect::<Vec<_>>().join(", ")),
            };
            wrong.push((param.line, message, fix));
        }
    }
    wrong
}

/// Misspelled tools in matchers of hooks. They are no reason not to load a file: such a hook refuses the calls that it was
/// meant to screen.
pub(super) fn find_misspelled_matchers(node: &SettingsNode) -> Vec<WrongEntry> {
    TOOL_EVENTS.iter().flat_map(|event| check_matchers(node, *event)).collect()
}

/// The strings of a list, with their lines.
fn strings_at<'a>(node: &'a SettingsNode, path: &[&str]) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let list = path.iter().try_fold(node, |node, key| node.get(key));
    list.map(list_items).unwrap_or_default().iter().filter_map(|item| Some((item.line, text_of(item)?)))
}

/// The items of a list; none of anything else.
fn list_items(node: &SettingsNode) -> &[SettingsNode] {
    match &node.kind {
        SettingsNodeKind::List(items) => items,
        SettingsNodeKind::Scalar(_) | SettingsNodeKind::Object(_) => &[],
    }
}

/// The text of a string.
fn text_of(node: &SettingsNode) -> Option<&str> {
    match &node.kind {
        SettingsNodeKind::Scalar(Value::String(text)) => Some(text),
        SettingsNodeKind::Scalar(_) | SettingsNodeKind::List(_) | SettingsNodeKind::Object(_) => None,
    }
}

/// A path is taken as it is written: it stands for the entry itself and, if that is a directory, for everything below it.
fn check_path(key: &str, line: usize, text: &str) -> Option<WrongEntry> {
    let wrong = |why: &str, fix: String| Some((line, format!("`{text}` in `{key}` {why}"), fix));
    let directory = text.strip_suffix("/**").or_else(|| text.strip_suffix("/*"));
    // Brackets and dollar signs also occur in names: `app/[id]`, `routes/$id`.
    let is_pattern = |text: &str| text.contains(['*', '?']) || (text.contains('{') && text.contains(','));
    let has_variable = text.starts_with('$') || text.contains("/${") || text.contains("$HOME");
    if let Some(directory) = directory.filter(|it| !is_pattern(it) && !has_variable && !it.is_empty()) {
        let fix = format!("write `{directory}`, which includes everything below it");
        return wrong("is a pattern, and the key takes paths", fix);
    }
    if has_variable {
        let fix = "write `~/` for your home directory, or the whole path".to_owned();
        return wrong("has a variable, which is not replaced", fix);
    }
    if text.starts_with(['"', '\'']) {
        return wrong("has quotes inside, which would be part of the name", "remove them".to_owned());
    }
    if is_pattern(text) {
        let fix = match key {
            "sandbox.filesystem.denyRead" => format!("use the deny rule `Read({text})`, or name a path"),
            "sandbox.filesystem.denyWrite" => format!("use the deny rule `Edit({text})`, or name a path"),
            _ => "name a path".to_owned(),
        };
        return wrong("is a pattern, and the key takes paths", fix);
    }
    None
}

/// Misspelled tools in the matchers of an event. A matcher that is an expression is left alone.
fn check_matchers(node: &SettingsNode, event: HookEvent) -> Vec<WrongEntry> {
    let groups = node.get("hooks").and_then(|hooks| hooks.get(event.as_str()));
    let groups = groups.map(list_items).unwrap_or_default();
    let matchers = groups.iter().filter_map(|group| group.get("matcher"));
    let mut wrong = Vec::new();
    for (line, matcher) in matchers.filter_map(|matcher| Some((matcher.line, text_of(matcher)?))) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|' | ',' | ' ');
        if !matcher.chars().all(is_name) {
            continue;
        }
        for name in matcher.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty()) {
            if let Some(meant) = find_intended_tool(name, builtin_names()) {
                let message = format!(
                    "unknown tool `{name}` in a matcher of `hooks.{event}`; calls of `{meant}` are refused until it is \
                     corrected"
                );
                wrong.push((line, message, format!("did you mean `{meant}`?")));
            }
        }
    }
    wrong
}

/// The names of the built-in tools of both toolsets.
pub(crate) fn builtin_names() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(toolgate_tools::builtin_names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages and fixes of a text, in one line each.
    fn find(text: &str) -> Vec<String> {
        let node = SettingsNode::parse(text).unwrap();
        let found = find_wrong_entries(&node).into_iter().chain(find_misspelled_matchers(&node));
        found.map(|(line, message, fix)| format!("{line}: {message}; {fix}")).collect()
    }

    #[test]
    fn a_pattern_where_a_path_is_expected_is_named_with_what_to_write() {
        for (entry, fix) in [
            ("~/priv/*", "write `~/priv`"),
            ("~/priv/**", "write `~/priv`"),
            ("$HOME/priv", "write `~/`"),
            ("${HOME}/priv", "write `~/`"),
            ("**/priv", "`Read(**/priv)`"),
            ("/data/*.txt", "`Read(/data/*.txt)`"),
            ("'~/priv'", "remove them"),
        ] {
            let text =
                format!("{{ \"sandbox\": {{ \"filesystem\": {{\n \"denyRead\": [\"{entry}\"] }} }} }}");
            let found = find(&text);
            assert!(found.len() == 1 && found[0].starts_with("2: ") && found[0].contains(fix), "{found:?}");
        }
        for entry in ["~/priv", "/data/a b", "../x", "secret", "//etc/x", "app/[id]", "routes/$id", "/x/{a}"]
        {
            let text = format!("{{ \"sandbox\": {{ \"filesystem\": {{ \"denyWrite\": [\"{entry}\"] }} }} }}");
            assert_eq!(find(&text), Vec::<String>::new(), "{entry}");
        }
    }

    #[test]
    fn misspelled_tools_are_named_wherever_a_name_hides_or_selects() {
        let text = r#"{ "disabledTools": ["Bahs", "ls", "read_file", "Deploy", "mcp__x__y"],
            "managed": { "disabledTools": ["Reed"] },
            "hooks": { "PreToolUse": [{ "matcher": "Edit|Wirte", "hooks": [] }, { "matcher": "mcp__.*", "hooks": [] }],
                       "SessionStart": [{ "matcher": "startupp", "hooks": [] }] } }"#;
        let found = find(text);
        let wanted =
            ["`Bahs` in `disabledTools`", "`Reed` in `managed.disabledTools`", "`Wirte` in a matcher of"];
        assert!(
            found.len() == 3 && found.iter().zip(wanted).all(|(it, wanted)| it.contains(wanted)),
            "{found:#?}"
        );
    }
}
