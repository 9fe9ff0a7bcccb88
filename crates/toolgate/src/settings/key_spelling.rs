//! Unknown keys of settings files: which of them are misspelled.
//!
//! Other programs keep keys of their own in these files, so an unknown key is normally only reported. One that is almost
//! a key of ours is an error, because its author meant it to count: `"permisions"` may contain every deny rule of a
//! team, and `"PreTolUse"` the hook that screens its calls.

use super::merge::key_rules;
use super::node::{SettingsNode, SettingsNodeKind};
use super::schema::UnknownKey;
use crate::hooks::UNRAISED_EVENTS;
use serde_json::Value;
use toolgate_agent::AgentHookEvent;
use toolgate_gate::HookEvent;
use toolgate_policy::find_intended_name;

/// Keys under other names: those of older versions, of other products, and common guesses.
const RENAMED_KEYS: &[(&str, &str)] = &[
    ("allowedTools", "permissions.allow"),
    ("allowed_tools", "permissions.allow"),
    ("disallowedTools", "permissions.deny"),
    ("disallowed_tools", "permissions.deny"),
    ("mode", "permissions.defaultMode"),
    ("permissionMode", "permissions.defaultMode"),
    ("permission_mode", "permissions.defaultMode"),
    ("permissions.allowedTools", "permissions.allow"),
    ("permissions.allowed_tools", "permissions.allow"),
    ("permissions.disabledTools", "permissions.deny"),
    ("permissions.disabled_tools", "permissions.deny"),
    ("permissions.disallowedTools", "permissions.deny"),
    ("permissions.mode", "permissions.defaultMode"),
    ("permissions.preApproval", "preApproval"),
    ("permissions.pre_approval", "preApproval"),
    ("allowed_domains", "preApproval.allowedDomains"),
    ("blocked_domains", "preApproval.blockedDomains"),
];

/// Sections whose keys are recognised one level too high: `{"deny": […]}` for `{"permissions": {"deny": […]}}`.
const SECTIONS: [&str; 3] = ["permissions", "preApproval", "managed"];

/// The key that an unknown one probably stands for, or `None` if it belongs to another program.
pub(super) fn find_intended_key(unknown: &UnknownKey) -> Option<String> {
    let path = unknown.path.as_str();
    if let Some((_, meant)) = RENAMED_KEYS.iter().find(|(old, _)| *old == path) {
        return Some((*meant).to_owned());
    }
    let (above, name) = path.rsplit_once('.').map_or(("", path), |(above, name)| (above, name));
    if let Some(meant) = find_intended_name(name, unknown.siblings.iter().map(String::as_str)) {
        return Some(if above.is_empty() { meant.to_owned() } else { format!("{above}.{meant}") });
    }
    let is_misplaced = |key: &&super::merge::KeyRule| match key.path.as_slice() {
        [section, leaf] => above.is_empty() && leaf == name && SECTIONS.contains(&section.as_str()),
        _ => false,
    };
    key_rules().iter().find(is_misplaced).map(|key| key.name())
}

/// A misspelled key: its line, its path as written, and the path that was meant.
pub(super) type MisspelledKey = (usize, String, String);

/// The file with its misspelled keys corrected, and what was corrected: what stands inside a misspelled section is
/// checked too. Nothing else uses the corrected file, because a guess must not decide what is allowed.
pub(super) fn correct_keys(node: &SettingsNode, schema: &Value) -> (SettingsNode, Vec<MisspelledKey>) {
    let mut misspelled = Vec::new();
    let corrected = correct_below(node, schema, ("", ""), &mut misspelled);
    (corrected, misspelled)
}

/// Corrects the keys of a node. `paths` are its path as written, and with the corrections.
fn correct_below(
    node: &SettingsNode,
    schema: &Value,
    paths: (&str, &str),
    misspelled: &mut Vec<MisspelledKey>,
) -> SettingsNode {
    let kind = match &node.kind {
        SettingsNodeKind::Scalar(value) => SettingsNodeKind::Scalar(value.clone()),
        SettingsNodeKind::List(items) => {
            let schema = find_part(schema, "items").unwrap_or(&Value::Null);
            let items = items.iter().enumerate().map(|(index, item)| {
                let (written, meant) = (format!("{}[{index}]", paths.0), format!("{}[{index}]", paths.1));
                correct_below(item, schema, (&written, &meant), misspelled)
            });
            SettingsNodeKind::List(items.collect())
        }
        SettingsNodeKind::Object(fields) => {
            let known = find_part(schema, "properties").and_then(Value::as_object);
            let others = find_part(schema, "additionalProperties");
            let fields = fields.iter().map(|(key, value)| {
                let join = |above: &str, key: &str| match above {
                    "" => key.to_owned(),
                    above => format!("{above}.{key}"),
                };
                let written = join(paths.0, key);
                let is_renamed = RENAMED_KEYS.iter().any(|(old, _)| *old == join(paths.1, key));
                let meant = known.filter(|known| !known.contains_key(key) && !is_renamed).and_then(|known| {
                    // The key itself may be there too, and no object has a key twice.
                    let missing = known.keys().filter(|name| node.get(name).is_none());
                    find_intended_name(key, missing.map(String::as_str))
                });
                let correct = meant.unwrap_or(key);
                let path = join(paths.1, correct);
                if meant.is_some() {
                    misspelled.push((value.line, written.clone(), path.clone()));
                }
                let schema = known.map_or(others, |known| known.get(correct)).unwrap_or(&Value::Null);
                (correct.to_owned(), correct_below(value, schema, (&written, &path), misspelled))
            });
            // Two misspellings of one key: the first stands for it.
            let mut unique: Vec<(String, SettingsNode)> = Vec::new();
            for (key, value) in fields {
                if !unique.iter().any(|(other, _)| *other == key) {
                    unique.push((key, value));
                }
            }
            SettingsNodeKind::Object(unique)
        }
    };
    SettingsNode { line: node.line, kind }
}

/// A part of a schema, or of the first of its alternatives that has it.
fn find_part<'s>(schema: &'s Value, part: &str) -> Option<&'s Value> {
    let options = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    let within = |options: &'s Vec<Value>| options.iter().find_map(|option| find_part(option, part));
    schema.get(part).or_else(|| options.and_then(within))
}

/// Misspelled events in `hooks`: the line, the event as written, and the event that was meant.
pub(super) fn find_misspelled_events(node: &SettingsNode) -> Vec<(usize, String, &'static str)> {
    let Some(SettingsNodeKind::Object(events)) = node.get("hooks").map(|hooks| &hooks.kind) else {
        return Vec::new();
    };
    let known = || {
        let of_calls = HookEvent::ALL.iter().map(|event| event.as_str());
        let of_agents = AgentHookEvent::ALL.iter().map(|event| event.as_str());
        of_calls.chain(of_agents).chain(UNRAISED_EVENTS.iter().map(|(event, _)| *event))
    };
    events
        .iter()
        .filter(|(name, _)| !known().any(|event| event == name))
        .filter_map(|(name, hooks)| Some((hooks.line, name.clone(), find_intended_name(name, known())?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::schema::{check, settings_check_schema};

    fn intended(text: &str) -> Vec<Option<String>> {
        let node = SettingsNode::parse(text).unwrap();
        check(&node, settings_check_schema()).unknown.iter().map(find_intended_key).collect()
    }

    #[test]
    fn keys_that_are_almost_ours_are_recognised() {
        for (text, meant) in [
            (r#"{"permisions": {}}"#, "permissions"),
            (r#"{"permissions": {"denny": []}}"#, "permissions.deny"),
            (r#"{"permissions": {"Deny": []}}"#, "permissions.deny"),
            (r#"{"permissions": {"default_mode": "plan"}}"#, "permissions.defaultMode"),
            (r#"{"permissions": {"allowed_tools": []}}"#, "permissions.allow"),
            (r#"{"permissions": {"disabled_tools": []}}"#, "permissions.deny"),
            (r#"{"permissions": {"pre_approval": {}}}"#, "preApproval"),
            (r#"{"disabled_tools": []}"#, "disabledTools"),
            (r#"{"deny": []}"#, "permissions.deny"),
            (r#"{"hook": {}}"#, "hooks"),
            (r#"{"sandbox": {"filesystem": {"denyReads": []}}}"#, "sandbox.filesystem.denyRead"),
            (r#"{"hooks": {"PreToolUse": [{"matchers": "Bash"}]}}"#, "hooks.PreToolUse[0].matcher"),
        ] {
            assert_eq!(intended(text), [Some(meant.to_owned())], "{text}");
        }
    }

    #[test]
    fn keys_of_other_programs_are_left_alone() {
        let top = [
            "awsAuthRefresh",
            "cleanupPeriodDays",
            "companyAnnouncements",
            "forceLoginMethod",
            "includeCoAuthoredBy",
            "language",
            "otelHeadersHelper",
            "spinnerTipsEnabled",
            "theme",
            "attribution",
            "effortLevel",
            "alwaysThinkingEnabled",
            "availableModels",
            "fileSuggestion",
            "respectGitignore",
            "apiKey",
            "customApiUrl",
        ];
        for key in top {
            assert_eq!(intended(&format!("{{\"{key}\": 1}}")), [None], "{key}");
        }
        for (section, key) in [
            ("network", "strictAllowlist"),
            ("network", "allowManagedDomainsOnly"),
            ("network", "httpProxyPort"),
            ("network", "socksProxyPort"),
            ("network", "tlsTerminate"),
            ("filesystem", "allowRead"),
            ("filesystem", "allowManagedReadPathsOnly"),
            ("filesystem", "disabled"),
        ] {
            let text = format!("{{\"sandbox\": {{\"{section}\": {{\"{key}\": 1}}}}}}");
            assert_eq!(intended(&text), [None], "{section}.{key}");
        }
    }

    #[test]
    fn misspelled_keys_are_corrected_at_every_level() {
        let text = r#"{"permisions": {"denny": ["Bash(rm *)"]}, "permissions": {"alow": [], "allow": []},
            "sandbox": {"filesytem": {"denyReed": ["x"]}}, "hooks": {"Stop": [{"matchers": "x"}]}, "theme": {"a": 1}}"#;
        let (corrected, misspelled) =
            correct_keys(&SettingsNode::parse(text).unwrap(), settings_check_schema());
        let value = corrected.value();
        assert_eq!(value.pointer("/sandbox/filesystem/denyRead/0"), Some(&"x".into()), "{value}");
        assert_eq!(value.pointer("/hooks/Stop/0/matcher"), Some(&"x".into()), "{value}");
        assert_eq!(value.pointer("/theme/a"), Some(&1.into()), "{value}");
        assert!(value.get("permisions").is_some(), "the right key is there already: {value}");
        let paths: Vec<_> =
            misspelled.iter().map(|(_, written, meant)| (written.as_str(), meant.as_str())).collect();
        let wanted = [
            ("sandbox.filesytem", "sandbox.filesystem"),
            ("sandbox.filesytem.denyReed", "sandbox.filesystem.denyRead"),
            ("hooks.Stop[0].matchers", "hooks.Stop[0].matcher"),
        ];
        assert_eq!(paths, wanted);
        // Without the right key beside it.
        let node = SettingsNode::parse("{\"permisions\": {\n\"denny\": [\"Bash(rm *)\"]}}").unwrap();
        let (corrected, misspelled) = correct_keys(&node, settings_check_schema());
        assert_eq!(corrected.value(), serde_json::json!({ "permissions": { "deny": ["Bash(rm *)"] } }));
        assert_eq!(misspelled[1], (2, "permisions.denny".to_owned(), "permissions.deny".to_owned()));
    }

    #[test]
    fn a_misspelled_event_is_recognised() {
        let node = SettingsNode::parse("{\"hooks\": {\n\"PreTolUse\": [],\n\"Stop\": [], \"MyEvent\": []}}");
        assert_eq!(find_misspelled_events(&node.unwrap()), [(2, "PreTolUse".to_owned(), "PreToolUse")]);
    }
}
