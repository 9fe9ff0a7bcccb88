//! The fields of an input as rules and books compare them: under the names of both toolsets, and in every spelling.

use super::command::to_absolute;
use super::generated_call::{GeneratedCall, GeneratedEffect};
use super::simulated_path::{CWD, HOME, resolve_path};
use serde_json::{Map, Value};

/// Whether a field of the call has a text that `matches` accepts, which also gets whether the value is a string. For a
/// rule that restricts, one text is enough; for an allow rule each value must have the text.
pub(super) fn has_field_text(
    call: &GeneratedCall,
    field: &str,
    restricts: bool,
    matches: impl Fn(&str, bool) -> bool,
) -> bool {
    let found = find_values(call, field, restricts);
    let has_text = |(value, is_path): &(&Value, bool)| {
        texts_of(value, *is_path, restricts).iter().any(|text| matches(text, value.is_string()))
    };
    if restricts {
        return found.iter().any(has_text);
    }
    let is_remote = matches!(call.effect, GeneratedEffect::Remote { .. });
    !found.is_empty()
        && found.iter().all(|one| {
            has_text(one)
                && match one {
                    (Value::String(text), true) => {
                        let path = resolve_path(&to_absolute(text));
                        let has = |path: &str| spell(path).iter().any(|text| matches(text, true));
                        has(&path.spelled) && has(&path.real)
                    }
                    (Value::String(text), false) => !is_remote || text.split('/').all(|name| name != ".."),
                    (
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_),
                        _,
                    ) => true,
                }
        })
}

/// The spellings of an absolute path: from the root, from the working directory and from the home directory.
fn spell(path: &str) -> Vec<String> {
    let mut spellings = vec![path.to_owned()];
    for (dir, start) in [(CWD, ""), (HOME, "~/")] {
        if path == dir {
            spellings.push(start.to_owned());
        }
        spellings.extend(path.strip_prefix(&format!("{dir}/")).map(|rest| format!("{start}{rest}")));
    }
    spellings
}

/// Other texts of a rule's own value, for fields that are not strings.
pub(super) fn other_texts(written: &str, restricts: bool) -> Vec<String> {
    match serde_json::from_str::<Value>(written) {
        Ok(value @ (Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            vec![to_plain(&value, restricts).to_string()]
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The values that the call has for a field, and whether each is a path.
fn find_values<'c>(call: &'c GeneratedCall, field: &str, restricts: bool) -> Vec<(&'c Value, bool)> {
    let is_built_in = !matches!(call.effect, GeneratedEffect::Remote { .. });
    let tools = match (restricts, is_built_in) {
        (true, _) => call.restricted_names(),
        (false, true) => vec![call.tool],
        (false, false) => Vec::new(),
    };
    let mut names = vec![field];
    let mut parts = Vec::new();
    for tool in tools {
        names.extend(match (tool, field) {
            ("Bash" | "shell", "run_in_background") => vec!["background"],
            ("Bash" | "shell", "background") => vec!["run_in_background"],
            ("Bash" | "shell", "timeout") => vec!["timeout_ms"],
            ("Bash" | "shell", "timeout_ms") => vec!["timeout"],
            ("Read" | "read_file" | "Write" | "write_file" | "Edit" | "edit_file", "file_path") => {
                vec!["path"]
            }
            ("Read" | "read_file" | "Write" | "write_file" | "Edit" | "edit_file", "path") => {
                vec!["file_path"]
            }
            ("Read" | "read_file", "offset") => vec!["startLine"],
            ("Read" | "read_file", "startLine") => vec!["offset"],
            ("Grep" | "grep", "directory") => vec!["path"],
            ("Edit" | "edit_file", "edits") if restricts => vec!["old_string", "new_string"],
            _ => Vec::new(),
        });
        if restricts && matches!((tool, field), ("Edit", "new_string")) {
            parts.push("replacement");
        }
    }
    names.sort_unstable();
    names.dedup();
    let is_path = |name: &str| is_built_in && matches!(name, "file_path" | "path" | "directory");
    let own = names.into_iter().filter_map(|name| Some((call.input.get(name)?, is_path(name))));
    let edits = call.input.get("edits").and_then(Value::as_array).into_iter().flatten();
    let of_parts = edits.flat_map(|edit| parts.iter().filter_map(|part| edit.get(*part)));
    own.chain(of_parts.map(|value| (value, false))).collect()
}

/// The texts of a value.
fn texts_of(value: &Value, is_path: bool, restricts: bool) -> Vec<String> {
    let plain = to_plain(value, false).to_string();
    match value {
        Value::String(text) if is_path && restricts => {
            let absolute = to_absolute(text);
            let path = resolve_path(&absolute);
            let spellings = [spell(&path.spelled), spell(&path.real)].concat();
            [text.clone(), absolute].into_iter().chain(spellings).collect()
        }
        Value::String(text) => vec![text.clone()],
        // Generated strings have quotes to escape, and nothing else.
        _ if restricts => {
            let unescaped = plain.replace("\\\"", "\"");
            vec![value.to_string(), plain, to_plain(value, true).to_string(), unescaped]
        }
        _ => vec![plain],
    }
}

/// The value with whole numbers as integers, and with its keys in order where `sorted` is set.
fn to_plain(value: &Value, sorted: bool) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 => {
                // Generated numbers are small. Zero has no sign.
                let text = format!("{:.0}", if float == 0.0 { 0.0 } else { float });
                text.parse::<i64>().map_or_else(|_| value.clone(), Value::from)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| to_plain(item, sorted)).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.iter().map(|(key, value)| (key.clone(), to_plain(value, sorted))).collect();
            if sorted {
                fields.sort_by(|one, other| one.0.cmp(&other.0));
            }
            Value::Object(fields.into_iter().collect::<Map<String, Value>>())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
