//! Structured output: the model returns a value of the schema that a caller wants, by calling a tool with that schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::{Mutex, PoisonError};
use toolgate_gate::{CallContext, Cleared, RegisterError, Source, SourceTools, Tool, ToolSpec};
use toolgate_proto::{CallResult, Intent, Output, SourceId};

/// The name of the tool.
pub const STRUCTURED_OUTPUT_TOOL: &str = "StructuredOutput";

/// The source of the tool.
#[derive(Debug, Clone)]
pub struct StructuredOutputSource {
    schema: Value,
}

/// What the model handed over last, kept in the session.
#[derive(Debug, Default)]
pub(crate) struct StructuredOutputSlot(Mutex<Option<Value>>);

impl StructuredOutputSlot {
    /// What was handed over, once.
    pub(crate) fn take(&self) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl StructuredOutputSource {
    /// A source for this schema, which must describe an object.
    pub fn new(schema: Value) -> Result<Self, String> {
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        if !is_object {
            return Err("the schema must have the type `object`".to_owned());
        }
        Ok(Self { schema })
    }
}

impl Source for StructuredOutputSource {
    /// The name of the source.
    fn id(&self) -> SourceId {
        SourceId::Sdk
    }

    fn tools(&self, tools: &SourceTools) -> Result<(), RegisterError> {
        tools.register(StructuredOutputTool { schema: self.schema.clone() })
    }
}

/// An output whose shape only the caller knows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
struct StructuredOutputInput(Map<String, Value>);

/// The tool that the model calls.
struct StructuredOutputTool {
    schema: Value,
}

impl Tool for StructuredOutputTool {
    type Input = StructuredOutputInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new(
            STRUCTURED_OUTPUT_TOOL,
            "Returns the final output in the shape that the user asked for. Call it once, when the work is done.",
        )
        .read_only()
        .with_input_schema(self.schema.clone())
    }

    fn intent(&self, _: &StructuredOutputInput, _: &CallContext) -> Intent {
        Intent::none("return the output")
    }

    async fn run(&self, input: StructuredOutputInput, cleared: Cleared) -> CallResult {
        let slot = cleared.context().session.state::<StructuredOutputSlot>();
        *slot.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Value::Object(input.0));
        Ok(Output::text("the output was taken over"))
    }
}
