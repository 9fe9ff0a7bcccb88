//! `Tool(param:value)`: deny and ask rules on one top-level field of the input.

use crate::wild::Wild;
use serde_json::{Map, Value};
use std::collections::HashMap;
use toolgate_proto::ToolIdentity;

/// A field and the value it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamPattern {
    tool: String,
    param: String,
    value: Wild,
}

/// Fields that other rule kinds speak of, with the meaning that counts.
const PRIMARY: [&str; 5] = ["command", "file_path", "path", "notebook_path", "url"];

/// What a content of the form `key:value` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// A rule on a field.
    Param(ParamPattern),
    /// A field that only its own rule kind may judge.
    Primary(String),
}

/// Reads a content as `param:value`, if for this tool it is one.
/// Where contents have a grammar of their own, only the tool's known fields count as such.
pub(crate) fn parse(tool: &str, content: &str) -> Option<Keyed> {
    let (param, value) = content.split_once(':')?;
    let field = param.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && param.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !field || value.is_empty() {
        return None;
    }
    let known: Option<&[&str]> = match super::tool::family(tool) {
        "Bash" | "PowerShell" => Some(&[
            "timeout",
            "description",
            "run_in_background",
            "background",
            "dangerouslyDisableSandbox",
            "dangerously_disable_sandbox",
        ]),
        "Read" => Some(&["offset", "limit", "pages", "allow_large"]),
        "Edit" => Some(&["old_string", "new_string", "replace_all"]),
        "WebFetch" => Some(&["prompt", "offset"]),
        "Skill" => Some(&["args"]),
        "Agent" => Some(&[
            "description",
            "prompt",
            "model",
            "effort",
            "run_in_background",
            "name",
            "isolation",
            "team_name",
            "mode",
        ]),
        _ => None,
    };
    if PRIMARY.contains(&param) {
        return Some(Keyed::Primary(param.to_owned()));
    }
    if known.is_some_and(|known| !known.contains(&param)) {
        return None;
    }
    Some(Keyed::Param(ParamPattern {
        tool: super::tool::canonical(tool).to_owned(),
        param: param.to_owned(),
        value: Wild::new(value),
    }))
}

/// Parameter rules of one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParamIndex(HashMap<String, Vec<(u32, ParamPattern)>>);

impl ParamIndex {
    pub(crate) fn add(&mut self, id: u32, pattern: ParamPattern) {
        self.0.entry(pattern.tool.clone()).or_default().push((id, pattern));
    }

    /// The first rule that a field of the input fits. A field that is absent, or no scalar, fits nothing.
    pub(crate) fn find(&self, tool: &ToolIdentity, input: &Map<String, Value>) -> Option<u32> {
        if self.0.is_empty() {
            return None;
        }
        let names = std::iter::once(tool.name.as_str()).chain(tool.also.iter().map(String::as_str));
        names
            .filter_map(|name| self.0.get(name))
            .flatten()
            .filter(|(_, pattern)| {
                input.get(&pattern.param).and_then(scalar).is_some_and(|text| pattern.value.matches(&text))
            })
            .map(|(id, _)| *id)
            .min()
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
