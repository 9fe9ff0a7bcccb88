//! What a tool says about itself, as an approval pins it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_gate::ledger::sha256_hex;

/// The parts of a definition after the name, in the order in which they are stored.
const PART_NAMES: [&str; 4] = ["title", "description", "inputSchema", "outputSchema"];

/// The name, title, description and schemas of a tool: everything of it that can reach a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PinnedDefinition(Value);

impl PinnedDefinition {
    /// The definition of a tool as its server lists it.
    pub(crate) fn of_tool(tool: &rmcp::model::Tool) -> Self {
        Self(json!([tool.name, tool.title, tool.description, tool.input_schema, tool.output_schema]))
    }

    /// All of it as one digest, which depends on the order of keys as well.
    pub(crate) fn digest(&self) -> String {
        sha256_hex(self.0.to_string().as_bytes())
    }

    /// How long its text is.
    pub(crate) fn text_len(&self) -> usize {
        self.0.to_string().len()
    }

    /// Its parts by name, without the name of the tool; a part that the server leaves out is null.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        PART_NAMES.into_iter().zip(self.0.as_array().into_iter().flatten().skip(1))
    }

    /// Its parts as an object.
    pub fn to_json(&self) -> Value {
        Value::Object(self.parts().map(|(name, part)| (name.to_owned(), part.clone())).collect())
    }
}
