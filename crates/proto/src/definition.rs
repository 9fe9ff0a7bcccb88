//! Tool definitions, in the formats that providers and clients take.
//!
//! Definitions sit at the start of prompts and in prompt caches: the same tools must give the same bytes,
//! run after run. So everything here keeps order and adds nothing that varies.

use crate::{SourceId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::str::FromStr;

/// A tool as the outside sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name a model calls it by.
    pub name: ToolName,
    /// The name for people.
    pub title: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the input, self-contained (no `$ref`).
    pub input_schema: Value,
    /// JSON Schema of the structured output, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Inputs that show how it is meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_examples: Vec<Value>,
    /// Older names that are still taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Who brought it.
    pub source: SourceId,
    /// What it does to the world, as hints for clients.
    pub annotations: ToolHints,
    /// Whether it may overlap with other calls.
    pub concurrency: ToolConcurrency,
    /// Most characters of a result before it is put into a file.
    pub max_result_chars: usize,
}

impl ToolDefinition {
    /// A definition with careful defaults: no hints, no examples, judged by effect, 30 000 characters.
    pub fn new(
        name: ToolName,
        description: impl Into<String>,
        input_schema: Value,
        source: SourceId,
    ) -> Self {
        Self {
            title: name.as_str().to_owned(),
            name,
            description: description.into(),
            input_schema,
            output_schema: None,
            input_examples: Vec::new(),
            aliases: Vec::new(),
            source,
            annotations: ToolHints::default(),
            concurrency: ToolConcurrency::ByEffect,
            max_result_chars: 30_000,
        }
    }
}

/// Hints for clients, in MCP's words. They follow from the tool's spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolHints {
    /// It changes nothing.
    pub read_only_hint: bool,
    /// It may remove or overwrite.
    pub destructive_hint: bool,
    /// Calling it twice is as calling it once.
    pub idempotent_hint: bool,
    /// It reaches beyond this machine.
    pub open_world_hint: bool,
}

/// Whether a tool may overlap with other calls, where its effects alone do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolConcurrency {
    /// Judge by the effects.
    ByEffect,
    /// Never beside any other call.
    Alone,
}

/// A format for definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DefinitionFormat {
    /// The `tools` array of the Messages API.
    Anthropic,
    /// The `tools` array of Chat Completions, as LiteLLM takes it too.
    Openai,
    /// The `tools` array of `generateContent`.
    Gemini,
    /// The result of MCP's `tools/list`.
    Mcp,
    /// Everything we know.
    Json,
}

impl DefinitionFormat {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Anthropic, Self::Openai, Self::Gemini, Self::Mcp, Self::Json];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for DefinitionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DefinitionFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no format; use anthropic, openai, gemini, mcp or json"))
    }
}

/// Renders definitions, in the order given.
pub fn render_definitions(definitions: &[ToolDefinition], format: DefinitionFormat) -> Value {
    match format {
        DefinitionFormat::Anthropic => definitions
            .iter()
            .map(|d| {
                json!({
                    "name": d.name,
                    "description": d.description,
                    "input_schema": with_examples(d),
                })
            })
            .collect(),
        DefinitionFormat::Openai => definitions
            .iter()
            .map(|d| {
                json!({
                    "type": "function",
                    "function": {
                        "name": d.name,
                        "description": d.description,
                        "parameters": with_examples(d),
                    },
                })
            })
            .collect(),
        DefinitionFormat::Gemini => {
            let declarations: Vec<Value> = definitions
                .iter()
                .map(|d| {
                    json!({
                        "name": d.name,
                        "description": d.description,
                        "parameters": open_api_subset(&d.input_schema),
                    })
                })
                .collect();
            json!([{ "functionDeclarations": declarations }])
        }
        DefinitionFormat::Mcp => {
            let tools: Vec<Value> = definitions
                .iter()
                .map(|d| {
                    let mut tool = Map::new();
                    tool.insert("name".into(), json!(d.name));
                    tool.insert("title".into(), json!(d.title));
                    tool.insert("description".into(), json!(d.description));
                    tool.insert("inputSchema".into(), with_examples(d));
                    if let Some(schema) = &d.output_schema {
                        tool.insert("outputSchema".into(), schema.clone());
                    }
                    tool.insert("annotations".into(), json!(d.annotations));
                    Value::Object(tool)
                })
                .collect();
            json!({ "tools": tools })
        }
        DefinitionFormat::Json => json!({ "tools": definitions }),
    }
}

/// Providers differ in where examples go; all of them take JSON Schema's own keyword.
fn with_examples(definition: &ToolDefinition) -> Value {
    let mut schema = definition.input_schema.clone();
    if let (Value::Object(map), false) = (&mut schema, definition.input_examples.is_empty()) {
        map.insert("examples".into(), json!(definition.input_examples));
    }
    schema
}

/// Gemini's `parameters` take only this part of OpenAPI's schema; other keywords are an error there.
fn open_api_subset(schema: &Value) -> Value {
    const GEMINI_SCHEMA_KEYWORDS: [&str; 15] = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
    ];
    let Value::Object(map) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let properties: Map<String, Value> = properties
                    .iter()
                    .map(|(name, property)| (name.clone(), open_api_subset(property)))
                    .collect();
                out.insert(key.clone(), Value::Object(properties));
            }
            ("items", _) => {
                out.insert(key.clone(), open_api_subset(value));
            }
            // Formats such as `uint64` come from Rust's types and are unknown there.
            ("format", Value::String(format))
                if !matches!(
                    format.as_str(),
                    "int32" | "int64" | "float" | "double" | "date-time" | "enum"
                ) => {}
            (kept, _) if GEMINI_SCHEMA_KEYWORDS.contains(&kept) => {
                out.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(out)
}
