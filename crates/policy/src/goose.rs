//! Translates the tool permissions of goose (`permission.yaml`) into settings.
//!
//! There a tool of an extension is always allowed, asked about or never allowed. A tool of an extension becomes an MCP
//! tool (`mcp__extension__tool`); the tools of goose's own extension `developer` become the effects that they have.
//! Decisions that goose made by itself (`smart_approve`) are not a user's: those that allow are omitted.
//!
//! ```
//! use toolgate_policy::goose::{GoosePermissions, translate};
//!
//! let user = GoosePermissions { never_allow: vec!["developer__shell".to_owned()], ..GoosePermissions::default() };
//! let translation = translate(&user, &GoosePermissions::default()).unwrap();
//! assert_eq!(translation.settings["permissions"]["deny"][0], "Bash");
//! ```

use crate::translation::{RuleTranslation, TranslationNote};
use serde_json::{Map, Value, json};
use toolgate_proto::format_count;

/// One section of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoosePermissions {
    /// Tools that run without a question.
    pub always_allow: Vec<String>,
    /// Tools that ask.
    pub ask_before: Vec<String>,
    /// Tools that never run.
    pub never_allow: Vec<String>,
}

/// Tools of goose's extension `developer`, and the rules for the same effects.
const DEVELOPER_TOOLS: &[(&str, &[&str])] = &[
    ("shell", &["Bash"]),
    ("text_editor", &["Edit", "Read"]),
    ("write", &["Edit"]),
    ("edit", &["Edit"]),
    ("read", &["Read"]),
    ("read_image", &["Read"]),
    ("image_processor", &["Read"]),
    ("tree", &["LS"]),
    ("list_files", &["LS"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("search", &["Grep"]),
];

/// Translates the sections `user` and `smart_approve`. Lines are not known, so notes have line 1.
pub fn translate(
    user: &GoosePermissions,
    smart_approve: &GoosePermissions,
) -> Result<RuleTranslation, TranslationNote> {
    let mut notes = Vec::new();
    let mut lists: [Vec<String>; 3] = Default::default();
    let sections = [(&user.always_allow, 0usize), (&user.ask_before, 1), (&user.never_allow, 2)];
    let automatic = [(&smart_approve.ask_before, 1), (&smart_approve.never_allow, 2)];
    for (tools, list) in sections.into_iter().chain(automatic) {
        for tool in tools {
            let rules = rules_for(tool, list, &mut notes)?;
            let Some(list) = lists.get_mut(list) else { continue };
            list.extend(rules.into_iter().filter(|rule| !list.contains(rule)).collect::<Vec<_>>());
        }
    }
    if !smart_approve.always_allow.is_empty() {
        let count = smart_approve.always_allow.len();
        notes.push(note(format!(
            "omitted: {} of `smart_approve` that goose allowed by itself",
            format_count(count as u64, "tool", "tools")
        )));
    }
    let mut permissions = Map::new();
    for (name, list) in ["allow", "ask", "deny"].into_iter().zip(lists) {
        if !list.is_empty() {
            permissions.insert(name.to_owned(), json!(list));
        }
    }
    let settings = Value::Object(Map::from_iter([("permissions".to_owned(), Value::Object(permissions))]));
    Ok(RuleTranslation { settings, notes })
}

/// A note about the file as a whole.
fn note(message: String) -> TranslationNote {
    TranslationNote { line: 1, message }
}

/// The rules for one tool; `list` is 0 for allow, 1 for ask, 2 for deny.
fn rules_for(
    tool: &str,
    list: usize,
    notes: &mut Vec<TranslationNote>,
) -> Result<Vec<String>, TranslationNote> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    let Some((extension, name)) = tool.split_once("__").filter(|(a, b)| is_name(a) && is_name(b)) else {
        return Err(note(format!("`{tool}` is not a tool of an extension (`extension__tool`)")));
    };
    if extension != "developer" {
        return Ok(vec![format!("mcp__{extension}__{name}")]);
    }
    let Some((_, rules)) = DEVELOPER_TOOLS.iter().find(|(known, _)| *known == name) else {
        return match list {
            0 => {
                notes.push(note(format!("omitted: toolgate has no tool like `{tool}`")));
                Ok(Vec::new())
            }
            _ => Err(note(format!("toolgate has no tool like `{tool}`, so its rule cannot be kept"))),
        };
    };
    if list > 0 && rules.contains(&"Read") {
        notes.push(note(format!(
            "stricter: the rule for `{tool}` holds for every tool and command that reads"
        )));
    }
    Ok(rules.iter().map(|rule| (*rule).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[&str]) -> Vec<String> {
        tools.iter().map(|tool| (*tool).to_owned()).collect()
    }

    #[test]
    fn tools_become_rules_for_their_effects() {
        let user = GoosePermissions {
            always_allow: names(&["developer__tree", "jira__search", "developer__mystery"]),
            ask_before: names(&["developer__write", "memory__forget"]),
            never_allow: names(&["developer__shell", "developer__text_editor"]),
        };
        let smart = GoosePermissions { always_allow: names(&["x__y"]), ..GoosePermissions::default() };
        let translation = translate(&user, &smart).unwrap();
        assert_eq!(
            translation.settings,
            json!({ "permissions": {
                "allow": ["LS", "mcp__jira__search"],
                "ask": ["Edit", "mcp__memory__forget"],
                "deny": ["Bash", "Edit", "Read"],
            } })
        );
        assert_eq!(translation.notes.len(), 3, "{:?}", translation.notes);
    }

    #[test]
    fn a_denial_that_cannot_be_kept_refuses_the_file() {
        for tool in ["developer__mystery", "shell", "a b__c", "__x"] {
            let user = GoosePermissions { never_allow: names(&[tool]), ..GoosePermissions::default() };
            assert!(translate(&user, &GoosePermissions::default()).is_err(), "{tool}");
        }
    }
}
