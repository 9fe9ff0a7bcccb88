//! validate: strict JSON, then the schema, then the tool's own type and checks.

use super::resolve::Found;
use crate::registry::RegisteredTool;
use crate::tool::Prepared;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_proto::{Code, Refusal, Stage, ToolIdentity, json};

/// An input that fits its tool.
pub(crate) struct Valid {
    pub(crate) tool: Arc<RegisteredTool>,
    pub(crate) prepared: Box<dyn Prepared>,
    input: Map<String, Value>,
}

impl Valid {
    pub(crate) fn identity(&self) -> &ToolIdentity {
        &self.tool.identity
    }

    pub(crate) fn input(&self) -> &Map<String, Value> {
        &self.input
    }
}

pub(crate) fn validate(found: Found, text: &str) -> Result<Valid, Refusal> {
    accept(found.tool, json::parse_object(text, json::Limits::CALL)?)
}

/// Takes an input that is JSON already: what a hook or an approver made of it.
pub(crate) fn accept(tool: Arc<RegisteredTool>, input: Map<String, Value>) -> Result<Valid, Refusal> {
    let whole = Value::Object(input);
    tool.checker.check(&whole)?;
    let Value::Object(input) = whole else {
        return Err(Refusal::new(Code::NotAnObject, "the input must be a JSON object"));
    };
    let prepared = tool.tool.read(&input).map_err(|refusal| refusal.at(Stage::Validate))?;
    Ok(Valid { tool, prepared, input })
}
