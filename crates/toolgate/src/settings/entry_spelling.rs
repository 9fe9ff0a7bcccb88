//! Entries of lists in settings files that cannot mean what was intended: patterns where paths are expected, and
//! names of tools that disable none.
//!
//! Such an entry protects nothing and hides nothing, and its author relies on it, so it is an error, as a misspelled rule
//! is.

use super::node::{SettingsNode, SettingsNodeKind};
use super::read::PATH_LISTS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use toolgate_policy::{find_intended_name, find_intended_tool};
use toolgate_proto::AbsPath;

/// The value of `ledger.anchor` that names the system log.
pub const SYSLOG_ANCHOR: &str = "syslog";

/// An entry that cannot be used: its line, what is wrong, and what to write.
pub(super) type WrongEntry = (usize, String, String);

/// Every wrong entry of a file.
pub(super) fn find_wrong_entries(node: &SettingsNode) -> Vec<WrongEntry> {
    let mut wrong = Vec::new();
    for list in PATH_LISTS {
        let key = list.join(".");
        wrong.extend(strings_at(node, list).filter_map(|(line, text)| check_path(&key, line, text)));
    }
    for list in [&["disabledTools"][..], &["managed", "disabledTools"]] {
        let key = list.join(".");
        wrong.extend(
            strings_at(node, list).filter_map(|(line, name)| check_disabled_entry_spelling(&key, line, name)),
        );
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
    let message = format!("`ledger.anchor` is `{place}`, which is not an absolute path");
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
            let is_found = |name: &str| toolgate_tools::restricts_builtin_field(text("tool"), name);
            let Some(name) = text_of(param).filter(|name| !is_found(name)) else { continue };
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

/// An entry of a list of disabled tools that disables nothing. Names of MCP servers and of their tools are also checked as
/// rules, which can have wildcards there.
fn check_disabled_entry_spelling(key: &str, line: usize, name: &str) -> Option<WrongEntry> {
    let wrong = |why: &str, fix: String| {
        Some((line, format!("`{name}` in `{key}` {why}, so it disables nothing"), fix))
    };
    if let Some((tool, content)) = name.split_once(['(', ')']) {
        // Rules for tools of servers have no other content.
        let fix = match tool.starts_with("mcp__") && !content.contains(':') {
            true => format!("write `{tool}`, or `{tool}(field:value)` in `permissions.deny`"),
            false => format!("write `{name}` in `permissions.deny`"),
        };
        return wrong("is a rule, and the key takes names of tools", fix);
    }
    if name.contains(['|', ',']) || name.trim().contains(char::is_whitespace) {
        return wrong("is not one name", "write one entry for each tool".to_owned());
    }
    if name.trim() != name || name.is_empty() {
        return wrong("is not the name of a tool", format!("write `{}`", name.trim()));
    }
    if name.starts_with("mcp__") {
        return None;
    }
    if name.contains(['*', '?', '[', '^', '$', '\\']) {
        let why = "is a pattern, and the key takes names of tools";
        let rule = name.trim_start_matches('^').trim_end_matches('$').replace(".*", "*");
        let is_rule = rule.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*'));
        return match is_rule {
            true => wrong(why, format!("write `{rule}` in `permissions.deny`")),
            false => wrong(why, "write one entry for each tool".to_owned()),
        };
    }
    let meant = find_intended_tool(name, builtin_names())?;
    let message = format!("unknown tool `{name}` in `{key}`, so the entry disables nothing");
    Some((line, message, format!("did you mean `{meant}`?")))
}

/// The strings of a list, with their lines.
fn strings_at<'a>(node: &'a SettingsNode, path: &[&str]) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
    let list = path.iter().try_fold(node, |node, key| node.get(key));
    list.map(list_items).unwrap_or_default().iter().filter_map(|item| Some((item.line, text_of(item)?)))
}

/// The items of a list; none of anything else.
pub(super) fn list_items(node: &SettingsNode) -> &[SettingsNode] {
    match &node.kind {
        SettingsNodeKind::List(items) => items,
        SettingsNodeKind::Scalar(_) | SettingsNodeKind::Object(_) => &[],
    }
}

/// The text of a string.
pub(super) fn text_of(node: &SettingsNode) -> Option<&str> {
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
        let found = find_wrong_entries(&node).into_iter();
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
    fn entries_that_disable_no_tool_are_named_with_what_to_write() {
        for (entry, part) in [
            (
                "Bahs",
                "unknown tool `Bahs` in `disabledTools`, so the entry disables nothing; did you mean `Bash`?",
            ),
            ("mcp_files", "did you mean `mcp__files`?"),
            (
                "Ba*",
                "is a pattern, and the key takes names of tools, so it disables nothing; write `Ba*` in `permissions.deny`",
            ),
            ("*", "write `*` in `permissions.deny`"),
            ("^Web.*$", "write `Web*` in `permissions.deny`"),
            ("[BR].*", "write one entry for each tool"),
            ("mcp__files__put(x)", "write `mcp__files__put`, or `mcp__files__put(field:value)` in"),
            ("mcp__files__put(x:y)", "write `mcp__files__put(x:y)` in"),
            (
                "Bash(touch *)",
                "is a rule, and the key takes names of tools, so it disables nothing; write `Bash(touch *)` in",
            ),
            ("mcp__files__write(x:*)", "is a rule"),
            ("Bash|Edit", "write one entry for each tool"),
            ("Bash, Edit", "write one entry for each tool"),
            (" Bash", "write `Bash`"),
        ] {
            for key in ["disabledTools", "managed.disabledTools"] {
                let text = match key {
                    "disabledTools" => format!("{{\n\"disabledTools\": [\"{entry}\"] }}"),
                    _ => format!("{{ \"managed\": {{\n\"disabledTools\": [\"{entry}\"] }} }}"),
                };
                let part = part.replace("`disabledTools`", &format!("`{key}`"));
                let found = find(&text);
                assert!(
                    found.len() == 1 && found[0].starts_with("2: ") && found[0].contains(&part),
                    "{found:?}"
                );
            }
        }
        let text = r#"{ "disabledTools": ["ls", "read_file", "Deploy", "mcp__x__y", "mcp__x", "mcp__x__*", "mcp__x__get_*"] }"#;
        assert_eq!(find(text), Vec::<String>::new());
    }

    /// The policy engine has its own list of the fields of built-in tools.
    #[test]
    fn no_field_of_a_builtin_tool_is_misspelled_in_a_rule_for_every_tool() {
        use serde_json::json;
        use toolgate_policy::{Layer, RawBook, RawPolicy};

        let fields = builtin_names().iter().filter_map(|name| toolgate_tools::builtin_fields(name)).flatten();
        let fields: BTreeSet<String> = fields.collect();
        assert!(fields.len() > 60, "{fields:?}");
        for param in fields {
            let condition = json!({ "param": param, "operator": "equals", "value": "x" });
            let rule = json!({ "tool": "*", "action": "deny", "conditions": [condition] });
            let book = RawBook::new(Layer::User, json!({ "rules": [rule] }));
            assert_eq!(RawPolicy::default().with_books(vec![book]).compile().1, [], "{param}");
        }
    }
}
