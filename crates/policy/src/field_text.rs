//! The texts by which field rules and policy books compare a field of the input.
//!
//! What a rule restricts must be found however the call spells it: a number with a fraction, an object with its keys in
//! another order, a field by its name in the other toolset. So a field has several texts for rules that restrict, of which
//! one must match. An allow rule is compared with one text, which means the same in every spelling. A path has one text for
//! each place where it leads: a rule that restricts holds for any of them, an allow rule only for all.

use serde_json::{Map, Value};
use toolgate_proto::{
    AbsPath, Effect, Intent, PathFacts, SourceId, ToolIdentity, Workspace, number_text, spelled_number_text,
};

/// Fields of built-in tools that name a file or a directory: one toolset takes absolute paths only, the other both.
const PATH_FIELDS: [&str; 6] = ["file_path", "path", "paths[]", "notebook_path", "directory", "cwd"];

/// Fields of built-in tools that are lists of paths.
const PATH_LIST_FIELDS: [&str; 1] = ["paths"];

/// The field of a built-in tool that names a skill, with and without the `/` of a command.
const SKILL_FIELD: &str = "skill";

/// The input of a call, for rules about its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallFields<'c> {
    /// The tool of the call.
    pub(crate) tool: &'c ToolIdentity,
    /// Its input.
    pub(crate) input: &'c Map<String, Value>,
    /// The directories where relative paths and `~/` begin.
    pub(crate) workspace: &'c Workspace,
    /// What the tool declares that it would do.
    pub(crate) intent: &'c Intent,
    /// Where the paths of the intent lead.
    pub(crate) facts: &'c PathFacts,
}

impl CallFields<'_> {
    /// Whether a text of the field is what a rule that restricts forbids. `matches` also gets whether the value is a
    /// string. A field that is absent never matches.
    pub(crate) fn has_restricted_text(&self, field: &str, matches: impl Fn(&str, bool) -> bool) -> bool {
        self.tool.restricted_fields(field).into_iter().any(|place| {
            let is_builtin = self.tool.source == SourceId::Builtin;
            let is_path = is_builtin && PATH_FIELDS.contains(&place);
            let is_skill = is_builtin && place == SKILL_FIELD;
            find_values(self.input, place).into_iter().any(|value| match value {
                Value::String(text) => {
                    matches(text, true)
                        || (is_path && self.path_spellings(text).iter().any(|path| matches(path, true)))
                        || (is_skill && skill_spellings(text).iter().any(|name| matches(name, true)))
                }
                other @ (Value::Null | Value::Bool(_)) => matches(&other.to_string(), false),
                other @ (Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    // As it is given, in its one spelling, and as a reader sees it without escapes.
                    matches(&other.to_string(), false)
                        || [(JsonKeys::AsGiven, true), (JsonKeys::Sorted, true), (JsonKeys::AsGiven, false)]
                            .into_iter()
                            .any(|(keys, escaped)| matches(&json_text(other, keys, escaped), false))
                }
            })
        })
    }

    /// Whether the text of the field is what an allow rule wants. If the tool has the field under two names, both must be.
    pub(crate) fn has_granted_text(&self, field: &str, matches: impl Fn(&str, bool) -> bool) -> bool {
        let places = self.tool.granted_fields(field).into_iter();
        let mut values =
            places.filter_map(|place| self.input.get(place).map(|value| (place, value))).peekable();
        values.peek().is_some()
            && values.all(|(place, value)| match value {
                Value::String(text) => {
                    matches(text, true) && self.leads_nowhere_else(place, text, |text| matches(text, true))
                }
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_)) => {
                    matches(&json_text(other, JsonKeys::AsGiven, true), false)
                        && self.has_plain_paths(place, other)
                }
            })
    }

    /// Whether what an allow rule wants of a text holds for every place where it leads as a path: without its `..`, and
    /// behind its symlinks. A text that is not a path leads nowhere.
    fn leads_nowhere_else(&self, place: &str, text: &str, matches: impl Fn(&str) -> bool) -> bool {
        if self.tool.source != SourceId::Builtin {
            // Where a tool of another source begins with relative paths is not known.
            return !text.split(['/', '\\']).any(|name| name == "..");
        }
        if !PATH_FIELDS.contains(&place) {
            return true;
        }
        let asked = self.absolute_path(text);
        let holds = |path: &AbsPath| self.spellings_of(path).iter().any(|spelling| matches(spelling));
        holds(&asked.lexical()) && self.real_path(&asked).is_ok_and(|real| real.is_none_or(holds))
    }

    /// Whether each path of a list is its own target: an allow rule is compared with the list as a whole.
    fn has_plain_paths(&self, place: &str, value: &Value) -> bool {
        let is_list = self.tool.source == SourceId::Builtin && PATH_LIST_FIELDS.contains(&place);
        let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        !is_list
            || items.map(|text| self.absolute_path(text)).all(|asked| {
                asked.lexical() == asked
                    && self.real_path(&asked).is_ok_and(|real| real.is_none_or(|real| *real == asked))
            })
    }

    /// Where a path leads; an error if that is not known, and `None` if the call touches no path.
    fn real_path(&self, asked: &AbsPath) -> Result<Option<&AbsPath>, UnknownTarget> {
        match self.facts.get(asked) {
            Some(fact) if fact.problem.is_none() => Ok(Some(&fact.real)),
            Some(_) => Err(UnknownTarget),
            None if self.intent.effects.iter().any(|effect| self.touches(effect, asked)) => {
                Err(UnknownTarget)
            }
            None => Ok(None),
        }
    }

    /// Whether an effect is an access to a path, so that the paths of the input were resolved.
    fn touches(&self, effect: &Effect, asked: &AbsPath) -> bool {
        match effect {
            Effect::Read { .. } | Effect::Write { .. } => true,
            Effect::Exec { command } => command.cwd == *asked && *asked != self.workspace.cwd,
            Effect::Fetch { .. }
            | Effect::Search { .. }
            | Effect::Delegate { .. }
            | Effect::Skill { .. }
            | Effect::Remote { .. }
            | Effect::Ask
            | Effect::State { .. }
            | Effect::Opaque => false,
        }
    }

    /// A path of the input as tools read it.
    fn absolute_path(&self, text: &str) -> AbsPath {
        match (text.strip_prefix("~/"), &self.workspace.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.workspace.cwd.join(text),
        }
    }

    /// The spellings of a path, of its text without `..`, and of the path behind its symlinks.
    fn path_spellings(&self, text: &str) -> Vec<String> {
        let asked = self.absolute_path(text);
        let lexical = asked.lexical();
        let real = self.real_path(&asked).ok().flatten().into_iter();
        let spellings = [&lexical].into_iter().chain(real).flat_map(|path| self.spellings_of(path));
        std::iter::once(asked.to_string()).chain(spellings).collect()
    }

    /// A path as it is spelled from the root, and below the working and the home directory, from there.
    fn spellings_of(&self, path: &AbsPath) -> Vec<String> {
        let below = |dir: &AbsPath, start: &str| {
            let rest = path.as_path().strip_prefix(dir.as_path()).ok()?;
            Some(format!("{start}{}", rest.to_string_lossy()))
        };
        let relative = below(&self.workspace.cwd, "");
        let in_home = self.workspace.home.as_ref().and_then(|home| below(home, "~/"));
        std::iter::once(path.to_string()).chain(relative).chain(in_home).collect()
    }
}

/// A path was not resolved.
struct UnknownTarget;

/// The spellings of a skill's name: `/deploy` is `deploy`.
fn skill_spellings(name: &str) -> [String; 2] {
    let plain = name.trim_start_matches('/');
    [plain.to_owned(), format!("/{plain}")]
}

/// The values at a place of the input: `field`, `field[]` for each item of a list, or `field[].key`.
fn find_values<'v>(input: &'v Map<String, Value>, place: &str) -> Vec<&'v Value> {
    let Some((field, key)) = place.split_once("[]") else {
        return input.get(place).into_iter().collect();
    };
    let items = input.get(field).and_then(Value::as_array).into_iter().flatten();
    match key.strip_prefix('.') {
        Some(key) => items.filter_map(|item| item.get(key)).collect(),
        None => items.collect(),
    }
}

/// The order of the keys of an object in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonKeys {
    /// That of the input.
    AsGiven,
    /// By name: two objects with the same content have the same text.
    Sorted,
}

/// A value as compact JSON in which each number has its one text; without `escaped`, strings stand between quotes as they
/// are.
fn json_text(value: &Value, keys: JsonKeys, escaped: bool) -> String {
    let mut text = String::new();
    write_json(value, keys, escaped, &mut text);
    text
}

/// Appends the text of a value. The parser of inputs limits how deep they are nested.
fn write_json(value: &Value, keys: JsonKeys, escaped: bool, text: &mut String) {
    match value {
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => write_string(string, escaped, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json(item, keys, escaped, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            if keys == JsonKeys::Sorted {
                fields.sort_unstable_by_key(|(key, _)| *key);
            }
            text.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(key, escaped, text);
                text.push(':');
                write_json(value, keys, escaped, text);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) => text.push_str(&value.to_string()),
    }
}

/// Appends a string in quotes.
fn write_string(string: &str, escaped: bool, text: &mut String) {
    if escaped {
        text.push_str(&Value::from(string).to_string());
    } else {
        text.push('"');
        text.push_str(string);
        text.push('"');
    }
}

/// The texts that a rule's own value stands for beside the text as written, if the value in the input is not a string:
/// `2.0` is the number 2, and a list or an object has one compact text. A rule that restricts also finds an integer that
/// JSON spells as a rounded float.
pub(crate) fn value_texts(written: &str, restricts: bool) -> Vec<String> {
    let mut texts: Vec<String> = spelled_number_text(written).into_iter().collect();
    let keys = if restricts { JsonKeys::Sorted } else { JsonKeys::AsGiven };
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Number(number)) if restricts => {
            let rounded = number.as_f64().and_then(serde_json::Number::from_f64);
            texts.extend(rounded.map(|number| number_text(&number)));
        }
        Ok(value @ (Value::Array(_) | Value::Object(_))) => texts.push(json_text(&value, keys, true)),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | Err(_) => {}
    }
    texts.retain(|text| text != written);
    texts.dedup();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_names_the_values_of_lists_too() {
        let input = json!({ "a": 1, "paths": ["x", "y"], "edits": [{ "target": "s" }, {}, 3] });
        let input = input.as_object().unwrap();
        assert_eq!(find_values(input, "a"), [&json!(1)]);
        assert_eq!(find_values(input, "paths[]"), [&json!("x"), &json!("y")]);
        assert_eq!(find_values(input, "edits[].target"), [&json!("s")]);
        assert!(find_values(input, "a[]").is_empty() && find_values(input, "b").is_empty());
    }

    #[test]
    fn the_text_of_a_value_is_json_that_means_the_same() {
        let value: Value =
            serde_json::from_str(r#"{"b":[1.0,2.5,null,true,"q\"\\"],"a":{"d":1e3,"c":-0.0}}"#).unwrap();
        assert_eq!(
            json_text(&value, JsonKeys::AsGiven, true),
            r#"{"b":[1,2.5,null,true,"q\"\\"],"a":{"d":1000,"c":0}}"#
        );
        assert_eq!(
            json_text(&value, JsonKeys::Sorted, false),
            r#"{"a":{"c":0,"d":1000},"b":[1,2.5,null,true,"q"\"]}"#
        );
    }

    #[test]
    fn the_value_of_a_rule_is_read_as_json_where_it_is_some() {
        for (written, restricts, texts) in [
            ("2.0", false, vec!["2"]),
            ("2", true, vec![]),
            ("9007199254740993.0", false, vec!["9007199254740993"]),
            ("9007199254740993", true, vec!["9007199254740992"]),
            ("9007199254740993", false, vec![]),
            (r#"{ "b": 1.0, "a": 2 }"#, true, vec![r#"{"a":2,"b":1}"#]),
            (r#"{ "b": 1.0, "a": 2 }"#, false, vec![r#"{"b":1,"a":2}"#]),
            ("true", true, vec![]),
            ("text", true, vec![]),
            ("2*", true, vec![]),
        ] {
            assert_eq!(value_texts(written, restricts), texts, "{written}");
        }
    }
}
