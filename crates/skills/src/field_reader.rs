//! Reads the fields of front matter as what they are meant to be, and reports what does not fit.

use crate::front_matter::FrontMatter;
use crate::problem::{CapabilityProblem, CapabilitySeverity};
use serde_json::Value;
use std::collections::BTreeSet;
use toolgate_proto::find_intended_name;

/// Reads fields one by one, and knows at the end which ones were not asked for.
pub(crate) struct FieldReader<'f> {
    front: &'f FrontMatter,
    asked: BTreeSet<&'static str>,
    pub(crate) problems: Vec<CapabilityProblem>,
}

impl<'f> FieldReader<'f> {
    /// A reader of the fields of a file; the problems of the front matter come first.
    pub(crate) fn new(front: &'f FrontMatter) -> Self {
        Self { front, asked: BTreeSet::new(), problems: front.problems.clone() }
    }

    /// The value of a field; a null is no value.
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'f Value> {
        self.asked.insert(key);
        self.front.fields.get(key).filter(|value| !value.is_null())
    }

    /// A field of text. What YAML takes for something else (`[file]`, `12`) is the text that was written.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        let text = match self.value(key)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Object(_) => {
                self.warn(key, "is not text, so it was taken as it was written");
                self.front.raw_value(key).unwrap_or_default().to_owned()
            }
            Value::Array(items) => match self.front.raw_value(key).filter(|raw| !raw.is_empty()) {
                Some(raw) => raw.to_owned(),
                None => items.iter().map(plain_text).collect::<Vec<_>>().join(", "),
            },
            other => plain_text(other),
        };
        (!text.is_empty()).then_some(text)
    }

    /// A switch: true, false, yes, no, on, off, 1, 0. One that cannot be read has the value `strict`, which restricts.
    pub(crate) fn flag(&mut self, key: &'static str, default: bool, strict: bool) -> bool {
        let Some(value) = self.value(key) else { return default };
        match plain_text(value).to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => true,
            "false" | "no" | "off" | "0" => false,
            other => {
                let other: String = other.chars().take(40).collect();
                self.warn(
                    key,
                    &format!("is `{other}` and neither true nor false; {strict} counts, which restricts"),
                );
                strict
            }
        }
    }

    /// A list of names: a YAML list, or a text with commas or blanks between them.
    pub(crate) fn names(&mut self, key: &'static str) -> Vec<String> {
        match self.value(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().map(plain_text).filter(|item| !item.is_empty()).collect()
            }
            Some(Value::Object(_)) => {
                self.warn(key, "is not a list, so it has no effect");
                Vec::new()
            }
            Some(other) => {
                let text = plain_text(other);
                text.split([',', ' ', '\n', '\t'])
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect()
            }
        }
    }

    /// A list of tools: like names, but blanks and commas inside parentheses belong to a rule.
    pub(crate) fn tools(&mut self, key: &'static str) -> Option<Vec<String>> {
        match self.value(key)? {
            Value::Array(items) => {
                Some(items.iter().flat_map(|item| split_tool_list(&plain_text(item))).collect())
            }
            Value::Object(_) => {
                self.reject(key, "is not a list of tools, so it has no effect");
                None
            }
            other => {
                let text = plain_text(other);
                // `- Read` on one line: the dash belongs to a list that was never written as one.
                Some(split_tool_list(&text).into_iter().filter(|tool| tool != "-").collect())
            }
        }
    }

    /// A limit: a whole number from 1.
    pub(crate) fn limit(&mut self, key: &'static str) -> Option<u64> {
        let text = plain_text(self.value(key)?);
        let number = text.parse().ok().filter(|number| *number > 0);
        if number.is_none() {
            self.reject(key, "must be a whole number from 1");
        }
        number
    }

    /// Adds a warning about a field.
    pub(crate) fn warn(&mut self, key: &'static str, message: &str) {
        self.problems.push(CapabilityProblem::warning(self.front.line_of(key), format!("`{key}` {message}")));
    }

    /// Adds a problem of a field whose value cannot be used: an error if the field restricts.
    fn reject(&mut self, key: &'static str, message: &str) {
        self.problems.push(CapabilityProblem {
            line: self.front.line_of(key),
            severity: severity_without(key),
            message: format!("`{key}` {message}"),
        });
    }

    /// Ends reading: fields that nothing asked for are noted, with the field that was probably meant.
    pub(crate) fn finish(mut self) -> Vec<CapabilityProblem> {
        for key in self.front.fields.keys().filter(|key| !self.asked.contains(key.as_str())) {
            let line = self.front.line_of(key);
            let shown: String = key.chars().take(60).collect();
            let known = self.asked.iter().copied();
            self.problems.push(match find_intended_name(key, known) {
                Some(meant) => CapabilityProblem {
                    line,
                    severity: severity_without(meant),
                    message: format!("`{shown}` is not a known field and has no effect; write `{meant}`"),
                },
                None => {
                    CapabilityProblem::note(line, format!("`{shown}` is not a known field and has no effect"))
                }
            });
        }
        self.problems
    }
}

/// Fields that limit what a skill or an agent may do. A file whose author meant to write one is not used without it.
const RESTRICTING_FIELDS: [&str; 9] = [
    "disable-model-invocation",
    "disallowed-tools",
    "disallowedTools",
    "hooks",
    "isolation",
    "maxTurns",
    "permissionMode",
    "tools",
    "user-invocable",
];

/// How bad it is that a field has no effect.
fn severity_without(field: &str) -> CapabilitySeverity {
    match RESTRICTING_FIELDS.contains(&field) {
        true => CapabilitySeverity::Error,
        false => CapabilitySeverity::Warning,
    }
}

/// A scalar as text; of anything else its JSON.
pub(crate) fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Splits a list of tools at commas and blanks outside parentheses: `Bash(git log *)` stays one rule.
pub fn split_tool_list(text: &str) -> Vec<String> {
    let mut tools = Vec::new();
    let mut depth = 0usize;
    let mut tool = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            tools.push(std::mem::take(&mut tool));
        } else {
            tool.push(c);
        }
    }
    tools.push(tool);
    tools.retain(|tool| !tool.is_empty());
    tools
}
