//! Translates execution rules of Codex (`*.rules`) into settings.
//!
//! A rule there names the first words of a command and a decision, and of several rules the strictest decides, as here.
//! A prefix becomes `Bash(prefix *)`. The examples of a rule (`match`, `not_match`) are compared with its pattern, as
//! Codex does: a rule whose author was wrong about it must not be imported.
//!
//! The files are written in Starlark. Rules are calls with literal arguments, so only these are parsed; anything else is
//! an error with its line.
//!
//! ```
//! use toolgate_policy::codex::translate;
//!
//! let text = r#"prefix_rule(pattern = ["git", ["push", "fetch"]], decision = "prompt")"#;
//! let translation = translate(text).unwrap();
//! assert_eq!(translation.settings["permissions"]["ask"][1], "Bash(git fetch *)");
//! ```

mod literals;

use crate::raw::RuleAction;
use crate::translation::{RuleTranslation, TranslationNote};
use literals::{RuleCall, RuleLiteral, parse_calls};
use serde_json::{Map, Value, json};

/// How many rules the alternatives of one pattern may give.
const MAX_ALTERNATIVES: usize = 200;

/// Translates the text of a rules file. An error names the line of what cannot be translated without loosening it.
pub fn translate(text: &str) -> Result<RuleTranslation, TranslationNote> {
    let mut translator = CodexTranslator::default();
    for call in parse_calls(text)? {
        match call.name.as_str() {
            "prefix_rule" => translator.add_prefix_rule(&call)?,
            "network_rule" => translator.add_network_rule(&call)?,
            "host_executable" => {
                translator.add_note(call.line, "omitted: rules here apply to a program under every path");
            }
            name => return Err(note(call.line, format!("unknown function `{name}`"))),
        }
    }
    Ok(translator.finish())
}

/// A note about a line of the file.
fn note(line: usize, message: impl Into<String>) -> TranslationNote {
    TranslationNote { line, message: message.into() }
}

/// The rules collected so far.
#[derive(Default)]
struct CodexTranslator {
    /// `permissions.allow`, `ask` and `deny`.
    lists: [Vec<String>; 3],
    /// What changed.
    notes: Vec<TranslationNote>,
}

impl CodexTranslator {
    /// Reports what could not be translated.
    fn add_note(&mut self, line: usize, message: &str) {
        self.notes.push(note(line, message));
    }

    /// Adds a rule, unless it is there.
    fn add(&mut self, action: RuleAction, rule: String) {
        let [allow, ask, deny] = &mut self.lists;
        let list = match action {
            RuleAction::Allow => allow,
            RuleAction::Ask => ask,
            RuleAction::Deny => deny,
        };
        if !list.contains(&rule) {
            list.push(rule);
        }
    }

    /// `prefix_rule(pattern, decision?, justification?, match?, not_match?)`.
    fn add_prefix_rule(&mut self, call: &RuleCall) -> Result<(), TranslationNote> {
        call.check_arguments(&["pattern", "decision", "justification", "match", "not_match"])?;
        let Some(RuleLiteral::List(pattern)) = call.argument("pattern") else {
            return Err(note(call.line, "`pattern` must be a list"));
        };
        let mut words: Vec<Vec<String>> = Vec::new();
        for element in pattern {
            words.push(element.alternatives().ok_or_else(|| {
                note(call.line, "an element of `pattern` must be a string or a list of strings")
            })?);
        }
        if words.is_empty() || words.iter().any(Vec::is_empty) {
            return Err(note(call.line, "`pattern` is empty"));
        }
        let action = decision(call, RuleAction::Allow)?;
        check_examples(call, &words)?;
        let count = words.iter().try_fold(1usize, |count, options| count.checked_mul(options.len()));
        if count.is_none_or(|count| count > MAX_ALTERNATIVES) {
            return Err(note(call.line, format!("`pattern` has more than {MAX_ALTERNATIVES} alternatives")));
        }
        for prefix in expand(&words) {
            if prefix.iter().all(|word| is_plain_word(word)) {
                self.add(action, format!("Bash({} *)", prefix.join(" ")));
            } else if action == RuleAction::Allow {
                self.add_note(call.line, "omitted: a word of the pattern would need quotes in a rule");
            } else {
                let message = format!("`{}` cannot be written as a rule", prefix.join(" "));
                return Err(note(call.line, message));
            }
        }
        Ok(())
    }

    /// `network_rule(host, protocol, decision, justification?)`.
    fn add_network_rule(&mut self, call: &RuleCall) -> Result<(), TranslationNote> {
        call.check_arguments(&["host", "protocol", "decision", "justification"])?;
        let host = call.text("host")?.ok_or_else(|| note(call.line, "`host` is missing"))?;
        let is_host = !host.is_empty()
            && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*'));
        if !is_host {
            return Err(note(call.line, format!("`{host}` is not the name of a host")));
        }
        self.add(decision(call, RuleAction::Ask)?, format!("WebFetch(domain:{host})"));
        Ok(())
    }

    /// The translated rules as settings.
    fn finish(mut self) -> RuleTranslation {
        let mut permissions = Map::new();
        for (name, list) in ["allow", "ask", "deny"].into_iter().zip(self.lists) {
            if !list.is_empty() {
                permissions.insert(name.to_owned(), json!(list));
            }
        }
        self.notes.sort_by_key(|note| note.line);
        let settings =
            Value::Object(Map::from_iter([("permissions".to_owned(), Value::Object(permissions))]));
        RuleTranslation { settings, notes: self.notes }
    }
}

/// The decision of a rule as an action.
fn decision(call: &RuleCall, default: RuleAction) -> Result<RuleAction, TranslationNote> {
    match call.text("decision")?.as_deref() {
        None => Ok(default),
        Some("allow") => Ok(RuleAction::Allow),
        Some("prompt") => Ok(RuleAction::Ask),
        Some("forbidden" | "deny") => Ok(RuleAction::Deny),
        Some(other) => Err(note(call.line, format!("unknown decision `{other}`"))),
    }
}

/// Refuses a rule whose own examples contradict its pattern.
fn check_examples(call: &RuleCall, words: &[Vec<String>]) -> Result<(), TranslationNote> {
    for (name, expected) in [("match", true), ("not_match", false)] {
        let Some(examples) = call.argument(name) else { continue };
        let RuleLiteral::List(examples) = examples else {
            return Err(note(call.line, format!("`{name}` must be a list")));
        };
        for example in examples {
            let tokens = match example {
                RuleLiteral::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
                RuleLiteral::List(_) => example
                    .alternatives()
                    .ok_or_else(|| note(call.line, format!("an example of `{name}` is not a command")))?,
            };
            let matches = tokens.len() >= words.len()
                && words.iter().zip(&tokens).all(|(options, token)| options.contains(token));
            if matches != expected {
                let verb = if expected { "does not match" } else { "matches" };
                return Err(note(
                    call.line,
                    format!("the pattern {verb} its example `{}`", tokens.join(" ")),
                ));
            }
        }
    }
    Ok(())
}

/// Every combination of the alternatives.
fn expand(words: &[Vec<String>]) -> Vec<Vec<String>> {
    words.iter().fold(vec![Vec::new()], |prefixes, options| {
        let extend = |prefix: &Vec<String>| {
            let prefix = prefix.clone();
            options.iter().map(move |option| [prefix.as_slice(), std::slice::from_ref(option)].concat())
        };
        prefixes.iter().flat_map(extend).collect()
    })
}

/// Whether a word is the same in a rule and in a command line: no blanks, quotes, wildcards or operators, and no colon,
/// which could make the content the name of a field.
fn is_plain_word(word: &str) -> bool {
    !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '=' | '@' | '+' | ',' | '%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
# what may run
prefix_rule(
    pattern = ["git", ["status", "diff"]],  # readers
    match = [["git", "status"], "git diff --stat"],
    not_match = ["git push"],
)
prefix_rule(pattern=["rm", "-rf"], decision="forbidden", justification='use "trash"')
prefix_rule(pattern = ["cp"], decision = "prompt",)
prefix_rule(pattern = ["echo", "a b"])
network_rule(host = "api.example.com", protocol = "https", decision = "allow")
host_executable(name = "git", paths = ["/usr/bin/git"])
"#;

    #[test]
    fn rules_are_translated_and_what_changes_is_noted() {
        let translation = translate(RULES).unwrap();
        assert_eq!(
            translation.settings,
            json!({ "permissions": {
                "allow": ["Bash(git status *)", "Bash(git diff *)", "WebFetch(domain:api.example.com)"],
                "ask": ["Bash(cp *)"],
                "deny": ["Bash(rm -rf *)"],
            } })
        );
        let lines: Vec<usize> = translation.notes.iter().map(|note| note.line).collect();
        assert_eq!(lines, [10, 12]);
    }

    #[test]
    fn what_cannot_be_translated_is_an_error_with_its_line() {
        for (text, line, message) in [
            ("\nprefix_rule(pattern = [\"a b\"], decision = \"forbidden\")", 2, "cannot be written"),
            ("prefix_rule(pattern = [\"a\"], decision = \"maybe\")", 1, "unknown decision"),
            ("prefix_rule(pattern = [\"a\"], match = [\"b\"])", 1, "does not match its example"),
            ("prefix_rule(pattern = [\"a\"], not_match = [\"a x\"])", 1, "matches its example"),
            ("prefix_rule(pattern = [])", 1, "is empty"),
            ("prefix_rule(patern = [\"a\"])", 1, "unknown argument `patern`"),
            ("\n\nx = 1", 3, "expected `(`"),
            ("prefix_rule(pattern = [\"a\"", 1, "ends"),
            ("prefix_rule(pattern = f(1))", 1, "expected a string or a list"),
            ("other()", 1, "unknown function"),
        ] {
            let error = translate(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {}", error.message);
            assert!(error.message.contains(message), "{text}: {}", error.message);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z_(),=\\[\\]\"'#\n\\\\ ]{0,60}") {
            let _ = translate(&text);
        }
    }
}
