//! The properties of every built-in tool.

use toolgate_gate::{Gate, Session, schema::SchemaValidator};
use toolgate_proto::ToolCall;

/// Checks every tool of a gate: it has a description, a strict and self-contained schema, and examples that are valid
/// and have an intent. Panics on the first violation.
#[expect(clippy::panic, reason = "a violation must fail the test")]
pub fn check_tool_properties(gate: &Gate, session: &Session) {
    for tool in gate.definitions(session) {
        let name = &tool.name;
        if tool.description.is_empty() || tool.title.is_empty() {
            panic!("`{name}` has no description or no title");
        }
        if tool.input_schema.get("additionalProperties") != Some(&serde_json::Value::Bool(false)) {
            panic!("the schema of `{name}` accepts unknown fields");
        }
        if tool.input_schema.to_string().contains("$ref") {
            panic!("the schema of `{name}` has a `$ref`");
        }
        let validator = match SchemaValidator::new(&tool.input_schema) {
            Ok(validator) => validator,
            Err(problem) => panic!("`{name}`: {problem}"),
        };
        if tool.input_examples.is_empty() {
            panic!("`{name}` has no example input");
        }
        for example in &tool.input_examples {
            if let Err(refusal) = validator.check(example) {
                panic!("an example of `{name}` is invalid under its schema: {refusal}");
            }
            // The example is valid for the input type as well, and its intent is not empty.
            let call = ToolCall::new("example", name.clone(), example.to_string());
            match gate.derive_intent(session, &call) {
                Ok(intended) if intended.intent.summary.is_empty() => {
                    panic!("the intent of `{name}` has no summary or no effect");
                }
                Ok(_) => {}
                Err(refusal) => panic!("an example of `{name}` is refused: {refusal}"),
            }
        }
    }
}

/// The names of the tools that a session sees.
pub fn tool_names(gate: &Gate, session: &Session) -> Vec<String> {
    gate.definitions(session).into_iter().map(|tool| tool.name.as_str().to_owned()).collect()
}
