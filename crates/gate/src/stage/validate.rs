//! validate: strict JSON, then the schema, then the tool's own type and checks.

use super::resolve::ResolvedTool;
use crate::registry::RegisteredTool;
use crate::tool::ErasedCall;
use serde_json::{Map, Value};
use std::sync::Arc;
use toolgate_proto::{Code, Refusal, Stage, ToolIdentity, json};

/// An input that is valid for its tool.
pub(crate) struct ValidatedCall {
    pub(crate) tool: Arc<RegisteredTool>,
    pub(crate) prepared: Box<dyn ErasedCall>,
    input: Map<String, Value>,
    /// The identity of a call that the user must be asked about, where that does not hold for the tool as a whole.
    stricter: Option<Box<ToolIdentity>>,
}

impl ValidatedCall {
    /// The tool, as it is judged: a tool may be judged more strictly for some inputs.
    pub(crate) fn identity(&self) -> &ToolIdentity {
        self.stricter.as_deref().unwrap_or(&self.tool.identity)
    }

    /// The input that was validated.
    pub(crate) fn input(&self) -> &Map<String, Value> {
        &self.input
    }
}

/// Parses the input strictly, checks it against the schema, and lets the tool parse it.
pub(crate) fn validate(found: ResolvedTool, text: &str) -> Result<ValidatedCall, Refusal> {
    validate_object(found.tool, json::parse_object(text, json::JsonLimits::CALL)?)
}

/// Validates an input that is parsed already: one that a hook or an approver rewrote.
pub(crate) fn validate_object(
    tool: Arc<RegisteredTool>,
    input: Map<String, Value>,
) -> Result<ValidatedCall, Refusal> {
    let whole = Value::Object(input);
    tool.checker.check(&whole)?;
    let Value::Object(input) = whole else {
        return Err(Refusal::new(Code::NotAnObject, "the input must be a JSON object"));
    };
    let prepared = tool.tool.parse_input(&input).map_err(|refusal| refusal.at_stage(Stage::Validate))?;
    let stricter = (prepared.requires_user() && !tool.identity.requires_interaction)
        .then(|| Box::new(tool.identity.clone().with_requires_interaction(true)));
    Ok(ValidatedCall { tool, prepared, input, stricter })
}
