//! Formatting of the rules in a settings file: one spelling for each rule, one rule on each line, none twice.
//!
//! Comments, order and everything else in the file stay. Rules are not sorted, because people group them by meaning.

use super::node::SettingsNode;
use super::{SettingsError, load::check_text};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::Value;
use std::collections::BTreeSet;
use toolgate_policy::canonical_rule;

/// The lists of rules in `permissions`.
const RULE_LISTS: [&str; 3] = ["allow", "ask", "deny"];

/// The text of a settings file with its rules formatted. A file that cannot be used is an error.
///
/// ```
/// use toolgate::settings::format_rules;
///
/// let text = "{ \"permissions\": { \"allow\": [\"Bash(npm run:*)\", \"Bash(npm run *)\"] } }";
/// let formatted = format_rules("settings.json", text).unwrap();
/// assert_eq!(formatted.matches("Bash(npm run *)").count(), 1);
/// ```
pub fn format_rules(name: &str, text: &str) -> Result<String, SettingsError> {
    check_text(name, text)?;
    let error = |message: String| SettingsError {
        file: name.to_owned(),
        line: 1,
        message,
        fix: "edit the file by hand".to_owned(),
    };
    let before = SettingsNode::parse(text).map_err(|problem| error(problem.message))?.value();
    let tree =
        CstRootNode::parse(text, &ParseOptions::default()).map_err(|problem| error(problem.to_string()))?;
    let permissions = tree.object_value().and_then(|object| object.object_value("permissions"));
    for list in RULE_LISTS {
        let Some(array) = permissions.as_ref().and_then(|object| object.array_value(list)) else { continue };
        let mut seen = BTreeSet::new();
        for element in array.elements() {
            let Some(literal) = element.as_string_lit() else { continue };
            let Ok(rule) = literal.decoded_value() else { continue };
            let wanted = canonical_rule(&rule);
            if !seen.insert(wanted.clone()) {
                element.remove();
            } else if wanted != rule {
                literal.set_raw_value(Value::String(wanted).to_string());
            }
        }
        if array.elements().len() > 1 {
            array.ensure_multiline();
        }
    }
    let formatted = tree.to_string();
    let after = SettingsNode::parse(&formatted).map_err(|problem| error(problem.message))?.value();
    if after != formatted_value(before) {
        return Err(error(
            "the rules could not be formatted without changing other parts of the file".to_owned(),
        ));
    }
    Ok(formatted)
}

/// The same change on the plain value, to check the result against.
fn formatted_value(mut settings: Value) -> Value {
    for list in RULE_LISTS {
        let rules = settings.get_mut("permissions").and_then(|permissions| permissions.get_mut(list));
        if let Some(Value::Array(rules)) = rules {
            let mut seen = BTreeSet::new();
            *rules = rules
                .iter()
                .filter_map(Value::as_str)
                .map(canonical_rule)
                .filter(|rule| seen.insert(rule.clone()))
                .map(Value::String)
                .collect();
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_spelled_alike_and_comments_stay() {
        let text = "{\n  // ours\n  \"permissions\": {\n    \"allow\": [\"Bash(npm  run:*)\", /* twice */ \
                    \"Bash(npm run *)\", \"Task(Explore)\"], // end\n    \"deny\": [\"Read(.env)\"]\n  },\n  \"other\": [1]\n}\n";
        let formatted = format_rules("settings.json", text).unwrap();
        for part in
            ["// ours", "// end", "\"Bash(npm run *)\"", "\"Agent(Explore)\"", "\"deny\": [\"Read(.env)\"]"]
        {
            assert!(formatted.contains(part), "{part} is not in\n{formatted}");
        }
        assert_eq!(formatted.matches("npm run").count(), 1, "{formatted}");
        assert_eq!(
            format_rules("settings.json", &formatted).unwrap(),
            formatted,
            "a second run changes nothing"
        );
    }
}
