//! Schemas of the files that users write, and a validator that reports lines.
//!
//! The schemas are generated from the types in [`values`](super::values), so they always match what is read.
//! The validator walks the syntax tree and the schema together: a schema library reports JSON pointers, and users need
//! line numbers.

use super::node::{SettingsNode, SettingsNodeKind};
use super::values::{HookGroup, SettingsValues};
use crate::hooks::HookOutput;
use schemars::JsonSchema;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use toolgate_gate::schema::schema_of;

/// A file that contains only hooks, as plugins have.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used here")]
struct HooksFile {
    /// What the hooks are for.
    description: Option<String>,
    /// Programs, HTTP servers and MCP tools to run before and after calls, by event.
    hooks: BTreeMap<String, Vec<HookGroup>>,
}

/// A schema with its file name.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PublishedSchema {
    /// The file name in `docs/schemas/`.
    pub name: &'static str,
    /// The schema.
    pub schema: Value,
}

/// The schemas in `docs/schemas/`.
pub fn published_schemas() -> Vec<PublishedSchema> {
    [
        ("settings.schema.json", "toolgate settings", settings_schema().clone()),
        ("hooks.schema.json", "hooks of a plugin", allow_unknown_keys(schema_of::<HooksFile>())),
        ("mcp.schema.json", "a list of MCP servers", super::content_check::servers_schema().clone()),
        ("hook-output.schema.json", "output of a hook", allow_unknown_keys(schema_of::<HookOutput>())),
    ]
    .into_iter()
    .map(|(name, title, schema)| PublishedSchema { name, schema: add_header(name, title, schema) })
    .collect()
}

/// The schema of a settings file.
///
/// ```
/// use toolgate::settings::schema::settings_schema;
///
/// let deny = settings_schema().pointer("/properties/permissions/properties/deny").unwrap();
/// assert_eq!(deny["type"], "array");
/// ```
pub fn settings_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| allow_unknown_keys(schema_of::<SettingsValues>()))
}

/// The schema without descriptions, for validation.
///
/// It is stored as text, because generating it from the types takes longer than the rest of the start. A test compares
/// the two.
pub(super) fn settings_check_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        serde_json::from_str(include_str!("check.json")).unwrap_or_else(|_| settings_schema().clone())
    })
}

/// Adds the identification of a published schema.
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

/// Permits unknown keys at every level: they are reported instead of refused, because other programs use these files
/// too.
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

/// The result of a validation.
#[derive(Debug, Default)]
pub(crate) struct SchemaFindings {
    /// Violations, with their lines.
    pub(crate) wrong: Vec<(usize, String)>,
    /// Unknown keys.
    pub(crate) unknown: Vec<UnknownKey>,
}

/// A key that the schema does not name.
#[derive(Debug)]
pub(crate) struct UnknownKey {
    /// The line of its value.
    pub(crate) line: usize,
    /// Its path, such as `permissions.denny`.
    pub(crate) path: String,
    /// The key itself, which can have dots.
    pub(crate) name: String,
    /// The keys that its object can have.
    pub(crate) siblings: Vec<String>,
}

/// Validates a file against a schema.
pub(crate) fn check(node: &SettingsNode, schema: &Value) -> SchemaFindings {
    let mut findings = SchemaFindings::default();
    walk(node, schema, "", &mut findings);
    findings
}

/// Validates a node. Of alternatives the first one without violations is used.
fn walk(node: &SettingsNode, schema: &Value, path: &str, findings: &mut SchemaFindings) {
    if let Some(options) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
        let is_match = |option: &&Value| {
            let mut attempt = SchemaFindings::default();
            walk(node, option, path, &mut attempt);
            attempt.wrong.is_empty()
        };
        match options.iter().find(is_match) {
            Some(option) => walk(node, option, path, findings),
            None => {
                let wanted: Vec<String> = options.iter().map(describe_expected).collect();
                findings.wrong.push((node.line, mismatch_message(node, path, &wanted.join(" or "))));
            }
        }
        return;
    }
    if !is_of_type(node, schema) {
        findings.wrong.push((node.line, mismatch_message(node, path, &describe_expected(schema))));
        return;
    }
    match &node.kind {
        SettingsNodeKind::Scalar(value) => walk_scalar(node, value, schema, path, findings),
        SettingsNodeKind::List(items) => {
            if let Some(of) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    let path = if item.is_scalar() {
                        format!("an entry of {}", quote_place(path))
                    } else {
                        format!("{path}[{index}]")
                    };
                    walk(item, of, &path, findings);
                }
            }
        }
        SettingsNodeKind::Object(fields) => walk_object(node, fields, schema, path, findings),
    }
}

/// Validates `enum`, `const` and the range of a number.
fn walk_scalar(
    node: &SettingsNode,
    value: &Value,
    schema: &Value,
    path: &str,
    findings: &mut SchemaFindings,
) {
    let listed = schema.get("enum").and_then(Value::as_array);
    let one = schema.get("const");
    if listed.is_some_and(|listed| !listed.contains(value)) || one.is_some_and(|one| one != value) {
        findings.wrong.push((node.line, mismatch_message(node, path, &describe_expected(schema))));
    }
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        if let Some(min) = limit("minimum").filter(|min| number < *min) {
            findings.wrong.push((node.line, mismatch_message(node, path, &format!("at least {min}"))));
        }
        if let Some(max) = limit("maximum").filter(|max| number > *max) {
            findings.wrong.push((node.line, mismatch_message(node, path, &format!("at most {max}"))));
        }
    }
}

/// Validates the values of an object, and collects unknown and missing keys.
fn walk_object(
    node: &SettingsNode,
    fields: &[(String, SettingsNode)],
    schema: &Value,
    path: &str,
    findings: &mut SchemaFindings,
) {
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    for (key, value) in fields {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (known.and_then(|known| known.get(key)), others) {
            (Some(schema), _) => walk(value, schema, &path, findings),
            (None, Some(schema)) if known.is_none() => walk(value, schema, &path, findings),
            (None, _) => {
                if let Some(known) = known {
                    let siblings = known.keys().cloned().collect();
                    let name = key.clone();
                    findings.unknown.push(UnknownKey { line: value.line, path, name, siblings });
                }
            }
        }
    }
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = required.as_str().unwrap_or_default();
        if !fields.iter().any(|(key, _)| key == name) {
            findings.wrong.push((node.line, format!("{} must have `{name}`", quote_place(path))));
        }
    }
}

/// Whether a value has one of the schema's types.
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

/// What a schema accepts, for messages.
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
        Some("integer") => "an integer".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(kind) => format!("a {kind}"),
        None => "another value".to_owned(),
    }
}

/// The message for a value that the schema does not accept.
fn mismatch_message(node: &SettingsNode, path: &str, wanted: &str) -> String {
    format!("{} is {}, but must be {wanted}", quote_place(path), node.describe())
}

/// A path in a message.
fn quote_place(path: &str) -> String {
    match path {
        "" => "the settings".to_owned(),
        path if path.starts_with("an entry of ") => path.to_owned(),
        path => format!("`{path}`"),
    }
}
