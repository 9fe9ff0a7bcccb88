//! Formatting of the rules in a settings file: one spelling for each rule, one rule on each line, none twice.
//!
//! Comments, order and everything else in the file stay. Rules are not sorted, because people group them by meaning.

use super::lay_out_rules::{PlacedRule, lay_out_rules};
use super::node::SettingsNode;
use super::{SettingsError, load::check_text};
use jsonc_parser::ast::Value as Ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
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
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let mut formatted = body.to_owned();
    // From the end, so that the places before stay.
    let mut lists = find_lists(body).map_err(error)?;
    lists.sort_by_key(|(list, _)| std::cmp::Reverse(list.start));
    for (list, rules) in lists {
        match lay_out_rules(body, &list, &rules) {
            Some(laid_out) => formatted.replace_range(list, &laid_out),
            None => {
                for PlacedRule { range, rule } in rules.into_iter().rev() {
                    formatted.replace_range(range, &rule);
                }
            }
        }
    }
    let formatted = format!("{mark}{formatted}");
    let after = SettingsNode::parse(&formatted).map_err(|problem| error(problem.message))?.value();
    if after != formatted_value(before) {
        return Err(error(
            "the rules could not be formatted without changing other parts of the file".to_owned(),
        ));
    }
    Ok(formatted)
}

/// A list of rules: its bytes in the text, and its rules in the usual spelling.
type PlacedList = (Range<usize>, Vec<PlacedRule>);

/// The lists of rules in a text.
fn find_lists(text: &str) -> Result<Vec<PlacedList>, String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
        .map_err(|problem| problem.to_string())?;
    let Some(Ast::Object(settings)) = parsed.value else { return Ok(Vec::new()) };
    let Some(permissions) = settings.get_object("permissions") else { return Ok(Vec::new()) };
    let lists = RULE_LISTS.iter().filter_map(|name| permissions.get_array(name));
    let place = |element: &Ast<'_>| match element {
        Ast::StringLit(literal) => {
            let rule = canonical_rule(&literal.value);
            // The spelling of escapes in a rule that does not change is the author's.
            let written = match rule == literal.value.as_ref() {
                true => text.get(literal.range.start..literal.range.end).map(str::to_owned),
                false => None,
            };
            let rule = written.unwrap_or_else(|| Value::String(rule).to_string());
            Some(PlacedRule { range: literal.range.start..literal.range.end, rule })
        }
        _ => None,
    };
    Ok(lists
        .map(|list| (list.range.start..list.range.end, list.elements.iter().filter_map(place).collect()))
        .collect())
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
        for part in [
            "// ours",
            "// end",
            "/* twice */",
            "\"Bash(npm run *)\"",
            "\"Agent(Explore)\"",
            "\"deny\": [\"Read(.env)\"]",
        ] {
            assert!(formatted.contains(part), "{part} is not in\n{formatted}");
        }
        assert_eq!(formatted.matches("npm run").count(), 1, "{formatted}");
        assert_eq!(
            format_rules("settings.json", &formatted).unwrap(),
            formatted,
            "a second run changes nothing"
        );
    }

    #[test]
    fn each_rule_gets_a_line_and_comments_stay_beside_what_is_kept() {
        let text = r#"{
  "permissions": {
    "allow": [ // a
      "Bash(npm run:*)", "Bash(ls *)", // two
      "Bash(git status)" /* b */, /* c */ "Read(x)",

      // twice
      "Bash(npm run *)", // again
      "Read(y)", /* d */ "Read(z)" // e
      // last
    ],
    "ask": ["Edit(a)", /* f */ "Edit(a)" /* g */],
    "deny": ["Bash(rm *)", "Bash(rm:*)"]
  }
}
"#;
        let wanted = r#"{
  "permissions": {
    "allow": [
      // a
      // twice
      // again
      "Bash(npm run *)",
      "Bash(ls *)", // two
      "Bash(git status)", /* b */
      /* c */ "Read(x)",
      "Read(y)",
      /* d */ "Read(z)" // e
      // last
    ],
    "ask": [
      /* f */
      /* g */
      "Edit(a)"
    ],
    "deny": ["Bash(rm *)"]
  }
}
"#;
        let formatted = format_rules("settings.json", text).unwrap();
        assert_eq!(formatted, wanted);
        assert_eq!(format_rules("settings.json", &formatted).unwrap(), formatted);
        let windows = format_rules("settings.json", &text.replace('\n', "\r\n")).unwrap();
        assert_eq!(windows, wanted.replace('\n', "\r\n"));
        // Groups and a trailing comma stay.
        let text = "{\"permissions\": {\"deny\": [\n\t\"Read(a)\", \"Read(b)\",\n\n\t\"Read(c)\",\n]}}";
        let wanted = "{\"permissions\": {\"deny\": [\n  \"Read(a)\",\n  \"Read(b)\",\n\n  \"Read(c)\",\n]}}";
        assert_eq!(format_rules("settings.json", text).unwrap(), wanted);
    }
}
