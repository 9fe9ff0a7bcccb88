//! The short form of a call: the name of a tool and the value of its main field, as the cases of a policy are written.
//!
//! The input is made from what the tool itself declares: its schema, the main field of its spec, and its examples. A table of
//! fields beside the tools would repeat their schemas; a tool that the table does not know would be refused for its input,
//! which looks like a denial by the policy.

use crate::gate::Gate;
use crate::registry::RegisteredTool;
use crate::stage::validate::validate_object;
use crate::tool::ToolSpec;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_proto::AbsPath;

/// The field for the value of a tool that has no field for it: the schema refuses it, with the fields that there are.
const UNKNOWN_FIELD: &str = "input";

impl Gate {
    /// The input of a call in short form, of a registered tool: `Bash ls` is `{"command": "ls"}`. A relative path starts
    /// from `cwd`. Other required fields get placeholders; where the tool refuses these, they are those of one of its
    /// examples. `None` if no tool has the name.
    pub fn build_short_form(&self, name: &str, value: &str, cwd: &AbsPath) -> Option<Map<String, Value>> {
        let tool = Arc::clone(self.current().registry.get(name)?);
        Some(build_input(&tool, value, cwd))
    }
}

/// The first input that the tool accepts; the one with placeholders if it accepts none.
fn build_input(tool: &Arc<RegisteredTool>, value: &str, cwd: &AbsPath) -> Map<String, Value> {
    let (spec, schema) = (tool.spec(), &tool.definition().input_schema);
    let mut placeholders = PlaceholderValues::default();
    let given = build_given_fields(spec, schema, value, cwd, &mut placeholders);
    let with_given = |mut input: Map<String, Value>| {
        input.extend(given.clone());
        input
    };
    let minimal = with_given(placeholders.required_fields_of(schema));
    // A schema cannot express everything that a tool checks; its examples pass the checks.
    let examples = spec.input_examples.iter().filter_map(Value::as_object).cloned();
    // Without a value an example may keep its own: the working directory is not a notebook.
    let unchanged = examples.clone().filter(|_| value.is_empty());
    let is_accepted = |input: &Map<String, Value>| validate_object(Arc::clone(tool), input.clone()).is_ok();
    let mut candidates = std::iter::once(minimal.clone()).chain(examples.map(with_given)).chain(unchanged);
    candidates.find(is_accepted).unwrap_or(minimal)
}

/// The fields that the value gives.
fn build_given_fields(
    spec: &ToolSpec,
    schema: &Value,
    value: &str,
    cwd: &AbsPath,
    placeholders: &mut PlaceholderValues,
) -> Map<String, Value> {
    let mut given = Map::new();
    let Some(main) = find_main_field(spec, schema) else {
        if !value.is_empty() {
            given.insert(UNKNOWN_FIELD.to_owned(), Value::from(value));
        }
        return given;
    };
    let (value, rest) = match (&spec.rest_field, value.split_once(' ')) {
        (Some(field), Some((value, rest))) => (value, Some((field, rest))),
        (Some(_) | None, _) => (value, None),
    };
    let value = match is_path_field(main) && !value.starts_with('~') {
        true => cwd.join(value).to_string(),
        false => value.to_owned(),
    };
    if !value.is_empty() {
        given.insert(main.to_owned(), placeholders.fill(field_schema(schema, main), &value));
    }
    given.extend(rest.map(|(field, rest)| (field.clone(), Value::from(rest))));
    given
}

/// The field that the value fills: the one of the spec, else the first required one, else the first text.
fn find_main_field<'t>(spec: &'t ToolSpec, schema: &'t Value) -> Option<&'t str> {
    let is_text = |field: &Value| type_of(field) == "string" && field.get("enum").is_none();
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut texts = fields.filter(|(_, field)| is_text(field)).map(|(name, _)| name.as_str());
    let required = || required_fields(schema).next();
    spec.main_field.as_deref().or_else(required).or_else(|| texts.next())
}

/// Whether a field has a path, by its name: a schema has no type for paths.
fn is_path_field(field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    field.ends_with("path") || field.ends_with("paths") || field == "directory"
}

/// The names of the required fields, in order.
fn required_fields(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The schema of a field; null, which permits everything, if it has none.
fn field_schema<'s>(schema: &'s Value, field: &str) -> &'s Value {
    schema.get("properties").and_then(|fields| fields.get(field)).unwrap_or(&Value::Null)
}

/// The type of the values; the first of several.
fn type_of(schema: &Value) -> &str {
    let kind = schema.get("type");
    let first = kind.and_then(Value::as_array).and_then(|kinds| kinds.first());
    first.or(kind).and_then(Value::as_str).unwrap_or("string")
}

/// Makes the values of fields that a short form does not give. No two of its texts are the same, because some tools refuse
/// that.
#[derive(Debug, Default)]
struct PlaceholderValues {
    /// The texts that were made.
    texts: usize,
}

impl PlaceholderValues {
    /// The required fields of an object.
    fn required_fields_of(&mut self, schema: &Value) -> Map<String, Value> {
        required_fields(schema)
            .map(|field| (field.to_owned(), self.make(field_schema(schema, field))))
            .collect()
    }

    /// A value that fits a schema.
    fn make(&mut self, schema: &Value) -> Value {
        let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|list| list.first());
        if let Some(value) = schema.get("const").or_else(|| first("enum")) {
            return value.clone();
        }
        if let Some(option) = first("anyOf").or_else(|| first("oneOf")) {
            return self.make(option);
        }
        match type_of(schema) {
            "object" => Value::Object(self.required_fields_of(schema)),
            "array" => self.list(schema, None),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| Value::from(0)),
            "boolean" => Value::Bool(false),
            "null" => Value::Null,
            _ => {
                self.texts += 1;
                Value::from(format!("stub-{}", self.texts))
            }
        }
    }

    /// The value that a text gives to a field: the first element of a list, the first required field of an object.
    fn fill(&mut self, schema: &Value, text: &str) -> Value {
        match type_of(schema) {
            "array" => self.list(schema, Some(text)),
            "object" => {
                let mut object = self.required_fields_of(schema);
                if let Some(first) = required_fields(schema).next() {
                    let value = self.fill(field_schema(schema, first), text);
                    object.insert(first.to_owned(), value);
                }
                Value::Object(object)
            }
            // A text that is not such a value is refused by the schema, with what it wants.
            "integer" | "number" | "boolean" => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
            }
            _ => Value::from(text),
        }
    }

    /// A list of the smallest permitted length, with at least one element.
    fn list(&mut self, schema: &Value, first: Option<&str>) -> Value {
        let items = schema.get("items").unwrap_or(&Value::Null);
        let length = schema.get("minItems").and_then(Value::as_u64).unwrap_or_default().max(1);
        let mut list = vec![match first {
            Some(text) => self.fill(items, text),
            None => self.make(items),
        }];
        list.extend((1..length).map(|_| self.make(items)));
        Value::Array(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fn_tool::FnTool;
    use crate::gate::GateParts;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;
    use toolgate_proto::{Output, SourceId};

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct PairInput {
        #[serde(rename = "left")]
        _left: String,
        #[serde(rename = "right")]
        _right: String,
        #[serde(rename = "filePath")]
        _path: Option<String>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct ListInput {
        #[serde(rename = "paths")]
        _paths: Vec<String>,
        #[serde(rename = "pairs")]
        _pairs: Vec<PairInput>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct SwitchInput {
        #[serde(rename = "on")]
        _on: Option<bool>,
    }

    fn gate() -> Gate {
        let gate = Gate::new(GateParts::default());
        let spec = |name: &str| ToolSpec::new(name, "A test.");
        let pair = |spec| FnTool::new(spec, |_: PairInput, _| async { Ok(Output::text("")) });
        gate.register(SourceId::Sdk, pair(spec("pair"))).unwrap();
        gate.register(SourceId::Sdk, pair(spec("file").with_main_field("filePath"))).unwrap();
        gate.register(SourceId::Sdk, pair(spec("words").with_rest_field("right"))).unwrap();
        let list = FnTool::new(spec("list"), |_: ListInput, _| async { Ok(Output::text("")) });
        gate.register(SourceId::Sdk, list).unwrap();
        let switch = FnTool::new(spec("switch"), |_: SwitchInput, _| async { Ok(Output::text("")) });
        gate.register(SourceId::Sdk, switch).unwrap();
        gate
    }

    fn short_form(name: &str, value: &str) -> Value {
        Value::Object(gate().build_short_form(name, value, &AbsPath::new("/ws").unwrap()).unwrap())
    }

    #[test]
    fn the_value_fills_the_main_field_and_the_rest_gets_placeholders() {
        assert_eq!(short_form("pair", "a b"), json!({ "left": "a b", "right": "stub-2" }));
        let file = json!({ "left": "stub-1", "right": "stub-2", "filePath": "/ws/x" });
        assert_eq!(short_form("file", "x"), file);
        assert_eq!(short_form("words", "a b c"), json!({ "left": "a", "right": "b c" }));
        let list = json!({ "paths": ["/ws/x"], "pairs": [{ "left": "stub-2", "right": "stub-3" }] });
        assert_eq!(short_form("list", "x"), list);
        assert_eq!(gate().build_short_form("none", "x", &AbsPath::root()), None);
    }

    #[test]
    fn a_call_without_a_value_is_complete_too() {
        assert_eq!(short_form("pair", ""), json!({ "left": "stub-1", "right": "stub-2" }));
        assert_eq!(short_form("switch", ""), json!({}));
        // The tool has no text, and its schema says so.
        assert_eq!(short_form("switch", "x"), json!({ "input": "x" }));
    }
}
