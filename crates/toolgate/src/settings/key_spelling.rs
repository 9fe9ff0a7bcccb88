//! The keys of a settings file with their spelling corrected, to find the problems inside misspelled sections.

use super::intended_key::{find_intended_sibling, find_renamed_key, join};
use super::node::{SettingsNode, SettingsNodeKind};
use serde_json::Value;

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
                let written = join(paths.0, key);
                let is_renamed = find_renamed_key(&join(paths.1, key), paths.1, key).is_some();
                let meant = known.filter(|known| !known.contains_key(key) && !is_renamed).and_then(|known| {
                    // The key itself may be there too, and no object has a key twice.
                    let missing = known.keys().filter(|name| node.get(name).is_none());
                    find_intended_sibling(key, paths.1, missing.map(String::as_str))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::schema::settings_check_schema;

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
}
