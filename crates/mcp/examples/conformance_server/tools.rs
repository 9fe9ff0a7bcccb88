//! Tools that answer by themselves.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{Cleared, FnTool, Gate, ToolSpec};
use toolgate_proto::{CallResult, Code, Output, OutputBlock, Refusal, ResourceBody, SourceId};

/// One red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A moment of silence.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// Whatever a fixture is called with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct FixtureInput(pub(crate) Map<String, Value>);

/// Puts one fixture behind the gate.
pub(crate) fn put(
    gate: &Gate,
    name: &str,
    schema: Value,
    run: impl Fn(Map<String, Value>, Cleared) -> BoxFuture<'static, CallResult> + Send + Sync + 'static,
) {
    let mut spec = ToolSpec::new(name, format!("The fixture {name}."));
    spec.input_schema = Some(schema);
    let tool = FnTool::new(spec, move |input: FixtureInput, cleared| run(input.0, cleared));
    gate.register(SourceId::Sdk, tool).expect("fixtures have names of their own");
}

/// The schema of a fixture without arguments.
pub(crate) fn none() -> Value {
    json!({ "type": "object", "properties": {} })
}

fn fixed(gate: &Gate, name: &str, result: CallResult) {
    put(gate, name, none(), move |_, _| {
        let result = result.clone();
        Box::pin(async move { result })
    });
}

fn blocks(content: Vec<OutputBlock>) -> CallResult {
    Ok(Output::new(content))
}

pub(crate) fn register(gate: &Arc<Gate>) {
    let text = |text: &str| OutputBlock::Text { text: text.to_owned() };
    let image = || OutputBlock::Image { media_type: "image/png".to_owned(), data: PNG.to_owned() };
    let embedded = |uri: &str, media_type: &str, text: &str| OutputBlock::Embedded {
        uri: uri.to_owned(),
        media_type: Some(media_type.to_owned()),
        body: ResourceBody::Text { text: text.to_owned() },
    };
    fixed(gate, "test_simple_text", blocks(vec![text("This is a simple text response for testing.")]));
    fixed(gate, "test_image_content", blocks(vec![image()]));
    let sound = OutputBlock::Audio { media_type: "audio/wav".to_owned(), data: WAV.to_owned() };
    fixed(gate, "test_audio_content", blocks(vec![sound]));
    let resource =
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    fixed(gate, "test_embedded_resource", blocks(vec![resource]));
    let mixed =
        embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
    let mixed = vec![text("Multiple content types test:"), image(), mixed];
    fixed(gate, "test_multiple_content_types", blocks(mixed));
    let failure = Refusal::new(Code::ToolFailed, "This tool intentionally returns an error for testing");
    fixed(gate, "test_error_handling", Err(failure));
    fixed(gate, "test_trigger_prompt_change", blocks(vec![text("the prompts are as they were")]));
    fixed(gate, "test_reconnection", blocks(vec![text("the stream was kept open")]));

    put(gate, "test_tool_with_progress", none(), |_, cleared| {
        Box::pin(async move {
            for (part, word) in [(0.0, "begun"), (0.5, "half way"), (1.0, "done")] {
                cleared.progress().report_fraction(part, word);
                // Further apart than watchers are told, so that each is told by itself.
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
            Ok(Output::text("the work is done"))
        })
    });

    let changing = Arc::clone(gate);
    put(gate, "test_trigger_tool_change", none(), move |_, _| {
        let gate = Arc::clone(&changing);
        Box::pin(async move {
            if !gate.unregister(&SourceId::Sdk, "test_passing_tool") {
                fixed(&gate, "test_passing_tool", Ok(Output::text("here for now")));
            }
            Ok(Output::text("the tools changed"))
        })
    });

    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef", "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" }, "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] }, "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    put(gate, "json_schema_2020_12_tool", schema, |input, _| {
        Box::pin(async move { Ok(Output::text(Value::Object(input).to_string())) })
    });

    let headers = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "query": { "type": "string" },
    } });
    put(gate, "test_custom_headers", headers, |input, _| {
        Box::pin(async move { Ok(Output::text(Value::Object(input).to_string())) })
    });
}
