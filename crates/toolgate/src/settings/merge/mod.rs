//! How settings files are merged.
//!
//! [`key_rules`](key_rules()) declares a rule for each key, and one function implements the rules. The table is built from
//! the fields of the types in [`values`](super::values): a field without a rule does not compile, and a test compares the
//! names with the schema.
//! All other code reads the merged values or the active values of one file, never the unfiltered content of a file.

mod key_rules;

pub(super) use key_rules::find_merge_rule;
pub use key_rules::{CombineStrategy, KeyRule, MergeRule, key_rules, key_table};

use CombineStrategy::{AnyTrue, ByFile, ByName, Narrow, Pool, Strongest};
use MergeRule::{
    AddDeny, DenyWins, Group, Inert, ManagedOnly, NeedsTrust, Smallest, StricterBook, StricterMode, Tighten,
    UserOnly,
};
use serde_json::{Map, Value};
use toolgate_policy::Layer;
use toolgate_proto::Mode;

/// One file as an input of the merge.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeInput<'a> {
    /// Its content, with absolute paths.
    pub(super) value: &'a Value,
    /// Its layer.
    pub(super) layer: Layer,
    /// False for the files of an untrusted project.
    pub(super) trusted: bool,
    /// Its allow rules that the user granted at a prompt.
    pub(super) granted: &'a [String],
}

impl MergeInput<'_> {
    /// The value of a key, if it is active in this file.
    fn effective_value(&self, rule: MergeRule, value: &Value) -> Option<Value> {
        if value.is_null() {
            return None;
        }
        let from_project = matches!(self.layer, Layer::Project | Layer::Local);
        let is_active = match rule {
            Group => false,
            Inert | AddDeny | Smallest | StricterMode | StricterBook => true,
            DenyWins(tight) | Tighten(tight) => self.trusted || is_switch_value(value, tight),
            NeedsTrust(_) => self.trusted,
            UserOnly(_) => !from_project,
            ManagedOnly(_) => self.layer == Layer::Managed,
        };
        is_active.then(|| value.clone())
    }

    /// The active values of the file.
    pub(super) fn effective_values(&self) -> Value {
        let mut out = Map::new();
        for key in key_rules() {
            let Some(value) = value_at(self.value, &key.path) else { continue };
            let active = self.effective_value(key.rule, value).or_else(|| self.granted_rules(key, value));
            if let Some(active) = active {
                insert_at(&mut out, &key.path, active);
            }
        }
        Value::Object(out)
    }

    /// The allow rules that the user granted, which are active without trust.
    fn granted_rules(&self, key: &KeyRule, value: &Value) -> Option<Value> {
        if self.granted.is_empty() || key.name() != "permissions.allow" {
            return None;
        }
        let granted =
            |rule: &&Value| rule.as_str().is_some_and(|rule| self.granted.iter().any(|it| it == rule));
        Some(value.as_array()?.iter().filter(granted).cloned().collect())
    }

    /// The keys whose value is inactive or partly inactive, because the file is untrusted or of the wrong layer.
    pub(super) fn inactive_keys(&self) -> Vec<&'static KeyRule> {
        let is_inactive = |key: &&KeyRule| {
            value_at(self.value, &key.path).is_some_and(|value| {
                let active = self.effective_value(key.rule, value).or_else(|| self.granted_rules(key, value));
                is_nonempty_value(value) && active.as_ref() != Some(value)
            })
        };
        key_rules().iter().filter(is_inactive).collect()
    }
}

/// Merges files, given the strongest first. Keys that are not combined are left out.
pub(super) fn merge(files: &[MergeInput<'_>]) -> Value {
    let mut out = Map::new();
    if files.is_empty() {
        return Value::Object(out);
    }
    // If bypass is forbidden, it acts as mode default, and other modes are compared with that.
    let bypass_is_off = files.iter().any(|file| {
        let off = |path: &[&str]| path.iter().try_fold(file.value, |value, name| value.get(name));
        let key = "disableBypassPermissionsMode";
        [off(&["permissions", key]), off(&["managed", key])]
            .into_iter()
            .flatten()
            .any(|value| is_switch_value(value, true))
    });
    for key in key_rules() {
        let mut merged: Option<Value> = None;
        for file in files.iter().rev() {
            let Some(value) = value_at(file.value, &key.path) else { continue };
            if let Some(value) = file.effective_value(key.rule, value) {
                if key.rule == StricterMode {
                    let mode = |value: &Value| match value.as_str()?.parse().ok()? {
                        Mode::Bypass if bypass_is_off => Some(Mode::Default),
                        mode => Some(mode),
                    };
                    let before = merged.as_ref().and_then(mode).unwrap_or_default();
                    if file.trusted || mode(&value).is_some_and(|mode| is_stricter(mode, before)) {
                        merged = Some(value);
                    }
                } else {
                    combine_into(key.rule, &mut merged, value);
                }
            }
        }
        if let Some(merged) = merged {
            insert_at(&mut out, &key.path, merged);
        }
    }
    Value::Object(out)
}

/// Combines the value of a stronger file with the merged value of the weaker ones.
fn combine_into(rule: MergeRule, merged: &mut Option<Value>, value: Value) {
    let how = match rule {
        Group | Inert | StricterBook | StricterMode => return,
        AddDeny => Pool,
        DenyWins(tight) => {
            if !merged.as_ref().is_some_and(|merged| is_switch_value(merged, tight)) {
                *merged = Some(value);
            }
            return;
        }
        Tighten(_) => Strongest,
        Smallest => {
            let smaller = |before: &Value| before.as_u64() <= value.as_u64();
            if !merged.as_ref().is_some_and(smaller) {
                *merged = Some(value);
            }
            return;
        }
        NeedsTrust(how) | UserOnly(how) | ManagedOnly(how) => how,
    };
    match (how, value) {
        (ByFile | Narrow, _) => {}
        (Pool, Value::Array(mut stronger)) => {
            if let Some(Value::Array(weaker)) = merged.take() {
                stronger.extend(weaker);
            }
            *merged = Some(Value::Array(stronger));
        }
        (ByName, Value::Object(stronger)) => match merged {
            Some(Value::Object(weaker)) => weaker.extend(stronger),
            _ => *merged = Some(Value::Object(stronger)),
        },
        (AnyTrue, value) => {
            if !merged.as_ref().is_some_and(|merged| is_switch_value(merged, true)) {
                *merged = Some(value);
            }
        }
        (Strongest | Pool | ByName, value) => *merged = Some(value),
    }
}

/// Whether a mode is stricter than another for every call. Modes that are each stricter for some calls are not ordered.
pub(super) fn is_stricter(mode: Mode, than: Mode) -> bool {
    let less_strict = |mode: Mode| -> &'static [Mode] {
        match mode {
            Mode::Bypass => &[],
            Mode::AcceptEdits => &[Mode::Bypass],
            Mode::Default => &[Mode::Bypass, Mode::AcceptEdits],
            // An allow rule for a change applies in dontAsk and not in plan; approval is possible in plan and not in
            // dontAsk.
            Mode::Plan | Mode::DontAsk => &[Mode::Bypass, Mode::AcceptEdits, Mode::Default],
            Mode::Deny => &[Mode::Bypass, Mode::AcceptEdits, Mode::Default, Mode::Plan, Mode::DontAsk],
        }
    };
    less_strict(mode).contains(&than)
}

/// Whether a switch has this value. The word `disable` means true.
pub(super) fn is_switch_value(value: &Value, expected: bool) -> bool {
    match value {
        Value::Bool(flag) => *flag == expected,
        Value::String(word) => expected && word == "disable",
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether a value is not null and not an empty list or object.
fn is_nonempty_value(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The value at a path.
pub(super) fn value_at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Sets the value at a path, and creates the objects above it.
pub(super) fn insert_at(object: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            object.insert(name.clone(), value);
        }
        [name, rest @ ..] => {
            let below = object.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                insert_at(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::settings_schema;
    use super::*;

    /// Every key of the schema, without the keys inside a value that has one rule.
    fn keys(schema: &Value, path: &mut Vec<String>, out: &mut Vec<String>) {
        let declared = |path: &[String]| key_rules().iter().any(|key| key.path == path);
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if path.is_empty() || !declared(path) => {
                for (name, below) in properties {
                    path.push(name.clone());
                    keys(below, path, out);
                    path.pop();
                }
            }
            _ => out.push(path.join(".")),
        }
    }

    #[test]
    fn the_table_and_the_schema_name_the_same_keys() {
        let mut written = Vec::new();
        keys(settings_schema(), &mut Vec::new(), &mut written);
        let mut declared: Vec<String> = key_rules().iter().map(KeyRule::name).collect();
        written.sort();
        declared.sort();
        assert_eq!(written, declared);
    }

    #[test]
    fn strictness_of_modes_is_an_order() {
        for a in Mode::ALL {
            assert!(!is_stricter(a, a));
            for b in Mode::ALL {
                assert!(!(is_stricter(a, b) && is_stricter(b, a)), "{a} {b}");
                for c in Mode::ALL {
                    assert!(!(is_stricter(a, b) && is_stricter(b, c)) || is_stricter(a, c), "{a} {b} {c}");
                }
            }
        }
    }
}
