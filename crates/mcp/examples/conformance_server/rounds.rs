//! Tools that need several rounds: modern clients only.

use super::tools::{none, put};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use toolgate_gate::{Cleared, Gate};
use toolgate_mcp::{ClientConversation, ClientInputRequest};
use toolgate_proto::{CallResult, Code, Output, Refusal};

/// One question to the user.
pub(crate) fn elicit(message: &str, field: &str, kind: &str) -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": { field: { "type": kind } }, "required": [field],
    } } })
}

fn sample(text: &str, tokens: u32) -> Value {
    json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": tokens,
    } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// The requests of a round, by name.
pub(crate) fn requests(of: &[(&str, Value)]) -> BTreeMap<String, ClientInputRequest> {
    let read = |value: &Value| ClientInputRequest::from_json(value.clone()).expect("a request");
    of.iter().map(|(name, value)| ((*name).to_owned(), read(value))).collect()
}

fn here(cleared: &Cleared) -> Result<Arc<ClientConversation>, Refusal> {
    ClientConversation::of(cleared.context(), cleared.call())
        .ok_or_else(|| Refusal::new(Code::ToolFailed, "there is no client"))
}

/// Ends with the text once every request was answered with an object; until then it asks again.
pub(crate) fn once_answered(
    cleared: &Cleared,
    asked: &[(&str, Value)],
    state: Option<Value>,
    done: impl FnOnce(&ClientConversation) -> String,
) -> CallResult {
    let conversation = here(cleared)?;
    let answered = asked.iter().all(|(name, _)| conversation.response(name).is_some_and(Value::is_object));
    let known = state.is_none() || conversation.state() == state.as_ref();
    if answered && known {
        return Ok(Output::text(done(&conversation)));
    }
    Err(conversation.require_input(requests(asked), state))
}

pub(crate) fn content(conversation: &ClientConversation, name: &str, field: &str) -> String {
    let found = conversation.response(name).and_then(|answer| answer.pointer(&format!("/content/{field}")));
    found.and_then(Value::as_str).unwrap_or("no name").to_owned()
}

pub(crate) fn register(gate: &Arc<Gate>) {
    put(gate, "test_input_required_result_elicitation", none(), |_, cleared| {
        Box::pin(async move {
            let asked = [("user_name", elicit("What is your name?", "name", "string"))];
            once_answered(&cleared, &asked, None, |said| {
                format!("Hello, {}!", content(said, "user_name", "name"))
            })
        })
    });
    put(gate, "test_input_required_result_sampling", none(), |_, cleared| {
        Box::pin(async move {
            let asked = [("capital_question", sample("What is the capital of France?", 100))];
            once_answered(&cleared, &asked, None, |said| {
                format!("The model said: {}", content(said, "capital_question", "text"))
            })
        })
    });
    put(gate, "test_input_required_result_list_roots", none(), |_, cleared| {
        Box::pin(async move {
            once_answered(&cleared, &[("client_roots", roots())], None, |said| {
                format!("roots: {}", said.response("client_roots").cloned().unwrap_or_default())
            })
        })
    });
    for name in ["test_input_required_result_request_state", "test_input_required_result_tampered_state"] {
        put(gate, name, none(), |_, cleared| {
            Box::pin(async move {
                let asked = [("confirm", elicit("Please confirm", "ok", "boolean"))];
                once_answered(&cleared, &asked, Some(json!("confirming")), |_| "state-ok".to_owned())
            })
        });
    }
    put(gate, "test_input_required_result_multiple_inputs", none(), |_, cleared| {
        Box::pin(async move {
            let asked = [
                ("user_name", elicit("What is your name?", "name", "string")),
                ("greeting", sample("Generate a greeting", 50)),
                ("client_roots", roots()),
            ];
            once_answered(&cleared, &asked, Some(json!("all three")), |said| {
                format!("Hello, {}!", content(said, "user_name", "name"))
            })
        })
    });
    put(gate, "test_input_required_result_multi_round", none(), |_, cleared| {
        Box::pin(async move {
            let conversation = here(&cleared)?;
            let first = [("step1", elicit("Step 1: What is your name?", "name", "string"))];
            let second = [("step2", elicit("Step 2: What is your favorite color?", "color", "string"))];
            let answered = |name: &str| conversation.response(name).is_some_and(Value::is_object);
            match conversation.state().and_then(|state| state.get("round")).and_then(Value::as_u64) {
                Some(1) if answered("step1") => {
                    let state = json!({ "round": 2, "name": content(&conversation, "step1", "name") });
                    Err(conversation.require_input(requests(&second), Some(state)))
                }
                Some(2) if answered("step2") => {
                    let name =
                        conversation.state().and_then(|state| state.get("name")).cloned().unwrap_or_default();
                    let color = content(&conversation, "step2", "color");
                    Ok(Output::text(format!("{} likes {color}", name.as_str().unwrap_or_default())))
                }
                _ => Err(conversation.require_input(requests(&first), Some(json!({ "round": 1 })))),
            }
        })
    });
    put(gate, "test_input_required_result_capabilities", none(), |_, cleared| {
        Box::pin(async move {
            let conversation = here(&cleared)?;
            let mut asked = requests(&[
                ("elicited", elicit("What is your name?", "name", "string")),
                ("sampled", sample("Say something", 50)),
            ]);
            asked.retain(|_, request| conversation.can_answer(request));
            if asked.keys().all(|name| conversation.response(name).is_some()) {
                return Ok(Output::text("nothing more to ask"));
            }
            Err(conversation.require_input(asked, None))
        })
    });
    put(gate, "test_missing_capability", none(), |_, cleared| {
        Box::pin(async move {
            once_answered(&cleared, &[("sampled", sample("Say something", 50))], None, |_| "said".to_owned())
        })
    });
    put(gate, "test_streaming_elicitation", none(), |_, cleared| {
        Box::pin(async move {
            cleared.progress().report_fraction(0.5, "about to ask");
            let asked = [("user_name", elicit("What is your name?", "name", "string"))];
            once_answered(&cleared, &asked, None, |said| {
                format!("Hello, {}!", content(said, "user_name", "name"))
            })
        })
    });
    put(gate, "test_logging_tool", none(), |_, _| {
        // A modern client that asks for no log gets none; this one never asks.
        Box::pin(async move { Ok(Output::text("nothing was logged")) })
    });
}
