//! JSON schemas: generated from input types, and precise messages about inputs that do not match them.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, ValidationError, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::{LazyLock, OnceLock};
use toolgate_proto::{Code, Refusal, Stage, format_count, json, whole_number};

/// JSON schemas of other servers above this size are refused: some compile in exponential time.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// More problems of one input than this are not listed.
const MAX_REPORTED_PROBLEMS: usize = 8;

/// The JSON schema of an input type: self-contained, closed to unknown fields, without Rust-specific formats.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    // Models follow references badly, and some providers refuse them.
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = Value::from(schema);
    normalize_schema(&mut schema, true);
    schema
}

/// The same without redundancy, for definitions that are sent with every request.
pub(crate) fn input_schema_of<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>();
    compact_schema(&mut schema);
    schema
}

/// Removes what a model does not need, because every byte of a definition is paid for in each request.
fn compact_schema(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let (mut is_default_false, mut words) = (false, None);
            // One pass instead of a look-up for each key: definitions are made while a client waits for the first list.
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    // The default is false: it need not be written.
                    ("default", value) => is_default_false = *value == Value::Bool(false),
                    // Line breaks of the source mean nothing to a model.
                    ("description", Value::String(text)) if text.contains('\n') => {
                        *text = text.replace('\n', " ")
                    }
                    (key, value) if !is_data(key) => {
                        if key == "oneOf" {
                            words = string_choices(value);
                        }
                        compact_schema(value);
                    }
                    _ => {}
                }
            }
            if is_default_false {
                map.shift_remove("default");
            }
            if let Some(words) = words {
                map.shift_remove("oneOf");
                map.insert("type".to_owned(), Value::from("string"));
                map.insert("enum".to_owned(), words);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(compact_schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Examples and defaults are data, not schemas.
fn is_data(key: &str) -> bool {
    matches!(key, "default" | "examples" | "const" | "enum")
}

/// Brings a generated schema into the form that all providers accept: no titles of types, no formats of Rust, no `null` for
/// what may be left out, closed objects.
fn normalize_schema(schema: &mut Value, root: bool) {
    match schema {
        Value::Object(map) => {
            if root || map.contains_key("properties") {
                map.remove("title");
            }
            if root {
                // The tool's own description says what it is for; a type's doc comment is for readers of the source.
                map.shift_remove("description");
            }
            // `uint64` and the like are Rust's, and strict consumers refuse unknown formats.
            if map.get("format").and_then(Value::as_str).is_some_and(|f| {
                f.starts_with("uint") || f.starts_with("int") || f == "double" || f == "float"
            }) {
                map.remove("format");
            }
            // An optional field is one that may be left out, not one that may be null.
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            for key in ["enum", "anyOf"] {
                if let Some(Value::Array(options)) = map.get_mut(key) {
                    options.retain(|option| {
                        !option.is_null() && option.get("type").is_none_or(|kind| kind != "null")
                    });
                }
            }
            let single = match map.get_mut("anyOf") {
                Some(Value::Array(options)) if options.len() == 1 => options.pop(),
                _ => None,
            };
            if let Some(Value::Object(option)) = single {
                map.shift_remove("anyOf");
                for (key, value) in option {
                    map.entry(key).or_insert(value);
                }
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.shift_remove("default");
            }
            if map.get("type").is_some_and(|kind| kind == "object") && map.contains_key("properties") {
                map.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            for (key, value) in map.iter_mut() {
                if !is_data(key) {
                    normalize_subschema(key, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| normalize_schema(item, false)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An enumeration with a description for each value, as values only: the field's description explains them.
fn string_choices(choices: &Value) -> Option<Value> {
    let word = |choice: &Value| choice.get("const").filter(|word| word.is_string()).cloned();
    choices.as_array()?.iter().map(word).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// The values of `properties` are schemas; its keys are field names and stay.
fn normalize_subschema(key: &str, value: &mut Value) {
    match value {
        Value::Object(fields) if key == "properties" => {
            fields.values_mut().for_each(|field| normalize_schema(field, false));
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => normalize_schema(value, false),
    }
}

type LazySchemaFn = Box<dyn FnOnce() -> Value + Send + Sync>;

/// A compiled JSON schema.
#[derive(Debug)]
pub struct SchemaValidator {
    schema: LazyLock<Value, LazySchemaFn>,
    validator: OnceLock<Result<Validator, String>>,
}

impl SchemaValidator {
    /// Compiles a schema. References to other documents are never fetched.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let size = schema.to_string().len();
        if size > MAX_SCHEMA_BYTES {
            return Err(format!("the schema is {size} bytes, more than the {MAX_SCHEMA_BYTES} allowed"));
        }
        let schema = schema.clone();
        let checker = Self::deferred(move || schema);
        checker.validator().map_err(str::to_owned)?;
        Ok(checker)
    }

    /// The same for a schema that is known to be valid, as built-in ones are: it is compiled at first use,
    /// because compiling those of all tools takes longer than the rest of the start.
    pub fn deferred(make: impl FnOnce() -> Value + Send + Sync + 'static) -> Self {
        let make = move || {
            let mut schema = make();
            if let Value::Object(map) = &mut schema {
                // An unknown dialect would make the compiler fail; all that is used is in 2020-12.
                map.shift_remove("$schema");
            }
            schema
        };
        Self { schema: LazyLock::new(Box::new(make)), validator: OnceLock::new() }
    }

    /// The compiled schema, built at the first call of the tool.
    fn validator(&self) -> Result<&Validator, &str> {
        let compiled = self.validator.get_or_init(|| {
            jsonschema::options()
                .with_draft(Draft::Draft202012)
                .build(&self.schema)
                .map_err(|error| format!("the schema cannot be used: {error}"))
        });
        compiled.as_ref().map_err(String::as_str)
    }

    /// Validates an input. Each problem says where it is, what was given and what is wanted.
    pub fn check(&self, input: &Value) -> Result<(), Refusal> {
        let validator = self.validator().map_err(|problem| Refusal::new(Code::Internal, problem))?;
        if validator.is_valid(input) {
            return Ok(());
        }
        let mut problems: Vec<String> = Vec::new();
        for error in validator.iter_errors(input) {
            for line in self.explain(&error) {
                if !problems.contains(&line) {
                    problems.push(line);
                }
            }
            if problems.len() > MAX_REPORTED_PROBLEMS {
                problems.truncate(MAX_REPORTED_PROBLEMS);
                problems.push("and more".to_owned());
                break;
            }
        }
        Err(Refusal::new(Code::InvalidInput, problems.join("; ")))
    }

    /// Explains one violation in terms of fields: what was given, what is wanted, and the field that was probably
    /// meant.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the library's, and open")]
    fn explain(&self, error: &ValidationError<'_>) -> Vec<String> {
        let place = error.instance_path().as_str().to_owned();
        // A field of the input itself by its name, a nested one by its JSON pointer.
        let at = |step: &str| match place.as_str() {
            "" => format!("`{step}`"),
            _ => format!("`{place}/{}`", json::escape_pointer_key(step)),
        };
        let whole = match place.strip_prefix('/') {
            None => "the input".to_owned(),
            Some(field) if !field.contains(['/', '~']) => format!("`{field}`"),
            Some(_) => format!("`{place}`"),
        };
        let given = json::describe(error.instance());
        let wants = |what: String| vec![format!("{whole} is {given}, but must be {what}")];
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known = self.fields_at(error.schema_path().as_str());
                unexpected.iter().map(|field| unknown_field(&at(field), field, &known)).collect()
            }
            ValidationErrorKind::Required { property } => {
                let field = property.as_str().unwrap_or_default();
                vec![format!("field {} is missing", at(field))]
            }
            ValidationErrorKind::Type { kind } => wants(match kind {
                TypeKind::Single(kind) => with_article(&kind.to_string()),
                TypeKind::Multiple(kinds) => {
                    kinds.iter().map(|kind| with_article(&kind.to_string())).collect::<Vec<_>>().join(" or ")
                }
            }),
            ValidationErrorKind::Enum { options } => {
                let options = options.as_array().cloned().unwrap_or_default();
                let near = error.instance().as_str().and_then(|text| {
                    nearest(text, options.iter().filter_map(Value::as_str)).map(str::to_owned)
                });
                let words: Vec<String> = options.iter().map(Value::to_string).collect();
                let mut line = format!("{whole} is {given}, but must be one of {}", words.join(", "));
                if let Some(near) = near {
                    line.push_str(&format!("; did you mean `{near}`?"));
                }
                vec![line]
            }
            ValidationErrorKind::Minimum { limit } => wants(format!("at least {limit}")),
            ValidationErrorKind::Maximum { limit } => wants(format!("at most {limit}")),
            ValidationErrorKind::ExclusiveMinimum { limit } => wants(format!("more than {limit}")),
            ValidationErrorKind::ExclusiveMaximum { limit } => wants(format!("less than {limit}")),
            ValidationErrorKind::MinLength { limit } => {
                wants(describe_length("at least", *limit, "character"))
            }
            ValidationErrorKind::MaxLength { limit } => {
                wants(describe_length("at most", *limit, "character"))
            }
            ValidationErrorKind::MinItems { limit } => wants(describe_length("at least", *limit, "item")),
            ValidationErrorKind::MaxItems { limit } => wants(describe_length("at most", *limit, "item")),
            ValidationErrorKind::Pattern { pattern } => wants(format!("text that fits `{pattern}`")),
            ValidationErrorKind::Constant { expected_value } => wants(expected_value.to_string()),
            // Schemas of other servers may use the rest; the library's message serves there.
            _ => vec![format!("{whole}: {error}")],
        }
    }

    /// The fields that the schema knows at the place of an `additionalProperties` error.
    fn fields_at(&self, schema_path: &str) -> Vec<String> {
        let parent = schema_path.rsplit_once('/').map_or("", |(parent, _)| parent);
        self.schema
            .pointer(parent)
            .and_then(|schema| schema.get("properties"))
            .and_then(Value::as_object)
            .map(|fields| fields.keys().cloned().collect())
            .unwrap_or_default()
    }
}

/// The message for a field that the schema does not know.
fn unknown_field(place: &str, field: &str, known: &[String]) -> String {
    match nearest(field, known.iter().map(String::as_str)) {
        Some(near) => format!("unknown field {place}; did you mean `{near}`?"),
        None => format!("unknown field {place}; the fields are {}", format_fields(known)),
    }
}

/// Deserializes an input that matches the schema.
pub(crate) fn read_typed<T: DeserializeOwned>(input: &Map<String, Value>) -> Result<T, Refusal> {
    T::deserialize(Value::Object(input.clone())).or_else(|error| {
        // JSON has one kind of number, and for the schema `2.0` is an integer: models write it so.
        let mut with_integers = Value::Object(input.clone());
        write_whole_numbers_as_integers(&mut with_integers);
        T::deserialize(with_integers).map_err(|_| {
            Refusal::new(Code::InvalidInput, format!("the input does not fit: {error}"))
                .at_stage(Stage::Validate)
        })
    })
}

/// Replaces each floating-point number without a fraction by the integer, as policy compares it ([`whole_number`]).
fn write_whole_numbers_as_integers(value: &mut Value) {
    /// Up to here every integer is a floating-point number of its own; above, the model may have meant another one.
    const MAX_EXACT_INTEGER: i64 = 1 << 53;
    match value {
        Value::Number(number) if number.is_f64() => {
            let integer = whole_number(number).and_then(|integer| i64::try_from(integer).ok());
            if let Some(integer) = integer.filter(|it| (-MAX_EXACT_INTEGER..=MAX_EXACT_INTEGER).contains(it))
            {
                *value = Value::from(integer);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers_as_integers),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers_as_integers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The candidate that was probably meant.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let folded = given.to_lowercase();
    known
        .map(|candidate| (strsim::jaro_winkler(&folded, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate)
}

/// Field names in backticks, for a message.
fn format_fields(fields: &[String]) -> String {
    if fields.is_empty() {
        return "none".to_owned();
    }
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}

/// The name of a JSON type with its article.
fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// `at least 2 items long`, with a noun whose plural has an `s`.
fn describe_length(bound: &str, limit: u64, noun: &str) -> String {
    format!("{bound} {} long", format_count(limit, noun, &format!("{noun}s")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Sample {
        /// Which file.
        file_path: String,
        /// How many lines.
        #[schemars(range(min = 1))]
        limit: Option<u32>,
        /// What to give.
        output_mode: Option<GrepMode>,
        /// Changes to make.
        #[serde(default)]
        edits: Vec<Edit>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum GrepMode {
        Content,
        Count,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Edit {
        target: String,
    }

    fn refusal(input: Value) -> String {
        SchemaValidator::new(&schema_of::<Sample>()).unwrap().check(&input).unwrap_err().reason
    }

    #[test]
    fn a_schema_is_plain_and_closed() {
        let schema = schema_of::<Sample>();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["required"], json!(["file_path"]));
        assert_eq!(
            schema["properties"]["limit"],
            json!({"description": "How many lines.", "type": "integer", "minimum": 1})
        );
        assert_eq!(schema["properties"]["output_mode"]["enum"], json!(["content", "count"]));
        assert!(!schema.to_string().contains("$ref") && !schema.to_string().contains("null"), "{schema}");
    }

    #[test]
    fn a_problem_names_the_place_the_given_and_the_wanted() {
        for (input, says) in [
            (json!({"file_pth": "a"}), "field `file_path` is missing"),
            (
                json!({"file_path": "a", "file_pth": "b"}),
                "unknown field `file_pth`; did you mean `file_path`?",
            ),
            (json!({"file_path": 3}), "`file_path` is the number 3, but must be a string"),
            (json!({"file_path": null}), "`file_path` is null, but must be a string"),
            (json!({"file_path": "a", "limit": -1}), "`limit` is the number -1, but must be at least 1"),
            (json!({"file_path": "a", "limit": "5"}), "`limit` is the string \"5\", but must be an integer"),
            (
                json!({"file_path": "a", "output_mode": "contnt"}),
                "must be one of \"content\", \"count\"; did you mean `content`?",
            ),
            (
                json!({"file_path": "a", "edits": [{"target": "x"}, {"targt": "x", "target": "y"}]}),
                "unknown field `/edits/1/targt`; did you mean `target`?",
            ),
            (
                json!({"file_path": "a", "zzz": 1}),
                "the fields are `file_path`, `limit`, `output_mode`, `edits`",
            ),
        ] {
            let said = refusal(input);
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn foreign_schemas_are_bounded_and_fetch_nothing() {
        assert!(SchemaValidator::new(&json!({"description": "x".repeat(MAX_SCHEMA_BYTES)})).is_err());
        assert!(SchemaValidator::new(&json!({"$ref": "http://127.0.0.1:1/schema"})).is_err());
        assert!(SchemaValidator::new(&json!({"$schema": "urn:unknown", "type": "object"})).is_ok());
    }
}
