//! Tool definitions, and their rendering in the formats of providers and clients.
//!
//! Providers cache prompts by their prefix, and definitions are at the start of a prompt: the same tools must give the
//! same bytes in every run. So everything here keeps the order of keys and adds nothing that varies.

use crate::{SourceId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::str::FromStr;

/// A tool, as models and clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name by which a model calls it.
    pub name: ToolName,
    /// The name that a user interface shows.
    pub title: String,
    /// What it does and when to use it, written for a model.
    pub description: String,
    /// The JSON Schema of the input. Self-contained, because providers do not resolve `$ref`.
    pub input_schema: Value,
    /// The JSON Schema of the structured output, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Example inputs; each is valid under `input_schema`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_examples: Vec<Value>,
    /// Older names that calls may still use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Where the tool comes from.
    pub source: SourceId,
    /// Hints for clients about its side effects.
    pub annotations: ToolHints,
    /// Whether calls of it may run beside other calls.
    pub concurrency: ToolConcurrency,
    /// A longer result is truncated for the model and saved in a file.
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

/// Hints for clients about side effects, as MCP defines them. They follow from the tool's spec; no decision uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolHints {
    /// A call changes nothing.
    pub read_only_hint: bool,
    /// A call may remove or overwrite something.
    pub destructive_hint: bool,
    /// A second call with the same input changes nothing more.
    pub idempotent_hint: bool,
    /// A call may access other machines.
    pub open_world_hint: bool,
}

/// Whether calls of a tool may run beside other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolConcurrency {
    /// The scheduler compares the effects of the calls.
    ByEffect,
    /// A call runs alone, because its effects do not describe what it touches.
    Alone,
}

/// A format in which definitions are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DefinitionFormat {
    /// The `tools` array of the Messages API.
    Anthropic,
    /// The `tools` array of Chat Completions, which LiteLLM accepts as well.
    Openai,
    /// The `tools` array of `generateContent`.
    Gemini,
    /// The result of MCP's `tools/list`.
    Mcp,
    /// Every field of [`ToolDefinition`].
    Json,
}

impl DefinitionFormat {
    /// Every format, in the order in which help texts list them.
    pub const ALL: [Self; 5] = [Self::Anthropic, Self::Openai, Self::Gemini, Self::Mcp, Self::Json];

    /// The name on the command line.
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
            .ok_or_else(|| format!("unknown format `{text}`; use anthropic, openai, gemini, mcp or json"))
    }
}

/// Renders definitions in the given order.
pub fn render_definitions(definitions: &[ToolDefinition], format: DefinitionFormat) -> Value {
    let render = |tool: fn(&ToolDefinition) -> Value| definitions.iter().map(tool).collect::<Vec<Value>>();
    match format {
        DefinitionFormat::Anthropic => Value::Array(render(anthropic_tool)),
        DefinitionFormat::Openai => Value::Array(render(openai_tool)),
        DefinitionFormat::Gemini => json!([{ "functionDeclarations": render(gemini_function) }]),
        DefinitionFormat::Mcp => json!({ "tools": render(mcp_tool) }),
        DefinitionFormat::Json => json!({ "tools": definitions }),
    }
}

/// The definition for the Messages API.
fn anthropic_tool(tool: &ToolDefinition) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": with_examples(tool) })
}

/// The definition for the APIs of OpenAI.
fn openai_tool(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": with_examples(tool),
        },
    })
}

/// The definition for Gemini.
fn gemini_function(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": open_api_subset(&tool.input_schema),
    })
}

/// The definition for MCP clients.
fn mcp_tool(tool: &ToolDefinition) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), json!(tool.name));
    out.insert("title".into(), json!(tool.title));
    out.insert("description".into(), json!(tool.description));
    out.insert("inputSchema".into(), with_examples(tool));
    if let Some(schema) = &tool.output_schema {
        out.insert("outputSchema".into(), schema.clone());
    }
    out.insert("annotations".into(), json!(tool.annotations));
    Value::Object(out)
}

/// The input schema with the examples in JSON Schema's own keyword: the fields for examples differ between providers,
/// and all of them accept this one.
fn with_examples(definition: &ToolDefinition) -> Value {
    let mut schema = definition.input_schema.clone();
    if let (Value::Object(map), false) = (&mut schema, definition.input_examples.is_empty()) {
        map.insert("examples".into(), json!(definition.input_examples));
    }
    schema
}

/// The part of a schema that Gemini accepts: it rejects a request with any other keyword.
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
            // schemars derives formats such as `uint64` from Rust types; Gemini rejects them.
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
