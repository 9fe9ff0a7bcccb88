//! Schemas of the files that people write, and checking a file against them line by line.
//!
//! The schemas are made from the types in [`shape`](super::values), so they cannot drift from what is read.
//! The check walks file and schema side by side, because a schema library knows JSON pointers but no lines.

use super::document::{SettingsNode, SettingsNodeKind};
use super::values::{HookGroup, SettingsValues};
use crate::hooks::HookOutput;
use schemars::JsonSchema;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use toolgate_gate::schema::schema_of;

/// A file of hooks alone, as plugins bring it.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used here")]
struct HooksFile {
    /// What they are for.
    description: Option<String>,
    /// Programs and servers that are told of calls, by moment.
    hooks: BTreeMap<String, Vec<HookGroup>>,
}

/// A schema and the name it is published under.
#[derive(Debug, Clone)]
pub struct PublishedSchema {
    /// The file's name, below `docs/schemas/`.
    pub name: &'static str,
    /// The schema.
    pub schema: Value,
}

/// Every schema, as published under `docs/schemas/`.
pub fn published_schemas() -> Vec<PublishedSchema> {
    [
        ("settings.schema.json", "toolgate settings", settings_schema().clone()),
        ("hooks.schema.json", "a plugin's hooks", allow_unknown_keys(schema_of::<HooksFile>())),
        ("mcp.schema.json", "a list of MCP servers", super::content_check::servers_schema().clone()),
        ("hook-output.schema.json", "what a hook prints", allow_unknown_keys(schema_of::<HookOutput>())),
    ]
    .into_iter()
    .map(|(name, title, schema)| PublishedSchema { name, schema: add_header(name, title, schema) })
    .collect()
}

/// The schema of a settings file.
pub fn settings_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| allow_unknown_keys(schema_of::<SettingsValues>()))
}

/// The same without its words, for checking files.
///
/// Kept as text: to make it from the types takes longer than anything else in a start. A test compares the two.
pub(super) fn settings_check_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        serde_json::from_str(include_str!("check.json")).unwrap_or_else(|_| settings_schema().clone())
    })
}

fn add_header(name: &str, title: &str, schema: Value) -> Value {
    let mut out = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:toolgate:{name}"),
        "title": title,
    });
    if let (Value::Object(out), Value::Object(schema)) = (&mut out, schema) {
        out.extend(schema);
    }
    out
}

/// The same schema, open to keys that it does not know: they are kept and reported, not refused.
fn allow_unknown_keys(mut schema: Value) -> Value {
    fn open(schema: &mut Value) {
        match schema {
            Value::Object(map) => {
                if map.contains_key("properties") {
                    map.shift_remove("additionalProperties");
                }
                map.values_mut().for_each(open);
            }
            Value::Array(items) => items.iter_mut().for_each(open),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    open(&mut schema);
    schema
}

/// What a check found.
#[derive(Debug, Default)]
pub(crate) struct SchemaFindings {
    /// What does not fit, with its line.
    pub(crate) wrong: Vec<(usize, String)>,
    /// Keys that the schema does not know, with their lines.
    pub(crate) unknown: Vec<(usize, String)>,
}

/// Checks a file against a schema.
pub(crate) fn check(node: &SettingsNode, schema: &Value) -> SchemaFindings {
    let mut findings = SchemaFindings::default();
    walk(node, schema, "", &mut findings);
    findings
}

fn walk(node: &SettingsNode, schema: &Value, place: &str, findings: &mut SchemaFindings) {
    if let Some(options) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let fits = |option: &&Value| {
            let mut tried = SchemaFindings::default();
            walk(node, option, place, &mut tried);
            tried.wrong.is_empty()
        };
        match options.iter().find(fits) {
            Some(option) => walk(node, option, place, findings),
            None => {
                let wanted: Vec<String> = options.iter().map(describe_expected).collect();
                findings.wrong.push((node.line, mismatch_message(node, place, &wanted.join(" or "))));
            }
        }
        return;
    }
    if !is_of_type(node, schema) {
        findings.wrong.push((node.line, mismatch_message(node, place, &describe_expected(schema))));
        return;
    }
    match &node.kind {
        SettingsNodeKind::Scalar(value) => walk_scalar(node, value, schema, place, findings),
        SettingsNodeKind::List(items) => {
            if let Some(of) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    let place = if item.is_scalar() {
                        format!("an entry of {}", quote_place(place))
                    } else {
                        format!("{place}[{index}]")
                    };
                    walk(item, of, &place, findings);
                }
            }
        }
        SettingsNodeKind::Object(fields) => walk_object(node, fields, schema, place, findings),
    }
}

fn walk_scalar(
    node: &SettingsNode,
    value: &Value,
    schema: &Value,
    place: &str,
    findings: &mut SchemaFindings,
) {
    let listed = schema.get("enum").and_then(Value::as_array);
    let one = schema.get("const");
    if listed.is_some_and(|listed| !listed.contains(value)) || one.is_some_and(|one| one != value) {
        findings.wrong.push((node.line, mismatch_message(node, place, &describe_expected(schema))));
    }
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        if let Some(least) = limit("minimum").filter(|least| number < *least) {
            findings.wrong.push((node.line, mismatch_message(node, place, &format!("at least {least}"))));
        }
        if let Some(most) = limit("maximum").filter(|most| number > *most) {
            findings.wrong.push((node.line, mismatch_message(node, place, &format!("at most {most}"))));
        }
    }
}

fn walk_object(
    node: &SettingsNode,
    fields: &[(String, SettingsNode)],
    schema: &Value,
    place: &str,
    findings: &mut SchemaFindings,
) {
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    for (key, value) in fields {
        let place = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
        match (known.and_then(|known| known.get(key)), others) {
            (Some(schema), _) => walk(value, schema, &place, findings),
            (None, Some(schema)) if known.is_none() => walk(value, schema, &place, findings),
            (None, _) if known.is_some() => findings.unknown.push((value.line, place)),
            (None, _) => {}
        }
    }
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = required.as_str().unwrap_or_default();
        if !fields.iter().any(|(key, _)| key == name) {
            findings.wrong.push((node.line, format!("{} lacks `{name}`", quote_place(place))));
        }
    }
}

fn is_of_type(node: &SettingsNode, schema: &Value) -> bool {
    let fits = |kind: &Value| match (kind.as_str().unwrap_or_default(), &node.kind) {
        ("object", SettingsNodeKind::Object(_)) | ("array", SettingsNodeKind::List(_)) => true,
        ("string", SettingsNodeKind::Scalar(value)) => value.is_string(),
        ("boolean", SettingsNodeKind::Scalar(value)) => value.is_boolean(),
        ("number", SettingsNodeKind::Scalar(value)) => value.is_number(),
        ("integer", SettingsNodeKind::Scalar(value)) => value.is_u64() || value.is_i64(),
        ("null", SettingsNodeKind::Scalar(value)) => value.is_null(),
        _ => false,
    };
    match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(fits),
        Some(kind) => fits(kind),
    }
}

fn describe_expected(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> = options.iter().map(Value::to_string).collect();
        return match words.as_slice() {
            [only] => only.clone(),
            words => format!("one of {}", words.join(", ")),
        };
    }
    if let Some(one) = schema.get("const") {
        return one.to_string();
    }
    let of = |schema: &Value| schema.get("type").and_then(Value::as_str).map(str::to_owned);
    match of(schema).as_deref() {
        Some("array") => match schema.get("items").and_then(of) {
            Some(item) => format!("a list of {item}s"),
            None => "a list".to_owned(),
        },
        Some("object") => "an object".to_owned(),
        Some("integer") => "a whole number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(kind) => format!("a {kind}"),
        None => "something else".to_owned(),
    }
}

fn mismatch_message(node: &SettingsNode, place: &str, wanted: &str) -> String {
    format!("{} is {}, but must be {wanted}", quote_place(place), node.describe())
}

fn quote_place(place: &str) -> String {
    match place {
        "" => "the settings".to_owned(),
        place if place.starts_with("an entry of ") => place.to_owned(),
        place => format!("`{place}`"),
    }
}
