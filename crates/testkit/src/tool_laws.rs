//! The laws of every built-in tool.

use toolgate_gate::{Gate, Session, schema::SchemaValidator};
use toolgate_proto::ToolCall;

/// Checks what must hold of every tool behind a gate. Panics where it does not.
#[expect(clippy::panic, reason = "a broken law must fail the test")]
pub fn check_tool_laws(gate: &Gate, session: &Session) {
    for tool in gate.definitions(session) {
        let name = &tool.name;
        if tool.description.is_empty() || tool.title.is_empty() {
            panic!("`{name}` lacks a description or a title");
        }
        if tool.input_schema.get("additionalProperties") != Some(&serde_json::Value::Bool(false)) {
            panic!("`{name}` takes unknown fields");
        }
        if tool.input_schema.to_string().contains("$ref") {
            panic!("`{name}`'s schema has references");
        }
        let checker = match SchemaValidator::new(&tool.input_schema) {
            Ok(checker) => checker,
            Err(problem) => panic!("`{name}`: {problem}"),
        };
        if tool.input_examples.is_empty() {
            panic!("`{name}` shows no example of its input");
        }
        for example in &tool.input_examples {
            if let Err(refusal) = checker.check(example) {
                panic!("`{name}`'s example does not fit its own schema: {refusal}");
            }
            // The example also fits the type, and its intent has a summary; no effects means that it touches nothing.
            let call = ToolCall::new("law", name.clone(), example.to_string());
            match gate.derive_intent(session, &call) {
                Ok(intended) if intended.intent.summary.is_empty() => {
                    panic!("`{name}` does not say what it would do");
                }
                Ok(_) => {}
                Err(refusal) => panic!("`{name}`'s example is refused: {refusal}"),
            }
        }
    }
}

/// The names of the tools that a gate shows.
pub fn tool_names(gate: &Gate, session: &Session) -> Vec<String> {
    gate.definitions(session).into_iter().map(|tool| tool.name.as_str().to_owned()).collect()
}
