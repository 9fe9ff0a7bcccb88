//! Tools that ask the client something while they run: legacy clients only.

use super::tools::{none, put};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{Cleared, Gate};
use toolgate_mcp::{ClientConversation, ClientInputRequest, ProtocolEra};
use toolgate_proto::{CallResult, Code, Output, Refusal};

async fn ask(
    cleared: &Cleared,
    method: &str,
    params: Value,
    said: impl FnOnce(&Value) -> String,
) -> CallResult {
    let failed = |why: String| Refusal::new(Code::ToolFailed, why);
    let conversation = ClientConversation::of(cleared.context(), cleared.call())
        .ok_or_else(|| failed("there is no client".to_owned()))?;
    let request = json!({ "method": method, "params": params });
    let request = ClientInputRequest::from_json(request).map_err(failed)?;
    if conversation.era() == ProtocolEra::Modern {
        return Err(conversation.require_input([("question".to_owned(), request)].into(), None));
    }
    let answer = conversation.ask(request).await.map_err(failed)?;
    Ok(Output::text(said(&answer)))
}

fn describe_answer(answer: &Value) -> String {
    let part = |key: &str| answer.get(key).cloned().unwrap_or(Value::Null);
    let action = part("action");
    format!(
        "Elicitation completed: action={}, content={}",
        action.as_str().unwrap_or_default(),
        part("content")
    )
}

fn form(message: &Value, properties: Value) -> Value {
    json!({ "mode": "form", "message": message, "requestedSchema": { "type": "object", "properties": properties } })
}

pub(crate) fn register(gate: &Arc<Gate>) {
    let prompt =
        json!({ "type": "object", "properties": { "prompt": { "type": "string" } }, "required": ["prompt"] });
    put(gate, "test_sampling", prompt, |input, cleared| {
        Box::pin(async move {
            let text = input.get("prompt").cloned().unwrap_or_default();
            let params = json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": 100,
            });
            let said = |answer: &Value| {
                let text = answer.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
                format!("LLM response: {text}")
            };
            ask(&cleared, "sampling/createMessage", params, said).await
        })
    });
    let message = json!({ "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] });
    put(gate, "test_elicitation", message, |input, cleared| {
        Box::pin(async move {
            let message = input.get("message").cloned().unwrap_or_default();
            let properties = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            ask(&cleared, "elicitation/create", form(&message, properties), describe_answer).await
        })
    });
    put(gate, "test_elicitation_sep1034_defaults", none(), |_, cleared| {
        Box::pin(async move {
            let properties = json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true },
            });
            ask(
                &cleared,
                "elicitation/create",
                form(&json!("Please fill this in"), properties),
                describe_answer,
            )
            .await
        })
    });
    put(gate, "test_elicitation_sep1330_enums", none(), |_, cleared| {
        Box::pin(async move {
            let titled = |words: [&str; 3]| -> Value {
                let values = ["value1", "value2", "value3"];
                values
                    .iter()
                    .zip(words)
                    .map(|(value, title)| json!({ "const": value, "title": title }))
                    .collect()
            };
            let options = json!(["option1", "option2", "option3"]);
            let properties = json!({
                "untitledSingle": { "type": "string", "enum": options },
                "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
                "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"] },
                "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
                "titledMulti": { "type": "array",
                    "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) } },
            });
            ask(&cleared, "elicitation/create", form(&json!("Please choose"), properties), describe_answer)
                .await
        })
    });
    put(gate, "test_tool_with_logging", none(), |_, cleared| {
        Box::pin(async move {
            for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                if let Some(conversation) = ClientConversation::of(cleared.context(), cleared.call()) {
                    conversation
                        .notify("notifications/message", json!({ "level": "info", "data": said }))
                        .await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(Output::text("the log was written"))
        })
    });
}
